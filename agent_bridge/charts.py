"""Where the bars of the quality page's charts stand. In: figures by day. Out: rectangles in an SVG's own units. Pure.

Colours are classes of the stylesheet: the content security policy lets no style stand in a page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from agent_bridge.quality import Figures

WIDTH, HEIGHT, GAP = 700, 160, 4
KINDS = ("learned", "proposed", "refused")
LINE, LABEL, LONGEST = 22, 190, 380
MOST_REASONS = 12


@dataclass(frozen=True, slots=True)
class Bar:
    x: float
    y: float
    width: float
    height: float
    kind: str
    number: int
    name: str

    @property
    def end(self) -> float:
        """Where the number stands behind a lying bar."""
        return round(self.x + self.width + 6, 1)

    @property
    def text_y(self) -> float:
        return self.y + LINE - 11


@dataclass(frozen=True, slots=True)
class Day:
    day: date
    middle: float
    bars: tuple[Bar, ...]


def days(rows: Sequence[Figures]) -> list[Day]:
    """One column a day, the oldest on the left: what was learned below, then suggested, then refused."""
    sums: dict[date, Counter[str]] = {}
    for row in rows:
        found = sums.setdefault(row.day, Counter())
        for kind in KINDS:
            found[kind] += getattr(row, kind)
    highest = max((sum(found.values()) for found in sums.values()), default=0)
    if not highest:
        return []
    step = WIDTH / len(sums)
    width = min(step - GAP, 60)
    return [_day(day, sums[day], highest, n * step + (step - width) / 2, width) for n, day in enumerate(sorted(sums))]


def _day(day: date, found: Counter[str], highest: int, x: float, width: float) -> Day:
    bars, y = [], float(HEIGHT)
    for kind in KINDS:
        height = HEIGHT * found[kind] / highest
        y -= height
        if height:
            bars.append(Bar(round(x, 1), round(y, 1), round(width, 1), round(height, 1), kind, found[kind], kind))
    return Day(day, round(x + width / 2, 1), tuple(bars))


def reasons(rows: Sequence[Figures]) -> list[Bar]:
    """One line for each reason for a refusal or a suggestion, the most frequent first."""
    total: Counter[str] = Counter()
    for row in rows:
        total.update(row.reasons)
    ranked = total.most_common(MOST_REASONS)
    highest = ranked[0][1] if ranked else 1
    return [
        Bar(LABEL, n * LINE + 4, round(LONGEST * number / highest, 1), LINE - 8, code.partition("/")[0], number, code)
        for n, (code, number) in enumerate(ranked)
    ]
