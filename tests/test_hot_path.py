"""A context read is one statement: it decides as the pure rule does, notes exactly what it tells, and carries the customer."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries, Settings

from memory_portal import store
from memory_portal.enums import ActorKind, FactState, Origin
from memory_portal.models import Customer, FactRead, MemoryFact
from memory_portal.store import desk, recall, serving, shelf
from memory_portal.store.types import Told
from tests.conftest import NOW
from tests.figures import Figure

pytestmark = pytest.mark.django_db

AGENT = store.Actor(ActorKind.AGENT, "7", "Helper")
CATEGORIES = ["safety", "constraint", "preference", "context"]
SOON = NOW + timedelta(days=30)

MOMENTS = st.sampled_from(
    [
        NOW - timedelta(days=40),
        NOW - timedelta(days=3),
        NOW - timedelta(days=3, microseconds=-1),
        NOW,
        NOW + timedelta(days=1),
        NOW + timedelta(days=1, microseconds=1),
        NOW + timedelta(days=900),
    ]
)
ENDS = st.none() | st.sampled_from([NOW, NOW - timedelta(seconds=1), NOW + timedelta(microseconds=1), SOON])
FACTS = st.lists(
    st.fixed_dictionaries(
        {
            "category": st.sampled_from(CATEGORIES),
            "state": st.sampled_from([FactState.ACTIVE] * 4 + [FactState.FROZEN]),
            "updated_at": st.none() | MOMENTS,
            "expires_at": ENDS,
            "value": st.integers(1, 200).map("é".__mul__),
        }
    ),
    max_size=14,
)
SOME = st.frozensets(st.sampled_from(CATEGORIES), max_size=2)
CHOICES = st.fixed_dictionaries(
    {
        "no_use_categories": SOME.map(sorted),
        "no_use_agents": st.sampled_from([[], [], [], ["Nosy"], ["Helper"]]),
        "using_paused_at": st.sampled_from([None, None, None, NOW]),
    }
)


def customer(facts: Sequence[dict[str, object]] = (), **choices: object) -> store.Subject:
    subject = store.Subject(uuid.uuid4().hex, "airline")
    row = Customer.objects.create(
        profile="airline", subject_id=subject.subject_id, created_at=NOW, version=3, **choices
    )
    MemoryFact.objects.bulk_create(
        MemoryFact(
            customer=row, key=f"fact_{number}", said_at=NOW, origin="agent", created_at=NOW, topics=["a"], **fact  # type: ignore[misc]
        )
        for number, fact in enumerate(facts)
    )  # fmt: skip
    return subject


def slowly(subject: store.Subject, hidden: frozenset[str], now: datetime) -> store.Recall:
    """The pure rule over the whole shelf."""
    held = shelf.shelf(subject, now=now)
    assert held is not None
    return serving._told(held, AGENT.name, "", now=now, hidden=hidden)


FULL = [{"category": "constraint", "state": "active", "updated_at": NOW, "expires_at": None, "value": "x"}] * 8
LONG = [{"category": "safety", "state": "active", "updated_at": NOW, "expires_at": None, "value": "é" * 200}] * 14


@settings(max_examples=150, deadline=None, database=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(FACTS, CHOICES, SOME, st.integers(0, 9), st.sampled_from([200, 700, 1_500, 4_000]))
@example(FULL, {}, frozenset(), 8, 4_000)
@example(LONG, {}, frozenset(), 9, 4_000)
def test_the_statement_decides_and_notes_as_the_pure_rule_does(
    facts: list[dict[str, object]], choices: dict[str, object], hidden: frozenset[str], cap: int, budget: int
) -> None:
    policy = desk.current_policy()
    limits = policy.limits.model_copy(update={"tier_one_cap": cap, "tier_one_chars": budget})
    with pytest.MonkeyPatch.context() as patch, transaction.atomic():
        patch.setattr(serving, "current_policy", lambda: policy.model_copy(update={"limits": limits}))
        subject = customer(facts, **choices)
        expected = slowly(subject, hidden, NOW)
        told = store.context(subject, AGENT, now=NOW, hidden=hidden, session="tag")
        assert (told.always, told.relevant, told.dropped) == (expected.always, (), expected.dropped)
        assert told.version == expected.version == 3
        ends = [fact.expires_at for fact in told.always if fact.expires_at]
        assert told.until in (min(ends, default=None), expected.until)
        assert store.preview(subject, AGENT.name, "", now=NOW, hidden=hidden) == told
        read = FactRead.objects.get(customer__subject_id=subject.subject_id)
        assert sorted(read.fact_ids) == sorted(fact.id for fact in told.always)
        assert (read.at, read.agent, read.key_id, read.layer, read.source_session_id) == (NOW, "Helper", 7, 1, "tag")


def test_a_context_is_one_round_trip_with_its_note(
    figure: Figure, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    """However many facts there are below the cap of rules."""
    for number in (0, 1, 20, 200):
        fact = {"category": "preference", "updated_at": NOW, "value": "likes the aisle"}
        subject = customer([fact] * number)
        with django_assert_num_queries(1):
            told = store.context(subject, AGENT, now=NOW)
        assert len(told.always) == min(number, 8)
        assert len(FactRead.objects.get(customer__subject_id=subject.subject_id).fact_ids) == len(told.always)
    stranger = store.Subject("nobody", "airline")
    with django_assert_num_queries(1):
        assert store.context(stranger, AGENT, now=NOW) == store.Recall(())
    assert FactRead.objects.count() == 4
    figure(
        "R9", "4 context reads of 0 to 200 facts: 4 notes, each in its read's one round trip; 0 for an unknown customer"
    )


def test_what_is_told_has_the_types_that_facts_have() -> None:
    subject = customer([{"category": "preference", "updated_at": NOW, "expires_at": SOON, "value": "likes the aisle"}])
    (told,) = store.context(subject, AGENT, now=NOW).always
    held = shelf.shelf(subject, now=NOW)
    assert held is not None
    same = Told.of(held.facts[0])
    assert told == same
    assert [type(value) for value in told] == [type(value) for value in same]


def test_with_memory_off_nothing_is_asked_and_nothing_noted(
    settings: Settings, tmp_path: Path, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    subject = customer([{"category": "preference", "updated_at": NOW, "value": "likes the aisle"}])
    text = settings.MEMORY_POLICY.read_text().replace("memory = true", "memory = false")
    settings.MEMORY_POLICY = tmp_path / "off.toml"
    settings.MEMORY_POLICY.write_text(text)
    with django_assert_num_queries(0):
        assert store.context(subject, AGENT, now=NOW) == store.Recall(())
        assert store.preview(subject, AGENT.name, "", now=NOW) == store.Recall(())


# --- facts can be spread by customer ----------------------------------------------------------------------------------

FACT_TABLES = (
    "memory_portal_memoryfact",
    "memory_portal_factread",
    "memory_portal_factevent",
    "memory_portal_factrevision",
)


def test_every_statement_of_the_hot_path_names_the_customer(figure: Figure) -> None:
    """So that a database that spreads facts by customer sends each of them to one place."""
    subject = customer([{"category": "preference", "updated_at": NOW, "value": "likes the aisle"}] * 3)
    with CaptureQueriesContext(connection) as seen:
        store.context(subject, AGENT, now=NOW)
        store.context(subject, AGENT, now=NOW, message="an aisle seat?")
        store.preview(subject, AGENT.name, "", now=NOW)
        store.lookup(subject, "aisle", AGENT, now=NOW)
        store.page(subject, AGENT, now=NOW)
        store.look(subject, "fact_1", AGENT, now=NOW)
        store.version_of(subject)
    statements = [query["sql"] for query in seen.captured_queries]
    for statement in statements:
        by_name = "profile = " in statement and "subject_id = " in statement
        assert by_name or re.search(r"INTO memory_portal_factread \(customer_id", statement), statement
        for joined in re.findall(r"memory_portal_memoryfact AS (\w+)", statement):
            assert f"{joined}.customer_id = " in statement
    figure("R9", f"{len(statements)} statements of seven reads: each names its customer")


def test_a_write_is_four_statements_and_each_names_the_customer() -> None:
    """The lock, what is held, the fact with its former version, the event with where the trail ends."""
    subject = customer([{"category": "preference", "updated_at": NOW, "value": "likes the aisle"}] * 3)
    found = store.find(subject)
    assert found is not None
    draft = store.draft(
        key="fact_1", value="likes the window", category="preference", origin=Origin.EXTRACTION, said_at=NOW, now=NOW,
        source_quote="the window, please", agent=AGENT.name,
    )  # fmt: skip
    with CaptureQueriesContext(connection) as seen:
        (outcome,) = store.submit(subject, [draft], store.Actor(ActorKind.JOB, "1"), now=NOW)
    assert outcome.decision == "updated"
    statements = [query["sql"] for query in seen.captured_queries if "SAVEPOINT" not in query["sql"]]
    assert len(statements) == 4
    for statement in statements:
        by_name = "profile = " in statement and "subject_id = " in statement
        assert by_name or f"customer_id = {found.pk}" in statement or f"SELECT {found.pk}," in statement, statement


def test_the_numbers_in_the_statement_are_the_rules_own() -> None:
    assert f"+ {recall.RECORD_CHARS})" in shelf.LAYER
    assert f"category = '{recall.SAFETY}'" in shelf.LAYER


def test_a_customer_is_found_by_name_along_the_index_of_names(figure: Figure) -> None:
    """Of names PostgreSQL keeps no statistics; walking all customers by number would pass for cheap."""
    many = [Customer(profile="airline", subject_id=f"many-{number}", created_at=NOW) for number in range(3_000)]
    Customer.objects.bulk_create(many, batch_size=500)
    subject = store.Subject("many-2999", "airline")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memory_portal_customer, memory_portal_memoryfact")
    with CaptureQueriesContext(connection) as seen:
        store.find(subject)
        store.submit(subject, [], AGENT, now=NOW)
        store.context(subject, AGENT, now=NOW)
        store.lookup(subject, "aisle", AGENT, now=NOW)
        store.version_of(subject)
        store.attach_email(subject, "many@example.org")
    asked = [
        query["sql"]
        for query in seen.captured_queries
        if 'subject_id" = ' in query["sql"] or "subject_id = " in query["sql"]
    ]
    for statement in asked:
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN " + statement)
            plan = "\n".join(row[0] for row in cursor.fetchall())
        assert "one_customer_per_subject" in plan, plan
        assert "customer_pkey" not in plan, plan
        assert "Seq Scan on memory_portal_customer" not in plan, plan
    assert len(asked) >= 6
    figure(
        "R9",
        f"{len(asked)} statements that name a customer, 3,000 customers without statistics: each by the index of names",
    )


def test_the_statement_is_prepared_and_planned_once() -> None:
    subject = customer([{"category": "preference", "updated_at": NOW, "value": "likes the aisle"}])
    for _ in range(12):
        store.context(subject, AGENT, now=NOW)
    with connection.cursor() as cursor:
        cursor.execute("SELECT generic_plans FROM pg_prepared_statements WHERE statement LIKE %s", ["%noted AS (%"])
        plans = [row[0] for row in cursor.fetchall()]
    assert sum(plans) >= 5, plans


def test_a_list_of_words_is_written_as_postgresql_reads_it() -> None:
    words = frozenset({"safety", 'with "quotes"', "back\\slash", "comma, brace }", ""})
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::text[], %s::text[]", [shelf._array(words), shelf._array(frozenset())])
        some, none = cursor.fetchone()
    assert (set(some), none) == (words, [])
