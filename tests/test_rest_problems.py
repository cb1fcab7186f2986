"""Hostile input: each kind gets its own 4xx as problem+json that names field and limit. Never a 500, never HTML."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.db import OperationalError
from django.test import Client

from agent_bridge import problems
from agent_bridge.problems import KINDS
from memory_portal import store
from memory_portal.enums import Reason

pytestmark = pytest.mark.django_db

Agent = Callable[..., Client]
SUBJECT = "/bridge/v1/subjects/alice"
FACT = f"{SUBJECT}/facts/seat"
DOCS = Path(__file__).resolve().parent.parent / "docs" / "bridge.md"


def problem(answer: Any) -> tuple[int, str, str | None]:
    """Status, code and the first pointer; and that it is a whole problem."""
    assert answer["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert set(body) >= {"type", "title", "status", "detail", "code"}
    assert body["status"] == answer.status_code == KINDS[body["code"]].status
    assert body["type"] == f"/bridge/v1/docs#{body['code']}"
    return answer.status_code, body["code"], body["errors"][0]["pointer"] if "errors" in body else None


def send(client: Client, body: bytes, kind: str = "application/json", address: str = FACT, **more: Any) -> Any:
    return client.generic("PUT" if address == FACT else "POST", address, body, kind, **more)


DEEP = b'{"value":' + b"[" * 30 + b"]" * 30 + b"}"
BODIES: list[tuple[str, bytes, tuple[int, str, str | None]]] = [
    ("nothing", b"", (422, "invalid", "#")),
    ("no JSON", b"{", (400, "bad_json", None)),
    ("text", b"hello", (400, "bad_json", None)),
    ("single quotes", b"{'value':'x'}", (400, "bad_json", None)),
    ("NaN", b'{"value":NaN}', (400, "bad_json", None)),
    ("trailing comma", b'{"value":"x",}', (400, "bad_json", None)),
    ("two documents", b'{"value":"x"}{}', (400, "bad_json", None)),
    ("a byte order mark", b'\xef\xbb\xbf{"value":"x"}', (400, "bad_json", None)),
    ("UTF-16", '{"value":"x"}'.encode("utf-16"), (400, "bad_json", None)),
    ("invalid UTF-8", b'{"value":"\xff"}', (400, "bad_json", None)),
    ("overlong UTF-8", b'{"value":"\xc0\x80"}', (400, "bad_json", None)),
    ("half a surrogate pair", b'{"value":"\\ud800"}', (400, "bad_json", None)),
    ("a raw control character", b'{"value":"a\x01b"}', (400, "bad_json", None)),
    ("nesting without end", b"[" * 5_000, (400, "bad_json", None)),
    ("nesting to the limit of the parser", b"[" * 5_000 + b"]" * 5_000, (400, "bad_json", None)),
    ("deep nesting", DEEP, (422, "invalid", "#/value" + "/0" * 24)),
    ("a list", b"[]", (422, "invalid", "#")),
    ("a string", b'"x"', (422, "invalid", "#")),
    ("null", b"null", (422, "invalid", "#")),
    ("U+0000", b'{"value":"a\\u0000b"}', (422, "invalid", "#/value")),
    ("U+0000 in a name", b'{"a\\u0000b":1,"value":"x"}', (422, "invalid", "#")),
    ("an unknown field", b'{"value":"x","colour":1}', (422, "invalid", "#/colour")),
    ("a field of another's", b'{"value":"x","subject_id":"bob"}', (422, "invalid", "#/subject_id")),
    ("no value", b"{}", (422, "invalid", "#/value")),
    ("an empty value", b'{"value":""}', (422, "invalid", "#/value")),
    ("a number for text", b'{"value":7}', (422, "invalid", "#/value")),
    ("null for text", b'{"value":null}', (422, "invalid", "#/value")),
    ("an object for text", b'{"value":{"$ne":""}}', (422, "invalid", "#/value")),
    ("a long value", json.dumps({"value": "x" * 201}).encode(), (422, "invalid", "#/value")),
    ("a very long value", json.dumps({"value": "x" * 60_000}).encode(), (422, "invalid", "#/value")),
    ("a long category", json.dumps({"value": "x", "category": "x" * 33}).encode(), (422, "invalid", "#/category")),
    ("many topics", json.dumps({"value": "x", "topics": ["x"] * 13}).encode(), (422, "invalid", "#/topics")),
    ("a long topic", json.dumps({"value": "x", "topics": ["x" * 41]}).encode(), (422, "invalid", "#/topics/0")),
    ("a huge number", b'{"value":"x","said_at":1' + b"0" * 400 + b"}", (400, "bad_json", None)),
    ("a date that is none", b'{"value":"x","said_at":"2026-02-30T00:00:00Z"}', (422, "invalid", "#/said_at")),
    ("a date before dates", b'{"value":"x","said_at":"0000-01-01T00:00:00Z"}', (422, "invalid", "#/said_at")),
    ("65 kB", b'{"value":"' + b"x" * 65_536 + b'"}', (413, "too_large", None)),
    ("10 MB", b"x" * 10_000_000, (413, "too_large", None)),
]


@pytest.mark.parametrize(("body", "expected"), [row[1:] for row in BODIES], ids=[row[0] for row in BODIES])
def test_a_hostile_body_is_told_what_is_wrong(agent: Agent, body: bytes, expected: tuple[int, str, str | None]) -> None:
    assert problem(send(agent(), body)) == expected


@pytest.mark.parametrize(
    ("body", "limit"),
    [
        (b'{"value":"' + b"x" * 201 + b'"}', 200),
        (b'{"value":"x","topics":["' + b"x" * 41 + b'"]}', 40),
        (DEEP, 24),
    ],
)
def test_the_limit_stands_beside_the_field(agent: Agent, body: bytes, limit: int) -> None:
    assert send(agent(), body).json()["errors"][0]["limit"] == limit


def test_the_size_limit_is_named(agent: Agent) -> None:
    assert send(agent(), b"x" * 65_537).json()["limit"] == 65_536


@pytest.mark.parametrize(
    "kind",
    ["", "text/plain", "text/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "json"],
)
def test_only_json_is_taken(agent: Agent, kind: str) -> None:
    assert problem(send(agent(), b'{"value":"x"}', kind))[:2] == (415, "unsupported_media_type")


def test_json_with_parameters_is_json(agent: Agent) -> None:
    assert send(agent(), b'{"value":"x"}', "Application/JSON; charset=utf-8").status_code == 201


@pytest.mark.parametrize(
    ("length", "code"),
    [("x", "bad_length"), ("-1", "bad_length"), ("1e3", "bad_length"), ("+5", "bad_length"), ("9" * 30, "bad_length")],
)
def test_a_wrong_length_is_refused(agent: Agent, length: str, code: str) -> None:
    answer = send(agent(), b'{"value":"x"}', CONTENT_LENGTH=length)
    assert problem(answer)[:2] == (400, code)


def test_a_body_without_a_length_is_refused(agent: Agent) -> None:
    answer = send(agent(), b'{"value":"x"}', CONTENT_LENGTH="", HTTP_TRANSFER_ENCODING="chunked")
    assert problem(answer)[:2] == (411, "length_required")


def test_less_than_was_announced_is_refused(agent: Agent) -> None:
    answer = send(agent(), b"", CONTENT_LENGTH="100", **{"wsgi.input": io.BytesIO(b'{"value":"x"}')})
    assert problem(answer)[:2] == (400, "bad_length")


SEGMENTS = [
    ("x" * 129, 422, "subject_id"),
    ("%00", 422, "subject_id"),
    ("a%0Ab", 422, "subject_id"),
    ("%C2%85", 422, "subject_id"),
    ("~", 422, "subject_id"),
    ("~!!", 422, "subject_id"),
    ("~AA", 422, "subject_id"),
    ("~_w", 422, "subject_id"),
    ("~Y", 422, "subject_id"),
]


@pytest.mark.parametrize(("segment", "status", "pointer"), SEGMENTS)
@pytest.mark.parametrize("rest", ["context", "facts", "facts/seat", "purge_generation"])
def test_a_customer_id_that_cannot_be_is_refused(
    agent: Agent, segment: str, status: int, pointer: str, rest: str
) -> None:
    answer = agent().get(f"/bridge/v1/subjects/{segment}/{rest}")
    assert (problem(answer)[0], problem(answer)[2]) == (status, pointer)


def test_an_id_of_128_characters_of_any_script_is_an_id(agent: Agent) -> None:
    for subject in ("x" * 128, "客" * 128, "auth0|5f7c8ec7c33c6c004bbafe82", "a@b.example", "%FF", "💺"):
        assert agent().get("/bridge/v1/subjects/" + quote(subject, safe="") + "/context").status_code == 200


@pytest.mark.parametrize(
    ("address", "pointer"),
    [
        (f"{SUBJECT}/context?message=secret", "message"),
        (f"{SUBJECT}/context?format=xml", "format"),
        (f"{SUBJECT}/context?session_id=", "session_id"),
        (f"{SUBJECT}/facts?limit=0", "limit"),
        (f"{SUBJECT}/facts?limit=101", "limit"),
        (f"{SUBJECT}/facts?limit=x", "limit"),
        (f"{SUBJECT}/facts?after=" + "x" * 65, "after"),
        (f"{SUBJECT}/facts?cursor=%FF", "cursor"),
        (f"{SUBJECT}/facts/seat?x=1", "x"),
    ],
)
def test_a_wrong_parameter_is_named(agent: Agent, address: str, pointer: str) -> None:
    answer = agent().get(address)
    assert problem(answer) == (422, "invalid", pointer)
    assert "secret" not in answer.content.decode()


def test_more_parameters_than_anybody_needs_are_refused(agent: Agent) -> None:
    answer = agent().get(f"{SUBJECT}/context?" + "&".join(f"p{number}=1" for number in range(1_001)))
    assert problem(answer)[:2] == (400, "bad_request")


@pytest.mark.parametrize("name", ["", " ", "x" * 129, "ünï", "a b"])
def test_a_strange_idempotency_key_is_refused(agent: Agent, name: str) -> None:
    answer = send(agent(), b'{"value":"x"}', headers={"Idempotency-Key": name})
    assert problem(answer) == (422, "invalid", "Idempotency-Key")


@pytest.mark.parametrize(
    "address",
    [
        "/bridge/",
        "/bridge/v1",
        "/bridge/v1/",
        "/bridge/v1/nothing",
        "/bridge/v2/health",
        "/bridge/v1/health/",
        "/bridge/v1/subjects//context",
        "/bridge/v1/subjects/alice/context/",
        "/bridge/v1/subjects/alice/facts/",
        "/bridge/v1/subjects/alice/facts/a/b",
        "/bridge/v1/jobs/../health",
        "/bridge/%00",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_address_that_leads_nowhere_is_a_problem_too(agent: Agent, address: str, method: str) -> None:
    assert problem(agent().generic(method, address))[:2] == (404, "not_found")


def test_a_database_that_is_away_is_said_plainly(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*args: object, **kwargs: object) -> None:
        raise OperationalError("the words of the database")

    client = agent()
    monkeypatch.setattr("agent_bridge.rest.store.context", away)
    answer = client.get(f"{SUBJECT}/context")
    assert problem(answer)[:2] == (503, "unavailable")
    assert answer["Retry-After"] == "1"
    assert "words" not in answer.content.decode()


def test_what_nobody_foresaw_is_logged_without_its_words(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise RuntimeError("CANARY value")

    client = agent()
    client.raise_request_exception = False
    monkeypatch.setattr("agent_bridge.rest.store.context", broken)
    answer = client.get(f"{SUBJECT}/context")
    assert problem(answer)[:2] == (500, "failed")
    logged = "\n".join(logging.Formatter().format(record) for record in caplog.records)
    assert "bridge_broke" in logged
    assert "RuntimeError" in logged
    assert "CANARY" not in answer.content.decode() + logged


# --- the table --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_of_the_store_has_an_answer(reason: Reason) -> None:
    answer = problems.answer(problems.of_reason(reason))
    assert answer.status_code in (409, 422, 503)


def test_every_error_of_the_store_has_an_answer() -> None:
    kinds = [
        kind for kind in vars(store).values() if isinstance(kind, type) and issubclass(kind, store.MemoryStoreError)
    ]
    samples = [
        store.InvalidDraft("value", Reason.TOO_LONG, "value takes 200", limit=200),
        store.MemoryWriteRejected(Reason.CARD),
        store.NotFound(),
        store.Conflict(None),
        store.MemoryDisabled(),
        store.BadCursor(),
        store.LostCursor(),
        store.EmailTaken(),
    ]
    of_staff = {store.WrongMoment}  # of the ledger of requests, which no agent reaches
    assert {type(sample) for sample in samples} | {store.MemoryStoreError} == set(kinds) - of_staff
    assert [problems.of_store(sample).code for sample in samples] == [
        "invalid",
        "rejected",
        "not_found",
        "changed_meanwhile",
        "memory_disabled",
        "invalid",
        "cursor_lost",
        "email_taken",
    ]


def test_every_code_that_is_raised_is_in_the_table_and_documented() -> None:
    raised: set[str] = set()
    for file in (Path(problems.__file__).parent).glob("*.py"):
        raised |= set(re.findall(r'(?:Problem|NotAuthenticated)\(\s*"([a-z_]+)"', file.read_text("utf-8")))
    assert raised <= set(KINDS)
    assert set(KINDS) - raised <= {"rejected", "refused"}
    documented = set(re.findall(r"^\| `([a-z_]+)` \|", DOCS.read_text("utf-8"), re.MULTILINE))
    assert documented == set(KINDS)


# --- the documentation ------------------------------------------------------------------------------------------------


def test_the_page_explains_every_problem_without_a_script() -> None:
    answer = Client().get("/bridge/v1/docs")
    page = answer.content.decode()
    assert answer.status_code == 200
    assert all(f'id="{code}"' in page for code in KINDS)
    assert "<script" not in page
    assert "style=" not in page
    assert not answer.cookies
    assert problem(Client().post("/bridge/v1/docs"))[:2] == (405, "method_not_allowed")


def test_the_schema_tells_scopes_headers_and_problems() -> None:
    schema = Client().get("/bridge/v1/openapi.json").json()
    assert schema["openapi"] == "3.1.0"
    write = schema["paths"]["/bridge/v1/subjects/{subject_id}/facts/{key}"]["put"]
    assert write["security"] == [{"KeyAuth": ["facts:write"]}, {"KeyAuth": ["facts:propose"]}]
    assert {"If-Match", "Idempotency-Key"} <= {parameter["name"] for parameter in write["parameters"]}
    assert list(write["responses"]["428"]["content"]) == ["application/problem+json"]
    assert schema["components"]["securitySchemes"]["KeyAuth"] == {"type": "http", "scheme": "bearer"}
