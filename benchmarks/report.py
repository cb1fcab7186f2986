"""docs/performance.md and docs/growth.svg, written out of one run's figures. What was found is told as it is: met, or not and why."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.meter import Result

HEAD = """# How fast it is

Written by `make bench`; not by hand. `make bench ARGS=--small` fits a build server, `ARGS=--huge` has a million customers.

**Read the ratios, not the figures.** Everybody ran in the same run on the same machine, in an order that chance decided anew in each
round; a line is the median of {rounds} rounds. CPU is the processor time of every process that worked on an operation: the database's,
the web server's, the caller's own. A difference under 15 % is noise.

{machine}
"""


@dataclass
class Page:
    head: str
    parts: list[str] = field(default_factory=list)

    def section(self, title: str, *texts: str) -> None:
        self.parts.append("\n".join([f"## {title}", "", *texts]))

    def text(self) -> str:
        return "\n".join([self.head, *self.parts]).rstrip() + "\n"


def table(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def us(result: Result | None) -> str:
    return f"{result.cpu_us:,.0f}" if result else "-"


def ratio(one: Result | None, other: Result | None) -> float:
    return one.cpu_us / other.cpu_us if one and other else math.nan


def plain(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"


def times(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:,.2f}x" if value < 100 else f"{value:,.0f}x"


def compared(results: Mapping[str, Result], limit: str, skipped: Mapping[str, str]) -> str:
    """Each contestant's CPU and waits, beside the limit's."""
    if not results:
        return "Not measured in this run.\n"
    least = results.get(limit)
    rows: list[Sequence[object]] = [
        (
            name, us(one), times(ratio(one, least)), plain(one.wait(0.5)), plain(one.wait(0.99)), f"{one.rate:,.0f}",
        )
        for name, one in sorted(results.items(), key=lambda item: item[1].cpu_us)
    ]  # fmt: skip
    rows += [(name, f"skipped: {why}", "", "", "", "") for name, why in skipped.items()]
    return table(["", "CPU µs", "CPU beside the limit", "p50 ms", "p99 ms", "a second"], rows)


@dataclass(frozen=True)
class Target:
    what: str
    beside: str
    found: float
    limit: float
    why: str = ""
    """Where the time goes, told when the target is missed."""

    @property
    def met(self) -> bool:
        return self.found <= self.limit

    def row(self) -> Sequence[object]:
        if math.isnan(self.found):
            return self.what, self.beside, f"at most {times(self.limit)}", "not measured in this run", ""
        return (
            self.what,
            self.beside,
            f"at most {times(self.limit)}",
            times(self.found),
            "met" if self.met else f"**missed**: {self.why}",
        )


def plot(series: Mapping[str, Sequence[tuple[float, float]]], *, across: str, up: str) -> str:
    """Lines over a logarithmic axis, as SVG by hand."""
    width, height, left, bottom = 720, 360, 70, 50
    xs = [math.log10(x) for line in series.values() for x, _ in line]
    top = max(y for line in series.values() for _, y in line) * 1.15
    low, high = min(xs), max(xs) if max(xs) > min(xs) else min(xs) + 1

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            left + (math.log10(x) - low) / (high - low) * (width - left - 150),
            height - bottom - y / top * (height - bottom - 20),
        )

    colours = ("#0b57d0", "#b3261e", "#146c2e", "#7d5260")
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for step in range(5):
        value = top * step / 4
        _, y = at(10**low, value)
        out.append(
            f'<path d="M{left} {y:.1f}H{width - 150}" stroke="#ddd"/><text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{value:,.0f}</text>'
        )
    for x in sorted({x for line in series.values() for x, _ in line}):
        place, _ = at(x, 0)
        out.append(f'<text x="{place:.1f}" y="{height - bottom + 18}" text-anchor="middle">{x:,.0f}</text>')
    out.append(f'<text x="{(left + width - 150) / 2}" y="{height - 8}" text-anchor="middle">{across}</text>')
    out.append(
        f'<text x="14" y="{height / 2}" transform="rotate(-90 14 {height / 2})" text-anchor="middle">{up}</text>'
    )
    for (name, line), colour in zip(series.items(), colours, strict=False):
        points = [at(x, y) for x, y in line]
        out.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'
        )
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
        out.append(f'<text x="{points[-1][0] + 8:.1f}" y="{points[-1][1] + 4:.1f}" fill="{colour}">{name}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"
