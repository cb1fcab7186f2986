"""A host on the Claude Agent SDK: hooks put memory beside the prompt and hand the turn over, MCP serves the look-up.

    .venv/bin/pip install claude-agent-sdk        # large, it brings its own program; nothing else here needs it
    KEY=mp_live_… ANTHROPIC_API_KEY=… .venv/bin/python -m examples.agent_sdk_host "Fill my usual basket, please"

Besides the keys it reads BRIDGE (http://127.0.0.1:8000/bridge/v1, where `make demo` answers), SUBJECT (fern-1001, a customer of the
demo), MODEL and ANTHROPIC_BASE_URL. The SDK's program runs with these names only, not with the rest of this environment.

The agent is given a token for this one customer and this one session, never the key: whatever a model says, it reaches nobody else.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import tempfile
import uuid
from typing import Any

from agent_bridge.client import BridgeError, BridgeMemoryStore

log = logging.getLogger(__name__)

ROLE = (
    "You are the assistant of Fernhill Market, a grocer. What the customer asks for today wins over what is remembered."
)


class MemoryHooks:
    """The SDK's hooks for one customer: `UserPromptSubmit` reads, `Stop` hands over. Neither can fail a turn."""

    def __init__(self, memory: BridgeMemoryStore, subject_id: str, *, within: float = 0.5) -> None:
        self.memory = memory
        self.subject_id = subject_id
        self.within = within  # seconds that a customer's turn waits for memory, at most
        self.asked: dict[str, str] = {}
        """What the customer wrote, by session, until the turn is over."""
        self.handing_over: set[asyncio.Task[None]] = set()

    async def read(self, told: dict[str, Any], tool_use_id: str | None, context: object) -> dict[str, Any]:
        """Layers 1 and 2 beside the customer's prompt."""
        session, prompt = told["session_id"], told["prompt"]
        self.asked[session] = prompt
        block = await self.memory.context_or_empty(self.subject_id, prompt, session_id=session, within=self.within)
        if not block:
            return {}
        return {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": block}}

    async def hand_over(self, told: dict[str, Any], tool_use_id: str | None, context: object) -> dict[str, Any]:
        """What was asked and what was answered, sent beside the turn: the SDK waits for this hook, so it only starts it."""
        session, answer = told["session_id"], told.get("last_assistant_message") or ""
        if (prompt := self.asked.pop(session, None)) is None:
            return {}
        turn = [{"role": "user", "content": prompt}, {"role": "assistant", "content": answer}]
        name = f"{session}:{told.get('prompt_id') or uuid.uuid4().hex}"
        task = asyncio.create_task(self._hand_over(session, turn, name))
        self.handing_over.add(task)
        task.add_done_callback(self.handing_over.discard)
        return {}

    async def _hand_over(self, session: str, turn: list[dict[str, Any]], name: str) -> None:
        try:
            await self.memory.submit_turns(self.subject_id, session, turn, idempotency_key=name)
        except BridgeError as error:
            log.warning("a turn was not handed over: %s", error.code)

    async def close(self) -> None:
        """Let what is on its way arrive."""
        await asyncio.gather(*self.handing_over)


async def mcp_server(memory: BridgeMemoryStore, bridge: str, subject_id: str) -> dict[str, Any]:
    """Where the agent finds `recall_memories`, with a token that reads this customer's facts and does nothing else."""
    session = await memory.open_session(subject_id, uuid.uuid4().hex, scopes=["facts:read"])
    address = bridge.rstrip("/").removesuffix("/v1") + "/mcp"
    return {"type": "http", "url": address, "headers": {"Authorization": f"Bearer {session.token}"}}


async def ask(said: str, hooks: MemoryHooks, server: dict[str, Any], *, model: str, environment: dict[str, str]) -> str:
    """One turn with the SDK's agent."""
    from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, ResultMessage, query  # only for who runs it

    options = ClaudeAgentOptions(
        system_prompt=ROLE,
        model=model,
        mcp_servers={"memory": server},
        allowed_tools=["mcp__memory__recall_memories"],
        tools=[],
        setting_sources=[],
        strict_mcp_config=True,
        hooks={
            "UserPromptSubmit": [HookMatcher(hooks=[hooks.read])],
            "Stop": [HookMatcher(hooks=[hooks.hand_over], timeout=10)],
        },
        env=environment,
    )
    answer = ""
    async for message in query(prompt=said, options=options):
        if isinstance(message, ResultMessage):
            answer = message.result or ""
    return answer


def environment(directory: str) -> dict[str, str]:
    """What the SDK's program gets to see: the provider, an empty configuration of its own, and no chatter."""
    given = {name: os.environ[name] for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL") if name in os.environ}
    return {**given, "CLAUDE_CONFIG_DIR": directory, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}


async def main(said: list[str]) -> None:
    if missing := [name for name in ("KEY", "ANTHROPIC_API_KEY") if not os.environ.get(name)]:
        sys.exit(f"Set {' and '.join(missing)} first; `make demo` prints a KEY.")
    if not said:
        sys.exit("Say something: one argument for each turn.")
    bridge = os.environ.get("BRIDGE", "http://127.0.0.1:8000/bridge/v1")
    subject_id = os.environ.get("SUBJECT", "fern-1001")
    model = os.environ.get("MODEL", "claude-haiku-5-5")
    with tempfile.TemporaryDirectory() as directory:
        async with BridgeMemoryStore(bridge, os.environ["KEY"]) as memory:
            hooks = MemoryHooks(memory, subject_id)
            server = await mcp_server(memory, bridge, subject_id)
            for line in said:
                answer = await ask(line, hooks, server, model=model, environment=environment(directory))
                print(f"> {line}\n{answer}")  # noqa: T201
            await hooks.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
