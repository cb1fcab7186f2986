"""The ledger of requests made by hand, step by step. In: a request's number, a code, the time. Out: the row, changed.

Each step is one locked row and is taken only when it is open; the days come from `clocks`. Kept 24 months after the answer, then
swept. Imports models, desk for the policy, and clocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from memory_portal.enums import Channel, ExtensionReason, Regime, RequestKind, RequestOutcome
from memory_portal.models import Customer, PrivacyRequest, StaffAlert
from memory_portal.store.clocks import Due, day_of, due, end_of, months_after
from memory_portal.store.desk import current_policy
from memory_portal.store.errors import NotFound, WrongMoment

KEPT_MONTHS = 24


def enter(
    kind: RequestKind,
    regime: Regime,
    channel: Channel,
    *,
    received_at: datetime,
    staff_id: int,
    now: datetime,
    customer: Customer | None = None,
) -> PrivacyRequest:
    """Raises WrongMoment for one that is yet to come."""
    if received_at > now:
        raise WrongMoment
    return PrivacyRequest.objects.create(
        kind=kind, regime=regime, channel=channel, received_at=received_at, staff_id=staff_id, customer=customer
    )


def days(row: PrivacyRequest, now: datetime) -> Due:
    """The last days of its steps; while the clock stands still they move on with `now`."""
    zone = timezone.get_default_timezone()
    regime = Regime(row.regime)
    paused = row.paused_days
    if row.asked_back_at:
        paused += (day_of(now, zone) - day_of(row.asked_back_at, zone)).days
    return due(
        regime,
        RequestKind(row.kind),
        day_of(row.received_at, zone),
        current_policy().requests.holidays_of(regime),
        paused=paused,
    )


def is_late(row: PrivacyRequest, now: datetime) -> bool:
    """Whether a day was missed: to acknowledge, to answer, or to answer after the extension."""
    zone, found = timezone.get_default_timezone(), days(row, now)
    last = found.extended if row.extended_at else found.answer
    unanswered = last is not None and (row.answered_at or now) >= end_of(last, zone)
    unheard = found.acknowledge is not None and (row.acknowledged_at or now) >= end_of(found.acknowledge, zone)
    return unanswered or unheard


@contextmanager
def _open(request_id: int) -> Iterator[PrivacyRequest]:
    with transaction.atomic():
        row = PrivacyRequest.objects.select_for_update().filter(pk=request_id).first()
        if row is None:
            raise NotFound
        if row.answered_at:
            raise WrongMoment
        yield row


def acknowledge(request_id: int, *, now: datetime) -> PrivacyRequest:
    with _open(request_id) as row:
        if row.acknowledged_at:
            raise WrongMoment
        row.acknowledged_at = now
        row.save(update_fields=["acknowledged_at"])
        return row


def ask_back(request_id: int, *, now: datetime) -> PrivacyRequest:
    """The clock stands still from here, where the law lets it: in the UK, and not for a complaint."""
    with _open(request_id) as row:
        if row.asked_back_at or row.regime != Regime.UK or row.kind == RequestKind.COMPLAINT:
            raise WrongMoment
        row.asked_back_at = now
        row.save(update_fields=["asked_back_at"])
        return row


def hear_back(request_id: int, *, now: datetime) -> PrivacyRequest:
    with _open(request_id) as row:
        if row.asked_back_at is None:
            raise WrongMoment
        zone = timezone.get_default_timezone()
        row.paused_days += (day_of(now, zone) - day_of(row.asked_back_at, zone)).days
        row.asked_back_at = None
        row.save(update_fields=["asked_back_at", "paused_days"])
        return row


def extend(request_id: int, reason: ExtensionReason, *, now: datetime) -> PrivacyRequest:
    """The person was told that it takes longer, and why: within the first time only, and once."""
    with _open(request_id) as row:
        found = days(row, now)
        over = found.answer is None or now >= end_of(found.answer, timezone.get_default_timezone())
        if row.extended_at or found.extended is None or over:
            raise WrongMoment
        row.extended_at, row.extension_reason = now, reason
        row.save(update_fields=["extended_at", "extension_reason"])
        return row


def answer(request_id: int, outcome: RequestOutcome, *, now: datetime) -> PrivacyRequest:
    with _open(request_id) as row:
        if row.asked_back_at:  # Answered without waiting any longer: the days until now stood still all the same.
            zone = timezone.get_default_timezone()
            row.paused_days += (day_of(now, zone) - day_of(row.asked_back_at, zone)).days
            row.asked_back_at = None
        row.answered_at, row.outcome = now, outcome
        row.save(update_fields=["answered_at", "outcome", "asked_back_at", "paused_days"])
        return row


def sweep_requests(*, now: datetime) -> dict[str, int]:
    """Erase what was answered, and alarms that were raised, so many months ago by the calendar. Returns how many."""
    zone = timezone.get_default_timezone()
    over = end_of(months_after(day_of(now, zone), -KEPT_MONTHS), zone)
    requests, _ = PrivacyRequest.objects.filter(answered_at__lt=over).delete()
    alarms, _ = StaffAlert.objects.filter(at__lt=over).delete()
    return {"requests": requests, "alarms": alarms}
