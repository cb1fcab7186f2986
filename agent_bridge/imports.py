"""Facts an agent brings along: a file becomes a row a line, each line passes the same intake as any write, its text is wiped then.

In: the body of an upload and the agent's key. Out: Import and ImportLine rows and, through the store, facts and suggestions. The
rows are the truth: a line is decided in the transaction that writes its fact, so that a worker may die between any two and nothing
is done twice. What the customer takes back meanwhile is taken out of the lines that wait.

Locks are taken in one order, the customer's row before a line's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import orjson
from django.apps import apps
from django.core.exceptions import ValidationError
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import Count, F, Min, Q, QuerySet
from django.utils import timezone
from pydantic import ValidationError as Unusable

from agent_bridge import problems
from agent_bridge.auth import WRITE
from agent_bridge.celery import app
from agent_bridge.models import AgentKey, Import, ImportLine, JobState
from agent_bridge.problems import Problem
from agent_bridge.schemas import LINES_LIMIT, ImportFact
from memory_portal import logs, store
from memory_portal.enums import ActorKind, Origin, Reason

log = logs.get(__name__)

LINE_LIMIT = 64 * 1024
OPEN_LIMIT = 5
"""Imports of one key that may wait at once."""
GROUP = 25
"""Lines of one customer that share a transaction."""
AT_A_TIME = timedelta(seconds=20)
"""A long import makes room for others after this long."""
LEASE = AT_A_TIME + timedelta(seconds=100)
RING_AGAIN = timedelta(seconds=15)
KEEP_WAITING = timedelta(hours=24)
KEEP_REPORTS = timedelta(days=30)
OPEN = (JobState.QUEUED, JobState.RUNNING)
FIELDS = frozenset(ImportFact.model_fields)

Clock = Callable[[], datetime]


# --- taking in --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Line:
    """A line as it was read: what it says, or why it says nothing usable."""

    number: int
    fact: ImportFact | None = None
    reason: str = ""
    field: str = ""


def submit(key: AgentKey, lines: Sequence[Line], *, notes: Sequence[str] = (), now: datetime) -> Import:
    """Keep the lines in rows that survive everything, and ring the bell once they are committed."""
    if not store.current_policy().memory:
        raise store.MemoryDisabled
    if Import.objects.filter(key=key, state__in=OPEN).count() >= OPEN_LIMIT:
        raise Problem("too_many_calls", headers={"Retry-After": "60"})
    with transaction.atomic():
        job = Import.objects.create(
            key=key,
            agent=key.name,
            profile=key.profile,
            lines=len(lines),
            notes=list(notes),
            lease_until=now + RING_AGAIN,
            created_at=now,
        )
        ImportLine.objects.bulk_create((_row(job, line) for line in lines), batch_size=2_000)
        transaction.on_commit(partial(ring, job.pk), robust=True)
    return job


def _row(job: Import, line: Line) -> ImportLine:
    if line.fact is None:
        return ImportLine(job=job, line=line.number, decision="refused", reason=line.reason, field=line.field)
    fact = line.fact
    said = {
        "key": fact.key,
        "value": fact.value,
        "category": fact.category,
        "said_at": fact.said_at,
        "updated_at": fact.updated_at,
        "session": store.session_tag(fact.session_id) if fact.session_id else _tag(fact.source_session_id or ""),
    }
    return ImportLine(job=job, line=line.number, subject_id=fact.subject_id, text=orjson.dumps(said).decode())


def _tag(session: str) -> str:
    return session if not session or re.fullmatch("[0-9a-f]{12}", session) else store.session_tag(session)


def read_lines(body: bytes) -> list[Line]:
    """JSON lines. A line that cannot be used is one with a reason; the others are not held up by it."""
    lines = [
        read_line(number, line)
        for number, line in enumerate(body.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1)
        if line.strip()
    ]
    return _some(lines)


def read_line(number: int, line: bytes) -> Line:
    if len(line) > LINE_LIMIT:
        return Line(number, reason="too_long")
    try:
        return _line(number, orjson.loads(line))
    except orjson.JSONDecodeError:
        return Line(number, reason="bad_json")


def read_file(body: bytes) -> tuple[list[Line], list[str]]:
    """The commerce-agents JsonFileMemoryStore file: its facts, counted in the file's order, and what is not taken over."""
    try:
        file = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise Problem("bad_json") from None
    if not isinstance(file, dict) or not isinstance(file.get("facts"), dict):
        raise problems.invalid("#/facts", "missing", "must be an object with a list of facts for each customer")
    if set(file) - {"version", "facts", "purges"}:
        raise problems.invalid("#", "extra_forbidden", "takes version, facts and purges")
    if not all(isinstance(facts, list) for facts in file["facts"].values()):
        raise problems.invalid("#/facts", "list_type", "must be an object with a list of facts for each customer")
    told = [(subject_id, fact) for subject_id, facts in file["facts"].items() for fact in facts]
    lines = [_line(number, _of_subject(subject_id, fact)) for number, (subject_id, fact) in enumerate(told, 1)]
    return _some(lines), ["purges_not_taken"] if file.get("purges") else []


def _of_subject(subject_id: str, fact: object) -> object:
    if not isinstance(fact, dict) or "subject_id" in fact:
        return None
    return {"subject_id": subject_id, **fact}


def _some(lines: list[Line]) -> list[Line]:
    if not lines:
        raise problems.invalid("#", "too_short", "has no line in it")
    if len(lines) > LINES_LIMIT:
        raise problems.invalid("#", "too_long", "has too many lines", limit=LINES_LIMIT)
    return lines


def _line(number: int, parsed: object) -> Line:
    if not isinstance(parsed, dict):
        return Line(number, reason="object")
    try:
        fact = ImportFact.model_validate(parsed)
    except Unusable as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        field = str(first["loc"][0]) if first["loc"] else ""
        return Line(number, reason=_code(first["type"]), field=field if field in FIELDS else "")
    for name in ("subject_id", "key", "value", "category"):
        if "\0" in getattr(fact, name):
            return Line(number, reason="null_character", field=name)
    return Line(number, fact)


def _code(kind: str) -> str:
    return kind.removeprefix("bridge_").removeprefix("string_")[:32]


def ring(import_id: UUID) -> None:
    """Tell a worker. A broker that is gone costs nothing but time: the sweep rings again."""
    try:
        app.send_task(
            "agent_bridge.run_import", args=[str(import_id)], retry=False, expires=4 * RING_AGAIN.total_seconds()
        )
    except Exception as error:  # every transport has its own
        log.warning("import_no_doorbell", job=import_id, **logs.of_error(error))


# --- working ----------------------------------------------------------------------------------------------------------


def due(now: datetime) -> QuerySet[Import]:
    """What may be claimed: nobody's, or somebody's whose lease is over. Oldest first."""
    return Import.objects.filter(
        Q(state=JobState.QUEUED) | Q(state=JobState.RUNNING, lease_until__lte=now), created_at__gt=now - KEEP_WAITING
    ).order_by("created_at")


def run(import_id: UUID | str, *, clock: Clock = timezone.now) -> str | None:
    """Claim the import and decide its lines until they are all decided or others' turn has come.

    Returns the state it is left in, or None when it was not there to be had. Raises only what the database raises.
    """
    start = clock()
    taken = due(start).filter(pk=import_id).order_by()
    if not taken.update(state=JobState.RUNNING, lease_until=start + LEASE, fence=F("fence") + 1):
        return None
    job = Import.objects.select_related("key").get(pk=import_id)
    if job.key is None or not job.key.live(start) or WRITE not in job.key.scopes:
        return _stop(job, "key_ended", start)
    try:
        while (group := _next_group(job)) and clock() < start + AT_A_TIME:
            if not _work(job, group, clock()):
                return None
    except store.MemoryDisabled:
        _mine(job).update(state=JobState.QUEUED, outcome=Reason.MEMORY_OFF, lease_until=None)
        return JobState.QUEUED
    if group:
        _mine(job).update(state=JobState.QUEUED, lease_until=clock() + RING_AGAIN)
        ring(job.pk)
        return JobState.QUEUED
    _mine(job).update(state=JobState.DONE, outcome="", finished_at=clock(), lease_until=None)
    log.info("import_done", job=job.pk, counts=dict(counts(job)))
    return JobState.DONE


def drain(*, clock: Clock = timezone.now, stop: Callable[[], bool] = lambda: False) -> int:
    """Work off everything that waits, without any broker; returns how many imports ended."""
    done = 0
    for import_id in list(due(clock()).values_list("pk", flat=True)):
        state: str | None = JobState.QUEUED
        while state == JobState.QUEUED and not stop() and store.current_policy().memory:
            state = run(import_id, clock=clock)
            done += state == JobState.DONE
    return done


def _mine(job: Import) -> QuerySet[Import]:
    return Import.objects.filter(pk=job.pk, state=JobState.RUNNING, fence=job.fence)


def _next_group(job: Import) -> list[ImportLine]:
    """The next lines of one customer, no key twice: they are decided together or not at all."""
    waiting = list(ImportLine.objects.filter(job=job, decision="").order_by("line")[:GROUP])
    group: list[ImportLine] = []
    keys: set[str] = set()
    for row in waiting:
        key = orjson.loads(row.text)["key"]
        if row.subject_id != waiting[0].subject_id or key in keys:
            break
        keys.add(key)
        group.append(row)
    return group


class _Overtaken(Exception):
    """Another worker, or the customer, was at these lines meanwhile."""


Decided = tuple[int, str, str, str]
"""line, decision, reason, field"""


def _work(job: Import, group: list[ImportLine], now: datetime) -> bool:
    """Decide these lines; one by one where together something breaks. False where the import is no longer this worker's."""
    try:
        with transaction.atomic():
            _write(job, group, _decide(job, group, now))
    except _Overtaken:
        return _mine(job).exists()
    except (store.MemoryDisabled, OperationalError, InterfaceError):
        raise
    except Exception as error:  # its text may hold a value
        if len(group) > 1:
            return all(_work(job, [row], now) for row in group)
        log.error("import_line_broke", job=job.pk, line=group[0].line, **logs.of_error(error))
        return bool(_put(job, [(group[0].line, "refused", "failed", "")])) or _mine(job).exists()
    return True


def _decide(job: Import, group: list[ImportLine], now: datetime) -> list[Decided]:
    decided: list[Decided] = []
    drafts: list[tuple[int, store.Draft]] = []
    stamps: dict[str, datetime | None] = {}
    subject = None
    for row in group:
        said = orjson.loads(row.text)
        try:
            subject = store.Subject(row.subject_id, job.profile)
            draft, stamp = _draft(job, said, now)
        except store.InvalidDraft as why:
            decided.append((row.line, "refused", str(why.reason), why.field if why.field in FIELDS else ""))
            continue
        if any(draft.key == other.key for _, other in drafts):  # two spellings of one key
            break
        ends = store.current_policy().expiry(draft.category, draft.said_at)
        if ends and ends <= now:
            decided.append((row.line, "refused", "expired", ""))
            continue
        drafts.append((row.line, draft))
        if stamp:
            stamps[draft.key] = stamp
    if subject and drafts:
        actor = store.Actor(ActorKind.AGENT, str(job.key_id), job.agent)
        outcomes = store.submit(subject, [draft for _, draft in drafts], actor, now=now, stamps=stamps)
        decided += [
            (line, outcome.decision, str(outcome.reason or ""), "")
            for (line, _), outcome in zip(drafts, outcomes, strict=True)
        ]
    return decided


def _draft(job: Import, said: Mapping[str, Any], now: datetime) -> tuple[store.Draft, datetime | None]:
    """The line as a draft, and the time to keep as its last update. Said when it was last updated, or else when it came:
    what the customer had forgotten since is not brought back.
    """
    at, updated = (datetime.fromisoformat(said[name]) if said[name] else None for name in ("said_at", "updated_at"))
    draft = store.draft(
        key=said["key"],
        value=said["value"],
        category=said["category"],
        origin=Origin.AGENT,
        said_at=min(at or updated or job.created_at, job.created_at),
        now=now,
        agent=job.agent,
    )
    draft = replace(draft, source_session_id=said["session"])
    return draft, min(updated, job.created_at) if updated else None


def _write(job: Import, group: list[ImportLine], decided: list[Decided]) -> None:
    if _put(job, decided) != len(decided) or not _mine(job).exists():
        raise _Overtaken


PUT = """
UPDATE agent_bridge_importline AS l
SET decision = d.decision, reason = d.reason, field = d.field, text = '', subject_id = ''
FROM unnest(%s::int[], %s::text[], %s::text[], %s::text[]) AS d(line, decision, reason, field)
WHERE l.job_id = %s AND l.line = d.line AND l.decision = ''
"""


def _put(job: Import, decided: list[Decided]) -> int:
    """Say what became of lines and wipe them; how many of them were still undecided."""
    columns = [list(column) for column in zip(*decided, strict=True)]
    with connection.cursor() as cursor:
        cursor.execute(PUT, [*columns, job.pk])
        return int(cursor.rowcount)


def _stop(job: Import, outcome: str, now: datetime) -> str:
    """End it before its end, and wipe what waits."""
    with transaction.atomic():
        _wipe(ImportLine.objects.filter(job=job, decision=""), outcome)
        Import.objects.filter(pk=job.pk).update(
            state=JobState.PARKED, outcome=outcome, finished_at=now, lease_until=None
        )
    return JobState.PARKED


def drop(job: Import, now: datetime) -> bool:
    """Staff's way to end one that has not ended; what waits is wiped."""
    if not Import.objects.filter(pk=job.pk, state__in=OPEN).exists():
        return False
    return bool(_stop(job, "dropped", now))


def _wipe(rows: QuerySet[ImportLine], reason: str) -> int:
    return rows.update(decision="refused", reason=reason, text="", subject_id="")


# --- sweeping ---------------------------------------------------------------------------------------------------------


def sweep(now: datetime, *, ring_bells: bool = True) -> dict[str, int]:
    """End what has waited for a day, and ring for what nobody works on."""
    late = list(Import.objects.filter(state__in=OPEN, created_at__lte=now - KEEP_WAITING))
    for job in late:
        _stop(job, "too_late", now)
    rung = 0
    for job in due(now).filter(Q(lease_until=None) | Q(lease_until__lte=now)) if ring_bells else ():
        again = due(now).filter(pk=job.pk, fence=job.fence).order_by()
        if again.update(state=JobState.QUEUED, lease_until=now + RING_AGAIN):
            ring(job.pk)
            rung += 1
    return {"rung": rung, "stopped": len(late)}


def purge(*, now: datetime) -> int:
    """Forget the reports of imports that ended a month ago; returns how many."""
    old = Import.objects.filter(finished_at__lte=now - KEEP_REPORTS)
    ended = old.count()
    old.delete()
    return ended


# --- what is told -----------------------------------------------------------------------------------------------------


def of(key: AgentKey, import_id: UUID | str) -> Import | None:
    """The agent's own import; None for another's and for an id that never was."""
    try:
        return Import.objects.filter(key=key, pk=import_id).first()
    except (ValidationError, ValueError):
        return None


def counts(job: Import) -> Counter[str]:
    """How many lines came to what, refusals and suggestions by reason. Lines that wait are not in it."""
    rows = ImportLine.objects.filter(job=job).exclude(decision="").values("decision", "reason")
    return Counter(
        {
            f"{row['decision']}/{row['reason']}" if row["reason"] else row["decision"]: row["number"]
            for row in rows.annotate(number=Count("pk"))
        }
    )


def report(job: Import, *, after: int, limit: int) -> list[ImportLine]:
    """What became of the lines behind `after`, in their order, up to the first that still waits."""
    rows = ImportLine.objects.filter(job=job, line__gt=after).exclude(decision="")
    waits = ImportLine.objects.filter(job=job, decision="").aggregate(first=Min("line"))["first"]
    if waits is not None:
        rows = rows.filter(line__lt=waits)
    return list(rows.order_by("line")[:limit])


# --- what the customer takes back -------------------------------------------------------------------------------------


def on_withdrawn(sender: object, *, customer_id: int, what: str, texts: Iterable[str], **kwargs: Any) -> int:
    """Receiver of the store's `withdrawn`, in the customer's own transaction: waiting lines of theirs go, or those that say
    what was just forgotten. They are no conversations: none is counted.
    """
    whose = apps.get_model("memory_portal", "Customer").objects.filter(pk=customer_id)
    profile, subject_id = whose.values_list("profile", "subject_id").first() or ("", "")
    rows = ImportLine.objects.filter(decision="", subject_id=subject_id, job__profile=profile)
    if what != "forgotten":
        _wipe(rows, what)
        return 0
    needles = [folded for text in texts if (folded := store.fold(text))]
    said = [row.pk for row in rows if _says(store.fold(orjson.loads(row.text)["value"]), needles)]
    if said:
        _wipe(ImportLine.objects.filter(pk__in=said), Reason.FORGOTTEN_BEFORE)
    return 0


def _says(value: str, needles: Iterable[str]) -> bool:
    """Whether this folded value holds one of the texts; a short one as a word of its own."""
    return any((len(text) > 5 and text in value) or f" {text} " in f" {value} " for text in needles)
