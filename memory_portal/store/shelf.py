"""The hottest path as raw SQL: layer 1 with the note of its reading in one statement, or the whole shelf and then the note.

In: a Subject, the agent and the time. Out: a Layer or a Shelf, frozen, or None for a customer nobody knows. Measured: the ORM
costs three times as much here. Column names are those of memory_portal.models; tests compare both ways, and LAYER with the pure
rule of recall.py. Every statement names the customer, so that facts can be spread by customer, and that they need no wall before
them. Imports types, recall and wall only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.db import connection
from django.db.backends.utils import CursorWrapper
from psycopg.pq import Format

from memory_portal.enums import FactState, Origin
from memory_portal.store import recall, wall
from memory_portal.store.types import Actor, Fact, Subject, Told

READ = """
SELECT c.id, c.version, c.using_paused_at IS NOT NULL, c.no_use_categories, c.no_use_agents,
    f.id, f.key, f.value, f.category, f.origin, f.state, f.version, f.created_at, f.updated_at, f.said_at,
    f.expires_at, f.review_at, f.source_session_id, f.source_quote, f.agent, f.topics, f.locked,
    CASE WHEN %s THEN f.vector END
FROM (SELECT * FROM memory_portal_customer WHERE profile = %s AND subject_id = %s LIMIT 1) AS c
LEFT JOIN memory_portal_memoryfact AS f
    ON f.customer_id = c.id AND f.state = 'active' AND (f.expires_at IS NULL OR f.expires_at > %s)
ORDER BY f.id
"""
VERSION = "SELECT version FROM memory_portal_customer WHERE profile = %s AND subject_id = %s LIMIT 1"
# LIMIT 1 is for the planner: of names it has no statistics, so it would expect many customers, and look for them the long way.

# recall.always as SQL, for customers with fewer facts of the first layer's own categories than the cap and within the budget:
# whether that is so is `whole`. Then nothing was left out, and the ids can be noted in the same round trip. 90 is RECORD_CHARS.
LAYER = """
WITH who AS MATERIALIZED (
    SELECT id, version, no_use_categories, using_paused_at IS NULL AND %s::text <> ALL (no_use_agents) AS used
    FROM memory_portal_customer WHERE profile = %s AND subject_id = %s LIMIT 1
), told AS MATERIALIZED (
    SELECT f.id, f.key, f.value, f.category, f.origin, f.version, f.said_at, f.updated_at, f.expires_at, f.source_session_id,
        CASE WHEN f.category = 'safety' THEN 0 WHEN f.category = ANY (%s::text[]) THEN 1 ELSE 2 END AS urgency
    FROM who JOIN memory_portal_memoryfact AS f ON f.customer_id = who.id
    WHERE who.used AND f.state = 'active' AND (f.expires_at IS NULL OR f.expires_at > %s)
        AND f.category <> ALL (who.no_use_categories) AND f.category <> ALL (%s::text[])
    ORDER BY urgency, CASE WHEN f.updated_at <= %s THEN f.updated_at ELSE '-infinity' END DESC, f.id DESC
    LIMIT %s
), sums AS MATERIALIZED (
    SELECT coalesce(array_agg(id), '{}') AS ids, count(*) FILTER (WHERE urgency < 2) < %s
        AND coalesce(sum(length(key) + length(value) + 90), 0) <= %s AS whole
    FROM told
)"""
NOTED = """, noted AS (
    INSERT INTO memory_portal_factread (customer_id, at, agent, key_id, layer, source_session_id, fact_ids)
    SELECT who.id, %s, %s, %s, 1, %s, sums.ids FROM who CROSS JOIN sums WHERE sums.whole
)"""
OUT = """
SELECT who.version, sums.whole, told.* FROM who CROSS JOIN sums LEFT JOIN told ON true
"""
JUST_READ, READ_AND_NOTE = LAYER + OUT, LAYER + NOTED + OUT
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


@dataclass(frozen=True, slots=True)
class Layer:
    """Layer 1 as an agent is told it, in recall's order, and the version of the customer that it is of."""

    version: int
    told: tuple[Told, ...]


def layer(
    subject: Subject,
    agent: str,
    *,
    now: datetime,
    hidden: Collection[str],
    layer_one: Collection[str],
    cap: int,
    budget: int,
    reader: Actor | None = None,
    session: str = "",
) -> tuple[bool, Layer | None]:
    """Layer 1 in one round trip, noted as a read where there is a `reader`. False where it takes the whole shelf to tell."""
    values: tuple[Any, ...] = (
        agent, subject.profile, subject.subject_id, _array(frozenset(layer_one)), now, _array(frozenset(hidden)),
        now + recall.SKEW, cap, cap, budget,
    )  # fmt: skip
    if reader:
        values += (now, reader.name, _key_id(reader), session)
    with connection.cursor() as cursor:
        _binary(cursor)
        cursor.execute(wall.door(READ_AND_NOTE if reader else JUST_READ), values)
        rows = cursor.fetchall()
    if not rows:
        return True, None
    version, whole, first, *_ = rows[0]
    if not whole:
        return False, None
    if first is None:
        return True, Layer(version, ())
    rows.sort(key=lambda row: (row[12], row[2]))
    return True, Layer(version, tuple(Told._make((*row[2:6], ORIGINS[row[6]], *row[7:12])) for row in rows))


def version(subject: Subject) -> int:
    """0 for a customer nobody knows."""
    with connection.cursor() as cursor:
        cursor.execute(wall.door(VERSION), (subject.profile, subject.subject_id))
        row = cursor.fetchone()
    return row[0] if row else 0


def shelf(subject: Subject, *, now: datetime, vectors: bool = False) -> Shelf | None:
    with connection.cursor() as cursor:
        _binary(cursor)
        cursor.execute(wall.door(READ), (vectors, subject.profile, subject.subject_id, now))
        rows = cursor.fetchall()
    if not rows:
        return None
    pk, version, paused, categories, agents = rows[0][:5]
    facts = tuple(_fact(row[5:-1]) for row in rows if row[5] is not None)
    meant = {row[5]: bytes(row[-1]) for row in rows if row[-1] is not None}
    return Shelf(pk, version, paused, categories, agents, facts, meant)


@lru_cache(maxsize=64)
def _array(words: frozenset[str]) -> str:
    """As PostgreSQL writes a list of them. There are few such lists, and psycopg would write each anew at every read."""
    quoted = (word.replace("\\", "\\\\").replace('"', '\\"') for word in sorted(words))
    return "{" + ",".join(f'"{word}"' for word in quoted) + "}"


def _binary(cursor: CursorWrapper) -> None:
    """Rows in PostgreSQL's own form: times out of text are most of what a read costs this process."""
    cursor.cursor.format = Format.BINARY


def _fact(row: Sequence[Any]) -> Fact:
    """A row in the order of Fact's own fields."""
    fields = list(row)
    fields[4], fields[5], fields[15] = ORIGINS[fields[4]], STATES[fields[5]], tuple(fields[15])
    return Fact(*fields)


def note(shelf: Shelf, actor: Actor, read: Sequence[Fact | Told], *, layer: int, session: str, now: datetime) -> None:
    """One row a read: who was handed what, and when. The customer sees it."""
    values = (shelf.customer_id, now, actor.name, _key_id(actor), layer, session, [fact.id for fact in read])
    with connection.cursor() as cursor:
        cursor.execute(wall.door(NOTE), values)


def raise_wall() -> None:
    """The role that requests are answered as, and this room's statements as functions that it may call."""
    wall.build((READ, VERSION, JUST_READ, READ_AND_NOTE, NOTE))


def _key_id(actor: Actor) -> int | None:
    return int(actor.id) if actor.id.isdigit() else None
