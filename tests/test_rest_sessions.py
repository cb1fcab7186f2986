"""Session tokens: one customer, one session, some of the key's scopes, and never longer than the key."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.test import Client
from django.utils import timezone

from agent_bridge import auth
from agent_bridge.models import AgentKey
from memory_portal import store
from memory_portal.models import FactRead, MemoryFact

pytestmark = pytest.mark.django_db

Agent = Callable[..., Client]
ALICE, BOB = "/bridge/v1/subjects/alice", "/bridge/v1/subjects/bob"
TALK = {"session_id": "s-9", "messages": [{"role": "user", "text": "I always sit on the aisle"}]}


def session(client: Client, **more: object) -> Any:
    wish = {"subject_id": "alice", "session_id": "s-1", **more}
    return client.post("/bridge/v1/sessions", wish, "application/json")


def holder(answer: Any) -> Client:
    assert answer.status_code == 201, answer.content
    return Client(headers={"Authorization": f"Bearer {answer.json()['token']}"})


def code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_a_token_reaches_its_customer_and_nobody_else(agent: Agent) -> None:
    key = agent()
    for subject in (ALICE, BOB):
        key.put(f"{subject}/facts/seat", {"value": "likes the aisle"}, "application/json")
    token = holder(session(key))
    assert token.get(f"{ALICE}/context").json()["always"][0]["key"] == "seat"
    for who in (BOB, "/bridge/v1/subjects/nobody", "/bridge/v1/subjects/~Ym9i"):
        assert code(token.get(f"{who}/context")) == (403, "subject_bound")
        assert code(token.get(f"{who}/facts/seat")) == (403, "subject_bound")
        assert code(token.delete(f"{who}/facts")) == (403, "subject_bound")
        assert code(token.post(f"{who}/turns", TALK, "application/json")) == (403, "subject_bound")
    assert MemoryFact.objects.count() == 2


def test_a_job_of_another_customer_is_not_there(agent: Agent) -> None:
    key = agent()
    mine, other = (key.post(f"{subject}/turns", TALK, "application/json").json()["job_id"] for subject in (ALICE, BOB))
    token = holder(session(key))
    assert token.get(f"/bridge/v1/jobs/{mine}").status_code == 200
    assert token.get(f"/bridge/v1/jobs/{other}").status_code == 404
    assert holder(session(key, subject_id="nobody")).get(f"/bridge/v1/jobs/{mine}").status_code == 404


def test_a_token_has_the_scopes_that_were_asked_for(agent: Agent) -> None:
    token = holder(session(agent(), scopes=[auth.READ]))
    assert token.get(f"{ALICE}/context").status_code == 200
    assert code(token.post(f"{ALICE}/turns", TALK, "application/json")) == (403, "scope_missing")
    refused = session(agent(auth.READ), scopes=[auth.READ, auth.WRITE, "facts:everything"])
    assert code(refused) == (403, "scope_missing")
    assert refused.json()["scopes"] == [auth.WRITE]


def test_what_the_key_loses_its_tokens_lose(agent: Agent) -> None:
    token = holder(session(agent()))
    AgentKey.objects.update(scopes=[auth.TURNS])
    assert code(token.get(f"{ALICE}/context")) == (403, "scope_missing")
    AgentKey.objects.update(scopes=[auth.READ], revoked_at=timezone.now())
    assert code(token.get(f"{ALICE}/context")) == (401, "key_revoked")


def test_a_token_ends_by_itself(agent: Agent) -> None:
    answer = session(agent(), minutes=5)
    token = holder(answer)
    with mock.patch.object(timezone, "now", return_value=timezone.now() + timedelta(minutes=5)):
        assert code(token.get(f"{ALICE}/context")) == (401, "session_expired")


def test_a_token_never_outlives_its_key(agent: Agent) -> None:
    client, end = agent(), timezone.now() + timedelta(minutes=2)
    AgentKey.objects.update(expires_at=end)
    assert session(client).json()["expires_at"].startswith(f"{end:%Y-%m-%dT%H:%M:%S}")


def test_a_token_opens_no_session_and_ends_no_key(agent: Agent) -> None:
    token = holder(session(agent()))
    assert code(session(token)) == (403, "key_needed")
    assert code(token.delete("/bridge/v1/key")) == (403, "key_needed")


@pytest.mark.parametrize(
    "forge", [lambda t: t[:-1] + "A", lambda t: "mps_e30:x", lambda t: t.replace(":", ""), lambda t: "mps_"]
)
def test_a_forged_token_is_unknown(agent: Agent, forge: Callable[[str], str]) -> None:
    token = session(agent()).json()["token"]
    forged = forge(token)
    if forged == token:
        pytest.skip("the last letter was A")
    assert code(Client(headers={"Authorization": f"Bearer {forged}"}).get(f"{ALICE}/context")) == (401, "key_unknown")


def test_a_token_in_an_address_is_refused(agent: Agent) -> None:
    client = agent()
    token = session(client).json()["token"]
    assert code(client.get(f"{ALICE}/context?t={token}")) == (400, "key_in_query")


def test_reads_and_writes_carry_the_session(agent: Agent) -> None:
    token, tag = holder(session(agent(), session_id="s-77")), store.session_tag("s-77")
    token.put(f"{ALICE}/facts/seat", {"value": "likes the aisle"}, "application/json")
    token.get(f"{ALICE}/context")
    assert MemoryFact.objects.get().source_session_id == tag
    assert FactRead.objects.latest("pk").source_session_id == tag


@pytest.mark.parametrize(
    ("more", "pointer"),
    [
        ({"subject_id": ""}, "#/subject_id"),
        ({"subject_id": "x" * 129}, "#/subject_id"),
        ({"subject_id": "a\nb"}, "subject_id"),
        ({"session_id": ""}, "#/session_id"),
        ({"minutes": 0}, "#/minutes"),
        ({"minutes": 1_441}, "#/minutes"),
        ({"scopes": []}, "#/scopes"),
        ({"profile": "grocery"}, "#/profile"),
    ],
)
def test_a_wrong_wish_is_named(agent: Agent, more: dict[str, object], pointer: str) -> None:
    answer = session(agent(), **more)
    assert code(answer) == (422, "invalid")
    assert answer.json()["errors"][0]["pointer"] == pointer
