"""Suggestions: what waits for the customer's decision, why, and what becomes of it."""

from __future__ import annotations

from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from memory_portal import store
from memory_portal.enums import ActorKind, ChangeAction, Origin
from memory_portal.models import Proposal, Tombstone
from tests.people import HTMX, Person


def text(response: Any) -> str:
    return unescape(response.content.decode())


def asked(who: Person, key: str = "phone_calls", value: str = "Any time after eight", **more: Any) -> int:
    """The customer wrote it, then said something else: a suggestion waits."""
    who.writes(key, "Not before ten", "constraint")
    outcome = who.says(key, value, category="constraint", ago=0, **more)
    assert outcome.proposal_id, outcome
    return outcome.proposal_id


def test_a_suggestion_shows_both_versions_the_words_and_the_reason(alice: Person) -> None:
    asked(alice, quote="You can ring me from eight now")
    page = unescape(alice.sees(reverse("suggestions")))
    for shown in (
        "Phone calls",
        "Any time after eight",
        "You wrote: “Not before ten”",
        "You can ring me from eight now",
        "Why we ask:",
        "It differs from what you wrote yourself.",
        "Goes away by itself on",
    ):
        assert shown in page, shown
    assert "1 suggestion waits for your answer" in alice.sees()


def test_keeping_it_makes_it_a_fact_and_empties_the_badge(alice: Person) -> None:
    proposal = asked(alice)
    answer = alice.post(reverse("keep_suggestion", args=[proposal]), htmx=True)
    assert answer.status_code == 200
    assert b"<html" not in answer.content
    assert "Kept." in text(answer)
    assert 'id="waiting" hx-swap-oob="true"></span>' in text(answer)
    assert alice.held == {"phone_calls": "Any time after eight"}
    assert not Proposal.objects.exists()


def test_keeping_and_dismissing_work_without_javascript(alice: Person) -> None:
    proposal = asked(alice)
    assert alice.post(reverse("dismiss_suggestion", args=[proposal])).headers["Location"] == reverse("suggestions")
    assert "Dismissed and erased." in unescape(alice.sees(reverse("suggestions")))
    proposal = asked(alice, "bread", "Rye")
    assert alice.post(reverse("keep_suggestion", args=[proposal])).status_code == 302
    assert alice.held["bread"] == "Rye"


def test_dismissed_words_are_erased_and_not_suggested_again(alice: Person) -> None:
    proposal = asked(alice)
    answer = alice.post(reverse("dismiss_suggestion", args=[proposal]), htmx=True)
    assert "Dismissed and erased." in text(answer)
    assert alice.held == {"phone_calls": "Not before ten"}
    assert not Proposal.objects.exists()
    assert Tombstone.objects.exists()
    assert alice.says("phone_calls", "Any time after eight", category="constraint", ago=0).decision == "refused"


def test_it_can_be_reworded_and_then_kept(alice: Person) -> None:
    proposal = asked(alice)
    form = alice.get(reverse("keep_suggestion", args=[proposal]), htmx=True)
    assert "Any time after eight</textarea>" in text(form)
    assert "<html" in alice.sees(reverse("keep_suggestion", args=[proposal]))
    alice.post(reverse("keep_suggestion", args=[proposal]), {"value": "From half past eight"}, htmx=True)
    assert alice.held == {"phone_calls": "From half past eight"}
    assert store.facts(alice.pk, now=timezone.now())[0].origin is Origin.CUSTOMER


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("x" * 201, "at most 200"),
        ("", "Please write something"),
        ("\0", "Null characters"),
        ("x" * 9000, "at most 200"),
    ],
)
def test_unusable_rewording_is_a_form_error_and_keeps_the_suggestion(alice: Person, value: str, says: str) -> None:
    proposal = asked(alice)
    answer = alice.post(reverse("keep_suggestion", args=[proposal]), {"value": value}, htmx=True)
    assert answer.status_code == 422
    assert says in text(answer)
    assert Proposal.objects.count() == 1


def test_health_waits_for_consent_and_one_button_gives_it_and_keeps(alice: Person) -> None:
    outcome = alice.says("food_allergy", "Allergic to peanuts", category="safety", ago=0)
    assert outcome.decision == "proposed"
    page = unescape(alice.sees(reverse("suggestions")))
    assert "Agree and keep" in page
    assert "may keep what I said about my health" in page
    keep = reverse("keep_suggestion", args=[outcome.proposal_id])
    refused = alice.post(keep, htmx=True)
    assert refused.status_code == 422
    assert store.consent(alice.pk) is None, "without the wording's yes nothing is agreed"
    alice.post(keep, {"consent": "on"}, htmx=True)
    assert alice.held == {"food_allergy": "Allergic to peanuts"}
    agreed = store.consent(alice.pk)
    assert agreed
    assert agreed.text_version == store.current_policy().consent.text_version


def test_a_suggestion_to_forget_is_asked_as_one(alice: Person) -> None:
    alice.agrees()
    alice.fact("food_allergy", "Peanuts", category="safety")
    now = timezone.now()
    draft = store.Draft(
        key="food_allergy", value="", category="safety", origin=Origin.AGENT, said_at=now, action=ChangeAction.FORGET
    )
    store.submit(alice.pk, [draft], store.Actor(ActorKind.AGENT, "1", "helper"), now=now)
    page = unescape(alice.sees(reverse("suggestions")))
    assert "Yes, forget it" in page
    assert "Kept now: “Peanuts”" in page
    alice.post(reverse("keep_suggestion", args=[Proposal.objects.get().pk]), htmx=True)
    assert alice.held == {}


def test_what_has_run_out_is_gone_from_the_page_and_cannot_be_kept(alice: Person) -> None:
    proposal = asked(alice)
    Proposal.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert "Any time after eight" not in alice.sees(reverse("suggestions"))
    assert alice.post(reverse("keep_suggestion", args=[proposal])).status_code == 404


@pytest.mark.parametrize("name", ["suggestion", "keep_suggestion", "dismiss_suggestion"])
def test_another_customers_suggestion_is_not_there(alice: Person, bob: Person, name: str) -> None:
    theirs = asked(bob)
    for proposal in (theirs, theirs + 1000, 10**30):
        path = reverse(name, args=[proposal])
        if name != "suggestion":
            assert alice.post(path).status_code == 404
            assert alice.post(path, htmx=True).status_code == 404
        if name != "dismiss_suggestion":
            assert alice.get(path, htmx=True).status_code == 404
    assert Proposal.objects.count() == 1
    assert "Any time after eight" not in alice.sees(reverse("suggestions"))


def test_dismissing_is_no_link_and_needs_a_sign_in(alice: Person) -> None:
    proposal = asked(alice)
    path = reverse("dismiss_suggestion", args=[proposal])
    assert alice.get(path).status_code == 405
    assert Client().post(path, headers=HTMX).headers["HX-Redirect"].startswith("/sign-in/")
    assert Proposal.objects.count() == 1


@pytest.mark.parametrize("count", [1, 3])
def test_the_page_makes_the_same_queries_for_any_number(
    alice: Person, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for n in range(count):
        asked(alice, f"thing_{n}", ["Rye bread", "Oat milk", "Dark roast"][n])
    with django_assert_num_queries(5):
        alice.sees(reverse("suggestions"))
