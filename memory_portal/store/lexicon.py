"""The built-in topics: which departments a text speaks of, before any model has read it. In: a text. Out: their names.

The words stand in `lexicon.txt`, in English, Chinese, Spanish and German. Reading it takes a third of a second, on
first use. Imports types and words only.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from memory_portal.store.types import TOPICS_LIMIT
from memory_portal.store.words import kept, tokens

WIDER_SHARE = 0.4
"""How much a word says of the departments around its own: `sofa` is furniture for certain, and a little bit home."""

_LONGEST = 6  # stems: three words, two stems each in Spanish and German
_COMPOUND, _PART = 8, 4
"""From eight letters on, a word unknown as a whole may be known by an end of four or more: Wanderschuhe."""

_WORDS = 5_000

# Small words that make a single entry read as its language.
_FRAMES = {"en": "the my we ", "es": "el los mi ", "de": "der die mein ", "zh": ""}

Entries = list[tuple[str, str]]


class Lexicon(NamedTuple):
    words: Mapping[str, frozenset[str]]
    """The departments of a stem."""
    phrases: Mapping[tuple[str, ...], frozenset[str]]
    """The departments of stems in a row."""
    heads: frozenset[str]
    """The stems that phrases begin with."""
    wider: Mapping[str, frozenset[str]]
    """Every department around a department."""


class Same(NamedTuple):
    stems: Mapping[str, str]
    """The stem that another stem is read as."""
    chinese: Mapping[str, str]
    """The Chinese word that another is read as; words of one character too, so it is the text that is rewritten."""
    pattern: re.Pattern[str]


def stems(text: str) -> tuple[str, ...]:
    """The words of a text for matching, one for each thing: went is go, kids are children, a couch is a sofa."""
    same = _same()
    plain = same.pattern.sub(lambda found: same.chinese[found[0]], text)
    return tuple(same.stems.get(stem, stem) for stem in tokens(plain))


def subjects(words: tuple[str, ...]) -> dict[str, float]:
    """The departments that stems speak of, and how clearly: 1 for one word of this department alone, more for more."""
    found: defaultdict[str, float] = defaultdict(float)
    for departments in _hits(words).values():
        for name, clarity in _clarity(departments):
            found[name] += clarity
    return dict(found)


@lru_cache(_WORDS)
def _clarity(departments: frozenset[str]) -> tuple[tuple[str, float], ...]:
    """What a word of these departments says of them, and of those around."""
    share = len(departments) ** -0.5
    around = frozenset().union(*(lexicon().wider[name] for name in departments)) - departments
    return (*((name, share) for name in departments), *((name, share * WIDER_SHARE) for name in around))


def topics_for(text: str) -> tuple[str, ...]:
    """Names of at most twelve departments, the clearest first. Empty when no word is known."""
    found = subjects(stems(text))
    return tuple(sorted(found, key=lambda name: (-found[name], name)))[:TOPICS_LIMIT]


def _hits(words: tuple[str, ...]) -> dict[str, frozenset[str]]:
    """The known words and phrases of a text, each once. A phrase hides its parts: a coffee table is no coffee."""
    known, phrases, heads, _ = lexicon()
    hits: dict[str, frozenset[str]] = {}
    at = 0
    while at < len(words):
        word = words[at]
        for length in range(_LONGEST if word in heads else 1, 1, -1):
            if departments := phrases.get(words[at : at + length]):
                hits[" ".join(words[at : at + length])] = departments
                at += length
                break
        else:
            if departments := known.get(word) or _by_its_end(word):
                hits[word] = departments
            at += 1
    # 水 says nothing of drinks where it is a part of 薪水.
    inside = {sign for run in hits if run >= "\u3400" and len(run) > 1 for sign in run}
    return {run: departments for run, departments in hits.items() if run not in inside}


@kept(_WORDS)
def _by_its_end(word: str) -> frozenset[str]:
    if len(word) >= _COMPOUND and word.isalpha():
        for start in range(_PART - 1, len(word) - _PART + 1):
            if departments := lexicon().words.get(word[start:]):
                return departments
    return frozenset()


@lru_cache(1)
def lexicon() -> Lexicon:
    """The departments of the file, read on first use."""
    around: dict[str, list[str]] = {}
    entries: list[tuple[str, str, str]] = []
    for head, lines in _blocks():
        if not head.startswith(("same ", "light ")):
            name, _, wider = head.partition(" < ")
            around[name] = wider.split(", ") if wider else []
            for language, _, words in (line.partition(": ") for line in lines):
                entries += ((language, word, name) for word in words.split(", "))
    departments: dict[tuple[str, ...], set[str]] = {}
    for language, word, name in sorted(entries, key=lambda entry: entry[0] != "en"):
        first, *others = _runs(language, word)
        # The second stem of a Spanish or German word must not be an English word: playa is not play.
        for run in (first, *(run for run in others if run not in departments)):
            departments.setdefault(run, set()).add(name)
    names = {*around, *chain.from_iterable(around.values())}
    return Lexicon(
        words={run[0]: frozenset(where) for run, where in departments.items() if len(run) == 1},
        phrases={run: frozenset(where) for run, where in departments.items() if len(run) > 1},
        heads=frozenset(run[0] for run in departments if len(run) > 1),
        wider={name: frozenset(_ancestors(name, around)) for name in names},
    )


@lru_cache(1)
def _same() -> Same:
    stemmed: dict[str, str] = {}
    chinese: dict[str, str] = {}
    for head, lines in _blocks():
        if not head.startswith("same "):
            continue
        language = head.removeprefix("same ")
        for group in ", ".join(lines).split(", "):
            kept, *others = group.split(" ")
            if language == "zh":
                chinese |= dict.fromkeys(others, kept)
                continue
            for stem in (stem for other in others for stem in tokens(_FRAMES[language] + other)):
                stemmed.setdefault(stem, tokens(_FRAMES[language] + kept)[0])
    # A name that stands for others may have a first name itself.
    stemmed = {other: stemmed.get(kept, kept) for other, kept in stemmed.items()}
    pattern = re.compile("|".join(sorted(chinese, key=len, reverse=True)))
    return Same({other: kept for other, kept in stemmed.items() if other != kept}, chinese, pattern)


@lru_cache(1)
def light() -> frozenset[str]:
    """Stems of the words that ask rather than name what is asked for: recommend, best, something."""
    entries = [
        (head.removeprefix("light "), entry)
        for head, lines in _blocks()
        if head.startswith("light ")
        for entry in ", ".join(lines).split(", ")
    ]
    return frozenset(stem for language, entry in entries for run in _runs(language, entry) for stem in run)


def _blocks() -> Iterator[tuple[str, list[str]]]:
    for block in Path(__file__).with_name("lexicon.txt").read_text("utf-8").split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        if lines:
            yield lines[0], lines[1:]


def _runs(language: str, entry: str) -> list[tuple[str, ...]]:
    """How an entry looks among the stems of a text. A single word has two where its language stems it otherwise."""
    found = stems(_FRAMES[language] + entry)
    if language == "zh":
        single = [stem for stem in found if len(stem) == 1]
        return [tuple(found[len(single) :]) or tuple(single)]
    return [found] if " " in entry or "-" in entry else [(stem,) for stem in found]


def _ancestors(name: str, around: Mapping[str, list[str]]) -> Iterator[str]:
    for wider in around.get(name, ()):
        yield wider
        yield from _ancestors(wider, around)
