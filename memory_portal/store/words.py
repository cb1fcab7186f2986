"""Words of a short text, folded for comparing and for searching. In: a text as it was said. Out: tuples of words.

Nothing here changes what is stored: a folded text is only ever compared. Imports the standard library and snowballstemmer.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Any

import snowballstemmer  # type: ignore[import-untyped]  # it ships no types

CACHED_TEXTS = 20_000
CACHED_WORDS = 50_000

STOP_EN = frozenset(
    """a an the and or but if of at by for with about to from in on off over under is are was were be been being am do does did
    doing have has had having i me my mine we us our you your he him his she her it its they them their what which who whom
    this that these those when where why how s t d m ll re ve can will just not no so than too very as any some all there here
    would could should may might also really please don doesn didn isn aren wasn weren won wouldn couldn shouldn hasn haven
    hadn""".split()
)
STOP_DE = frozenset(
    """der die das den dem des ein eine einen einem einer eines und oder aber ich mich mir mein meine meinen meiner du dein er sie
    es wir uns unser ihr ihre sein seine ist sind bin war waren hat habe haben im in am an auf zu zum zur von vom mit bei für nicht
    kein keine keinen auch sehr nur noch als wie was wer wo wann dass""".split()
)
STOP_ES = frozenset(
    """el la los las un una unos unas y o u pero yo me mi mis tu tus él ella le les lo se su sus nos es son soy era está están estoy
    ha he han en de del al a con por para que no ni si como muy más también qué quién dónde cuándo cuál""".split()
)

SIGNS = "%‰#@&"
"""Punctuation that carries meaning in a short value; mathematical and currency signs and emoji do so by their class."""

# Scripts written without spaces between words, and Hangul, whose particles stick to the word.
_RUNS = (
    "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han, kana
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\uac00-\ud7a3"  # Thai, Lao, Burmese, Khmer, Hangul
)
# Python's \w knows no combining marks, without which words of Indic scripts fall apart.
_MARKS = "".join(chr(c) for c in range(0x300, 0x1E00) if unicodedata.category(chr(c))[0] == "M")
_WORD = re.compile(
    rf"(?P<run>[{_RUNS}]+)|(?P<number>\d+(?:[.,]\d+)*)|(?P<word>(?:(?![{_RUNS}\d_])\w)(?:(?![{_RUNS}\d_])[\w{_MARKS}])*)"
)
_HIDDEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800")
_SHAPES = {"<super>": "^", "<sub>": "_", "<fraction>": " ", "<circle>": " ", "<square>": " "}


@lru_cache(CACHED_WORDS)
def _fold_character(character: str) -> str:
    """NFKC, but 5½ does not become 51/2 nor 10² become 102, and what cannot be seen becomes nothing."""
    if _is_hidden(character):
        return ""
    if unicodedata.category(character) == "Cc":
        return " "
    shape = unicodedata.decomposition(character).partition(" ")[0]
    return _SHAPES.get(shape, "") + unicodedata.normalize("NFKC", character).replace("\u2044", "/")


def _is_hidden(character: str) -> bool:
    return (
        unicodedata.category(character) == "Cf"
        or character in _HIDDEN
        or "\ufe00" <= character <= "\ufe0f"
        or character >= "\U000e0000"
    )


@lru_cache(CACHED_TEXTS)
def plain(text: str) -> str:
    """One spelling for a text: case, width, quotes, hidden characters and compatibility forms folded, meaning untouched."""
    if text.isascii():
        return text.casefold()
    folded = "".join(map(_fold_character, unicodedata.normalize("NFC", text)))
    return unicodedata.normalize("NFC", folded.replace("\u2019", "'").replace("\u2018", "'").casefold())


@lru_cache(CACHED_TEXTS)
def tokens(text: str) -> tuple[str, ...]:
    """The words of `text` for searching, in order: stems of content words, numbers, Chinese characters and their bigrams.

    Every word has its English stem without accents; in a text that reads as German or Spanish its stem there follows where it
    differs. So the same word is found whichever language a text is taken for.
    """
    folded = plain(text)
    language = _language(folded)
    found: list[str] = []
    for match in _WORD.finditer(folded):
        if match["run"]:
            found += [*match["run"], *(match["run"][i : i + 2] for i in range(len(match["run"]) - 1))]
        elif match["number"]:
            found.append(match["number"])
        elif match["word"] not in STOP_WORDS[language]:
            found += _stems(match["word"], language)
    return tuple(found)


STOP_WORDS = {"english": STOP_EN, "german": STOP_DE, "spanish": STOP_ES}


def _language(folded: str) -> str:
    """The language whose small words a text has most of; English when in doubt."""
    words = folded.split()
    counts = {name: sum(word in stop for word in words) for name, stop in STOP_WORDS.items()}
    return max(counts, key=counts.__getitem__)


@lru_cache(CACHED_WORDS)
def _stems(word: str, language: str) -> tuple[str, ...]:
    bare = "".join(c for c in unicodedata.normalize("NFD", word) if not "\u0300" <= c <= "\u036f") or word
    stems = (_stemmer("english").stemWord(bare), _stemmer(language).stemWord(bare))
    return tuple(dict.fromkeys(stems))


@lru_cache
def _stemmer(language: str) -> Any:
    return snowballstemmer.stemmer(language)
