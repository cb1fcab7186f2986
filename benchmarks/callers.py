"""Workers as the runner sees them: started once, then asked for rounds in an order that chance decides.

In: contestants by name. Out: Results, one contestant's callers at a time, with the database's processor time added to theirs.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import meter
from benchmarks.ground import ROOT, VAR


@dataclass
class Contestant:
    """`place` is module:name for the worker; `weight` what part of a round's operations it does, for those that are slow."""

    name: str
    place: str
    weight: float = 1.0
    python: str = sys.executable
    more: Mapping[str, Any] = field(default_factory=dict)
    clients: int = 1
    skipped: str = ""
    _workers: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, settings: Mapping[str, Any]) -> None:
        environment = {**os.environ, "DATABASE_URL": settings["url"], "PYTHONPATH": str(ROOT), "LOG_LEVEL": "ERROR"}
        words = [
            self.python,
            "-W",
            "ignore",
            "-m",
            "benchmarks.worker",
            self.place,
            json.dumps({**settings, **self.more}),
        ]
        if not Path(self.python).exists():
            self.skipped = "its environment could not be installed"
            return
        log = (VAR / "callers.log").open("a")
        for _ in range(self.clients):
            self._workers.append(
                subprocess.Popen(
                    words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT,
                    stderr=log,
                )
            )  # fmt: skip
        for worker in self._workers:
            told = self._hear(worker)
            self.skipped = told.get("skipped", "") or self.skipped

    def _hear(self, worker: subprocess.Popen[str]) -> dict[str, Any]:
        assert worker.stdout is not None
        line = worker.stdout.readline()
        return json.loads(line) if line else {"skipped": "it ended by itself"}

    def round(self, n: int, seed: int, server: Sequence[int]) -> meter.Took:
        each = max(2, int(n * self.weight) // self.clients)
        before, began = meter.seconds(server), time.perf_counter()
        for place, worker in enumerate(self._workers):
            assert worker.stdin is not None
            worker.stdin.write(json.dumps({"n": each, "seed": seed * 100 + place}) + "\n")
            worker.stdin.flush()
        told = [self._hear(worker) for worker in self._workers]
        elapsed, database = time.perf_counter() - began, meter.seconds(server) - before
        if any("skipped" in one for one in told):
            raise RuntimeError(f"{self.name} ended in the middle of a round")
        waits = [wait for one in told for wait in one["waits"]]
        return meter.Took(each * self.clients, elapsed, database + sum(one["cpu"] for one in told), waits)

    def stop(self) -> None:
        for worker in self._workers:
            assert worker.stdin is not None
            worker.stdin.close()
            worker.wait(30)
        self._workers.clear()


def compare(
    contestants: Sequence[Contestant],
    settings: Mapping[str, Any],
    *,
    rounds: int,
    n: int,
    server: Sequence[int],
    seed: int = 1,
) -> dict[str, meter.Result]:
    """All contestants, in a new order each round; the first round warms up and is not counted."""
    dice, took = random.Random(seed), {one.name: [] for one in contestants}  # type: ignore[var-annotated]
    try:
        for one in contestants:
            one.start(settings)
        there = [one for one in contestants if not one.skipped]
        for number in range(rounds + 1):
            dice.shuffle(there)
            for one in there:
                found = one.round(n if number else max(20, n // 10), seed * 1000 + number, server)
                if number:
                    took[one.name].append(found)
    finally:
        for one in contestants:
            one.stop()
    return {name: meter.Result(name, found) for name, found in took.items() if found}
