"""What a writer finds: the customer's row, locked, then all that a decision may depend on, in two statements and no more.

In: a Subject or a customer's id, the time. Out: the model's own instances and a Held. As raw SQL, since every write begins with it
and the ORM's seven queries cost three times as much; the columns are taken from the models, so that none can be forgotten. The two
can't be one: what is read along with the lock would be as it was before the wait for it. Imports models and types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection, models
from psycopg.pq import Format

from memory_portal.enums import FactState, Origin, TombstoneReason
from memory_portal.models import Customer, MemoryFact
from memory_portal.store.types import Buried, Fact, Held, Subject

Row = TypeVar("Row", bound=models.Model)


def _columns(model: type[models.Model], but: str = "") -> list[str]:
    return [field.attname for field in model._meta.concrete_fields if field.attname != but]


CUSTOMER = _columns(Customer)
FACT = _columns(MemoryFact, but="vector")
"""What a fact means to SEMANTIC is written with it and decides on nothing."""
ID, EXPIRES = FACT.index("id"), FACT.index("expires_at")
NAMES = [field.name for field in fields(Fact)]
PICK = itemgetter(*(FACT.index(name) for name in NAMES))
ORIGIN, STATE, TOPICS = NAMES.index("origin"), NAMES.index("state"), NAMES.index("topics")

LOCK = f"SELECT {', '.join(CUSTOMER)} FROM memory_portal_customer WHERE id = %s FOR UPDATE"  # noqa: S608  # names of columns
# The order is for the planner: of names it has no statistics, and by number it would look at all customers.
LOCK_BY_NAME = f"""
SELECT {", ".join(CUSTOMER)} FROM memory_portal_customer WHERE profile = %s AND subject_id = %s
ORDER BY profile, subject_id LIMIT 1 FOR UPDATE
"""  # noqa: S608
# With both ends of the day PostgreSQL looks into one month of events.
HELD = f"""
SELECT
    (SELECT coalesce(array_agg(purpose), '{{}}') FROM memory_portal_consent
        WHERE customer_id = %(customer)s AND withdrawn_at IS NULL),
    (SELECT count(*) FROM memory_portal_factevent WHERE customer_id = %(customer)s AND at >= %(day)s AND at < %(next_day)s
        AND kind IN ('learned', 'added') AND actor_kind <> 'customer'),
    EXISTS (SELECT FROM memory_portal_tombstone WHERE customer_id = %(customer)s),
    EXISTS (SELECT FROM memory_portal_proposal WHERE customer_id = %(customer)s),
    {", ".join(f"f.{name}" for name in FACT)}
FROM (SELECT) AS one LEFT JOIN memory_portal_memoryfact AS f ON f.customer_id = %(customer)s
ORDER BY f.id
"""  # noqa: S608
ASIDE = 4
"""So many columns stand before the fact's own."""


class Rows(Mapping[int, MemoryFact]):
    """The facts by id. Each becomes an instance when it is asked for: most writes concern one of many."""

    def __init__(self, found: dict[int, Any]) -> None:
        self._found = found

    def __getitem__(self, pk: int) -> MemoryFact:
        row = self._found[pk]
        if not isinstance(row, MemoryFact):
            row = self._found[pk] = _made(MemoryFact, FACT, row)
        return row

    def __iter__(self) -> Iterator[int]:
        return iter(list(self._found))

    def __len__(self) -> int:
        return len(self._found)

    def put(self, row: MemoryFact) -> None:
        self._found[row.pk] = row

    def drop(self, pks: Iterable[int]) -> None:
        for pk in pks:
            self._found.pop(pk, None)


@dataclass(frozen=True, slots=True)
class Holdings:
    held: Held
    rows: Rows
    ended: list[MemoryFact]
    """What reached its end and is still there."""
    asked: bool
    """Whether any question waits, ended or not."""


def lock(customer: int | Subject) -> Customer | None:
    """The row, locked to the end of the transaction, as it is once nobody else holds it."""
    named = None if isinstance(customer, int) else (customer.profile, customer.subject_id)
    rows = _fetch(LOCK_BY_NAME, named) if named else _fetch(LOCK, (customer,))
    return _made(Customer, CUSTOMER, rows[0]) if rows else None


def load(customer: Customer, now: datetime) -> Holdings:
    """Of a customer whose row the caller has locked. `now` is UTC."""
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    found = _fetch(HELD, {"customer": customer.pk, "day": day, "next_day": day + timedelta(days=1)})
    purposes, new_today, buried, asked = found[0][:ASIDE]
    live: dict[int, Any] = {}
    ended: list[MemoryFact] = []
    for row in found:
        values = row[ASIDE:]
        if values[ID] is None:  # no fact at all
            continue
        if values[EXPIRES] is not None and values[EXPIRES] <= now:
            ended.append(_made(MemoryFact, FACT, values))
        else:
            live[values[ID]] = values
    held = Held(
        facts=tuple(map(_fact, live.values())),
        buried=_buried(customer) if buried else (),
        learning_paused=customer.learning_paused_at is not None,
        off_categories=frozenset(customer.no_learn_categories),
        off_agents=frozenset(customer.no_learn_agents),
        never_words=tuple(customer.never_words),
        consents=frozenset(purposes),
        region=customer.region,
        new_today=new_today,
        cleared_at=customer.cleared_at,
    )
    return Holdings(held, Rows(live), ended, asked)


def _buried(customer: Customer) -> tuple[Buried, ...]:
    return tuple(
        Buried(
            key=stone.key,
            value_mac=stone.value_mac,
            watermark=stone.watermark,
            quote_mac=stone.quote_mac,
            session=stone.source_session_id,
            dismissed=stone.reason == TombstoneReason.DISMISSED,
        )
        for stone in customer.tombstones.order_by("pk")
    )


def snapshot(row: MemoryFact) -> Fact:
    return _fact([getattr(row, name) for name in FACT])


def _fact(values: Sequence[Any]) -> Fact:
    """A row's columns as the store hands them out."""
    said = list(PICK(values))
    said[ORIGIN], said[STATE], said[TOPICS] = Origin(said[ORIGIN]), FactState(said[STATE]), tuple(said[TOPICS])
    return Fact(*said)


def _fetch(statement: str, values: Any) -> list[Sequence[Any]]:
    with connection.cursor() as cursor:
        cursor.cursor.format = Format.BINARY  # times out of text are most of what reading costs this process
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def _made(model: type[Row], names: Sequence[str], values: Sequence[Any]) -> Row:
    """As the ORM makes one of a row it read."""
    return model.from_db(DEFAULT_DB_ALIAS, names, values)
