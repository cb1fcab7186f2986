"""Reading a finished conversation. In: what was said and what is known. Out: candidates nobody has to trust,
or a failure code.

An extractor answers in values, never with an exception that carries text. Imports the store's door only; `claude` alone
knows the provider's package.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from django.conf import settings

from memory_portal import store

CALLS = 4
"""Model calls one job may make: a long conversation is read in so many windows at most."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing said, text only. Tool calls and their results were dropped before this is built."""

    role: Literal["user", "assistant"]
    text: str
    said_at: datetime


@dataclass(frozen=True, slots=True)
class Profile:
    """What the policy says about one trade, as a prompt needs it."""

    keeper: str = "a company's assistant"
    qualifies: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    example_keys: tuple[str, ...] = ()
    categories: tuple[str, ...] = ("preference", "constraint", "context", "safety")


@dataclass(frozen=True, slots=True)
class Known:
    """A fact that is held already; an extractor changes it under its own key."""

    key: str
    value: str
    category: str


@dataclass(frozen=True, slots=True)
class ExtractionRequest:
    """Everything an extractor may look at. It never learns who the customer is."""

    profile: Profile
    turns: tuple[Turn, ...]
    now: datetime
    held: tuple[Known, ...] = ()
    forgotten_keys: tuple[str, ...] = ()
    max_new_facts: int = 3


@dataclass(frozen=True, slots=True)
class ExtractionFailed:
    """Why there is no answer, as a code. `retry_after` is the provider's wish in seconds."""

    code: str
    retry_after: float | None = None
    transient: bool = True


@dataclass(frozen=True, slots=True)
class Extraction:
    """What one reading came to. `refused` counts items of the answer that are not even candidates, by code."""

    extractor: str
    prompt_version: str = ""
    candidates: tuple[store.Candidate, ...] = ()
    refused: Mapping[str, int] = field(default_factory=dict)
    input_tokens: int = 0
    output_tokens: int = 0
    failure: ExtractionFailed | None = None


class Extractor(Protocol):
    def extract(self, request: ExtractionRequest) -> Extraction:
        """Read the conversation. Raises nothing on purpose; a failure is part of the answer."""

    def tokens_at_most(self, request: ExtractionRequest) -> int:
        """What reading it may cost, rather too much than too little; 0 where reading is free."""


def configured() -> Extractor:
    """The extractor that settings.EXTRACTOR names."""
    if settings.EXTRACTOR == "claude":
        from agent_bridge.extraction.claude import Claude

        return Claude.from_settings()
    from agent_bridge.extraction.explicit import Explicit

    return Explicit()
