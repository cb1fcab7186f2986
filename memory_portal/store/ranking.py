"""What a request and a fact have in common. In: one customer's facts and a text. Out: a score and an agreement each.

Pure, and without an index to keep in step: a fact's card is worked out once and kept in this process while in use.
Imports types, sanitise, words and lexicon only.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from sys import intern
from typing import NamedTuple

from memory_portal.store import lexicon
from memory_portal.store.sanitise import fold
from memory_portal.store.types import Fact
from memory_portal.store.words import kept

# What a shared word is worth by where it stands, and a shared department.
# Chosen on one half of the stores: see docs/recall.md.
VALUE, KEY, TOPIC, CATEGORY = "v:", "k:", "t:", "c:"
WEIGHTS: Mapping[str, float] = {VALUE: 1.0, KEY: 0.3, TOPIC: 1.0, CATEGORY: 1.0}
DEPARTMENT = 0.5
LIGHT = 0.5
LOOSE = 0.6
"""What a part of a word, or a word one letter off, is worth beside the word itself."""

TAIL = 0.1
"""A look-up leaves out what scores less than this share of the best."""
MEANING = 0.7
"""Share of closeness in a look-up's score; words have the rest."""
NEAR, NEAR_WITH_WORDS = 0.3, 0.2
"""How close the nearest fact must be for closeness to count: more where no word of the topic stands in any fact."""
NEARLY = 0.5
"""What is left of the nearest: a fact found by closeness alone is at least this near beside it."""

_SATURATION, _LENGTH = 1.2, 0.5
_TYPICAL_LENGTH = {VALUE: 8, KEY: 2, TOPIC: 18, CATEGORY: 1}
_OTHER_FACTS = 20
"""Facts imagined beside those held, so that a word does not seem rare only because the customer holds three facts."""
_WORDS_OF_A_TOPIC = 5  # in a longer one, a sentence, the other words find the fact
_UNKNOWN_AGREEMENT = 0.4  # where the request speaks of no department we know
_CARDS, _PARTS = 2_000, 500  # of one to four kB each, in this process's memory only

# Words of scripts with spaces; in the others every character is found by itself.
_WORD = re.compile(r"[^\W\d_\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\U0003ffff]{3,}")


class Card(NamedTuple):
    """What a fact, or a part of one, can be found by, and how much each find says."""

    words: Mapping[str, float]
    """Stems, marked with the place they stand in."""
    departments: Mapping[str, float]
    has_topics: bool = False


class Evidence(NamedTuple):
    """What each fact has to do with a request, by its words. Closeness of meaning, where it is known, joins in `fused`."""

    scores: list[float]
    agreements: list[float]
    """Share of the request's departments that the fact speaks of, rare ones counting more."""
    met: frozenset[str]
    """The words of the request, marked with their place, that some fact has."""


class Request(NamedTuple):
    """What is looked for, as on a card, and what each find is worth."""

    words: Mapping[str, float]
    departments: Mapping[str, float]
    size: float
    """Words and departments asked for, light words counting a little."""


def cards_of(facts: Iterable[Fact]) -> list[Card]:
    return [_card(fact.key, fact.value, fact.category, fact.topics) for fact in facts]


@kept(_CARDS)
def _card(key: str, value: str, category: str, topics: tuple[str, ...]) -> Card:
    said, named, kind = _part(VALUE, value), _part(KEY, _spaced(key)), _part(CATEGORY, _spaced(category))
    departments = {**named.departments, **said.departments}
    # Topics out of the lexicon only repeat what it says of key and value.
    about = _part(TOPIC, " ; ".join(topic for topic in topics if topic not in departments))
    for name, clarity in chain(named.departments.items(), about.departments.items()):
        departments[name] = max(clarity, departments.get(name, 0.0))
    return Card({**said.words, **named.words, **kind.words, **about.words}, departments, bool(about.words))


@kept(_PARTS)
def _part(place: str, text: str) -> Card:
    stems = lexicon.stems(text)
    damping = _SATURATION * (1 - _LENGTH + _LENGTH * len(stems) / _TYPICAL_LENGTH[place])
    once = _saturated(1, damping)
    words = {
        intern(place + stem): once if count == 1 else _saturated(count, damping)
        for stem, count in Counter(stems).items()
    }
    departments = {name: _saturated(clarity) for name, clarity in lexicon.subjects(stems).items()}
    return Card(words, departments)


def _saturated(count: float, damping: float = _SATURATION) -> float:
    """BM25's term weight, with the length of a typical text for the store's mean: so a card outlives its neighbours."""
    return count * (_SATURATION + 1) / (count + damping)


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def request_for(text: str, *places: str) -> Request:
    """What a text looks for, in these places of a card."""
    stems, light = lexicon.stems(text), lexicon.light()
    words = {place + stem: WEIGHTS[place] * (LIGHT if stem in light else 1.0) for place in places for stem in stems}
    subjects = lexicon.subjects(tuple(stem for stem in stems if stem not in light))
    departments = {name: DEPARTMENT * clarity for name, clarity in subjects.items()}
    size = sum(LIGHT if stem in light else 1.0 for stem in set(stems)) + sum(departments.values())
    return Request(words, departments, size)


def evidence(cards: Sequence[Card], request: Request) -> Evidence:
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
    found = Evidence([], [], frozenset(having))
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


def fused(scores: Sequence[float], near: Sequence[float | None]) -> list[float]:
    """Scores by words and closeness by meaning as shares of the best, added; 0 for what belongs in no answer.

    A fact whose closeness is not known counts by its words alone.
    """
    best = max(scores, default=0.0)
    nearest = max((closeness for closeness in near if closeness is not None), default=0.0)
    if nearest < (NEAR_WITH_WORDS if best else NEAR):
        nearest = 0.0
    found = []
    for score, closeness in zip(scores, near, strict=True):
        said = score / best if best else 0.0
        meant = max(0.0, closeness / nearest) if nearest and closeness is not None else None
        belongs = said > TAIL or (meant or 0.0) >= NEARLY
        found.append((said if meant is None else (1 - MEANING) * said + MEANING * meant) if belongs else 0.0)
    return found


def loosely(facts: Sequence[Fact], topic: str, met: Collection[str]) -> list[float]:
    """Scores for words of the topic that no fact has: for a longer word around it, else for a word one letter off."""
    scores = [0.0] * len(facts)
    words = _spelt("", topic, ())
    if len(words) > _WORDS_OF_A_TOPIC:
        return scores
    # A single word is meant, even where it reads as a small word of another language: hat, son, war.
    strange = [word for word in words if _is_strange(word, met, alone=len(words) == 1)]
    spelt = [_spelt(fact.key, fact.value, fact.topics) for fact in facts] if strange else []
    known = frozenset().union(*spelt)
    for word in strange:
        near = _around(word, known) or _one_off(word, known)
        having = [i for i, there in enumerate(spelt) if not near.isdisjoint(there)] if near else []
        for i in having:
            scores[i] += LOOSE * _rarity(len(having), len(facts))
    return scores


def _is_strange(word: str, met: Collection[str], *, alone: bool) -> bool:
    """A word that means something and stands in no fact."""
    stems = [stem for stem in lexicon.stems(word) if stem not in lexicon.light()]
    return bool(stems or alone) and not any(place + stem in met for stem in stems for place in WEIGHTS)


@kept(_CARDS)
def _spelt(key: str, value: str, topics: tuple[str, ...]) -> frozenset[str]:
    return frozenset(_WORD.findall(fold(" ".join((_spaced(key), value, *topics)))))


def _around(word: str, known: Iterable[str]) -> set[str]:
    """choc is chocolate and Schuhe is Wanderschuhe; rain is no train."""
    longer = [other for other in known if word in other]
    return {other for other in longer if other.startswith(word) or (len(word) > 4 and other.endswith(word))}


def _one_off(word: str, known: Iterable[str]) -> set[str]:
    """One letter too many, missing, wrong, or two swapped, but not the first; short words would be other words."""
    first, length = word[0], len(word)
    alike = [other for other in known if other[0] == first and -2 < len(other) - length < 2]
    return {other for other in alike if length > 3 and _is_slip(word, other)}


def _is_slip(a: str, b: str) -> bool:
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    a, b = a[start:], b[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])
