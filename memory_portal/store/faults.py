"""What was done to a trail that does not fit any more: each edit by its kind. In: the events of one customer and their head.

Out: faults, and what only a look at all trails can settle. Pure but for the keys, which come as an argument. Names ids and places,
nothing else. Imports trail.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from memory_portal.store.trail import Ring, event_text, head_text, signed


class Edit(StrEnum):
    CHANGED = "changed"
    DELETED = "deleted"
    CUT_OFF = "cut off"
    INSERTED = "inserted"
    REORDERED = "reordered"
    DUPLICATED = "duplicated"
    MOVED = "moved"
    TRAIL_REMOVED = "trail removed"
    ROLLED_BACK = "rolled back"


@dataclass(frozen=True, slots=True)
class Fault:
    edit: Edit
    where: str

    def __str__(self) -> str:
        return f"{self.edit}: {self.where}"


class Event(NamedTuple):
    """A row, first what its digest is made of."""

    customer: int
    seq: int | None
    prev: bytes | None
    at: datetime
    kind: str
    fact_id: int | None
    key: str
    category: str
    code: str
    actor_kind: str
    actor_id: str
    agent: str
    mac: bytes | None
    id: int

    @property
    def name(self) -> str:
        return f"customer {self.customer}, event {self.id} (place {self.seq})"


class Head(NamedTuple):
    customer: int
    seq: int
    mac: bytes | None
    head: bytes | None


Place = tuple[int, int]
"""A customer and a place in their trail."""

PAIRS = 40_000
NEAR = 150
"""So much is tried to find out what was exchanged or moved; beyond that an event counts as changed or inserted."""


APART = timedelta(days=1)
"""So much, at the most, the clocks of two machines that write events differ."""


@dataclass
class Findings:
    """Of one trail, or of all together."""

    faults: list[Fault] = field(default_factory=list)
    misfits: list[Event] = field(default_factory=list)
    """Events that fit nowhere in their trail: changed, inserted, or of another."""
    empty: set[Place] = field(default_factory=set)
    dropped: set[Place] = field(default_factory=set)
    """Empty places that may have lain in months whose time was over."""
    last: dict[int, int] = field(default_factory=dict)
    """The last place that is taken, of each trail with a fault."""

    def add(self, other: Findings) -> None:
        self.faults += other.faults
        self.misfits += other.misfits
        self.empty |= other.empty
        self.dropped |= other.dropped
        self.last |= other.last


def is_genuine(keys: Ring, event: Event) -> bool:
    return signed(keys, event_text(*event[:12]), event.mac)


def is_whole(keys: Ring, head: Head | None, events: Sequence[Event], *, late: bool) -> int | None:
    """The quick look, which nearly every trail passes: every event in its place, from the first to the one the head knows.

    With `late` the trail may begin later, as its older months were dropped: returns how many places are empty before the first,
    and None where the trail is not whole.
    """
    if head is None or not _is_signed(keys, head):
        return None
    first = events[0] if events else None
    before = ((first.seq or 1) - 1 if first else head.seq) if late else 0
    seq, mac, last = before, first.prev if first and before else b"", 0
    for event in events:
        if event.seq != seq + 1 or event.prev != mac or event.id <= last or not is_genuine(keys, event):
            return None
        seq, mac, last = event.seq, event.mac, event.id
    return before if head.seq == seq and (head.mac == mac or not events) else None


def _is_signed(keys: Ring, head: Head) -> bool:
    return signed(keys, head_text(head.customer, head.seq, head.mac), head.head)


def examine(keys: Ring, head: Head | None, events: Sequence[Event], dropped_until: datetime | None) -> Findings:
    """The close look. Empty places behind an event well after `dropped_until` were not dropped with an old month."""
    found = Findings()
    customer = events[0].customer if events else head.customer if head else 0
    placed: dict[int, Event] = {}
    odd: list[Event] = []
    for event in sorted(events, key=lambda event: event.id):
        if not is_genuine(keys, event) or event.seq is None:
            odd.append(event)
        elif (there := placed.setdefault(event.seq, event)) is not event:
            edit = Edit.DUPLICATED if there.mac == event.mac else Edit.ROLLED_BACK
            found.faults.append(Fault(edit, event.name))
    found.faults += _links(placed)
    end = head.seq if head and _is_signed(keys, head) else max(placed, default=0)
    empty = set(range(1, end + 1)) - placed.keys()
    exchanged = dict(_exchanged(keys, odd, empty))
    found.faults += [Fault(Edit.REORDERED, event.name) for event in odd if event.id in exchanged]
    found.misfits = [event for event in odd if event.id not in exchanged]
    empty -= set(exchanged.values())
    found.faults += _end(keys, customer, head, placed, alone=not placed and bool(events))
    taken = sorted({*placed, *exchanged.values()})
    found.last[customer] = max(taken, default=0)
    held = sorted(placed)
    for place in sorted(empty):
        before = bisect_left(held, place)
        late = dropped_until is None or (before > 0 and placed[held[before - 1]].at >= dropped_until + APART)
        (found.empty if late else found.dropped).add((customer, place))
    return found


def _links(placed: dict[int, Event]) -> Iterator[Fault]:
    for one, two in pairwise(placed[seq] for seq in sorted(placed)):
        if two.seq == (one.seq or 0) + 1 and two.prev != one.mac:
            yield Fault(Edit.ROLLED_BACK, f"{two.name}: it follows another event than the one before it")
        if two.id <= one.id:
            yield Fault(Edit.REORDERED, two.name)


def _exchanged(keys: Ring, odd: Sequence[Event], empty: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Events that fit once what was exchanged is put back, with the place they belong to."""
    places = sorted(empty)[:NEAR]
    for event in odd[:NEAR]:
        for other in (*odd[:NEAR], *(event._replace(seq=place) for place in places)):
            put_back = (
                event._replace(seq=other.seq),
                event._replace(seq=other.seq, prev=other.prev),
                event._replace(seq=other.seq, prev=other.prev, mac=other.mac),
                event._replace(at=other.at),
            )
            fitting = next((variant for variant in put_back if is_genuine(keys, variant)), None)
            if fitting and fitting.seq is not None:
                yield event.id, fitting.seq
                break


def _end(keys: Ring, customer: int, head: Head | None, placed: dict[int, Event], *, alone: bool) -> Iterator[Fault]:
    if head is None:
        if not alone:  # else they are misfits, and nobody's trail
            yield Fault(Edit.CHANGED, f"customer {customer}: where the trail ends is not noted")
        return
    if not _is_signed(keys, head):
        set_back = head.seq in placed and placed[head.seq].mac == head.mac
        edit, what = (Edit.CUT_OFF, "set back") if set_back else (Edit.CHANGED, "changed")
        yield Fault(edit, f"customer {customer}: where the trail ends was {what}")
    elif placed and max(placed) > head.seq:
        yield Fault(Edit.ROLLED_BACK, f"customer {customer}: the trail is noted to end before it does")
    elif head.seq in placed and placed[head.seq].mac != head.mac:
        yield Fault(Edit.ROLLED_BACK, f"customer {customer}: the trail ends in another event than noted")


def settle(keys: Ring, all_of_it: Findings) -> list[Fault]:
    """The faults of all trails: what is misplaced finds the empty place it came from, what is left is named."""
    faults, vacant = list(all_of_it.faults), all_of_it.empty | all_of_it.dropped
    homes = _homes(keys, all_of_it.misfits, vacant)
    for home in homes.values():
        all_of_it.empty.discard(home)
        all_of_it.dropped.discard(home)
    for event in all_of_it.misfits:
        at = (event.customer, event.seq or 0)
        if event.id in homes:
            faults.append(Fault(Edit.MOVED, f"{event.name}, from customer {homes[event.id][0]}"))
        elif at in all_of_it.empty or at in all_of_it.dropped:
            faults.append(Fault(Edit.CHANGED, event.name))
            all_of_it.empty.discard(at)
            all_of_it.dropped.discard(at)
        else:
            faults.append(Fault(Edit.INSERTED, event.name))
    return faults + list(_gone(all_of_it.empty, all_of_it.last))


def _homes(keys: Ring, misfits: Iterable[Event], vacant: Iterable[Place]) -> dict[int, Place]:
    """By the event's id, the empty place of another customer that it fits: at the same place of the trail first."""
    by_seq: dict[int, list[Place]] = {}
    for place in sorted(vacant):
        by_seq.setdefault(place[1], []).append(place)
    near = sorted(vacant)[:NEAR]
    homes: dict[int, Place] = {}
    tries = 0
    for event in misfits:
        for customer, seq in (*by_seq.get(event.seq or 0, ()), *near):
            tries += 1
            if tries > PAIRS:
                return homes
            if customer != event.customer and is_genuine(keys, event._replace(customer=customer, seq=seq)):
                homes[event.id] = customer, seq
                break
    return homes


def _gone(empty: set[Place], last: dict[int, int]) -> Iterator[Fault]:
    by_customer: dict[int, list[int]] = {}
    for customer, place in sorted(empty):
        by_customer.setdefault(customer, []).append(place)
    for customer, places in by_customer.items():
        end = last[customer]
        if not end:
            yield Fault(Edit.TRAIL_REMOVED, f"customer {customer}: all {len(places)} events")
            continue
        for edit, some in (
            (Edit.DELETED, [place for place in places if place < end]),
            (Edit.CUT_OFF, [place for place in places if place > end]),
        ):
            if some:
                yield Fault(edit, f"customer {customer}, places {spans(some)}")


def spans(places: Sequence[int]) -> str:
    """1-3, 7"""
    found: list[list[int]] = []
    for place in places:
        if found and place == found[-1][1] + 1:
            found[-1][1] = place
        else:
            found.append([place, place])
    return ", ".join(str(one) if one == two else f"{one}-{two}" for one, two in found)
