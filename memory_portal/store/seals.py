"""Seals over all events, each covering the one before; the last one's digest is told to a file outside the database, the witness.

In: the time. Out: rows of AuditSeal, a line in AUDIT_WITNESS, a line in the log. A trail says that a customer's events are whole;
a seal that none of all of them went, trail and customer and all; the witness that the database is not an older copy of itself.
Imports models, trail and months.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Max, Sum

from memory_portal import logs
from memory_portal.models import AuditSeal
from memory_portal.store import months, trail

log = logs.get(__name__)

CHUNK = 50_000
"""Events in one seal at most, so that a fault is near."""
A_MOMENT = partial(time.sleep, 0.1)
TRIES = 50
"""So many moments are waited for writers that may still hold an id."""

ALONE = "SELECT pg_try_advisory_xact_lock(hashtextextended('memory portal audit', 0))"
IN_TURN = "SELECT pg_advisory_xact_lock(hashtextextended('memory portal audit', 0))"
HOLD = "SELECT pg_advisory_lock(hashtextextended('memory portal audit', 0))"
LET_GO = "SELECT pg_advisory_unlock(hashtextextended('memory portal audit', 0))"

# Every writer has a transaction id before it takes an id for its event: it locks its customer first. So once all transactions
# that ran when the sequence stood here are over, nothing can appear at or below it any more.
REACH = "SELECT last_value - (NOT is_called)::int FROM {}"
RUNNING = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
OVER = """
SELECT NOT EXISTS (SELECT FROM pg_snapshot_xip(pg_current_snapshot()) AS x WHERE x::text::bigint < %s)
"""

STEP = """
SELECT max(id), count(*)
FROM (SELECT id FROM memory_portal_factevent WHERE id > %s AND id <= %s ORDER BY id LIMIT %s) AS next
"""
# What is older than the trails has no digest of its own; here the database makes one.
SUMS = """
SELECT width_bucket(id, %s::bigint[]), (date_trunc('month', at, 'UTC') AT TIME ZONE 'UTC')::date,
    count(*), count(seq), count(*) FILTER (WHERE seq = 1),
    sha256(string_agg(int8send(id) || int8send(coalesce(xid, -1)) || coalesce(mac, sha256(convert_to(jsonb_build_array(
        customer_id, at AT TIME ZONE 'UTC', kind, fact_id, key, category, code, actor_kind, actor_id, agent
    )::text, 'UTF8'))), ''::bytea ORDER BY id))
FROM memory_portal_factevent WHERE id > %s AND id <= %s GROUP BY 1, 2 ORDER BY 1, 2
"""


class Sums(NamedTuple):
    """What a seal says of the events of one month in one range of ids."""

    batch: int
    month: date
    events: int
    chained: int
    trails: int
    digest: bytes


def sums(starts: list[int], after: int, to: int) -> list[Sums]:
    """Of ids after `after`, up to `to`. `batch` is 1 from the first of `starts` on, 2 from the second, and 0 before them."""
    with connection.cursor() as cursor:
        cursor.execute(SUMS, [starts, after, to])
        return [Sums(*row) for row in cursor.fetchall()]


def seal_text(seal: AuditSeal, before: bytes) -> bytes:
    at = seal.sealed_at.astimezone(UTC).isoformat()
    counts = f"{seal.events}\0{seal.chained}\0{seal.trails}\0{bytes(seal.digest).hex()}\0"
    return (
        f"seal\0{seal.number}\0{at}\0{seal.from_id}\0{seal.to_id}\0{seal.month}\0{seal.until}\0{counts}".encode()
        + before
    )


def last_seal() -> AuditSeal | None:
    return AuditSeal.objects.order_by("-number").first()


def _write(**said: Any) -> AuditSeal:
    last = last_seal()
    seal = AuditSeal(number=last.number + 1 if last else 1, **said)
    seal.mac = trail.sign(seal_text(seal, bytes(last.mac) if last else b""))
    seal.save(force_insert=True)
    return seal


@contextmanager
def nobody_else() -> Iterator[None]:
    """While it lasts nothing is sealed and no month of events dropped."""
    with connection.cursor() as cursor:
        cursor.execute(HOLD)
        try:
            yield
        finally:
            cursor.execute(LET_GO)


# --- sealing ----------------------------------------------------------------------------------------------------------


def seal(now: datetime, *, pause: Callable[[], None] = A_MOMENT) -> AuditSeal | None:
    """Seal what came in since the last time, and tell the witness. Returns the last seal there is.

    While another process is at it, or a writer that began before does not end, nothing is sealed: the next call does it.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(ALONE)
        if not cursor.fetchone()[0]:
            return last_seal()
        if reach := _reach(cursor, pause):
            _seal_to(reach, now)
    last = last_seal()
    if last:
        _tell(last)
    return last


def _reach(cursor: Any, pause: Callable[[], None]) -> int:
    """The id up to which nothing can appear any more; 0 where that cannot be said now."""
    cursor.execute("SELECT pg_get_serial_sequence('memory_portal_factevent', 'id')")
    cursor.execute(REACH.format(cursor.fetchone()[0]))
    (reach,) = cursor.fetchone()
    cursor.execute(RUNNING)
    (running,) = cursor.fetchone()
    for _ in range(TRIES):
        cursor.execute(OVER, [running])
        if cursor.fetchone()[0]:
            return int(reach)
        pause()
    log.warning("audit_not_settled")
    return 0


def _seal_to(reach: int, now: datetime) -> None:
    after = AuditSeal.objects.aggregate(Max("to_id"))["to_id__max"] or 0
    while after < reach:
        with connection.cursor() as cursor:
            cursor.execute(STEP, [after, reach, CHUNK])
            last, count = cursor.fetchone()
        to = last if count == CHUNK else reach
        for one in sums([after + 1], after, to):
            told = one._asdict()
            del told["batch"]
            _write(sealed_at=now, from_id=after, to_id=to, **told)
        after = to


def tend_months(now: datetime) -> dict[str, list[str]]:
    """Make and drop months (store/months.py), with a seal that says what was dropped."""
    seal(now)
    return months.tend_months(now, farewell=partial(_farewell, now=now))


def _farewell(part: months.Part, now: datetime) -> None:
    """In the transaction that drops the month: its events are missing from now on because their time was over."""
    with connection.cursor() as cursor:
        cursor.execute(IN_TURN)
    first, until = date.min if part.before else part.start.date(), part.end.date()
    gone = AuditSeal.objects.filter(until=None, month__gte=first, month__lt=until)
    counts = gone.aggregate(
        events=Sum("events", default=0), chained=Sum("chained", default=0), trails=Sum("trails", default=0)
    )
    reached = AuditSeal.objects.aggregate(Max("to_id"))["to_id__max"] or 0
    _write(sealed_at=now, from_id=reached, to_id=reached, month=first, until=until, digest=b"", **counts)


# --- the witness ------------------------------------------------------------------------------------------------------


def path() -> Path:
    return Path(settings.AUDIT_WITNESS)


def told(file: Path) -> list[dict[str, Any]]:
    """The witness's lines that count: those after the last restoring, which is one itself. Raises FileNotFoundError.

    A torn line is one whose write was cut off; the next call told it again.
    """
    lines: list[dict[str, Any]] = []
    for text in file.read_text("utf-8").splitlines():
        try:
            line = json.loads(text)
            line = {
                "seal": int(line["seal"]),
                "mac": bytes.fromhex(line["mac"]),
                "restored": bool(line.get("restored")),
            }
        except (ValueError, KeyError, TypeError):
            continue
        lines = [line] if line["restored"] else [*lines, line]
    return lines


def fits(line: dict[str, Any]) -> bool:
    """Whether the database holds the seal of which the witness was told."""
    if not line["seal"]:
        return True  # The copy that was restored had none.
    return AuditSeal.objects.filter(number=line["seal"], mac=line["mac"]).exists()


def _tell(last: AuditSeal) -> None:
    """After the seal is committed: so the witness is never ahead, unless the database is a copy from before."""
    try:
        lines = told(path())
    except FileNotFoundError:
        lines = []
    if lines and not fits(lines[-1]):
        log.error("audit_behind", seal=last.number, witness=lines[-1]["seal"])
    elif not lines or lines[-1]["seal"] < last.number:
        _append(head_line(last))
        log.info("audit_sealed", seal=last.number, reach=last.to_id, digest=bytes(last.mac).hex())


def restored() -> AuditSeal | None:
    """Tell the witness that this database is a copy on purpose: what it was told before is not held against it any more."""
    last = last_seal()
    _append(head_line(last, restored=True))
    return last


def head_line(last: AuditSeal | None, *, restored: bool = False) -> str:
    """What the witness is told of the last seal: its number, its digest, when it was made and up to which event it goes."""
    said: dict[str, Any] = {"seal": 0, "mac": ""}
    if last:
        at = last.sealed_at.astimezone(UTC).isoformat()
        said = {"seal": last.number, "mac": bytes(last.mac).hex(), "at": at, "reach": last.to_id}
    if restored:
        said["restored"] = True
    return json.dumps(said, separators=(",", ":"))


def _append(line: str) -> None:
    """On the disk before it returns. A line break before it: a torn line spoils nothing."""
    file = path()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, f"\n{line}".encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
