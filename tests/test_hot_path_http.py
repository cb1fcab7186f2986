"""Agents' requests go past what only people need; what every answer carries, theirs carry too. The view keeps to its schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import resolve
from django.utils import timezone, translation
from pytest_django import Settings

from agent_bridge.context import plain
from agent_bridge.rest import api
from agent_bridge.schemas import ContextOut
from memory_portal import store
from memory_portal.enums import ActorKind, Origin
from tests.people import Person

pytestmark = pytest.mark.django_db

Agent = Callable[..., Client]
CONTEXT = "/bridge/v1/subjects/alice/context"
STRICT = [
    "Content-Security-Policy",
    "X-Frame-Options",
    "X-Content-Type-Options",
    "Referrer-Policy",
    "Cross-Origin-Opener-Policy",
]


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("address", [CONTEXT, "/bridge/v1/nowhere", "/bridge/mcp", "/bridge/v1/openapi.json"])
def test_answers_to_agents_are_as_strict_as_pages(agent: Agent, settings: Settings, address: str, secure: bool) -> None:
    settings.SECURE_HSTS_SECONDS = 60
    page, answer = Client().get("/sign-in/", secure=secure), agent().get(address, secure=secure)
    for name in [*STRICT, *(["Strict-Transport-Security"] if secure else [])]:
        assert answer[name] == page[name], name
    assert ("Strict-Transport-Security" in answer) is secure
    assert int(answer["Content-Length"]) == len(answer.content)
    assert not answer.cookies


def test_a_persons_session_is_not_even_looked_at(agent: Agent, alice: Person) -> None:
    client = agent()
    client.cookies.update(alice.client.cookies)
    with CaptureQueriesContext(connection) as asked:
        answer = client.get(CONTEXT)
    assert answer.status_code == 200
    assert "Cookie" not in answer.get("Vary", "")
    tables = [User._meta.db_table, "django_session"]
    assert not any(table in query["sql"] for query in asked.captured_queries for table in tables)


def test_a_foreign_host_and_plain_http_go_the_sites_own_way(agent: Agent, settings: Settings) -> None:
    foreign = agent().get(CONTEXT, headers={"Host": "evil.example"})
    assert (foreign.status_code, foreign.json()["code"]) == (400, "bad_request")
    assert "Content-Security-Policy" in foreign
    settings.SECURE_SSL_REDIRECT = True
    plain_http = agent().get(CONTEXT)
    assert (plain_http.status_code, plain_http.json()["code"]) == (400, "https_required")
    assert "Content-Security-Policy" in plain_http
    assert agent().get(CONTEXT, secure=True).status_code == 200


def test_the_language_of_the_threads_last_visitor_is_not_spoken_to_agents(agent: Agent) -> None:
    client = agent()
    with translation.override("de"):
        client.get(CONTEXT)
        assert translation.get_language() == "en"


def test_the_route_has_the_name_it_has_in_the_sites_own_addresses(agent: Agent) -> None:
    """Counts and logs go by it."""
    assert agent().get(CONTEXT).wsgi_request.resolver_match.view_name == resolve(CONTEXT).view_name


def test_the_page_about_it_is_a_page() -> None:
    page = Client().get("/bridge/v1/docs")
    assert page.status_code == 200
    assert "<h1>" in page.content.decode()


# --- the plain view ---------------------------------------------------------------------------------------------------


def test_it_answers_as_the_schema_says(agent: Agent) -> None:
    now = timezone.now()
    subject, customer = store.Subject("alice", "airline"), store.Actor(ActorKind.CUSTOMER)
    for category, value in (("preference", "likes the aisle"), ("constraint", "never flies at night")):
        draft = store.draft(
            key=f"a_{category}",
            value=value,
            category=category,
            origin=Origin.CUSTOMER,
            said_at=now,
            now=now,
        )
        store.add(subject, draft, customer, now=now)
    told = agent().get(CONTEXT).json()
    assert ContextOut.model_validate(told, strict=False).model_dump(mode="json").keys() == told.keys()
    fields = api.get_openapi_schema(path_prefix="")["components"]["schemas"]["FactOut"]["properties"]
    assert [set(fact) for fact in told["always"]] == [set(fields)] * 2
    recall = store.preview(subject, "Helper", "", now=now)
    (first, *_) = plain(recall.always)
    assert set(first) == set(fields)


@pytest.mark.parametrize("method", ["get", "post"])
def test_it_is_in_the_document(method: str) -> None:
    described = api.get_openapi_schema(path_prefix="")["paths"]["/subjects/{subject_id}/context"][method]
    assert described["security"] == [{"KeyAuth": ["facts:read"]}]
    assert {"200", "304", "401", "422", "429", "503"} <= {str(status) for status in described["responses"]}


@pytest.mark.parametrize(
    ("query", "pointer"), [("?format=xml", "format"), ("?session_id=", "session_id"), ("?message=x", "message")]
)
def test_a_wrong_parameter_is_named(agent: Agent, query: str, pointer: str) -> None:
    answer = agent().get(CONTEXT + query)
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"format": "xml"}, "#/format"),
        ({"message": "x" * 8_001}, "#/message"),
        ({"other": 1}, "#/other"),
        ({"message": 1}, "#/message"),
    ],
)
def test_a_wrong_field_is_named_and_not_repeated(agent: Agent, body: dict[str, Any], pointer: str) -> None:
    answer = agent().post(CONTEXT, body, "application/json")
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    assert "xxx" not in answer.content.decode()


def test_other_methods_are_refused_with_those_there_are(agent: Agent) -> None:
    answer = agent().put(CONTEXT, {}, "application/json")
    assert (answer.status_code, answer["Allow"]) == (405, "GET, POST")
