"""The bridge over HTTP, `/bridge/v1/`. Each operation: authenticate, parse, one call, answer. Knows no rule of the store.

In: requests with an agent's key. Out: JSON, a fenced block, or a problem.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from django.db import connection
from django.http import HttpRequest, HttpResponse
from ninja import Query

from agent_bridge import context, feed, jobs, links, rest_imports
from agent_bridge.auth import DELETE, PROPOSE, READ, SCOPES, TURNS, WRITE, revoke, session_token
from agent_bridge.exchange import (
    AgentRequest,
    KeyAuth,
    decided,
    key_of,
    memory_on,
    readable,
    said,
    session_tag,
    statuses,
    subject_of,
    version_seen,
)
from agent_bridge.extraction import Turn
from agent_bridge.idempotency import Written, once
from agent_bridge.models import ExtractionJob
from agent_bridge.openapi import Bridge
from agent_bridge.problems import Problem
from agent_bridge.schemas import (
    ClearedOut,
    ContextOut,
    ContextQuery,
    ContextRequest,
    DecisionOut,
    FactIn,
    FactOut,
    FactsOut,
    GenerationOut,
    HealthOut,
    JobOut,
    KeyDecision,
    PageQuery,
    ProblemOut,
    SearchRequest,
    SessionIn,
    SessionOut,
    TurnsIn,
    TurnsOut,
    UpsertIn,
    UpsertOut,
)
from agent_bridge.wire import StrictJSON
from memory_portal import store
from memory_portal.enums import Origin, Reason

api = Bridge(
    title="Memory Portal bridge",
    version="1",
    description="What a company's agents remember about its customers, under the customers' own rules.",
    urls_namespace="bridge",
    docs_url=None,
    parser=StrictJSON(),
)
api.add_router("", feed.router)
api.add_router("", links.router)
api.add_router("", rest_imports.router)


# --- reading ----------------------------------------------------------------------------------------------------------


@api.get(
    "/subjects/{subject_id}/context",
    auth=KeyAuth(READ),
    response={200: ContextOut, 304: None, **statuses()},
    summary="What every turn should know",
)
def read_context(request: AgentRequest, subject_id: str, query: Query[ContextQuery]) -> HttpResponse:
    """Layer 1: every safety and constraint fact, then the most recent others. `format=block` is fenced text for a prompt."""
    return context.answer(request, subject_id, ContextRequest(**query.model_dump()))


@api.post(
    "/subjects/{subject_id}/context",
    auth=KeyAuth(READ),
    response={200: ContextOut, 304: None, **statuses(415)},
    summary="What every turn should know, and what fits this message",
)
def read_context_for(request: AgentRequest, subject_id: str, data: ContextRequest) -> HttpResponse:
    """Layers 1 and 2. The message travels in the body, so that it stays out of logs; it is not kept."""
    return context.answer(request, subject_id, data)


@api.get(
    "/subjects/{subject_id}/facts",
    auth=KeyAuth(READ),
    response={200: FactsOut, **statuses()},
    summary="All facts",
)
def list_facts(request: AgentRequest, subject_id: str, query: Query[PageQuery]) -> HttpResponse:
    """Every fact this key may read: by key, a page at a time, or all in the order they were first written."""
    memory_on()
    subject, now, hidden = subject_of(request, subject_id), request.now, request.auth.hidden
    if query.order == "written":
        held = store.lookup(subject, "", request.auth.actor, now=now, hidden=hidden)
        return said(FactsOut(facts=[FactOut.of(fact) for fact in held]))
    facts, more = store.page(subject, request.auth.actor, now=now, after=query.after, limit=query.limit, hidden=hidden)
    return said(FactsOut(facts=[FactOut.of(fact) for fact in facts], next=facts[-1].key if more else None))


@api.post(
    "/subjects/{subject_id}/facts:search",
    auth=KeyAuth(READ),
    response={200: FactsOut, **statuses(415)},
    summary="Facts about a topic",
)
def search_facts(request: AgentRequest, subject_id: str, data: SearchRequest) -> HttpResponse:
    """Layer 3: facts about a topic, the best first; often none."""
    memory_on()
    found = store.lookup(
        subject_of(request, subject_id),
        data.topic,
        request.auth.actor,
        now=request.now,
        session=session_tag(request, data.session_id),
        hidden=request.auth.hidden,
        limit=data.limit,
    )
    return said(FactsOut(facts=[FactOut.of(fact) for fact in found]))


@api.get(
    "/subjects/{subject_id}/facts/{key}",
    auth=KeyAuth(READ),
    response={200: FactOut, **statuses(404)},
    summary="One fact",
)
def read_fact(request: AgentRequest, subject_id: str, key: str) -> HttpResponse:
    """One fact by its key. Its ETag is the version that an overwrite must name."""
    memory_on()
    subject = subject_of(request, subject_id)
    fact = store.look(subject, key_of(key), request.auth.actor, now=request.now, hidden=request.auth.hidden)
    return said(FactOut.of(fact), version=fact.version)


@api.get(
    "/subjects/{subject_id}/purge_generation",
    auth=KeyAuth(READ, TURNS),
    response={200: GenerationOut, **statuses()},
    summary="How often everything was forgotten",
)
def read_purge_generation(request: AgentRequest, subject_id: str) -> HttpResponse:
    """Whatever an agent learned under another number is void."""
    return said(GenerationOut(purge_generation=store.purge_generation(subject_of(request, subject_id))))


# --- writing ----------------------------------------------------------------------------------------------------------


@api.put(
    "/subjects/{subject_id}/facts/{key}",
    auth=KeyAuth(WRITE, PROPOSE),
    response={200: DecisionOut, 201: DecisionOut, 202: DecisionOut, **statuses(409, 410, 412, 415, 428)},
    summary="Remember or overwrite one fact",
)
def write_fact(request: AgentRequest, subject_id: str, key: str, data: FactIn) -> HttpResponse:
    """Remember a fact, or with `If-Match` overwrite it. 202: the customer is asked first, and `reason` says why."""
    subject, now = subject_of(request, subject_id), request.now
    may_write = request.auth.allows(WRITE)
    draft = store.draft(
        key=key_of(key),
        value=data.value,
        category=data.category,
        origin=Origin.AGENT,
        said_at=data.said_at or now,
        now=now,
        agent=request.auth.agent,
        topics=data.topics,
        suspicion=None if may_write else Reason.AGENT_SUGGESTION,
    )
    draft = replace(draft, source_session_id=session_tag(request, data.session_id))
    seen = version_seen(request)
    versions = {draft.key: seen} if may_write or seen is not None else {}

    def write() -> Written:
        try:
            outcome = store.submit(subject, [draft], request.auth.actor, now=now, versions=versions)[0]
        except store.Conflict:
            if "If-Match" in request.headers or "If-None-Match" in request.headers:
                raise
            raise Problem("precondition_required") from None
        return decided(request, subject, outcome)

    def again(status: int, resource: str) -> HttpResponse:
        if not resource.startswith("fact:"):
            return said(DecisionOut(decision="proposed", reason=resource), status)
        customer = store.find(subject)
        facts = store.facts(customer, now=now) if customer else []
        fact = next((fact for fact in facts if f"fact:{fact.id}" == resource), None)
        if fact is None:
            raise Problem("gone")
        shown = readable(request, subject, fact.key)
        return said(DecisionOut(decision="written", fact=shown), status, version=fact.version)

    return once(request, request.auth.key, write, again, now=now)


@api.post(
    "/subjects/{subject_id}/facts:upsert",
    auth=KeyAuth(WRITE),
    response={200: UpsertOut, **statuses(409, 415)},
    summary="Write facts as the commerce-agents contract does",
)
def upsert_facts(request: AgentRequest, subject_id: str, data: UpsertIn) -> HttpResponse:
    """The last of a key wins, no version is asked for, two keys may say the same. Every other rule holds, fact by fact."""
    subject, now = subject_of(request, subject_id), request.now

    def write() -> Written:
        outcomes = store.upsert(subject, data.facts, request.auth.actor, now=now)
        decisions = [KeyDecision(key=key, decision=o.decision, reason=o.reason) for key, o in outcomes.items()]
        rejected = store.rejection(outcomes.values())
        return Written(said(UpsertOut(decisions=decisions, rejected=rejected)), rejected or "")

    def again(status: int, resource: str) -> HttpResponse:
        return said(UpsertOut(decisions=[], rejected=resource or None), status)

    return once(request, request.auth.key, write, again, now=now)


@api.delete(
    "/subjects/{subject_id}/facts/{key}",
    auth=KeyAuth(DELETE),
    response={204: None, 202: DecisionOut, **statuses(404, 409, 412)},
    summary="Forget one fact",
)
def delete_fact(request: AgentRequest, subject_id: str, key: str) -> HttpResponse:
    """Forget a fact at once and for good. Safety, and what a person wrote, stays until the customer agrees: 202."""
    subject, name, now = subject_of(request, subject_id), key_of(key), request.now
    version = version_seen(request)

    def write() -> Written:
        forgotten = store.forget_key(
            subject, name, request.auth.actor, now=now, session=request.auth.session, version=version
        )
        return decided(request, subject, forgotten)

    def again(status: int, resource: str) -> HttpResponse:
        return said(DecisionOut(decision="proposed", reason=resource), status) if resource else HttpResponse(status=204)

    return once(request, request.auth.key, write, again, now=now)


@api.delete(
    "/subjects/{subject_id}/facts",
    auth=KeyAuth(DELETE),
    response={200: ClearedOut, **statuses(409)},
    summary="Forget everything",
)
def clear_facts(request: AgentRequest, subject_id: str) -> HttpResponse:
    """Forget every fact, safety too, at once and for good, and void all work in flight. For a customer's own wish."""
    subject, now = subject_of(request, subject_id), request.now

    def write() -> Written:
        count = store.clear(subject, request.auth.actor, now=now).counts["facts"]
        return Written(again(200, str(count)), str(count))

    def again(status: int, resource: str) -> HttpResponse:
        return said(ClearedOut(facts=int(resource), purge_generation=store.purge_generation(subject)), status)

    return once(request, request.auth.key, write, again, now=now)


@api.post(
    "/subjects/{subject_id}/turns",
    auth=KeyAuth(TURNS),
    response={200: TurnsOut, 202: TurnsOut, **statuses(409, 410, 415)},
    summary="Hand over a finished conversation",
)
def hand_over_turns(request: AgentRequest, subject_id: str, data: TurnsIn) -> HttpResponse:
    """Answers 202 once the conversation cannot be lost any more; it is read later. Tool blocks are dropped here."""
    memory_on()
    subject, now = subject_of(request, subject_id), request.now
    turns = [Turn(role, text, said_at) for role, text, said_at in data.said(now)]
    dropped = len(data.messages) - len(turns)

    def write() -> Written:
        if not turns:
            return Written(said(TurnsOut(job_id=None, state="nothing_to_read", kept=0, dropped=dropped)))
        job = jobs.submit(subject, request.auth.key, turns, session_id=data.session_id, now=now)
        return Written(told(job), f"job:{job.pk}")

    def again(status: int, resource: str) -> HttpResponse:
        if not resource:
            return write().response
        job = jobs.of(request.auth.key, resource.removeprefix("job:"))
        if job is None:
            raise Problem("gone")
        return told(job)

    def told(job: ExtractionJob) -> HttpResponse:
        return said(TurnsOut(job_id=job.pk, state=job.state, kept=len(turns), dropped=dropped), 202)

    return once(request, request.auth.key, write, again, now=now)


@api.get("/jobs/{job_id}", auth=KeyAuth(TURNS), response={200: JobOut, **statuses(404)}, summary="How far a job is")
def read_job(request: AgentRequest, job_id: str) -> HttpResponse:
    """The state of a conversation that this key handed over."""
    job, bound = jobs.of(request.auth.key, job_id), request.auth.subject
    if job is None or (bound and job.customer_id != getattr(store.find(bound), "pk", None)):
        raise Problem("not_found")
    return said(
        JobOut(
            job_id=job.pk,
            state=job.state,
            outcome=job.outcome,
            counts=job.counts,
            created_at=job.created_at,
            finished_at=job.finished_at,
        )
    )


@api.post(
    "/sessions",
    auth=KeyAuth(*SCOPES),
    response={201: SessionOut, **statuses(415)},
    summary="Open a session for one customer",
)
def open_session(request: AgentRequest, data: SessionIn) -> HttpResponse:
    """A short-lived token that reaches this customer only: what an agent may hold, and what MCP takes."""
    if request.auth.subject:
        raise Problem("key_needed")
    subject = store.Subject(data.subject_id, request.auth.profile)
    scopes = request.auth.scopes if data.scopes is None else frozenset(data.scopes)
    if missing := sorted(scopes - request.auth.scopes):
        raise Problem("scope_missing", more={"scopes": [scope for scope in missing if scope in SCOPES]})
    until = min((request.now + timedelta(minutes=data.minutes)).replace(microsecond=0), request.auth.key.expires_at)
    token = session_token(request.auth.key, subject, store.session_tag(data.session_id), scopes, until=until)
    return said(SessionOut(token=token, expires_at=until, scopes=sorted(scopes)), 201)


@api.delete("/key", auth=KeyAuth(*SCOPES), response={204: None, **statuses()}, summary="End this key")
def end_key(request: AgentRequest) -> HttpResponse:
    """Revokes the key that calls. For whoever finds one where it should not be."""
    if request.auth.subject:
        raise Problem("key_needed")
    revoke(request.auth.key, now=request.now)
    return HttpResponse(status=204)


@api.get("/health", auth=None, response={200: HealthOut, 503: ProblemOut}, summary="Whether the bridge answers")
def health(request: HttpRequest) -> HttpResponse:
    """Needs no key. `memory` is false where the deployment switched it off."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return said(HealthOut(status="ok", memory=store.current_policy().memory))
