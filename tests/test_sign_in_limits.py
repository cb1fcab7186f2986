"""Nobody learns who is known, nobody guesses for long, and nobody locks the owner out."""

from __future__ import annotations

import statistics
import time
from typing import Any

import pytest
from django.core import mail
from django.core.cache import cache
from django.test import Client

from tests.figures import Figure
from tests.people import Person, person


@pytest.fixture(autouse=True)
def fresh_limits() -> None:
    cache.clear()


def ask(email: str, place: str = "192.0.2.1") -> Any:
    return Client(REMOTE_ADDR=place).post("/sign-in/", {"email": email})


def slowed(answer: Any) -> bool:
    return answer.status_code != 302


def test_known_and_unknown_addresses_take_the_same_time(db: None, settings: Any, figure: Figure) -> None:
    settings.ACCOUNT_RATE_LIMITS = settings.ACCOUNT_RATE_LIMITS | {"request_login_code": "9999/h/ip"}
    known = [person(f"known{n}").customer.email for n in range(30)]
    took: dict[str, list[float]] = {"known": [], "unknown": []}
    ask("warm@example.org")
    for n, email in enumerate(known):
        for kind, address in (("known", email), ("unknown", f"nobody{n}@example.org")):
            began = time.perf_counter()
            ask(address, f"192.0.2.{n}")
            took[kind].append(time.perf_counter() - began)
    medians = {kind: statistics.median(times) * 1000 for kind, times in took.items()}
    assert len(mail.outbox) == 30
    assert abs(medians["known"] - medians["unknown"]) < 10
    figure("W10", f"asking for a code: known {medians['known']:.1f} ms, unknown {medians['unknown']:.1f} ms")


def test_one_place_asks_for_twenty_addresses_an_hour(db: None, figure: Figure) -> None:
    answers = [slowed(ask(f"nobody{n}@example.org")) for n in range(25)]
    assert answers == [False] * 20 + [True] * 5
    assert not slowed(ask("nobody@example.org", "198.51.100.7"))
    figure("W10", "one place: 20 of 25 tries an hour pass")


def test_ten_codes_an_hour_for_one_address_and_the_owner_still_gets_theirs(
    alice: Person, settings: Any, figure: Figure
) -> None:
    settings.ACCOUNT_RATE_LIMITS = settings.ACCOUNT_RATE_LIMITS | {
        "request_login_code": "9999/h/ip"
    }  # an hour in one go
    answers = [slowed(ask("alice@example.org")) for _ in range(12)]
    assert answers == [False] * 10 + [True] * 2
    assert not slowed(ask("alice@example.org", "198.51.100.7")), "from where she is"
    figure("W10", "one address from one place: 10 of 12 tries an hour pass; its owner, elsewhere, still gets a code")


def test_a_header_anyone_can_write_moves_nobody_to_another_place(db: None) -> None:
    for n in range(20):
        Client(REMOTE_ADDR="192.0.2.1", HTTP_X_FORWARDED_FOR=f"10.0.0.{n}").post(
            "/sign-in/", {"email": f"nobody{n}@example.org"}
        )
    last = Client(REMOTE_ADDR="192.0.2.1", HTTP_X_FORWARDED_FOR="10.0.0.99").post(
        "/sign-in/", {"email": "x@example.org"}
    )
    assert slowed(last)


def test_behind_a_proxy_the_place_is_what_the_proxy_says(db: None, settings: Any) -> None:
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 1
    for n in range(20):
        Client(REMOTE_ADDR="10.0.0.1", HTTP_X_FORWARDED_FOR="203.0.113.9").post(
            "/sign-in/", {"email": f"nobody{n}@example.org"}
        )
    other = Client(REMOTE_ADDR="10.0.0.1", HTTP_X_FORWARDED_FOR="203.0.113.10")
    assert not slowed(other.post("/sign-in/", {"email": "x@example.org"}))
