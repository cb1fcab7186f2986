"""The Claude Agent SDK itself, its own program included, with our hooks: against the real bridge and a Messages API on loopback.

The SDK is large and no requirement of the product: `make check-deep` installs it, and runs this.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from agent_bridge import auth
from agent_bridge.client import BridgeMemoryStore, MemoryFact
from agent_bridge.models import ExtractionJob
from examples.agent_sdk_host import MemoryHooks, ask, environment, mcp_server

pytestmark = [pytest.mark.deep, pytest.mark.django_db(transaction=True)]

RECALL = "mcp__memory__recall_memories"


def events(blocks: list[dict[str, Any]], stop: str) -> bytes:
    """A streamed answer of the Messages API."""
    usage = {"input_tokens": 9, "output_tokens": 9}
    whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test", "content": []}
    told: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**whole, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    ]
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            begun, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            begun = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        told += [
            {"type": "content_block_start", "index": index, "content_block": begun},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    told += [
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in told).encode()


class Provider:
    """A streaming Messages API that looks up once where it is offered to, and then answers."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.requests.append(asked)
                body = outer.answer(asked)
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """The test reads what it needs from `requests`."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, asked: dict[str, Any]) -> bytes:
        offered = any(tool["name"] == RECALL for tool in asked.get("tools", ()))
        if offered and "tool_result" not in json.dumps(asked["messages"]):
            return events(
                [{"type": "tool_use", "id": "toolu_1", "name": RECALL, "input": {"topic": "bags"}}], "tool_use"
            )
        return events([{"type": "text", "text": "In paper, as always."}], "end_turn")


@pytest.fixture
def provider() -> Iterator[Provider]:
    provider = Provider()
    provider.thread.start()
    yield provider
    provider.server.shutdown()
    provider.server.server_close()
    provider.thread.join()


def test_the_sdk_reads_answers_and_hands_over(
    provider: Provider, live_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("claude_agent_sdk", reason="the SDK is large: .venv/bin/pip install claude-agent-sdk")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-loopback")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
    address = f"{live_server.url}/bridge/v1"
    _, key = auth.issue("assistant", "grocery", auth.SCOPES, now=timezone.now())

    async def run() -> str:
        async with BridgeMemoryStore(address, key) as memory:
            facts = [MemoryFact("milk", "oat milk", "constraint"), MemoryFact("bags", "takes paper bags")]
            await memory.upsert_facts("alice", facts)
            hooks = MemoryHooks(memory, "alice", within=30)
            server = await mcp_server(memory, address, "alice")
            answer = await ask(
                "I always take oat milk",
                hooks,
                server,
                model="claude-haiku-5-5",
                environment=environment(str(tmp_path)),
            )
            await hooks.close()
            return answer

    assert asyncio.run(run()) == "In paper, as always."
    turns = ExtractionJob.objects.get().turns
    assert [(turn["role"], turn["text"]) for turn in turns] == [
        ("user", "I always take oat milk"),
        ("assistant", "In paper, as always."),
    ]
    first = next(asked for asked in provider.requests if "oat milk" in json.dumps(asked["messages"]))
    assert "customer_memory" in json.dumps(first["messages"])
    assert any("takes paper bags" in result for result in results(provider.requests[-1])), "looked up over MCP"


def results(asked: dict[str, Any]) -> list[str]:
    """What tools answered, as the model was told."""
    contents = [message["content"] for message in asked["messages"] if isinstance(message["content"], list)]
    return [json.dumps(block) for content in contents for block in content if block["type"] == "tool_result"]
