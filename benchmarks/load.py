"""Minutes of mixed traffic at a part of what the site can take, and everything that may die dies meanwhile: `python -m benchmarks.load`.

In: how long. Out: on the terminal and in var/bench/load.json: wrong answers, lost conversations, waits, and the memory of web and worker
over time. The web server, the worker and PostgreSQL are the product's own processes; a web process and a worker are killed with -9,
PostgreSQL is restarted, and a whole retention sweep runs inside. A caller does as a host does: what fails it sends again.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import ground, meter, web

CALLERS = 6
PATIENCE = 30.0
"""Seconds for which a caller repeats what fails."""
OWN = 200
"""Customers of each caller alone, whom it writes to: so it knows what must be read."""
MIX = (("read", 80), ("read_for", 6), ("write", 6), ("turns", 8))


@dataclass
class Seen:
    """What one caller found."""

    waits: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name, _ in MIX})
    wrong: list[str] = field(default_factory=list)
    again: Counter[str] = field(default_factory=Counter)
    handed_over: set[str] = field(default_factory=set)
    given_up: int = 0


class Caller(threading.Thread):
    def __init__(self, number: int, port: int, key: str, customers: int, pace: float, over: threading.Event) -> None:
        super().__init__()
        self.number, self.port, self.customers, self.pace, self.over = number, port, customers, pace, over
        self.headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self.dice, self.seen = random.Random(number), Seen()
        self.line: http.client.HTTPConnection | None = None
        self.written: dict[int, int] = {}
        self.turn = 0

    def run(self) -> None:
        kinds, weights = zip(*MIX, strict=True)
        due = time.perf_counter() + self.dice.random() * self.pace
        while not self.over.is_set():
            self.over.wait(max(0.0, due - time.perf_counter()))
            (kind,) = self.dice.choices(kinds, weights)
            began = max(due, time.perf_counter() - self.pace)  # what waited for its turn has waited
            getattr(self, kind)()
            self.seen.waits[kind].append(time.perf_counter() - began)
            due = max(due + self.pace * 2 * self.dice.random(), time.perf_counter() - 5 * self.pace)

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, dict[str, str], Any]:
        """One request until it is answered well. Raises TimeoutError when that takes too long."""
        deadline, sent = time.monotonic() + PATIENCE, json.dumps(body) if body is not None else None
        while time.monotonic() < deadline:
            try:
                if self.line is None:
                    self.line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
                self.line.request(method, path, sent, {**self.headers, **headers})
                answer = self.line.getresponse()
                told = answer.read()
                if answer.status < 500 and answer.status != 429:
                    return (
                        answer.status,
                        {name.lower(): value for name, value in answer.getheaders()},
                        json.loads(told) if told else None,
                    )
                self.seen.again[str(answer.status)] += 1
            except (OSError, http.client.HTTPException) as error:
                self.seen.again[type(error).__name__] += 1
                if self.line:
                    self.line.close()
                self.line = None
            self.over.wait(0.05) or time.sleep(0.02)
        self.seen.given_up += 1
        raise TimeoutError

    def check(self, good: bool, what: str) -> None:
        if not good:
            self.seen.wrong.append(what)

    # --- what is asked --------------------------------------------------------------------------------------------------

    def read(self) -> None:
        """Somebody's facts: eight, the two rules first, all of them that customer's."""
        number = self.dice.randint(1, self.customers)
        status, _, told = self.ask("GET", f"/bridge/v1/subjects/c{number}/context")
        facts = told.get("always", []) if status == 200 else []
        self.check(status == 200 and len(facts) == 8, f"read {status} {len(facts)}")
        self.check([fact["category"] for fact in facts[:2]] == ["constraint"] * 2, "order")

    def read_for(self) -> None:
        """One's own: what was acknowledged last is what stands there."""
        number = self.dice.randrange(OWN)
        status, _, told = self.ask("POST", f"/bridge/v1/subjects/own{self.number}-{number}/context", {"message": "tea"})
        held = (
            {fact["key"]: fact["value"] for fact in (*told.get("always", ()), *told.get("relevant", ()))}
            if status == 200
            else {}
        )
        wanted = self.written.get(number)
        self.check(status == 200, f"read_for {status}")
        self.check(
            wanted is None or held.get("tea") == f"drinks tea number {wanted}", "an acknowledged write is not read"
        )

    def write(self) -> None:
        number = self.dice.randrange(OWN)
        path = f"/bridge/v1/subjects/own{self.number}-{number}/facts/tea"
        status, headers, _ = self.ask("GET", path)
        match = {"If-Match": headers["etag"]} if status == 200 else {}
        self.turn += 1
        body = {"value": f"drinks tea number {self.turn}", "category": "preference"}
        key = {"Idempotency-Key": f"w-{os.getpid()}-{self.number}-{self.turn}"}
        status, _, told = self.ask("PUT", path, body, **match, **key)
        self.check(status in (200, 201), f"write {status} {told}")
        if status in (200, 201):
            self.written[number] = self.turn

    def turns(self) -> None:
        self.turn += 1
        name = f"{os.getpid()}-{self.number}-{self.turn}"
        body = {
            "session_id": name,
            "messages": [{"role": "user", "content": f"Please remember that I like cake number {self.turn}."}],
        }
        status, _, told = self.ask("POST", f"/bridge/v1/subjects/said{name}/turns", body, **{"Idempotency-Key": name})
        self.check(status == 202, f"turns {status}")
        if status == 202:
            self.seen.handed_over.add(told["job_id"])


class Site:
    """Web, worker and what they run on."""

    def __init__(self, server: ground.Server) -> None:
        self.server, self.port, self.processes = server, ground.free_port(), {}  # type: ignore[var-annotated]
        self.ended: Counter[str] = Counter()
        self.environment = {
            **os.environ, "DATABASE_URL": server.url, "VAR_DIR": str(ground.VAR.parent), "LOG_LEVEL": "ERROR", "EXTRACTOR": "explicit",
            "EXTRACTION_DEBOUNCE": "0", "EXTRACTION_LEASE": "10", "BRIDGE_CALLS": "2000000000", "BRIDGE_CALLS_PER_KEY": "2000000000",
        }  # fmt: skip
        self.words = {
            "web": ["-m", *web.GRANIAN, "--respawn-failed-workers", "--host", "127.0.0.1", "--port", str(self.port), "memory_portal.wsgi:application"],
            "worker": ["manage.py", "work_jobs"],
        }  # fmt: skip
        for name in self.words:
            self.start(name)

    def start(self, name: str) -> None:
        with (ground.VAR / f"load-{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-W", "ignore", *self.words[name]],
                cwd=ground.ROOT,
                env=self.environment,
                stdout=log,
                stderr=log,
            )

    def stop(self) -> None:
        for process in self.processes.values():
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def tend(self) -> None:
        """As whoever supervises processes does: what ended by itself is started again."""
        for name, process in list(self.processes.items()):
            if process.poll() is not None:
                self.ended[name] += 1
                self.start(name)

    def memory(self) -> dict[str, int]:
        return {name: meter.memory([process.pid]) for name, process in self.processes.items()}


def capacity(site: Site, key: str, customers: int, url: str, seconds: float = 20.0) -> float:
    """Calls a second of this very mixture that it takes without a pause, the time to read the conversations included."""
    over, began = threading.Event(), time.monotonic()
    callers = [Caller(CALLERS + number, site.port, key, customers, 0.0, over) for number in range(CALLERS)]
    for caller in callers:
        caller.start()
    over.wait(seconds)
    over.set()
    for caller in callers:
        caller.join()
    lost_turns(url, {job for caller in callers for job in caller.seen.handed_over})
    return sum(len(waits) for caller in callers for waits in caller.seen.waits.values()) / (time.monotonic() - began)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.load")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--customers", type=int, default=10_000)
    parser.add_argument("--part", type=float, default=0.7, help="of what the site can take")
    parser.add_argument("--page", type=Path, default=ground.ROOT / "docs" / "load.md")
    asked = parser.parse_args()
    with ground.Server(f"postgres-load-{asked.customers}", {**ground.SETTINGS, "autovacuum": "on"}) as server:
        found = loaded(server, asked.minutes * 60, asked.customers, asked.part)
    (ground.VAR / "load.json").write_text(json.dumps(found, indent=1))
    asked.page.write_text(page(found, asked.minutes, asked.customers, asked.part), encoding="utf-8")
    print(
        f"written: {asked.page}; {found['wrong_answers']} wrong answers, {found['lost_conversations']} lost conversations"
    )


def loaded(server: ground.Server, seconds: float, customers: int, part: float) -> dict[str, Any]:
    os.environ.update(
        DATABASE_URL=server.url,
        DJANGO_SETTINGS_MODULE="memory_portal.settings",
        LOG_LEVEL="ERROR",
        VAR_DIR=str(ground.VAR.parent),
    )
    import django
    import psycopg

    django.setup()
    from django.core.management import call_command
    from django.db import connections
    from django.utils import timezone

    from memory_portal import store

    call_command("migrate", verbosity=0)
    with psycopg.connect(server.url, autocommit=True) as connection:
        ground.fill(connection, customers)
        connection.execute("UPDATE memory_portal_memoryfact SET expires_at = now() + interval '200 days'")
    key = ground.key_for_all()
    connections.close_all()
    site, over = Site(server), threading.Event()
    try:
        until_it_answers(site.port)
        able = capacity(site, key, customers, server.url)
        pace = CALLERS / (able * part)
        print(f"{able:,.0f} calls a second at most; {able * part:,.0f} calls a second for {seconds:.0f} s", flush=True)
        callers = [Caller(number, site.port, key, customers, pace, over) for number in range(CALLERS)]
        began, memory, faults = time.monotonic(), [], []
        for caller in callers:
            caller.start()
        plan = [(0.2, "kill a web process"), (0.4, "kill the worker"), (0.6, "restart PostgreSQL"), (0.75, "sweep")]
        while (passed := time.monotonic() - began) < seconds:
            if plan and passed > plan[0][0] * seconds:
                _, fault = plan.pop(0)
                faults.append((round(passed), fault))
                strike(fault, site, server, customers, store, timezone)
            site.tend()
            memory.append((round(passed), site.memory()))
            over.wait(min(5.0, seconds / 40))
        over.set()
        for caller in callers:
            caller.join()
        lost, waiting, waited = lost_turns(server.url, {job for caller in callers for job in caller.seen.handed_over})
    finally:
        over.set()
        site.stop()
    return summary(callers, able * part, lost, waiting, waited, memory, faults)


def until_it_answers(port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            line = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            line.request("GET", "/bridge/v1/health")
            if line.getresponse().status == 200:
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.2)


def strike(fault: str, site: Site, server: ground.Server, customers: int, store: Any, timezone: Any) -> None:
    if fault == "kill a web process":
        os.kill(meter.children(site.processes["web"].pid)[-1], signal.SIGKILL)
    elif fault == "kill the worker":
        site.processes["worker"].kill()
        site.processes["worker"].wait()
        site.start("worker")
    elif fault == "restart PostgreSQL":
        server.stop()
        server.start()
    else:
        threading.Thread(target=sweep, args=(server.url, store, timezone), daemon=True).start()


def sweep(url: str, store: Any, timezone: Any) -> None:
    """A tenth of all customers nobody reads here: facts of a category of their own end, and the whole sweep runs."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        ending = "UPDATE memory_portal_memoryfact SET expires_at = now() WHERE key IN ('fact_18', 'fact_19') AND customer_id % 10 = 0"
        connection.execute(ending)
    store.sweep(now=timezone.now())


def lost_turns(url: str, jobs: set[str]) -> tuple[int, int, float]:
    """How many accepted conversations are gone, how many still wait their turn, and how long they were waited for."""
    import psycopg

    began, asked = (
        time.monotonic(),
        "SELECT state, count(*) FROM agent_bridge_extractionjob WHERE id = ANY(%s::uuid[]) GROUP BY state",
    )
    there: dict[str, int] = {}
    while time.monotonic() - began < 120:
        with psycopg.connect(url) as connection:
            there = dict(connection.execute(asked, [list(jobs)]).fetchall())
        if there.get("done", 0) == len(jobs):
            break
        time.sleep(0.5)
    waiting = there.get("queued", 0) + there.get("running", 0)
    return len(jobs) - there.get("done", 0) - waiting, waiting, time.monotonic() - began


def summary(
    callers: list[Caller],
    rate: float,
    lost: int,
    waiting: int,
    waited: float,
    memory: list[tuple[int, dict[str, int]]],
    faults: list[tuple[int, str]],
) -> dict[str, Any]:
    def part(waits: list[float], share: float) -> float:
        return round(sorted(waits)[int(len(waits) * share)] * 1e3, 1) if waits else 0.0

    kinds = {name: [wait for caller in callers for wait in caller.seen.waits[name]] for name, _ in MIX}
    return {
        "asked_a_second": round(rate),
        "done_a_second": round(sum(map(len, kinds.values())) / max(1, memory[-1][0] if memory else 1)),
        "load_of_machine": [round(load, 1) for load in os.getloadavg()],
        "calls": sum(map(len, kinds.values())),
        "wrong_answers": sum(len(caller.seen.wrong) for caller in callers),
        "wrong": [what for caller in callers for what in caller.seen.wrong][:10],
        "given_up": sum(caller.seen.given_up for caller in callers),
        "sent_again": dict(sum((caller.seen.again for caller in callers), Counter())),
        "conversations": sum(len(caller.seen.handed_over) for caller in callers),
        "lost_conversations": lost,
        "still_waiting": waiting,
        "waited_for_s": round(waited, 1),
        "p50_p99_ms": {name: (part(waits, 0.5), part(waits, 0.99)) for name, waits in kinds.items()},
        "faults_at_s": faults,
        "memory_mb": [
            (at, {name: round(size / 2**20) for name, size in sizes.items()})
            for at, sizes in memory[:: max(1, len(memory) // 20)]
        ],
    }


def page(found: Mapping[str, Any], minutes: float, customers: int, part: float) -> str:
    """What the run came to, for people."""
    from benchmarks import report

    faults = ", ".join(f"{fault} at {at} s" for at, fault in found["faults_at_s"])
    waits = report.table(["", "p50 ms", "p99 ms"], [(name, *both) for name, both in found["p50_p99_ms"].items()])
    memory = report.table(
        ["second", "web MB", "worker MB"], [(at, sizes["web"], sizes["worker"]) for at, sizes in found["memory_mb"]]
    )
    loads = " ".join(map(str, found["load_of_machine"]))
    return f"""# Under load, while things die

Written by `python -m benchmarks.load`; not by hand. {minutes:g} minutes of mixed traffic ({", ".join(f"{share} % {name}" for name, share in MIX)}) over
{customers:,} customers at {part:.0%} of what this machine's site could take of that mixture, found just before; {CALLERS} callers, and inside: {faults}.

| | |
|---|---|
| calls | {found["calls"]:,}, {found["done_a_second"]} a second of {found["asked_a_second"]} asked for |
| wrong answers | {found["wrong_answers"]} |
| conversations accepted, lost | {found["conversations"]:,}, {found["lost_conversations"]} |
| of them still waiting to be read, {found["waited_for_s"]} s after the end | {found["still_waiting"]:,} |
| given up by a caller | {found["given_up"]} |
| sent again, by reason | {", ".join(f"{many} {why}" for why, many in found["sent_again"].items()) or "none"} |
| the machine's load, of {os.cpu_count()} cores | {loads}: {"others worked on it as well" if found["load_of_machine"][1] > 4 else "it did little else"} |

A caller's wait includes its turn: what could not be sent in time because the call before was not answered counts as waiting. A read is
wrong when it is not that customer's eight facts with the rules first; a write, when what was acknowledged is not read back; a
conversation is lost when its job is neither done nor waiting its turn. Where many wait, the one worker was too slow or was away.

{waits}
Memory that nobody else shares (Pss), of web (two processes and their supervisor) and worker:

{memory}"""


if __name__ == "__main__":
    main()
