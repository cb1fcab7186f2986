"""The three layers of a read. In: one customer's facts, the message or topic, now. Out: facts, best first, or none.

Pure: no database, no clock. A customer holds at most a few hundred facts, so every read ranks them all and there is no index
to keep in step. Imports types, words and lexicon only.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from snowballstemmer import stemmer  # type: ignore[import-untyped]  # the package has no annotations

from memory_portal.enums import FactState
from memory_portal.store.types import CONSTRAINT, SAFETY, Fact

ALWAYS, FITTING, ASKED = 1, 2, 3
LAYERS: Mapping[str, int] = {SAFETY: ALWAYS, CONSTRAINT: ALWAYS}
"""The layer of a category where the policy says nothing else; a category not named here is `FITTING`."""

TIER_ONE_CAP = 8
BUDGET_CHARS = 4_000
RECORD_CHARS = 90
"""What a line of the block takes beside key and value: names, quotes, category, age, session tag."""

_SKEW = timedelta(days=1)
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def always(
    facts: Iterable[Fact],
    *,
    now: datetime,
    cap: int = TIER_ONE_CAP,
    budget_chars: int = BUDGET_CHARS,
    off_categories: Collection[str] = frozenset(),
    layers: Mapping[str, int] = LAYERS,
) -> tuple[list[Fact], int]:
    """Layer 1: what every turn sees, and how many facts the character budget left out.

    All facts of the always-categories, then the most recently updated others up to `cap` in all. The budget is spent on
    safety first, which it never drops, then on the other always-categories, then on the rest. The order is by kind and id,
    so that the text of a block changes only when a fact does.
    """
    held = live(facts, now, off_categories)
    due = [fact for fact in held if _layer(fact, layers) == ALWAYS]
    others = sorted(
        (fact for fact in held if _layer(fact, layers) == FITTING), key=lambda fact: _recency(fact, now), reverse=True
    )
    due += others[: max(0, cap - len(due))]
    due.sort(key=lambda fact: (-_urgency(fact, layers), _recency(fact, now)), reverse=True)
    kept, room = [], budget_chars
    for fact in due:
        cost = len(fact.key) + len(fact.value) + RECORD_CHARS
        if fact.category == SAFETY or cost <= room:
            kept.append(fact)
            room -= cost
    kept.sort(key=lambda fact: (_urgency(fact, layers), fact.id))
    return kept, len(due) - len(kept)


def relevant(
    facts: Iterable[Fact],
    message: str,
    *,
    now: datetime,
    hint: str = "",
    k: int = 5,
    exclude: Collection[int] = frozenset(),
    off_categories: Collection[str] = frozenset(),
) -> list[Fact]:
    """Layer 2: at most `k` facts that this message calls for, best first; often none. `exclude` holds the ids already shown."""
    held = [fact for fact in live(facts, now, off_categories) if fact.id not in exclude]
    scored = _scores(held, f"{message} {hint}")
    return [held[i] for score, i in scored if score > 2.6][:k]


def lookup(facts: Iterable[Fact], topic: str, *, k: int = 20, now: datetime | None = None) -> list[Fact]:
    """Layer 3: the facts about `topic`, best first; all of them, in store order, when it is empty.

    Without `now` the caller answers for what has expired.
    """
    held = list(facts) if now is None else live(facts, now)
    held = [fact for fact in held if fact.state is FactState.ACTIVE]
    if not topic.strip():
        return held
    return [held[i] for _, i in _scores(held, topic)][:k]


def matches(facts: Iterable[Fact], query: str) -> list[Fact]:
    """The commerce-agents contract's search (section 2): any word a substring of "key value category"; store order."""
    terms = query.lower().split()
    held = list(facts)
    if not terms:
        return held
    return [fact for fact in held if any(term in f"{fact.key} {fact.value} {fact.category}".lower() for term in terms)]


def live(facts: Iterable[Fact], now: datetime, off_categories: Collection[str] = frozenset()) -> list[Fact]:
    """The facts that may be used at this instant: neither frozen nor expired nor of a kind that is switched off."""
    now = _utc(now)
    return [
        fact
        for fact in facts
        if fact.state is FactState.ACTIVE
        and fact.category not in off_categories
        and (fact.expires_at is None or _utc(fact.expires_at) > now)
    ]


def _layer(fact: Fact, layers: Mapping[str, int]) -> int:
    return layers.get(fact.category, FITTING)


def _urgency(fact: Fact, layers: Mapping[str, int]) -> int:
    return 0 if fact.category == SAFETY else _layer(fact, layers)


def _recency(fact: Fact, now: datetime) -> tuple[datetime, int]:
    """When it was last updated. A missing time or one well ahead of the clock proves nothing and counts as long ago."""
    then = fact.updated_at and _utc(fact.updated_at)
    return (then if then and then <= _utc(now) + _SKEW else _LONG_AGO), fact.id


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


@dataclass(frozen=True, slots=True)
class _Doc:
    text: Mapping[str, int]
    topics: Mapping[str, int]
    length: int
    topic_length: int


_stem = lru_cache(50_000)(stemmer("english").stemWord)
_STOP = frozenset(
    """a an the and or but if of at by for with about to from in on off over under is are was were be been being am do does did
    doing have has had having i me my we our us you your he him his she her it its they their them what which who whom this that
    these those when where why how s t d ll m re ve can will just not no so than too very as any some all there here would could
    should may might""".split()
)


def _tokens(text: str) -> tuple[str, ...]:
    out: list[str] = []
    for run in re.findall(r"[\u4e00-\u9fff]+|[^\W_\u4e00-\u9fff]+", text.casefold()):
        if run[0] >= "\u4e00":
            out += [*run, *(run[i : i + 2] for i in range(len(run) - 1))]
        elif run not in _STOP:
            out.append(_stem(run))
    return tuple(out)


@lru_cache(20_000)
def _doc(key: str, value: str, category: str, topics: tuple[str, ...]) -> _Doc:
    text = Counter(_tokens(value))
    text.update(dict.fromkeys((term for term in _tokens(f"{key} {category}") if term not in text), 1))
    about = Counter(_tokens(" ; ".join(topics)))
    return _Doc(text, about, sum(text.values()), sum(about.values()))


def _scores(facts: Sequence[Fact], query: str) -> list[tuple[float, int]]:
    docs = [_doc(fact.key, fact.value, fact.category, fact.topics) for fact in facts]
    terms = dict.fromkeys(_tokens(query))
    text = _bm25([doc.text for doc in docs], [doc.length for doc in docs], terms)
    topics = _bm25([doc.topics for doc in docs], [doc.topic_length for doc in docs], terms)
    scored = [(a + b, i) for i, (a, b) in enumerate(zip(text, topics, strict=True)) if a + b > 0]
    return sorted(scored, key=lambda pair: (-pair[0], pair[1]))


def _bm25(
    fields: Sequence[Mapping[str, int]], lengths: Sequence[int], terms: Iterable[str], k1: float = 1.2, b: float = 0.75
) -> list[float]:
    mean = sum(lengths) / max(1, len(lengths)) or 1.0
    scores = [0.0] * len(fields)
    for term in terms:
        having = [i for i, field in enumerate(fields) if term in field]
        idf = math.log(1 + (len(fields) - len(having) + 0.5) / (len(having) + 0.5))
        for i in having:
            count = fields[i][term]
            scores[i] += idf * count * (k1 + 1) / (count + k1 * (1 - b + b * lengths[i] / mean))
    return scores
