"""The three layers of a read. In: one customer's facts, the message or the topic, now. Out: facts in order, or none.

Pure: no database, no clock. A customer holds at most a few hundred facts, so every read ranks them all and there is no index
to keep in step. Imports types, sanitise and lexicon only.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import chain
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

# What a shared word is worth by where it stands, and a shared department. Chosen on one half of the stores, see docs/recall.md.
VALUE, KEY, TOPIC, CATEGORY = "v:", "k:", "t:", "c:"
WEIGHTS: Mapping[str, float] = {VALUE: 1.0, KEY: 0.3, TOPIC: 1.0, CATEGORY: 1.0}
DEPARTMENT = 0.5
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

_UNKNOWN_AGREEMENT = 0.4  # where the request speaks of no department we know
_CARDS = 10_000  # of some 3 kB each, in this process's memory only

_SKEW = timedelta(days=1)
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
# Words of scripts with spaces; in the others every character is found by itself.
_WORD = re.compile(r"[^\W\d_\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\U0003ffff]{3,}")


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
    cards = _cards(held)
    evidence = _evidence(cards, _request(f"{message} ; {hint}", VALUE, KEY, TOPIC))
    found = []
    for fact, card, score, agreement in zip(held, cards, *evidence, strict=True):
        strength = score * math.sqrt(agreement + 0.05)
        if strength >= (ENOUGH if card.has_topics else ENOUGH_SAID_ALONE) and fact.id not in exclude:
            found.append((strength, fact))
    return [fact for _, fact in sorted(found, key=lambda pair: -pair[0])][: max(0, k)]


def lookup(facts: Iterable[Fact], topic: str, *, k: int = LOOKUP_CAP, now: datetime | None = None) -> list[Fact]:
    """Layer 3: the facts about `topic`, best first; every fact, in store order, when it is empty.

    `topic` may be in any language, a part of a word, one letter wrong, a key or the name of a category. Without `now` the
    caller answers for what has expired.
    """
    held = [fact for fact in (facts if now is None else live(facts, now)) if fact.state is FactState.ACTIVE]
    if not topic.strip():
        return held
    cards = _cards(held)
    exact = _evidence(cards, _request(topic, *WEIGHTS)).scores
    scores = [score + loose for score, loose in zip(exact, _loosely(held, cards, topic), strict=True)]
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


class _Card(NamedTuple):
    """What a fact can be found by, and how much each find says."""

    words: Mapping[str, float]
    """Stems, marked with the place they stand in."""
    departments: Mapping[str, float]
    has_topics: bool


class _Evidence(NamedTuple):
    """What the facts have to do with a request, in their order. A closeness of meaning, where known, would add to `scores`."""

    scores: list[float]
    agreements: list[float]
    """Share of the request's departments that the fact speaks of, rare ones counting more."""


class _Request(NamedTuple):
    """What is looked for, as on a card, and what each find is worth."""

    words: Mapping[str, float]
    departments: Mapping[str, float]


@lru_cache(_CARDS)
def _card(key: str, value: str, category: str, topics: tuple[str, ...]) -> _Card:
    said, named = lexicon.stems(value), lexicon.stems(_spaced(key))
    departments = lexicon.subjects((*said, *named))
    # Topics out of the lexicon only repeat what it says of the value.
    about = lexicon.stems(" ; ".join(topic for topic in topics if topic not in departments))
    for name, clarity in lexicon.subjects(about).items():
        departments[name] = max(clarity, departments.get(name, 0.0))
    words = {
        **_saturated(VALUE, Counter(said), len(said) / _VALUE_WORDS),
        **_saturated(KEY, Counter(named)),
        **_saturated(TOPIC, Counter(about), len(about) / _TOPIC_WORDS),
        **_saturated(CATEGORY, Counter(lexicon.stems(_spaced(category)))),
    }
    return _Card(words, _saturated("", departments), bool(about))


def _cards(facts: Iterable[Fact]) -> list[_Card]:
    return [_card(fact.key, fact.value, fact.category, fact.topics) for fact in facts]


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _saturated(place: str, counts: Mapping[str, float], length: float = 1.0) -> dict[str, float]:
    """BM25's term weight, with the length of a typical fact for the store's mean: so a card outlives its neighbours."""
    damping = _SATURATION * (1 - _LENGTH + _LENGTH * length)
    return {intern(place + term): count * (_SATURATION + 1) / (count + damping) for term, count in counts.items()}


def _request(text: str, *places: str) -> _Request:
    stems, light = lexicon.stems(text), lexicon.light()
    words = {place + stem: WEIGHTS[place] * (LIGHT if stem in light else 1.0) for place in places for stem in stems}
    return _Request(words, {name: DEPARTMENT * clarity for name, clarity in lexicon.subjects(stems).items()})


def _evidence(cards: Sequence[_Card], request: _Request) -> _Evidence:
    """BM25 of every fact, the scores of all places added."""
    hits = [request.words.keys() & card.words.keys() for card in cards]
    agreed = [request.departments.keys() & card.departments.keys() for card in cards]
    having = Counter(chain.from_iterable(hits))
    speaking: dict[str, float] = dict.fromkeys(request.departments, 0.0)
    for card, names in zip(cards, agreed, strict=True):
        for name in names:
            speaking[name] += min(1.0, card.departments[name])
    worth = {word: request.words[word] * _rarity(count, len(cards)) for word, count in having.items()}
    matter = {name: request.departments[name] * _rarity(count, len(cards)) for name, count in speaking.items()}
    asked = sum(matter.values())
    found = _Evidence([], [])
    for card, words, names in zip(cards, hits, agreed, strict=True):
        score = shared = 0.0
        for word in words:
            score += worth[word] * card.words[word]
        for name in names:
            clarity = card.departments[name]
            score += matter[name] * clarity
            shared += matter[name] * min(1.0, clarity)
        found.scores.append(score)
        found.agreements.append(shared / asked if asked else _UNKNOWN_AGREEMENT)
    return found


@lru_cache(_CARDS)
def _rarity(having: float, held: int) -> float:
    """BM25's idf, as a share of what a word has that stands in one fact only."""
    size = held + _OTHER_FACTS
    return math.log(1 + (size - having + 0.5) / (having + 0.5)) / math.log(1 + (size - 0.5) / 1.5)


def _loosely(facts: Sequence[Fact], cards: Sequence[_Card], topic: str) -> list[float]:
    """Scores for words of the topic that stand in no fact: facts with a longer word around it, else with one a letter off."""
    scores = [0.0] * len(facts)
    strange = [word for word in _spelt("", topic, ()) if _is_strange(cards, word)]
    spelt = [_spelt(fact.key, fact.value, fact.topics) for fact in facts] if strange else []
    known = frozenset().union(*spelt)
    for word in strange:
        near = _around(word, known) or _one_off(word, known)
        having = [i for i, words in enumerate(spelt) if not words.isdisjoint(near)] if near else []
        for i in having:
            scores[i] += LOOSE * _rarity(len(having), len(facts))
    return scores


def _is_strange(cards: Sequence[_Card], word: str) -> bool:
    """A word that means something and stands in no fact."""
    stems = [stem for stem in lexicon.stems(word) if stem not in lexicon.light()]
    places = [place + stem for stem in stems for place in WEIGHTS]
    return bool(stems) and not any(place in card.words for place in places for card in cards)


@lru_cache(_CARDS)
def _spelt(key: str, value: str, topics: tuple[str, ...]) -> frozenset[str]:
    return frozenset(_WORD.findall(fold(" ".join((_spaced(key), value, *topics)))))


def _around(word: str, known: Iterable[str]) -> set[str]:
    """choc is chocolate and Schuhe is Wanderschuhe; rain is no train."""
    ends = {other for other in known if other.endswith(word)} if len(word) > 4 else set()
    return ends | {other for other in known if other.startswith(word)}


def _one_off(word: str, known: Iterable[str]) -> set[str]:
    """One letter too many, missing, wrong, or two swapped, but not the first. In short words it would be another word."""
    first, length = word[0], len(word)
    alike = [other for other in known if other[0] == first and -2 < len(other) - length < 2]
    return {other for other in alike if length > 3 and _is_slip(word, other)}


def _is_slip(a: str, b: str) -> bool:
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    a, b = a[start:], b[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])
