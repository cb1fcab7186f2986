"""Links that work once: made for one customer and one purpose, gone after minutes. In: a raw token. Out: its Ticket, or NotFound.

The raw token is handed out once and kept nowhere; a look-up goes by its digest. May import models and the types.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet

from memory_portal.models import Ticket as Row
from memory_portal.store import wall
from memory_portal.store.errors import NotFound

TICKET_MINUTES = 15


@dataclass(frozen=True, slots=True)
class Ticket:
    customer_id: int
    detail: str
    expires_at: datetime


@wall.everyone("links that are over are removed, whosever they are")
def issue_ticket(
    customer_id: int, purpose: str, *, now: datetime, detail: str = "", minutes: int = TICKET_MINUTES
) -> str:
    """A new raw token of 256 bits. The customer's older unused ones of this purpose end, and all that are over are removed."""
    Row.objects.filter(expires_at__lte=now).delete()
    Row.objects.filter(customer=customer_id, purpose=purpose, used_at=None).delete()
    token = secrets.token_urlsafe(32)
    Row.objects.create(
        customer_id=customer_id,
        purpose=purpose,
        detail=detail,
        digest=_digest(token),
        created_at=now,
        expires_at=now + timedelta(minutes=minutes),
    )
    return token


def ticket(token: str, purpose: str, *, now: datetime, customer_id: int | None = None) -> Ticket:
    """Look without using. Raises NotFound, the same for one that is used, over, somebody else's or never was."""
    with wall.everyone("a link names its customer"):
        row = _live(token, purpose, now, customer_id).first()
    if row is None:
        raise NotFound
    wall.only(row.customer_id)
    return Ticket(row.customer_id, row.detail, row.expires_at)


def redeem(token: str, purpose: str, *, now: datetime, customer_id: int | None = None) -> Ticket:
    """Use it up: of two at once, one succeeds. Raises NotFound as `ticket` does."""
    with wall.everyone("a link names its customer"), transaction.atomic():
        # One statement: the row lock decides a race.
        if not _live(token, purpose, now, customer_id).update(used_at=now):
            raise NotFound
        row = Row.objects.get(digest=_digest(token))
    wall.only(row.customer_id)
    return Ticket(row.customer_id, row.detail, row.expires_at)


def _live(token: str, purpose: str, now: datetime, customer_id: int | None) -> QuerySet[Row]:
    rows = Row.objects.filter(digest=_digest(token), purpose=purpose, used_at=None, expires_at__gt=now)
    return rows if customer_id is None else rows.filter(customer=customer_id)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
