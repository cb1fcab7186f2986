"""Every tool against every kind of caller: an exact table, as for REST; and what no caller can do to the server."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from django.test import Client
from django.utils import timezone
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from pytest_django import Settings

from agent_bridge import auth, mcp_server
from agent_bridge.models import AgentKey
from memory_portal import store
from memory_portal.models import FactRead, MemoryFact
from tests.figures import Figure
from tests.mcp_caller import ERAS, MCP, NEW, Caller, token_of
from tests.people import person

pytestmark = pytest.mark.django_db

Agent = Callable[..., Client]

# tool, arguments, and each scope that suffices
TABLE: list[tuple[str, dict[str, Any], set[str]]] = [
    ("get_preferences", {}, {auth.READ}),
    ("recall_memories", {"topic": "seat"}, {auth.READ}),
    ("save_memory", {"key": "meal", "value": "Vegetarian"}, {auth.WRITE, auth.PROPOSE}),
    ("forget_memory", {"key": "seat"}, {auth.DELETE}),
]
TOOLS = pytest.mark.parametrize(("tool", "arguments", "enough"), TABLE, ids=[row[0] for row in TABLE])
IN_BOTH_ERAS = pytest.mark.parametrize("era", ERAS)


@pytest.fixture(autouse=True)
def writing(settings: Settings, tmp_path: Path) -> None:
    """The deployment that allows the most."""
    text = Path(settings.MEMORY_POLICY).read_text("utf-8").replace('tools = "read"', 'tools = "write"')
    settings.MEMORY_POLICY = tmp_path / "write.toml"
    settings.MEMORY_POLICY.write_text(text, "utf-8")


@pytest.fixture
def seats(db: None) -> None:
    """Two customers of one airline and one of a shop, all with a fact under the same key."""
    for name, profile in (("alice", "airline"), ("bob", "airline"), ("carol", "grocery")):
        person(name, profile=profile).fact("seat", f"Seat of {name}")


def code(answer: Any) -> tuple[int, str]:
    assert answer["Content-Type"] == "application/problem+json"
    return answer.status_code, answer.json()["code"]


def test_the_table_holds_every_tool_there_is(agent: Agent) -> None:
    assert set(Caller(token_of(agent())).tools()) == {tool for tool, _, _ in TABLE}


@TOOLS
@IN_BOTH_ERAS
def test_no_token_no_answer(tool: str, arguments: dict[str, Any], enough: set[str], era: str) -> None:
    for shown, why in (("", "key_missing"), ("mps_e30:x", "key_unknown"), ("hello", "key_malformed")):
        answer = Caller(shown, era).send("tools/call", name=tool, arguments=arguments)
        assert code(answer) == (401, why)
        assert answer["WWW-Authenticate"].startswith("Bearer ")


@TOOLS
@IN_BOTH_ERAS
def test_a_key_is_no_token(agent: Agent, tool: str, arguments: dict[str, Any], enough: set[str], era: str) -> None:
    key = agent().defaults["HTTP_AUTHORIZATION"].removeprefix("Bearer ")
    answer = Caller(key, era).send("tools/call", name=tool, arguments=arguments)
    assert code(answer) == (403, "session_needed")
    assert "POST sessions" in answer.json()["detail"]


@TOOLS
@pytest.mark.parametrize("method", ["tools/call", "tools/list", "server/discover", "initialize", "ping"])
@pytest.mark.parametrize("state", ["key_revoked", "key_expired"])
def test_a_dead_key_takes_its_tokens_along(
    agent: Agent, tool: str, arguments: dict[str, Any], enough: set[str], method: str, state: str
) -> None:
    caller = Caller(token_of(agent()))
    field = {"key_revoked": "revoked_at", "key_expired": "expires_at"}[state]
    AgentKey.objects.update(**{field: timezone.now()})
    assert code(caller.send(method, name=tool, arguments=arguments)) == (401, state)


@TOOLS
def test_a_token_ends_by_itself(agent: Agent, tool: str, arguments: dict[str, Any], enough: set[str]) -> None:
    caller = Caller(token_of(agent(), minutes=5))
    with mock.patch.object(timezone, "now", return_value=timezone.now() + timedelta(minutes=5)):
        assert code(caller.send("tools/call", name=tool, arguments=arguments)) == (401, "session_expired")


@TOOLS
@IN_BOTH_ERAS
def test_each_scope_opens_what_the_table_says_and_no_more(
    seats: None, agent: Agent, tool: str, arguments: dict[str, Any], enough: set[str], era: str
) -> None:
    for scope in auth.SCOPES:
        caller = Caller(token_of(agent(scope)), era)
        answer = caller.send("tools/call", name=tool, arguments=arguments)
        if scope in enough:
            assert caller.call(tool, **arguments)[0], scope
        elif scope in mcp_server.SCOPES:
            assert answer.json()["error"]["message"] == f"Unknown tool: '{tool}'", scope
        else:
            assert code(answer) == (403, "scope_missing"), scope


@TOOLS
def test_what_the_key_loses_its_tokens_lose(
    agent: Agent, tool: str, arguments: dict[str, Any], enough: set[str]
) -> None:
    caller = Caller(token_of(agent()))
    AgentKey.objects.update(scopes=[auth.TURNS])
    assert code(caller.send("tools/call", name=tool, arguments=arguments)) == (403, "scope_missing")


@TOOLS
def test_no_argument_and_no_header_reaches_another_customer(
    seats: None, agent: Agent, tool: str, arguments: dict[str, Any], enough: set[str], figure: Figure
) -> None:
    caller = Caller(token_of(agent(), "alice"))
    for extra in ({"subject_id": "bob"}, {"customer": "bob"}, {"profile": "grocery"}):
        text, well = caller.call(tool, **arguments, **extra)
        assert (text.startswith("Invalid arguments"), well) == (True, False)
    params = {"name": tool, "arguments": arguments, "subject_id": "bob"}
    headers = {"Authorization": f"Bearer {caller.token}", "X-Subject-Id": "bob", "Mcp-Session-Id": "bob"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer = Client().post(MCP, body, "application/json", headers=headers)
    assert "Seat of bob" not in answer.content.decode()
    assert "Seat of carol" not in answer.content.decode()
    held = set(MemoryFact.objects.exclude(customer__subject_id="alice").values_list("key", "value"))
    assert held == {("seat", "Seat of bob"), ("seat", "Seat of carol")}
    figure("W1", "every MCP tool with another customer's name in arguments and headers: 0 reached")


def test_one_subject_id_of_two_shops_is_two_customers(seats: None, agent: Agent) -> None:
    person("alice", profile="grocery").fact("seat", "Seat at the bar")
    text, _ = Caller(token_of(agent(profile="airline"), "alice")).call("get_preferences")
    assert "Seat of alice" in text
    assert "bar" not in text


def test_nobody_and_somebody_without_facts_are_the_same_bytes(seats: None, agent: Agent) -> None:
    person("dora", profile="airline")
    client = agent()
    for tool, arguments, _ in TABLE[:2]:
        empty, unknown, shop = (
            Caller(token_of(client, who)).send("tools/call", name=tool, arguments=arguments)
            for who in ("dora", "nobody", "carol")
        )
        assert empty.content == unknown.content == shop.content
        told = [
            {name: answer.headers[name] for name in answer.headers if name != "X-Request-ID"}
            for answer in (empty, unknown)
        ]
        assert told[0] == told[1], "but for the call's own name"


def test_a_session_id_is_no_login() -> None:
    answer = Client().post(MCP, "{}", "application/json", headers={"Mcp-Session-Id": "0" * 32})
    assert code(answer) == (401, "key_missing")


def test_a_signed_in_browser_is_nobody_here(agent: Agent) -> None:
    customer = person("alice", profile="airline")
    assert code(customer.client.post(MCP, "{}", "application/json")) == (401, "key_missing")
    headers = {"Authorization": f"Bearer {token_of(agent(), 'bob')}"}
    answer = customer.client.post(
        MCP,
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_preferences"}},
        "application/json",
        headers=headers,
    )
    assert "Nothing is remembered." in answer.content.decode()
    assert "Cookie" not in answer.get("Vary", "")
    assert not answer.cookies


# --- what a browser or a proxy may not do -----------------------------------------------------------------------------


def test_another_sites_page_is_turned_away(agent: Agent) -> None:
    headers = {"Authorization": f"Bearer {token_of(agent())}"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    for origin, status in (
        ("https://evil.example", 403),
        ("null", 403),
        ("http://testserver.evil.example", 403),
        ("http://[", 403),
        ("http://testserver", 200),
    ):
        answer = Client().post(MCP, body, "application/json", headers=headers | {"Origin": origin})
        assert answer.status_code == status, origin


@pytest.mark.parametrize("path", [MCP, "/bridge/v1/health", "/bridge/nowhere"])
def test_another_host_name_is_turned_away_with_a_problem(path: str) -> None:
    answer = Client(headers={"Host": "evil.example"}).post(path, {}, "application/json")
    assert code(answer) == (400, "bad_request")
    assert "evil" not in answer.content.decode()
    assert answer["Cache-Control"] == "no-store"


def test_the_pages_keep_their_own_answer_to_another_host_name() -> None:
    answer = Client(headers={"Host": "evil.example"}).get("/sign-in/")
    assert answer.status_code == 400
    assert answer["Content-Type"].startswith("text/html")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"])
def test_only_post_is_taken(agent: Agent, method: str) -> None:
    answer = agent().generic(method, MCP)
    assert (answer.status_code, answer["Allow"]) == (405, "POST")


def test_a_token_in_the_address_is_refused(agent: Agent) -> None:
    answer = Client().post(f"{MCP}?token={token_of(agent())}", "{}", "application/json")
    assert code(answer) == (400, "key_in_query")


def test_calls_are_counted_like_all_others(agent: Agent, settings: Settings) -> None:
    caller = Caller(token_of(agent()))
    settings.BRIDGE_CALLS_PER_KEY = 2
    assert caller.tools()
    answer = caller.send("tools/list")
    assert code(answer) == (429, "too_many_calls")
    assert answer["Retry-After"]


def test_no_answer_may_be_kept_or_carries_a_cookie(agent: Agent) -> None:
    for caller in (Caller(token_of(agent())), Caller("")):
        answer = caller.send("tools/call", name="get_preferences", arguments={})
        assert answer["Cache-Control"] == "no-store"
        assert not answer.cookies


# --- hostile input ----------------------------------------------------------------------------------------------------


def rpc(method: str = "tools/list", *, request_id: str = "1", params: str = "{}") -> bytes:
    return f'{{"jsonrpc":"2.0","id":{request_id},"method":"{method}","params":{params}}}'.encode()


def recall(arguments: str) -> bytes:
    return rpc("tools/call", params=f'{{"name":"recall_memories","arguments":{arguments}}}')


HOSTILE: list[tuple[bytes, int]] = [
    (b"{", 400),
    (b"[]", 422),
    (b'"x"', 422),
    (b"null", 422),
    (b"{}", 400),
    (b"[" * 30_000 + b"]" * 30_000, 400),
    (rpc(params='{"a":' * 200 + "1" + "}" * 200), 422),
    (recall(r'{"topic":"a\u0000b"}'), 422),
    (recall(r'{"topic":"\ud800"}'), 400),
    (recall("[]"), 200),
    (rpc("tools/call", params='{"name":7}'), 200),
    (rpc(request_id="9" * 400), 400),
    (rpc(request_id="1e999"), 400),
    (rpc(request_id="null"), 400),
    (rpc("\xff").replace(b"\xc3\xbf", b"\xff"), 400),
    (b'{"jsonrpc":"2.0","method":"notifications/initialized"}', 202),
    (rpc("tools/call", params='{"name":"get_preferences","requestState":{"a":1},"inputResponses":7}'), 200),
    (rpc(params='{"cursor":{}}'), 200),
    (b" " * 10_000_000, 413),
]


@pytest.mark.parametrize(("body", "status"), HOSTILE, ids=range(len(HOSTILE)))
def test_whatever_is_sent_is_answered_and_never_with_a_5xx(agent: Agent, body: bytes, status: int) -> None:
    headers = {"Authorization": f"Bearer {token_of(agent())}"}
    assert Client().post(MCP, body, "application/json", headers=headers).status_code == status


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=10,
)
NAMES = st.sampled_from([row[0] for row in TABLE])
ARGUMENTS = st.dictionaries(st.sampled_from(["topic", "key", "value", "category", "x"]), TEXT | ANY, max_size=5) | ANY
PARAMS = ANY | st.fixed_dictionaries(
    {"name": NAMES | ANY, "arguments": ARGUMENTS},
    optional={"_meta": ANY, "requestState": ANY, "inputResponses": ANY, "cursor": ANY},
)
METHODS = st.sampled_from(["tools/call", "tools/list", "server/discover", "initialize", "ping"]) | TEXT
HEADER = st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=80)


def test_no_call_breaks_the_server_whatever_it_says(agent: Agent) -> None:
    caller = Caller(token_of(agent()))

    @examples(max_examples=400, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(METHODS, PARAMS, st.sampled_from(ERAS) | HEADER, st.none() | HEADER, ANY)
    def check(method: str, params: Any, version: str, name: str | None, request_id: Any) -> None:
        if isinstance(params, dict) and version == NEW:
            params.setdefault(
                "_meta",
                {
                    "io.modelcontextprotocol/protocolVersion": NEW,
                    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
                },
            )
        named = params.get("name") if isinstance(params, dict) else None
        shown = name or (named if isinstance(named, str) and named.isascii() and named.isprintable() else "x")
        headers = {
            "Authorization": f"Bearer {caller.token}",
            "MCP-Protocol-Version": version,
            "Mcp-Method": method if method.isascii() and method.isprintable() else "x",
            "Mcp-Name": shown,
        }
        body = json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}).encode()
        answer = Client().post(MCP, body, "application/json", headers=headers)
        assert answer.status_code in (200, 202, 400, 404, 413, 422), answer.content

    check()


# --- what stays out of the logs ---------------------------------------------------------------------------------------

CANARY = "zebra-canary-4711"


def logged(caplog: pytest.LogCaptureFixture) -> str:
    """Every log line, with all that a formatter could print of it, but the database's own, which a deployment has off."""
    records = [record for record in caplog.records if not record.name.startswith("django.db")]
    return "\n".join(logging.Formatter().format(record) + repr(vars(record)) for record in records)


@TOOLS
def test_no_argument_and_no_answer_is_logged(
    agent: Agent, caplog: pytest.LogCaptureFixture, tool: str, arguments: dict[str, Any], enough: set[str]
) -> None:
    customer = person("alice", profile="airline")
    customer.fact("seat", f"Seat of the {CANARY}")
    caplog.set_level(logging.DEBUG)
    caller = Caller(token_of(agent()))
    told = [
        caller.call(tool, **dict.fromkeys(arguments, CANARY))[0],
        caller.call(tool, **arguments)[0],
        caller.call(tool, **{CANARY: CANARY})[0],
        caller.send(CANARY, **{CANARY: CANARY}).content.decode(),
        caller.send("tools/call", name=CANARY, arguments={}).content.decode(),
    ]
    assert len(told) == 5
    assert CANARY not in logged(caplog)


def test_what_breaks_inside_a_tool_is_logged_by_its_place_only(
    agent: Agent, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object, **__: object) -> None:
        raise RuntimeError(CANARY)

    monkeypatch.setattr(store, "lookup", breaks, raising=False)
    text, well = Caller(token_of(agent())).call("recall_memories", topic=CANARY)
    assert (text.startswith("Something broke on our side."), well) == (True, False)
    assert "'bridge_broke'" in logged(caplog)
    assert "'error': 'RuntimeError'" in logged(caplog)
    assert CANARY not in logged(caplog) + text
    assert not FactRead.objects.exists()
