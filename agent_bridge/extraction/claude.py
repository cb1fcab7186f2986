"""The extractor that asks Claude: one call of the Messages API for each window of a conversation.

In: an ExtractionRequest. Out: candidates, the tokens they cost, or a failure code. No text of the conversation, of the
answer or of an error leaves this module by any other way. The only module that imports anthropic.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from functools import cache
from pathlib import Path
from string import Template
from typing import Any, Literal

import anthropic
from anthropic.types import Message
from django.conf import settings
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent_bridge.extraction import CALLS, Extraction, ExtractionFailed, ExtractionRequest, Turn
from memory_portal import store
from memory_portal.enums import ChangeAction

PROMPTS = Path(__file__).with_name("prompts")
WINDOW = 24_000
"""Characters of conversation in one call."""
PIECE = 6_000
"""A longer turn is read in pieces, so that one pasted novel does not push the rest of the conversation out."""
OVERLAP = 600
"""What two pieces, and two windows, have in common: a statement on the border is whole in one of them."""
FACTS = 30_000
"""Characters of saved facts; the newest are told first. 200 facts of 200 signs fit only just."""
ANSWER_TOKENS = 2_000
ANSWER_CHARS = 60_000
CHANGES = 40


class Change(BaseModel):
    """One item of the answer. The provider does not promise its own schema, so everything is looked at again."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)

    action: Literal["remember", "forget"]
    key: str = Field(min_length=1, max_length=200)
    value: str = Field(max_length=2_000)
    category: str = Field(max_length=64)
    quote: str = Field(min_length=1, max_length=2_000)
    topics: list[str] = Field(max_length=20)


def answer_schema(categories: Sequence[str]) -> dict[str, Any]:
    text = {"type": "string"}
    change = {
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["remember", "forget"]},
            "key": text,
            "value": text,
            "category": {"type": "string", "enum": list(categories)},
            "quote": text,
            "topics": {"type": "array", "items": text},
        },
        "required": ["action", "key", "value", "category", "quote", "topics"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"changes": {"type": "array", "items": change}},
        "required": ["changes"],
        "additionalProperties": False,
    }


# --- what is sent -----------------------------------------------------------------------------------------------------


@cache
def prompt_version() -> str:
    """A short hash of the prompt's files: two jobs with the same one were asked the same question."""
    digest = hashlib.sha256()
    for path in sorted(PROMPTS.iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


@cache
def _system_template() -> Template:
    return Template((PROMPTS / "system.md").read_text("utf-8"))


def system(request: ExtractionRequest) -> str:
    profile = request.profile
    return _system_template().substitute(
        keeper=profile.keeper,
        qualifies="\n".join(f"- {line}" for line in profile.qualifies) or "- whatever makes help fit",
        excluded="\n".join(f"- {line}" for line in profile.excluded),
        example_keys=", ".join(profile.example_keys) or "preferred_language",
        categories=", ".join(profile.categories),
        max_new_facts=request.max_new_facts,
    )


@dataclass(frozen=True, slots=True)
class Piece:
    speaker: str
    text: str


def windows(turns: Sequence[Turn]) -> list[list[Piece]]:
    """The conversation in at most CALLS windows, oldest first. The newest words always fit."""
    found: list[list[Piece]] = []
    rest = [piece for turn in turns for piece in _pieces(turn)]
    while rest and len(found) < CALLS:
        taken, size = 0, 0
        while taken < len(rest) and size + len(rest[-1 - taken].text) <= WINDOW:
            size += len(rest[-1 - taken].text)
            taken += 1
        found.insert(0, rest[-taken:])
        if taken == len(rest):
            break
        # The next, older window ends with the first piece of this one, as long as that leaves room.
        shared = 1 if taken > 1 and len(rest[-taken].text) <= WINDOW // 4 else 0
        rest = rest[: len(rest) - taken + shared]
    return found


def _pieces(turn: Turn) -> Iterator[Piece]:
    speaker = "customer" if turn.role == "user" else "agent"
    text = masked(turn.text.strip())
    for start in range(0, max(1, len(text) - OVERLAP), PIECE - OVERLAP):
        if piece := text[start : start + PIECE]:
            yield Piece(speaker, piece)


_EMAIL = re.compile(r"[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_LONG_NUMBER = re.compile(r"(?<![\w.])\+?\d(?:[ ().-]{0,2}\d){8,}(?!\w)")


def masked(text: str) -> str:
    """Without addresses and long numbers, which no fact may hold anyway: cards, accounts, telephones stay in the house."""
    return _LONG_NUMBER.sub("[number]", _EMAIL.sub("[e-mail]", text))


def message(request: ExtractionRequest, window: Sequence[Piece]) -> str:
    """The three fences. A record is one line of JSON without angle brackets: it can end neither line nor fence."""
    saved: list[str] = []
    room = FACTS
    for known in reversed(request.held):
        told = line({"key": known.key, "value": known.value, "category": known.category})
        room -= len(told)
        if room < 0:
            break
        saved.insert(0, told)
    said = [line({"speaker": piece.speaker, "said": piece.text}) for piece in window]
    return "\n".join(
        [
            *("<saved_facts>", *saved, "</saved_facts>"),
            *("<forgotten_keys>", line(list(request.forgotten_keys)), "</forgotten_keys>"),
            *("<conversation>", *said, "</conversation>"),
        ]
    )


_ANGLES = (
    {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>"}
    | dict.fromkeys(range(0x7F, 0xA0))
    | {0x2028: "\\u2028", 0x2029: "\\u2029"}
)


def line(record: object) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).translate(_ANGLES)


# --- asking and reading the answer ------------------------------------------------------------------------------------


class NoAnswer(Exception):
    """Carries the code and nothing else."""

    def __init__(self, failed: ExtractionFailed) -> None:
        super().__init__(failed.code)
        self.failed = failed


@dataclass(frozen=True)
class Claude:
    """Extractor that asks the Messages API. Retrying is the job's business, so the client never does it itself."""

    client: anthropic.Anthropic
    model: str
    effort: str

    @classmethod
    def from_settings(cls) -> Claude:
        return cls(_client(), settings.EXTRACTION_MODEL, settings.EXTRACTION_EFFORT)

    def extract(self, request: ExtractionRequest) -> Extraction:
        return self.read(self._ask(request, window) for window in windows(request.turns))

    def read(self, replies: Iterable[object]) -> Extraction:
        """What the replies about one conversation, window by window, come to. A fault in one throws the whole reading away."""
        answer = Extraction(self.model, prompt_version())
        refused: Counter[str] = Counter()
        try:
            for reply in replies:
                answer = _billed(answer, reply)
                candidates, unusable = changes(_text(reply))
                refused["unusable"] += unusable
                answer = replace(answer, candidates=tuple(dict.fromkeys((*answer.candidates, *candidates))))
        except NoAnswer as error:
            return replace(answer, candidates=(), failure=error.failed)
        return replace(answer, refused={code: number for code, number in refused.items() if number})

    def tokens_at_most(self, request: ExtractionRequest) -> int:
        """Two bytes a token is less than any language takes; the answer may use all the room it has."""
        read = windows(request.turns)
        sent = sum(len(message(request, window).encode("utf-8", "ignore")) for window in read)
        return (sent + len(read) * len(system(request).encode())) // 2 + len(read) * ANSWER_TOKENS

    def params(self, request: ExtractionRequest, window: Sequence[Piece]) -> dict[str, Any]:
        """The one call there is: what asks about one window, now or in a batch."""
        return {
            "model": self.model,
            "max_tokens": ANSWER_TOKENS,
            "system": [{"type": "text", "text": system(request), "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": "user", "content": message(request, window)}],
            "output_config": {
                "effort": self.effort,
                "format": {"type": "json_schema", "schema": answer_schema(request.profile.categories)},
            },
        }

    def _ask(self, request: ExtractionRequest, window: Sequence[Piece]) -> Message:
        with codes_only():
            reply: Message = self.client.messages.create(**self.params(request, window))
            return reply


@contextmanager
def codes_only() -> Iterator[None]:
    """What the client raises goes on as NoAnswer with a code: its own text may hold anything."""
    try:
        yield
    except anthropic.AnthropicError as error:
        raise NoAnswer(failure(error)) from None
    except (ValueError, TypeError, RecursionError):  # a body that is no JSON, or no message
        raise NoAnswer(ExtractionFailed("garbage")) from None


@cache
def _client() -> anthropic.Anthropic:
    return anthropic.Anthropic(
        api_key=settings.ANTHROPIC_API_KEY,
        base_url=settings.ANTHROPIC_BASE_URL,
        timeout=anthropic.Timeout(settings.EXTRACTION_TIMEOUT, connect=5),
        max_retries=0,
        open_telemetry=False,
    )


STATUS_CODES = {
    401: "not_authorised",
    402: "not_paid",
    403: "not_authorised",
    404: "unknown_model",
    408: "timeout",
    409: "provider_error",
    413: "too_large",
    429: "rate_limited",
    529: "overloaded",
}
HOPELESS = (400, 413, 422)
"""The same request will be refused again. A wrong key or an empty account, on the other hand, may be put right."""


def failure(error: anthropic.AnthropicError) -> ExtractionFailed:
    """The code for what the client raised: judged by its class and status, never by its text."""
    if isinstance(error, anthropic.APITimeoutError):
        return ExtractionFailed("timeout")
    if isinstance(error, anthropic.APIStatusError):
        status = error.status_code
        code = STATUS_CODES.get(status, "provider_error" if status >= 500 else "bad_request")
        return ExtractionFailed(code, retry_after(error.response.headers), transient=status not in HOPELESS)
    if isinstance(error, anthropic.APIConnectionError):
        return ExtractionFailed("unreachable")
    return ExtractionFailed("garbage")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, from either form of the header; None for anything else. The job caps it."""
    told = headers.get("retry-after", "").strip()
    try:
        seconds = float(told)
    except ValueError:
        try:
            then, now = parsedate_to_datetime(told), parsedate_to_datetime(headers.get("date", ""))
            seconds = (then - now).total_seconds()
        except (TypeError, ValueError):
            return None
    return seconds if 0 <= seconds < float("inf") else None


def _billed(answer: Extraction, reply: object) -> Extraction:
    usage = getattr(reply, "usage", None)
    counted = {
        name: getattr(answer, name) + sum(_count(usage, part) for part in parts)
        for name, parts in (
            ("input_tokens", ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")),
            ("output_tokens", ("output_tokens",)),
        )
    }
    return replace(answer, **counted)


def _count(usage: object, name: str) -> int:
    number = getattr(usage, name, None)
    return number if isinstance(number, int) and 0 <= number < 10_000_000 else 0


STOPS = {
    "max_tokens": ExtractionFailed("cut_off"),
    "refusal": ExtractionFailed("refused", transient=False),
    "model_context_window_exceeded": ExtractionFailed("too_large", transient=False),
}


def _text(reply: object) -> str:
    """The answer's text, once it is known to be whole. The client validates no reply: anything may be missing."""
    stop = getattr(reply, "stop_reason", None)
    if not isinstance(stop, str):
        raise NoAnswer(ExtractionFailed("garbage"))
    if stop not in ("end_turn", "stop_sequence"):
        raise NoAnswer(STOPS.get(stop, ExtractionFailed("unexpected_stop")))
    content = getattr(reply, "content", None)
    blocks = content if isinstance(content, list) else []
    text = next((block.text for block in blocks if getattr(block, "type", None) == "text"), None)
    if not isinstance(text, str) or len(text) > ANSWER_CHARS:
        raise NoAnswer(ExtractionFailed("garbage"))
    return text


def changes(text: str) -> tuple[list[store.Candidate], int]:
    """The usable changes of an answer, and how many were not. Raises NoAnswer when it is no answer at all."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        raise NoAnswer(ExtractionFailed("garbage")) from None
    items = answer.get("changes") if isinstance(answer, dict) else None
    if not isinstance(items, list):
        raise NoAnswer(ExtractionFailed("wrong_shape"))
    found: list[store.Candidate] = []
    for item in items[:CHANGES]:
        try:
            change = Change.model_validate(item)
        except ValidationError:
            continue
        found.append(
            store.Candidate(
                ChangeAction(change.action),
                change.key,
                change.value,
                change.category,
                change.quote,
                tuple(change.topics),
            )
        )
    return found, len(items) - len(found)
