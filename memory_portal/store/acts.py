"""What the customer does with their facts, suggestions, consents and switches, and what staff do on their behalf.

In: the customer, what it is about, an Actor and the time. Out: frozen values, or an error that says why not. Each act is one
transaction under the customer's row lock. Imports desk and orm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from django.db import transaction

from memory_portal.enums import (
    ChangeAction,
    EventKind,
    FactState,
    FreezeReason,
    Noted,
    Origin,
    Reason,
    TombstoneReason,
)
from memory_portal.models import (
    Consent,
    MemoryFact,
    Proposal,
)
from memory_portal.store import intake, ledger
from memory_portal.store.desk import (
    Desk,
    blank,
    bury,
    current_policy,
    erase_rows,
    forget_rows,
    locked,
    withdraw,
)
from memory_portal.store.errors import MemoryDisabled, MemoryWriteRejected, NotFound
from memory_portal.store.holdings import snapshot
from memory_portal.store.orm import propose, restated, submit, unconsented, write_new, write_over
from memory_portal.store.sanitise import clean
from memory_portal.store.types import (
    SAFETY,
    Actor,
    Draft,
    Fact,
    Outcome,
    Receipt,
    Subject,
)
from memory_portal.store.words import forget_texts


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
        return write_over(desk, row, draft, {}, lock=True)


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
        rows = [desk.row(fact_id, version) for fact_id in dict.fromkeys(fact_ids)]
        if not actor.is_customer and any(row.category == SAFETY for row in rows):
            raise MemoryWriteRejected(Reason.NOT_ALLOWED)
        gone = [snapshot(row) for row in rows]
        return gone, forget_rows(desk, rows, EventKind.FORGOTTEN)


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
        receipt = forget_rows(desk, rows, EventKind.FORGOTTEN)
        counts = {**receipt.counts, "proposals": receipt.counts["proposals"] + len(asked)}
        return gone, Receipt(counts, tombstones=receipt.tombstones)


def clear(customer: Subject | int, actor: Actor, *, now: datetime) -> Receipt:
    """Forget everything: all facts, versions, quotes and suggestions; the purge generation moves, so work in flight is void."""
    with locked(customer, actor, now, create=isinstance(customer, Subject)) as desk:
        everything = list(desk.rows.values())
        bury(desk, everything, TombstoneReason.FORGOTTEN)
        receipt = erase_rows(desk, everything)
        asked = desk.customer.proposals.count()
        desk.customer.proposals.all().delete()
        desk.customer.purge_generation += 1
        desk.customer.cleared_at = now
        desk.customer.save(update_fields=["purge_generation", "cleared_at"])
        discarded = withdraw(desk, "cleared")
        desk.event(EventKind.CLEARED)
        ledger.note(desk.customer, Noted.CLEARED, now)
        counts = {**receipt.counts, "proposals": receipt.counts["proposals"] + asked, "conversations": discarded}
        return Receipt(counts, tombstones=receipt.tombstones)


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
            forget_rows(desk, [fact] if fact else [], EventKind.FORGOTTEN)
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
            return write_over(desk, fact, draft, {}, EventKind.ACCEPTED, since=desk.now)
        return write_new(desk, draft, {}, EventKind.ACCEPTED, since=desk.now)


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
        bury(desk, [asked], TombstoneReason.DISMISSED)
    desk.event(EventKind.DISMISSED, fact_id=asked.fact_id, key=asked.key, code=asked.reason)
    asked.delete()
    blank(desk, [asked.value, asked.source_quote])
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
            row for row in desk.rows.values() if intake.missing_consent(restated(row), desk.held, current_policy())
        ]
        for row in rested:
            draft = restated(row)
            erase_rows(desk, [row])
            propose(desk, draft, Reason.NEEDS_CONSENT, None)
        _wait_no_longer(desk)
        desk.event(EventKind.CONSENT_WITHDRAWN, code=purpose)
        ledger.note(desk.customer, Noted.CONSENT_WITHDRAWN, now, code=purpose)
        return len(rested)


def _wait_no_longer(desk: Desk) -> None:
    """Questions that were asked under the consent just taken back go away as soon as if it had never been there."""
    for asked in desk.customer.proposals.filter(action=ChangeAction.REMEMBER):
        if unconsented(desk, restated(asked)):
            asked.expires_at = min(asked.expires_at, current_policy().proposal_expiry(desk.now, unconsented=True))
            asked.save(update_fields=["expires_at"])


def pause(customer: int, what: str, actor: Actor, *, now: datetime) -> None:
    """`what` is "learning" or "using". Pausing learning also discards conversations that wait to be read."""
    kinds = {"learning": EventKind.LEARNING_PAUSED, "using": EventKind.USING_PAUSED}
    with locked(customer, actor, now) as desk:
        if getattr(desk.customer, f"{what}_paused_at") is None:
            setattr(desk.customer, f"{what}_paused_at", now)
            desk.customer.save(update_fields=[f"{what}_paused_at"])
            desk.event(kinds[what])
            ledger.note(desk.customer, Noted(kinds[what].value), now)
        if what == "learning":
            withdraw(desk, "learning_paused")


def resume(customer: int, what: str, actor: Actor, *, now: datetime) -> None:
    kinds = {"learning": EventKind.LEARNING_RESUMED, "using": EventKind.USING_RESUMED}
    if not actor.is_customer:
        raise MemoryWriteRejected(Reason.NOT_ALLOWED)
    with locked(customer, actor, now) as desk:
        if getattr(desk.customer, f"{what}_paused_at") is not None:
            setattr(desk.customer, f"{what}_paused_at", None)
            desk.customer.save(update_fields=[f"{what}_paused_at"])
            desk.event(kinds[what])
            ledger.note(desk.customer, Noted(kinds[what].value), now)


CHOICES = ("no_learn_categories", "no_use_categories", "no_learn_agents", "no_use_agents", "never_words")


def choose(customer: int, choices: Mapping[str, Sequence[str]], actor: Actor, *, now: datetime) -> None:
    """Replace any of the customer's lists in CHOICES."""
    with locked(customer, actor, now) as desk:
        for name in CHOICES:
            if name in choices:
                setattr(desk.customer, name, list(dict.fromkeys(choices[name])))
        desk.customer.save(update_fields=[name for name in CHOICES if name in choices])
        desk.event(EventKind.CHOICES_CHANGED)
