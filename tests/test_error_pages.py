"""400, 403, 404, 500 and 503, as a page for people and as a problem for agents: plain, without words of the error, uncached."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.sessions.exceptions import SessionInterrupted
from django.db import InterfaceError, OperationalError
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.utils.translation import get_language, override

from agent_bridge import wire
from agent_bridge.front import Front
from tests.people import Person

pytestmark = pytest.mark.django_db

WORDS = "zebracanary"
BRIDGE = "/bridge/v1/subjects/alice/context"


def served(path: str, error: BaseException) -> Any:
    """What the site's own handlers answer when this broke above every view."""
    request = RequestFactory().get(path)
    try:
        raise error
    except Exception:
        return wire.server_error(request)


@pytest.mark.parametrize("error", [OperationalError(WORDS), InterfaceError(WORDS)])
def test_a_database_that_is_away_says_when_to_come_again(error: Exception) -> None:
    page, problem = served("/", error), served(BRIDGE, error)
    for answer in (page, problem):
        assert (answer.status_code, answer["Retry-After"], answer["Cache-Control"]) == (503, "5", "no-store")
        assert WORDS not in answer.content.decode()
    assert page["Content-Type"].startswith("text/html")
    assert "Not available right now" in page.content.decode()
    assert problem["Content-Type"] == "application/problem+json"
    assert b'"unavailable"' in problem.content


def test_anything_else_is_a_fault_of_ours() -> None:
    page, problem = served("/", RuntimeError(WORDS)), served(BRIDGE, RuntimeError(WORDS))
    assert (page.status_code, problem.status_code) == (500, 500)
    assert "Something went wrong on our side" in page.content.decode()
    assert problem["Content-Type"] == "application/problem+json"
    assert WORDS not in page.content.decode() + problem.content.decode()
    assert "Retry-After" not in page


def test_a_session_that_cannot_be_saved_for_want_of_a_database_is_no_bad_request() -> None:
    lost = SessionInterrupted("deleted")
    lost.__context__ = OperationalError(WORDS)
    request = RequestFactory().get("/")
    assert wire.bad_request(request, lost).status_code == 503
    assert wire.bad_request(request, SessionInterrupted("deleted")).status_code == 400


def test_the_page_of_an_absent_database_asks_it_nothing_and_speaks_the_readers_language(
    alice: Person, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(0), override("de"):
        page = served("/", OperationalError(WORDS)).content.decode()
    assert '<html lang="de" dir="ltr">' in page
    assert "Gerade nicht erreichbar" in page


@pytest.mark.parametrize("path", ["/", "/bridge/v1/no-such-thing"])
def test_nobody_is_answered_in_the_language_of_the_threads_last_visitor(path: str) -> None:
    heard = []

    def breaks_early(request: Any) -> HttpResponse:
        heard.append(get_language())
        return HttpResponse(status=500)

    with override("de"):
        Front(breaks_early)(RequestFactory().get(path))
        assert get_language() == "en"
    assert heard == (["en"] if path == "/" else [])


def test_each_status_has_its_page_and_its_problem(alice: Person, agent: Any) -> None:
    strict = Client(enforce_csrf_checks=True, raise_request_exception=False)
    strict.cookies = alice.client.cookies
    assert strict.post("/facts/add").status_code == 403
    assert alice.get("/no/such/page").status_code == 404
    foreign = Client(headers={"Host": "evil.example"}, raise_request_exception=False)
    page, problem = foreign.get("/"), foreign.get("/bridge/v1/health")
    assert page.status_code == 400
    assert "We could not read that request" in page.content.decode()
    assert (
        agent("facts:read").put(BRIDGE.replace("context", "facts/a"), {"value": "b"}, "application/json").status_code
        == 403
    )
    for answer in (problem, agent().get("/bridge/v1/nothing")):
        assert answer["Content-Type"] == "application/problem+json"
        assert answer["Cache-Control"] == "no-store"
