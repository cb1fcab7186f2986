"""The legal clock of requests by hand, against a second calculation that walks the calendar day by day."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from memory_portal.enums import Regime, RequestKind
from memory_portal.store.clocks import business_day, day_of, due, end_of, months_after
from tests.figures import Figure

DAY = timedelta(days=1)
HOLIDAYS = frozenset(
    date(year, month, day)
    for year in range(2023, 2031)
    for month, day in ((1, 1), (1, 2), (5, 1), (5, 26), (7, 4), (12, 24), (12, 25), (12, 26), (12, 28), (12, 31))
)


# --- the second calculation: no months_after, no weekday arithmetic, no zone database ---------------------------------


def last_sunday(year: int, month: int) -> int:
    return max(day for day in range(25, 32) if date(year, month, day).isoweekday() == 7)


def nth_sunday(year: int, month: int, n: int) -> int:
    return [day for day in range(1, 22) if date(year, month, day).isoweekday() == 7][n - 1]


def hours_ahead(moment: datetime, place: str) -> int:
    """Of UTC, by the rules as the law has them."""
    year = moment.year
    if place == "America/New_York":
        summer = datetime(year, 3, nth_sunday(year, 3, 2), 7, tzinfo=UTC)
        winter = datetime(year, 11, nth_sunday(year, 11, 1), 6, tzinfo=UTC)
        return -4 if summer <= moment < winter else -5
    summer = datetime(year, 3, last_sunday(year, 3), 1, tzinfo=UTC)
    winter = datetime(year, 10, last_sunday(year, 10), 1, tzinfo=UTC)
    return (1 if place == "Europe/Berlin" else 0) + (1 if summer <= moment < winter else 0)


def local_day(moment: datetime, place: str) -> date:
    return (moment + timedelta(hours=hours_ahead(moment, place))).date()


def free(day: date) -> bool:
    return day.strftime("%a") in ("Sat", "Sun") or day in HOLIDAYS


def walked_months(start: date, months: int) -> date:
    """Walk until that many firsts of a month are passed, then on to the date, or stop before the next first."""
    day, firsts = start, 0
    while firsts < months:
        day += DAY
        firsts += day.day == 1
    while day.day < start.day and (day + DAY).day != 1:
        day += DAY
    return day


def by_hand(
    regime: Regime, kind: RequestKind, received: date, paused: int
) -> tuple[date | None, date | None, date | None]:
    if regime is Regime.CCPA:
        worked, day, seen = [], received, 0
        while len(worked) < 15:
            day += DAY
            seen += 1
            if not free(day):
                worked.append(day)
        if kind is RequestKind.OBJECTION:
            return None, worked[14], None
        return worked[9], date.fromordinal(received.toordinal() + 45), date.fromordinal(received.toordinal() + 90)
    if regime is Regime.UK and kind is RequestKind.COMPLAINT:
        thirty = [date.fromordinal(received.toordinal() + n) for n in range(30)]
        return thirty[-1], None, None
    ends = []
    for months in (1, 3):
        day = date.fromordinal(walked_months(received, months).toordinal() + (paused if regime is Regime.UK else 0))
        while free(day):
            day += DAY
        ends.append(day)
    return None, ends[0], ends[1]


def cases() -> list[tuple[Regime, RequestKind, datetime, str, int]]:
    """Month ends, leap days, the nights of the clock change, holidays, and any day; each at an hour near midnight."""
    dice = random.Random(20261130)
    hard = [
        *(date(year, month, day) for year in (2024, 2027, 2028) for month in (1, 3, 5, 8, 10, 12) for day in (29, 30, 31)),
        *(date(year, 2, day) for year in (2024, 2028) for day in (27, 28, 29)),
        *(date(2027, 2, day) for day in (27, 28)),
        *(date(2026, 3, day) for day in (7, 8, 28, 29)), *(date(2026, 10, day) for day in (24, 25)), date(2026, 11, 1),
        *(date(2026, 12, day) for day in range(1, 32)), *(date(2026, 11, day) for day in (24, 25, 26, 28)),
    ]  # fmt: skip
    days = hard + [date(2024, 1, 1) + dice.randrange(1600) * DAY for _ in range(400 - len(hard))]
    places = ("Europe/Berlin", "Europe/London", "America/New_York")
    found = []
    for day in days:
        hour, minute = dice.choice((0, 1, 4, 5, 12, 21, 22, 23)), dice.choice((0, 1, 30, 59))
        moment = datetime(day.year, day.month, day.day, hour, minute, tzinfo=UTC)
        kind, regime = dice.choice(list(RequestKind)), dice.choice(list(Regime))
        found.append((regime, kind, moment, dice.choice(places), dice.choice((0, 0, 1, 3, 17))))
    return found


def test_four_hundred_dates_agree_with_a_walk_through_the_calendar(figure: Figure) -> None:
    wrong = []
    for regime, kind, moment, place, paused in cases():
        received = day_of(moment, ZoneInfo(place))
        found = due(regime, kind, received, HOLIDAYS, paused=paused)
        expected = by_hand(regime, kind, local_day(moment, place), paused)
        if (found.acknowledge, found.answer, found.extended) != expected:
            wrong.append((regime, kind, moment, place, paused, found, expected))
    assert wrong == []
    figure(
        "R11",
        f"{len(cases())} generated dates (month ends, leap days, DST, holidays, pauses) against a day-by-day walk: 0 wrong",
    )


@pytest.mark.parametrize(
    ("received", "months", "ends"),
    [
        (date(2027, 1, 31), 1, date(2027, 2, 28)),
        (date(2028, 1, 31), 1, date(2028, 2, 29)),
        (date(2026, 11, 30), 3, date(2027, 2, 28)),
        (date(2026, 12, 5), 1, date(2027, 1, 5)),
        (date(2026, 8, 31), 1, date(2026, 9, 30)),
        (date(2026, 3, 31), -24, date(2024, 3, 31)),
        (date(2026, 2, 28), -1, date(2026, 1, 28)),
    ],
)
def test_a_month_ends_on_the_same_date_or_on_the_last_day_there_is(received: date, months: int, ends: date) -> None:
    assert months_after(received, months) == ends


def test_a_month_that_ends_on_a_free_day_goes_on_to_the_next_working_day() -> None:
    found = due(Regime.GDPR, RequestKind.ACCESS, date(2026, 11, 25), {date(2026, 12, 25), date(2026, 12, 28)})
    assert found.answer == date(2026, 12, 29), "a holiday, the weekend, a holiday"
    assert found.extended == date(2027, 2, 25)
    assert found.acknowledge is None


def test_california_counts_business_days_to_acknowledge_and_plain_days_to_answer() -> None:
    found = due(Regime.CCPA, RequestKind.ERASURE, date(2026, 11, 20), {date(2026, 11, 26), date(2026, 11, 27)})
    assert found.acknowledge == date(2026, 12, 8)
    assert (found.answer, found.extended) == (date(2027, 1, 4), date(2027, 2, 18))
    assert due(Regime.CCPA, RequestKind.OBJECTION, date(2026, 11, 2)).answer == date(2026, 11, 23)
    assert business_day(date(2026, 11, 27), 1, ()) == date(2026, 11, 30)


def test_the_day_a_complaint_comes_in_is_the_first_of_thirty_in_the_uk() -> None:
    found = due(Regime.UK, RequestKind.COMPLAINT, date(2026, 6, 19))
    assert (found.acknowledge, found.answer, found.extended) == (date(2026, 7, 18), None, None)


def test_only_the_uk_s_clock_stands_still() -> None:
    days = {regime: due(regime, RequestKind.ACCESS, date(2026, 6, 1), paused=3).answer for regime in Regime}
    assert days == {Regime.GDPR: date(2026, 7, 1), Regime.UK: date(2026, 7, 6), Regime.CCPA: date(2026, 7, 16)}


def test_a_day_ends_at_its_own_midnight_whatever_the_clocks_do() -> None:
    berlin, havana = ZoneInfo("Europe/Berlin"), ZoneInfo("America/Havana")
    assert end_of(date(2026, 3, 29), berlin) == datetime(2026, 3, 29, 22, tzinfo=UTC), "23 hours"
    assert end_of(date(2026, 10, 25), berlin) == datetime(2026, 10, 25, 23, tzinfo=UTC), "25 hours"
    assert end_of(date(2026, 10, 31), havana) == datetime(2026, 11, 1, 4, tzinfo=UTC), "the first of two midnights"
    assert day_of(datetime(2026, 6, 30, 22, 30, tzinfo=UTC), berlin) == date(2026, 7, 1)
