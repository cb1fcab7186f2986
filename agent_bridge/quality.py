"""How reading goes, day by day: what was learned, suggested and refused, by extractor and prompt, and what it cost.

In: the time. Out: rows of figures. Looks at job rows' counts only, at no more than so many of each day: a million are no slower.
Imports models and the days of spending.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

from agent_bridge import spend
from agent_bridge.extraction import explicit
from agent_bridge.models import DaySpend, ExtractionJob, JobState

DAYS = 14
SAMPLE = 2_000
"""Conversations looked at in a day: the latest ones."""


@dataclass(slots=True)
class Figures:
    """One day of one extractor with one prompt."""

    day: date
    extractor: str
    prompt_version: str
    conversations: int = 0
    parked: int = 0
    cost: Decimal = Decimal()
    learned: int = 0
    proposed: int = 0
    refused: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    """How often each reason for a refusal, or for a suggestion, was given."""

    @property
    def offline(self) -> bool:
        return self.extractor == explicit.NAME

    @property
    def claims(self) -> int:
        return self.learned + self.proposed + self.refused

    def rate(self, number: int) -> float:
        return number / self.claims if self.claims else 0.0

    @property
    def rates(self) -> list[tuple[str, float]]:
        return [(name, self.rate(getattr(self, name))) for name in ("learned", "proposed", "refused")]

    @property
    def most_common(self) -> list[tuple[str, int]]:
        return self.reasons.most_common()

    @property
    def per_thousand(self) -> Decimal:
        return 1_000 * self.cost / self.conversations if self.conversations else Decimal()


@dataclass(frozen=True, slots=True)
class Quality:
    rows: list[Figures]
    sampled: bool
    """Whether a day had more conversations than are looked at."""
    tokens: list[tuple[date, int]]
    """All tokens of a day, spent and reserved."""


LEARNED = ("learned", "updated", "renewed", "forgotten")


def quality(now: datetime) -> Quality:
    """The last days, today first."""
    today = spend.day_of(now)
    days = [today - timedelta(days=back) for back in range(DAYS)]
    rows: list[Figures] = []
    sampled = False
    for day in days:
        found, full = _day(day)
        rows += found
        sampled = sampled or full
    totals = DaySpend.objects.filter(customer=None, day__gte=days[-1]).order_by("-day")
    return Quality(rows, sampled, list(totals.values_list("day", "tokens")))


def _day(day: date) -> tuple[list[Figures], bool]:
    start = datetime.combine(day, time(), UTC)
    ended = ExtractionJob.objects.filter(
        finished_at__gte=start, finished_at__lt=start + timedelta(days=1), state__in=(JobState.DONE, JobState.PARKED)
    )
    looked_at = list(
        ended.order_by("-finished_at").values_list("extractor", "prompt_version", "state", "cost", "counts")[:SAMPLE]
    )
    rows: dict[tuple[str, str], Figures] = {}
    for extractor, version, state, cost, counts in looked_at:
        if not extractor:
            continue  # There was nothing to read.
        row = rows.setdefault((extractor, version), Figures(day, extractor, version))
        row.conversations += 1
        row.parked += state == JobState.PARKED
        row.cost += cost
        _count(row, counts)
    return sorted(rows.values(), key=lambda row: (row.extractor, row.prompt_version)), len(looked_at) == SAMPLE


def _count(row: Figures, counts: dict[str, int]) -> None:
    for code, number in counts.items():
        decision, _, reason = code.partition("/")
        if decision in LEARNED:
            row.learned += number
        elif decision == "proposed":
            row.proposed += number
        elif decision == "refused":
            row.refused += number
        if reason:
            row.reasons[code] += number
