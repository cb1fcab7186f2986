"""Webhooks: the feed of changes, brought to a host's door. In: rows of Webhook and the time. Out: signed POSTs, and how they went.

The body is a page of the feed. The row keeps the cursor and moves it only after a 2xx, so that every change arrives at least once
and those of one customer in order; a lease with a fence lets one worker at a time deliver. Waits stand in the row, not in a worker.
Signed as Standard Webhooks say (standardwebhooks.com): HMAC-SHA-256 over id, time and body.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import random
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from uuid import UUID

import orjson
from django.conf import settings
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from agent_bridge import outbound
from agent_bridge.auth import READ, READ_SAFETY, peppers
from agent_bridge.celery import app
from agent_bridge.models import AgentKey, Webhook
from agent_bridge.outbound import Undelivered
from agent_bridge.schemas import ChangesOut
from memory_portal import logs, store

log = logs.get(__name__)

BACKOFF = timedelta(seconds=1)
STUMBLES = 3
"""The first failures in a row are tried again at the next tick: most receivers stumble and do not fall."""
LONGEST_WAIT = timedelta(minutes=15)
JITTER = 0.25
AT_A_TIME = timedelta(seconds=30)
"""A webhook with much to tell makes room for others after this long."""
LEASE = AT_A_TIME + timedelta(seconds=90)
"""Longer than one delivery begun at the last moment may take, name resolution included."""
BELL_LIFE = 15.0

Clock = Callable[[], datetime]
Send = Callable[[str, bytes, Mapping[str, str]], None]


def create(url: str, agent: str, profile: str, *, now: datetime, events: Collection[str] = ()) -> tuple[Webhook, str]:
    """A webhook told of all changes from now on, and its secret, to be shown once. Raises ValueError naming what is wrong."""
    outbound.target(url, loopback=settings.WEBHOOK_LOOPBACK)
    if unknown := sorted(set(events) - set(store.CHANGE_KINDS)):
        raise ValueError(f"events: there is no {unknown[0]}; the kinds are {', '.join(store.CHANGE_KINDS)}")
    if READ not in rights(agent, profile, now):
        raise ValueError(f"agent: no live key of this name and profile has {READ}")
    hook = Webhook.objects.create(
        url=url,
        agent=agent,
        profile=profile,
        events=sorted(set(events)),
        pepper_version=max(peppers(settings.AGENT_KEY_PEPPER)),
        cursor=store.changes(profile, agent, "now", limit=1).next,
        created_at=now,
        next_at=now,
    )
    return hook, secret(hook)


def rights(agent: str, profile: str, now: datetime) -> frozenset[str]:
    """What the agent's live keys may do together: rotating them changes nothing here, revoking the last ends it."""
    keys = AgentKey.objects.filter(name=agent, profile=profile, revoked_at=None, expires_at__gt=now)
    return frozenset(scope for scopes in keys.values_list("scopes", flat=True) for scope in scopes)


# --- signing ----------------------------------------------------------------------------------------------------------


def secret(hook: Webhook) -> str:
    """Derived from the server's secret for keys and the webhook's id. Raises Undelivered where that is gone."""
    pepper = peppers(settings.AGENT_KEY_PEPPER).get(hook.pepper_version)
    if pepper is None:
        raise Undelivered("secret_gone")
    return "whsec_" + base64.b64encode(hmac.digest(pepper, f"webhook {hook.pk}".encode(), "sha256")).decode()


def signed(hook: Webhook, message: str, body: bytes, now: datetime) -> dict[str, str]:
    at = str(int(now.timestamp()))
    key = base64.b64decode(secret(hook).removeprefix("whsec_"))
    proof = base64.b64encode(hmac.digest(key, f"{message}.{at}.".encode() + body, "sha256")).decode()
    return {
        "Content-Type": "application/json",
        "User-Agent": "memory-portal",
        "Webhook-Id": message,
        "Webhook-Timestamp": at,
        "Webhook-Signature": f"v1,{proof}",
    }


def _message(hook: Webhook, until: str) -> str:
    """The same page has the same id, however often it is sent."""
    return "msg_" + hashlib.sha256(f"{hook.pk} {hook.cursor} {until}".encode()).hexdigest()[:32]


# --- delivering -------------------------------------------------------------------------------------------------------


def due(now: datetime) -> QuerySet[Webhook]:
    free = Q(lease_until=None) | Q(lease_until__lte=now)
    return Webhook.objects.filter(free, active=True, parked_at=None, next_at__lte=now).order_by("next_at")


def ring_due(now: datetime) -> int:
    """Tell a worker of each webhook that has something to be told. A broker that is gone costs time only."""
    rung = 0
    for hook in due(now):
        try:
            page = store.changes(hook.profile, hook.agent, hook.cursor, limit=1, kinds=kinds(hook))
            if not page.changes and not page.more:
                continue
        except store.LostCursor:
            pass  # Its delivery says what comes of that.
        try:
            app.send_task("agent_bridge.deliver_webhook", args=[str(hook.pk)], retry=False, expires=BELL_LIFE)
            rung += 1
        except Exception as error:  # every transport has its own
            log.warning("webhook_no_doorbell", webhook=hook.pk, **logs.of_error(error))
    return rung


def deliver_due(*, clock: Clock = timezone.now, send: Send | None = None, dice: random.Random | None = None) -> int:
    """Deliver whatever is due, without any broker; returns how many changes arrived."""
    return sum(deliver(pk, clock=clock, send=send, dice=dice) for pk in list(due(clock()).values_list("pk", flat=True)))


def kinds(hook: Webhook) -> Collection[str]:
    return hook.events or store.CHANGE_KINDS


def post(url: str, body: bytes, headers: Mapping[str, str]) -> None:
    outbound.post(url, body, headers, loopback=settings.WEBHOOK_LOOPBACK)


def deliver(
    hook_id: UUID | str, *, clock: Clock = timezone.now, send: Send | None = None, dice: random.Random | None = None
) -> int:
    """Claim the webhook and tell it page after page, until there is nothing more, it fails, or others' turn has come.

    Returns how many changes arrived; raises nothing about the receiver: what goes wrong is a code in the row.
    """
    start = clock()
    if not due(start).filter(pk=hook_id).order_by().update(lease_until=start + LEASE, fence=F("fence") + 1):
        return 0
    hook = Webhook.objects.get(pk=hook_id)
    told, more = 0, True
    while more and clock() < start + AT_A_TIME:
        scopes = rights(hook.agent, hook.profile, clock())
        try:
            if READ not in scopes:
                raise Undelivered("no_live_key")
            page = _page(hook, scopes)
            if page.changes:
                body = orjson.dumps(ChangesOut.of(page).model_dump())
                (send or post)(hook.url, body, signed(hook, _message(hook, page.next), body, clock()))
        except Undelivered as why:
            _fail(hook, why, clock(), dice or random.Random())  # noqa: S311  # jitter
            return told
        if not _told(hook, page, clock()):
            return told  # Its lease was over, and somebody else goes on.
        told, more = told + len(page.changes), page.more
    _mine(hook).update(lease_until=None)
    return told


def _page(hook: Webhook, scopes: Collection[str]) -> store.Changes:
    hidden = () if READ_SAFETY in scopes else (store.SAFETY,)
    try:
        return store.changes(hook.profile, hook.agent, hook.cursor, kinds=kinds(hook), hidden=hidden)
    except store.LostCursor:  # On a new server: twice is better than not at all.
        log.warning("webhook_starts_anew", webhook=hook.pk)
        return store.changes(hook.profile, hook.agent, "", kinds=kinds(hook), hidden=hidden)


def _mine(hook: Webhook) -> QuerySet[Webhook]:
    return Webhook.objects.filter(pk=hook.pk, fence=hook.fence)


def _told(hook: Webhook, page: store.Changes, now: datetime) -> bool:
    """Move the cursor. Only these fields: `active` and `parked_at` belong to staff meanwhile."""
    hook.cursor = page.next
    moved: dict[str, object] = {"cursor": page.next}
    if page.changes:
        moved |= {
            "failures": 0,
            "failing_since": None,
            "last_code": "",
            "last_delivered_at": now,
            "delivered": F("delivered") + len(page.changes),
        }
        hook.failures, hook.failing_since = 0, None
    return bool(_mine(hook).filter(active=True).update(**moved))


def _fail(hook: Webhook, why: Undelivered, now: datetime, dice: random.Random) -> None:
    since = hook.failing_since or now
    over = why.code == "status_410" or now - since >= timedelta(days=settings.WEBHOOK_DAYS)
    log.info("webhook_failed", webhook=hook.pk, code=why.code, failures=hook.failures + 1)
    _mine(hook).update(
        failures=hook.failures + 1,
        failing_since=since,
        last_code=why.code,
        next_at=now + wait(hook.failures + 1, why.retry_after, dice),
        lease_until=None,
        parked_at=now if over else None,
    )


def wait(failures: int, retry_after: float | None, dice: random.Random) -> timedelta:
    """BACKOFF, doubling after STUMBLES; at least what the receiver asked for, at most LONGEST_WAIT; jitter only adds."""
    own = BACKOFF * float(2 ** min(max(failures - STUMBLES, 0), 20))
    asked = timedelta(seconds=min(retry_after, LONGEST_WAIT.total_seconds())) if retry_after else timedelta()
    return min(max(own, asked) * (1 + JITTER * dice.random()), LONGEST_WAIT)


# --- what staff do ----------------------------------------------------------------------------------------------------


def pause(hook: Webhook) -> None:
    """Told nothing until it is resumed; then it goes on where it was."""
    Webhook.objects.filter(pk=hook.pk).update(active=False)


def resume(hook: Webhook, now: datetime) -> None:
    """Try again at once, paused or given up."""
    Webhook.objects.filter(pk=hook.pk).update(
        active=True, parked_at=None, failing_since=None, failures=0, next_at=now, lease_until=None
    )
