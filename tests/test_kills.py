"""Whatever is killed, at whatever moment: no conversation that was accepted is lost, and none is learned twice.

Web, worker and scheduler are the product's own processes, on each kind of broker. KILL_POINTS and KILL_JOBS make it longer.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.conf import settings
from django.utils import timezone

from agent_bridge import auth, jobs
from agent_bridge.models import ExtractionJob, JobState
from memory_portal.models import FactEvent, MemoryFact
from tests.figures import Figure
from tests.live import free_port, redis_server, until
from tests.messages_server import KEY, MessagesServer, Reply, answer, change
from tests.test_batches import said_in
from tests.test_jobs import database_url

pytestmark = [pytest.mark.live, pytest.mark.django_db(transaction=True)]

LEASE = 10.0
STARTING = 15.0
"""What it may take to start what was killed last, on a machine that does something else as well."""
READING = 0.5
"""Seconds for one of the conversations that only wait for their turn."""
CELERY = ["celery", "-A", "agent_bridge"]


class Provider:
    """Answers after a moment, so that something can be killed meanwhile."""

    def __init__(self, seed: int) -> None:
        self.dice, self.never = random.Random(seed), threading.Event()

    def __call__(self, asked: dict[str, Any]) -> Reply:
        self.never.wait(self.dice.uniform(0.01, 0.2))
        return answer([change(said, "tea", said.removeprefix("I ")) for said in said_in(asked)])


class Site:
    """The product's processes, each a group of its own, so that one can be killed as a whole."""

    def __init__(self, var: Path, server: MessagesServer, broker: str) -> None:
        self.var, self.broker, self.port = var, broker, free_port()
        self.environment = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("ANTHROPIC", "DJANGO", "CELERY", "EXTRACT"))
            },
            "DATABASE_URL": database_url(),
            "VAR_DIR": str(var),
            "SECRET_KEY": settings.SECRET_KEY,
            "TOMBSTONE_KEY": settings.TOMBSTONE_KEY,
            "AGENT_KEY_PEPPER": settings.AGENT_KEY_PEPPER,
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": server.url,
            "EXTRACTION_DEBOUNCE": "0",
            "EXTRACTION_LEASE": str(LEASE),
            "CELERY_BROKER_URL": broker,
        }
        web = ["granian", "--interface", "wsgi", "--workers", "1", "--blocking-threads", "2", "--log-level", "warning"]
        self.commands = {
            "web": ["-m", *web, "--host", "127.0.0.1", "--port", str(self.port), "memory_portal.wsgi:application"],
            "worker": ["-m", *CELERY, "worker", "-c", "2"],
            "beat": ["-m", *CELERY, "beat", "--schedule", str(var / "schedule")],
        }
        if "gone" in broker:
            self.environment["CELERY_BROKER_URL"] = f"redis://127.0.0.1:{free_port()}/0"
            self.commands["worker"] = ["manage.py", "work_jobs"]
            del self.commands["beat"]
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        for name in self.commands:
            self.start(name)

    def start(self, name: str) -> None:
        with (self.var / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                [sys.executable, *self.commands[name]],
                cwd=settings.BASE_DIR,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self, name: str) -> None:
        os.killpg(self.running[name].pid, signal.SIGKILL)
        self.running[name].wait()

    def children(self, name: str) -> list[int]:
        listed = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.running[name].pid)], capture_output=True, check=False
        )
        return [int(pid) for pid in listed.stdout.split()]

    def hand_over(self, key: str, number: int) -> None:
        """As a host does: the same call with the same Idempotency-Key, until there is an answer."""
        body = {"session_id": f"s{number}", "messages": [{"role": "user", "content": f"I always buy {number} tea"}]}
        headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": f"kill-{number}"}
        address = f"http://127.0.0.1:{self.port}/bridge/v1/subjects/kill-{number}/turns"

        def accepted() -> bool | None:
            try:
                answered = httpx2.post(address, json=body, headers=headers, timeout=20)
            except httpx2.HTTPError:
                return None
            assert answered.status_code in (202, 409, 503), answered.text
            return True if answered.status_code == 202 else None

        until(accepted, f"conversation {number} to be accepted")

    def stop(self) -> None:
        for name, process in self.running.items():
            if process.poll() is None:
                self.kill(name)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[str]:
    with redis_server(tmp_path / "redis") as address:
        yield address


KINDS = {
    "redis": {"child": 5, "worker": 2, "term": 1, "web": 2, "flush": 2},
    "filesystem": {"worker": 2, "term": 1, "web": 1},  # its worker has threads and no children
    "gone": {"worker": 2, "web": 1},
}


def flush(broker: str) -> None:
    import redis as package

    with package.Redis.from_url(broker) as client:
        client.flushall()


def strike(kind: str, site: Site, dice: random.Random) -> bool:
    """Kill one thing and start it again. False when there was nothing to kill."""
    if kind == "flush":
        flush(site.broker)
        return True
    if kind == "child":
        children = site.children("worker")
        if not children:
            return False
        os.kill(dice.choice(children), signal.SIGKILL)
        return True
    if kind == "term":
        site.running["worker"].terminate()
        try:
            site.running["worker"].wait(30)
        except subprocess.TimeoutExpired:
            site.kill("worker")
    else:
        site.kill(kind)
    site.start("worker" if kind == "term" else kind)
    return True


def done() -> int:
    return ExtractionJob.objects.filter(state=JobState.DONE).count()


def survive(broker: str, var: Path, points: int, conversations: int, seed: int, figure: Figure) -> None:
    dice, moment = random.Random(seed), threading.Event()
    kinds = KINDS[broker.partition(":")[0]]
    plan = [*kinds][:points] + dice.choices([*kinds], [*kinds.values()], k=max(0, points - len(kinds)))
    dice.shuffle(plan)
    _, key = auth.issue("agent", "retail", auth.SCOPES, now=timezone.now())
    struck: Counter[str] = Counter()
    waited: list[int] = []
    interrupted: dict[Any, datetime] = {}
    """What was being read at a blow, and when that fell."""
    with MessagesServer() as server:
        server.will(Provider(seed))
        site = Site(var, server, broker)
        try:
            for point, kind in enumerate(plan):
                mine = range(*(conversations * at // points for at in (point, point + 1)))
                feeder = threading.Thread(target=lambda mine=mine: [site.hand_over(key, n) for n in mine])
                feeder.start()
                if kind == "web":
                    until(lambda: number_of_jobs() > mine.start or None, "the first of these")  # noqa: B023
                else:
                    feeder.join()
                    before = len(server.requests)
                    until(lambda: len(server.requests) > before or done() == number_of_jobs() or None, "a reader")  # noqa: B023
                moment.wait(dice.uniform(0, 0.3))
                waited.append(number_of_jobs() - done())
                held = ExtractionJob.objects.filter(state=JobState.RUNNING).values_list("pk", flat=True)
                interrupted |= dict.fromkeys(held, timezone.now())
                struck[kind] += strike(kind, site, dice)
                feeder.join()
            started = time.monotonic()
            left = conversations - done()
            until(lambda: parked_or_done() == conversations or None, "all", 2 * LEASE + STARTING + left * READING)
            took = time.monotonic() - started
            hit = list(
                ExtractionJob.objects.filter(state=JobState.PARKED)
            )  # by five blows each; staff would try them again
            assert all(job.outcome == "lease_lost" and jobs.retry(job, timezone.now()) for job in hit)
            until(lambda: done() == conversations or None, "those that were tried again", 2 * LEASE + STARTING)
        finally:
            site.stop()
        logs = "".join(path.read_text("utf-8", "replace") for path in var.glob("*.log"))
    tries = Counter(ExtractionJob.objects.values_list("attempts", flat=True))
    ended = dict(ExtractionJob.objects.filter(pk__in=interrupted).values_list("pk", "finished_at"))
    parked = {job.pk for job in hit}
    longest = max(((ended[pk] - at).total_seconds() for pk, at in interrupted.items() if pk not in parked), default=0.0)
    told = (
        f"{broker.partition(':')[0]}: {dict(struck)} with {conversations} conversations, up to {max(waited)} waiting; "
        f"{left} left at the end, "
        f"all done {took:.1f} s after the last; {len(interrupted)} interrupted ones done {longest:.1f} s after their blow at most "
        f"(lease {LEASE:.0f} s); tries {dict(sorted(tries.items()))}; {len(parked)} parked after five blows and tried again"
    )
    for row in ("J1", "J2"):
        figure(row, told)
    assert sum(struck.values()) >= 0.9 * points
    assert number_of_jobs() == conversations, "each is one job, however often it was sent"
    assert done() == conversations, "none is lost"
    assert longest <= 2 * LEASE + STARTING, "two leases, and what it takes to start a process"
    facts = dict(MemoryFact.objects.values_list("customer__subject_id", "value"))
    assert facts == {f"kill-{n}": f"always buy {n} tea" for n in range(conversations)}
    assert FactEvent.objects.filter(kind="learned").count() == conversations, "none is learned twice"
    assert not FactEvent.objects.filter(kind="renewed").exists()
    assert "always buy" not in logs


def number_of_jobs() -> int:
    return ExtractionJob.objects.count()


def parked_or_done() -> int:
    return ExtractionJob.objects.filter(state__in=(JobState.DONE, JobState.PARKED)).count()


def numbers(points: int, conversations: int) -> tuple[int, int]:
    return int(os.environ.get("KILL_POINTS", points)), int(os.environ.get("KILL_JOBS", conversations))


SIZES = [pytest.param(3, 15, id="few"), pytest.param(40, 500, id="many", marks=pytest.mark.deep)]


@pytest.mark.parametrize(("points", "conversations"), SIZES)
def test_with_redis_nothing_is_lost_or_doubled(
    redis: str, tmp_path: Path, points: int, conversations: int, figure: Figure
) -> None:
    survive(
        redis,
        tmp_path,
        *numbers(2 * points, 2 * conversations) if points < 40 else numbers(points, conversations),
        seed=1,
        figure=figure,
    )


@pytest.mark.parametrize(("points", "conversations"), SIZES)
def test_with_files_as_broker_nothing_is_lost_or_doubled(
    tmp_path: Path, points: int, conversations: int, figure: Figure
) -> None:
    survive("filesystem://", tmp_path, *numbers(points, conversations), seed=2, figure=figure)


@pytest.mark.parametrize(("points", "conversations"), SIZES)
def test_with_the_broker_gone_nothing_is_lost_or_doubled(
    tmp_path: Path, points: int, conversations: int, figure: Figure
) -> None:
    survive("gone:", tmp_path, *numbers(points, conversations), seed=3, figure=figure)


def test_a_short_lease_is_longer_than_what_celery_lets_live(settings: Any) -> None:
    from agent_bridge import celery

    for seconds in (4.0, LEASE, 0.0):
        settings.EXTRACTION_LEASE = seconds
        assert celery.time_limit() < celery.lease_seconds() == jobs.lease().total_seconds()
