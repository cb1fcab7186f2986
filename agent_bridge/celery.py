"""Celery as a doorbell: messages carry ids, rows carry the truth. Without CELERY_BROKER_URL
messages are files under var/.

Started with `python -m celery -A agent_bridge worker -B`. Imports settings and one number of the extraction.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from celery import Celery, signals
from celery.schedules import crontab
from django.conf import settings
from django.utils import timezone
from kombu.transport import TRANSPORT_ALIASES

from agent_bridge import watched  # noqa: F401  # its receivers
from agent_bridge.extraction import CALLS

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory_portal.settings")

SWEEP_EVERY = 3.0
BATCHES_EVERY = 60.0
RETENTION_EVERY = 600.0
SEAL_EVERY = 240.0  # so that the witness outside the database is never five minutes behind
DIGESTS_EVERY = 3600.0


def private(path: Path) -> str:
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.chmod(0o700)
    return str(path)


def transport_options(broker: str) -> dict[str, Any]:
    if broker.startswith("filesystem:"):
        # One folder for both directions: the worker takes what the web process put there.
        folder = Path(private(Path(settings.VAR) / "broker"))
        bell, control = private(folder / "bell"), private(folder / "control")
        return {
            "data_folder_in": bell,
            "data_folder_out": bell,
            "control_folder": control,
            "polling_interval": 0.05,
        }
    # A hand-over never waits long for a broker that is gone; a message comes back once its task cannot be alive.
    # The sweep rings again, so a bell is tried once; the worker's own connection keeps trying all the same.
    once = {"max_retries": 0, "interval_start": 0, "interval_step": 0, "interval_max": 0}
    return {
        **once,
        "visibility_timeout": int(time_limit() * 2),
        "unacked_restore_throttle": 1,
        "socket_connect_timeout": 2,
        "socket_timeout": 5,
    }


def lease_seconds() -> float:
    """How long a worker holds a job: its calls, some for the rest, and some before another may take it."""
    return float(settings.EXTRACTION_LEASE) or CALLS * float(settings.EXTRACTION_TIMEOUT) + 60


def time_limit() -> float:
    """Seconds one job may take: it is over before its lease is."""
    lease = lease_seconds()
    return lease - min(30.0, lease / 4)


TRANSPORT_ALIASES["filesystem"] = "agent_bridge.mailbox:Transport"

app = Celery("agent_bridge")
app.conf.update(
    broker_url=settings.CELERY_BROKER_URL,
    broker_transport_options=transport_options(settings.CELERY_BROKER_URL),
    broker_connection_retry_on_startup=True,
    broker_connection_timeout=2,
    enable_utc=True,
    timezone="UTC",
    accept_content=["json"],
    task_serializer="json",
    task_ignore_result=True,
    task_acks_late=True,
    task_retry_on_worker_lost=True,
    task_time_limit=time_limit(),
    task_soft_time_limit=time_limit() - min(15.0, time_limit() / 4),
    # Over files Celery's processes share one pipe and its lock: one that is killed with it in hand stops all the others.
    worker_pool="threads" if settings.CELERY_BROKER_URL.startswith("filesystem:") else "prefork",
    worker_prefetch_multiplier=1,
    worker_max_tasks_per_child=500,
    worker_soft_shutdown_timeout=30.0,
    worker_send_task_events=False,
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,  # what prints is a terminal's business; what logs goes by the list
    beat_schedule_filename=str(Path(private(Path(settings.VAR) / "beat")) / "schedule"),
    beat_schedule={
        "sweep": {"task": "agent_bridge.sweep", "schedule": SWEEP_EVERY, "options": {"expires": SWEEP_EVERY}},
        "deliver": {"task": "agent_bridge.deliver", "schedule": SWEEP_EVERY, "options": {"expires": SWEEP_EVERY}},
        "scrub": {
            "task": "agent_bridge.scrub",
            "schedule": crontab(hour="3", minute="17"),
            "options": {"expires": 3600.0},
        },
        "digests": {"task": "agent_bridge.digests", "schedule": DIGESTS_EVERY, "options": {"expires": DIGESTS_EVERY}},
        "seal": {"task": "agent_bridge.seal", "schedule": SEAL_EVERY, "options": {"expires": SEAL_EVERY}},
        "retention": {
            "task": "agent_bridge.retention",
            "schedule": RETENTION_EVERY,
            "options": {"expires": RETENTION_EVERY},
        },
    },
)
if settings.MESSAGE_BATCHES:
    app.conf.beat_schedule["batches"] = {
        "task": "agent_bridge.batches",
        "schedule": BATCHES_EVERY,
        "options": {"expires": BATCHES_EVERY},
    }
app.autodiscover_tasks(["agent_bridge"])


@signals.worker_init.connect  # type: ignore[untyped-decorator]
def refuse_old_copies(**kwargs: Any) -> None:
    from memory_portal import store

    try:
        store.refuse_old_copies(timezone.now)
    except store.OldCopy as error:
        raise SystemExit(str(error)) from None  # of errors Celery would only take a note
