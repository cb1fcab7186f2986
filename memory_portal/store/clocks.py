"""By when a request made by hand must be acknowledged and answered. In: the law, what is asked, days. Out: days. Pure.

Where the laws leave a choice, the earlier day is taken. Sources: GDPR Art. 12(3) with Regulation 1182/71 Art. 3 (months, and the
working day after a weekend or holiday); CCPA regulations 7021 and 7026(f); DPA 2018 s. 164A (UK complaints) and UK GDPR Art. 12A
(the clock stands still while the person is asked what they mean). An engineer's reading, no advice. Imports enums only.
"""

from __future__ import annotations

import calendar
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from memory_portal.enums import Regime, RequestKind

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Due:
    """The last day for each step; None where the law names none."""

    acknowledge: date | None
    answer: date | None
    extended: date | None
    """To which day an extension leads, told to the person by `answer` at the latest."""


def due(regime: Regime, kind: RequestKind, received: date, holidays: Collection[date] = (), *, paused: int = 0) -> Due:
    """`paused` is for how many days the clock stood still, which is the UK's alone."""
    if regime is Regime.CCPA:
        if kind is RequestKind.OBJECTION:
            return Due(None, business_day(received, 15, holidays), None)
        return Due(business_day(received, 10, holidays), received + 45 * DAY, received + 90 * DAY)
    if regime is Regime.UK and kind is RequestKind.COMPLAINT:
        return Due(received + 29 * DAY, None, None)  # thirty days, of which the day of receipt is the first
    stood = paused * DAY if regime is Regime.UK else timedelta()
    return Due(
        None,
        working_day(months_after(received, 1) + stood, holidays),
        working_day(months_after(received, 3) + stood, holidays),
    )


def months_after(day: date, months: int) -> date:
    """The same date so many months on, or that month's last day where it has no such date. Takes negative months, too."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def works(day: date, holidays: Collection[date]) -> bool:
    return day.weekday() < 5 and day not in holidays


def working_day(day: date, holidays: Collection[date]) -> date:
    """The day itself, or the first working day after it."""
    while not works(day, holidays):
        day += DAY
    return day


def business_day(after: date, number: int, holidays: Collection[date]) -> date:
    """The so many-th working day after a day."""
    day = after
    while number:
        day += DAY
        number -= works(day, holidays)
    return day


def day_of(moment: datetime, zone: tzinfo) -> date:
    """The day it was there."""
    return moment.astimezone(zone).date()


def end_of(day: date, zone: tzinfo) -> datetime:
    """The first instant that is too late, in UTC: a day in local time may have 23 or 25 hours."""
    return datetime.combine(day + DAY, time(), zone).astimezone(UTC)
