"""Reading one conversation: claim the job, ask the extractor, ground what it claims, settle facts and job together.

In: a job's id, a clock. Out: the state it came to, and facts through the store. Between two steps any process may die.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from agent_bridge import jobs, spend
from agent_bridge.extraction import Extraction, ExtractionFailed, ExtractionRequest, Extractor, Known, Profile, Turn
from agent_bridge.extraction import configured as configured_extractor
from agent_bridge.extraction.grounding import Source, ground
from agent_bridge.models import ExtractionJob, JobState
from memory_portal import logs, store
from memory_portal.enums import ActorKind, Reason

log = logs.get(__name__)

Clock = Callable[[], datetime]


def answer_bell(job_id: UUID | str, *, clock: Clock = timezone.now) -> str | None:
    """Read this conversation, or before it one that was interrupted and has waited longer.

    Bells stand in a queue, and the sweep that would ring again stands in the same: behind many others, what a dead worker left
    would wait for all of them. Whose turn was taken is rung for again.
    """
    left = jobs.left_behind(clock())
    if left is not None and str(left) != str(job_id):
        jobs.ring(UUID(str(job_id)))
        job_id = left
    return run(job_id, clock=clock)


def run(
    job_id: UUID | str,
    *,
    clock: Clock = timezone.now,
    extractor: Extractor | None = None,
    dice: random.Random | None = None,
) -> str | None:
    """Claim the job, read it, settle it. Returns the state it came to, or None when it was not there to be had.

    Raises nothing about the conversation: what goes wrong ends as a code in the row.
    """
    job = jobs.claim(job_id, clock())
    if job is None:
        return None
    dice = dice or random.Random()  # noqa: S311  # jitter
    return safely(job, clock, dice, lambda: _read(job, clock, extractor or configured_extractor(), dice))


def safely(job: ExtractionJob, clock: Clock, dice: random.Random, step: Callable[[], str]) -> str:
    """The step's outcome; where it breaks, the job is sent back with a code and nothing is told of what it was about."""
    try:
        return step()
    except Exception as error:  # its text may hold the customer's words
        log.error("job_broke", job=job.pk, attempt=job.attempts, **logs.of_error(error))
        return jobs.fail(job, ExtractionFailed("internal_error"), clock(), dice)


def _read(job: ExtractionJob, clock: Clock, extractor: Extractor, dice: random.Random) -> str:
    asked = prepare(job, extractor, clock())
    if isinstance(asked, str):
        return asked
    extraction = extractor.extract(asked.request)
    spend.settle(job.customer_id, asked.reserved, spent(extraction, asked.reserved), spend.day_of(asked.request.now))
    return conclude(job, extraction, clock(), dice)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What an extractor is asked, and the tokens that are reserved for it."""

    request: ExtractionRequest
    reserved: int


def prepare(job: ExtractionJob, extractor: Extractor, now: datetime) -> Prepared | str:
    """The question, paid for beforehand; or the state of a job about which nothing is asked."""
    reason = jobs.unwanted(job.customer, job.agent) if store.current_policy().memory else Reason.MEMORY_OFF
    if reason:
        return _ended(job, JobState.DISCARDED, reason, now)
    turns = jobs.turns_of(job)
    if not any(turn.role == "user" and turn.text.strip() for turn in turns):
        return _ended(job, JobState.DONE, "nothing_said", now)
    request = request_for(job, turns, now)
    reserved = extractor.tokens_at_most(request)
    if cap := spend.reserve(job.customer_id, reserved, now):
        return jobs.postpone(job, cap, now)
    return Prepared(request, reserved)


def conclude(job: ExtractionJob, extraction: Extraction, now: datetime, dice: random.Random) -> str:
    """Settle what was found, or send the job back with what went wrong."""
    if extraction.failure:
        return jobs.fail(job, extraction.failure, now, dice, extraction)
    return settle(job, extraction, jobs.turns_of(job), now)


def spent(extraction: Extraction, reserved: int) -> int:
    """The tokens told; all that was reserved where an answer came too late to tell them, for it may have been paid."""
    if extraction.failure and extraction.failure.code == "timeout":
        return reserved
    return extraction.input_tokens + extraction.output_tokens


def request_for(job: ExtractionJob, turns: tuple[Turn, ...], now: datetime) -> ExtractionRequest:
    """What an extractor is told: the words, the facts held, the names that stay forgotten. Never who it is."""
    held = store.facts(job.customer, now=now)
    return ExtractionRequest(
        profile=profile(job.profile),
        turns=turns,
        now=now,
        held=tuple(Known(fact.key, fact.value, fact.category) for fact in held),
        forgotten_keys=store.forgotten_keys(job.customer_id),
        max_new_facts=store.current_policy().limits.max_new_facts,
    )


def profile(name: str) -> Profile:
    """The policy's section of that name; the default one's where it has gone."""
    policy = store.current_policy()
    section = policy.profiles.get(name) or policy.profiles[policy.default_profile]
    return Profile(
        keeper=section.keeper,
        qualifies=section.qualifies,
        excluded=section.excluded,
        example_keys=section.example_keys,
        categories=tuple(name for name, category in policy.categories.items() if category.kept),
    )


def _ended(job: ExtractionJob, state: JobState, outcome: str, now: datetime) -> str:
    return state if jobs.end(job, state, outcome, now) else jobs.state_of(job)


class _Fenced(Exception):
    """Another worker or the customer took the job away meanwhile."""


def settle(job: ExtractionJob, extraction: Extraction, turns: Sequence[Turn], now: datetime) -> str:
    """Write the facts and the job's end in one transaction, or neither."""
    drafts, counts = grounded(job, extraction, turns, now)
    actor = store.Actor(ActorKind.JOB, str(job.pk), job.agent)
    try:
        with transaction.atomic():
            outcomes = store.submit(job.customer_id, drafts, actor, now=now, generation=job.generation)
            counts.update(_code(outcome.decision, outcome.reason) for outcome in outcomes)
            if not jobs.end(job, JobState.DONE, "", now, counts=dict(counts), **jobs.bill(job, extraction)):
                raise _Fenced
    except _Fenced:
        log.info("job_too_late", job=job.pk, attempt=job.attempts)
        return jobs.state_of(job)
    except store.MemoryDisabled:
        return _ended(job, JobState.DISCARDED, Reason.MEMORY_OFF, now)
    log.info("job_done", job=job.pk, extractor=extraction.extractor, counts=dict(counts))
    return JobState.DONE


def grounded(
    job: ExtractionJob, extraction: Extraction, turns: Sequence[Turn], now: datetime
) -> tuple[list[store.Draft], Counter[str]]:
    """The candidates that stand on the customer's own words, and a count of the others."""
    source = Source(tuple(turns), job.source_session_id, job.agent, extraction.extractor)
    drafts: list[store.Draft] = []
    counts: Counter[str] = Counter({f"refused/{code}": number for code, number in extraction.refused.items()})
    for candidate in extraction.candidates:
        found = ground(candidate, source, now=now)
        if isinstance(found, Reason):
            counts[_code("refused", found)] += 1
        else:
            drafts.append(found)
    return drafts, counts


def _code(decision: str, reason: Reason | None) -> str:
    return f"{decision}/{reason.value}" if reason else decision


def drain(
    *,
    clock: Clock = timezone.now,
    extractor: Extractor | None = None,
    stop: Callable[[], bool] = lambda: False,
    most: int | None = None,
) -> int:
    """Run everything that is due, or `most` of it, without any broker; returns how many runs that were."""
    ran = 0
    while not stop() and ran != most:
        job_id = jobs.due(clock()).values_list("pk", flat=True).first()
        if job_id is None:
            break
        ran += run(job_id, clock=clock, extractor=extractor) is not None
    return ran
