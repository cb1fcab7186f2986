"""Where a quote stands in what the customer said. In: a quote and the turns. Out: places, each with what surrounds it.

Two texts are compared as the store compares: folded, sign by sign, so that every folded sign has its place in the original.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from agent_bridge.extraction import Turn
from agent_bridge.extraction.pasted import Span, echoes, pasted
from agent_bridge.extraction.speech import Vocabulary, not_in_own_voice, words
from memory_portal import store

SENTENCE = 600
"""Characters before and after a quote that count as its sentence where nothing ends it."""
TRIED = 16
"""A turn that says the same thing more often than this is read no further: it would only cost time."""
PARROTED = 30
"""So many characters in a row that the assistant said before are not the customer's own wording."""


@dataclass(frozen=True, slots=True)
class Heard:
    """One turn of the customer, read once for all claims that may rest on it."""

    turn: Turn
    text: str
    folded: str
    origin: list[int]
    """For each sign of `folded` its place in `text`."""
    pasted: list[Span]
    echoes: list[Span]
    own: Vocabulary
    own_folded: str
    """What is left without the quoted and pasted; the text without spaces."""
    told: str
    """What the assistant had said by then, folded."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a quote stands: the words as they stand there, and the sentence around them."""

    heard: Heard
    words: str
    sentence: str
    quoted: bool
    echo: bool


def listen(turns: Iterable[Turn]) -> tuple[Heard, ...]:
    """The customer's turns, read. The assistant's count only for what the customer may have repeated of them."""
    heard: list[Heard] = []
    told = ""
    for turn in turns:
        if turn.role == "assistant":
            told += " " + store.fold(turn.text)
            continue
        text = unicodedata.normalize("NFC", turn.text)
        spans = pasted(text)
        left = without(text, spans)
        own = store.fold(left).replace(" ", "")
        heard.append(Heard(turn, text, *folded(text), spans, echoes(text), Vocabulary(words(left)), own, told))
    return tuple(heard)


def places(quote: str, heard: Iterable[Heard]) -> Iterator[Place]:
    """Every place in a customer's turn where the quote stands, at the borders of words."""
    quote = unicodedata.normalize("NFC", quote)
    wanted, _ = folded(quote)
    for turn in heard:
        at = turn.folded.find(wanted) if wanted else -1
        tried = 0
        while at >= 0 and tried < TRIED:
            tried += 1
            end = at + len(wanted)
            start, stop = turn.origin[at], turn.origin[end - 1] + 1
            whole_words = _border(turn.folded, at) and _border(turn.folded, end)
            # Sign by sign, 10² and 102 fold alike; the whole text tells them apart.
            if whole_words and store.fold(turn.text[start:stop]) == store.fold(quote):
                yield _place(turn, start, stop)
            at = turn.folded.find(wanted, at + 1)


def _place(turn: Heard, start: int, stop: int) -> Place:
    found, sentence = turn.text[start:stop], sentence_around(turn.text, start, stop)
    inside = any(a < stop and start < b for a, b in turn.pasted)
    parroted = any(len(text) >= PARROTED and store.fold(text) in turn.told for text in (found, sentence.rstrip(_ENDS)))
    return Place(
        heard=turn,
        words=found,
        sentence=sentence,
        quoted=inside or parroted or not_in_own_voice(sentence),
        echo=any(a < stop and start < b for a, b in turn.echoes),
    )


def folded(text: str) -> tuple[str, list[int]]:
    """The text folded sign by sign, and for each sign of the answer its place in the text."""
    pieces: list[str] = []
    origin: list[int] = []
    for place, char in enumerate(text):
        piece = " " if char.isspace() else _fold_sign(char)
        if piece == " " and (not pieces or pieces[-1] == " "):
            continue
        pieces += piece
        origin += [place] * len(piece)
    if pieces and pieces[-1] == " ":
        pieces.pop()
        origin.pop()
    return "".join(pieces), origin


@lru_cache(maxsize=8192)
def _fold_sign(char: str) -> str:
    return store.fold(char)


_SPACED = re.compile(r"[a-z0-9\u00df-\u024f\u0370-\u052f]")


def _border(text: str, at: int) -> bool:
    """Not in the middle of a word or a number, for scripts that have spaces between words."""
    return not (0 < at < len(text) and _SPACED.match(text[at - 1]) and _SPACED.match(text[at]))


_ENDS = " .!?…。！？；\"'”’"
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)]{0,4}\s+|(?<=[。！？；])[」』”]{0,4}|\n+")


def sentence_around(text: str, start: int, end: int) -> str:
    """The sentence, or sentences, that a span stands in."""
    cuts = [0, *(found.end() for found in _SENTENCE_END.finditer(text)), len(text)]
    first = max(max(cut for cut in cuts if cut <= start), start - SENTENCE)
    last = min(min(cut for cut in cuts if cut >= end), end + SENTENCE)
    return text[first:last].strip()


def without(text: str, spans: Iterable[Span]) -> str:
    kept, at = [], 0
    for start, end in sorted(spans):
        kept.append(text[at : max(at, start)])
        at = max(at, end)
    return " ".join([*kept, text[at:]])
