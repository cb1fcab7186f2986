"""The thin shell around the pure rooms: lock the customer's row, load, decide, write fact, revision and event in one transaction.

In: Subjects or customer ids, Drafts, an Actor and the time. Out: frozen values. The only place that writes to MemoryFact.
Every function that writes takes the customer's row lock first, so that no two decisions about one person overlap.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.dispatch import Signal

from memory_portal.enums import (
    ActorKind,
    ChangeAction,
    EventKind,
    FactState,
    FreezeReason,
    Origin,
    Reason,
    TombstoneReason,
)
from memory_portal.models import (
    Consent,
    Customer,
    FactEvent,
    FactRevision,
    MemoryFact,
    Proposal,
    Tombstone,
)
from memory_portal.store import intake, lexicon, recall, semantic
from memory_portal.store import policy as rules
from memory_portal.store import shelf as shelves
from memory_portal.store.errors import Conflict, MemoryDisabled, MemoryWriteRejected, NotFound
from memory_portal.store.sanitise import clean, value_form
from memory_portal.store.types import (
    SAFETY,
    Actor,
    Buried,
    Decision,
    Draft,
    Fact,
    Held,
    Outcome,
    Propose,
    Recall,
    Receipt,
    Refuse,
    Remember,
    Renew,
    Subject,
    Update,
)
from memory_portal.store.words import forget_texts

log = logging.getLogger(__name__)

withdrawn = Signal()
"""Sent inside the transaction when the customer takes back what work in flight may rest on.

Arguments: `customer_id`; `what`, one of "cleared", "learning_paused", "forgotten", "erased"; `texts`, the values and quotes just
erased; `now`. Receivers cancel waiting jobs and blank those texts, and return how many jobs they discarded.
"""

CLOCK = Actor(ActorKind.SYSTEM)
STONE_TEXT = b"memory-portal tombstone v1"


def current_policy() -> rules.Policy:
    return _policy(str(settings.MEMORY_POLICY))


@lru_cache(maxsize=8)
def _policy(path: str) -> rules.Policy:
    return rules.read(Path(path))


# --- one customer, locked ---------------------------------------------------------------------------------------------


@dataclass
class Desk:
    """One customer's row, locked, with what was loaded of it: the only thing the writing functions below work on."""

    customer: Customer
    actor: Actor
    now: datetime
    held: Held
    rows: dict[int, MemoryFact]
    touched: bool = False
    ended: Counter[str] = field(default_factory=Counter)
    """What had reached its end by itself and was erased on the way in, by table."""

    def mac(self, text: str) -> str:
        return value_mac(self.customer, text)

    def event(
        self,
        kind: EventKind,
        *,
        fact_id: int | None = None,
        key: str = "",
        category: str = "",
        code: str = "",
        agent: str = "",
        actor: Actor | None = None,
    ) -> None:
        actor = actor or self.actor
        self.touched = True
        FactEvent.objects.create(
            customer=self.customer,
            at=self.now,
            kind=kind,
            fact_id=fact_id,
            key=key,
            category=category,
            code=code,
            actor_kind=actor.kind,
            actor_id=actor.id,
            agent=agent or (actor.name if actor.kind in (ActorKind.AGENT, ActorKind.JOB) else ""),
        )

    def row(self, fact_id: int, version: int | None = None) -> MemoryFact:
        """The fact, if it is this customer's, alive and (where `version` is given) unchanged since it was read."""
        row = self.rows.get(fact_id)
        if row is None:
            raise NotFound
        if version is not None and row.version != version:
            raise Conflict(snapshot(row))
        return row

    def keep(self, row: MemoryFact) -> Fact:
        """Remember in the loaded picture what was just written."""
        fact = snapshot(row)
        others = tuple(held for held in self.held.facts if held.id != fact.id)
        self.rows[row.pk] = row
        self.held = replace(self.held, facts=tuple(sorted((*others, fact), key=lambda held: held.id)))
        return fact

    def drop(self, fact_ids: Iterable[int]) -> None:
        gone = set(fact_ids)
        self.rows = {pk: row for pk, row in self.rows.items() if pk not in gone}
        self.held = replace(self.held, facts=tuple(fact for fact in self.held.facts if fact.id not in gone))


@contextmanager
def locked(customer: Subject | int, actor: Actor, now: datetime, *, create: bool = False) -> Iterator[Desk]:
    """The customer's row locked for one transaction. Raises NotFound for an unknown one unless `create` is set."""
    with transaction.atomic():
        row = _lock(customer, now, create=create)
        desk = Desk(row, actor, now.astimezone(UTC), Held(), {})
        _load(desk)
        _erase_expired(desk)
        yield desk
        if desk.touched:  # Agents' caches hang on this number.
            row.version += 1
            row.save(update_fields=["version"])


def _lock(customer: Subject | int, now: datetime, *, create: bool) -> Customer:
    rows = Customer.objects.select_for_update()
    if isinstance(customer, int):
        row = rows.filter(pk=customer).first()
    else:
        row = rows.filter(profile=customer.profile, subject_id=customer.subject_id).first()
        if row is None and create:
            # ON CONFLICT DO NOTHING: two first requests at once make one customer, and no error text carries the id.
            new = Customer(profile=customer.profile, subject_id=customer.subject_id, created_at=now)
            Customer.objects.bulk_create([new], ignore_conflicts=True)
            row = rows.get(profile=customer.profile, subject_id=customer.subject_id)
    if row is None:
        raise NotFound
    return row


def _load(desk: Desk) -> None:
    customer, now = desk.customer, desk.now
    desk.rows = {row.pk: row for row in MemoryFact.objects.of(customer).live(now).defer("vector").order_by("pk")}
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    desk.held = Held(
        facts=tuple(map(snapshot, desk.rows.values())),
        buried=tuple(
            Buried(
                key=stone.key,
                value_mac=stone.value_mac,
                watermark=stone.watermark,
                quote_mac=stone.quote_mac,
                session=stone.source_session_id,
                dismissed=stone.reason == TombstoneReason.DISMISSED,
            )
            for stone in customer.tombstones.order_by("pk")
        ),
        learning_paused=customer.learning_paused_at is not None,
        off_categories=frozenset(customer.no_learn_categories),
        off_agents=frozenset(customer.no_learn_agents),
        never_words=tuple(customer.never_words),
        consents=frozenset(customer.consents.filter(withdrawn_at=None).values_list("purpose", flat=True)),
        region=customer.region,
        new_today=customer.events.filter(kind__in=(EventKind.LEARNED, EventKind.ADDED), at__gte=midnight)
        .exclude(actor_kind=ActorKind.CUSTOMER)
        .count(),
        cleared_at=customer.cleared_at,
    )


def _erase_expired(desk: Desk) -> None:
    """What has reached its end is gone, whether the sweeper came by or not: it must not stand in a new fact's way."""
    over = list(MemoryFact.objects.of(desk.customer).expired(desk.now))
    for row in over:
        desk.event(EventKind.EXPIRED, fact_id=row.pk, key=row.key, category=row.category, actor=CLOCK)
    if over:
        _erase(desk, over, from_jobs=False)  # A conversation that waits may say it anew.
    unanswered = list(desk.customer.proposals.filter(expires_at__lte=desk.now))
    for asked in unanswered:
        desk.event(EventKind.PROPOSAL_EXPIRED, fact_id=asked.fact_id, key=asked.key, code=asked.reason, actor=CLOCK)
        asked.delete()
    desk.ended.update(facts=len(over), proposals=len(unanswered))


def snapshot(row: MemoryFact) -> Fact:
    return Fact(
        id=row.pk,
        key=row.key,
        value=row.value,
        category=row.category,
        origin=Origin(row.origin),
        state=FactState(row.state),
        version=row.version,
        created_at=row.created_at,
        updated_at=row.updated_at,
        said_at=row.said_at,
        expires_at=row.expires_at,
        review_at=row.review_at,
        source_session_id=row.source_session_id,
        source_quote=row.source_quote,
        agent=row.agent,
        topics=tuple(row.topics),
        locked=row.locked,
    )


@lru_cache(maxsize=4096)
def _stone_key(salt: bytes) -> bytes:
    """Per customer, so that the same value leaves different marks with two people and no dictionary helps."""
    return hmac.digest(settings.TOMBSTONE_KEY.encode(), STONE_TEXT + salt, "sha256")


def value_mac(customer: Customer, text: str) -> str:
    """128 bits of HMAC-SHA-256 over the normalised text, in hex: recognises a value again, reveals nothing of it."""
    return hmac.new(_stone_key(bytes(customer.salt)), value_form(text).encode(), hashlib.sha256).hexdigest()[:32]


# --- taking in --------------------------------------------------------------------------------------------------------


def submit(
    customer: Subject | int,
    drafts: Sequence[Draft],
    actor: Actor,
    *,
    now: datetime,
    generation: int | None = None,
    stamps: Mapping[str, datetime | None] | None = None,
    across_keys: bool = True,
    versions: Mapping[str, int | None] | None = None,
) -> list[Outcome]:
    """Take in drafts of one writer, one decision each, all in one transaction; answers stand in the order of the drafts.

    `generation` is what a job saw when it was handed over: under another one nothing is written. `stamps` (update times to
    store as given) and `across_keys=False` are for the commerce-agents contract. `versions` is what the writer last saw of a
    key, None for nothing: Conflict is raised, and nothing written, where it is not so any more. An unknown subject is created,
    a customer id must exist. Raises MemoryDisabled where memory is off and there is more to do than to forget.
    """
    if not current_policy().memory and not (drafts and all(draft.action is ChangeAction.FORGET for draft in drafts)):
        raise MemoryDisabled
    with locked(customer, actor, now, create=isinstance(customer, Subject)) as desk:
        if generation is not None and generation != desk.customer.purge_generation:
            return [_refused(Reason.STALE_GENERATION) for _ in drafts]
        _as_seen(desk, versions or {})
        outcomes: dict[int, Outcome] = {}
        learned = 0
        in_turn = intake.safety_first(drafts) if actor.kind is ActorKind.JOB else drafts
        for draft in in_turn:
            if _over_already(desk, draft):
                outcomes[id(draft)] = _refused(Reason.STALE)
                continue
            decision = intake.admit(draft, desk.held, current_policy(), actor, desk.mac, across_keys=across_keys)
            decision = intake.over_the_cap(decision, learned, current_policy(), actor)
            learned += isinstance(decision, Remember)
            outcomes[id(draft)] = _apply(desk, decision, stamps or {})
        return [outcomes[id(draft)] for draft in drafts]


def _as_seen(desk: Desk, versions: Mapping[str, int | None]) -> None:
    for key, version in versions.items():
        fact = next((held for held in desk.held.facts if held.key == key), None)
        if (fact.version if fact else None) != version:
            raise Conflict(fact)


def _over_already(desk: Desk, draft: Draft) -> bool:
    """Whether it was said so long ago that a fact of its kind would have ended since."""
    end = current_policy().expiry(draft.category, draft.said_at)
    return draft.action is ChangeAction.REMEMBER and end is not None and end <= desk.now


def _refused(reason: Reason) -> Outcome:
    return Outcome("refused", reason)


def _apply(desk: Desk, decision: Decision, stamps: Mapping[str, datetime | None]) -> Outcome:
    match decision:
        case Refuse(reason):
            return _refused(reason)
        case Propose(draft, reason, fact):
            return _propose(desk, draft, reason, fact)
        case Remember(draft):
            return Outcome("learned", fact=_remember(desk, draft, stamps))
        case Update(draft, fact):
            return Outcome("updated", fact=_update(desk, desk.rows[fact.id], draft, stamps))
        case Renew(draft, fact):
            return Outcome("renewed", fact=_renew(desk, desk.rows[fact.id], draft, stamps))
    # What is left is to Forget.
    _forget(desk, [desk.rows[decision.fact.id]], EventKind.FORGOTTEN, agent=decision.draft.agent)
    return Outcome("forgotten")


def _stamp(draft: Draft, stamps: Mapping[str, datetime | None]) -> datetime | None:
    return stamps.get(draft.key, draft.said_at)


def _remember(
    desk: Desk,
    draft: Draft,
    stamps: Mapping[str, datetime | None],
    kind: EventKind | None = None,
    *,
    since: datetime | None = None,
) -> Fact:
    by_customer = desk.actor.is_customer
    if by_customer:  # Writing it again is the customer's own way of lifting what they had us forget.
        desk.customer.tombstones.filter(Q(key=draft.key) | Q(value_mac=desk.mac(draft.value))).delete()
    row = MemoryFact.objects.create(
        customer=desk.customer,
        key=draft.key,
        created_at=desk.now,
        locked=by_customer,
        vector=semantic.vector(draft.key, draft.value, draft.topics),
        **_statement(draft),
        **_times(draft, stamps, since),
    )
    _settle_proposals(desk, draft)
    written = by_customer or draft.origin is Origin.STAFF
    kind = kind or (EventKind.ADDED if written else EventKind.LEARNED)
    desk.event(kind, fact_id=row.pk, key=row.key, category=row.category, agent=draft.agent)
    if not by_customer:
        desk.held = replace(desk.held, new_today=desk.held.new_today + 1)
    return desk.keep(row)


def _statement(draft: Draft) -> dict[str, object]:
    return {
        "value": draft.value,
        "category": draft.category,
        "topics": list(draft.topics or lexicon.topics_for(f"{draft.key} {draft.value}")),
        "source_quote": draft.source_quote,
        "source_session_id": draft.source_session_id,
        "agent": draft.agent,
        "extractor": draft.extractor,
        "said_at": draft.said_at,
        "origin": draft.origin,
    }


def _times(
    draft: Draft, stamps: Mapping[str, datetime | None], since: datetime | None = None
) -> dict[str, datetime | None]:
    """Its end counts from when it was said, or from when the customer confirmed it (`since`)."""
    return {
        "updated_at": _stamp(draft, stamps),
        "expires_at": current_policy().expiry(draft.category, since or draft.said_at),
        "review_at": current_policy().review(draft.category, since or draft.said_at),
    }


def _update(
    desk: Desk,
    row: MemoryFact,
    draft: Draft,
    stamps: Mapping[str, datetime | None],
    kind: EventKind | None = None,
    *,
    lock: bool = False,
    since: datetime | None = None,
) -> Fact:
    _revise(desk, row)
    before = row.category
    by_customer = desk.actor.is_customer
    for name, value in {**_statement(draft), **_times(draft, stamps, since)}.items():
        setattr(row, name, value)
    row.vector = semantic.vector(row.key, draft.value, draft.topics)
    row.locked = by_customer or lock
    row.version += 1
    row.save()
    _settle_proposals(desk, replace(draft, key=row.key))
    written = by_customer or draft.origin is Origin.STAFF
    kind = kind or (EventKind.CORRECTED if written else EventKind.UPDATED)
    # Who knew it as an ordinary fact must hear that it is none any more.
    category = row.category if before == SAFETY else before
    desk.event(kind, fact_id=row.pk, key=row.key, category=category, agent=draft.agent)
    return desk.keep(row)


def _revise(desk: Desk, row: MemoryFact) -> None:
    FactRevision.objects.create(
        fact=row,
        version=row.version,
        value=row.value,
        category=row.category,
        source_quote=row.source_quote,
        origin=row.origin,
        said_at=row.said_at,
        replaced_at=desk.now,
    )


def _renew(desk: Desk, row: MemoryFact, draft: Draft, stamps: Mapping[str, datetime | None]) -> Fact:
    """Said again: the words, their proof and the version stay, only the clock starts anew, and never backwards."""
    times = _times(replace(draft, category=row.category), stamps)
    row.updated_at = times["updated_at"] if draft.key in stamps else _later(row.updated_at, draft.said_at)
    row.expires_at = _later(row.expires_at, times["expires_at"]) if row.expires_at else None
    row.review_at = _later(row.review_at, times["review_at"])
    row.said_at = max(row.said_at, draft.said_at)
    row.save(update_fields=["updated_at", "expires_at", "review_at", "said_at"])
    desk.event(EventKind.RENEWED, fact_id=row.pk, key=row.key, category=row.category, agent=draft.agent)
    return desk.keep(row)


def _later(held: datetime | None, new: datetime | None) -> datetime | None:
    return max(held, new) if held and new else held or new


def _propose(desk: Desk, draft: Draft, reason: Reason, fact: Fact | None) -> Outcome:
    fields = {
        **_statement(draft),
        "reason": reason,
        "fact_id": fact.id if fact else None,
        "created_at": desk.now,
        "expires_at": current_policy().proposal_expiry(desk.now, unconsented=_unconsented(desk, draft)),
    }
    proposal, new = Proposal.objects.get_or_create(
        customer=desk.customer,
        action=draft.action,
        key=draft.key,
        value_mac=desk.mac(draft.value),
        defaults=fields,
    )
    if new:
        desk.event(
            EventKind.PROPOSED,
            fact_id=proposal.fact_id,
            key=draft.key,
            category=draft.category,
            code=reason,
            agent=draft.agent,
        )
    return Outcome("proposed", Reason(proposal.reason), proposal_id=proposal.pk)


def _unconsented(desk: Desk, draft: Draft) -> bool:
    """Whatever else is asked about it: content that needs a consent waits no longer than for that."""
    remember = draft.action is ChangeAction.REMEMBER
    return remember and intake.missing_consent(draft, desk.held, current_policy())


def _settle_proposals(desk: Desk, draft: Draft) -> None:
    """A question about something the customer now answered by writing it is no longer a question."""
    waiting = desk.customer.proposals.filter(key=draft.key)
    if not desk.actor.is_customer:
        waiting = waiting.filter(value_mac=desk.mac(draft.value), action=ChangeAction.REMEMBER)
    waiting.delete()


# --- the customer's own acts, and staff's on their behalf -------------------------------------------------------------


def add(customer: Subject | int, draft: Draft, actor: Actor, *, now: datetime) -> Outcome:
    """Add one fact; raises MemoryWriteRejected with the reason where `submit` would only report it.

    A fact of that key or meaning is corrected in place, not doubled.
    """
    outcome = submit(customer, [draft], actor, now=now)[0]
    if outcome.reason and outcome.decision == "refused":
        raise MemoryWriteRejected(outcome.reason)
    return outcome


def correct(customer: Subject | int, fact_id: int, draft: Draft, actor: Actor, *, now: datetime, version: int) -> Fact:
    """Write `draft` over the fact, if it still is at `version`. Raises NotFound, Conflict(current) or MemoryWriteRejected."""
    if not current_policy().memory:
        raise MemoryDisabled
    with locked(customer, actor, now) as desk:
        row = desk.row(fact_id, version)
        draft = intake.as_claimed(replace(draft, key=row.key), actor)
        if reason := current_policy().refusal(draft, desk.held, actor) or intake.filtered(
            draft, desk.held, current_policy()
        ):
            raise MemoryWriteRejected(reason)
        if not actor.is_customer and (row.category == SAFETY or _customers_own(row)):
            raise MemoryWriteRejected(Reason.NOT_ALLOWED)
        if intake.missing_consent(draft, desk.held, current_policy()):
            raise MemoryWriteRejected(Reason.NEEDS_CONSENT)
        return _update(desk, row, draft, {}, lock=True)


def _customers_own(row: MemoryFact) -> bool:
    """The customer wrote or confirmed it; what staff corrected on their behalf staff may correct again."""
    return row.locked and row.origin != Origin.STAFF


def forget(
    customer: Subject | int, fact_ids: Sequence[int], actor: Actor, *, now: datetime, version: int | None = None
) -> tuple[list[Fact], Receipt]:
    """Erase facts with their versions, quotes and proposals, leaving tombstones. Raises NotFound if one is not there.

    Only the customer lets go of a safety fact. The facts come back once, for the page that offers undo; the store keeps
    nothing of them.
    """
    with locked(customer, actor, now) as desk:
        rows = [desk.row(fact_id, version) for fact_id in fact_ids]
        if not actor.is_customer and any(row.category == SAFETY for row in rows):
            raise MemoryWriteRejected(Reason.NOT_ALLOWED)
        gone = [snapshot(row) for row in rows]
        return gone, _forget(desk, rows, EventKind.FORGOTTEN)


def forget_session(customer: int, session: str, actor: Actor, *, now: datetime) -> tuple[list[Fact], Receipt]:
    """Erase everything learned or suggested from one conversation and not since written by the customer."""
    if not actor.is_customer:
        raise MemoryWriteRejected(Reason.NOT_ALLOWED)
    with locked(customer, actor, now) as desk:
        rows = [row for row in desk.rows.values() if row.source_session_id == session and not row.locked]
        asked = list(desk.customer.proposals.filter(source_session_id=session))
        if not session or not (rows or asked):
            raise NotFound
        gone = [snapshot(row) for row in rows]
        for question in asked:
            _drop(desk, question)
        receipt = _forget(desk, rows, EventKind.FORGOTTEN)
        counts = {**receipt.counts, "proposals": receipt.counts["proposals"] + len(asked)}
        return gone, Receipt(counts, tombstones=receipt.tombstones)


def _forget(desk: Desk, rows: Sequence[MemoryFact], kind: EventKind, *, agent: str = "") -> Receipt:
    for row in rows:
        _bury(desk, row, TombstoneReason.FORGOTTEN)
        desk.event(kind, fact_id=row.pk, key=row.key, category=row.category, agent=agent)
    return _erase(desk, rows)


def _bury(desk: Desk, row: MemoryFact | Proposal, reason: TombstoneReason) -> None:
    Tombstone.objects.update_or_create(
        customer=desk.customer,
        key=row.key,
        value_mac=desk.mac(row.value),
        reason=reason,
        defaults={
            "quote_mac": desk.mac(row.source_quote) if row.source_quote else "",
            "source_session_id": row.source_session_id,
            "watermark": desk.now,
        },
    )


def _erase(desk: Desk, rows: Sequence[MemoryFact], *, from_jobs: bool = True) -> Receipt:
    """Remove facts and every copy: versions, quotes, questions about the same key, and their text in waiting jobs."""
    ids, keys = [row.pk for row in rows], [row.key for row in rows]
    former = list(FactRevision.objects.filter(fact__in=ids))
    asked = list(desk.customer.proposals.filter(Q(fact__in=ids) | Q(key__in=keys)))
    desk.customer.proposals.filter(pk__in=[question.pk for question in asked]).delete()
    MemoryFact.objects.filter(pk__in=ids).delete()
    transaction.on_commit(forget_texts)
    desk.drop(ids)
    if from_jobs:
        _blank(desk, [*rows, *former, *asked])
    counts = {"facts": len(ids), "revisions": len(former), "proposals": len(asked)}
    return Receipt(counts, tombstones=len(ids))


def _blank(desk: Desk, said: Sequence[MemoryFact | FactRevision | Proposal]) -> None:
    """Have these values and quotes blanked in conversations that still wait to be read."""
    texts = list(dict.fromkeys(text for row in said for text in (row.value, row.source_quote) if text))
    withdrawn.send(sender=Customer, customer_id=desk.customer.pk, what="forgotten", texts=texts, now=desk.now)


def clear(customer: Subject | int, actor: Actor, *, now: datetime) -> Receipt:
    """Forget everything: all facts, versions, quotes and suggestions; the purge generation moves, so work in flight is void."""
    with locked(customer, actor, now, create=isinstance(customer, Subject)) as desk:
        everything = list(MemoryFact.objects.of(desk.customer))  # The expired ones, too.
        for row in everything:
            _bury(desk, row, TombstoneReason.FORGOTTEN)
        receipt = _erase(desk, everything)
        asked = desk.customer.proposals.count()
        desk.customer.proposals.all().delete()
        desk.customer.purge_generation += 1
        desk.customer.cleared_at = now
        desk.customer.save(update_fields=["purge_generation", "cleared_at"])
        discarded = _withdraw(desk, "cleared")
        desk.event(EventKind.CLEARED)
        counts = {**receipt.counts, "proposals": receipt.counts["proposals"] + asked, "conversations": discarded}
        return Receipt(counts, tombstones=receipt.tombstones)


def _withdraw(desk: Desk, what: str) -> int:
    answers = withdrawn.send(sender=Customer, customer_id=desk.customer.pk, what=what, texts=[], now=desk.now)
    return sum(int(count or 0) for _receiver, count in answers)


def freeze(customer: Subject | int, fact_id: int, why: FreezeReason, actor: Actor, *, now: datetime) -> Fact:
    """Contested: kept, served to nobody. A safety fact is taken out of use by the customer alone."""
    with locked(customer, actor, now) as desk:
        row = desk.row(fact_id)
        if row.category == SAFETY and not actor.is_customer:
            raise MemoryWriteRejected(Reason.NOT_ALLOWED)
        if (row.state, row.freeze_reason) == (FactState.FROZEN, why):
            return snapshot(row)
        row.state, row.freeze_reason, row.frozen_at = FactState.FROZEN, why, now
        return _marked(desk, row, EventKind.FROZEN, ["state", "freeze_reason", "frozen_at"], code=why)


def thaw(customer: Subject | int, fact_id: int, actor: Actor, *, now: datetime) -> Fact:
    """Right after all. Only the customer may say so."""
    if not actor.is_customer:
        raise MemoryWriteRejected(Reason.NOT_ALLOWED)
    with locked(customer, actor, now) as desk:
        row = desk.row(fact_id)
        if row.state == FactState.ACTIVE:
            return snapshot(row)
        row.state, row.freeze_reason, row.frozen_at = FactState.ACTIVE, "", None
        return _marked(desk, row, EventKind.THAWED, ["state", "freeze_reason", "frozen_at"])


def keep_until(customer: Subject | int, fact_id: int, until: datetime | None, actor: Actor, *, now: datetime) -> Fact:
    """Move a fact's end; None keeps it until the customer changes it. A safety fact has no end to set."""
    with locked(customer, actor, now) as desk:
        row = desk.row(fact_id)
        if row.category == SAFETY and until is not None:
            raise MemoryWriteRejected(Reason.NOT_ALLOWED)
        row.expires_at = until
        return _marked(desk, row, EventKind.KEPT_LONGER, ["expires_at"])


def reviewed(customer: Subject | int, fact_id: int, actor: Actor, *, now: datetime) -> Fact:
    """The customer looked at a safety fact and it still holds."""
    with locked(customer, actor, now) as desk:
        row = desk.row(fact_id)
        row.review_at = current_policy().review(row.category, now)
        return _marked(desk, row, EventKind.REVIEWED, ["review_at"])


def _marked(desk: Desk, row: MemoryFact, kind: EventKind, fields: list[str], *, code: str = "") -> Fact:
    row.version += 1
    row.save(update_fields=[*fields, "version"])
    desk.event(kind, fact_id=row.pk, key=row.key, category=row.category, code=code)
    return desk.keep(row)


# --- proposals, tombstones, consent, choices --------------------------------------------------------------------------


def accept(customer: int, proposal_id: int, actor: Actor, *, now: datetime, value: str | None = None) -> Fact | None:
    """Keep a suggestion, as it stands or in the customer's own words. None when what was kept is a forgetting."""
    if not actor.is_customer:
        raise MemoryWriteRejected(Reason.NOT_ALLOWED)
    if not current_policy().memory:
        raise MemoryDisabled
    with locked(customer, actor, now) as desk:
        asked = _proposal(desk, proposal_id)
        fact = desk.rows.get(asked.fact_id or 0) or next(
            (row for row in desk.rows.values() if row.key == asked.key), None
        )
        draft = _draft_of(asked, value)
        if asked.action == ChangeAction.FORGET:
            asked.delete()
            _forget(desk, [fact] if fact else [], EventKind.FORGOTTEN)
            return None
        if reason := current_policy().refusal(draft, desk.held, actor) or intake.filtered(
            draft, desk.held, current_policy()
        ):
            raise MemoryWriteRejected(reason)
        if intake.missing_consent(draft, desk.held, current_policy()):
            raise MemoryWriteRejected(Reason.NEEDS_CONSENT)
        if fact is None and (full := current_policy().room(desk.held, actor)):
            raise MemoryWriteRejected(full)
        asked.delete()
        if fact:
            return _update(desk, fact, draft, {}, EventKind.ACCEPTED, since=desk.now)
        return _remember(desk, draft, {}, EventKind.ACCEPTED, since=desk.now)


def _draft_of(asked: Proposal, value: str | None) -> Draft:
    value = clean(value) if value is not None else None
    own = value is not None and value != asked.value
    return Draft(
        key=asked.key,
        value=value if value is not None else asked.value,
        category=asked.category,
        origin=Origin.CUSTOMER if own else Origin(asked.origin),
        said_at=asked.said_at,
        action=ChangeAction(asked.action),
        source_quote="" if own else asked.source_quote,
        source_session_id="" if own else asked.source_session_id,
        agent="" if own else asked.agent,
        extractor="" if own else asked.extractor,
        topics=() if own else tuple(asked.topics),
    )


def _proposal(desk: Desk, proposal_id: int) -> Proposal:
    asked = desk.customer.proposals.filter(pk=proposal_id, expires_at__gt=desk.now).first()
    if asked is None:
        raise NotFound
    return asked


def dismiss(customer: int, proposal_id: int, actor: Actor, *, now: datetime) -> None:
    """Erase a suggestion; the same words are not suggested again."""
    if not actor.is_customer:
        raise MemoryWriteRejected(Reason.NOT_ALLOWED)
    with locked(customer, actor, now) as desk:
        _drop(desk, _proposal(desk, proposal_id))


def _drop(desk: Desk, asked: Proposal) -> None:
    if asked.action == ChangeAction.REMEMBER:
        _bury(desk, asked, TombstoneReason.DISMISSED)
    desk.event(EventKind.DISMISSED, fact_id=asked.fact_id, key=asked.key, code=asked.reason)
    asked.delete()
    _blank(desk, [asked])
    transaction.on_commit(forget_texts)


def lift(customer: int, key: str, actor: Actor, *, now: datetime) -> None:
    """Let a forgotten key be learned again. Raises NotFound where nothing is buried under it."""
    if not actor.is_customer:
        raise MemoryWriteRejected(Reason.NOT_ALLOWED)
    with locked(customer, actor, now) as desk:
        deleted, _ = desk.customer.tombstones.filter(key=key).delete()
        if not deleted:
            raise NotFound
        desk.event(EventKind.LIFTED, key=key)


def give_consent(
    customer: int, actor: Actor, *, now: datetime, channel: str, language: str, purpose: str = SAFETY
) -> None:
    """Record that the customer agreed to the wording in force. Agreeing twice is agreeing once."""
    if not actor.is_customer:
        raise MemoryWriteRejected(Reason.NOT_ALLOWED)
    with locked(customer, actor, now) as desk:
        if purpose in desk.held.consents:
            return
        Consent.objects.create(
            customer=desk.customer,
            purpose=purpose,
            text_version=current_policy().consent.text_version,
            channel=channel,
            language=language,
            given_at=now,
        )
        desk.event(EventKind.CONSENT_GIVEN, code=purpose)


def withdraw_consent(customer: int, actor: Actor, *, now: datetime, purpose: str = SAFETY) -> int:
    """Take consent back: what rested on it waits as suggestions only the customer sees, for the hours the policy gives.

    Returns how many facts that were.
    """
    with locked(customer, actor, now) as desk:
        desk.customer.consents.filter(purpose=purpose, withdrawn_at=None).update(withdrawn_at=now)
        desk.held = replace(desk.held, consents=desk.held.consents - {purpose})
        rested = [
            row for row in desk.rows.values() if intake.missing_consent(_restated(row), desk.held, current_policy())
        ]
        for row in rested:
            draft = _restated(row)
            _erase(desk, [row])
            _propose(desk, draft, Reason.NEEDS_CONSENT, None)
        _wait_no_longer(desk)
        desk.event(EventKind.CONSENT_WITHDRAWN, code=purpose)
        return len(rested)


def _wait_no_longer(desk: Desk) -> None:
    """Questions that were asked under the consent just taken back go away as soon as if it had never been there."""
    for asked in desk.customer.proposals.filter(action=ChangeAction.REMEMBER):
        if _unconsented(desk, _restated(asked)):
            asked.expires_at = min(asked.expires_at, current_policy().proposal_expiry(desk.now, unconsented=True))
            asked.save(update_fields=["expires_at"])


def _restated(row: MemoryFact | Proposal) -> Draft:
    return Draft(
        key=row.key,
        value=row.value,
        category=row.category,
        origin=Origin(row.origin),
        said_at=row.said_at,
        source_quote=row.source_quote,
        source_session_id=row.source_session_id,
        agent=row.agent,
        extractor=row.extractor,
        topics=tuple(row.topics),
    )


def pause(customer: int, what: str, actor: Actor, *, now: datetime) -> None:
    """`what` is "learning" or "using". Pausing learning also discards conversations that wait to be read."""
    kinds = {"learning": EventKind.LEARNING_PAUSED, "using": EventKind.USING_PAUSED}
    with locked(customer, actor, now) as desk:
        if getattr(desk.customer, f"{what}_paused_at") is None:
            setattr(desk.customer, f"{what}_paused_at", now)
            desk.customer.save(update_fields=[f"{what}_paused_at"])
            desk.event(kinds[what])
        if what == "learning":
            _withdraw(desk, "learning_paused")


def resume(customer: int, what: str, actor: Actor, *, now: datetime) -> None:
    kinds = {"learning": EventKind.LEARNING_RESUMED, "using": EventKind.USING_RESUMED}
    if not actor.is_customer:
        raise MemoryWriteRejected(Reason.NOT_ALLOWED)
    with locked(customer, actor, now) as desk:
        if getattr(desk.customer, f"{what}_paused_at") is not None:
            setattr(desk.customer, f"{what}_paused_at", None)
            desk.customer.save(update_fields=[f"{what}_paused_at"])
            desk.event(kinds[what])


CHOICES = ("no_learn_categories", "no_use_categories", "no_learn_agents", "no_use_agents", "never_words")


def choose(customer: int, choices: Mapping[str, Sequence[str]], actor: Actor, *, now: datetime) -> None:
    """Replace any of the customer's lists in CHOICES."""
    with locked(customer, actor, now) as desk:
        for name in CHOICES:
            if name in choices:
                setattr(desk.customer, name, list(dict.fromkeys(choices[name])))
        desk.customer.save(update_fields=[name for name in CHOICES if name in choices])
        desk.event(EventKind.CHOICES_CHANGED)


# --- reading ----------------------------------------------------------------------------------------------------------


def facts(customer: Customer | int, *, now: datetime) -> list[Fact]:
    """Every fact of the customer that has not expired, frozen ones too, in the order they were first written."""
    return [snapshot(row) for row in MemoryFact.objects.of(customer).live(now).defer("vector").order_by("pk")]


def find(subject: Subject) -> Customer | None:
    return Customer.objects.filter(profile=subject.profile, subject_id=subject.subject_id).first()


def version_of(subject: Subject) -> int:
    """Moves with every change to this customer's facts, choices and consents; 0 for one nobody knows."""
    rows = Customer.objects.filter(profile=subject.profile, subject_id=subject.subject_id)
    return rows.values_list("version", flat=True).first() or 0


def _shelf(subject: Subject, now: datetime, text: str = "") -> shelves.Shelf | None:
    """None for an unknown customer, and for everybody while memory is off: both read as empty and leave no note."""
    vectors = settings.SEMANTIC and bool(text)
    return shelves.shelf(subject, now=now, vectors=vectors) if current_policy().memory else None


def context(
    subject: Subject,
    actor: Actor,
    *,
    now: datetime,
    message: str = "",
    session: str = "",
    hidden: Collection[str] = (),
) -> Recall:
    """Layer 1, and with a message layer 2. `hidden` are the categories the agent's key may not read. Notes the read."""
    shelf = _shelf(subject, now, message)
    if shelf is None:
        return Recall(())
    told = _told(shelf, actor.name, message, now=now, hidden=hidden)
    shelves.note(shelf, actor, (*told.always, *told.relevant), layer=2 if message else 1, session=session, now=now)
    return told


def preview(subject: Subject, agent: str, message: str, *, now: datetime, hidden: Collection[str] = ()) -> Recall:
    """What `context` would tell this agent. For the customer's own eyes: no agent reads, so no read is noted."""
    shelf = _shelf(subject, now, message)
    return _told(shelf, agent, message, now=now, hidden=hidden) if shelf else Recall(())


def _told(shelf: shelves.Shelf, agent: str, message: str, *, now: datetime, hidden: Collection[str]) -> Recall:
    held = shelf.served(agent, hidden)
    limits = current_policy().limits
    always, dropped = recall.always(
        held,
        cap=limits.tier_one_cap,
        budget_chars=limits.tier_one_chars,
        now=now,
        layer_one=current_policy().always_in_context,
    )
    relevant = (
        recall.relevant(
            held,
            message,
            k=limits.prefetch_cap,
            exclude={fact.id for fact in always},
            now=now,
            near=semantic.closeness(shelf.vectors, message),
        )
        if message
        else []
    )
    until = min((fact.expires_at for fact in held if fact.expires_at), default=None)
    return Recall(tuple(always), tuple(relevant), dropped, version=shelf.version, until=until)


def lookup(
    subject: Subject,
    topic: str,
    actor: Actor,
    *,
    now: datetime,
    session: str = "",
    hidden: Collection[str] = (),
    limit: int | None = None,
) -> list[Fact]:
    """Layer 3: facts about a topic, best first; every fact for an empty topic."""
    shelf = _shelf(subject, now, topic)
    if shelf is None:
        return []
    near = semantic.closeness(shelf.vectors, topic)
    found = recall.lookup(shelf.served(actor.name, hidden), topic, now=now, near=near)[:limit]
    shelves.note(shelf, actor, found, layer=3, session=session, now=now)
    return found


def page(
    subject: Subject, actor: Actor, *, now: datetime, after: str = "", limit: int = 100, hidden: Collection[str] = ()
) -> tuple[list[Fact], bool]:
    """At most `limit` facts by key, those behind the key `after`, and whether more follow."""
    shelf = _shelf(subject, now)
    if shelf is None:
        return [], False
    rest = sorted(shelf.served(actor.name, hidden), key=lambda fact: fact.key)
    rest = [fact for fact in rest if fact.key > after]
    shelves.note(shelf, actor, rest[:limit], layer=3, session="", now=now)
    return rest[:limit], len(rest) > limit


def look(subject: Subject, key: str, actor: Actor, *, now: datetime, hidden: Collection[str] = ()) -> Fact:
    """The one fact of that key, if this agent may be given it. Raises NotFound, the same for every reason why not."""
    shelf = _shelf(subject, now)
    facts = shelf.served(actor.name, hidden) if shelf else []
    fact = next((fact for fact in facts if fact.key == key), None)
    if shelf is None or fact is None:
        raise NotFound
    shelves.note(shelf, actor, [fact], layer=3, session="", now=now)
    return fact


def everything(subject: Subject, actor: Actor, *, now: datetime) -> list[Fact]:
    """All facts this agent may be given, in the order they were first written."""
    return lookup(subject, "", actor, now=now)


def warm() -> None:
    """Load what the first read of this process would else wait for: policy, lexicon, and the model where it is on."""
    current_policy()
    lexicon.topics_for("warm")
    lexicon.light()
    semantic.warm()


def purge_generation(subject: Subject) -> int:
    customer = find(subject)
    return customer.purge_generation if customer else 0


# --- time -------------------------------------------------------------------------------------------------------------


def sweep(*, now: datetime, batch: int = 500, stop: Callable[[], bool] = lambda: False) -> dict[str, int]:
    """Erase what has reached its end. Every customer is one short transaction under their own lock, so that the sweep may die
    anywhere and be called again; one customer who cannot be swept holds up nobody else, and is counted as failed.

    `batch` is how many customers, or tombstones, are looked up at a time; `stop` is asked before each.
    """
    done = {"facts": 0, "proposals": 0, "tombstones": 0, "failed": 0}
    last = 0
    while due := _due(now, last, batch):
        for last in due:
            if stop():
                return done
            try:
                with locked(last, CLOCK, now) as desk:  # which erases it
                    done["facts"] += desk.ended["facts"]
                    done["proposals"] += desk.ended["proposals"]
            except Exception as error:  # its text may hold a value
                done["failed"] += 1
                log.error("the sweep could not finish customer %s: %s", last, type(error).__name__)
    over = Tombstone.objects.filter(watermark__lte=current_policy().forgotten_until(now))
    while (stones := list(over.values_list("pk", flat=True)[:batch])) and not stop():
        done["tombstones"] += over.filter(pk__in=stones).delete()[0]  # unless it was renewed meanwhile
    return done


def _due(now: datetime, last: int, batch: int) -> list[int]:
    """The next customers, by id, of whom something has reached its end."""
    ended = (MemoryFact.objects.expired(now), Proposal.objects.filter(expires_at__lte=now))
    ids = [
        pk
        for rows in ended
        for pk in rows.filter(customer__gt=last)
        .order_by("customer")
        .values_list("customer", flat=True)
        .distinct()[:batch]
    ]
    return sorted(set(ids))[:batch]


def embed(*, after: int = 0, batch: int = 200) -> tuple[int, int]:
    """Give facts behind the id `after` their vector where they have none of this model. Returns the last id seen (0 at the
    end) and how many were written. A fact that changes meanwhile keeps what its own writer gave it.
    """
    rows = (
        MemoryFact.objects.filter(pk__gt=after)
        .order_by("pk")
        .only("key", "value", "topics", "version", "vector")[:batch]
    )
    last = written = 0
    for row in rows:
        last = row.pk
        if not semantic.is_current(row.vector):
            guessed = tuple(row.topics) == lexicon.topics_for(f"{row.key} {row.value}")
            vector = semantic.vector(row.key, row.value, () if guessed else row.topics)
            written += MemoryFact.objects.filter(pk=row.pk, version=row.version).update(vector=vector)
    return last, written
