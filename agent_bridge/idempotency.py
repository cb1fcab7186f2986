"""A write with an Idempotency-Key takes effect once, however often it is sent. In: the write. Out: its answer, or a later one.

The row holds a MAC of the request, the status and which thing it made, never a body, and is committed with the effect
itself: either both are there or neither. A repeated request is answered from what is there now.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import salted_hmac

from agent_bridge.models import AgentKey, IdempotencyKey
from agent_bridge.problems import Problem, invalid

KEPT = timedelta(hours=24)
LENGTH = 128


@dataclass(frozen=True, slots=True)
class Written:
    """What a write came to: the answer to send, and for a repetition its status and the name of what it made."""

    response: HttpResponse
    resource: str = ""


def once(
    request: HttpRequest,
    key: AgentKey,
    write: Callable[[], Written],
    again: Callable[[int, str], HttpResponse],
    *,
    now: datetime,
) -> HttpResponse:
    """`write()`, or for a request that was done already `again(status, resource)`. Without the header, `write()`."""
    name = request.headers.get("Idempotency-Key")
    if name is None:
        return write().response
    if not re.fullmatch(rf"[\x21-\x7e]{{1,{LENGTH}}}", name):
        raise invalid("Idempotency-Key", "bad_key", f"takes 1 to {LENGTH} printable ASCII signs", limit=LENGTH)
    mac, *former = _macs(request)
    with transaction.atomic():
        if not _alone(key, name):
            raise Problem("idempotency_in_flight", headers={"Retry-After": "1"})
        done = IdempotencyKey.objects.filter(agent_key=key, key=name).first()
        if done is not None and done.created_at <= now - KEPT:
            done.delete()
            done = None
        if done is None:
            written = write()
            IdempotencyKey.objects.create(
                agent_key=key,
                key=name,
                request_mac=mac,
                status=written.response.status_code,
                resource=written.resource,
                created_at=now,
            )
            return written.response
    if not any(hmac.compare_digest(done.request_mac, known) for known in (mac, *former)):
        raise Problem("idempotency_mismatch")
    response = again(done.status or 200, done.resource)
    response["Idempotency-Replayed"] = "true"
    return response


def _macs(request: HttpRequest) -> list[str]:
    """Under today's SECRET_KEY, which is written, and under former ones, which recognise what was done in their days."""
    text = b"\0".join((str(request.method).encode(), request.get_full_path().encode(), request.body))
    secrets = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return [
        salted_hmac("agent_bridge.idempotency", text, secret=secret, algorithm="sha256").hexdigest()
        for secret in secrets
    ]


def _alone(key: AgentKey, name: str) -> bool:
    """Whether nobody else works on this request. The lock is gone with the transaction, however that ends."""
    number = hashlib.sha256(f"agent_bridge.idempotency {key.pk} {name}".encode()).digest()[
        :8
    ]  # the same under every secret
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [int.from_bytes(number, signed=True)])
        return bool(cursor.fetchone()[0])


def purge(*, now: datetime) -> int:
    """Forget what was done more than a day ago. For the sweeper; returns how many rows."""
    return IdempotencyKey.objects.filter(created_at__lte=now - KEPT).delete()[0]
