"""Closing the account: everything about the customer goes at once, nobody else's does, and a receipt says so honestly."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memory_portal import store
from memory_portal.enums import ActorKind
from memory_portal.models import (
    Consent,
    Customer,
    FactEvent,
    FactRead,
    FactRevision,
    MemoryFact,
    Proposal,
    Ticket,
    Tombstone,
)
from tests.people import BACKEND, Person

TYPED = {"sure": "close my account"}


@pytest.fixture
def full(alice: Person) -> Person:
    alice.agrees()
    fact = alice.fact("coffee", "Dark roast")
    alice.post(
        reverse("correct", args=[fact.id]), {"value": "Light", "category": "preference", "version": fact.version}
    )
    alice.says("coffee", "Medium roast", ago=0)
    gone = alice.fact("tea", "Green tea")
    alice.post(reverse("forget", args=[gone.id]))
    alice.is_read_by("helper")
    store.issue_ticket(alice.pk, "export", now=timezone.now())
    now = timezone.now()
    apps.get_model("agent_bridge.ExtractionJob")._default_manager.create(
        customer=alice.customer, agent="helper", profile="grocery", generation=0, run_after=now, created_at=now,
        turns=[{"role": "user", "text": "I like Rooibos"}],
    )  # fmt: skip
    return alice


def closed(who: Person, django_capture_on_commit_callbacks: Any) -> Any:
    who.proves()
    with django_capture_on_commit_callbacks(execute=True):
        return who.post(reverse("close"), TYPED)


def test_everything_about_the_customer_is_gone(
    full: Person, bob: Person, django_capture_on_commit_callbacks: Any
) -> None:
    bob.fact("coffee", "Decaf")
    bob.is_read_by("helper")
    answer = closed(full, django_capture_on_commit_callbacks)
    assert answer.headers["Location"] == "/closed"
    assert list(Customer.objects.values_list("subject_id", flat=True)) == ["bob"]
    assert list(get_user_model().objects.values_list("email", flat=True)) == ["bob@example.org"]
    for table in (
        MemoryFact,
        Proposal,
        Tombstone,
        Consent,
        FactRead,
        Ticket,
        apps.get_model("agent_bridge.ExtractionJob"),
    ):
        assert not table._default_manager.filter(customer=full.pk).exists(), table  # type: ignore[attr-defined]
    assert not FactRevision.objects.exists()
    assert bob.held == {"coffee": "Decaf"}
    assert FactRead.objects.count() == 1


def test_events_stay_under_a_number_that_leads_to_nobody(full: Person, django_capture_on_commit_callbacks: Any) -> None:
    before = FactEvent.objects.filter(customer=full.pk).count()
    closed(full, django_capture_on_commit_callbacks)
    left = FactEvent.objects.filter(customer=full.pk)
    assert left.count() == before + 1
    assert left.latest("pk").kind == "cleared"
    assert "alice" not in str(list(left.values()))


def test_the_person_is_signed_out_everywhere(full: Person, django_capture_on_commit_callbacks: Any) -> None:
    other = Client()
    user = get_user_model().objects.get(email="alice@example.org")
    other.force_login(user, backend=BACKEND)
    closed(full, django_capture_on_commit_callbacks)
    assert full.get("/").headers["Location"].startswith("/sign-in/")
    assert other.get("/").headers["Location"].startswith("/sign-in/")
    kept = [session.get_decoded() for session in Session.objects.all()]
    assert not [session for session in kept if session.get("_auth_user_id") == str(user.pk)]
    assert "alice@example.org" not in str(kept)


def test_the_receipt_says_what_went_and_what_stays(full: Person, django_capture_on_commit_callbacks: Any) -> None:
    closed(full, django_capture_on_commit_callbacks)
    page = full.sees("/closed")
    for line in (
        "1 erased",
        "1 erased, and every quote",
        "1 discarded unread",
        "Names and times stay",
        "within 35 days",
    ):
        assert line in page, line
    assert "coffee" not in page.lower()
    assert 'class="wrap tabs"' not in page, "nobody is signed in"


def test_there_is_no_receipt_for_who_closed_nothing(db: None) -> None:
    assert Client().get("/closed").headers["Location"] == "/sign-in/"


@pytest.mark.parametrize("typed", ["", "close", "forget everything", "\0"])
def test_without_the_words_nothing_is_closed(alice: Person, typed: str) -> None:
    alice.proves()
    answer = alice.post(reverse("close"), {"sure": typed})
    assert answer.status_code == 422
    assert "Nothing has been erased." in answer.content.decode() or "Null characters" in answer.content.decode()
    assert Customer.objects.count() == 1


def test_nothing_comes_back_from_work_that_was_under_way(full: Person, django_capture_on_commit_callbacks: Any) -> None:
    closed(full, django_capture_on_commit_callbacks)
    with pytest.raises(store.NotFound):
        full.says("rooibos", "Likes Rooibos")
    assert Customer.objects.count() == 0


def test_a_customer_without_a_sign_in_can_be_erased(db: None) -> None:
    subject = store.Subject("dana", "grocery")
    now = timezone.now()
    store.submit(subject, [], store.Actor(ActorKind.SYSTEM), now=now)
    dana = Customer.objects.get()
    store.erase(dana.pk, store.Actor(ActorKind.CUSTOMER, str(dana.pk)), now=now)
    assert not Customer.objects.exists()
    with pytest.raises(store.NotFound):
        store.erase(dana.pk, store.Actor(ActorKind.CUSTOMER), now=now)


@pytest.mark.parametrize("kind", [ActorKind.AGENT, ActorKind.JOB, ActorKind.STAFF, ActorKind.SYSTEM])
def test_only_the_customer_closes_their_memory(alice: Person, kind: ActorKind) -> None:
    with pytest.raises(store.MemoryWriteRejected):
        store.erase(alice.pk, store.Actor(kind, "1"), now=timezone.now())
    assert Customer.objects.count() == 1
