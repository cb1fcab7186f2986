"""One customer at a time: the row locked, everything of theirs loaded, their events, and how facts are erased.

In: a Subject or a customer's id, an Actor, the time. Out: a Desk, on which the writing rooms (orm, acts) work. Every writer
comes here first, so that no two decisions about one person overlap. Imports models and the pure rooms.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.db import connection, transaction
from django.dispatch import Signal

from memory_portal.enums import (
    ActorKind,
    EventKind,
    Noted,
    TombstoneReason,
)
from memory_portal.models import (
    Customer,
    MemoryFact,
    Proposal,
    Tombstone,
)
from memory_portal.store import holdings, ledger, trail, wall
from memory_portal.store import policy as rules
from memory_portal.store.errors import Conflict, NotFound
from memory_portal.store.holdings import Rows, snapshot
from memory_portal.store.sanitise import value_form
from memory_portal.store.types import (
    Actor,
    Fact,
    Held,
    Receipt,
    Subject,
)
from memory_portal.store.words import forget_texts

withdrawn = Signal()
"""Sent inside the transaction when the customer takes back what work in flight may rest on.

Arguments: `customer_id`; `what`, one of "cleared", "learning_paused", "forgotten", "erased"; `texts`, the values and quotes just
erased; `now`. Receivers cancel waiting jobs and blank those texts, and return how many jobs they discarded.
"""


CLOCK = Actor(ActorKind.SYSTEM)


STONE_TEXT = b"memory-portal tombstone v1"

BY_NAME = ("profile", "subject_id")
"""In which order a customer is looked up: of names PostgreSQL keeps no statistics, and by number it would look at all."""


def current_policy() -> rules.Policy:
    return _policy(str(settings.MEMORY_POLICY))


@lru_cache(maxsize=8)
def _policy(path: str) -> rules.Policy:
    return rules.read(Path(path))


@dataclass
class Desk:
    """One customer's row, locked, with what was loaded of it: the only thing the writing functions below work on."""

    customer: Customer
    actor: Actor
    now: datetime
    held: Held
    rows: Rows
    asked: bool = True
    """Whether there may be questions that wait for the customer."""
    touched: bool = False
    unwritten: list[trail.Event] = field(default_factory=list)
    """Events of this transaction that stand in the trail already, and in the table after `enter`."""
    ended: Counter[str] = field(default_factory=Counter)
    """What had reached its end by itself and was erased on the way in, by table."""

    def mac(self, text: str) -> str:
        return self.macs(text)[0]

    def macs(self, text: str) -> list[str]:
        return value_macs(self.customer, text)

    def event(
        self,
        kind: EventKind,
        *,
        fact_id: int | None = None,
        key: str = "",
        category: str = "",
        code: str = "",
        agent: str = "",
        actor: Actor | None = None,
    ) -> None:
        actor = actor or self.actor
        self.touched = True
        happened = trail.follow(
            self.customer,
            at=self.now,
            kind=kind,
            fact_id=fact_id,
            key=key,
            category=category,
            code=code or actor.purpose,
            actor_kind=actor.kind,
            actor_id=actor.id,
            agent=agent or (actor.name if actor.kind in (ActorKind.AGENT, ActorKind.JOB) else actor.role),
        )
        self.unwritten.append(happened)

    def enter(self) -> None:
        """Write the events, with where they leave the trail and the version that agents' caches hang on."""
        if self.unwritten:
            self.customer.version += self.touched
            trail.enter(self.customer, self.unwritten)
        self.unwritten, self.touched = [], False

    def row(self, fact_id: int, version: int | None = None) -> MemoryFact:
        """The fact, if it is this customer's, alive and (where `version` is given) unchanged since it was read."""
        row = self.rows.get(fact_id)
        if row is None:
            raise NotFound
        if version is not None and row.version != version:
            raise Conflict(snapshot(row))
        return row

    def keep(self, row: MemoryFact) -> Fact:
        """Remember in the loaded picture what was just written."""
        fact = snapshot(row)
        others = tuple(held for held in self.held.facts if held.id != fact.id)
        self.rows.put(row)
        self.held = replace(self.held, facts=tuple(sorted((*others, fact), key=lambda held: held.id)))
        return fact

    def drop(self, fact_ids: Iterable[int]) -> None:
        gone = set(fact_ids)
        self.rows.drop(gone)
        self.held = replace(self.held, facts=tuple(fact for fact in self.held.facts if fact.id not in gone))


@contextmanager
def locked(customer: Subject | int, actor: Actor, now: datetime, *, create: bool = False) -> Iterator[Desk]:
    """The customer's row locked for one transaction. Raises NotFound for an unknown one unless `create` is set."""
    now = now.astimezone(UTC)  # whose day everybody's limits are counted in
    with transaction.atomic():
        row = _lock(customer, now, create=create)
        found = holdings.load(row, now)
        desk = Desk(row, actor, now, found.held, found.rows, asked=found.asked)
        _erase_ended(desk, found.ended)
        yield desk
        desk.enter()


def _lock(customer: Subject | int, now: datetime, *, create: bool) -> Customer:
    if isinstance(customer, int):
        wall.only(customer)
        row = holdings.lock(customer)
    else:
        with wall.everyone("the host names whom it means"):
            row = holdings.lock(customer)
            if row is None and create:
                # ON CONFLICT DO NOTHING: two first requests at once make one customer, and no error text carries the id.
                new = Customer(profile=customer.profile, subject_id=customer.subject_id, created_at=now)
                Customer.objects.bulk_create([new], ignore_conflicts=True)
                row = holdings.lock(customer)
    if row is None:
        raise NotFound
    wall.only(row.pk)
    return row


def _erase_ended(desk: Desk, over: Sequence[MemoryFact]) -> None:
    """What has reached its end is gone, whether the sweeper came by or not: it must not stand in a new fact's way."""
    for row in over:
        desk.event(EventKind.EXPIRED, fact_id=row.pk, key=row.key, category=row.category, actor=CLOCK)
    if over:
        erase_rows(desk, over, from_jobs=False)  # A conversation that waits may say it anew.
    unanswered = list(desk.customer.proposals.filter(expires_at__lte=desk.now)) if desk.asked else []
    for asked in unanswered:
        desk.event(EventKind.PROPOSAL_EXPIRED, fact_id=asked.fact_id, key=asked.key, code=asked.reason, actor=CLOCK)
        asked.delete()
    desk.ended.update(facts=len(over), proposals=len(unanswered))


@lru_cache(maxsize=4096)
def _stone_key(secret: str, salt: bytes) -> bytes:
    """Per customer, so that the same value leaves different marks with two people and no dictionary helps."""
    return hmac.digest(secret.encode(), STONE_TEXT + salt, "sha256")


def value_macs(customer: Customer, text: str) -> list[str]:
    """128 bits of HMAC-SHA-256 over the normalised text, in hex: recognises a value again, reveals nothing of it.

    The first is under today's key and the one to write; the others recognise what was written under former keys.
    """
    form, salt = value_form(text).encode(), bytes(customer.salt)
    secrets = (settings.TOMBSTONE_KEY, *settings.TOMBSTONE_KEY_FALLBACKS)
    return [hmac.new(_stone_key(secret, salt), form, hashlib.sha256).hexdigest()[:32] for secret in secrets]


def forget_rows(desk: Desk, rows: Sequence[MemoryFact], kind: EventKind, *, agent: str = "") -> Receipt:
    bury(desk, rows, TombstoneReason.FORGOTTEN)
    for row in rows:
        desk.event(kind, fact_id=row.pk, key=row.key, category=row.category, agent=agent)
    ledger.note(desk.customer, Noted.FORGOTTEN, desk.now, fact_ids=[row.pk for row in rows])
    return erase_rows(desk, rows)


def bury(desk: Desk, rows: Sequence[MemoryFact | Proposal], reason: TombstoneReason) -> None:
    stones = [
        Tombstone(
            customer=desk.customer,
            key=row.key,
            value_mac=desk.mac(row.value),
            reason=reason,
            quote_mac=desk.mac(row.source_quote) if row.source_quote else "",
            source_session_id=row.source_session_id,
            watermark=desk.now,
        )
        for row in rows
    ]
    Tombstone.objects.bulk_create(
        stones,
        update_conflicts=True,
        unique_fields=["customer", "key", "value_mac", "reason"],
        update_fields=["quote_mac", "source_session_id", "watermark"],
    )


ERASE = """
WITH former AS (
    DELETE FROM memory_portal_factrevision WHERE fact_id = ANY(%(ids)s) RETURNING value, source_quote
), asked AS (
    DELETE FROM memory_portal_proposal WHERE customer_id = %(customer)s AND (fact_id = ANY(%(ids)s) OR key = ANY(%(keys)s))
    RETURNING value, source_quote
), gone AS (
    DELETE FROM memory_portal_memoryfact WHERE customer_id = %(customer)s AND id = ANY(%(ids)s)
)
SELECT 'revisions', value, source_quote FROM former UNION ALL SELECT 'proposals', value, source_quote FROM asked
"""


def erase_rows(desk: Desk, rows: Sequence[MemoryFact], *, from_jobs: bool = True) -> Receipt:
    """Remove facts and every copy: versions, quotes, questions about the same key, and their text in waiting jobs."""
    ids, keys = [row.pk for row in rows], [row.key for row in rows]
    copies: list[tuple[str, str, str]] = []
    if ids:
        with connection.cursor() as cursor:
            cursor.execute(ERASE, {"customer": desk.customer.pk, "ids": ids, "keys": keys})
            copies = cursor.fetchall()
    transaction.on_commit(forget_texts)
    desk.drop(ids)
    if from_jobs:
        said = [text for row in rows for text in (row.value, row.source_quote)]
        blank(desk, [*said, *(text for _, *texts in copies for text in texts)])
    found = Counter(table for table, *_ in copies)
    counts = {"facts": len(ids), "revisions": found["revisions"], "proposals": found["proposals"]}
    return Receipt(counts, tombstones=len(ids))


def blank(desk: Desk, said: Iterable[str]) -> None:
    """Have these values and quotes blanked in conversations that still wait to be read."""
    texts = list(dict.fromkeys(filter(None, said)))
    withdrawn.send(sender=Customer, customer_id=desk.customer.pk, what="forgotten", texts=texts, now=desk.now)


def withdraw(desk: Desk, what: str) -> int:
    answers = withdrawn.send(sender=Customer, customer_id=desk.customer.pk, what=what, texts=[], now=desk.now)
    return sum(int(count or 0) for _receiver, count in answers)


def find(subject: Subject) -> Customer | None:
    with wall.everyone("the host names whom it means"):
        row = Customer.objects.filter(profile=subject.profile, subject_id=subject.subject_id).order_by(*BY_NAME).first()
    if row is not None:
        wall.only(row.pk)
    return row
