"""The three layers of a read. In: one customer's facts, the message or the topic, now. Out: facts in order, or none.

Pure: no database, no clock. A customer holds at most a few hundred facts, so every read ranks them all and there is no index
to keep in step. Imports types, sanitise and lexicon only.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from os.path import commonprefix
from sys import intern
from typing import NamedTuple

from memory_portal.enums import FactState
from memory_portal.store import lexicon
from memory_portal.store.sanitise import fold
from memory_portal.store.types import CONSTRAINT, SAFETY, Fact

LAYER_ONE = frozenset({SAFETY, CONSTRAINT})
TIER_ONE_CAP = 8
BUDGET_CHARS = 4_000
RECORD_CHARS = 90
"""What a line of the block takes beside key and value: names, quotes, category, age, session tag."""

PREFETCH_CAP = 5
LOOKUP_CAP = 20

# What a shared word or department is worth, by where it stands. Chosen on half of the stores; docs/recall.md has both halves.
VALUE, KEY, TOPIC, DEPARTMENT, CATEGORY = "v:", "k:", "t:", "d:", "c:"
WEIGHTS: Mapping[str, float] = {VALUE: 1.0, KEY: 0.3, TOPIC: 1.0, DEPARTMENT: 0.5, CATEGORY: 1.0}
LIGHT = 0.2
LOOSE = 0.6
"""What a part of a word, or a word one letter off, is worth beside the word itself."""

ENOUGH = 1.7
"""The evidence layer 2 asks for, in words that only this fact has."""
ENOUGH_SAID_ALONE = 0.65 * ENOUGH
"""For a fact about which nobody wrote topics: it has fewer words to be found by."""

_SATURATION, _LENGTH, _VALUE_WORDS, _TOPIC_WORDS = 1.2, 0.5, 8, 18
_OTHER_FACTS = 20
"""Facts imagined beside those held, so that a word does not seem rare only because the customer holds three facts."""

_SKEW = timedelta(days=1)
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_WORD = re.compile(r"[^\W\d_]{3,}")


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

    Every fact of the `layer_one` categories, then the most recently updated others up to `cap` in all. The budget is spent
    on safety first, which it never drops, then on the rest of `layer_one`, then on the others. The order is by kind and id,
    so that the text of a block changes only when a fact does.
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
) -> list[Fact]:
    """Layer 2: at most `k` facts this message calls for, best first; often none, because silence is a result.

    `hint` is what the host knows of the page or the intent; `exclude` holds the ids of facts shown already.
    """
    held = live(facts, now, off_categories)
    cards = [_card(fact) for fact in held]
    found = [
        (strength, fact)
        for fact, card, evidence in zip(held, cards, _evidence(cards, _request(f"{message} ; {hint}")), strict=True)
        if (strength := evidence.strength) >= (ENOUGH if card.has_topics else ENOUGH_SAID_ALONE)
        and fact.id not in exclude
    ]
    return [fact for _, fact in sorted(found, key=lambda pair: -pair[0])][: max(0, k)]


def lookup(facts: Iterable[Fact], topic: str, *, k: int = LOOKUP_CAP, now: datetime | None = None) -> list[Fact]:
    """Layer 3: the facts about `topic`, best first; every fact, in store order, when it is empty.

    `topic` may be in any language, a part of a word, one letter wrong, a key or the name of a category. Without `now` the
    caller answers for what has expired.
    """
    held = [fact for fact in (facts if now is None else live(facts, now)) if fact.state is FactState.ACTIVE]
    if not topic.strip():
        return held
    cards = [_card(fact) for fact in held]
    request = _request(topic, CATEGORY)
    scores = [
        evidence.score + loose
        for evidence, loose in zip(_evidence(cards, request), _loosely(cards, topic), strict=True)
    ]
    order = sorted((i for i, score in enumerate(scores) if score > 0), key=lambda i: -scores[i])
    return [held[i] for i in order[: max(0, k)]]


def matches(facts: Iterable[Fact], query: str) -> list[Fact]:
    """The commerce-agents contract's search (section 2): any word is a substring of "key value category"; store order."""
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
    """When it was last updated. A time that is missing or well ahead of the clock proves nothing and counts as long ago."""
    then = fact.updated_at and _utc(fact.updated_at)
    return (then if then and then <= _utc(now) + _SKEW else _LONG_AGO), fact.id


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


@dataclass(frozen=True, slots=True)
class _Card:
    """What a fact can be found by: its stems and departments, each marked with where it stands, and how much they say."""

    says: Mapping[str, float]
    words: tuple[str, ...]
    has_topics: bool


class _Evidence(NamedTuple):
    """What one fact has to do with a request. `score` ranks; a closeness of meaning, where there is one, would add to it."""

    score: float
    agreement: float
    """Share of the request's departments that the fact speaks of, rare ones counting more."""

    @property
    def strength(self) -> float:
        return self.score * math.sqrt(self.agreement + 0.05)


_UNKNOWN_AGREEMENT = 0.4  # where the request speaks of no department we know


def _card(fact: Fact) -> _Card:
    return _card_of(fact.key, fact.value, fact.category, fact.topics)


@lru_cache(5_000)  # a few kilobytes each; in this process's memory only, gone with it
def _card_of(key: str, value: str, category: str, topics: tuple[str, ...]) -> _Card:
    name = key.replace("_", " ")
    said, named = lexicon.stems(value), lexicon.stems(name)
    departments = lexicon.subjects((*said, *named))
    # Topics out of the lexicon repeat what it says of the value anyway.
    written = " ; ".join(topic for topic in topics if topic not in departments)
    about = lexicon.stems(written)
    for department, clarity in lexicon.subjects(about).items():
        departments[department] = max(clarity, departments.get(department, 0.0))
    says = {
        **_saturated(VALUE, Counter(said), len(said) / _VALUE_WORDS),
        **_saturated(KEY, Counter(named)),
        **_saturated(TOPIC, Counter(about), len(about) / _TOPIC_WORDS),
        **_saturated(DEPARTMENT, departments),
        **_saturated(CATEGORY, Counter(lexicon.stems(category.replace("_", " ")))),
    }
    return _Card(says, tuple(dict.fromkeys(_WORD.findall(fold(f"{value} ; {name} ; {written}")))), bool(written))


def _saturated(place: str, counts: Mapping[str, float], length: float = 1.0) -> dict[str, float]:
    """BM25's term weight, with the length of a typical fact in place of the store's mean: so a card outlives its neighbours."""
    damping = _SATURATION * (1 - _LENGTH + _LENGTH * length)
    return {intern(place + term): count * (_SATURATION + 1) / (count + damping) for term, count in counts.items()}


def _request(text: str, *places: str) -> dict[str, float]:
    """What a request looks for, by place, and what each find is worth."""
    stems = lexicon.stems(text)
    worth = {stem: LIGHT if stem in lexicon.light() else 1.0 for stem in stems}
    sought = {
        place + stem: WEIGHTS[place] * weight
        for place in (VALUE, KEY, TOPIC, *places)
        for stem, weight in worth.items()
    }
    return sought | {
        DEPARTMENT + name: WEIGHTS[DEPARTMENT] * clarity for name, clarity in lexicon.subjects(stems).items()
    }


def _evidence(cards: Sequence[_Card], request: Mapping[str, float]) -> list[_Evidence]:
    """BM25 of every fact, the scores of all places added."""
    hits = [request.keys() & card.says.keys() for card in cards]
    spread: Counter[str] = Counter()
    for card, hit in zip(cards, hits, strict=True):
        for term in hit:
            spread[term] += min(1.0, card.says[term]) if term.startswith(DEPARTMENT) else 1  # type: ignore[assignment]
    value = {term: worth * _rarity(spread[term], len(cards)) for term, worth in request.items()}
    asked = sum(worth for term, worth in value.items() if term.startswith(DEPARTMENT))
    found = []
    for card, hit in zip(cards, hits, strict=True):
        agreed = sum(value[term] * min(1.0, card.says[term]) for term in hit if term.startswith(DEPARTMENT))
        score = sum(value[term] * card.says[term] for term in hit)
        found.append(_Evidence(score, agreed / asked if asked else _UNKNOWN_AGREEMENT))
    return found


def _rarity(having: float, held: int) -> float:
    """BM25's idf, as a share of what a word that stands in one fact only would have."""
    size = held + _OTHER_FACTS
    return math.log(1 + (size - having + 0.5) / (having + 0.5)) / math.log(1 + (size - 0.5) / 1.5)


def _loosely(cards: Sequence[_Card], topic: str) -> list[float]:
    """Scores for words of the topic that stand in no fact: facts with a longer word around it, else with one a letter off."""
    scores = [0.0] * len(cards)
    known = {word for card in cards for word in card.words}
    for word in dict.fromkeys(_WORD.findall(fold(topic))):
        if word in known or word in lexicon.light():
            continue
        near = {other for other in known if _is_part(word, other)} or {
            other for other in known if _one_off(word, other)
        }
        having = [i for i, card in enumerate(cards) if not near.isdisjoint(card.words)]
        for i in having:
            scores[i] += LOOSE * _rarity(len(having), len(cards))
    return scores


def _is_part(word: str, whole: str) -> bool:
    """choc is chocolate and Schuhe is Wanderschuhe; rain is no train."""
    return whole.startswith(word) or (len(word) > 4 and whole.endswith(word))


def _one_off(a: str, b: str) -> bool:
    """One letter too many, missing, wrong, or two swapped; in short words that would be another word."""
    if min(len(a), len(b)) < 4 or abs(len(a) - len(b)) > 1 or (a[0] != b[0] and a[-1] != b[-1]):
        return False
    start = len(commonprefix((a, b)))
    a, b = a[start:], b[start:]
    end = len(commonprefix((a[::-1], b[::-1])))
    a, b = a[: len(a) - end], b[: len(b) - end]
    return max(len(a), len(b)) < 2 or (len(a) == 2 and a == b[::-1])
