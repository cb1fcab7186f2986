"""The offline extractor: plainly stated, first-person, standing facts in English, Chinese and Spanish. No model.

In: an ExtractionRequest. Out: candidates whose value and quote are the customer's own words. For trying the product and
for tests; it rather misses than invents. Which sentences it reads is written down in docs/extraction.md.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agent_bridge.extraction import Extraction, ExtractionRequest, Known
from agent_bridge.extraction.forms import FORGET, FORMS, NOT_A_THING, PAST_ONCE, TOPICS, Form
from agent_bridge.extraction.grounding import asks_to_forget
from agent_bridge.extraction.pasted import pasted
from agent_bridge.extraction.speech import is_errand, is_question, is_supposed, not_in_own_voice, word_table, words
from memory_portal import store
from memory_portal.enums import ChangeAction

NAME = "explicit (offline)"
VERSION = "explicit-1"

_SENTENCE = re.compile(r"[^.!?。！？\n]*(?:\.(?=\d)[^.!?。！？\n]*)*[.!?。！？\n]*")
_KEY_WORDS = 3


@dataclass(frozen=True, slots=True)
class Explicit:
    """Extractor that reads by forms of sentences."""

    def extract(self, request: ExtractionRequest) -> Extraction:
        held = {known.key: known for known in request.held}
        found: list[store.Candidate] = []
        for turn in request.turns:
            if turn.role != "user":
                continue
            for sentence in own_sentences(unicodedata.normalize("NFC", turn.text)):
                for candidate in read(sentence, held):
                    # Within a conversation the last word counts, in the place of the first.
                    found = [other for other in found if other.key != candidate.key]
                    found.append(candidate)
                    held[candidate.key] = Known(candidate.key, candidate.value, candidate.category)
        return Extraction(NAME, VERSION, tuple(found))

    def tokens_at_most(self, request: ExtractionRequest) -> int:
        return 0


def own_sentences(text: str) -> Iterator[str]:
    """The sentences of a turn with nothing quoted or pasted in them, without questions, errands and suppositions."""
    spans = pasted(text)
    for match in _SENTENCE.finditer(text):
        sentence = match[0].strip()
        if not sentence or any(start < match.end() and match.start() < end for start, end in spans):
            continue
        if is_question(sentence) or is_errand(sentence) or is_supposed(sentence) or not_in_own_voice(sentence):
            continue
        yield sentence


def read(sentence: str, held: dict[str, Known]) -> list[store.Candidate]:
    """What one sentence of the customer's states: at most one fact for each stretch of it."""
    if asks_to_forget(sentence):
        return [
            candidate
            for form in FORGET
            for match in form.finditer(sentence)
            if (candidate := _forget(match, sentence, held))
        ][:1]
    taken: list[tuple[int, int]] = []
    found: list[tuple[int, store.Candidate]] = []
    for form in FORMS:
        for match in form.pattern.finditer(sentence):
            if any(start < match.end() and match.start() < end for start, end in taken) or PAST_ONCE.search(match[0]):
                continue
            if candidate := _remember(form, match, sentence, held):
                taken.append(match.span())
                found.append((match.start(), candidate))
    return [candidate for _, candidate in sorted(found, key=lambda pair: pair[0])]


def _remember(form: Form, match: re.Match[str], sentence: str, held: dict[str, Known]) -> store.Candidate | None:
    value, about = match["value"].strip(), (match["about"] or "").strip()
    if NOT_A_THING.search(about) or len(value) > store.VALUE_LIMIT:
        return None
    key = form.key or form.prefix + (_topic(value) or _slug(about))
    if form.category == store.SAFETY:
        key = _own_key(key, about, held)
    if key in ("", form.prefix):
        return None
    category = form.category
    if category == "preference" and (_topic(value) == "overnight_flight"):
        category = "constraint"
    return store.Candidate(ChangeAction.REMEMBER, key, value, category, match[0].strip(" ,，;；"))


def _topic(text: str) -> str:
    return next((key for pattern, key in TOPICS if pattern.search(text)), "")


def _slug(about: str) -> str:
    """A name out of the thing itself, so that saying it again, or saying no to it, finds the same fact."""
    chosen = _DOING.sub("", _INSTEAD.split(store.fold(about))[0])
    said = [word for word in re.findall(r"[^\W_]+", chosen) if word not in _SMALL]
    return store.normalise_key(" ".join(said[:_KEY_WORDS])[:40])


_INSTEAD = re.compile(r"\b(?:instead|over|rather|than|en vez)\b")
_DOING = re.compile("^[買买喝吃用穿搭坐選选訂订要](?=..)")
_SMALL = word_table(
    """a an the my our some any to of in on at for with from and or as by when whenever if it me i we very really than
    rather don t like prefer el la los las un una de del en con para mi mis al y o que"""
)


def _own_key(key: str, about: str, held: dict[str, Known]) -> str:
    """Two allergies are two facts: a second one never takes the place of the first."""
    known = held.get(key)
    if known is None or _shares_a_thing(about, known.value):
        return key
    return f"{key}_{_slug(about)}"


def _shares_a_thing(about: str, value: str) -> bool:
    return bool({word for word in words(about) if word not in _SMALL} & set(words(value)))


def _forget(match: re.Match[str], sentence: str, held: dict[str, Known]) -> store.Candidate | None:
    """The held fact that is meant; where none is, the thing itself by name, which the store then answers to."""
    about = match["about"].strip()
    if NOT_A_THING.search(about):
        return None
    key = _meant(about, held.values()) or _topic(about) or _slug(about)
    return store.Candidate(ChangeAction.FORGET, key, quote=sentence.strip()) if key else None


def _meant(about: str, held: Iterable[Known]) -> str:
    """The key of the one fact whose name or value has most of the words; empty when two are as likely."""
    said = {word for word in words(about) if word not in _SMALL}
    topic = _topic(about)
    scores: dict[str, float] = {}
    for known in held:
        names = set(words(known.key.replace("_", " ")))
        score = 3.0 * (known.key == topic) + 2.0 * len(said & names) + len(said & set(words(known.value)))
        if score:
            scores[known.key] = score
    best = sorted(scores, key=lambda key: -scores[key])
    if not best or (len(best) > 1 and scores[best[0]] == scores[best[1]]):
        return ""
    return best[0]
