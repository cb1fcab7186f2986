"""What an extractor claims, held against what the customer said. In: a Candidate, the turns. Out: a Draft or a Reason.

Pure, and the same for every extractor: a model that obeys whoever wrote what it reads gets no further than its words
stand in the customer's own. Imports the store's door and the sibling room `speech`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

from agent_bridge.extraction import Turn
from agent_bridge.extraction.speech import (
    ASSENT,
    CANCELLED,
    LIGHT,
    NEGATION,
    NUMBER_WORDS,
    UNITS,
    asks_to_remember,
    echoes,
    is_errand,
    is_question,
    is_supposed,
    not_in_own_voice,
    pasted,
)
from memory_portal import store
from memory_portal.enums import ChangeAction, Origin, Reason

PASTED_FROM_ASSISTANT = 30
"""So many characters in a row that the assistant said before are not the customer's own wording."""


@dataclass(frozen=True, slots=True)
class Source:
    """The conversation that candidates must stand on, and what a fact keeps of where it came from."""

    turns: tuple[Turn, ...]
    session: str = ""
    """The session's tag."""
    agent: str = ""
    extractor: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a quote stands: the turn, the words as they stand there, the sentence around them."""

    turn: Turn
    words: str
    sentence: str
    own: str
    """The turn without what is quoted or pasted in it."""
    quoted: bool
    echo: bool


def ground(candidate: store.Candidate, source: Source, *, now: datetime) -> store.Draft | Reason:
    """The candidate as a Draft that carries the customer's words, or why it proves nothing."""
    if not candidate.quote.strip() or len(candidate.quote) > store.QUOTE_LIMIT * 2:
        return Reason.NO_QUOTE
    if is_assent(candidate.quote):
        return Reason.BARE_ASSENT
    places = list(standing(candidate.quote, source.turns))
    if not places:
        return Reason.NO_QUOTE
    # Said in the customer's own voice somewhere? Then that is the proof, and the latest such place counts.
    place = max(places, key=lambda p: (not p.echo, not p.quoted, p.turn.said_at))
    if place.echo:
        return Reason.ECHO
    if reason := unproven(candidate, place):
        return reason
    try:
        draft = store.draft(
            key=candidate.key,
            value=candidate.value,
            category=candidate.category,
            origin=Origin.EXTRACTION,
            said_at=place.turn.said_at,
            now=now,
            action=candidate.action,
            source_quote=place.words,
            agent=source.agent,
            extractor=source.extractor,
            topics=candidate.topics,
            suspicion=Reason.QUOTED_TEXT if place.quoted else None,
        )
    except store.InvalidDraft as error:
        return error.reason
    return replace(draft, source_session_id=source.session)


def is_assent(quote: str) -> bool:
    """Whether the words only agree: they prove what the other side said, and the other side is no evidence."""
    said = words(quote)
    return not said or all(word in ASSENT for word in said)


# --- where a quote stands ---------------------------------------------------------------------------------------------


def standing(quote: str, turns: Iterable[Turn]) -> Iterator[Place]:
    """Every place in a customer turn where the quote stands, read as the store compares: folded."""
    told = ""
    for turn in turns:
        if turn.role == "assistant":
            told += " " + store.fold(turn.text)
            continue
        text = unicodedata.normalize("NFC", turn.text)
        spans = pasted(text)
        for start, end in occurrences(unicodedata.normalize("NFC", quote), text):
            found = text[start:end]
            sentence = sentence_around(text, start, end)
            inside = any(a < end and start < b for a, b in spans)
            parroted = len(found) >= PASTED_FROM_ASSISTANT and store.fold(found) in told
            yield Place(
                turn=turn,
                words=found,
                sentence=sentence,
                own=without(text, spans),
                quoted=inside or parroted or not_in_own_voice(sentence),
                echo=any(a < end and start < b for a, b in echoes(text)),
            )


def occurrences(quote: str, text: str) -> list[tuple[int, int]]:
    """Spans of `text` that read as the quote once both are folded, at the borders of words."""
    wanted, _ = _folded(quote)
    folded, origin = _folded(text)
    spans = []
    at = folded.find(wanted) if wanted else -1
    while at >= 0:
        end = at + len(wanted)
        span = (origin[at], origin[end - 1] + 1)
        if _border(folded, at) and _border(folded, end) and store.fold(text[slice(*span)]) == store.fold(quote):
            spans.append(span)
        at = folded.find(wanted, at + 1)
    return spans


def _folded(text: str) -> tuple[str, list[int]]:
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


_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+|(?<=[。！？；])[」』”]*|\n+")


def sentence_around(text: str, start: int, end: int) -> str:
    cuts = [0, *(found.end() for found in _SENTENCE_END.finditer(text)), len(text)]
    first = max(cut for cut in cuts if cut <= start)
    last = min(cut for cut in cuts if cut >= end)
    return text[first:last].strip()


def without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    kept, at = [], 0
    for start, end in sorted(spans):
        kept.append(text[at : max(at, start)])
        at = max(at, end)
    return " ".join([*kept, text[at:]])


# --- what a value may say ---------------------------------------------------------------------------------------------


def unproven(candidate: store.Candidate, place: Place) -> Reason | None:
    """Whether the quoted words fail to bear out what is claimed."""
    request = asks_to_remember(place.sentence)
    if is_question(place.sentence) and not request:
        return Reason.UNGROUNDED_VALUE
    if candidate.action is ChangeAction.FORGET:
        return None if asks_to_forget(place.sentence) else Reason.UNGROUNDED_VALUE
    if is_supposed(place.sentence) or (is_errand(place.sentence) and not request):
        return Reason.UNGROUNDED_VALUE
    if not numbers_stand(candidate.value, place.words):
        return Reason.UNGROUNDED_VALUE
    if not content_stands(candidate.value, place):
        return Reason.UNGROUNDED_VALUE
    # In the whole sentence: a quote that begins after the "don't" must not turn its meaning round.
    if negated(candidate.value) != negated(bearing_clauses(candidate.value, place.sentence)):
        return Reason.UNGROUNDED_VALUE
    return None


_FORGET = re.compile(
    r"\b(?:forget|delete|remove|erase|stop remembering|don'?t remember|no longer remember|not remember)\b"
    r"|\b(?:olvid|borr|elimin|vergiss|vergessen|lösch|entfern)\w*"
    r"|忘記|忘记|忘掉|忘了|刪除|删除|刪掉|删掉|不要(?:再)?記|不要(?:再)?记|別(?:再)?記|别(?:再)?记|不用(?:再)?記|不用(?:再)?记",
    re.IGNORECASE,
)
_KEEP = re.compile(
    r"\b(?:don'?t|do not|never|please don'?t) (?:you )?(?:forget|delete|remove|erase)\b"
    r"|\bno (?:olvid|borr|elimin)\w*|\bnicht (?:vergessen|löschen)"
    r"|\bvergiss(?:\s\w+)* nicht\b|[別别勿](?:再)?(?:忘|刪|删)|不要(?:再)?(?:忘|刪|删)|\b(?:always|i) forget\b",
    re.IGNORECASE,
)


def asks_to_forget(sentence: str) -> bool:
    folded = store.fold(sentence)
    return bool(_FORGET.search(folded)) and not _KEEP.search(folded)


_CJK = re.compile(r"[\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_WORD = re.compile(
    r"\d+(?:[.,/:^]\d+)*|[$€£¥%°]|[\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
    r"|(?:(?![\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\d_])\w)(?:(?![\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\d_])[\w'\u0300-\u036f\u0900-\u0dff])*"
)


def words(text: str) -> list[str]:
    """Folded words, numbers and signs of units; each Chinese or Japanese character is a word."""
    return [word.rstrip("'") for word in _WORD.findall(store.fold(text))]


def numbers_stand(value: str, quote: str) -> bool:
    """Every number of the value stands in the quote, beside the same unit."""
    said, claimed = [_number(w) for w in words(quote)], [_number(w) for w in words(value)]
    for at, word in enumerate(claimed):
        if not word[0].isdigit():
            continue
        places = [i for i, other in enumerate(said) if other == word]
        if not places:
            return False
        units = {w for w in claimed[max(0, at - 1) : at + 2] if w in UNITS}
        if not any(units <= _units_beside(i, said) for i in places):
            return False
    return True


def _units_beside(place: int, said: list[str]) -> set[str]:
    for reach in (1, 2):  # "43 EU" before "43 in EU"
        if found := {word for word in said[max(0, place - reach) : place + reach + 1] if word in UNITS}:
            return found
    return set()


def _number(word: str) -> str:
    return NUMBER_WORDS.get(word, word)


def content_stands(value: str, place: Place) -> bool:
    """Every word of substance is the customer's own: one stands in the quote, the rest in the same turn."""
    claimed = [word for word in words(value) if word not in LIGHT and not NEGATION.fullmatch(word)]
    if not claimed:
        claimed = [word for word in words(value) if not NEGATION.fullmatch(word)]
    quote = words(place.words)
    own = quote if place.quoted else [*quote, *words(place.own)]
    if not claimed or not any(_stands(word, quote) for word in claimed):
        return False
    return all(_stands(word, own) for word in claimed) and _in_order(value, place)


def _stands(word: str, said: list[str]) -> bool:
    if word in said or _number(word) in map(_number, said):
        return True
    if _CJK.match(word) or word[0].isdigit() or len(word) < 4:
        return any((len(word) >= 3 and other in (word + "s", word + "es")) or word == other + "s" for other in said)
    return any(_akin(word, other) for other in said)


def _akin(one: str, other: str) -> bool:
    """Forms of one word: a common beginning and short, different ends (seat, seats; allergic, allergy)."""
    if len(other) < 3 or abs(len(one) - len(other)) > 4:
        return False
    common = 0
    while common < min(len(one), len(other)) and one[common] == other[common]:
        common += 1
    return common >= 3 and common >= 0.6 * max(len(one), len(other)) and max(len(one), len(other)) - common <= 4


def _in_order(value: str, place: Place) -> bool:
    """Single characters prove little: most of the value's pairs must stand in the turn as pairs."""
    folded = store.fold(value)
    pairs = [
        folded[at : at + 2]
        for at in range(len(folded) - 1)
        if all(_CJK.match(c) and c not in LIGHT for c in folded[at : at + 2])
    ]
    text = store.fold(place.words if place.quoted else f"{place.words} {place.own}").translate(_NO_SPACE)
    return sum(pair in text for pair in pairs) >= 0.7 * len(pairs)


_NO_SPACE = {ord(" "): None}
_CLAUSE = re.compile(
    r"[,.;:!?，。；：！？、…]+|\s-\s|\b(?:but|and|although|though|pero|y|aber|und|sondern)\b|而且|但是|但|不過|不过|還有|还有|所以"
)


def bearing_clauses(value: str, said: str) -> str:
    """The parts of a sentence that speak of most of what the value speaks of; all of it where that is nothing."""
    claimed = [word for word in words(value) if word not in LIGHT and not NEGATION.fullmatch(word)]
    clauses = [clause for clause in _CLAUSE.split(store.fold(said)) if clause.strip()]
    scores = [sum(_stands(word, words(clause)) for word in claimed) for clause in clauses]
    best = max(scores, default=0)
    return " ".join(clause for clause, score in zip(clauses, scores, strict=True) if score == best) if best else said


def negated(text: str) -> bool:
    """Whether the text says no to something. Not being allergic, and not minding, are no such thing."""
    return NEGATION.search(CANCELLED.sub(" ", store.fold(text))) is not None
