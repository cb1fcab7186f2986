"""What an extractor claims, held against what the customer said. In: a Candidate, the turns. Out: a Draft or a Reason.

Pure, and the same for every extractor: a model that obeys whoever wrote what it reads gets no further than its words
stand in the customer's own. Imports the store's door and the sibling room `speech`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import datetime

from agent_bridge.extraction import Turn
from agent_bridge.extraction.quotes import Heard, Place, listen, places
from agent_bridge.extraction.speech import (
    ASSENT,
    CANCELLED,
    CJK,
    LIGHT,
    NEGATION,
    UNITS,
    Vocabulary,
    asks_to_remember,
    is_errand,
    is_question,
    is_supposed,
    number,
    words,
)
from memory_portal import store
from memory_portal.enums import ChangeAction, Origin, Reason


@dataclass(frozen=True, slots=True)
class Source:
    """The conversation that candidates must stand on, and what a fact keeps of where it came from."""

    turns: tuple[Turn, ...]
    session: str = ""
    """The session's tag."""
    agent: str = ""
    extractor: str = ""
    heard: tuple[Heard, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "heard", listen(self.turns))


def ground(candidate: store.Candidate, source: Source, *, now: datetime) -> store.Draft | Reason:
    """The candidate as a Draft that carries the customer's words, or why it proves nothing."""
    if not candidate.quote.strip() or len(candidate.quote) > store.QUOTE_LIMIT * 2:
        return Reason.NO_QUOTE
    if is_assent(candidate.quote):
        return Reason.BARE_ASSENT
    found = list(places(candidate.quote, source.heard))
    if not found:
        return Reason.NO_QUOTE
    # Said in the customer's own voice somewhere? Then that is the proof, and the latest such place counts.
    place = max(found, key=lambda p: (not p.echo, not p.quoted, p.heard.turn.said_at))
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
            said_at=place.heard.turn.said_at,
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
    r"|\bvergiss(?:\s\w{1,20}){0,6} nicht\b|[別别勿](?:再)?(?:忘|刪|删)|不要(?:再)?(?:忘|刪|删)|\b(?:always|i) forget\b",
    re.IGNORECASE,
)


def asks_to_forget(sentence: str) -> bool:
    folded = store.fold(sentence)
    return bool(_FORGET.search(folded)) and not _KEEP.search(folded)


def numbers_stand(value: str, quote: str) -> bool:
    """Every number of the value stands in the quote, beside the same unit."""
    said, claimed = [number(w) for w in words(quote)], [number(w) for w in words(value)]
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


def content_stands(value: str, place: Place) -> bool:
    """Every word of substance is the customer's own: one stands in the quote, the rest in the same turn."""
    claimed = substance(value) or [word for word in words(value) if not NEGATION.fullmatch(word)]
    quote = Vocabulary(words(place.words))
    if not any(word in quote for word in claimed):
        return False
    own = quote if place.quoted else place.heard.own
    return all(word in quote or word in own for word in claimed) and _in_order(value, place)


def substance(value: str) -> list[str]:
    """The words of a value that say something, without those that only make a sentence of them."""
    return [word for word in words(value) if word not in LIGHT and not NEGATION.fullmatch(word)]


def _in_order(value: str, place: Place) -> bool:
    """Single characters prove little: most of the value's pairs must stand in the turn as pairs."""
    folded = store.fold(value)
    pairs = [
        folded[at : at + 2]
        for at in range(len(folded) - 1)
        if all(CJK.match(c) and c not in LIGHT for c in folded[at : at + 2])
    ]
    said = [store.fold(place.words).translate(_NO_SPACE), "" if place.quoted else place.heard.own_folded]
    return sum(any(pair in text for text in said) for pair in pairs) >= 0.7 * len(pairs)


_NO_SPACE = {ord(" "): None}
_CLAUSE = re.compile(
    r"[,.;:!?，。；：！？、…]+|\s-\s|\b(?:but|and|although|though|pero|y|aber|und|sondern)\b|而且|但是|但|不過|不过|還有|还有|所以"
)


def bearing_clauses(value: str, said: str) -> str:
    """The parts of a sentence that speak of most of what the value speaks of; all of it where that is nothing."""
    claimed = substance(value)
    clauses = [clause for clause in _CLAUSE.split(store.fold(said)) if clause.strip()]
    scores = [sum(word in spoken for word in claimed) for spoken in (Vocabulary(words(clause)) for clause in clauses)]
    best = max(scores, default=0)
    return " ".join(clause for clause, score in zip(clauses, scores, strict=True) if score == best) if best else said


def negated(text: str) -> bool:
    """Whether the text says no to something. Not being allergic, and not minding, are no such thing."""
    return NEGATION.search(CANCELLED.sub(" ", store.fold(text))) is not None
