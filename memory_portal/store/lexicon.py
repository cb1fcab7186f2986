"""The built-in topics: which departments a text speaks of, before any model has read it. In: a text. Out: names of departments.

The words stand in `lexicon.txt`, in English, Chinese, Spanish and German. Imports words only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from memory_portal.store.types import TOPICS_LIMIT
from memory_portal.store.words import IRREGULAR, SPELLINGS, tokens

WIDER_SHARE = 0.4
"""How much a word says of the departments around its own: `sofa` is furniture for certain, and a little bit home."""

_LONGEST = 3
_COMPOUND = 8  # letters from which a word unknown as a whole may be known by its end: Wanderschuhe
_PART = 4
_TEXTS = 20_000

# Small words that make a single entry read as its language.
_FRAMES = {"en": "the my we ", "es": "el los mi ", "de": "der die mein ", "zh": ""}


class Lexicon(NamedTuple):
    departments: Mapping[tuple[str, ...], frozenset[str]]
    """The departments of a run of one to three stems."""
    wider: Mapping[str, frozenset[str]]
    """Every department around a department."""


@lru_cache(_TEXTS)
def stems(text: str) -> tuple[str, ...]:
    """The words of a text for matching, one for each thing: went is go, kids are children, a couch is a sofa."""
    return tuple(_one_word().get(stem, stem) for stem in tokens(text))


@lru_cache(_TEXTS)
def subjects(text: str) -> Mapping[str, float]:
    """The departments a text speaks of, and how clearly: 1 for a word of this department alone, more for more words."""
    found: dict[str, float] = {}
    for departments in _hits(stems(text)).values():
        share = len(departments) ** -0.5
        around = frozenset().union(*(lexicon().wider[name] for name in departments)) - departments
        for name in departments:
            found[name] = found.get(name, 0.0) + share
        for name in around:
            found[name] = found.get(name, 0.0) + share * WIDER_SHARE
    return found


def topics_for(text: str) -> tuple[str, ...]:
    """Names of at most twelve departments, the clearest first. Empty when no word is known."""
    found = subjects(text)
    return tuple(sorted(found, key=lambda name: (-found[name], name)))[:TOPICS_LIMIT]


def _hits(words: tuple[str, ...]) -> dict[tuple[str, ...], frozenset[str]]:
    """The known words and phrases of a text, each once. A phrase hides its parts: a coffee table is no coffee."""
    known, hits, at = lexicon().departments, {}, 0
    while at < len(words):
        for length in range(_LONGEST, 0, -1):
            run = words[at : at + length]
            departments = known.get(run) or (_by_its_end(run[0]) if length == 1 else None)
            if departments:
                hits[run] = departments
                break
        at += length
    inside = {sign for run in hits for word in run if len(word) > 1 for sign in word if sign >= "\u3400"}
    return {run: departments for run, departments in hits.items() if run[0] not in inside}


@lru_cache(_TEXTS)
def _by_its_end(word: str) -> frozenset[str]:
    if len(word) >= _COMPOUND and word.isalpha():
        for start in range(_PART - 1, len(word) - _PART + 1):
            if departments := lexicon().departments.get((word[start:],)):
                return departments
    return frozenset()


@lru_cache(1)
def lexicon() -> Lexicon:
    """The file, read once and on first use."""
    departments: dict[tuple[str, ...], set[str]] = {}
    around: dict[str, list[str]] = {}
    for name, wider, entries in _blocks(Path(__file__).with_name("lexicon.txt").read_text("utf-8")):
        around[name] = wider
        for language, word in entries:
            for run in _runs(language, word):
                departments.setdefault(run, set()).add(name)
    return Lexicon(
        {run: frozenset(names) for run, names in departments.items()},
        {name: frozenset(_ancestors(name, around)) for name in {*around, *sum(around.values(), [])}},
    )


def _blocks(text: str) -> Iterator[tuple[str, list[str], list[tuple[str, str]]]]:
    for block in text.split("\n\n"):
        head, *lines = [line for line in block.splitlines() if line and not line.startswith("#")] or [""]
        name, _, wider = head.partition(" < ")
        entries = [
            (language, word)
            for language, _, words in (line.partition(": ") for line in lines)
            for word in words.split(", ")
        ]
        if name:
            yield name, wider.split(", ") if wider else [], entries


def _runs(language: str, word: str) -> list[tuple[str, ...]]:
    """How an entry looks among the stems of a text. A single word has two stems where its language has another than English."""
    found = stems(_FRAMES[language] + word)
    if language == "zh":
        return [found[len(word) :] or found]
    return [found] if " " in word or "-" in word else [(stem,) for stem in found]


def _ancestors(name: str, around: Mapping[str, list[str]]) -> Iterator[str]:
    for wider in around.get(name, ()):
        yield wider
        yield from _ancestors(wider, around)


@lru_cache(1)
def _one_word() -> Mapping[str, str]:
    """Stems of irregular forms and second names, each with the stem it is read as."""
    pairs = [(other, kept.rstrip("+")) for table in (SPELLINGS["english"], IRREGULAR) for other, kept in table.items()]
    single = {
        o[0]: k[0]
        for o, k in ((tokens(f"the {other}"), tokens(f"the {kept}")) for other, kept in pairs)
        if len(o) == len(k) == 1
    }
    return {other: single.get(kept, kept) for other, kept in single.items() if other != kept}
