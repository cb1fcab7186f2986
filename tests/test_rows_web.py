"""Every address of the site, whoever asks: no unsafe one works without its token, no safe one changes a row, and the headers and
cookies of every answer are strict. The list comes from the resolver, so a new address is held to all of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection
from django.test import Client

from tests.addresses import HOST, Address, addresses, furnished, production
from tests.figures import Figure
from tests.people import BACKEND, Person

pytestmark = pytest.mark.django_db

FOREIGN = "https://evil.example"
PROOFS = ("password", "code", "mfa")
UNSAFE = ("POST", "PUT", "PATCH", "DELETE")


@pytest.fixture(autouse=True)
def fresh_limits() -> None:
    cache.clear()


@pytest.fixture
def there(alice: Person, staff: Client) -> list[Address]:
    return addresses(furnished(alice))


def strict(who: Client, **more: Any) -> Client:
    """A browser that checks tokens, with this one's cookies."""
    client = Client(enforce_csrf_checks=True, **more)
    client.cookies = who.cookies
    return client


def token_of(client: Client) -> str:
    client.get("/sign-out/")
    return str(client.cookies["csrftoken"].value)


# --- W4: tokens ---------------------------------------------------------------------------------------------------------


def test_no_unsafe_route_works_without_the_token_of_this_browser(
    there: list[Address], alice: Person, bob: Person, staff: Client, figure: Figure
) -> None:
    foreign, wrong = token_of(bob.client), "x" * 64
    sent = 0
    for who in (alice.client, staff):
        own = token_of(who)
        client = strict(who)
        bare: tuple[bool, dict[str, str]] = (False, {})
        tries = [  # over TLS or not, with which headers
            bare,
            (False, {"x-csrftoken": wrong}),
            (False, {"x-csrftoken": foreign}),
            (False, {"x-csrftoken": own, "origin": FOREIGN}),
            (False, {"x-csrftoken": own, "origin": "null"}),
            (True, {"x-csrftoken": own}),  # neither Origin nor Referer
            (True, {"x-csrftoken": own, "referer": f"{FOREIGN}/"}),
        ]
        for address in (
            address for address in there if address.mainly_for == ("staff" if who is staff else "customer")
        ):
            assert not address.csrf_exempt, address
            for method in UNSAFE:
                for secure, headers in tries if method == "POST" else [bare]:
                    answer = client.generic(method, address.path, headers=headers, secure=secure)
                    assert answer.status_code == 403, (method, address, headers)
                    sent += 1
        assert client.post("/language", {"language": "de"}, headers={"x-csrftoken": own}).status_code == 302, (
            "it is right"
        )
    assert alice.held == {"tea": "Green tea", "coffee": "Dark roast"}
    figure("W4", f"{sent:,} unsafe requests with no, wrong or foreign token or Origin: all refused with 403")


def test_a_browsers_cookie_opens_nothing_of_the_bridge(there: list[Address], alice: Person, staff: Client) -> None:
    for address in there:
        if address.of_bridge:
            assert address.csrf_exempt, "a key in a header cannot be sent by another site's form"
            for who in (alice.client, staff):
                for method in UNSAFE if address.name != "openapi-json" else ():  # the description is everybody's
                    answer = who.generic(method, address.path, b"{}", "application/json")
                    assert answer.status_code in (401, 404, 405), (method, address)


# --- W4: safe methods ---------------------------------------------------------------------------------------------------

VISITS = ("django_session", "memory_portal_cache", "agent_bridge_callwindow")
"""Rows of the visit itself: the session, counted tries."""
LOOKS = {"agent": "memory_portal_factread", "staff": "memory_portal_factevent"}
"""Rows that say who looked. They are added by looking; nothing else does a safe request write."""

CHECKSUM = """
SELECT count(*), coalesce(md5(string_agg(r::text, '|' ORDER BY r::text)), '') FROM (SELECT to_jsonb(t) - %s r FROM "{}" t) s
"""


def checksums() -> dict[str, tuple[int, str]]:
    """Of each table, leaving out when a key was last used."""
    found = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            if table not in VISITS:
                cursor.execute(CHECKSUM.format(table), ["last_used_at"])
                found[table] = cursor.fetchone()
    return found


def test_a_safe_request_to_any_address_changes_no_row(
    there: list[Address], alice: Person, staff: Client, agent: Callable[..., Client], figure: Figure
) -> None:
    alice.proves()
    callers = {"nobody": Client(), "customer": alice.client, "staff": staff, "agent": agent(profile="grocery")}
    looked = 0
    before = checksums()
    for caller, client in callers.items():
        for address in there:
            for method in ("GET",) if address.of_staff else ("GET", "HEAD", "OPTIONS"):
                client.generic(method, address.path)
                looked += 1
        after = checksums()
        for table in after:
            if after[table] != before[table]:
                assert table.startswith(LOOKS.get(caller, "no table")), (caller, table)
                assert after[table][0] > before[table][0], (caller, table)
        before = after
    figure("W4", f"{looked:,} safe requests to {len(there)} addresses by four callers: 0 rows changed")


# --- W6: cookies and headers --------------------------------------------------------------------------------------------


def answers(there: list[Address], callers: dict[str, Callable[[], Client]]) -> Any:
    """Each answer to each caller, with who asked for what; errors of every kind are among them."""
    broken = [
        "/no/such/page",
        "/take/no-such-token/",
        "/enter/no-such-token",
        "/static/no-such-file.js",
        "/facts/999999999",
    ]
    for caller, arriving in callers.items():
        for path in [*(address.path for address in there if caller in ("nobody", address.mainly_for)), *broken]:
            client = arriving()  # anew: some addresses sign out
            for method in ("GET", "POST"):
                yield caller, method, path, client.generic(method, path, secure=True)
        client = arriving()
        yield caller, "GET", "a foreign host", client.get("/", secure=True, headers={"host": "evil.example"})
        yield caller, "GET", "without TLS", client.get("/")
        yield caller, "POST", "without a token", strict(client).post("/language", secure=True)


def site(user: User | None = None) -> Client:
    """A browser on the production site, of this person, who has just proved in every way that it is them."""
    client = Client(SERVER_NAME=HOST, raise_request_exception=False)
    if user:
        client.force_login(user, backend=BACKEND)  # type: ignore[arg-type]
        session = client.session
        session["account_authentication_methods"] = [{"method": how, "at": time.time()} for how in PROOFS]
        session["account_authentication_methods_user"] = str(user.pk)
        session.save()
    return client


def test_every_answer_in_production_carries_every_header(
    there: list[Address], alice: Person, agent: Callable[..., Client], figure: Figure
) -> None:
    bearer = agent(profile="grocery").defaults["HTTP_AUTHORIZATION"]
    boss = get_user_model().objects.get(username="staff")

    def agents() -> Client:
        client = site()
        client.defaults["HTTP_AUTHORIZATION"] = bearer
        return client

    with production():
        callers = {
            "nobody": site,
            "customer": partial(site, alice.customer.user),
            "staff": partial(site, boss),
            "agent": agents,
        }
        seen: dict[int, int] = {}
        for caller, method, path, answer in answers(there, callers):
            seen[answer.status_code] = seen.get(answer.status_code, 0) + 1
            where = (caller, method, path, answer.status_code)
            assert answer.status_code < 500, where
            if path != "without TLS":
                assert answer["Strict-Transport-Security"] == "max-age=31536000; includeSubDomains; preload", where
            assert answer["X-Content-Type-Options"] == "nosniff", where
            if answer.getvalue():
                kind = answer["Content-Type"]
                assert "charset=" in kind or not kind.startswith("text/"), where
            assert answer["Referrer-Policy"] == "same-origin", where
            assert answer["Cross-Origin-Opener-Policy"] == "same-origin", where
            assert answer["X-Frame-Options"] == "DENY", where
            policy = answer["Content-Security-Policy"]
            for part in (
                "default-src 'none'",
                "object-src 'none'",
                "base-uri 'none'",
                "frame-ancestors 'none'",
                "form-action 'self'",
            ):
                assert part in policy, where
            assert "unsafe" not in policy, where
            if not path.startswith(("/static/", "/.well-known/")):
                kept = answer["Cache-Control"]
                assert "no-store" in kept or kept == "private, max-age=0, must-revalidate", where
            for name, cookie in answer.cookies.items():
                assert name.startswith("__Host-"), where
                assert cookie["secure"], where
                assert cookie["samesite"] == "Lax", where
                assert cookie["path"] == "/", where
                assert not cookie["domain"], where
                assert cookie["httponly"] or not cookie.value or name == "__Host-language", where
    assert {200, 302, 400, 401, 403, 404, 405} <= set(seen), seen
    figure(
        "W6",
        f"{sum(seen.values()):,} answers in production, of statuses {sorted(seen)}: every header, every cookie strict",
    )
    figure(
        "W7", f"the policy stands on {sum(seen.values()):,} of {sum(seen.values()):,} answers, with no 'unsafe' in it"
    )


def test_an_answer_to_a_fault_of_ours_carries_them_too(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr("memory_portal.store.facts", broken)
    with production():
        answer = site(alice.customer.user).get("/", secure=True)
    assert answer.status_code == 500
    assert "no-store" in answer["Cache-Control"]
    for name in ("Strict-Transport-Security", "Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy"):
        assert answer[name]
    assert "broken on purpose" not in answer.content.decode()


def test_no_address_answers_trace(there: list[Address], alice: Person, staff: Client) -> None:
    for address in there:
        for client in (alice.client, staff):
            assert client.trace(address.path).status_code in (404, 405) or address.name == "openapi-json", address


def test_machines_are_not_redirected_to_https_but_told(agent: Callable[..., Client]) -> None:
    bearer = agent(profile="grocery").defaults["HTTP_AUTHORIZATION"]
    with production():
        for path in ("/bridge/v1/subjects/alice/context", "/bridge/v1/changes", "/bridge/mcp", "/bridge/no/such/thing"):
            answer = site().get(path, headers={"authorization": bearer})
            assert (answer.status_code, answer.json()["code"]) == (400, "https_required"), path
        assert site().get("/bridge/v1/changes", headers={"authorization": bearer}, secure=True).status_code == 200
