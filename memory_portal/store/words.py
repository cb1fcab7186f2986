"""Words of a short text. In: a text as it was said. Out: its words folded to search by (`tokens`), its language; never stored.
What may be folded to compare by is less, and in sentences.
May be imported by every room; imports sanitise, vocabulary and snowballstemmer.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import snowballstemmer

from memory_portal.store.sanitise import fold
from memory_portal.store.vocabulary import HINTS, STOP, TO_SIMPLIFIED

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

CACHED_TEXTS = 2_000
CACHED_WORDS = 10_000

T = TypeVar("T")
_of_texts: list[_lru_cache_wrapper[Any]] = []


def kept(size: int) -> Callable[[Callable[..., T]], _lru_cache_wrapper[T]]:
    """`lru_cache` for what is worked out of customers' texts, so that `forget_texts` reaches it."""

    def keep(function: Callable[..., T]) -> _lru_cache_wrapper[T]:
        cached = lru_cache(size)(function)
        _of_texts.append(cached)
        return cached

    return keep


def forget_texts() -> None:
    """Empty every cache of this process that holds customers' words; reading a fact again costs a fraction of a millisecond."""
    for cached in _of_texts:
        cached.cache_clear()


# Scripts written without spaces between words, and Hangul, whose particles stick to the word.
RUNS = (
    "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han, kana
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\uac00-\ud7a3"  # Thai, Lao, Burmese, Khmer, Hangul
)
# Python's \w knows no combining marks, without which words of Indic scripts fall apart.
_MARKS = "".join(chr(c) for c in range(0x300, 0x1E00) if unicodedata.category(chr(c))[0] == "M")
LETTERS = rf"(?:(?![{RUNS}\d_])\w)(?:(?![{RUNS}\d_])[\w{_MARKS}])*"
_WORD = re.compile(rf"(?P<run>[{RUNS}]+)|(?P<number>\d+(?:[.,]\d+)*)|(?P<word>{LETTERS})")


@kept(CACHED_TEXTS)
def tokens(text: str) -> tuple[str, ...]:
    """The words of `text` for searching, in order: stems of content words, numbers, Chinese characters and bigrams.

    Every word has its English stem without accents; in a text that reads as German or Spanish its stem there follows
    where it differs. So the same word is found whichever language a text is taken for.
    """
    matches = list(_WORD.finditer(fold(text)))
    language = language_of([match[0] for match in matches])
    found: list[str] = []
    for match in matches:
        if match["run"]:
            run = simplified(match["run"])
            found += [*run, *(run[i : i + 2] for i in range(len(run) - 1))]
        elif match["number"]:
            found.append(match["number"])
        elif match["word"] not in STOP[language]:
            found += _stems(match["word"], language)
    return tuple(found)


def language(text: str) -> str:
    """english, german or spanish."""
    return language_of([match[0] for match in _WORD.finditer(fold(text))])


def language_of(words: list[str]) -> str:
    """The language whose small words a text has most of; English when in doubt."""
    counts = {name: sum(map(telling.__contains__, words)) for name, telling in _TELLING.items()}
    return max(counts, key=counts.__getitem__)


_TELLING = {name: STOP[name] | HINTS[name] for name in STOP}


@kept(CACHED_WORDS)
def _stems(word: str, language: str) -> tuple[str, ...]:
    bare = "".join(c for c in unicodedata.normalize("NFD", word) if not "\u0300" <= c <= "\u036f") or word
    return tuple(dict.fromkeys((stem(bare, "english"), stem(bare, language))))


def stem(word: str, language: str) -> str:
    with _STEMMING:
        found: str = _stemmer(language).stemWord(word)
    return found


_STEMMING = Lock()
"""A stemmer holds the word it is at: two threads at one of them get each other's letters, or an IndexError."""


@lru_cache
def _stemmer(language: str) -> Any:
    return snowballstemmer.stemmer(language)


def simplified(text: str) -> str:
    return text.translate(TO_SIMPLIFIED)
