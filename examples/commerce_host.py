"""A shop's assistant in the style of commerce-agents: plain asyncio, the Messages API, and memory over the bridge.

    KEY=mp_live_… ANTHROPIC_API_KEY=… .venv/bin/python -m examples.commerce_host

Type as the customer; an empty line ends it. Turns may also stand on the command line, one argument each. Besides the two keys
it reads BRIDGE (http://127.0.0.1:8000/bridge/v1, where `make demo` answers), SUBJECT (fern-1001, a customer of the demo) and MODEL.

Memory is read in three layers: what every turn should know and what fits the message come with the turn; anything else the model
asks for with `recall_memories`. It is written after the turn, by handing the turn over: nothing here decides what to remember.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import uuid
from pathlib import Path
from typing import Any

from anthropic import AsyncAnthropic

from agent_bridge.client import BridgeError, BridgeMemoryStore

log = logging.getLogger(__name__)

SKILL = Path(__file__).parent / "skills" / "memory-personalization" / "SKILL.md"
ROLE = "You are the assistant of Fernhill Market, a grocer. Answer in the customer's language, in a few sentences."
RECALL: Any = {
    "name": "recall_memories",
    "description": "Look up what is remembered about this customer on a topic. Not for what the context shows already.",
    "input_schema": {
        "type": "object",
        "properties": {
            "topic": {"type": "string", "maxLength": 100, "description": "What it is about, in a few words."}
        },
        "required": ["topic"],
        "additionalProperties": False,
    },
}
ROUNDS = 4
"""How often one turn may go to the model: the answer, and before it a look-up or two."""


class Host:
    """One conversation with one customer. The host says who that is; the model never does."""

    def __init__(
        self,
        claude: AsyncAnthropic,
        memory: BridgeMemoryStore,
        subject_id: str,
        *,
        model: str,
        session_id: str,
        within: float = 0.5,
    ) -> None:
        self.claude = claude
        self.memory = memory
        self.subject_id = subject_id
        self.model = model
        self.session_id = session_id
        self.within = within  # seconds that a customer's turn waits for memory, at most
        self.turns = 0
        # What was said, in text. Memory is put beside it anew for every turn and never becomes part of it: so what the
        # customer has us forget is gone from the next turn on.
        self.history: list[Any] = []
        self.handing_over: set[asyncio.Task[None]] = set()

    async def turn(self, said: str) -> str:
        """Answer one message. Memory may be late, off or broken: then the answer comes without it."""
        self.turns += 1
        known = await self.memory.context_or_empty(
            self.subject_id, said, session_id=self.session_id, within=self.within
        )
        # The rules come first and are the same for everybody, so a prompt cache holds them; memory comes after that mark.
        system: list[Any] = [{"type": "text", "text": rules(), "cache_control": {"type": "ephemeral"}}]
        if known:
            system.append({"type": "text", "text": known})
        turn: list[Any] = [{"role": "user", "content": said}]
        answer = ""
        for _ in range(ROUNDS):
            reply = await self.claude.messages.create(
                model=self.model,
                max_tokens=1024,
                system=system,
                messages=[*self.history, *turn],
                tools=[RECALL],
            )
            turn.append({"role": "assistant", "content": reply.content})
            answer = "".join(block.text for block in reply.content if block.type == "text")
            calls = [block for block in reply.content if block.type == "tool_use"]
            if not calls:
                break
            results = [
                {"type": "tool_result", "tool_use_id": call.id, "content": await self.recall(call.input)}
                for call in calls
            ]
            turn.append({"role": "user", "content": results})
        self.history += [{"role": "user", "content": said}, {"role": "assistant", "content": answer or "…"}]
        self.hand_over(turn)
        return answer

    async def recall(self, asked: Any) -> str:
        """The tool's answer: facts as data behind a fence. A bracket in a value cannot close it."""
        try:
            async with asyncio.timeout(self.within):
                facts = await self.memory.recall(self.subject_id, str(asked["topic"]), session_id=self.session_id)
        except (BridgeError, TimeoutError, KeyError, TypeError):
            return "Memory cannot be reached now. Go on without it."
        told = [{"key": fact.key, "value": fact.value, "category": fact.category} for fact in facts]
        text = json.dumps({"facts": told or "none matched"}, ensure_ascii=False).replace("<", "\\u003c")
        return f"<customer_memory>\n{text}\n</customer_memory>"

    def hand_over(self, turn: list[Any]) -> None:
        """After the answer and beside it: the customer never waits for learning.

        What the bridge did not take is lost with this process. A host that may lose none writes it to an outbox of its own
        first, and sends it as often as it likes: the name makes once of it.
        """
        task = asyncio.create_task(self._hand_over(turn, f"{self.session_id}:{self.turns}"))
        self.handing_over.add(task)  # asyncio itself keeps no task alive
        task.add_done_callback(self.handing_over.discard)

    async def _hand_over(self, turn: list[Any], name: str) -> None:
        try:
            await self.memory.submit_turns(self.subject_id, self.session_id, turn, idempotency_key=name)
        except BridgeError as error:
            log.warning("a turn was not handed over: %s", error.code)

    async def close(self) -> None:
        """Let what is on its way arrive."""
        await asyncio.gather(*self.handing_over)


def rules() -> str:
    """The assistant's role, and the skill that says when to use memory, without its front matter."""
    return ROLE + "\n\n" + SKILL.read_text("utf-8").split("---\n", 2)[2].strip()


async def main(said: list[str]) -> None:
    if missing := [name for name in ("KEY", "ANTHROPIC_API_KEY") if not os.environ.get(name)]:
        sys.exit(f"Set {' and '.join(missing)} first; `make demo` prints a KEY.")
    async with (
        BridgeMemoryStore(os.environ.get("BRIDGE", "http://127.0.0.1:8000/bridge/v1"), os.environ["KEY"]) as memory,
        AsyncAnthropic() as claude,
    ):
        host = Host(
            claude,
            memory,
            os.environ.get("SUBJECT", "fern-1001"),
            model=os.environ.get("MODEL", "claude-haiku-5-5"),
            session_id=uuid.uuid4().hex,
        )
        for line in said:
            print(f"> {line}\n{await host.turn(line)}")  # noqa: T201
        while not said and (line := await asyncio.to_thread(input, "> ")):
            print(await host.turn(line))  # noqa: T201
        await host.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
