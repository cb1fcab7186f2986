"""What the pages read beside the facts themselves. In: a customer's id and the time. Out: frozen values.

Reads only. Everything starts from one customer, so no answer can speak of another's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from django.apps import apps
from django.db.models import Count, F, Func, Max, Q, QuerySet, Subquery

from memory_portal.enums import ActorKind, ChangeAction, EventKind, FreezeReason, Origin, Reason, TombstoneReason
from memory_portal.models import Consent, Customer, FactEvent, FactRead, MemoryFact, Proposal, Tombstone
from memory_portal.store.holdings import snapshot
from memory_portal.store.types import SAFETY, Fact

MAY_READ, MAY_READ_SAFETY = "facts:read", "facts:read:safety"  # scopes of the bridge's keys

# --- who used it ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Use:
    """How often one agent was handed one fact, and when last."""

    agent: str
    last: datetime
    times: int


def readers(customer_id: int) -> dict[int, list[Use]]:
    """Per fact, the agents that were handed it, the latest first. Counts every read, so "nobody" means nobody."""
    handed = FactRead.objects.filter(customer=customer_id).values("agent", fact=Func(F("fact_ids"), function="unnest"))
    uses: dict[int, list[Use]] = {}
    for row in handed.annotate(last=Max("at"), times=Count("*")).order_by("-last", "agent"):
        uses.setdefault(row["fact"], []).append(Use(row["agent"], row["last"], row["times"]))
    return uses


@dataclass(frozen=True, slots=True)
class Freeze:
    why: FreezeReason
    at: datetime


def freezes(customer_id: int) -> dict[int, Freeze]:
    rows = MemoryFact.objects.of(customer_id).exclude(frozen_at=None).values_list("pk", "freeze_reason", "frozen_at")
    return {pk: Freeze(FreezeReason(why), at) for pk, why, at in rows if at}


def agents(customer: Customer) -> list[str]:
    """Every agent that has a key for this profile, wrote a fact or a suggestion, read one, or was switched off."""
    known = set(customer.no_learn_agents) | set(customer.no_use_agents)
    known |= set(FactRead.objects.filter(customer=customer).values_list("agent", flat=True).distinct())
    for statements in (MemoryFact.objects.of(customer), customer.proposals.all()):
        known |= set(statements.exclude(origin=Origin.STAFF).values_list("agent", flat=True).distinct())
    keys = apps.get_model("agent_bridge.AgentKey")._default_manager.filter(profile=customer.profile, revoked_at=None)
    known |= set(keys.values_list("name", flat=True))
    return sorted(known - {""}, key=str.casefold)


def assistants(customer: Customer, now: datetime) -> dict[str, frozenset[str]]:
    """Every agent that may read this customer's memory, with the categories that none of its keys is shown.

    An agent that never had a key works inside the host and is shown everything.
    """
    keys = apps.get_model("agent_bridge.AgentKey")._default_manager.filter(profile=customer.profile)
    having = set(keys.values_list("name", flat=True))
    scopes: dict[str, set[str]] = {}
    for name, granted in keys.filter(revoked_at=None, expires_at__gt=now).values_list("name", "scopes"):
        scopes.setdefault(name, set()).update(granted)
    return {
        name: frozenset() if name not in having or MAY_READ_SAFETY in scopes[name] else frozenset({SAFETY})
        for name in agents(customer)
        if name not in having or MAY_READ in scopes.get(name, ())
    }


# --- suggestions ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Suggestion:
    id: int
    action: ChangeAction
    key: str
    value: str
    category: str
    origin: Origin
    reason: Reason
    source_quote: str
    agent: str
    said_at: datetime
    created_at: datetime
    expires_at: datetime
    fact: Fact | None
    """The fact it would change, as it is now."""

    @property
    def asks_consent(self) -> bool:
        return self.reason is Reason.NEEDS_CONSENT


def suggestions(customer_id: int, now: datetime) -> list[Suggestion]:
    """What waits for the customer's answer, newest first."""
    rows = _waiting(customer_id, now).select_related("fact").order_by("-created_at", "-pk")
    return [_suggestion(row, now) for row in rows]


def suggestion(customer_id: int, proposal_id: int, now: datetime) -> Suggestion | None:
    row = _waiting(customer_id, now).filter(pk=proposal_id).select_related("fact").first()
    return _suggestion(row, now) if row else None


def waiting(customer_id: int, now: datetime) -> int:
    return _waiting(customer_id, now).count()


def _waiting(customer_id: int, now: datetime) -> QuerySet[Proposal]:
    return Proposal.objects.filter(customer=customer_id, expires_at__gt=now)


def _suggestion(row: Proposal, now: datetime) -> Suggestion:
    touched = row.fact if row.fact and (row.fact.expires_at is None or row.fact.expires_at > now) else None
    return Suggestion(
        id=row.pk,
        action=ChangeAction(row.action),
        key=row.key,
        value=row.value,
        category=row.category,
        origin=Origin(row.origin),
        reason=Reason(row.reason),
        source_quote=row.source_quote,
        agent=row.agent,
        said_at=row.said_at,
        created_at=row.created_at,
        expires_at=row.expires_at,
        fact=snapshot(touched) if touched else None,
    )


# --- what won't be learned again, and consent -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Forgotten:
    key: str
    at: datetime
    reason: TombstoneReason


def tombstones(customer_id: int) -> list[Forgotten]:
    """The names that won't be learned again, each once, the latest first. What they said is not known to anybody."""
    latest: dict[str, Forgotten] = {}
    for row in Tombstone.objects.filter(customer=customer_id).order_by("-watermark", "-pk"):
        latest.setdefault(row.key, Forgotten(row.key, row.watermark, TombstoneReason(row.reason)))
    return list(latest.values())


def forgotten_keys(customer_id: int) -> tuple[str, ...]:
    """The names of what the customer had us forget: what an extractor is told of it."""
    buried = Tombstone.objects.filter(customer=customer_id, reason=TombstoneReason.FORGOTTEN)
    return tuple(buried.order_by("key").values_list("key", flat=True).distinct())


@dataclass(frozen=True, slots=True)
class Agreed:
    """A consent in force: the wording agreed to, and when."""

    text_version: str
    given_at: datetime


def consent(customer_id: int, purpose: str = SAFETY) -> Agreed | None:
    row = Consent.objects.filter(customer=customer_id, purpose=purpose, withdrawn_at=None).first()
    return Agreed(row.text_version, row.given_at) if row else None


# --- activity ---------------------------------------------------------------------------------------------------------

READ = "read"


@dataclass(frozen=True, slots=True)
class Happening:
    """One line of the activity list: an event, or (kind READ) one read with the names of what was handed over."""

    at: datetime
    kind: str
    id: int
    key: str = ""
    code: str = ""
    actor: ActorKind | None = None
    agent: str = ""
    keys: tuple[str, ...] = ()
    times: tuple[datetime, ...] = ()
    """Where several reads alike are shown as one: the time of each."""

    @property
    def place(self) -> tuple[datetime, int, int]:
        """Where it stands in the list; several may happen at one instant."""
        return self.at, 0 if self.kind == READ else 1, self.id

    @property
    def cursor(self) -> str:
        return f"{self.at.astimezone(UTC).isoformat()}_{self.place[1]}_{self.id}"


@dataclass(frozen=True, slots=True)
class Page:
    happenings: tuple[Happening, ...]
    next: Happening | None = None
    """The first one that did not fit."""

    @property
    def last(self) -> Happening:
        """The last one that fits; its cursor is where the next page starts."""
        return self.happenings[-1]


def activity(
    customer_id: int,
    *,
    kinds: Collection[EventKind] | None = None,
    reads: bool = True,
    fact_id: int | None = None,
    before: str = "",
    size: int = 60,
) -> Page:
    """Events and reads, newest first, those after the cursor `before` only. `kinds` None means every kind.

    A cursor that is not one counts as none. Values never appear: neither table holds any.
    """
    events = FactEvent.objects.filter(customer=customer_id)
    served = FactRead.objects.filter(customer=customer_id)
    if kinds is not None:
        events = events.filter(kind__in=kinds)
    if fact_id is not None:
        events, served = events.filter(fact_id=fact_id), served.filter(fact_ids__contains=[fact_id])
    if place := _place(before):
        at, rank, pk = place
        events = events.filter(Q(at__lt=at) | (Q(at=at, id__lt=pk) if rank else Q(pk__in=[])))
        served = served.filter(Q(at__lt=at) | (Q(at=at) if rank else Q(at=at, id__lt=pk)))
    found = [
        Happening(row.at, row.kind, row.pk, row.key, row.code, ActorKind(row.actor_kind), row.agent)
        for row in events.order_by("-at", "-id")[: size + 1]
    ]
    if reads:
        found += _reads(served.order_by("-at", "-id")[: size + 1], customer_id)
    found.sort(key=lambda happening: happening.place, reverse=True)
    shown = tuple(found[:size])
    return Page(shown, found[size] if len(found) > size else None)


@dataclass(frozen=True, slots=True)
class News:
    """What others noted since the customer signed in the time before this."""

    count: int = 0
    since: datetime | None = None


def news(customer_id: int) -> News:
    """From the list of events alone, in one query: nothing need be written down when a page is looked at."""
    visits = FactEvent.objects.filter(customer=customer_id, kind=EventKind.SIGNED_IN).order_by("-at", "-id")
    before = Subquery(visits.values("at")[1:2])
    kinds = (EventKind.LEARNED, EventKind.ADDED, EventKind.PROPOSED)
    found = FactEvent.objects.filter(customer=customer_id, kind__in=kinds, at__gt=before)
    counted = (
        found.exclude(actor_kind=ActorKind.CUSTOMER).annotate(since=before).values("since").annotate(n=Count("id"))
    )
    return next((News(row["n"], row["since"]) for row in counted.order_by()), News())


def _place(cursor: str) -> tuple[datetime, int, int] | None:
    try:
        at, rank, pk = cursor.split("_")
        moment = datetime.fromisoformat(at)
        return (moment, int(rank), min(int(pk), 2**63 - 1)) if moment.tzinfo else None
    except ValueError:
        return None


def _reads(rows: Iterable[FactRead], customer_id: int) -> list[Happening]:
    rows = list(rows)
    ids = {fact_id for row in rows for fact_id in row.fact_ids}
    # Events know the names of facts that are gone; nothing knows what they said.
    named = FactEvent.objects.filter(customer=customer_id, fact_id__in=ids).exclude(key="").order_by("pk")
    names = dict(named.values_list("fact_id", "key"))
    return [
        Happening(
            row.at,
            READ,
            row.pk,
            agent=row.agent,
            keys=tuple(names[fact_id] for fact_id in row.fact_ids if fact_id in names),
        )
        for row in rows
    ]
