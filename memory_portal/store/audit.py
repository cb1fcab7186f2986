"""Whether the events are what was written: every trail, every seal, and what the witness outside the database knows.

In: the time, the witness's file. Out: a Report; nothing is changed. One pass over the events by customer, with one trail
in memory at a time; one over all of them in the database itself, by seal. Imports models and the rooms trail, seals and faults.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from django.db import connection, transaction

from memory_portal.models import AuditSeal
from memory_portal.store import seals, trail
from memory_portal.store.faults import Edit, Event, Fault, Findings, Head, examine, is_whole, settle

OLD_CODE = timedelta(days=1)
"""After the first seal, events without a place may still come from processes of the version before."""
LAST = 2**63 - 1

EVENTS = """
SELECT customer_id, seq, prev, at AT TIME ZONE 'UTC', kind, fact_id, key, category, code, actor_kind, actor_id, agent, mac, id
FROM memory_portal_factevent WHERE seq IS NOT NULL OR mac IS NOT NULL ORDER BY customer_id, seq, id
"""
HEADS = """
SELECT id, trail_seq, trail_mac, trail_head FROM memory_portal_customer WHERE trail_seq <> 0 OR trail_head IS NOT NULL
UNION ALL SELECT customer_number, seq, mac, head FROM memory_portal_trailend ORDER BY 1, 2
"""
COUNTS = "SELECT count(*), count(*) - count(seq), count(*) FILTER (WHERE id > %s) FROM memory_portal_factevent"
STRAYS = "SELECT id FROM memory_portal_factevent WHERE seq IS NULL AND id > %s ORDER BY id LIMIT 1000"


@dataclass(frozen=True, slots=True)
class Report:
    faults: tuple[Fault, ...]
    events: int
    trails: int
    older: int
    """Events from before there were trails; the first seals cover them."""
    dropped: int
    """Events in months whose time was over."""
    unsealed: int
    seals: int
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return not self.faults


def verify(now: datetime, witness: Path | None = None) -> Report:
    """Check all of it, in one picture of one instant. No seal is written and no month dropped meanwhile."""
    began = time.perf_counter()
    fresh = not connection.in_atomic_block
    with seals.nobody_else():
        try:  # Before the picture is taken, so that it knows at least as much.
            known = seals.told(witness or seals.path())
        except FileNotFoundError:
            known = None
        with transaction.atomic():
            if fresh:
                with connection.cursor() as cursor:
                    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            report = _look(now, known)
    return replace(report, seconds=time.perf_counter() - began)


def _look(now: datetime, known: list[dict[str, Any]] | None) -> Report:
    sealed = list(AuditSeal.objects.order_by("number"))
    drops = [seal for seal in sealed if seal.until]
    found, trails, dropped = _trails(max((seal.until for seal in drops if seal.until), default=None))
    faults = [*_chain(sealed), *_witnessed(sealed, known), *settle(trail.ring(), found)]
    dropped += len(found.dropped)
    if dropped != (gone := sum(seal.chained for seal in drops)):
        faults.append(Fault(Edit.DELETED, f"{dropped} events of old months are missing, {gone} were dropped in time"))
    tally = Tally(now, sealed)
    tally.count()
    faults += tally.faults
    headless = tally.fewer_trails - sum(place == 1 for _, place in found.empty)
    if headless > 0:
        faults.append(
            Fault(Edit.TRAIL_REMOVED, f"{headless} trails that a seal knows, with the customers they belong to")
        )
    return Report(
        faults=tuple(faults),
        events=tally.events,
        trails=trails,
        older=tally.older,
        dropped=sum(seal.events for seal in drops),
        unsealed=tally.unsealed,
        seals=len(sealed),
    )


def _chain(sealed: list[AuditSeal]) -> Iterator[Fault]:
    keys, number, reached, mac = trail.ring(), 0, 0, b""
    for seal in sealed:
        if seal.number != number + 1:
            yield Fault(Edit.DELETED, f"seals {number + 1} to {seal.number - 1}")
        elif not trail.signed(keys, seals.seal_text(seal, mac), bytes(seal.mac)) or seal.to_id < reached:
            yield Fault(Edit.CHANGED, f"seal {seal.number}")
        number, reached, mac = seal.number, seal.to_id, bytes(seal.mac)


def _witnessed(sealed: list[AuditSeal], known: list[dict[str, Any]] | None) -> Iterator[Fault]:
    held = {seal.number: bytes(seal.mac) for seal in sealed} | {0: b""}
    if known is None:
        if sealed:
            yield Fault(Edit.ROLLED_BACK, "there is no witness to say otherwise")
        return
    strange = [line["seal"] for line in known if held.get(line["seal"]) != line["mac"]]
    if strange:
        yield Fault(
            Edit.ROLLED_BACK,
            f"the witness knows {len(strange)} seals, from {strange[0]} on, that are not in the database",
        )


def _trails(dropped_until: date | None) -> tuple[Findings, int, int]:
    """Trails and their heads side by side, both by customer: what is wrong, how many there are, how many places begin too late."""
    keys, found, count, dropped = trail.ring(), Findings(), 0, 0
    until = datetime(dropped_until.year, dropped_until.month, 1) if dropped_until else None  # noqa: DTZ001  # as EVENTS says it
    with connection.chunked_cursor() as cursor, connection.chunked_cursor() as beside:
        cursor.execute(EVENTS)
        beside.execute(HEADS)
        events = groupby(map(Event._make, _fetched(cursor)), lambda event: event.customer)
        heads = groupby(map(Head._make, _fetched(beside)), lambda head: head.customer)
        for _, both in groupby(merge(events, heads, key=itemgetter(0)), itemgetter(0)):
            rows = [row for _, group in both for row in group]
            ends = [row for row in rows if isinstance(row, Head)]
            trail_of = [row for row in rows if isinstance(row, Event)]
            count += 1
            before = is_whole(keys, ends[0] if len(ends) == 1 else None, trail_of, late=until is not None)
            if before is None:
                found.add(examine(keys, ends[-1] if ends else None, trail_of, until))
            else:
                dropped += before
    return found, count, dropped


def _fetched(cursor: Any) -> Iterator[Any]:
    while rows := cursor.fetchmany(5_000):
        yield from rows


class Tally:
    """The second pass: what the seals say beside what is there."""

    def __init__(self, now: datetime, sealed: list[AuditSeal]) -> None:
        self.sealed = [seal for seal in sealed if not seal.until]
        self.drops = [seal for seal in sealed if seal.until]
        self.faults: list[Fault] = []
        self.events = self.older = self.unsealed = self.fewer_trails = 0
        over = sealed[0].sealed_at + OLD_CODE if sealed else now + OLD_CODE
        """Until then an event without a place may come from the version before."""
        self.old_to = max((seal.to_id for seal in sealed if seal.sealed_at < over), default=0) if now >= over else LAST

    def count(self) -> None:
        by_start = {start: list(some) for start, some in groupby(self.sealed, lambda seal: seal.from_id + 1)}
        starts, last = sorted(by_start), max((seal.to_id for seal in self.sealed), default=0)
        found = {number: list(some) for number, some in groupby(seals.sums(starts, -LAST, last), itemgetter(0))}
        for one in found.pop(0, []):
            self.faults.append(Fault(Edit.INSERTED, f"{one.events} events before the first that a seal knows"))
        for number, start in enumerate(starts, 1):
            self._compare(by_start[start], {one.month: one for one in found.get(number, [])})
        with connection.cursor() as cursor:
            cursor.execute(COUNTS, [last])
            self.events, self.older, self.unsealed = cursor.fetchone()
            cursor.execute(STRAYS, [self.old_to])
            strays = [Fault(Edit.INSERTED, f"event {pk}, which is of no trail") for (pk,) in cursor.fetchall()]
        self.faults += strays

    def _compare(self, here: list[AuditSeal], by_month: dict[date, seals.Sums]) -> None:
        for seal in here:
            held = by_month.pop(seal.month, seals.Sums(0, seal.month, 0, 0, 0, b""))
            if not self._was_dropped(seal):
                self._differ(seal, held)
            elif held.events:
                self.faults.append(
                    Fault(Edit.INSERTED, f"{held.events} events of {seal.month:%Y-%m}, which was dropped")
                )
        for month, held in by_month.items():
            span = f"events {here[0].from_id + 1} to {here[0].to_id}"
            self.faults.append(
                Fault(Edit.INSERTED, f"{held.events} among {span}, of {month:%Y-%m}, which no seal knows")
            )

    def _was_dropped(self, seal: AuditSeal) -> bool:
        return any(
            drop.number > seal.number and drop.month <= seal.month < drop.until for drop in self.drops if drop.until
        )

    def _differ(self, seal: AuditSeal, held: seals.Sums) -> None:
        self.fewer_trails += seal.trails - held.trails
        if held[2:] == (seal.events, seal.chained, seal.trails, bytes(seal.digest)):
            return
        more = held.events - seal.events
        edit = Edit.INSERTED if more > 0 else Edit.DELETED if more < 0 else Edit.CHANGED
        said = f"{abs(more)} {'more' if more > 0 else 'fewer'} than" if more else "other events than"
        name = f"seal {seal.number} (events {seal.from_id + 1} to {seal.to_id}, {seal.month:%Y-%m})"
        self.faults.append(Fault(edit, f"{said} {name} knows"))
