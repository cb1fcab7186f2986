"""Every operation of the live schema against every kind of caller: an exact table, and no operation may be missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agent_bridge import auth
from agent_bridge.models import AgentKey
from agent_bridge.rest import api
from tests.figures import Figure

pytestmark = pytest.mark.django_db

Agent = Callable[..., Client]

SUBJECT = "/bridge/v1/subjects/alice"
FACT = {"value": "likes the aisle"}
TURNS = {"session_id": "s-1", "messages": [{"role": "user", "text": "I always sit on the aisle"}]}

# method, address, body, what a sufficient key gets, and each scope that suffices
TABLE: list[tuple[str, str, object, int, set[str]]] = [
    ("GET", "/subjects/{subject_id}/context", None, 200, {auth.READ}),
    ("POST", "/subjects/{subject_id}/context", {}, 200, {auth.READ}),
    ("GET", "/subjects/{subject_id}/facts", None, 200, {auth.READ}),
    ("DELETE", "/subjects/{subject_id}/facts", None, 200, {auth.DELETE}),
    ("POST", "/subjects/{subject_id}/facts:search", {"topic": "seat"}, 200, {auth.READ}),
    ("POST", "/subjects/{subject_id}/facts:upsert", {"facts": [{"key": "seat", **FACT}]}, 200, {auth.WRITE}),
    ("GET", "/subjects/{subject_id}/facts/{key}", None, 404, {auth.READ}),
    ("PUT", "/subjects/{subject_id}/facts/{key}", FACT, 201, {auth.WRITE, auth.PROPOSE}),
    ("DELETE", "/subjects/{subject_id}/facts/{key}", None, 404, {auth.DELETE}),
    ("GET", "/subjects/{subject_id}/purge_generation", None, 200, {auth.READ, auth.TURNS}),
    ("POST", "/subjects/{subject_id}/turns", TURNS, 202, {auth.TURNS}),
    ("GET", "/jobs/{job_id}", None, 404, {auth.TURNS}),
    ("GET", "/changes", None, 200, {auth.READ}),
    ("POST", "/import", {"facts": {"alice": [{"key": "seat", **FACT}]}}, 202, {auth.WRITE}),
    ("GET", "/imports/{import_id}", None, 404, {auth.WRITE}),
    ("GET", "/imports/{import_id}/report", None, 404, {auth.WRITE}),
    ("DELETE", "/key", None, 204, set(auth.SCOPES)),
    ("POST", "/portal-links", {"subject_id": "alice"}, 201, {auth.LINKS}),
    ("POST", "/sessions", {"subject_id": "alice", "session_id": "s-1"}, 201, set(auth.SCOPES)),
]
OPEN = {("GET", "/health")}
NAMES = [f"{method} {address}" for method, address, *_ in TABLE]


def call(client: Client, method: str, address: str, body: object) -> Any:
    job = "0c9a9f0e-5f0b-4a52-9a6a-d1d6f1f6f0aa"
    path = "/bridge/v1" + address.format(subject_id="alice", key="seat", job_id=job, import_id=job)
    return client.generic(method, path, b"" if body is None else json.dumps(body).encode(), "application/json")


def test_the_table_holds_every_operation_there_is() -> None:
    schema = api.get_openapi_schema(path_prefix="")
    there = {(method.upper(), path) for path, methods in schema["paths"].items() for method in methods}
    assert there == {(method, address) for method, address, *_ in TABLE} | OPEN


@pytest.mark.parametrize("row", TABLE, ids=NAMES)
def test_no_key_no_answer(row: tuple[str, str, object, int, set[str]]) -> None:
    method, address, body, _, _ = row
    answer = call(Client(), method, address, body)
    assert (answer.status_code, answer.json()["code"]) == (401, "key_missing")
    assert "WWW-Authenticate" in answer


@pytest.mark.parametrize("row", TABLE, ids=NAMES)
@pytest.mark.parametrize("state", ["key_revoked", "key_expired"])
def test_a_dead_key_opens_nothing(agent: Agent, row: tuple[str, str, object, int, set[str]], state: str) -> None:
    method, address, body, _, _ = row
    client = agent()
    field = {"key_revoked": "revoked_at", "key_expired": "expires_at"}[state]
    AgentKey.objects.update(**{field: timezone.now()})
    answer = call(client, method, address, body)
    assert (answer.status_code, answer.json()["code"]) == (401, state)


@pytest.mark.parametrize("row", TABLE, ids=NAMES)
def test_each_scope_opens_what_the_table_says_and_no_more(
    agent: Agent, row: tuple[str, str, object, int, set[str]], figure: Figure
) -> None:
    method, address, body, status, enough = row
    for scope in auth.SCOPES:
        answer = call(agent(scope), method, address, body)
        if scope in enough:
            assert answer.status_code in (status, 202), (scope, answer.content)
        else:
            problem = answer.json()
            assert (answer.status_code, problem["code"]) == (403, "scope_missing"), scope
            assert set(problem["scopes"]) == enough
    figure(
        "W1", f"{len(TABLE)} bridge operations x {len(auth.SCOPES)} scopes, no key, revoked, expired: as tabled, 0 more"
    )


@pytest.mark.parametrize("row", TABLE, ids=NAMES)
def test_no_answer_sets_a_cookie_or_may_be_shared(agent: Agent, row: tuple[str, str, object, int, set[str]]) -> None:
    method, address, body, _, _ = row
    for client in (agent(), Client()):
        answer = call(client, method, address, body)
        assert not answer.cookies
        assert "Cookie" not in answer.get("Vary", "")
        assert answer["Cache-Control"] in ("no-store", "private, max-age=0, must-revalidate")


def test_the_health_check_needs_no_key() -> None:
    assert Client().get("/bridge/v1/health").json() == {"status": "ok", "memory": True}


@pytest.mark.parametrize("row", TABLE, ids=NAMES)
def test_other_methods_are_refused_and_the_right_ones_named(
    agent: Agent, row: tuple[str, str, object, int, set[str]]
) -> None:
    address = row[1]
    right = {method for method, other, *_ in TABLE if other == address}
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"):
        if method not in right:
            answer = call(agent(), method, address, None)
            assert answer.status_code == 405
            assert set(answer["Allow"].split(", ")) == right
            assert answer["Content-Type"] == "application/problem+json"


def test_csrf_does_not_stand_in_an_agents_way(agent: Agent) -> None:
    client = Client(enforce_csrf_checks=True, **agent().defaults)
    assert client.put(f"{SUBJECT}/facts/seat", FACT, "application/json").status_code == 201
