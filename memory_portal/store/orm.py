"""The thin shell around the pure rooms: a Draft is decided on at the customer's desk, and fact, revision and event are written.

In: Subjects or customer ids, Drafts, an Actor and the time. Out: Outcomes. Facts are written here and on the desk, nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Max, Min, Q

from memory_portal import logs
from memory_portal.enums import (
    ActorKind,
    ChangeAction,
    EventKind,
    Origin,
    Reason,
)
from memory_portal.models import (
    MemoryFact,
    Proposal,
    Tombstone,
)
from memory_portal.store import intake, lexicon, semantic
from memory_portal.store.desk import (
    CLOCK,
    Desk,
    current_policy,
    forget_rows,
    locked,
)
from memory_portal.store.errors import Conflict, MemoryDisabled
from memory_portal.store.types import (
    SAFETY,
    Actor,
    Decision,
    Draft,
    Fact,
    Outcome,
    Propose,
    Refuse,
    Remember,
    Renew,
    Subject,
    Update,
)

log = logs.get(__name__)


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
            decision = intake.admit(draft, desk.held, current_policy(), actor, desk.macs, across_keys=across_keys)
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
            return propose(desk, draft, reason, fact)
        case Remember(draft):
            return Outcome("learned", fact=write_new(desk, draft, stamps))
        case Update(draft, fact):
            return Outcome("updated", fact=write_over(desk, desk.rows[fact.id], draft, stamps))
        case Renew(draft, fact):
            return Outcome("renewed", fact=_renew(desk, desk.rows[fact.id], draft, stamps))
    # What is left is to Forget.
    forget_rows(desk, [desk.rows[decision.fact.id]], EventKind.FORGOTTEN, agent=decision.draft.agent)
    return Outcome("forgotten")


def _stamp(draft: Draft, stamps: Mapping[str, datetime | None]) -> datetime | None:
    return stamps.get(draft.key, draft.said_at)


def write_new(
    desk: Desk,
    draft: Draft,
    stamps: Mapping[str, datetime | None],
    kind: EventKind | None = None,
    *,
    since: datetime | None = None,
) -> Fact:
    by_customer = desk.actor.is_customer
    if by_customer:  # Writing it again is the customer's own way of lifting what they had us forget.
        desk.customer.tombstones.filter(Q(key=draft.key) | Q(value_mac__in=desk.macs(draft.value))).delete()
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


def write_over(
    desk: Desk,
    row: MemoryFact,
    draft: Draft,
    stamps: Mapping[str, datetime | None],
    kind: EventKind | None = None,
    *,
    lock: bool = False,
    since: datetime | None = None,
) -> Fact:
    before = row.category
    by_customer = desk.actor.is_customer
    _rewrite(
        desk,
        row,
        **_statement(draft),
        **_times(draft, stamps, since),
        vector=semantic.vector(row.key, draft.value, draft.topics),
        locked=by_customer or lock,
        version=row.version + 1,
    )
    _settle_proposals(desk, replace(draft, key=row.key))
    written = by_customer or draft.origin is Origin.STAFF
    kind = kind or (EventKind.CORRECTED if written else EventKind.UPDATED)
    # Who knew it as an ordinary fact must hear that it is none any more.
    category = row.category if before == SAFETY else before
    desk.event(kind, fact_id=row.pk, key=row.key, category=category, agent=draft.agent)
    return desk.keep(row)


# The former words and the new ones in one round trip.
REWRITE = """
WITH former AS (
    INSERT INTO memory_portal_factrevision (fact_id, version, value, category, source_quote, origin, said_at, replaced_at)
    SELECT id, version, value, category, source_quote, origin, said_at, %(now)s FROM memory_portal_memoryfact
    WHERE customer_id = %(customer)s AND id = %(fact)s
)
UPDATE memory_portal_memoryfact SET value = %(value)s, category = %(category)s, topics = %(topics)s,
    source_quote = %(source_quote)s, source_session_id = %(source_session_id)s, agent = %(agent)s, extractor = %(extractor)s,
    said_at = %(said_at)s, origin = %(origin)s, updated_at = %(updated_at)s, expires_at = %(expires_at)s,
    review_at = %(review_at)s, vector = %(vector)s, locked = %(locked)s, version = %(version)s
WHERE customer_id = %(customer)s AND id = %(fact)s
"""


def _rewrite(desk: Desk, row: MemoryFact, **fields: Any) -> None:
    for name, value in fields.items():
        setattr(row, name, value)
    with connection.cursor() as cursor:
        cursor.execute(REWRITE, {**fields, "now": desk.now, "customer": desk.customer.pk, "fact": row.pk})


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


def propose(desk: Desk, draft: Draft, reason: Reason, fact: Fact | None) -> Outcome:
    fields = {
        **_statement(draft),
        "reason": reason,
        "fact_id": fact.id if fact else None,
        "created_at": desk.now,
        "expires_at": current_policy().proposal_expiry(desk.now, unconsented=unconsented(desk, draft)),
    }
    asked = desk.customer.proposals.filter(
        action=draft.action, key=draft.key, value_mac__in=desk.macs(draft.value)
    ).first()
    proposal = asked or Proposal.objects.create(
        customer=desk.customer, action=draft.action, key=draft.key, value_mac=desk.mac(draft.value), **fields
    )
    desk.asked = True
    if asked is None:
        desk.event(
            EventKind.PROPOSED,
            fact_id=proposal.fact_id,
            key=draft.key,
            category=draft.category,
            code=reason,
            agent=draft.agent,
        )
    return Outcome("proposed", Reason(proposal.reason), proposal_id=proposal.pk)


def unconsented(desk: Desk, draft: Draft) -> bool:
    """Whatever else is asked about it: content that needs a consent waits no longer than for that."""
    remember = draft.action is ChangeAction.REMEMBER
    return remember and intake.missing_consent(draft, desk.held, current_policy())


def _settle_proposals(desk: Desk, draft: Draft) -> None:
    """A question about something the customer now answered by writing it is no longer a question."""
    if not desk.asked:
        return
    waiting = desk.customer.proposals.filter(key=draft.key)
    if not desk.actor.is_customer:
        waiting = waiting.filter(value_mac__in=desk.macs(draft.value), action=ChangeAction.REMEMBER)
    waiting.delete()


def restated(row: MemoryFact | Proposal) -> Draft:
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


def sweep(*, now: datetime, batch: int = 20_000, stop: Callable[[], bool] = lambda: False) -> dict[str, int]:
    """Erase what has reached its end. Every customer is one short transaction under their own lock, so that the sweep may die
    anywhere and be called again; one customer who cannot be swept holds up nobody else, and is counted as failed.

    `batch` is how many ids of facts, or tombstones, are looked at in one query; `stop` is asked before each customer.
    """
    done = {"facts": 0, "proposals": 0, "tombstones": 0, "failed": 0}
    stuck: set[int] = set()
    for customer in _due(now, batch):
        if customer in stuck:
            continue
        if stop():
            return done
        try:
            with locked(customer, CLOCK, now) as desk:  # which erases it
                done["facts"] += desk.ended["facts"]
                done["proposals"] += desk.ended["proposals"]
        except Exception as error:  # its text may hold a value
            stuck.add(customer)
            done["failed"] += 1
            log.error("sweep_failed", customer=customer, **logs.of_error(error))
    over = Tombstone.objects.filter(watermark__lte=current_policy().forgotten_until(now))
    while (stones := list(over.values_list("pk", flat=True)[: min(batch, 500)])) and not stop():
        done["tombstones"] += over.filter(pk__in=stones).delete()[0]  # unless it was renewed meanwhile
    return done


def _due(now: datetime, batch: int) -> Iterator[int]:
    """Customers of whom something has reached its end, maybe more than once.

    Looked for along the ids, in whose order rows lie on the disk: each row is passed once, no query holds anything for long, and no
    index on the end is needed, which each write would have to keep.
    """
    for rows in (MemoryFact.objects.all(), Proposal.objects.all()):
        ends = rows.aggregate(first=Min("pk"), last=Max("pk"))
        for start in range(ends["first"] or 1, (ends["last"] or 0) + 1, batch):
            due = rows.filter(pk__gte=start, pk__lt=start + batch, expires_at__lte=now)
            yield from due.order_by("customer").values_list("customer", flat=True).distinct()


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
