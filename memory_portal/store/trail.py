"""A customer's trail: each event carries a keyed digest over all of its fields, its place in the trail and the digest before it.

In: a Customer whose row the caller has locked, and what happened. Out: the event, written, with the customer's `trail_...` fields
moved on for the caller to save. The key is not in the database, so that whoever can write there can still not make an event fit.
What a digest is made of is named here once, for the writer and for `audit`, which checks. Imports models.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime
from functools import lru_cache

from django.conf import settings

from memory_portal.models import Customer, FactEvent, TrailEnd

ON_CUSTOMER = ["trail_seq", "trail_mac", "trail_head"]
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


def add(
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
) -> FactEvent:
    """Write the next event of this trail."""
    seq, prev = customer.trail_seq + 1, bytes(customer.trail_mac or b"")
    moment = at.astimezone(UTC).replace(tzinfo=None)
    text = event_text(customer.pk, seq, prev, moment, kind, fact_id, key, category, code, actor_kind, actor_id, agent)
    mac = sign(text)
    event = FactEvent.objects.create(
        customer=customer,
        at=at,
        kind=kind,
        fact_id=fact_id,
        key=key,
        category=category,
        code=code,
        actor_kind=actor_kind,
        actor_id=actor_id,
        agent=agent,
        seq=seq,
        prev=prev,
        mac=mac,
    )
    customer.trail_seq, customer.trail_mac = seq, mac
    customer.trail_head = sign(head_text(customer.pk, seq, mac))
    return event


def end(customer: Customer) -> None:
    """The customer goes, the trail stays: note where it ends, under the number that stands for nobody from now on."""
    TrailEnd.objects.create(
        customer_number=customer.pk, seq=customer.trail_seq, mac=customer.trail_mac, head=customer.trail_head
    )
