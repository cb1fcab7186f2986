"""The retention sweep: a tenth of all facts reaches its end while customers are read and written to. Beside it one DELETE by hand.

In: the server. Out: how long, at what cost, and what others waited meanwhile.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psycopg

from benchmarks import ground, meter, report
from benchmarks.report import Target

MOST = 10_000
"""Customers whose facts end in one round, at most: where a tenth would be more, the figures are for so many."""

READ = "SELECT key, value FROM {table} WHERE customer_id = %s"
TOUCH = "UPDATE {table} SET updated_at = now() WHERE customer_id = %s AND key = 'fact_3'"
COPY = """
DROP TABLE IF EXISTS bench_purge;
CREATE TABLE bench_purge (LIKE memory_portal_memoryfact INCLUDING ALL);
INSERT INTO bench_purge SELECT * FROM memory_portal_memoryfact;
"""


@dataclass
class Purged:
    targets: Sequence[Target]
    text: str


SWEEP = """
import json, sys, time
import django
django.setup()
from django.db import connection
from django.utils import timezone
from benchmarks import meter
from memory_portal import store
connection.ensure_connection()
pids = [connection.connection.info.backend_pid]
print("ready", flush=True)
sys.stdin.readline()
cpu, own = meter.seconds(pids), time.process_time()
facts = store.sweep(now=timezone.now())["facts"]
print(json.dumps([facts, meter.seconds(pids) - cpu + time.process_time() - own]), flush=True)
"""


class Sweeper:
    """A process of its own, as in life: who reads and writes meanwhile waits for locks, not for its Python."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", SWEEP],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ground.ROOT,
        )
        self.heard()

    def heard(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def sweep(self) -> tuple[int, float]:
        """How many facts went, and at how many seconds of processor time, the database's included."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        facts, cpu = json.loads(self.heard())
        self.process.wait()
        return facts, cpu


class Others:
    """A reader and a writer, each on a connection of its own, until told to stop."""

    def __init__(self, url: str, table: str, ids: Sequence[int]) -> None:
        self.over, self.waits = threading.Event(), {"read": [], "write": []}  # type: ignore[var-annotated]
        self.threads = [
            threading.Thread(target=self.run, args=(url, name, sql.format(table=table), ids, pause))
            for name, sql, pause in (("read", READ, 0.004), ("write", TOUCH, 0.01))
        ]
        for thread in self.threads:
            thread.start()

    def run(self, url: str, name: str, sql: str, ids: Sequence[int], pause: float) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.prepare_threshold = 1
            number = 0
            while not self.over.wait(pause):
                number = (number * 7919 + 13) % len(ids)
                began = time.perf_counter()
                connection.execute(sql, [ids[number]])
                self.waits[name].append(time.perf_counter() - began)

    def stop(self) -> dict[str, list[float]]:
        self.over.set()
        for thread in self.threads:
            thread.join()
        return self.waits


def p99(waits: Sequence[float]) -> float:
    return sorted(waits)[int(len(waits) * 0.99)] * 1e3 if waits else 0.0


def measured(server: ground.Server, customers: int, rounds: int) -> Purged:
    rows = []
    figures: dict[str, list[tuple[float, float, float, float, float, float]]] = {"ours": [], "one DELETE": []}
    with psycopg.connect(server.url, autocommit=True) as connection:
        pick = "SELECT id FROM memory_portal_customer WHERE profile = %s AND subject_id LIKE 'c%%' ORDER BY random() LIMIT 3000"
        ids = [row[0] for row in connection.execute(pick, [ground.PROFILE])]
        least = connection.execute(
            "SELECT min(id) FROM memory_portal_customer WHERE profile = %s", [ground.PROFILE]
        ).fetchone()
        many = min(customers // 10, MOST)
        for number in range(rounds):
            theirs = [least[0] + number + 10 * place for place in range(many)] if least else []
            tenth = "UPDATE {} SET expires_at = now() - interval '1 second' WHERE customer_id = ANY(%s) AND state = 'active'"
            for statement in COPY.split(";")[:-1]:
                connection.execute(statement)
            connection.execute(tenth.format("bench_purge"), [theirs])
            connection.execute("VACUUM (ANALYZE) bench_purge")

            def remove() -> tuple[int, float]:
                pids, own = [connection.info.backend_pid], time.thread_time()
                cpu = meter.seconds(pids)
                facts = connection.execute("DELETE FROM bench_purge WHERE expires_at <= now()").rowcount
                return facts, meter.seconds(pids) - cpu + time.thread_time() - own

            figures["one DELETE"].append(watched(server, "bench_purge", ids, remove))
            due = connection.execute(tenth.format("memory_portal_memoryfact"), [theirs]).rowcount
            connection.execute("VACUUM (ANALYZE) memory_portal_memoryfact")
            figures["ours"].append(watched(server, "memory_portal_memoryfact", ids, Sweeper().sweep))
            print(
                f"purge {number}: {due:,} due, ours {figures['ours'][-1][0]:.1f} s, one DELETE {figures['one DELETE'][-1][0]:.1f} s",
                flush=True,
            )
        connection.execute("DROP TABLE bench_purge")
    middle = {
        name: [statistics.median(column) for column in zip(*found, strict=True)] for name, found in figures.items()
    }
    for name, (seconds, cpu, facts, before, reads, longest) in middle.items():
        rows.append(
            (
                name,
                f"{facts:,.0f}",
                f"{seconds:.1f}",
                f"{cpu / max(facts, 1) * 1e6:,.0f}",
                f"{before:.1f}",
                f"{reads:.1f}",
                f"{longest:.1f}",
            )
        )
    mine, one = middle["ours"], middle["one DELETE"]
    why = "ours erases revisions, questions and waiting texts too, tells each customer's list and its agents, customer by customer"
    targets = [
        Target(
            "a tenth of all facts ends: a write's longest wait",
            "one DELETE",
            mine[5] / one[5],
            0.1,
            "a commit takes as long as the disk and the sweep's own commits let it",
        ),
        Target(
            "the same: reads' p99 meanwhile",
            "before",
            mine[4] / max(mine[3], 0.001),
            3.0,
            "two cores are shared with the sweep",
        ),
        Target("the same: CPU a fact", "one DELETE", (mine[1] / mine[2]) / (one[1] / one[2]), 1.3, why),
    ]
    names = [
        "",
        "facts",
        "seconds",
        "CPU µs a fact",
        "reads' p99 ms before",
        "and meanwhile",
        "a write's longest wait ms",
    ]
    text = report.table(names, rows) + (
        f"\nAll facts of {many:,} customers, of {customers:,}. The sweep goes customer by customer, each a short transaction under that customer's own lock, with an event for the customer and "
        "the change feed; it may die anywhere and be called again. One DELETE is the least a database can do, and tells nobody.\n"
    )
    return Purged(targets, text)


def watched(
    server: ground.Server, table: str, ids: Sequence[int], act: Callable[[], tuple[int, float]]
) -> tuple[float, float, float, float, float, float]:
    quiet = Others(server.url, table, ids)
    time.sleep(3)
    before = quiet.stop()
    others = Others(server.url, table, ids)
    began = time.perf_counter()
    facts, spent = act()
    seconds = time.perf_counter() - began
    waits = others.stop()
    return seconds, spent, facts, p99(before["read"]), p99(waits["read"]), max(waits["write"], default=0.0) * 1e3
