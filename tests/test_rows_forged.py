"""Guessing and forging: known and unknown look the same, no header of a caller's own moves a link or a limit, codes work once."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.core import mail
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from memory_portal import post
from tests.addresses import HOST, production
from tests.figures import Figure
from tests.people import Person
from tests.test_rows_sessions import by_password, code_in_mail

pytestmark = pytest.mark.django_db

Agent = Callable[..., Client]


@pytest.fixture(autouse=True)
def fresh_limits() -> None:
    cache.clear()


# --- W10: guessing ------------------------------------------------------------------------------------------------------


def test_known_and_unknown_addresses_get_the_same_answer(alice: Person, figure: Figure) -> None:
    def asked(email: str) -> list[tuple[int, str, str]]:
        client = Client(REMOTE_ADDR="192.0.2.77")
        first = client.post("/sign-in/", {"email": email})
        page = client.get("/sign-in/code/")
        wrong = client.post("/sign-in/code/", {"code": "000000"})
        return [plain(answer, email) for answer in (first, page, wrong)]

    def plain(answer: Any, email: str) -> tuple[int, str, str]:
        text = answer.content.decode().replace(email, "EMAIL")
        headers = sorted(
            (name, sorted(value.split("; ")))  # the policy's parts come in any order
            for name, value in answer.headers.items()
            if name not in ("Content-Length", "Expires", "X-Request-ID")
        )
        return answer.status_code, str(headers), re.sub(r'value="[\w]{64}"', "TOKEN", text)

    for known, unknown in zip(asked("alice@example.org"), asked("nobody@example.org"), strict=True):
        assert known[:2] == unknown[:2]
        assert known[2].splitlines() == unknown[2].splitlines()
    figure("W10", "known and unknown address: three answers, same status, headers and bytes")


def test_staff_names_are_not_told_apart_by_time(alice: Person, figure: Figure, settings: Any) -> None:
    settings.ACCOUNT_RATE_LIMITS = settings.ACCOUNT_RATE_LIMITS | {"staff_sign_in": "9999/h/ip"}
    by_password(alice, Client())
    took: dict[str, list[float]] = {"boss": [], "nobody": []}
    for _ in range(4):
        for name, times in took.items():
            began = time.perf_counter()
            Client().post("/admin/login/", {"username": name, "password": "wrong"})
            times.append(time.perf_counter() - began)
    gap = abs(min(took["boss"]) - min(took["nobody"])) * 1000
    # Hashing is nearly all of it, so without it the gap would be as large as the whole; a busy machine spreads the rest.
    assert gap < 0.5 * 1000 * min(took["boss"]), "as much hashing for a name that is not there"
    figure(
        "W10",
        f"staff sign-in, known and unknown name: {gap:.1f} ms apart of {1000 * statistics.median(took['boss']):.0f}",
    )


# --- W13: links and forged headers --------------------------------------------------------------------------------------

FORGED = [f"evil-{n}.example" for n in range(50)] + [f"{HOST}.evil-{n}.example" for n in range(25)] + [
    f"evil.example:{n}" for n in range(24)] + ["x@evil.example"]  # fmt: skip


def test_no_forged_header_moves_a_link_or_a_limit(alice: Person, agent: Agent, figure: Figure) -> None:
    bearer = agent(profile="grocery").defaults["HTTP_AUTHORIZATION"]
    alice.customer.mail_notices = True
    with production():
        for name in FORGED:
            site = Client(SERVER_NAME=HOST, raise_request_exception=False)
            assert site.get("/sign-in/", secure=True, headers={"host": name}).status_code == 400, name
            headers = {"x-forwarded-host": name, "x-forwarded-proto": "http", "forwarded": f"host={name}",
                       "x-original-url": f"https://{name}/", "authorization": bearer}  # fmt: skip
            answer = site.post(
                "/bridge/v1/portal-links", {"subject_id": "alice"}, "application/json", secure=True, headers=headers
            )
            assert answer.json()["url"].startswith(f"https://{HOST}/enter/"), name
            refused = Client(SERVER_NAME=HOST).post("/bridge/v1/portal-links", {"subject_id": "alice"}, "application/json",
                                                    secure=True, headers=headers | {"host": name})  # fmt: skip
            assert refused.status_code == 400
            there = site.get("/", secure=True, headers=headers).headers["Location"]
            assert there == "/sign-in/?next=%2F"
            assert site.get("/", headers={"x-forwarded-proto": "https"}).headers["Location"] == f"https://{HOST}/"
        cache.clear()
        for name in FORGED[:5]:
            Client(SERVER_NAME=HOST, REMOTE_ADDR=f"192.0.2.{FORGED.index(name)}").post(
                "/sign-in/", {"email": "alice@example.org"}, secure=True, headers={"x-forwarded-host": name}
            )
        post.notify(alice.customer, "digest", count=3)
    for message in mail.outbox:
        assert "evil" not in f"{message.subject}{message.body}"
    figure("W13", f"{len(FORGED)} forged hosts in six headers: 0 poisoned links")


@pytest.mark.parametrize("proxies", [0, 1])
def test_a_forged_place_escapes_no_limit(alice: Person, settings: Any, proxies: int, figure: Figure) -> None:
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = proxies
    passed = {"sign-in": 0, "staff": 0}
    for n in range(100):
        forged = f"10.{n}.0.1" + (", 203.0.113.9" if proxies else "")  # what a proxy of ours would add
        client = Client(
            REMOTE_ADDR="192.0.2.1",
            headers={"x-forwarded-for": forged, "x-real-ip": f"10.0.{n}.1", "cf-connecting-ip": f"10.0.0.{n}"},
        )
        passed["sign-in"] += client.post("/sign-in/", {"email": f"nobody{n}@example.org"}).status_code == 302
        passed["staff"] += client.post("/admin/login/", {"username": f"name{n}", "password": ""}).status_code == 200
    assert passed == {"sign-in": 20, "staff": 20}
    figure("W13", f"100 forged X-Forwarded-For behind {proxies} proxies: 20 of 100 tries an hour pass, as without")


def test_a_code_works_once_and_for_ten_minutes(alice: Person, figure: Figure) -> None:
    client = Client()
    client.post("/sign-in/", {"email": "alice@example.org"})
    code = code_in_mail()
    assert client.post("/sign-in/code/", {"code": code}).headers["Location"] == "/"
    client.post(reverse("account_logout"))
    client.post("/sign-in/code/", {"code": code})
    assert client.get("/").status_code == 302
    for seconds in (590, 610):
        cache.clear()
        late = Client()
        late.post("/sign-in/", {"email": "alice@example.org"})
        session = late.session
        older(session, seconds)
        session.save()
        late.post("/sign-in/code/", {"code": code_in_mail()})
        assert late.get("/").status_code == (200 if seconds < 600 else 302), seconds
    figure(
        "W13",
        "codes by mail: single use, ten minutes; links of a host: single use, one minute; no other link is mailed",
    )


def older(state: Any, seconds: float) -> None:
    """As if what the sign-in keeps in the session had been kept so long ago."""
    for name, value in state.items():
        if name == "at":
            state[name] = value - seconds
        elif isinstance(value, dict):
            older(value, seconds)
