"""What reading costs, and where it stops: tokens by UTC day, for each customer and for everybody.

In: token counts, a time. Out: money, or the code of the cap that is reached. A job reserves before it asks and is settled after, so
that any number of workers together spend no more than the cap and the one job that reached it. Imports models and settings.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

from django.conf import settings
from django.db import transaction
from django.db.models import F

from agent_bridge.models import DaySpend

CUSTOMER_SPENT, DAY_SPENT = "customer_day_spent", "day_spent"
MILLION = 1_000_000
BATCH_DISCOUNT = Decimal("0.5")
"""What a token costs when it is asked for through the Message Batches API."""
KEEP_DAYS = 2
"""Days for which a customer's own row is of any use."""


def cost(input_tokens: int, output_tokens: int, *, batched: bool = False) -> Decimal:
    """In the currency of the two prices, which are per million tokens."""
    full = input_tokens * Decimal(str(settings.EXTRACTION_PRICE_IN)) + output_tokens * Decimal(
        str(settings.EXTRACTION_PRICE_OUT)
    )
    return full / MILLION * (BATCH_DISCOUNT if batched else 1)


def day_of(now: datetime) -> date:
    return now.astimezone(UTC).date()


def next_day(now: datetime) -> datetime:
    return datetime.combine(day_of(now) + timedelta(days=1), time(), UTC)


class _CapReached(Exception):
    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def reserve(customer_id: int, tokens: int, now: datetime) -> str:
    """Count the tokens as spent before they are. Returns "", or the code of a cap reached already, with nothing counted.

    Whoever dies between this and `settle` leaves the reservation standing: the call may have been paid for.
    """
    if not tokens:
        return ""
    try:
        with transaction.atomic():
            _add(customer_id, tokens, day_of(now), settings.EXTRACTION_CUSTOMER_DAY_TOKENS, CUSTOMER_SPENT)
            # Last, so that the one row everybody writes is locked for as short as can be.
            _add(None, tokens, day_of(now), settings.EXTRACTION_DAY_TOKENS, DAY_SPENT)
    except _CapReached as reached:
        return reached.code
    return ""


def settle(customer_id: int, reserved: int, spent: int, day: date) -> None:
    """Put what was spent in the place of what was reserved on that day."""
    if reserved == spent:
        return
    with transaction.atomic():
        for whose in (customer_id, None):
            DaySpend.objects.filter(day=day, customer=whose).update(tokens=F("tokens") + (spent - reserved))


def _add(customer_id: int | None, tokens: int, day: date, cap: int, code: str) -> None:
    row = DaySpend.objects.filter(day=day, customer=customer_id)
    open_to = row.filter(tokens__lt=cap) if cap else row
    if open_to.update(tokens=F("tokens") + tokens):
        return
    row.get_or_create(defaults={"day": day, "customer_id": customer_id})
    if not open_to.update(tokens=F("tokens") + tokens):
        raise _CapReached(code)


def purge(now: datetime) -> None:
    """Drop customers' rows of days that are over; the days' own totals stay."""
    DaySpend.objects.filter(day__lte=day_of(now) - timedelta(days=KEEP_DAYS)).exclude(customer=None).delete()
