"""The schema tells the truth: whatever is sent, the answer has a documented status and shape, and is never a 500."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_bridge.rest import api

pytestmark = pytest.mark.django_db

SCHEMA = json.loads(json.dumps(api.get_openapi_schema(path_prefix="")))  # as a reader gets it
OPERATIONS = [(method.upper(), path) for path, methods in SCHEMA["paths"].items() for method in methods]

SEGMENTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="/"), min_size=1, max_size=140
) | st.just("x")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300) | st.sampled_from(
    ["", "user", "assistant", "text", "tool_result", "safety", "preference", "2026-05-01T10:00:00Z", "likes the aisle"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
NAMES = ["value", "category", "said_at", "session_id", "topics", "message", "messages", "topic", "limit", "format", "x"]
BLOCK = st.fixed_dictionaries({}, optional={"type": TEXTS, "text": TEXTS | JSON, "content": JSON})
MESSAGE = st.fixed_dictionaries(
    {}, optional={"role": TEXTS, "content": TEXTS | st.lists(BLOCK, max_size=3) | JSON, "text": TEXTS, "said_at": TEXTS}
)
BODIES = (
    st.dictionaries(st.sampled_from(NAMES), JSON, max_size=5)
    | st.fixed_dictionaries({"session_id": TEXTS, "messages": st.lists(MESSAGE, max_size=3)})
    | st.fixed_dictionaries({"value": TEXTS}, optional={"category": TEXTS, "topics": st.lists(TEXTS, max_size=3)})
    | JSON
)
RAW = BODIES.map(lambda body: json.dumps(body).encode()) | st.binary(max_size=60)
HEADER = st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=140) | st.sampled_from(['"1"', "*", "k"])
HEADERS = st.dictionaries(
    st.sampled_from(["If-Match", "If-None-Match", "Idempotency-Key", "Accept", "Accept-Language"]), HEADER, max_size=3
)


@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=[f"{method} {path}" for method, path in OPERATIONS])
def test_every_answer_is_documented(agent: Callable[..., Client], method: str, path: str) -> None:
    client = agent()
    documented = SCHEMA["paths"][path][method.lower()]["responses"]

    @settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.tuples(SEGMENTS, SEGMENTS), RAW, HEADERS)
    def check(names: tuple[str, str], body: bytes, headers: dict[str, str]) -> None:
        subject, other = (quote(name, safe="") for name in names)
        address = "/bridge/v1" + path.format(subject_id=subject, key=other, job_id=other, import_id=other)
        sent = b"" if method in ("GET", "DELETE") else body
        answer = client.generic(method, address, sent, "application/json", headers=headers)
        assert str(answer.status_code) in documented, (answer.status_code, answer.content)
        assert answer.status_code < 500
        conforms(answer, documented[str(answer.status_code)])

    check()


def conforms(answer: Any, documented: dict[str, Any]) -> None:
    if not documented.get("content"):
        assert not answer.content
        return
    kind = answer["Content-Type"].split(";")[0]
    assert kind in documented["content"]
    if kind.endswith("json"):
        name = documented["content"][kind]["schema"]["$ref"].rpartition("/")[2]
        fields = SCHEMA["components"]["schemas"][name]
        told = answer.json()
        assert set(told) <= set(fields["properties"])
        assert set(fields.get("required", ())) <= set(told)


@pytest.mark.parametrize(("method", "path"), [one for one in OPERATIONS if "{subject_id}" in one[1]])
@pytest.mark.parametrize("name", ["0/0", "alice/facts", "/", "a/facts/b"])
def test_an_id_sent_with_its_slash_gets_an_answer_that_is_documented(
    agent: Callable[..., Client], method: str, path: str, name: str
) -> None:
    """Whoever makes addresses of ids meets it first: the server decodes %2F before we see it."""
    address = "/bridge/v1" + path.format(subject_id=quote(name, safe=""), key="seat")
    answer = agent().generic(method, address, b"{}", "application/json")
    assert str(answer.status_code) in SCHEMA["paths"][path][method.lower()]["responses"]
    assert answer.status_code >= 400 or answer.json()
