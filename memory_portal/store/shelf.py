"""The hottest path as raw SQL: everything one agent's read needs in one statement, and the note of the read in another.

In: a Subject and the time. Out: a Shelf, frozen, or None for a customer nobody knows. Measured: the ORM costs three times as
much here. Column names are those of memory_portal.models; a test compares both ways. Imports types only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from memory_portal.enums import FactState, Origin
from memory_portal.store.types import Actor, Fact, Subject

READ = """
SELECT c.id, c.version, c.using_paused_at IS NOT NULL, c.no_use_categories, c.no_use_agents,
    f.id, f.key, f.value, f.category, f.origin, f.state, f.version, f.created_at, f.updated_at, f.said_at,
    f.expires_at, f.review_at, f.source_session_id, f.source_quote, f.agent, f.topics, f.locked,
    CASE WHEN %s THEN f.vector END
FROM memory_portal_customer AS c
LEFT JOIN memory_portal_memoryfact AS f
    ON f.customer_id = c.id AND f.state = 'active' AND (f.expires_at IS NULL OR f.expires_at > %s)
WHERE c.profile = %s AND c.subject_id = %s
ORDER BY f.id
"""
ORIGINS = {origin.value: origin for origin in Origin}
STATES = {state.value: state for state in FactState}
NOTE = """
INSERT INTO memory_portal_factread (customer_id, at, agent, key_id, layer, source_session_id, fact_ids)
VALUES (%s, %s, %s, %s, %s, %s, %s)
"""


@dataclass(frozen=True, slots=True)
class Shelf:
    """One customer as an agent's read finds them: the switches that govern using, and the facts in use, oldest first."""

    customer_id: int
    version: int
    using_paused: bool
    no_use_categories: Sequence[str]
    no_use_agents: Sequence[str]
    facts: tuple[Fact, ...]
    vectors: Mapping[int, bytes]
    """By the fact's id, where they were asked for. They stay in here: no Fact carries one out."""

    def served(self, agent: str, hidden: Collection[str] = ()) -> list[Fact]:
        """What this agent may be given; `hidden` are the categories its key may not read."""
        if self.using_paused or agent in self.no_use_agents:
            return []
        off = {*self.no_use_categories, *hidden}
        return [fact for fact in self.facts if fact.category not in off]


def shelf(subject: Subject, *, now: datetime, vectors: bool = False) -> Shelf | None:
    with connection.cursor() as cursor:
        cursor.execute(READ, (vectors, now, subject.profile, subject.subject_id))
        rows = cursor.fetchall()
    if not rows:
        return None
    pk, version, paused, categories, agents = rows[0][:5]
    facts = tuple(_fact(row[5:-1]) for row in rows if row[5] is not None)
    meant = {row[5]: bytes(row[-1]) for row in rows if row[-1] is not None}
    return Shelf(pk, version, paused, categories, agents, facts, meant)


def _fact(row: Sequence[Any]) -> Fact:
    """A row in the order of Fact's own fields."""
    fields = list(row)
    fields[4], fields[5], fields[15] = ORIGINS[fields[4]], STATES[fields[5]], tuple(fields[15])
    return Fact(*fields)


def note(shelf: Shelf, actor: Actor, read: Sequence[Fact], *, layer: int, session: str, now: datetime) -> None:
    """One row a read: who was handed what, and when. The customer sees it."""
    key_id = int(actor.id) if actor.id.isdigit() else None
    values = (shelf.customer_id, now, actor.name, key_id, layer, session, [fact.id for fact in read])
    with connection.cursor() as cursor:
        cursor.execute(NOTE, values)
