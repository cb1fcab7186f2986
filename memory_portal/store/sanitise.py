"""Text as somebody sent it in, text fit to be kept or compared out: hidden characters go, what was meant stays.
Kept text is NFC only, because NFKC changes meaning (10² is not 102). Compared text (`fold`) is never stored.
May be imported by every room of the store; imports types, errors and enums only.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache

from memory_portal.enums import ChangeAction, Origin, Reason
from memory_portal.store.errors import InvalidDraft
from memory_portal.store.types import KEY_LIMIT, QUOTE_LIMIT, TOPIC_LIMIT, TOPICS_LIMIT, VALUE_LIMIT, Draft

RAW_FACTOR = 20
"""Raw text this many times over its limit is refused unread: normalising long runs of combining marks is quadratic."""

ZWNJ = "\u200c"
ZWJ = "\u200d"
KEYCAP = "\u20e3"

# Everything that Python, HTML or a prompt might read as the end of a line or cell.
_BREAKS = re.compile("[ ]*[\t-\r\x1c-\x1f\x85\u2028\u2029][\t-\r\x1c-\x1f\x85\u2028\u2029 ]*")
_PLAIN = re.compile(r"[ -~]*")

# Blank although their category says letter, mark or symbol: grapheme joiner, Hangul, Khmer, Khitan and musical fillers,
# the place of an attached object.
_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\ufffc\U00016fe4\U0001d159")
# Format characters which are visible: number signs and marks of Arabic, Syriac and Kaithi.
_VISIBLE_FORMATS = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
# Reserved for emoji and ideographs to come; this Python may be older than the customer's phone.
_GROWING = ((0x1F000, 0x1FAFF), (0x20000, 0x2FFFD), (0x30000, 0x3FFFD))

# The only tag sequences in use (flags of England, Scotland, Wales); any other run of tags is a way to smuggle text.
_TAGS_OF_FLAGS = ["".join(chr(0xE0000 + ord(c)) for c in flag) for flag in ("gbeng", "gbsct", "gbwls")]
_TAG_FLAG = re.compile(f"\U0001f3f4(?:{'|'.join(_TAGS_OF_FLAGS)})\U000e007f")

_SELECTORS = "\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
_JOINERS = ZWNJ + ZWJ
_CONDITIONAL = re.compile(f"[{_SELECTORS}{_JOINERS}]+")
_EMOJI = re.compile(
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_IDEOGRAPH = re.compile("[\u3001-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff01-\uff60\U00020000-\U0003fffd]")
_MONGOLIAN = re.compile("[\u1820-\u18aa]")
# Scripts whose spelling uses the joiners: Arabic and Syriac to N'Ko, the Indic scripts to Sinhala, Myanmar, Khmer,
# Mongolian, and the later blocks of the same.
_JOINING = re.compile(
    "[\u0600-\u085f\u0860-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17ff\u1800-\u18af\u1b00-\u1bff\ua800-\ua8ff"
    "\ua980-\ua9df\uaa60-\uaa7f\uaae0-\uaaff\uabc0-\uabff\ufb50-\ufdff\ufe70-\ufefc\U00010a00-\U00010a5f\U00011000-\U0001177f"
    "\U0001e900-\U0001e95f]"
)


def clean(text: str) -> str:
    """The form that is stored: NFC, one line, nothing in it that cannot be seen or heard.

    Joiners and variation selectors stay where a script or an emoji needs them and go everywhere else.
    """
    if _PLAIN.fullmatch(text):
        return text.strip()
    seen = _BREAKS.sub(" ", text)
    seen = _without_hidden(seen)
    seen = unicodedata.normalize("NFC", seen)
    seen = _CONDITIONAL.sub(_needed, seen)
    # Taking out a joiner can bring a letter and its accent together.
    return unicodedata.normalize("NFC", seen).strip()


def normalise_key(text: str) -> str:
    """The one spelling of a fact's name: NFKC, lower-case, letters and digits of every script, `_` between words.

    Raises InvalidDraft when it is longer than a key may be; an empty answer is for the caller to judge.
    """
    _refuse_vast("key", text, KEY_LIMIT)
    plain = _bare(unicodedata.normalize("NFKC", _bare(text)).lower())
    plain = unicodedata.normalize("NFKC", plain)
    key = "_".join("".join(c if _in_word(c) else " " for c in plain).split())
    if len(key) > KEY_LIMIT:
        raise _too_long("key", len(key), KEY_LIMIT)
    return key


def fold(text: str) -> str:
    """The form that is compared and never stored: case, width, typography, hidden characters and spacing do not count.

    Powers and fractions stay apart from plain digits: 10² folds to 10^2, 5½ to 5 1/2.
    """
    if text.isascii():
        return " ".join(_bare(text).lower().split()) if not _PLAIN.fullmatch(text) else " ".join(text.lower().split())
    folded = _fold_once(text)
    # Rare letters need a second pass (a full-width sign whose lower case decomposes again).
    again = _fold_once(folded)
    return again if again == folded else _fold_once(again)


def value_form(text: str) -> str:
    """`fold` without punctuation, but for signs between digits: what a tombstone recognises a forgotten value by."""
    folded = fold(text)
    words = _PUNCTUATION_BETWEEN.sub(" ", folded) if folded.isascii() else _spaced(folded)
    return " ".join(words.split()) or folded


def session_tag(session_id: str) -> str:
    """Twelve hex digits that stand for a session wherever its id would say too much."""
    return hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def draft(
    *,
    key: str,
    value: str,
    category: str,
    origin: Origin,
    said_at: datetime,
    now: datetime,
    action: ChangeAction = ChangeAction.REMEMBER,
    source_quote: str = "",
    session_id: str = "",
    agent: str = "",
    extractor: str = "",
    topics: Iterable[str] = (),
    suspicion: Reason | None = None,
) -> Draft:
    """A Draft of raw fields. Raises InvalidDraft naming field and limit; a clock that runs ahead counts as `now`."""
    _refuse_vast("value", value, VALUE_LIMIT)
    _refuse_vast("source_quote", source_quote, QUOTE_LIMIT)
    return Draft(
        key=normalise_key(key),
        value=clean(value),
        category=clean(category),
        origin=origin,
        said_at=_not_ahead(said_at, now),
        action=action,
        source_quote=clean(source_quote),
        source_session_id=session_tag(session_id) if session_id else "",
        agent=clean(agent),
        extractor=clean(extractor),
        topics=_topics(topics),
        suspicion=suspicion,
    )


def _not_ahead(said_at: datetime, now: datetime) -> datetime:
    if said_at.tzinfo is None:
        return said_at  # the Draft refuses it
    return min(said_at, now).astimezone(UTC)


def _topics(raw: Iterable[str]) -> tuple[str, ...]:
    """Topics only help to find a fact, so one that does not fit is left out rather than refused."""
    kept: dict[str, str] = {}
    for topic in raw:
        if len(topic) > TOPIC_LIMIT * RAW_FACTOR:
            continue
        plain = clean(topic)
        if plain and len(plain) <= TOPIC_LIMIT:
            kept.setdefault(fold(plain), plain)
    return tuple(kept.values())[:TOPICS_LIMIT]


def _refuse_vast(field: str, text: str, limit: int) -> None:
    if len(text) > limit * RAW_FACTOR:
        raise _too_long(field, len(text), limit)


def _too_long(field: str, length: int, limit: int) -> InvalidDraft:
    return InvalidDraft(
        field, Reason.TOO_LONG, f"{field} takes at most {limit} characters, this has {length}", limit=limit
    )


@lru_cache(maxsize=8192)
def _is_hidden(char: str) -> bool:
    """Never wanted, wherever it stands. Joiners and variation selectors are judged by their neighbours instead."""
    if char in _BLANKS:
        return True
    category = unicodedata.category(char)
    if category == "Cn":
        code = ord(char)
        return not any(first <= code <= last for first, last in _GROWING)
    if category == "Cf":
        return char not in _VISIBLE_FORMATS and char not in _JOINERS
    return category in ("Cc", "Cs", "Co")


def _without_hidden(text: str) -> str:
    if "\U0001f3f4" not in text:
        return "".join(c for c in text if not _is_hidden(c))
    kept, start = [], 0
    for flag in _TAG_FLAG.finditer(text):
        kept += [*(c for c in text[start : flag.start()] if not _is_hidden(c)), flag[0]]
        start = flag.end()
    return "".join([*kept, *(c for c in text[start:] if not _is_hidden(c))])


def _bare(text: str) -> str:
    """Without any hidden character, needed or not; line breaks are spaces."""
    return _CONDITIONAL.sub("", "".join(c for c in _BREAKS.sub(" ", text) if not _is_hidden(c)))


def _needed(run: re.Match[str]) -> str:
    """Of a run of joiners and selectors, at most one selector and one joiner, where the neighbours call for them."""
    signs, text = run[0], run.string
    before = text[run.start() - 1] if run.start() else ""
    after = text[run.end()] if run.end() < len(text) else ""
    selector = signs[0] if signs[0] not in _JOINERS and _takes_selector(before, signs[0], after) else ""
    joiner = next((c for c in signs if c in _JOINERS), "")
    return selector + (joiner if joiner and _takes_joiner(before, joiner, after) else "")


def _takes_selector(before: str, selector: str, after: str) -> bool:
    if selector in "\ufe0e\ufe0f":
        return bool(_EMOJI.match(before)) or (before in "0123456789#*" and before != "" and after == KEYCAP)
    if "\u180b" <= selector <= "\u180f":
        return bool(_MONGOLIAN.match(before))
    return bool(_IDEOGRAPH.match(before))


def _takes_joiner(before: str, joiner: str, after: str) -> bool:
    if joiner == ZWJ and _EMOJI.match(before) and _EMOJI.match(after):
        return True
    if not (_JOINING.match(before) and unicodedata.category(before)[0] in "LM"):
        return False
    # A joiner may end a word (Malayalam chillu, the Arabic abbreviation of Hijri); a non-joiner only parts letters.
    return joiner == ZWJ or bool(_JOINING.match(after) and unicodedata.category(after)[0] in "LM")


@lru_cache(maxsize=8192)
def _in_word(char: str) -> bool:
    return unicodedata.category(char)[0] in "LMN"


_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_POWER = re.compile(f"(?<=[0-9])[{_SUPERSCRIPTS}]+")
_FRACTION = re.compile("(?<=[0-9])(?=[\u00bc-\u00be\u2150-\u215e])")
_TYPOGRAPHY = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc\u02b9\u00b4\u2039\u203a\uff40", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\u300c\u300d\u300e\u300f\u301d\u301e", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\u2e3a\u2e3b", "-"),
        "\u2044": "/",
        "\u2215": "/",
        "\u3002": ".",
        "\u3001": ",",
        "\u2800": " ",
    }
)
_PUNCTUATION_BETWEEN = re.compile(r"(?<![0-9])[!-#%-*,-/:;?@\[-\]_{}]|[!-#%-*,-/:;?@\[-\]_{}](?![0-9])")


def _fold_once(text: str) -> str:
    plain = _bare(text)
    plain = _POWER.sub(_as_power, plain)
    plain = _FRACTION.sub(" ", plain)
    plain = unicodedata.normalize("NFKC", plain.translate(_TYPOGRAPHY)).casefold()
    plain = unicodedata.normalize("NFKC", plain).translate(_TYPOGRAPHY)
    return " ".join(_bare(plain).split())


def _as_power(digits: re.Match[str]) -> str:
    return "^" + "".join(str(_SUPERSCRIPTS.index(c)) for c in digits[0])


def _spaced(folded: str) -> str:
    """Every punctuation mark of any script as a space, unless it stands between two digits."""
    return "".join(
        " " if unicodedata.category(c)[0] == "P" and not _between_digits(folded, at) else c
        for at, c in enumerate(folded)
    )


def _between_digits(text: str, at: int) -> bool:
    return 0 < at < len(text) - 1 and text[at - 1].isdecimal() and text[at + 1].isdecimal()
