"""The three layers of a read. In: one customer's facts, the message or the topic, now. Out: facts in order, or none.

Pure: no database, no clock. A customer holds at most a few hundred facts, so every read looks at them all.
Imports types and ranking only.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from memory_portal.enums import FactState
from memory_portal.store import ranking
from memory_portal.store.types import CONSTRAINT, SAFETY, Fact

NOTHING_NEAR: Mapping[int, float] = MappingProxyType({})
LAYER_ONE = frozenset({SAFETY, CONSTRAINT})
TIER_ONE_CAP = 8
BUDGET_CHARS = 4_000
RECORD_CHARS = 90
"""What a line of the block takes beside key and value: names, quotes, category, age, session tag."""

PREFETCH_CAP = 5
LOOKUP_CAP = 20
ENOUGH = 1.75
"""The evidence layer 2 asks for, in words that only this fact has."""
ENOUGH_SAID_ALONE = 0.63 * ENOUGH
"""For a fact about which nobody wrote topics: it has fewer words to be found by."""

MEANING = 4.0
"""Layer 2: what closeness (-1 to 1) weighs beside the square root of the evidence, both as shares of what is asked for."""
ENOUGH_IN_MEANING = 2.05
"""What both together must come to where the closeness is known."""

_USUAL_REQUEST = 8  # words and departments; a shorter request says as much in fewer
SKEW = timedelta(days=1)
"""An update time further ahead of the clock than this is not believed."""

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def always(
    facts: Iterable[Fact],
    *,
    now: datetime,
    cap: int = TIER_ONE_CAP,
    budget_chars: int = BUDGET_CHARS,
    off_categories: Collection[str] = frozenset(),
    layer_one: Collection[str] = LAYER_ONE,
) -> tuple[list[Fact], int]:
    """Layer 1: what every turn sees, and how many facts of it the character budget left out.

    Every fact of the `layer_one` categories, then the most recently updated others up to `cap` in all. The budget is
    spent on safety first, which it never drops, then on the rest of `layer_one`, then on the others. The order is by
    kind and id, so that the text of a block changes only when a fact does.
    """

    def urgency(fact: Fact) -> int:
        return 0 if fact.category == SAFETY else 1 if fact.category in layer_one else 2

    newest = sorted(live(facts, now, off_categories), key=lambda fact: _recency(fact, now), reverse=True)
    by_urgency = sorted(newest, key=urgency)
    urgent = sum(urgency(fact) < 2 for fact in newest)
    due = by_urgency[: max(cap, urgent)]
    kept, room = [], budget_chars
    for fact in due:
        cost = len(fact.key) + len(fact.value) + RECORD_CHARS
        if fact.category == SAFETY or cost <= room:
            kept.append(fact)
            room -= cost
    return sorted(kept, key=lambda fact: (urgency(fact), fact.id)), len(due) - len(kept)


def relevant(
    facts: Iterable[Fact],
    message: str,
    *,
    now: datetime,
    hint: str = "",
    k: int = PREFETCH_CAP,
    exclude: Collection[int] = frozenset(),
    off_categories: Collection[str] = frozenset(),
    near: Mapping[int, float] = NOTHING_NEAR,
) -> list[Fact]:
    """Layer 2: at most `k` facts this message calls for, best first; often none, because silence is a result.

    `hint` is what the host knows of the page or the intent; `exclude` holds the ids of facts shown already. `near` says
    how close facts are to the message in meaning, where that is known.
    """
    held = live(facts, now, off_categories)
    cards = ranking.cards_of(held)
    request = ranking.request_for(f"{message} ; {hint}", ranking.VALUE, ranking.KEY, ranking.TOPIC)
    brevity = _USUAL_REQUEST / min(_USUAL_REQUEST, request.size + 0.5)
    found = []
    scores, agreements, _ = ranking.evidence(cards, request)
    for fact, card, score, agreement in zip(held, cards, scores, agreements, strict=True):
        strength = score * math.sqrt((agreement + 0.05) * brevity)
        strength /= ENOUGH if card.has_topics else ENOUGH_SAID_ALONE
        if fact.id in near:
            strength = (math.sqrt(strength) + MEANING * near[fact.id]) / ENOUGH_IN_MEANING
        if strength >= 1 and fact.id not in exclude:
            found.append((strength, fact))
    return [fact for _, fact in sorted(found, key=lambda pair: -round(pair[0], 9))][: max(0, k)]


def lookup(
    facts: Iterable[Fact],
    topic: str,
    *,
    k: int = LOOKUP_CAP,
    now: datetime | None = None,
    near: Mapping[int, float] = NOTHING_NEAR,
) -> list[Fact]:
    """Layer 3: the facts about `topic`, best first; every fact, in store order, when it is empty.

    `topic` may be in any language, a part of a word, one letter wrong, a key or the name of a category. Without `now`
    the caller answers for what has expired. `near` is as for `relevant`.
    """
    held = [fact for fact in (facts if now is None else live(facts, now)) if fact.state is FactState.ACTIVE]
    if not topic.strip():
        return held
    exact = ranking.evidence(ranking.cards_of(held), ranking.request_for(topic, *ranking.WEIGHTS))
    loose = ranking.loosely(held, topic, exact.met)
    scores = [sum(pair) for pair in zip(exact.scores, loose, strict=True)]
    scores = ranking.fused(scores, [near.get(fact.id) for fact in held])
    order = sorted((i for i, score in enumerate(scores) if score), key=lambda i: -round(scores[i], 9))
    return [held[i] for i in order[: max(0, k)]]


def matches(facts: Iterable[Fact], query: str) -> list[Fact]:
    """The commerce-agents contract's search (section 2): any word a substring of "key value category"; store order."""
    terms = query.lower().split()
    held = list(facts)
    if not terms:
        return held
    return [fact for fact in held if any(term in f"{fact.key} {fact.value} {fact.category}".lower() for term in terms)]


def live(facts: Iterable[Fact], now: datetime, off_categories: Collection[str] = frozenset()) -> list[Fact]:
    """The facts that may be used at this instant: neither frozen nor expired nor of a kind that is switched off."""
    now = _utc(now)
    return [
        fact
        for fact in facts
        if fact.state is FactState.ACTIVE
        and fact.category not in off_categories
        and (fact.expires_at is None or _utc(fact.expires_at) > now)
    ]


def _recency(fact: Fact, now: datetime) -> tuple[datetime, int]:
    """When it was last updated. A time that is missing or well ahead of the clock counts as long ago."""
    then = fact.updated_at and _utc(fact.updated_at)
    return (then if then and then <= _utc(now) + SKEW else _LONG_AGO), fact.id


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
