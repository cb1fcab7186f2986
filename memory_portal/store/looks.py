"""A look at a value: the one way in which staff come to see what a fact says. In: the customer, the fact, who looks and why.

Out: the fact, once the event that the customer reads is written in the same transaction, and an alarm where this person touched
more customers within an hour than anybody's work needs. Imports desk.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import connection

from memory_portal.enums import ActorKind, EventKind, Reason
from memory_portal.models import StaffAlert
from memory_portal.store.desk import locked
from memory_portal.store.errors import MemoryWriteRejected
from memory_portal.store.holdings import snapshot
from memory_portal.store.types import Actor, Fact

WITHIN = timedelta(hours=1)
MANY = 20
"""So many customers within that time raise no alarm; one more does."""


def reveal(customer: int, fact_id: int, actor: Actor, *, now: datetime) -> tuple[Fact, StaffAlert | None]:
    """Staff with a purpose only. Raises NotFound; MemoryWriteRejected for anybody else."""
    if actor.kind is not ActorKind.STAFF or not actor.purpose:
        raise MemoryWriteRejected(Reason.NOT_ALLOWED)
    with locked(customer, actor, now) as desk:
        row = desk.row(fact_id)
        touched = desk.touched
        desk.event(
            EventKind.REVEALED,
            fact_id=row.pk,
            key=row.key,
            category=row.category,
            code=actor.purpose,
            agent=actor.role,
        )
        desk.touched = touched  # Agents' caches need not hear of it.
        desk.enter()  # so that it is counted
        return snapshot(row), _alarm(actor.id, now)


def _alarm(staff: str, now: datetime) -> StaffAlert | None:
    """One at a time for one person: of two looks at once the later one sees the earlier, so that none slips through uncounted."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('staff ' || %s, 0))", [staff])
        cursor.execute(
            """SELECT count(DISTINCT customer_id) FROM memory_portal_factevent
            WHERE actor_kind = 'staff' AND actor_id = %s AND at > %s AND at <= %s""",  # written out, for the partial index
            [staff, now - WITHIN, now],
        )
        (customers,) = cursor.fetchone()
    raised = StaffAlert.objects.filter(staff_id=int(staff), at__gt=now - WITHIN)
    if customers <= MANY or raised.exists():
        return None
    return StaffAlert.objects.create(staff_id=int(staff), at=now, customers=customers)
