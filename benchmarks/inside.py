"""Contestants that call a store in their own process: the limit (psycopg by hand), and this product's own functions."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

Act = Callable[[int], object]

# --- the limit: SQL by hand, prepared, on one kept connection ---------------------------------------------------------

READ = """
SELECT f.id, f.key, f.value, f.category, f.updated_at FROM memory_portal_memoryfact AS f
WHERE f.customer_id = (SELECT id FROM memory_portal_customer WHERE profile = %s AND subject_id = %s LIMIT 1)
"""
SEARCH = READ + " AND f.value ILIKE %s LIMIT 8"
UPSERT = """
INSERT INTO bench_fact AS b (customer_id, key, value, category, updated_at) VALUES (%s, %s, %s, 'preference', now())
ON CONFLICT (customer_id, key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at
"""


def raw_connection(settings: Mapping[str, Any]) -> Any:
    import psycopg

    connection = psycopg.connect(settings["url"], autocommit=True)
    connection.prepare_threshold = 1
    return connection


def raw_read(settings: Mapping[str, Any]) -> Act:
    connection, profile = raw_connection(settings), settings["profile"]

    def read(number: int) -> object:
        with connection.cursor() as cursor:
            rows = cursor.execute(READ, (profile, f"c{number}")).fetchall()
        first = [row for row in rows if row[3] == "constraint"]
        rest = sorted((row for row in rows if row[3] != "constraint"), key=lambda row: row[4], reverse=True)
        return (first + rest)[: max(8, len(first))]

    return read


NOTED = """
WITH told AS (
    SELECT f.customer_id AS customer, f.id, f.key, f.value, f.category, f.updated_at FROM memory_portal_memoryfact AS f
    WHERE f.customer_id = (SELECT id FROM memory_portal_customer WHERE profile = %s AND subject_id = %s LIMIT 1)
    ORDER BY f.category = 'constraint' DESC, f.updated_at DESC LIMIT 8
), noted AS (
    INSERT INTO bench_note (customer_id, at, agent, key_id, layer, source_session_id, fact_ids)
    SELECT min(customer), now(), 'bench', 7, 1, '', array_agg(id) FROM told
)
SELECT id, key, value, category, updated_at FROM told
"""


def raw_read_and_note(settings: Mapping[str, Any]) -> Act:
    connection, profile = raw_connection(settings), settings["profile"]

    def read(number: int) -> object:
        with connection.cursor() as cursor:
            return cursor.execute(NOTED, (profile, f"c{number}")).fetchall()

    return read


def raw_search(settings: Mapping[str, Any]) -> Act:
    connection, profile = raw_connection(settings), settings["profile"]

    def search(number: int) -> object:
        with connection.cursor() as cursor:
            return cursor.execute(SEARCH, (profile, f"c{number}", "%v7 %")).fetchall()

    return search


def raw_upsert(settings: Mapping[str, Any]) -> Act:
    connection, turn = raw_connection(settings), itertools.count()

    def upsert(number: int) -> object:
        with connection.cursor() as cursor:
            cursor.execute(UPSERT, (number, f"fact_{number % 20}", f"a new value, the {next(turn)}th of its kind"))
        return None

    return upsert


# What ours writes for one upsert, and reads to decide on it, with no decision made.
LOCK = "SELECT * FROM memory_portal_customer WHERE profile = %s AND subject_id = %s LIMIT 1 FOR UPDATE"
HOLDS = "SELECT * FROM memory_portal_memoryfact WHERE customer_id = %s"
OVER = """
WITH former AS (
    INSERT INTO memory_portal_factrevision (fact_id, version, value, category, source_quote, origin, said_at, replaced_at)
    SELECT id, version, value, category, source_quote, origin, said_at, now() FROM memory_portal_memoryfact
    WHERE customer_id = %(customer)s AND key = %(key)s
)
UPDATE memory_portal_memoryfact SET value = %(value)s, updated_at = now(), version = version + 1
WHERE customer_id = %(customer)s AND key = %(key)s
"""
TELL = """
WITH told AS (
    INSERT INTO memory_portal_factevent (customer_id, at, kind, key, code, actor_kind, actor_id, agent)
    VALUES (%(customer)s, now(), 'updated', %(key)s, '', 'job', '1', 'bench')
)
UPDATE memory_portal_customer SET version = version + 1 WHERE id = %(customer)s
"""


def raw_upsert_with_its_trail(settings: Mapping[str, Any]) -> Act:
    connection, profile, turn = raw_connection(settings), settings["profile"], itertools.count()

    def upsert(number: int) -> object:
        with connection.transaction(), connection.cursor() as cursor:
            (customer, *_) = cursor.execute(LOCK, (profile, f"c{number}")).fetchone()
            cursor.execute(HOLDS, (customer,)).fetchall()
            said = {"customer": customer, "key": f"fact_{2 + number % 18}", "value": f"a new value, the {next(turn)}th"}
            cursor.execute(OVER, said)
            cursor.execute(TELL, said)
        return None

    return upsert


def raw_clear(settings: Mapping[str, Any]) -> Act:
    connection = raw_connection(settings)

    def clear(number: int) -> object:
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM bench_fact WHERE customer_id = %s", (number,))
        return None

    return clear


# --- ours ---------------------------------------------------------------------------------------------------------------


def ours() -> Any:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory_portal.settings")
    import django

    django.setup()
    from memory_portal import store
    from memory_portal.enums import ActorKind

    store.warm()
    return store, store.Actor(ActorKind.AGENT, "7", "bench")


def now() -> Any:
    from django.utils import timezone

    return timezone.now()


def our_context(settings: Mapping[str, Any]) -> Act:
    store, actor = ours()
    return lambda number: store.context(store.Subject(f"c{number}", settings["profile"]), actor, now=now())


def our_context_of_the_fullest(settings: Mapping[str, Any]) -> Act:
    store, actor = ours()
    return lambda number: store.context(store.Subject(settings["who"], settings["profile"]), actor, now=now())


def our_context_without_note(settings: Mapping[str, Any]) -> Act:
    store, actor = ours()
    return lambda number: store.preview(store.Subject(f"c{number}", settings["profile"]), actor.name, "", now=now())


def our_context_for_a_message(settings: Mapping[str, Any]) -> Act:
    store, actor = ours()
    return lambda number: store.context(
        store.Subject(f"c{number}", settings["profile"]), actor, now=now(), message="which seat for the next travel?"
    )


def our_search(settings: Mapping[str, Any]) -> Act:
    store, actor = ours()
    return lambda number: store.lookup(
        store.Subject(f"c{number}", settings["profile"]), "travel seat", actor, now=now(), limit=8
    )


def our_search_again(settings: Mapping[str, Any]) -> Act:
    """Of fifty customers who are being talked to, whose facts were read into words before."""
    search = our_search(settings)
    return lambda number: search(1 + number % 50)


def our_upsert(settings: Mapping[str, Any]) -> Act:
    store, _ = ours()
    from memory_portal.enums import ActorKind, Origin

    job, turn, dice = store.Actor(ActorKind.JOB, "1", "bench"), itertools.count(), random.Random(os.getpid())

    def upsert(number: int) -> object:
        at = now()
        draft = store.draft(
            key=f"fact_{2 + number % 18}", value=f"likes the {next(turn)}th of {dice.randrange(10**9)} kinds", category="preference",
            origin=Origin.EXTRACTION, said_at=at, now=at, source_quote="the words of the customer", session_id="s-1", agent="bench",
        )  # fmt: skip
        outcome = store.submit(store.Subject(f"c{number}", settings["profile"]), [draft], job, now=at)[0]
        assert outcome.fact, outcome
        return outcome

    return upsert


def our_clear(settings: Mapping[str, Any]) -> Act:
    store, _ = ours()
    from memory_portal.enums import ActorKind

    customer = store.Actor(ActorKind.CUSTOMER)
    return lambda number: store.clear(store.Subject(f"x{number}", settings["profile"]), customer, now=now())


def our_export(settings: Mapping[str, Any]) -> Act:
    store, _ = ours()
    held = store.find(store.Subject("full1", settings["profile"]))
    return lambda number: store.everything_kept(held.pk)


def our_job(settings: Mapping[str, Any]) -> Act:
    """A conversation of two turns from its row to its facts, by the extractor that asks nobody."""
    os.environ["EXTRACTOR"] = "explicit"
    store, _ = ours()
    from agent_bridge import jobs, reading
    from agent_bridge.extraction import Turn
    from agent_bridge.models import AgentKey

    key = AgentKey.objects.get(name="bench")

    def job(number: int) -> object:
        at = now()
        turns = [Turn("user", f"Please remember that I like tea number {number}.", at), Turn("assistant", "Noted.", at)]
        held = jobs.submit(
            store.Subject(f"j{number}", settings["profile"]),
            key,
            turns,
            session_id=f"s{number}",
            now=at,
            debounce=timedelta(0),
        )
        return reading.run(str(held.pk))

    return job


# --- Django's ORM, as one would write it first -------------------------------------------------------------------------


def orm_read(settings: Mapping[str, Any]) -> Act:
    ours()
    from memory_portal.models import Customer, MemoryFact

    def read(number: int) -> object:
        customer = Customer.objects.get(profile=settings["profile"], subject_id=f"c{number}")
        rows = list(MemoryFact.objects.filter(customer=customer))
        first = [row for row in rows if row.category == "constraint"]
        rest = sorted(
            (row for row in rows if row.category != "constraint"), key=lambda row: row.updated_at, reverse=True
        )
        return (first + rest)[:8]

    return read
