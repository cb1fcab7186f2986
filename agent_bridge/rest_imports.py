"""`POST import` and what became of it. In: JSON lines, or a commerce-agents store's file. Out: an id, counts, a report."""

from __future__ import annotations

import orjson
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from agent_bridge import imports
from agent_bridge.auth import WRITE
from agent_bridge.exchange import AgentRequest, KeyAuth, said, statuses
from agent_bridge.idempotency import Written, once
from agent_bridge.models import Import
from agent_bridge.problems import Problem
from agent_bridge.schemas import ImportFact, ImportOut, ReportQuery

router = Router()

NDJSON = "application/x-ndjson"
LINES = (NDJSON, "application/jsonl", "application/x-jsonlines")
FILE = {
    "type": "object",
    "properties": {
        "version": {},
        "facts": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "object"}}},
        "purges": {"type": "object"},
    },
    "required": ["facts"],
    "additionalProperties": False,
}
BODY = {
    "requestBody": {
        "required": True,
        "content": {
            NDJSON: {"schema": {"type": "string", "description": f"A line: {', '.join(ImportFact.model_fields)}."}},
            "application/json": {"schema": FILE},
        },
    }
}
REPORT = {"responses": {200: {"content": {NDJSON: {"schema": {"type": "string"}}}}}}


@router.post(
    "/import",
    auth=KeyAuth(WRITE),
    response={202: ImportOut, **statuses(409, 410, 415)},
    summary="Bring what you have",
    openapi_extra=BODY,
)
def import_facts(request: AgentRequest) -> HttpResponse:
    """JSON lines, or a commerce-agents memory file. 202 once no line can be lost; each is decided later, as any write is."""
    not_bound(request)
    key, now = request.auth.key, request.now

    def write() -> Written:
        lines, notes = uploaded(request)
        job = imports.submit(key, lines, notes=notes, now=now)
        return Written(told(job, 202), f"import:{job.pk}")

    def again(status: int, resource: str) -> HttpResponse:
        return told(found(request, resource.removeprefix("import:"), "gone"), status)

    return once(request, key, write, again, now=now)


@router.get(
    "/imports/{import_id}",
    auth=KeyAuth(WRITE),
    response={200: ImportOut, **statuses(404)},
    summary="How far an import is",
)
def read_import(request: AgentRequest, import_id: str) -> HttpResponse:
    """How many lines came to what so far."""
    not_bound(request)
    return told(found(request, import_id), 200)


@router.get(
    "/imports/{import_id}/report",
    auth=KeyAuth(WRITE),
    response={200: None, **statuses(404)},
    summary="What became of each line",
    openapi_extra=REPORT,
)
def read_report(request: AgentRequest, import_id: str, query: Query[ReportQuery]) -> HttpResponse:
    """JSON lines, in order, up to the first that still waits; go on with the last line's number as `after`, until nothing comes."""
    not_bound(request)
    rows = imports.report(found(request, import_id), after=query.after, limit=query.limit)
    told = (
        {
            "line": row.line,
            "decision": row.decision,
            "reason": row.reason or None,
            "field": row.field or None,
        }
        for row in rows
    )
    return HttpResponse(b"".join(orjson.dumps(line) + b"\n" for line in told), content_type=NDJSON)


def not_bound(request: AgentRequest) -> None:
    """An import names its customers itself: not for a token that is for one of them."""
    if request.auth.subject:
        raise Problem("key_needed")


def uploaded(request: HttpRequest) -> tuple[list[imports.Line], list[str]]:
    if request.content_type == "application/json":
        return imports.read_file(request.body)
    if request.content_type in LINES:
        return imports.read_lines(request.body), []
    raise Problem("unsupported_media_type", headers={"Accept": f"{NDJSON}, application/json"})


def found(request: AgentRequest, import_id: str, otherwise: str = "not_found") -> Import:
    job = imports.of(request.auth.key, import_id)
    if job is None:
        raise Problem(otherwise)
    return job


def told(job: Import, status: int) -> HttpResponse:
    counts = imports.counts(job)
    out = ImportOut(
        import_id=job.pk,
        state=job.state,
        outcome=job.outcome,
        lines=job.lines,
        decided=counts.total(),
        counts=dict(sorted(counts.items())),
        notes=job.notes,
        created_at=job.created_at,
        finished_at=job.finished_at,
    )
    return said(out, status)
