"""Sign-in with the company's own account: its claim is the customer's id, and makes no second customer of anybody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.test import Client

from memory_portal.models import Customer
from tests.people import Person
from tests.provider import Provider, proves_the_challenge, query

GO, BACK = "/sign-in/company/go", "/sign-in/company/back"


@pytest.fixture(autouse=True)
def fresh_limits() -> None:
    cache.clear()


@pytest.fixture
def provider(settings: Any, db: None) -> Iterator[Provider]:
    with Provider() as running:
        settings.OIDC_ISSUER = running.issuer
        settings.OIDC_PROFILE = "grocery"
        app = {
            "provider_id": "company",
            "name": "company",
            "client_id": "portal",
            "secret": "client secret",
            "settings": {
                "server_url": running.issuer,
                "uid_field": "customer_number",
                "fetch_userinfo": False,
                "oauth_pkce_enabled": True,
                "scope": ["openid"],
            },
        }
        settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"APPS": [app]}}
        yield running


def comes_in(provider: Provider, client: Client | None = None, **claims: Any) -> tuple[Client, Any]:
    client = client or Client()
    provider.claims = {"sub": "s-1", **claims}
    sent = query(client.post(GO).headers["Location"])
    return client, client.get(BACK, {"code": "c", "state": sent["state"]})


def test_the_claim_names_the_customer_whom_the_host_knows(provider: Provider, alice: Person) -> None:
    alice.fact("coffee", "Dark roast")
    client, answer = comes_in(provider, customer_number="alice", email="somebody@else.example")
    assert answer.headers["Location"] == "/"
    assert "Dark roast" in client.get("/").content.decode()
    assert Customer.objects.count() == 1
    assert "You signed in" in client.get("/activity/").content.decode()
    alice.customer.refresh_from_db()
    assert alice.customer.email == "alice@example.org", "what else the provider says is kept nowhere"
    assert not SocialAccount.objects.exists()


def test_who_was_never_spoken_of_becomes_one_customer_and_stays_one(provider: Provider) -> None:
    for _ in range(3):
        client, _ = comes_in(provider, customer_number="carol")
        assert client.get("/").status_code == 200
    customer = Customer.objects.get()
    assert (customer.subject_id, customer.profile, customer.email) == ("carol", "grocery", "")
    assert get_user_model().objects.count() == 1


def test_the_way_out_carries_state_and_challenge_and_asks_for_no_more_than_needed(provider: Provider) -> None:
    client = Client()
    url = client.post(GO).headers["Location"]
    assert url.startswith(f"{provider.issuer}/authorize?")
    sent = query(url)
    assert sent["scope"] == "openid"
    assert sent["redirect_uri"] == "http://testserver/sign-in/company/back"
    assert sent["code_challenge_method"] == "S256"
    provider.claims = {"sub": "s", "customer_number": "carol"}
    client.get(BACK, {"code": "c", "state": sent["state"]})
    assert proves_the_challenge(provider.asked[-1], sent["code_challenge"])


def test_one_at_the_same_screen_takes_nothing_over_from_the_other(
    provider: Provider, alice: Person, bob: Person
) -> None:
    alice.fact("coffee", "Dark roast")
    bob.proves()
    _, answer = comes_in(provider, bob.client, customer_number="alice")
    assert answer.status_code == 302
    page = bob.client.get("/").content.decode()
    assert "Dark roast" in page
    assert "bob@example.org" not in page
    assert bob.client.get("/take/").status_code == 302, "what Bob proved does not count for Alice"


@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"customer_number": ""},
        {"customer_number": "x" * 129},
        {"customer_number": "a\u0000b"},
        {"customer_number": "alice", "aud": "another"},
        {"customer_number": "alice", "iss": "https://evil.example"},
        {"customer_number": "alice", "exp": 1},
    ],
)
def test_a_claim_that_names_nobody_signs_nobody_in(provider: Provider, alice: Person, claims: dict[str, Any]) -> None:
    client, answer = comes_in(provider, **claims)
    assert answer.status_code == 401
    assert "You are not signed in" in answer.content.decode()
    assert client.get("/").status_code == 302
    assert Customer.objects.count() == 1


def test_a_stranger_state_a_refusal_and_a_broken_provider_sign_nobody_in(provider: Provider, alice: Person) -> None:
    client = Client()
    sent = query(client.post(GO).headers["Location"])
    provider.claims = {"sub": "s", "customer_number": "alice"}
    assert Client().get(BACK, {"code": "c", "state": sent["state"]}).status_code == 401
    assert client.get(BACK, {"error": "access_denied", "state": sent["state"]}).status_code == 401
    assert client.get("/sign-in/not-done").status_code == 401
    provider.token_status = 500
    _, answer = comes_in(provider, client, customer_number="alice")
    assert answer.status_code == 401
    assert client.get("/").status_code == 302


def test_staff_do_not_come_in_this_way(provider: Provider, alice: Person) -> None:
    alice.customer.user.is_staff = True  # type: ignore[union-attr]
    alice.customer.user.save()  # type: ignore[union-attr]
    client, answer = comes_in(provider, customer_number="alice")
    assert answer.status_code == 401
    assert client.get("/admin/").status_code == 302


def test_without_a_provider_there_is_no_button_and_no_way(db: None) -> None:
    assert "With your" not in Client().get("/sign-in/").content.decode()
    assert Client().post(GO).status_code == 404
    assert Client().get(BACK).status_code == 404
    assert Client().get(GO).status_code == 405


def test_with_one_the_button_stands_on_the_sign_in_page(provider: Provider) -> None:
    page = Client().get("/sign-in/?next=/activity/").content.decode()
    assert "With your Memory Portal account" in page
    assert 'action="/sign-in/company/go"' in page


def test_a_provider_that_speaks_for_another_signs_nobody_in(provider: Provider, alice: Person) -> None:
    provider.named = "https://accounts.another.example"
    client, answer = comes_in(provider, customer_number="alice")
    assert answer.status_code == 401
    assert client.get("/").status_code == 302
