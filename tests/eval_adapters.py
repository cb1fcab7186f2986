"""What the evaluation kit calls. In: the kit's plain dicts. Out: the store's own answers, by the code that runs in production."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from django.conf import settings

from memory_portal.enums import FactState, Origin
from memory_portal.store import dedupe, fence, recall, sanitise, semantic, write_filter
from memory_portal.store.types import Fact, New

NOW = datetime(2025, 3, 1, 12, tzinfo=UTC)


def as_fact(number: int, given: dict[str, Any]) -> Fact:
    when = datetime.fromisoformat(given.get("updated_at", "2025-01-15T12:00:00+00:00"))
    return Fact(
        id=number,
        key=given["key"],
        value=given["value"],
        category=given["category"],
        origin=Origin.EXTRACTION,
        state=FactState.ACTIVE,
        version=1,
        created_at=when,
        updated_at=when,
        said_at=when,
        source_session_id=given.get("source_session_id", ""),
        topics=tuple(given.get("topics", ())),
    )


def rank(facts: list[dict[str, Any]], query: str, k: int) -> list[int]:
    """Layer 3, the look-up by topic."""
    return [fact.id for fact in recall.lookup(map(as_fact, range(len(facts)), facts), query, k=k)]


def prefetch(facts: list[dict[str, Any]], query: str, k: int) -> list[int]:
    """Layer 2, which may stay silent."""
    return [fact.id for fact in recall.relevant(map(as_fact, range(len(facts)), facts), query, k=min(k, 5), now=NOW)]


def rank_semantic(facts: list[dict[str, Any]], query: str, k: int) -> list[int]:
    """Layer 3 with the optional model."""
    held = [as_fact(number, fact) for number, fact in enumerate(facts)]
    return [fact.id for fact in recall.lookup(held, query, k=k, near=near(held, query))]


def prefetch_semantic(facts: list[dict[str, Any]], query: str, k: int) -> list[int]:
    """Layer 2 with the optional model."""
    held = [as_fact(number, fact) for number, fact in enumerate(facts)]
    return [fact.id for fact in recall.relevant(held, query, k=min(k, 5), now=NOW, near=near(held, query))]


def near(held: list[Fact], query: str) -> dict[int, float]:
    if not settings.configured:
        settings.configure(SEMANTIC=True, SEMANTIC_MODEL_DIR=os.environ.get("SEMANTIC_MODEL_DIR", ""))
    return semantic.closeness({fact.id: beside(fact.key, fact.value, fact.topics) for fact in held}, query)


@lru_cache(None)
def beside(key: str, value: str, topics: tuple[str, ...]) -> bytes:
    """The vector that the store writes with a fact, so not part of a read's time."""
    kept = semantic.vector(key, value, topics)
    assert kept, semantic.missing()
    return kept


def render(facts: list[dict[str, Any]]) -> str:
    """The block for a prompt."""
    return fence.block([as_fact(number, fact) for number, fact in enumerate(facts)], now=NOW)


def check(key: str, value: str) -> str | None:
    """The write filter, after the same cleaning as at intake."""
    return write_filter.inspect(sanitise.normalise_key(key), sanitise.clean(value))


def judge(held: list[dict[str, Any]], candidate: dict[str, Any]) -> dict[str, Any]:
    """The verdict on a draft, cleaned as at intake."""
    facts = [as_fact(number, fact | {"value": sanitise.clean(fact["value"])}) for number, fact in enumerate(held)]
    draft = sanitise.draft(**candidate, origin=Origin.EXTRACTION, said_at=NOW, now=NOW)
    verdict = dedupe.compare(draft, facts)
    return {
        "verdict": type(verdict).__name__.lower(),
        "key": None if isinstance(verdict, New) else verdict.fact.key,
    }
