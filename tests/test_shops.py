"""One mailbox that several shops know: a person goes from one memory to the other, and nobody else does."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from memory_portal.sessions import BEGAN
from tests.people import Person, person
from tests.test_second_step import code_for, signs_in, switched_on

pytestmark = pytest.mark.django_db

EMAIL = "alice@example.org"


@pytest.fixture(autouse=True)
def fresh_limits() -> None:
    cache.clear()


@pytest.fixture
def flyer(alice: Person) -> Person:
    """Alice again, as the airline knows her."""
    flying = person("alice-flies", profile="airline", email=EMAIL)
    flying.fact("seat", "By the window")
    alice.fact("coffee", "Dark roast")
    return flying


def goes(client: Client, who: Person) -> Any:
    return client.post(reverse("go_to_shop", args=[who.pk]))


def test_after_the_code_the_choice_is_offered_and_each_shop_shows_its_own(alice: Person, flyer: Person) -> None:
    client, answer = signs_in(alice)
    assert answer.headers["Location"] == reverse("shops")
    page = client.get(reverse("shops")).content.decode()
    assert page.count('action="/shops/') == 1
    assert goes(client, flyer).headers["Location"] == "/"
    there = client.get("/").content.decode()
    assert "By the window" in there
    assert "Dark roast" not in there
    assert goes(client, alice).headers["Location"] == "/"
    assert "Dark roast" in client.get("/").content.decode()


def test_who_is_known_to_one_shop_goes_straight_in(alice: Person) -> None:
    _, answer = signs_in(alice)
    assert answer.headers["Location"] == "/"


def test_a_second_step_of_the_other_shop_is_asked_for(alice: Person, flyer: Person) -> None:
    secret = switched_on(flyer)
    client, _ = signs_in(alice)
    assert goes(client, flyer).headers["Location"] == reverse("mfa_authenticate")
    assert client.get("/").status_code == 302, "neither here nor there"
    client.post(reverse("mfa_authenticate"), {"code": code_for(secret, 1)})
    assert "By the window" in client.get("/").content.decode()


@pytest.mark.parametrize("method", ["handoff", "mfa"])
def test_a_session_that_proved_no_mailbox_goes_nowhere(alice: Person, flyer: Person, method: str) -> None:
    alice.proves(method=method)
    assert 'action="/shops/' not in alice.sees(reverse("shops"))
    assert goes(alice.client, flyer).status_code == 404
    assert "Dark roast" in alice.sees()


def test_nobody_goes_to_a_customer_of_another_address(alice: Person, bob: Person, flyer: Person) -> None:
    alice.proves()
    before = goes(alice.client, bob)
    assert (
        before.status_code
        == goes(alice.client, Person(type(bob.customer)(pk=bob.pk + 999), bob.client)).status_code
        == 404
    )
    bob.customer.email = alice.customer.email = ""
    bob.customer.save()
    alice.customer.save()
    assert goes(alice.client, bob).status_code == 404, "no address is nobody's address"


def test_going_to_and_fro_does_not_lengthen_a_sign_in(alice: Person, flyer: Person) -> None:
    client, _ = signs_in(alice)
    began = client.session[BEGAN]
    key = client.session.session_key
    goes(client, flyer)
    assert client.session[BEGAN] == began
    assert client.session.session_key != key
