"""The shapes on the wire, unknown fields forbidden. In: parsed JSON. Out: models, every length checked, and turns of text only.

A broken limit is named with its number. Tool blocks, images and thinking end here: nothing after this module sees them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator
from pydantic.types import AwareDatetime
from pydantic_core import PydanticCustomError

from memory_portal import store
from memory_portal.handoff import NAME_LIMIT, NEXT_LIMIT

BODY_LIMIT = 64 * 1024
DEPTH_LIMIT = 24
MESSAGES_LIMIT = 200
BLOCKS_LIMIT = 200
MESSAGE_LIMIT = 8_000
SESSION_LIMIT = 200
PAGE_LIMIT = 100
WAIT_LIMIT = 25
LINES_LIMIT = 100_000
REPORT_LIMIT = 1_000
FACTS_LIMIT = 200
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)

ROLES = ("user", "assistant")
SessionId = Annotated[str, Field(min_length=1, max_length=SESSION_LIMIT)]


class Closed(BaseModel):
    """A request: no field but those named."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


def _as_text(value: object) -> object:
    if value is not None and not isinstance(value, str):
        raise PydanticCustomError("bridge_date", "takes a date and time in ISO 8601, with a time zone")
    return value


def _plausible(value: datetime | None) -> datetime | None:
    if value is not None and value < EARLIEST:
        raise PydanticCustomError("bridge_date", "lies before the year 2000")
    return value


Instant = Annotated[AwareDatetime | None, BeforeValidator(_as_text), AfterValidator(_plausible)]


class Moment(Closed):
    """A request that may say when something was said. Left out, it is now; a clock that runs ahead counts as now."""

    said_at: Instant = None


# --- reading ----------------------------------------------------------------------------------------------------------


class ContextQuery(Closed):
    format: Literal["json", "block"] = "json"
    session_id: SessionId | None = None


class ContextRequest(ContextQuery):
    """`message` is what the customer just wrote: it stays out of addresses, so that it stays out of logs."""

    message: Annotated[str, Field(max_length=MESSAGE_LIMIT)] = ""


class PageQuery(Closed):
    """`order=written` tells all facts at once, in the order they were first written; `limit` and `after` are for `order=key`."""

    order: Literal["key", "written"] = "key"
    limit: Annotated[int, Field(ge=1, le=PAGE_LIMIT)] = PAGE_LIMIT
    after: Annotated[str, Field(max_length=store.KEY_LIMIT)] = ""

    @model_validator(mode="after")
    def pages_are_by_key(self) -> PageQuery:
        if self.order == "written" and self.model_fields_set & {"limit", "after"}:
            raise PydanticCustomError("bridge_order", "order=written comes all at once, without limit and after")
        return self


class SearchRequest(Closed):
    topic: Annotated[str, Field(min_length=1, max_length=store.VALUE_LIMIT)]
    limit: Annotated[int, Field(ge=1, le=PAGE_LIMIT)] = 20
    session_id: SessionId | None = None


class FactOut(BaseModel):
    """One fact as an agent is given it: data about the customer, never an instruction."""

    key: str
    value: str
    category: str
    origin: str
    version: int
    said_at: datetime
    updated_at: datetime | None
    expires_at: datetime | None
    session: str

    @classmethod
    def of(cls, fact: store.Fact | store.Told) -> FactOut:
        return cls.model_construct(
            key=fact.key,
            value=fact.value,
            category=fact.category,
            origin=str(fact.origin),
            version=fact.version,
            said_at=fact.said_at,
            updated_at=fact.updated_at,
            expires_at=fact.expires_at,
            session=fact.source_session_id,
        )


class ContextOut(BaseModel):
    """Layer 1 in `always`, layer 2 in `relevant`. `left_out` counts facts of layer 1 that did not fit."""

    always: list[FactOut]
    relevant: list[FactOut]
    left_out: int


class FactsOut(BaseModel):
    facts: list[FactOut]
    next: str | None = None
    """The `after` of the next page, or null."""


class GenerationOut(BaseModel):
    purge_generation: int


class ChangesQuery(Closed):
    after: Annotated[str, Field(max_length=64)] = ""
    limit: Annotated[int, Field(ge=1, le=PAGE_LIMIT)] = PAGE_LIMIT
    wait: Annotated[int, Field(ge=0, le=WAIT_LIMIT)] = 0


class ChangeOut(BaseModel):
    """Something happened to a customer's facts; `key` is null where it concerns all of them. Never a value."""

    id: int
    subject_id: str
    kind: str
    key: str | None
    code: str | None
    at: datetime


class ChangesOut(BaseModel):
    """`next` is the `after` of the next call, whatever this page holds; `more` tells whether to call at once."""

    changes: list[ChangeOut]
    next: str
    more: bool

    @classmethod
    def of(cls, page: store.Changes) -> ChangesOut:
        changes = [
            ChangeOut(
                id=change.id,
                subject_id=change.subject_id,
                kind=change.kind,
                key=change.key or None,
                code=change.code or None,
                at=change.at,
            )
            for change in page.changes
        ]
        return cls(changes=changes, next=page.next, more=page.more)


# --- sessions ---------------------------------------------------------------------------------------------------------


class SessionIn(Closed):
    """`scopes` left out are all of the key's."""

    subject_id: Annotated[str, Field(min_length=1, max_length=store.SUBJECT_LIMIT)]
    session_id: SessionId
    scopes: Annotated[list[Annotated[str, Field(max_length=24)]], Field(min_length=1, max_length=10)] | None = None
    minutes: Annotated[int, Field(ge=1, le=24 * 60)] = 60


class SessionOut(BaseModel):
    token: str
    expires_at: datetime
    scopes: list[str]


# --- into the portal --------------------------------------------------------------------------------------------------


def _address(value: str | None) -> str | None:
    try:
        if value:
            validate_email(value)
    except ValidationError:
        raise PydanticCustomError("bridge_email", "takes an e-mail address") from None
    return value


class LinkIn(Closed):
    """`email` is where this customer receives sign-in codes from now on; null leaves it, an empty one takes it away."""

    subject_id: Annotated[str, Field(min_length=1, max_length=store.SUBJECT_LIMIT)]
    display_name: Annotated[str, Field(max_length=NAME_LIMIT)] | None = None
    email: Annotated[str | None, Field(max_length=254), AfterValidator(_address)] = None
    language: Annotated[str, Field(max_length=35)] = ""
    next: Annotated[str, Field(min_length=1, max_length=NEXT_LIMIT)] = "/"


class LinkOut(BaseModel):
    url: str
    expires_at: datetime


# --- writing ----------------------------------------------------------------------------------------------------------


class FactIn(Moment):
    value: Annotated[str, Field(min_length=1, max_length=store.VALUE_LIMIT)]
    category: Annotated[str, Field(min_length=1, max_length=32)] = "preference"
    session_id: SessionId | None = None
    topics: Annotated[list[Annotated[str, Field(max_length=40)]], Field(max_length=12)] = []


class DecisionOut(BaseModel):
    """What a write came to: `learned`, `updated`, `renewed`; or `proposed`, with why the customer is asked."""

    decision: str
    reason: str | None = None
    fact: FactOut | None = None


class ContractFact(Closed):
    """The commerce-agents record. `updated_at` is kept as it is, null too; `source_session_id` is a tag, or becomes one."""

    key: Annotated[str, Field(min_length=1, max_length=store.KEY_LIMIT)]
    value: Annotated[str, Field(min_length=1, max_length=store.VALUE_LIMIT)]
    category: Annotated[str, Field(min_length=1, max_length=32)] = "preference"
    updated_at: Instant = None
    source_session_id: Annotated[str, Field(max_length=80)] | None = None


class UpsertIn(Closed):
    facts: Annotated[list[ContractFact], Field(min_length=1, max_length=FACTS_LIMIT)]


class KeyDecision(BaseModel):
    key: str
    decision: str
    reason: str | None


class UpsertOut(BaseModel):
    """`rejected` is the first reason that is the caller's to know of, if any. Answered again, `decisions` is empty."""

    decisions: list[KeyDecision]
    rejected: str | None


class ImportFact(Moment):
    """One line of an import. `said_at` left out is `updated_at`, and that left out the time of the upload."""

    subject_id: Annotated[str, Field(min_length=1, max_length=store.SUBJECT_LIMIT)]
    key: Annotated[str, Field(min_length=1, max_length=store.KEY_LIMIT)]
    value: Annotated[str, Field(min_length=1, max_length=store.VALUE_LIMIT)]
    category: Annotated[str, Field(min_length=1, max_length=32)] = "preference"
    session_id: SessionId | None = None
    updated_at: Instant = None
    source_session_id: Annotated[str, Field(max_length=80)] | None = None


class ImportOut(BaseModel):
    """How far an import is. `counts` tells what its lines came to: decisions and reason codes, no words."""

    import_id: UUID
    state: str
    outcome: str
    lines: int
    decided: int
    counts: dict[str, int]
    notes: list[str]
    created_at: datetime
    finished_at: datetime | None


class ReportQuery(Closed):
    after: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    limit: Annotated[int, Field(ge=1, le=REPORT_LIMIT)] = REPORT_LIMIT


class ClearedOut(BaseModel):
    facts: int
    purge_generation: int


class Block(BaseModel):
    """A content block. Only `text` blocks count; of every other type nothing is kept, whatever it holds."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    type: Annotated[str, Field(min_length=1, max_length=64)]
    text: str | None = None

    @model_validator(mode="before")
    @classmethod
    def only_what_counts(cls, raw: Any) -> Any:
        if isinstance(raw, dict) and raw.get("type") != "text":
            return {"type": raw["type"]} if "type" in raw else {}
        return raw

    @model_validator(mode="after")
    def text_has_text(self) -> Block:
        if self.type == "text" and self.text is None:
            raise PydanticCustomError("bridge_missing", "a block of type text needs its text")
        return self


def _shape(content: object) -> str:
    return "union:text" if isinstance(content, str) else "union:blocks"


Content = Annotated[
    Annotated[str, Tag("union:text")] | Annotated[list[Block], Field(max_length=BLOCKS_LIMIT), Tag("union:blocks")],
    Discriminator(_shape),
]


class Message(Moment):
    """Either Anthropic's `content` (a string or a list of blocks) or plain `text`."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {
                    "required": ["content"],
                    "properties": {"content": {"not": {"type": "null"}}, "text": {"type": "null"}},
                },
                {"required": ["text"], "properties": {"text": {"type": "string"}, "content": {"type": "null"}}},
            ]
        }
    )

    role: Literal["user", "assistant"]
    content: Content | None = None
    text: str | None = None

    @model_validator(mode="after")
    def one_of_both(self) -> Message:
        if (self.content is None) == (self.text is None):
            raise PydanticCustomError("bridge_content", "needs either content or text")
        return self

    @property
    def words(self) -> str:
        """What was said, in text; empty when it was only tools."""
        if self.content is None or isinstance(self.content, str):
            return self.text or self.content or ""
        return "\n".join(block.text for block in self.content if block.type == "text" and block.text)


class TurnsIn(Moment):
    session_id: SessionId
    messages: Annotated[list[Message], Field(min_length=1, max_length=MESSAGES_LIMIT)]

    def said(self, now: datetime) -> Iterator[tuple[Literal["user", "assistant"], str, datetime]]:
        """Role, text and time of each message that says anything."""
        for message in self.messages:
            if message.words.strip():
                yield message.role, message.words, min(message.said_at or self.said_at or now, now)


class TurnsOut(BaseModel):
    """`job_id` is null when nothing was said in text: then there is nothing to read."""

    job_id: UUID | None
    state: str
    kept: int
    dropped: int


class JobOut(BaseModel):
    """How far a conversation is. `counts` tells what its candidates came to: decisions and reason codes, no words."""

    job_id: UUID
    state: str
    outcome: str
    counts: dict[str, Any]
    created_at: datetime
    finished_at: datetime | None


class HealthOut(BaseModel):
    status: str
    memory: bool


class ProblemError(BaseModel):
    pointer: str
    code: str
    detail: str
    limit: int | None = None


class ProblemOut(BaseModel):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    reason: str | None = None
    scopes: list[str] | None = None
    limit: int | None = None
    errors: list[ProblemError] | None = None
