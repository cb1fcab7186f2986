"""Web servers and who calls them. In: a stack's name. Out: its processes on a port of 127.0.0.1, and rounds of requests against it.

The caller keeps its connections open and sends the next request on one when the last is answered. Its own processor time is not counted.
"""

from __future__ import annotations

import os
import random
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import meter
from benchmarks.ground import PROFILE, ROOT, VAR, free_port

WORKERS, THREADS = 2, 2
Request = Callable[[int], bytes]

GRANIAN = [
    "granian",
    "--interface",
    "wsgi",
    "--workers",
    str(WORKERS),
    "--blocking-threads",
    str(THREADS),
    "--log-level",
    "error",
]


@dataclass
class Site:
    """One stack's server. `path` takes the customer's name."""

    name: str
    words: Sequence[str]
    path: str
    python: str = sys.executable
    headers: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    body: Callable[[int], str] | None = None
    good: Sequence[int] = (200,)
    skipped: str = ""
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    def start(self, url: str) -> None:
        if not Path(self.python).exists():
            self.skipped = "its environment could not be installed"
            return
        self.port = free_port()
        environment = {
            **os.environ, "DATABASE_URL": url, "BENCH_PROFILE": PROFILE, "PYTHONPATH": str(ROOT), "LOG_LEVEL": "ERROR",
            "VAR_DIR": str(VAR.parent), "BRIDGE_CALLS": "2000000000", "BRIDGE_CALLS_PER_KEY": "2000000000", **self.environment,
        }  # fmt: skip
        with (VAR / f"{self.name.replace(' ', '-')}.log").open("wb") as log:
            self.process = subprocess.Popen(
                [self.python, "-W", "ignore", "-m", *(word.replace("PORT", str(self.port)) for word in self.words)],
                cwd=ROOT, env=environment, stdout=log, stderr=log,
            )  # fmt: skip
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                status = self.asked()
            except OSError:
                time.sleep(0.3)
                continue
            if status not in self.good:
                self.stop()
                raise RuntimeError(f"{self.name} answered {status}")
            return
        self.skipped = "it did not answer"
        self.stop()

    def asked(self) -> int:
        """The status of one request."""
        line = Line(self.port)
        line.send(self.bytes_for(1))
        while (status := line.read()) is None:
            pass
        line.socket.close()
        return status

    def bytes_for(self, number: int) -> bytes:
        body = self.body(number).encode() if self.body else b""
        lines = [f"{'POST' if body else 'GET'} {self.path.format(number)} HTTP/1.1", "Host: 127.0.0.1"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        if body:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        return "\r\n".join([*lines, "", ""]).encode() + body

    @property
    def pids(self) -> list[int]:
        return [self.process.pid] if self.process else []

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Line:
    """One kept connection: what was sent when, and what has come back so far."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sent = 0.0
        self.got = b""

    def send(self, request: bytes) -> None:
        self.got, self.sent = b"", time.perf_counter()
        self.socket.sendall(request)

    def read(self) -> int | None:
        """The status once the whole answer is there; 0 where the server hung up."""
        piece = self.socket.recv(65536)
        if not piece:
            return 0
        self.got += piece
        head, found, body = self.got.partition(b"\r\n\r\n")
        if not found:
            return None
        status, lower = int(head[9:12]), head.lower()
        if status in (204, 304):
            return status
        if b"content-length:" in lower:
            length = int(lower.split(b"content-length:")[1].split(b"\r\n")[0])
            return status if len(body) >= length else None
        return status if body.endswith(b"0\r\n\r\n") else None


def drive(
    port: int,
    request: Request,
    *,
    connections: int,
    n: int,
    customers: int,
    seed: int,
    pids: Sequence[int],
    good: Sequence[int] = (200,),
) -> meter.Took:
    """`n` requests over so many connections. Raises where an answer is not good: a fast error is no result."""
    dice, waits, sent, done = random.Random(seed), [], 0, 0
    lines = [Line(port) for _ in range(connections)]
    ready = selectors.DefaultSelector()
    for line in lines:
        ready.register(line.socket, selectors.EVENT_READ, line)
    before, began = meter.seconds(pids), time.perf_counter()

    def go(line: Line) -> None:
        line.send(request(dice.randint(1, customers)))

    for line in lines:
        go(line)
        sent += 1
    while done < sent:
        for key, _ in ready.select(30):
            line = key.data
            status = line.read()
            if status is None:
                continue
            done += 1
            waits.append(time.perf_counter() - line.sent)
            if status not in good:
                if status == 0:  # a server that keeps no connections
                    ready.unregister(line.socket)
                    line.socket.close()
                raise RuntimeError(f"answered {status}: {line.got[-200:]!r}")
            if b"connection: close" in line.got[:2000].lower():
                ready.unregister(line.socket)
                line.socket.close()
                line = Line(port)
                ready.register(line.socket, selectors.EVENT_READ, line)
            if sent < n:
                go(line)
                sent += 1
    elapsed, cpu = time.perf_counter() - began, meter.seconds(pids) - before
    for key in list(ready.get_map().values()):
        key.data.socket.close()
    ready.close()
    return meter.Took(done, elapsed, cpu, waits)


def sites(key: str, bench_python: str) -> list[Site]:
    ours = {"Authorization": f"Bearer {key}"}
    path = "/subjects/c{}/context"
    return [
        Site("ours", [*GRANIAN, "--host", "127.0.0.1", "--port", "PORT", "memory_portal.wsgi:application"], f"/bridge/v1{path}", headers=ours),
        Site("bare", [*GRANIAN, "--host", "127.0.0.1", "--port", "PORT", "benchmarks.stacks:bare"], path),
        Site("FastAPI", ["uvicorn", "--workers", str(WORKERS), "--port", "PORT", "--log-level", "error", "benchmarks.stacks:fastapi"], path, bench_python),
        Site("usual Django", ["gunicorn", "--workers", str(WORKERS), "--bind", "127.0.0.1:PORT", "--log-level", "error", "benchmarks.stacks:usual"], path, bench_python),
    ]  # fmt: skip


def compare(
    there: Sequence[Site],
    url: str,
    server: Sequence[int],
    *,
    connections: Sequence[int],
    rounds: int,
    n: int,
    customers: int,
) -> dict[tuple[str, int], meter.Result]:
    took: dict[tuple[str, int], list[meter.Took]] = {}
    dice = random.Random(2)
    try:
        for site in there:
            site.start(url)
        running = [site for site in there if not site.skipped]
        for number in range(rounds + 1):
            for width in connections:
                dice.shuffle(running)
                for site in running:
                    found = drive(
                        site.port, site.bytes_for, connections=width, n=n if number else n // 5, customers=customers,
                        seed=number * 100 + width, pids=[*server, *site.pids], good=site.good,
                    )  # fmt: skip
                    if number:
                        took.setdefault((site.name, width), []).append(found)
    finally:
        for site in there:
            site.stop()
    return {place: meter.Result(place[0], rounds) for place, rounds in took.items()}
