"""The worker's work without any broker: for a cron job, a small site, a day on which the broker is gone."""

from __future__ import annotations

import signal
import threading
import time
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import InterfaceError, OperationalError, close_old_connections
from django.utils import timezone

from agent_bridge import batching, imports, jobs, reading, tasks, vitals, webhooks
from agent_bridge.celery import DIGESTS_EVERY, RETENTION_EVERY, SEAL_EVERY
from memory_portal import logs, store

log = logs.get(__name__)

PAUSE = 1.0
BATCH_PAUSE = 60.0
TURN = 5
"""So many conversations are read at a time, of however many: webhooks, imports and the clock need not wait for all of them."""
BY_THE_CLOCK = {
    "retention": (RETENTION_EVERY, tasks.retention),
    "seal": (SEAL_EVERY, tasks.seal),
    "digests": (DIGESTS_EVERY, tasks.digests),
}
"""What the scheduler rings for elsewhere, but for the nightly scrub."""


class Clock:
    """What the scheduler does elsewhere: remembers when a thing was done last. The first time it is due."""

    def __init__(self) -> None:
        self.last: dict[str, float] = {}

    def due(self, name: str, every: float) -> bool:
        now = time.monotonic()
        if name in self.last and now - self.last[name] < every:
            return False
        self.last[name] = now
        return True


class Command(BaseCommand):
    help = (
        "Does the worker's work in this process, with no broker: conversations, imports, webhooks, retention. "
        "Stops after the current one on SIGTERM or Ctrl-C."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--until-empty", action="store_true", help="stop when nothing is due")

    def handle(self, *args: Any, until_empty: bool, **options: Any) -> None:
        stopped = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopped.set())
        store.check_copy(timezone.now())
        ran, clock = 0, Clock()
        while not stopped.is_set():
            read = 0
            try:
                read = self.once(stopped, clock)
            except (OperationalError, InterfaceError) as error:  # It is away: so are the jobs, and nothing is lost.
                log.error("work_paused", **logs.of_error(error))
            ran += read
            if read:
                continue
            if until_empty:
                break
            close_old_connections()
            stopped.wait(BATCH_PAUSE if settings.MESSAGE_BATCHES else PAUSE)
        self.stdout.write(f"{ran} conversations read")

    def once(self, stopped: threading.Event, clock: Clock) -> int:
        """Some of the conversations that are due, and all else; how many were read."""
        ran = 0
        jobs.sweep(timezone.now(), ring_bells=False)
        vitals.beat(vitals.SWEEP, timezone.now())
        if settings.MESSAGE_BATCHES:
            ran += batching.collect()
            batching.send()
        else:
            ran += reading.drain(stop=stopped.is_set, most=TURN)
        imports.sweep(timezone.now(), ring_bells=False)
        imports.drain(stop=stopped.is_set)
        webhooks.deliver_due()
        for name, (every, task) in BY_THE_CLOCK.items():
            if clock.due(name, every):
                task()
        return ran
