"""The commerce-agents MemoryStore over this store: six async methods, the same rules as every other door.

In: a host's subject ids and MemoryFact-like objects. Out: fresh MemoryFacts. Imports the store's own rooms only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal, Protocol, TypeVar

from asgiref.sync import sync_to_async
from django.db import DEFAULT_DB_ALIAS, close_old_connections, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone
from pydantic import BaseModel, Field

from memory_portal.enums import ActorKind, ChangeAction, Origin, Reason
from memory_portal.store import acts, desk, orm, recall, sanitise, serving
from memory_portal.store.errors import Conflict, InvalidDraft, MemoryWriteRejected, NotFound
from memory_portal.store.types import CONSTRAINT, CONTEXT, PREFERENCE, SAFETY, Actor, Draft, Fact, Outcome, Subject

T = TypeVar("T")

TRAVELS_AS = {PREFERENCE: PREFERENCE, CONSTRAINT: CONSTRAINT, CONTEXT: CONTEXT, SAFETY: CONSTRAINT}
"""The contract knows three categories; what it does not know travels as context."""

QUIET = frozenset({Reason.ALREADY_KNOWN, Reason.STALE, Reason.FORGOTTEN_BEFORE, Reason.DISMISSED_BEFORE, Reason.FROZEN})
"""Refusals that are the customer's will rather than the caller's mistake: the contract has no answer for them but silence."""


class MemoryFact(BaseModel):
    """The contract's record (commerce-agents, `MemoryFact`)."""

    key: str = Field(max_length=64)
    value: str = Field(max_length=200)
    category: Literal["preference", "constraint", "context"] = "preference"
    updated_at: datetime | None = None
    source_session_id: str | None = Field(default=None, max_length=80)


class FactLike(Protocol):
    """What a host hands over: its own MemoryFact class will do."""

    key: str
    value: str
    category: Any
    updated_at: datetime | None
    source_session_id: str | None


class DjangoMemoryStore:
    """A production `MemoryStore` for commerce-agents hosts, safe for many processes and event loops at once.

    `make_fact` builds what the reads return (a host passes its own MemoryFact class); `agent` is the name customers read
    under "Who used it"; `clock` returns the present as an aware datetime.

    Every write passes the store's rules. What they refuse for the text's sake raises MemoryWriteRejected with a reason code,
    after the rest of the list is stored; what the customer's own will stands against (forgotten, corrected, frozen) is kept
    from being overwritten without a word, as the contract has none for it.
    """

    def __init__(
        self,
        profile: str = "general",
        *,
        agent: str = "assistant",
        make_fact: Callable[..., Any] = MemoryFact,
        clock: Callable[[], datetime] = timezone.now,
        threads: int = 4,
    ) -> None:
        self._profile = profile
        self._actor = Actor(ActorKind.AGENT, name=agent)
        self._make_fact = make_fact
        self._clock = clock
        # Threads of our own: each keeps one database connection, so their number bounds the connections.
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="memory-store")
        self._connections: set[BaseDatabaseWrapper] = set()

    async def get_facts(self, subject_id: str) -> list[Any]:
        """Every fact an agent may see, in the order they were first written; [] for an unknown subject."""
        return await self._run(self._read, subject_id, "")

    async def search_facts(self, subject_id: str, query: str) -> list[Any]:
        """Facts in which any word of the query is part of "key value category"; every fact for an empty query."""
        return await self._run(self._read, subject_id, query)

    async def upsert_facts(self, subject_id: str, facts: Sequence[FactLike]) -> None:
        """Write by key, the last of a key winning; `updated_at` is stored as given. Raises MemoryWriteRejected, InvalidDraft."""
        await self._run(self._upsert, subject_id, list(facts))

    async def delete_fact(self, subject_id: str, key: str) -> bool:
        """True when a fact was removed. A safety fact stays and the customer is asked."""
        return await self._run(self._delete, subject_id, key)

    async def clear(self, subject_id: str) -> None:
        """Remove all facts of the subject and add one to its purge generation."""
        await self._run(self._clear, subject_id)

    async def purge_generation(self, subject_id: str) -> int:
        """How often the subject was cleared; 0 for one never seen."""
        return await self._run(self._generation, subject_id)

    async def _run(self, act: Callable[..., T], *args: Any) -> T:
        def with_usable_connection() -> T:
            close_old_connections()
            mine = connections[DEFAULT_DB_ALIAS]
            if mine not in self._connections:
                mine.inc_thread_sharing()  # so that close() may close it
                self._connections.add(mine)
            return act(*args)

        run: Callable[[], Any] = sync_to_async(with_usable_connection, thread_sensitive=False, executor=self._threads)
        result: T = await run()
        return result

    def close(self) -> None:
        """Wait for what runs and close this store's threads and database connections."""
        self._threads.shutdown()
        for connection in self._connections:
            connection.close()
        self._connections.clear()

    def _subject(self, subject_id: str) -> Subject:
        return Subject(subject_id, self._profile)

    def _read(self, subject_id: str, query: str) -> list[Any]:
        facts = serving.everything(self._subject(subject_id), self._actor, now=self._clock())
        return [self._fact(fact) for fact in recall.matches(facts, query)]

    def _fact(self, fact: Fact) -> Any:
        return self._make_fact(
            key=fact.key,
            value=fact.value,
            category=TRAVELS_AS.get(fact.category, CONTEXT),
            updated_at=fact.updated_at,
            source_session_id=fact.source_session_id or None,
        )

    def _upsert(self, subject_id: str, facts: Sequence[FactLike]) -> None:
        outcomes = upsert(self._subject(subject_id), facts, self._actor, now=self._clock())
        if reason := rejection(outcomes.values()):
            raise MemoryWriteRejected(reason)

    def _delete(self, subject_id: str, key: str) -> bool:
        try:
            outcome = forget_key(self._subject(subject_id), key, self._actor, now=self._clock())
        except (InvalidDraft, NotFound):  # InvalidDraft: a key no fact can have.
            return False
        return outcome.decision == "forgotten"

    def _clear(self, subject_id: str) -> None:
        acts.clear(self._subject(subject_id), self._actor, now=self._clock())

    def _generation(self, subject_id: str) -> int:
        return serving.purge_generation(self._subject(subject_id))


def upsert(subject: Subject, facts: Sequence[FactLike], actor: Actor, *, now: datetime) -> dict[str, Outcome]:
    """Write by key, the last of a key winning, all in one transaction; what came of each key. Raises InvalidDraft."""
    drafts = {draft.key: (draft, fact) for fact in facts if (draft := _draft(fact, actor, now))}
    outcomes = orm.submit(
        subject,
        [draft for draft, _ in drafts.values()],
        actor,
        now=now,
        stamps={key: _not_ahead(fact.updated_at, now) for key, (_, fact) in drafts.items()},
        across_keys=False,
    )
    return dict(zip(drafts, outcomes, strict=True))


def forget_key(
    subject: Subject, key: str, actor: Actor, *, now: datetime, session: str = "", version: int | None = None
) -> Outcome:
    """Forget the fact of this key on an agent's word, or ask the customer. Raises NotFound, InvalidDraft or Conflict.

    `session` is a tag; `version` is what the agent last saw of the fact, where it minds.
    """
    wish = _draft(MemoryFact.model_construct(key=key, value=""), actor, now, ChangeAction.FORGET)
    customer = desk.find(subject)
    if customer is None:
        raise NotFound
    seen = {} if version is None else {wish.key: version}
    try:
        outcome = orm.submit(customer.pk, [replace(wish, source_session_id=session)], actor, now=now, versions=seen)[0]
    except Conflict as error:
        if error.current is None:
            raise NotFound from None
        raise
    if outcome.reason is Reason.UNKNOWN_KEY:
        raise NotFound
    return outcome


def rejection(outcomes: Iterable[Outcome]) -> Reason | None:
    """The first reason that the caller must hear of; None where all was written or the customer's will stood against it."""
    refused = (outcome.reason for outcome in outcomes if outcome.decision == "refused")
    return next((reason for reason in refused if reason and reason not in QUIET), None)


def _draft(fact: FactLike, actor: Actor, now: datetime, action: ChangeAction = ChangeAction.REMEMBER) -> Draft:
    draft = sanitise.draft(
        key=fact.key,
        value=fact.value,
        category=str(getattr(fact.category, "value", fact.category)),
        origin=Origin.AGENT,
        said_at=now,
        now=now,
        action=action,
        agent=actor.name,
    )
    return replace(draft, source_session_id=_tag(fact.source_session_id or ""))


def _tag(session: str) -> str:
    """The contract's callers hand over a tag already; anything else may be a credential and becomes one."""
    return session if not session or re.fullmatch("[0-9a-f]{12}", session) else sanitise.session_tag(session)


def _not_ahead(stamp: datetime | None, now: datetime) -> datetime | None:
    """A time as given, but for one that has not come yet: it would lead every list and never age."""
    if stamp is None:
        return None
    aware = stamp if stamp.tzinfo else stamp.replace(tzinfo=now.tzinfo)
    return min(aware, now)
