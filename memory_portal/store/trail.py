"""A customer's trail: each event carries a keyed digest over all of its fields, its place in the trail and the digest before it.

In: a Customer whose row the caller has locked, and what happened. Out: the event, written, with the customer's `trail_...` fields
moved on for the caller to save. The key is not in the database, so that whoever can write there can still not make an event fit.
What a digest is made of is named here once, for the writer and for `audit`, which checks. Imports models.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache

from django.conf import settings
from django.db import DatabaseError, connection

from memory_portal.models import Customer, TrailEnd

TAG, MAC = 4, 16
"""Bytes that say which key it was, and bytes of HMAC-SHA-256: 128 bits, which nobody guesses."""

Ring = dict[bytes, bytes]


def ring() -> Ring:
    """The audit key and its predecessors by their tags, the one in use first."""
    return _ring((settings.AUDIT_KEY, *settings.AUDIT_KEY_FALLBACKS))


@lru_cache(maxsize=8)
def _ring(keys: tuple[str, ...]) -> Ring:
    return {hashlib.sha256(b"memory-portal audit key\0" + key.encode()).digest()[:TAG]: key.encode() for key in keys}


def sign(message: bytes) -> bytes:
    """Under the key in use."""
    keys = ring()
    tag = next(iter(keys))
    return tag + hmac.digest(keys[tag], message, "sha256")[:MAC]


def signed(keys: Ring, message: bytes, mac: bytes | None) -> bool:
    """Whether `mac` was made of this message under a key that is known."""
    if not mac or (key := keys.get(mac[:TAG])) is None:
        return False
    return hmac.compare_digest(hmac.digest(key, message, "sha256")[:MAC], mac[TAG:])


def event_text(
    customer: int,
    seq: int | None,
    prev: bytes | None,
    at: datetime,
    kind: str,
    fact_id: int | None,
    key: str,
    category: str,
    code: str,
    actor_kind: str,
    actor_id: str,
    agent: str,
) -> bytes:
    """All of an event but its `id` and `xid`, which the database gives and the seals cover. `at` is UTC without saying so.

    No text of PostgreSQL holds a zero byte, so that no two events have the same.
    """
    head = f"event\0{customer}\0{seq}\0{at.isoformat()}\0{kind}\0{fact_id}\0{key}\0{category}\0{code}"
    return f"{head}\0{actor_kind}\0{actor_id}\0{agent}\0".encode() + (prev or b"")


def head_text(customer: int, seq: int, mac: bytes | None) -> bytes:
    """Stands on the customer's row only: with an older event alone nobody can make its trail end there."""
    return f"head\0{customer}\0{seq}\0".encode() + (mac or b"")


Event = tuple[datetime, str, int | None, str, str, str, str, str, str, int, bytes, bytes]
"""A row to be: in the order of ENTER, without the customer."""

# The events, and where they leave the trail, which is on the customer's row, in one round trip.
ENTER = """
WITH entered AS (
    INSERT INTO memory_portal_factevent
        (customer_id, at, kind, fact_id, key, category, code, actor_kind, actor_id, agent, seq, prev, mac)
    SELECT %s, at, kind, fact_id, key, category, code, actor_kind, actor_id, agent, seq, prev, mac
    FROM unnest(%s::timestamptz[], %s::text[], %s::bigint[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[],
        %s::text[], %s::bigint[], %s::bytea[], %s::bytea[])
        AS e (at, kind, fact_id, key, category, code, actor_kind, actor_id, agent, seq, prev, mac)
    ORDER BY seq
)
UPDATE memory_portal_customer SET version = %s, trail_seq = %s, trail_mac = %s, trail_head = %s WHERE id = %s
"""


def follow(
    customer: Customer,
    *,
    at: datetime,
    kind: str,
    actor_kind: str,
    actor_id: str = "",
    fact_id: int | None = None,
    key: str = "",
    category: str = "",
    code: str = "",
    agent: str = "",
) -> Event:
    """The next event of this trail, for `enter` to write before the transaction ends."""
    seq, prev = customer.trail_seq + 1, bytes(customer.trail_mac or b"")
    moment = at.astimezone(UTC).replace(tzinfo=None)
    text = event_text(customer.pk, seq, prev, moment, kind, fact_id, key, category, code, actor_kind, actor_id, agent)
    customer.trail_seq, customer.trail_mac = seq, sign(text)
    customer.trail_head = sign(head_text(customer.pk, seq, customer.trail_mac))
    return at, kind, fact_id, key, category, code, actor_kind, actor_id, agent, seq, prev, customer.trail_mac


def enter(customer: Customer, events: Sequence[Event]) -> None:
    """Write them, in the order of the trail, and the customer's `version` and `trail_...` as they stand on the instance."""
    columns = [list(column) for column in zip(*events, strict=True)]
    left = [bytes(mac or b"") or None for mac in (customer.trail_mac, customer.trail_head)]
    with connection.cursor() as cursor:
        cursor.execute(ENTER, (customer.pk, *columns, customer.version, customer.trail_seq, *left, customer.pk))
        if cursor.rowcount != 1:
            raise DatabaseError("the customer's row is not there to note where the trail ends")


def end(customer: Customer) -> None:
    """The customer goes, the trail stays: note where it ends, under the number that stands for nobody from now on."""
    TrailEnd.objects.create(
        customer_number=customer.pk, seq=customer.trail_seq, mac=customer.trail_mac, head=customer.trail_head
    )
