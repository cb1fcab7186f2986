"""The worker as it is started in production, Celery and all: whatever is killed, each conversation is read once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone

from agent_bridge import auth, jobs
from agent_bridge.extraction import Turn
from agent_bridge.models import ExtractionJob, JobState
from memory_portal import store
from memory_portal.models import FactEvent, MemoryFact
from tests.live import redis_server, until
from tests.messages_server import KEY, MessagesServer, answer, change, hang
from tests.test_jobs import CANARY, after_the_lease, database_url

pytestmark = [pytest.mark.live, pytest.mark.django_db(transaction=True)]

SAID = f"I always buy {CANARY} tea"
GOOD = answer([change(SAID, "tea", f"always buy {CANARY} tea")])


class Worker:
    """`celery worker -B` with one thread, or over Redis one pool child, in a process group of its own."""

    def __init__(self, var: Path, server: MessagesServer, broker: str = "filesystem://") -> None:
        self.log = var / "worker.log"
        self.environment = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("ANTHROPIC", "DJANGO", "CELERY"))
            },
            "DATABASE_URL": database_url(),
            "VAR_DIR": str(var),
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": server.url,
            "EXTRACTOR": "claude",
            "CELERY_BROKER_URL": broker,
        }
        self.start()

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", "agent_bridge", "worker", "-B", "-c", "1", "-l", "INFO"],
                cwd=settings.BASE_DIR,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def children(self) -> list[int]:
        listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, check=False)
        return [int(pid) for pid in listed.stdout.split()]

    def kill_whole(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    with MessagesServer() as running:
        yield running


@pytest.fixture
def worker(tmp_path: Path, server: MessagesServer) -> Iterator[Worker]:
    started = Worker(tmp_path, server)
    yield started
    if started.process.poll() is None:
        started.kill_whole()


@pytest.fixture
def hand_over() -> Callable[[], ExtractionJob]:
    def handed() -> ExtractionJob:
        """Its doorbell goes to this process's own broker, where no worker listens: as if the message were lost."""
        now = timezone.now() - jobs.RING_AGAIN
        key, _ = auth.issue("agent", "retail", [auth.TURNS], now=now)
        subject, turns = store.Subject("alice", "retail"), [Turn("user", f"{SAID}.", now)]
        return jobs.submit(subject, key, turns, session_id="s", now=now, debounce=timedelta())

    return handed


def done(job: ExtractionJob) -> bool | None:
    return ExtractionJob.objects.filter(pk=job.pk, state=JobState.DONE).exists() or None


def learned_once() -> None:
    assert list(MemoryFact.objects.values_list("key", "value")) == [("tea", f"always buy {CANARY} tea")]
    assert FactEvent.objects.filter(kind="learned").count() == 1


def test_a_lost_doorbell_is_made_up_for_by_the_sweep(
    server: MessagesServer, worker: Worker, hand_over: Callable[[], ExtractionJob]
) -> None:
    server.will(GOOD)
    job = hand_over()
    until(lambda: done(job), "the job")
    learned_once()
    log = worker.log.read_text()
    assert str(job.pk) in log
    assert CANARY not in log


def test_a_pool_child_killed_in_mid_read_loses_and_doubles_nothing(
    server: MessagesServer, tmp_path: Path, hand_over: Callable[[], ExtractionJob]
) -> None:
    server.will(hang(), GOOD)
    with redis_server(tmp_path / "redis") as broker:
        worker = Worker(tmp_path, server, broker)
        try:
            job = hand_over()
            assert server.asked.wait(60)
            for child in worker.children():
                os.kill(child, signal.SIGKILL)
            after_the_lease(job)
            until(lambda: done(job), "the job")
        finally:
            worker.kill_whole()
    learned_once()
    assert len(server.requests) == 2
    assert CANARY not in worker.log.read_text()


def test_a_whole_worker_killed_and_started_again_loses_and_doubles_nothing(
    server: MessagesServer, worker: Worker, hand_over: Callable[[], ExtractionJob]
) -> None:
    server.will(hang(), GOOD)
    job = hand_over()
    assert server.asked.wait(60)
    worker.kill_whole()
    after_the_lease(job)
    worker.start()
    until(lambda: done(job), "the job")
    learned_once()


def test_a_mailbox_of_files_shows_a_message_whole_and_drops_what_it_cannot_read(tmp_path: Path) -> None:
    """kombu's own writer has the file there before it has its words; a worker that took it then was gone."""
    from kombu import Connection

    from agent_bridge.celery import app  # noqa: F401  # names our own kind of mailbox

    for folder in ("bell", "control"):
        (tmp_path / folder).mkdir()
    bell = str(tmp_path / "bell")
    options = {"data_folder_in": bell, "data_folder_out": bell, "control_folder": str(tmp_path / "control")}
    with Connection("filesystem://", transport_options=options) as link:
        box = link.SimpleQueue("mailbox")
        half = tmp_path / "bell" / "0_half.mailbox.msg"
        half.write_text('{"body": "W1tdLC')
        box.put({"job": 1})
        assert not list((tmp_path / "bell").glob("*.part"))
        (tmp_path / "bell" / ".begun.part").write_text("{")
        with pytest.raises(box.Empty):
            box.get(block=False)
        assert not half.exists()
        message = box.get(block=False)
        assert message.payload == {"job": 1}
        message.ack()
