"""Handing over a conversation: what is kept of it, when the answer comes, and what is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agent_bridge import auth
from agent_bridge.models import ExtractionJob
from memory_portal import store
from memory_portal.enums import ActorKind
from memory_portal.models import Customer

pytestmark = pytest.mark.django_db

Agent = Callable[..., Client]
TURNS = "/bridge/v1/subjects/alice/turns"
CUSTOMER = store.Actor(ActorKind.CUSTOMER)

BOOKING = [
    {"role": "user", "content": "我長途航班通常坐走道，而且不要紅眼班機"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "CANARY-thought", "signature": "x"},
            {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": "t1", "name": "search", "input": {"q": "CANARY-input"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "CANARY-result"}]}
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "CI100 has three seats.", "citations": None}]},
    {
        "role": "user",
        "content": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "CANARY-image"}},
            {"type": "text", "text": "Thanks,"},
            {"type": "text", "text": "that one."},
        ],
    },
]


def hand_over(client: Client, messages: object = BOOKING, **more: object) -> Any:
    return client.post(TURNS, {"session_id": "s-1", "messages": messages, **more}, "application/json")


def kept() -> list[dict[str, Any]]:
    return list(ExtractionJob.objects.get().turns)


def test_a_conversation_is_kept_before_the_answer(agent: Agent) -> None:
    client = agent(auth.TURNS)
    answer = hand_over(client)
    assert answer.status_code == 202
    told = answer.json()
    job = ExtractionJob.objects.get(pk=told["job_id"])
    assert told == {"job_id": str(job.pk), "state": "queued", "kept": 4, "dropped": 1}
    assert job.source_session_id == store.session_tag("s-1")
    assert (job.agent, job.profile) == ("Clearsky assistant", "airline")
    asked = client.get(f"/bridge/v1/jobs/{job.pk}")
    assert asked.status_code == 200
    assert asked.json()["state"] == "queued"


def test_only_the_text_of_user_and_assistant_is_kept(agent: Agent) -> None:
    hand_over(agent())
    assert [(turn["role"], turn["text"]) for turn in kept()] == [
        ("user", "我長途航班通常坐走道，而且不要紅眼班機"),
        ("assistant", "Let me look."),
        ("assistant", "CI100 has three seats."),
        ("user", "Thanks,\nthat one."),
    ]
    assert "CANARY" not in repr(ExtractionJob.objects.values())


def test_plain_role_and_text_will_do(agent: Agent) -> None:
    assert hand_over(agent(), [{"role": "user", "text": "I always sit on the aisle"}]).status_code == 202
    assert [turn["text"] for turn in kept()] == ["I always sit on the aisle"]


def test_a_conversation_of_tools_only_makes_no_job(agent: Agent) -> None:
    answer = hand_over(agent(), [BOOKING[2], {"role": "user", "content": "  "}, {"role": "assistant", "content": []}])
    assert answer.status_code == 200
    assert answer.json() == {"job_id": None, "state": "nothing_to_read", "kept": 0, "dropped": 3}
    assert not ExtractionJob.objects.exists()


def test_times_are_the_messages_own_then_the_calls_then_now(agent: Agent) -> None:
    yesterday, ahead = timezone.now() - timedelta(days=1), timezone.now() + timedelta(days=9)
    messages = [
        {"role": "user", "text": "one", "said_at": "2026-05-01T10:00:00+02:00"},
        {"role": "user", "text": "two"},
        {"role": "user", "text": "three", "said_at": ahead.isoformat()},
    ]
    hand_over(agent(), messages, said_at=yesterday.isoformat())
    said = [datetime.fromisoformat(turn["said_at"]) for turn in kept()]
    assert said[:2] == [datetime(2026, 5, 1, 8, tzinfo=UTC), yesterday]
    assert timezone.now() - timedelta(minutes=1) < said[2] <= timezone.now()


def test_a_job_is_its_own_agents_only(agent: Agent) -> None:
    job_id = hand_over(agent()).json()["job_id"]
    other = agent(name="Other assistant")
    theirs, nobodys = other.get(f"/bridge/v1/jobs/{job_id}"), other.get(f"/bridge/v1/jobs/{timezone.now():%f}")
    assert theirs.status_code == nobodys.status_code == 404
    assert theirs.content == nobodys.content


def test_nothing_is_kept_of_a_customer_who_paused_learning(agent: Agent) -> None:
    store.submit(store.Subject("alice", "airline"), [], CUSTOMER, now=timezone.now())
    store.pause(Customer.objects.get().pk, "learning", CUSTOMER, now=timezone.now())
    answer = hand_over(agent())
    assert (answer.status_code, answer.json()["reason"]) == (409, "learning_paused")
    assert not ExtractionJob.objects.exists()


def user(**message: object) -> dict[str, object]:
    return {"messages": [{"role": "user", **message}]}


FIRST = "#/messages/0"


@pytest.mark.parametrize(
    ("body", "pointer", "code"),
    [
        (user(role="system", text="x"), f"{FIRST}/role", "literal_error"),
        (user(role="tool", text="x"), f"{FIRST}/role", "literal_error"),
        (user(role=None, text="x"), f"{FIRST}/role", "literal_error"),
        ({"messages": [{"text": "x"}]}, f"{FIRST}/role", "missing"),
        ({"messages": ["x"]}, FIRST, "model_type"),
        ({"messages": []}, "#/messages", "too_short"),
        ({"messages": [{"role": "user", "text": "x"}] * 201}, "#/messages", "too_long"),
        ({"messages": "x"}, "#/messages", "list_type"),
        ({}, "#/messages", "missing"),
        (user(), FIRST, "content"),
        (user(content="x", text="x"), FIRST, "content"),
        (user(content=7), f"{FIRST}/content", "list_type"),
        (user(content=["x"]), f"{FIRST}/content/0", "model_type"),
        (user(content=[{"text": "x"}]), f"{FIRST}/content/0/type", "missing"),
        (user(content=[{"type": "text"}]), f"{FIRST}/content/0", "missing"),
        (user(content=[{"type": "text", "text": 7}]), f"{FIRST}/content/0/text", "string_type"),
        (user(content=[{"type": "text", "text": "x"}] * 201), f"{FIRST}/content", "too_long"),
        (user(text="x", name="y"), f"{FIRST}/name", "extra_forbidden"),
        (user(text="x") | {"subject_id": "bob"}, "#/subject_id", "extra_forbidden"),
        (user(text="x", said_at="yesterday"), f"{FIRST}/said_at", "datetime_from_date_parsing"),
        (user(text="x", said_at="2026-05-01T10:00:00"), f"{FIRST}/said_at", "timezone_aware"),
        (user(text="x", said_at="0001-01-01T00:00:00+14:00"), f"{FIRST}/said_at", "date"),
        (user(text="x", said_at=1e300), f"{FIRST}/said_at", "date"),
        (user(text="x") | {"session_id": ""}, "#/session_id", "string_too_short"),
        (user(text="x") | {"session_id": "x" * 201}, "#/session_id", "string_too_long"),
        (user(text="x\0y"), f"{FIRST}/text", "null_character"),
        (user(content=[{"type": "tool_result", "content": "\0"}]), f"{FIRST}/content/0/content", "null_character"),
    ],
)
def test_a_wrong_field_is_named(agent: Agent, body: dict[str, object], pointer: str, code: str) -> None:
    answer = agent().post(TURNS, {"session_id": "s-1", **body}, "application/json")
    assert answer.status_code == 422
    assert (pointer, code) in [(error["pointer"], error["code"]) for error in answer.json()["errors"]]
    assert not ExtractionJob.objects.exists()


def test_a_broken_limit_is_named_with_its_number(agent: Agent) -> None:
    answer = hand_over(agent(), [{"role": "user", "text": "x"}] * 201)
    assert answer.json()["errors"][0]["limit"] == 200


def test_a_conversation_may_be_a_megabyte_and_no_more(agent: Agent) -> None:
    client = agent()
    long = [{"role": "user", "text": "word " * 1_600}] * 120
    assert hand_over(client, long).status_code == 202
    answer = hand_over(client, [{"role": "user", "text": "x" * 1_000_000}])
    assert (answer.status_code, answer.json()["code"], answer.json()["limit"]) == (413, "too_large", 1_000_000)
    assert ExtractionJob.objects.count() == 1
