"""The raw read of an agent sees what the ORM sees, field by field, and leaves out what is not in use."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta

import pytest

from memory_portal import store
from memory_portal.enums import ActorKind, FreezeReason, Origin
from memory_portal.models import FactRead, MemoryFact
from memory_portal.store import shelf as shelves
from tests.conftest import NOW

pytestmark = pytest.mark.django_db

ALICE, BOB = store.Subject("alice", "airline"), store.Subject("bob", "airline")
CUSTOMER = store.Actor(ActorKind.CUSTOMER)


def remember(key: str, category: str = "preference", subject: store.Subject = ALICE) -> store.Fact:
    draft = store.draft(
        key=key,
        value=f"the value of {key}",
        category=category,
        origin=Origin.CUSTOMER,
        said_at=NOW,
        now=NOW,
        source_quote="the words",
        session_id="s-1",
        agent="Helper",
        topics=["travel", "seat"],
    )
    fact = store.add(subject, draft, CUSTOMER, now=NOW).fact
    assert fact is not None
    return fact


def test_both_ways_of_reading_agree_in_every_field() -> None:
    for key, category in (("seat", "preference"), ("flight", "constraint"), ("home", "context")):
        remember(key, category)
    remember("seat", subject=BOB)
    shelf, customer = shelves.shelf(ALICE, now=NOW), store.find(ALICE)
    assert shelf is not None
    assert customer is not None
    slow = store.facts(customer, now=NOW)
    assert list(shelf.facts) == slow
    for one, other in zip(shelf.facts, slow, strict=True):
        assert [type(getattr(one, f.name)) for f in fields(one)] == [type(getattr(other, f.name)) for f in fields(one)]
    assert (shelf.customer_id, shelf.version) == (customer.pk, customer.version)


def test_frozen_and_expired_facts_are_not_on_the_shelf() -> None:
    frozen, expired, kept = (remember(key) for key in ("frozen", "expired", "kept"))
    customer = store.find(ALICE)
    assert customer is not None
    store.freeze(customer.pk, frozen.id, FreezeReason.WRONG, CUSTOMER, now=NOW)
    MemoryFact.objects.filter(pk=expired.id).update(expires_at=NOW)
    shelf = shelves.shelf(ALICE, now=NOW)
    assert shelf is not None
    assert [fact.id for fact in shelf.facts] == [kept.id]
    earlier = shelves.shelf(ALICE, now=NOW - timedelta(microseconds=1))
    assert earlier is not None
    assert [fact.id for fact in earlier.facts] == [expired.id, kept.id]


def test_a_customer_without_facts_has_an_empty_shelf_and_a_stranger_none() -> None:
    store.submit(ALICE, [], CUSTOMER, now=NOW)
    shelf = shelves.shelf(ALICE, now=NOW)
    assert shelf is not None
    assert shelf.facts == ()
    assert shelves.shelf(BOB, now=NOW) is None


def test_the_customers_switches_empty_it() -> None:
    remember("seat")
    remember("flight", "constraint")
    customer = store.find(ALICE)
    assert customer is not None
    store.choose(customer.pk, {"no_use_categories": ["constraint"], "no_use_agents": ["Nosy"]}, CUSTOMER, now=NOW)
    shelf = shelves.shelf(ALICE, now=NOW)
    assert shelf is not None
    assert [fact.key for fact in shelf.served("Helper")] == ["seat"]
    assert shelf.served("Helper", hidden={"preference"}) == []
    assert shelf.served("Nosy") == []
    store.pause(customer.pk, "using", CUSTOMER, now=NOW)
    paused = shelves.shelf(ALICE, now=NOW)
    assert paused is not None
    assert paused.served("Helper") == []


def test_the_note_says_who_was_handed_what() -> None:
    fact = remember("seat")
    shelf = shelves.shelf(ALICE, now=NOW)
    assert shelf is not None
    shelves.note(shelf, store.Actor(ActorKind.AGENT, "7", "Helper"), [fact], layer=1, session="abc", now=NOW)
    shelves.note(shelf, store.Actor(ActorKind.AGENT, name="Helper"), [], layer=3, session="", now=NOW)
    first, second = FactRead.objects.order_by("pk")
    assert (first.customer_id, first.at, first.agent, first.key_id) == (shelf.customer_id, NOW, "Helper", 7)
    assert (first.layer, first.source_session_id, first.fact_ids) == (1, "abc", [fact.id])
    assert (second.key_id, second.fact_ids) == (None, [])
