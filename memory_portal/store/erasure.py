"""The end of a customer: everything about them goes in one transaction, under their row lock.

What stays are events under a number that stands for nobody any more (names of things and times, no value) and a line of the
ledger, which knows the person by a keyed pseudonym only.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial

from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.db import transaction

from memory_portal.enums import ActorKind, EventKind, Noted, Reason
from memory_portal.models import Customer, FactRead, FactRevision, MemoryFact
from memory_portal.store import ledger, trail
from memory_portal.store.desk import locked, withdrawn
from memory_portal.store.errors import MemoryWriteRejected
from memory_portal.store.types import Actor, Receipt
from memory_portal.store.words import forget_texts

ERASURE_REASONS = (
    "customer_asked",
    "account_closed",
    "court_or_authority",
    "entered_by_mistake",
    "test_data",
    "replayed",
)
"""Why somebody other than the customer may erase them. `replayed`: it had been done before, and a restored copy did not know."""
OPERATORS = (ActorKind.STAFF, ActorKind.SYSTEM)


def erase(customer: int, actor: Actor, *, now: datetime, reason: str = "") -> Receipt:
    """Erase facts, versions, suggestions, tombstones, consents, reads, waiting conversations, the sign-in and the customer.

    Raises NotFound; MemoryWriteRejected for anybody but the customer, and an operator who gives one of ERASURE_REASONS.
    Signing out the browser at hand is the caller's; all others end here.
    """
    if not (actor.is_customer or (actor.kind in OPERATORS and reason in ERASURE_REASONS)):
        raise MemoryWriteRejected(Reason.NOT_ALLOWED)
    with locked(customer, actor, now) as desk:
        row = desk.customer
        desk.event(EventKind.CLEARED, code=reason)
        desk.enter()  # there will be no row left to count on
        discarded = sum(
            int(count or 0)
            for _receiver, count in withdrawn.send(
                sender=Customer, customer_id=row.pk, what="erased", texts=[], now=now
            )
        )
        counts = {
            "facts": MemoryFact.objects.of(row).count(),
            "revisions": FactRevision.objects.filter(fact__customer=row).count(),
            "proposals": row.proposals.count(),
            "tombstones": row.tombstones.count(),
            "consents": row.consents.count(),
            "reads": FactRead.objects.filter(customer=row).delete()[0],
            "conversations": discarded,
            "events": row.events.count(),
        }
        trail.end(row)
        ledger.note(row, Noted.ERASED, now, code=reason)
        user = row.user_id
        transaction.on_commit(forget_texts)
        row.delete()
        if user is not None:
            transaction.on_commit(partial(end_sessions, user, now))
            get_user_model().objects.filter(pk=user).delete()
        return Receipt(counts)


def end_sessions(user: int, now: datetime) -> None:
    """Erase what browsers of this user left in their sessions; without the user none of them opens anything any more.

    A session knows its user only inside, so every live one is opened: slow where there are many, but outside of any lock.
    """
    for session in Session.objects.filter(expire_date__gt=now).iterator():
        if session.get_decoded().get("_auth_user_id") == str(user):
            session.delete()
