"""The examples do what they say: against the real bridge, with a Messages API on loopback, and as written against `make demo`."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from django.utils import timezone

from agent_bridge import auth
from agent_bridge.client import BridgeMemoryStore, MemoryFact, Retries
from agent_bridge.models import ExtractionJob
from examples.agent_sdk_host import MemoryHooks, environment, mcp_server
from examples.commerce_host import RECALL, SKILL, Host, rules
from memory_portal import store
from tests.live import ROOT, Bridge, Demo, until
from tests.messages_server import KEY, MessagesServer, Reply, message
from tests.stub_bridge import Reply as BridgeReply
from tests.stub_bridge import Stub

MODEL = "claude-test"
SAID = "I always take oat milk"


@pytest.fixture
def address(live_server: Any, transactional_db: None) -> str:
    return f"{live_server.url}/bridge/v1"


@pytest.fixture
def key(transactional_db: None) -> str:
    return auth.issue("assistant", "grocery", auth.SCOPES, now=timezone.now())[1]


@pytest.fixture
def claude() -> Iterator[MessagesServer]:
    with MessagesServer() as server:
        server.will(message("Gladly."))
        yield server


def calls_recall(topic: object) -> Reply:
    block = {"type": "tool_use", "id": "toolu_1", "name": "recall_memories", "input": topic}
    return message("", stop="tool_use", content=[block])


def talking(
    act: Callable[[Host], Any], claude: MessagesServer, address: str, key: str, facts: tuple[MemoryFact, ...] = ()
) -> Any:
    """What comes of an act of a host that knows these facts of alice."""

    async def run() -> Any:
        async with (
            BridgeMemoryStore(address, key, timeout=30, retries=Retries(most=0)) as memory,
            AsyncAnthropic(api_key=KEY, base_url=claude.url, max_retries=0) as client,
        ):
            if facts:
                await memory.upsert_facts("alice", facts)
            host = Host(client, memory, "alice", model=MODEL, session_id="s-1", within=30)
            told = await act(host)
            await host.close()
            return told

    return asyncio.run(run())


def fenced(system: list[dict[str, Any]]) -> str:
    return "\n".join(block["text"] for block in system[1:])


# --- the commerce host ------------------------------------------------------------------------------------------------


def test_what_is_remembered_stands_in_the_prompt_behind_the_fence(
    claude: MessagesServer, address: str, key: str
) -> None:
    answer = talking(lambda host: host.turn("Coffee, please"), claude, address, key, (MemoryFact("milk", "oat milk"),))
    assert answer == "Gladly."
    rules_block, *rest = claude.requests[0]["system"]
    assert rules_block == {"type": "text", "text": rules(), "cache_control": {"type": "ephemeral"}}
    assert rest[0]["text"].startswith("<customer_memory>")
    assert "oat milk" in rest[0]["text"]
    assert claude.requests[0]["messages"] == [{"role": "user", "content": "Coffee, please"}]


def test_the_rules_are_the_skill_without_its_front_matter() -> None:
    assert "description:" not in rules()
    assert "# Using what is remembered" in rules()


def test_the_model_looks_up_what_its_context_does_not_show(claude: MessagesServer, address: str, key: str) -> None:
    claude.will(calls_recall({"topic": "paper bags"}), message("In paper, as always."))
    facts = (MemoryFact("bags", "takes paper bags"), MemoryFact("milk", "oat milk"))
    answer = talking(lambda host: host.turn("The usual bags"), claude, address, key, facts)
    assert answer == "In paper, as always."
    assert claude.requests[0]["tools"] == [RECALL]
    *_, called, result = claude.requests[1]["messages"]
    assert called["content"][0]["name"] == "recall_memories"
    opening, told, closing = result["content"][0]["content"].split("\n")
    assert (opening, closing) == ("<customer_memory>", "</customer_memory>")
    assert json.loads(told)["facts"][0] == {"key": "bags", "value": "takes paper bags", "category": "preference"}


def test_nothing_found_is_said_plainly(claude: MessagesServer, address: str, key: str) -> None:
    claude.will(calls_recall({"topic": "shoes"}), message("Which size?"))
    talking(lambda host: host.turn("Shoes"), claude, address, key)
    assert "none matched" in claude.requests[1]["messages"][-1]["content"][0]["content"]


@pytest.mark.parametrize("asked", [{}, {"topic": ""}, {"topic": "x" * 900}, {"topic": ["milk"]}])
def test_a_model_that_asks_wrongly_still_answers(claude: MessagesServer, address: str, key: str, asked: object) -> None:
    claude.will(calls_recall(asked), message("Gladly."))
    assert talking(lambda host: host.turn("Hello"), claude, address, key) == "Gladly."


def test_a_model_that_only_looks_up_ends(claude: MessagesServer, address: str, key: str) -> None:
    claude.will(calls_recall({"topic": "milk"}))
    talking(lambda host: host.turn("Hello"), claude, address, key)
    assert len(claude.requests) == 4


def test_the_turn_is_handed_over_with_text_only(claude: MessagesServer, address: str, key: str) -> None:
    claude.will(calls_recall({"topic": "milk"}), message("Noted."))
    talking(lambda host: host.turn(SAID), claude, address, key, (MemoryFact("bags", "CANARY of the tool"),))
    job = ExtractionJob.objects.get()
    assert [(turn["role"], turn["text"]) for turn in job.turns] == [("user", SAID), ("assistant", "Noted.")]
    assert job.source_session_id == store.session_tag("s-1")


def test_what_was_forgotten_is_in_no_later_prompt(claude: MessagesServer, address: str, key: str) -> None:
    claude.will(calls_recall({"topic": "milk"}), message("Gladly."))

    async def act(host: Host) -> None:
        await host.turn("Milk, please")
        await host.memory.delete_fact("alice", "milk")
        await host.turn("And now?")

    talking(act, claude, address, key, (MemoryFact("milk", "oat milk"),))
    assert "oat milk" in json.dumps(claude.requests[1])
    assert "oat milk" not in json.dumps(claude.requests[-1])
    assert [said["role"] for said in claude.requests[-1]["messages"]] == ["user", "assistant", "user"]


def test_no_answer_waits_for_learning_or_breaks_with_memory(claude: MessagesServer) -> None:
    async def act(host: Host) -> str:
        answer = await host.turn("Hello")
        assert host.handing_over, "still on its way"
        bridge.release.set()
        return str(answer)

    with Stub(BridgeReply(500), BridgeReply(hang=True)) as bridge:
        assert talking(act, claude, bridge.address, "key") == "Gladly."
    assert claude.requests[0]["system"] == [{"type": "text", "text": rules(), "cache_control": {"type": "ephemeral"}}]


# --- the Agent SDK host -----------------------------------------------------------------------------------------------


def hooked(act: Callable[[MemoryHooks], Any], address: str, key: str, *facts: MemoryFact) -> Any:
    async def run() -> Any:
        async with BridgeMemoryStore(address, key, retries=Retries(most=0)) as memory:
            if facts:
                await memory.upsert_facts("alice", facts)
            hooks = MemoryHooks(memory, "alice", within=30)
            told = await act(hooks)
            await hooks.close()
            return told

    return asyncio.run(run())


def test_a_prompt_gets_its_memory_and_the_turn_is_handed_over(address: str, key: str) -> None:
    async def act(hooks: MemoryHooks) -> Any:
        told = await hooks.read({"session_id": "s-1", "prompt": SAID}, None, None)
        ended = {"session_id": "s-1", "prompt_id": "p-1", "last_assistant_message": "Noted."}
        assert await hooks.hand_over(ended, None, None) == {}
        assert await hooks.hand_over(ended, None, None) == {}, "a turn that ends twice is handed over once"
        return told["hookSpecificOutput"]

    told = hooked(act, address, key, MemoryFact("milk", "oat milk"))
    assert told["hookEventName"] == "UserPromptSubmit"
    assert "oat milk" in told["additionalContext"]
    assert [(turn["role"], turn["text"]) for turn in ExtractionJob.objects.get().turns] == [
        ("user", SAID),
        ("assistant", "Noted."),
    ]


def test_a_hook_never_fails_a_turn() -> None:
    async def act(hooks: MemoryHooks) -> Any:
        read = await hooks.read({"session_id": "s-1", "prompt": SAID}, None, None)
        return read, await hooks.hand_over({"session_id": "s-1"}, None, None)

    with Stub(BridgeReply(500)) as bridge:
        assert hooked(act, bridge.address, "key") == ({}, {})
        assert bridge.requests[-1][1].endswith("/turns")


def test_the_agent_gets_a_token_for_one_customer_and_not_the_key(address: str, key: str) -> None:
    async def act(hooks: MemoryHooks) -> Any:
        return await mcp_server(hooks.memory, address, "alice")

    server = hooked(act, address, key)
    assert server["url"] == address.removesuffix("/v1") + "/mcp"
    token = server["headers"]["Authorization"].removeprefix("Bearer ")
    assert token.startswith("mps_")
    assert key not in str(server)


def test_the_sdks_program_sees_no_key_of_the_bridge(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KEY", "mp_live_canary")
    assert "mp_live_canary" not in str(environment(str(tmp_path)))


# --- the skill --------------------------------------------------------------------------------------------------------


def test_the_skill_has_the_front_matter_that_loaders_want() -> None:
    opening, front, body = SKILL.read_text("utf-8").split("---\n", 2)
    told = dict(line.split(": ", 1) for line in front.strip().splitlines())
    assert opening == ""
    assert told["name"] == SKILL.parent.name
    assert 0 < len(told["description"]) <= 1024
    assert len(body.splitlines()) < 100


# --- as written, against the demo -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    running = Demo(tmp_path_factory.mktemp("examples") / "var")
    yield running
    running.stop()


def run_as_written(demo: Demo, *command: str, **more: str) -> str:
    names = {"PATH": os.environ["PATH"], "KEY": demo.key, "BRIDGE": f"{demo.base}/bridge/v1", **more}
    ran = subprocess.run(command, cwd=ROOT, env=names, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stderr
    return ran.stdout


@pytest.mark.live
def test_curl_reads_hands_over_watches_and_forgets(demo: Demo) -> None:
    printed = run_as_written(demo, "sh", "examples/curl.sh")
    parts = printed.split("# ")[1:]
    assert len(parts) == 6, printed
    assert "<customer_memory>" in parts[0]
    assert "202" in parts[1]
    assert '"state":"done"' in parts[2].replace('": "', '":"')
    assert "decaf" in parts[3]
    assert '"decision":"learned"' in parts[4]
    assert '"decision":"updated"' in parts[4]
    assert parts[5].split()[-1] == "204"


@pytest.mark.live
def test_the_commerce_host_remembers_across_sessions(demo: Demo, claude: MessagesServer) -> None:
    provider = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": claude.url, "MODEL": MODEL, "SUBJECT": "fern-1002"}
    command = (sys.executable, "-m", "examples.commerce_host")
    printed = run_as_written(demo, *command, "I never eat mushrooms.", **provider)
    assert printed == "> I never eat mushrooms.\nGladly.\n"
    with Bridge(demo) as bridge:
        until(lambda: "mushrooms" in str(bridge.context("fern-1002")) or None, "the fact to be learned")

    def asked_again() -> bool | None:  # a turn on a busy machine may go on without memory
        run_as_written(demo, *command, "What is for dinner?", **provider)
        return "mushrooms" in fenced(claude.requests[-1]["system"]) or None

    until(asked_again, "the fact in a prompt")


@pytest.mark.live
@pytest.mark.parametrize("module", ["examples.commerce_host", "examples.agent_sdk_host"])
def test_without_keys_it_says_what_is_missing(module: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", module], cwd=ROOT, env={}, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 1
    assert ran.stderr == "Set KEY and ANTHROPIC_API_KEY first; `make demo` prints a KEY.\n"
