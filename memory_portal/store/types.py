"""The frozen values that travel through the store. In: plain Python. Out: values nobody can change. Imports errors and enums only.

An invalid Draft cannot be built: its constructor checks every length and the key's form and raises InvalidDraft, which names
the field and the limit. Lengths are counted in Unicode code points, as PostgreSQL counts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from memory_portal.enums import ActorKind, ChangeAction, FactState, Origin, Reason
from memory_portal.store.errors import InvalidDraft

KEY_LIMIT = 64
VALUE_LIMIT = 200
QUOTE_LIMIT = 1_000
SUBJECT_LIMIT = 128
TOPIC_LIMIT = 40
TOPICS_LIMIT = 12

SAFETY = "safety"
CONSTRAINT = "constraint"
PREFERENCE = "preference"
CONTEXT = "context"


@dataclass(frozen=True, slots=True)
class Subject:
    """One customer of one profile (a shop, a brand), as the host names them. The host binds it; no model ever does."""

    subject_id: str
    profile: str = "general"

    def __post_init__(self) -> None:
        if not self.subject_id or len(self.subject_id) > SUBJECT_LIMIT:
            raise InvalidDraft(
                "subject_id", Reason.TOO_LONG, f"subject_id takes 1 to {SUBJECT_LIMIT} characters", limit=SUBJECT_LIMIT
            )
        if any(ord(c) < 32 or 127 <= ord(c) < 160 or 0xD800 <= ord(c) < 0xE000 for c in self.subject_id):
            raise InvalidDraft("subject_id", Reason.BAD_KEY, "subject_id takes no control characters")


@dataclass(frozen=True, slots=True)
class Actor:
    """Who does something: `id` is a pseudonym (a key's id, a staff member's id, a job's id), `name` what a customer may read.

    Of staff the customer reads `role` and `purpose`, codes of StaffRole and Purpose.
    """

    kind: ActorKind
    id: str = ""
    name: str = ""
    role: str = ""
    purpose: str = ""

    @property
    def is_customer(self) -> bool:
        return self.kind is ActorKind.CUSTOMER


@dataclass(frozen=True, slots=True)
class Candidate:
    """What an extractor answered, unchecked. Grounding turns it into a Draft or refuses it."""

    action: ChangeAction
    key: str
    value: str = ""
    category: str = PREFERENCE
    quote: str = ""
    topics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """One change somebody asks for, in a form that can be kept: sanitised, normalised, within every limit.

    Build it with `sanitise.draft(...)`, which cleans first; the constructor only checks. `said_at` is when the customer said
    it (aware, UTC), never when it is written.
    """

    key: str
    value: str
    category: str
    origin: Origin
    said_at: datetime
    action: ChangeAction = ChangeAction.REMEMBER
    source_quote: str = ""
    source_session_id: str = ""
    agent: str = ""
    extractor: str = ""
    topics: tuple[str, ...] = ()
    suspicion: Reason | None = None
    """A reason found before the store (quoted text, an instruction) for which this may at most become a proposal."""

    def __post_init__(self) -> None:
        for name, text, limit in (
            ("key", self.key, KEY_LIMIT),
            ("value", self.value, VALUE_LIMIT),
            ("source_quote", self.source_quote, QUOTE_LIMIT),
        ):
            if len(text) > limit:
                raise InvalidDraft(
                    name, Reason.TOO_LONG, f"{name} takes at most {limit} characters, this has {len(text)}", limit=limit
                )
        if not self.key:
            raise InvalidDraft(
                "key", Reason.EMPTY, "key is empty once punctuation and invisible characters are taken out"
            )
        if not self.value and self.action is ChangeAction.REMEMBER:
            raise InvalidDraft("value", Reason.EMPTY, "value is empty once invisible characters are taken out")
        if len(self.topics) > TOPICS_LIMIT or any(len(topic) > TOPIC_LIMIT for topic in self.topics):
            raise InvalidDraft(
                "topics",
                Reason.TOO_LONG,
                f"topics takes {TOPICS_LIMIT} words of {TOPIC_LIMIT} characters",
                limit=TOPICS_LIMIT,
            )
        if self.said_at.tzinfo is None:
            raise InvalidDraft("said_at", Reason.BAD_KEY, "said_at needs a time zone")


@dataclass(frozen=True, slots=True)
class Fact:
    """A remembered fact as the store hands it out: a snapshot, changing nothing when changed around it."""

    id: int
    key: str
    value: str
    category: str
    origin: Origin
    state: FactState
    version: int
    created_at: datetime
    updated_at: datetime | None
    said_at: datetime
    expires_at: datetime | None = None
    review_at: datetime | None = None
    source_session_id: str = ""
    source_quote: str = ""
    agent: str = ""
    topics: tuple[str, ...] = ()
    locked: bool = False
    """The customer wrote or confirmed it: later statements become proposals."""


@dataclass(frozen=True, slots=True)
class Buried:
    """A tombstone as the pure rules see it.

    Nothing said before `watermark` recreates `key`; the same value (`value_mac`) or the same proof (`quote_mac`) is held
    under any key, and nothing else from that conversation (`session`) is learned silently: it may be a paraphrase.
    """

    key: str
    value_mac: str
    watermark: datetime
    quote_mac: str = ""
    session: str = ""
    dismissed: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """Everything about one customer that a decision may depend on, loaded under the row lock."""

    facts: tuple[Fact, ...] = ()
    buried: tuple[Buried, ...] = ()
    learning_paused: bool = False
    off_categories: frozenset[str] = frozenset()
    off_agents: frozenset[str] = frozenset()
    never_words: tuple[str, ...] = ()
    consents: frozenset[str] = frozenset()
    region: str = ""
    new_today: int = 0
    cleared_at: datetime | None = None
    """When the customer last forgot everything: nothing said before is learned again."""


@dataclass(frozen=True, slots=True)
class New:
    """Nothing held says this."""


@dataclass(frozen=True, slots=True)
class Same:
    """A held fact says it already; `upgrade` when the draft's category protects more than the held one's."""

    fact: Fact
    upgrade: bool = False


@dataclass(frozen=True, slots=True)
class Replaces:
    """It changes what a held fact says, whose key it takes over."""

    fact: Fact


@dataclass(frozen=True, slots=True)
class Conflicts:
    """It seems to contradict a held fact of another key; both are kept, and the customer is asked."""

    fact: Fact


Verdict = New | Same | Replaces | Conflicts


@dataclass(frozen=True, slots=True)
class Remember:
    """Write it as a new fact."""

    draft: Draft


@dataclass(frozen=True, slots=True)
class Update:
    """Write it over this fact, under the fact's key."""

    draft: Draft
    fact: Fact


@dataclass(frozen=True, slots=True)
class Renew:
    """The fact stands; restating it renews its retention."""

    draft: Draft
    fact: Fact


@dataclass(frozen=True, slots=True)
class Forget:
    """Delete this fact."""

    draft: Draft
    fact: Fact


@dataclass(frozen=True, slots=True)
class Propose:
    """Ask the customer."""

    draft: Draft
    reason: Reason
    fact: Fact | None = None


@dataclass(frozen=True, slots=True)
class Refuse:
    """Do nothing and say why."""

    reason: Reason


Decision = Remember | Update | Renew | Forget | Propose | Refuse


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one draft came to: a fact written, a proposal waiting, or a reason."""

    decision: str
    reason: Reason | None = None
    fact: Fact | None = None
    proposal_id: int | None = None


class Told(NamedTuple):
    """Of a fact, what an agent is told on every turn: the hot path carries no more. Fields mean what Fact's do."""

    id: int
    key: str
    value: str
    category: str
    origin: Origin
    version: int
    said_at: datetime
    updated_at: datetime | None
    expires_at: datetime | None
    source_session_id: str

    @classmethod
    def of(cls, fact: Fact) -> Told:
        return cls(*(getattr(fact, name) for name in cls._fields))


@dataclass(frozen=True, slots=True)
class Recall:
    """What one read hands to an agent: the facts by layer, in order, and how long it holds."""

    always: tuple[Told, ...]
    relevant: tuple[Told, ...] = ()
    dropped: int = 0
    """Facts of layer 1 left out by the character budget; safety is never among them."""
    version: int = 0
    """Moves with every change to this customer's facts, choices and consents."""
    until: datetime | None = None
    """The first instant at which a fact ends by itself, so that the answer changes though the version does not."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What an erasure removed, counted by table, for the customer to read."""

    counts: Mapping[str, int] = field(default_factory=dict)
    tombstones: int = 0
