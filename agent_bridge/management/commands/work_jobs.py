"""The worker's work without any broker: for a cron job, a small site, a day on which the broker is gone."""

from __future__ import annotations

import signal
import threading
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import close_old_connections
from django.utils import timezone

from agent_bridge import batching, imports, jobs, reading, vitals, webhooks
from memory_portal import store

PAUSE = 1.0
BATCH_PAUSE = 60.0


class Command(BaseCommand):
    help = (
        "Does the worker's work in this process, with no broker: conversations, imports, webhooks. "
        "Stops after the current one on SIGTERM or Ctrl-C."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--until-empty", action="store_true", help="stop when nothing is due")

    def handle(self, *args: Any, until_empty: bool, **options: Any) -> None:
        stopped = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopped.set())
        store.check_copy(timezone.now())
        ran = 0
        while not stopped.is_set():
            jobs.sweep(timezone.now(), ring_bells=False)
            vitals.beat(vitals.SWEEP, timezone.now())
            if settings.MESSAGE_BATCHES:
                ran += batching.collect()
                batching.send()
            else:
                ran += reading.drain(stop=stopped.is_set)
            imports.sweep(timezone.now(), ring_bells=False)
            imports.drain(stop=stopped.is_set)
            webhooks.deliver_due()
            if until_empty:
                break
            close_old_connections()
            stopped.wait(BATCH_PAUSE if settings.MESSAGE_BATCHES else PAUSE)
        self.stdout.write(f"{ran} conversations read")
