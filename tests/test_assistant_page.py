"""What an assistant would see: the customer reads what an agent would be told, by the code that tells it, and nobody notes it."""

from __future__ import annotations

import logging
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from agent_bridge import auth
from memory_portal import store
from memory_portal.models import FactEvent, FactRead
from memory_portal.store import types
from tests.people import Person

PAGE = "/assistant/"
ASKED = "Which desserts contain hazelnuts?"


def text(response: Any) -> str:
    return " ".join(unescape(response.content.decode()).split())


def asks(who: Person, message: str, agent: str = "", **more: Any) -> str:
    response = who.post(PAGE, {"message": message, "agent": agent}, **more)
    assert response.status_code == 200
    return text(response)


@pytest.fixture
def told(alice: Person) -> Person:
    """Alice, of whom more is known than fits into the first layer."""
    for number in range(store.current_policy().limits.tier_one_cap):
        alice.fact(f"album_{number}", f"Owns album number {number} of a jazz pianist")
    alice.fact("nuts", "Likes no hazelnuts in desserts", ago=300)
    return alice


@pytest.mark.parametrize("htmx", [True, False])
def test_the_fact_that_a_request_calls_for_is_shown_under_it(told: Person, htmx: bool) -> None:
    page = asks(told, ASKED, htmx=htmx)
    because, always = page.split("Whatever you ask")
    assert "Likes no hazelnuts in desserts" in because.split("Because of this request")[1]
    assert "Likes no hazelnuts in desserts" not in always.split("The exact text")[0]
    assert "jazz pianist" in always
    assert ("<html" in page) is not htmx


@pytest.mark.parametrize("message", [ASKED, "hello", ""])
def test_it_is_what_the_agent_gets_word_for_word(told: Person, message: str) -> None:
    _, key = auth.issue("recipe assistant", "grocery", (auth.READ, auth.READ_SAFETY), now=timezone.now())
    agent = Client(headers={"Authorization": f"Bearer {key}"})
    body = {"message": message, "format": "block"}
    answer = agent.post("/bridge/v1/subjects/alice/context", body, content_type="application/json")
    assert answer.status_code == 200
    page = unescape(told.post(PAGE, {"message": message, "agent": "recipe assistant"}).content.decode())
    assert page.split("<pre")[1].split(">", 1)[1].split("</pre>")[0] == answer.content.decode()


def test_before_anything_is_asked_it_shows_what_every_turn_sees(told: Person) -> None:
    page = text(told.get(PAGE))
    assert "Because of this request" not in page
    assert "It would be told 8 things about you." in page


def test_nothing_fits_is_an_answer(told: Person) -> None:
    assert "no other thing we remember seems to bear on this request" in asks(told, "hello")


def test_nothing_is_known_is_an_answer(alice: Person) -> None:
    page = asks(alice, ASKED)
    assert "It would be told nothing about you." in page
    assert "Nothing is remembered that an assistant may use." in page


def test_looking_leaves_no_trace(told: Person, caplog: pytest.LogCaptureFixture) -> None:
    reads, events = FactRead.objects.count(), FactEvent.objects.count()
    with caplog.at_level(logging.DEBUG):
        asks(told, "A marker zzyzx in my desserts")
    assert (FactRead.objects.count(), FactEvent.objects.count()) == (reads, events)
    assert [line for line in caplog.records if "zzyzx" in line.getMessage() and line.name != "django.db.backends"] == []
    assert told.client.session.get("message") is None


def test_paused_using_tells_no_assistant_anything(told: Person) -> None:
    told.post(reverse("pause_using"))
    page = asks(told, ASKED)
    assert "Nothing. You paused using" in page
    assert "hazelnuts in desserts" not in page


def test_an_assistant_that_was_switched_off_is_told_nothing_and_others_are(told: Person) -> None:
    told.is_read_by("recipe assistant")
    store.choose(told.pk, {"no_use_agents": ["recipe assistant"]}, told.actor, now=timezone.now())
    page = asks(told, ASKED, "recipe assistant")
    assert "Nothing. You switched this assistant off." in page
    assert "hazelnuts in desserts" not in page
    assert "hazelnuts in desserts" in asks(told, ASKED, "shopping assistant")


def test_a_kind_that_was_switched_off_is_not_told(told: Person) -> None:
    store.choose(told.pk, {"no_use_categories": ["preference"]}, told.actor, now=timezone.now())
    assert "It would be told nothing about you." in asks(told, ASKED)


def test_with_memory_off_nothing_is_told(told: Person, settings: Settings, tmp_path: Path) -> None:
    policy = Path(settings.MEMORY_POLICY).read_text("utf-8").replace("memory = true", "memory = false")
    settings.MEMORY_POLICY = tmp_path / "off.toml"
    settings.MEMORY_POLICY.write_text(policy, "utf-8")
    page = asks(told, ASKED)
    assert "Nothing. Memory is switched off here." in page
    assert "hazelnuts in desserts" not in page


def test_an_assistant_without_the_right_to_safety_notes_is_shown_none(alice: Person) -> None:
    alice.agrees()
    alice.writes("allergy", "Allergic to hazelnuts", types.SAFETY)
    for name, scopes in (("plain helper", (auth.READ,)), ("careful helper", (auth.READ, auth.READ_SAFETY))):
        auth.issue(name, "grocery", scopes, now=timezone.now())
    plain = asks(alice, ASKED, "plain helper")
    assert "This assistant is never shown what is important for your safety." in plain
    assert "Allergic to hazelnuts" not in plain
    assert "Allergic to hazelnuts" in asks(alice, ASKED, "careful helper")


def test_only_assistants_that_may_read_are_offered(alice: Person) -> None:
    now = timezone.now()
    auth.issue("listener", "grocery", (auth.TURNS,), now=now)
    auth.issue("stranger", "airline", auth.SCOPES, now=now)
    auth.issue("reader", "grocery", (auth.READ,), now=now)
    gone, _ = auth.issue("gone", "grocery", (auth.READ,), now=now)
    gone.revoked_at = now
    gone.save(update_fields=["revoked_at"])
    assert list(store.assistants(alice.customer, now)) == ["reader"]


def test_nobody_sees_what_another_customers_assistant_would_be_told(told: Person, bob: Person) -> None:
    assert "hazelnuts in desserts" not in asks(bob, ASKED)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"message": "x" * 8_001}, "Too long: a request has at most 8000 characters."),
        ({"message": "hi", "agent": "nobody I know"}, "is not one of the available choices"),
        ({"message": "a\0b"}, "Null characters are not allowed"),
    ],
)
@pytest.mark.parametrize("htmx", [True, False])
def test_what_cannot_be_asked_is_said(told: Person, data: dict[str, str], said: str, htmx: bool) -> None:
    response = told.post(PAGE, data, htmx=htmx)
    assert response.status_code == 422
    assert said in text(response)


def test_a_request_is_escaped_and_comes_back_in_its_box(alice: Person) -> None:
    page = alice.post(PAGE, {"message": "<script>alert(1)</script>"}).content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_strangers_are_sent_to_sign_in_and_other_methods_refused(alice: Person, client: Client) -> None:
    assert client.post(PAGE, {"message": "hi"}).status_code == 302
    assert alice.client.put(PAGE).status_code == 405
    assert alice.get(PAGE).headers["Cache-Control"] == "no-store"


def test_the_pages_lead_here(alice: Person) -> None:
    alice.fact("coffee", "Dark roast")
    for path in ("/", reverse("control")):
        assert f'href="{PAGE}"' in alice.sees(path)


@pytest.mark.parametrize("facts", [1, 3])
def test_the_number_of_queries_does_not_grow_with_the_facts(
    alice: Person, facts: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(facts):
        alice.fact(f"coffee_{number}", f"Dark roast number {number}", agent=f"helper {number}")
    with django_assert_num_queries(11):
        alice.post(PAGE, {"message": ASKED})
