"""What an operation costs: processor time of every process that works on it, then the time its caller waits.

Processor time is read from the kernel in nanoseconds (/proc), for whole trees of processes; Linux only. It is the steadiest figure on
a machine that does something else as well, though no figure of one run may be compared with another run's.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


def children(pid: int) -> list[int]:
    found = []
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(child) for child in tasks.read_text().split()]
        except OSError:
            continue
    return found


def tree(pid: int) -> list[int]:
    return [pid, *(below for child in children(pid) for below in tree(child))]


def seconds(pids: Iterable[int]) -> float:
    """Processor time of these processes and all below them, every thread of theirs. Of one that ended, nothing."""
    total = 0
    for pid in {member for root in pids for member in tree(root)}:
        for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            try:
                total += int(thread.read_text().split()[0])
            except (OSError, IndexError):
                continue
    return total / 1e9


def memory(pids: Iterable[int]) -> int:
    """Bytes of these trees that nobody shares (Pss), which adds up however processes were forked."""
    total = 0
    for pid in {member for root in pids for member in tree(root)}:
        try:
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
        except OSError:
            continue
    return total


@dataclass(frozen=True)
class Took:
    """One round of one contestant."""

    operations: int
    elapsed: float
    cpu: float
    waits: Sequence[float]
    """Seconds each caller waited, a sample."""

    @property
    def cpu_us(self) -> float:
        return self.cpu / self.operations * 1e6

    @property
    def rate(self) -> float:
        return self.operations / self.elapsed

    def percentile(self, part: float) -> float:
        """In milliseconds."""
        ordered = sorted(self.waits)
        if not ordered:
            return math.nan
        return ordered[min(len(ordered) - 1, int(part * len(ordered)))] * 1e3


@dataclass(frozen=True)
class Result:
    """The medians of all rounds."""

    name: str
    rounds: Sequence[Took]

    def _median(self, figures: Iterable[float]) -> float:
        return statistics.median(figures)

    @property
    def cpu_us(self) -> float:
        return self._median(took.cpu_us for took in self.rounds)

    @property
    def rate(self) -> float:
        return self._median(took.rate for took in self.rounds)

    def wait(self, part: float) -> float:
        return self._median(took.percentile(part) for took in self.rounds)
