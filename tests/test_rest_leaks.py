"""What a customer said stands in the fact tables and in waiting conversations: in no problem, log or other table."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.test import Client

from agent_bridge import auth

pytestmark = pytest.mark.django_db

Agent = Callable[..., Client]
CANARY = "zebra-canary-4711"
SUBJECT = f"/bridge/v1/subjects/{CANARY}"
MAY_HOLD = {"MemoryFact", "FactRevision", "Proposal", "ExtractionJob", "Customer"}

# Everything that repeats what was sent would show it here: as a value, a name, an id, a parameter, a header.
REFUSED: list[tuple[str, str, bytes, dict[str, str]]] = [
    ("PUT", "/facts/k", f'{{"value":"{CANARY}'.encode(), {}),
    ("PUT", "/facts/k", f'{{"value":"{CANARY * 20}"}}'.encode(), {}),
    ("PUT", "/facts/k", f'{{"value":"{CANARY}\\u0000"}}'.encode(), {}),
    ("PUT", "/facts/k", f'{{"value":"{CANARY} 4242 4242 4242 4242"}}'.encode(), {}),
    ("PUT", "/facts/k", f'{{"value":"x","category":"{CANARY}"}}'.encode(), {}),
    ("PUT", "/facts/k", f'{{"value":"x","said_at":"{CANARY}"}}'.encode(), {}),
    ("PUT", "/facts/k", b'{"value":"x"}', {"If-Match": CANARY}),
    ("PUT", "/facts/k", b'{"value":"x"}', {"Idempotency-Key": f"{CANARY} x"}),
    ("PUT", f"/facts/{CANARY * 4}", b'{"value":"x"}', {}),
    ("PUT", f"/facts/~{CANARY}", b'{"value":"x"}', {}),
    ("GET", f"/facts/{CANARY}", b"", {}),
    ("GET", f"/context?format={CANARY}", b"", {}),
    ("POST", "/turns", f'{{"session_id":"s","messages":[{{"role":"{CANARY}","text":"x"}}]}}'.encode(), {}),
    ("POST", "/turns", f'{{"session_id":"s","messages":[{{"role":"user","content":[{{"type":"{CANARY * 9}"}}]}}]}}'.encode(), {}),
    ("POST", "/turns", f'{{"session_id":"s","messages":"{CANARY}"}}'.encode(), {}),
    ("POST", f"/{CANARY}", b"{}", {}),
    ("PATCH", "/facts", f'"{CANARY}"'.encode(), {}),
]  # fmt: skip


def send(client: Client, row: tuple[str, str, bytes, dict[str, str]]) -> Any:
    method, address, body, headers = row
    return client.generic(method, SUBJECT + address, body, "application/json", headers=headers)


def logged(caplog: pytest.LogCaptureFixture) -> str:
    """Every log line but the database's own, which a deployment has off."""
    lines = [record for record in caplog.records if not record.name.startswith("django.db")]
    return "\n".join(logging.Formatter().format(record) for record in lines)


@pytest.mark.parametrize("row", REFUSED, ids=range(len(REFUSED)))
def test_a_refusal_repeats_nothing(
    agent: Agent, row: tuple[str, str, bytes, dict[str, str]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    answer = send(agent(), row)
    assert 400 <= answer.status_code < 500
    assert CANARY not in answer.content.decode() + repr(dict(answer.headers)) + logged(caplog)


def test_what_is_accepted_stands_where_it_belongs_only(agent: Agent, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    client, turns = agent(), {"session_id": CANARY, "messages": [{"role": "user", "text": f"I love {CANARY}"}]}
    once = {"Idempotency-Key": "k-1"}
    assert client.put(f"{SUBJECT}/facts/pet", {"value": CANARY}, "application/json", headers=once).status_code == 201
    assert (
        client.post(f"{SUBJECT}/turns", turns, "application/json", headers={"Idempotency-Key": "k-2"}).status_code
        == 202
    )
    assert CANARY in client.post(f"{SUBJECT}/context", {"message": CANARY}, "application/json").content.decode()
    agent(auth.PROPOSE).put(f"{SUBJECT}/facts/other", {"value": CANARY}, "application/json")
    client.delete(f"{SUBJECT}/facts/pet")
    for model in apps.get_models():
        held = repr(list(model._default_manager.values()))
        assert CANARY not in held or model.__name__ in MAY_HOLD, model.__name__
    assert CANARY not in logged(caplog)
