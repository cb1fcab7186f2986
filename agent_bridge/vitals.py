"""Whether the machines behind the bridge live: the broker, the sweeper, the queues. Out: codes and numbers for memory_portal's
health and metrics, which name this room as a string. Imports the models, the store's door and Celery's app.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection
from django.utils import timezone

from agent_bridge.celery import app
from agent_bridge.models import Heartbeat

SWEEP, RETENTION = "sweep", "retention"
LATE = {SWEEP: timedelta(seconds=60), RETENTION: timedelta(hours=1)}
"""Without a sign of life for so long, something is wrong. The sweep comes every few seconds, retention every ten minutes."""

BROKER_SECONDS = 1.0


def beat(name: str, now: datetime) -> None:
    Heartbeat.objects.bulk_create(
        [Heartbeat(name=name, at=now)], update_conflicts=True, unique_fields=["name"], update_fields=["at"]
    )


def sweeper() -> str:
    """The scheduler and a worker live: the sweep was here lately, and so was retention."""
    now, seen = timezone.now(), dict(Heartbeat.objects.values_list("name", "at"))
    if SWEEP not in seen:
        return "never"
    return "late" if any(now - at > LATE[name] for name, at in seen.items() if name in LATE) else "ok"


def broker() -> str:
    if settings.CELERY_BROKER_URL.startswith("filesystem:"):
        folder = Path(app.conf.broker_transport_options["data_folder_out"])
        return "ok" if os.access(folder, os.W_OK) else "unreachable"
    with app.connection_for_write(connect_timeout=BROKER_SECONDS) as link:
        link.transport_options = {**link.transport_options, "socket_connect_timeout": BROKER_SECONDS}
        try:
            link.connect()
        except link.connection_errors:  # each transport has its own
            return "unreachable"
    return "ok"


# --- numbers ----------------------------------------------------------------------------------------------------------

HOUR = "finished_at > %(now)s - interval '1 hour'"
QUEUE = """
SELECT count(*) FILTER (WHERE state = 'queued' AND run_after <= %(now)s), count(*) FILTER (WHERE state = 'queued'),
    count(*) FILTER (WHERE state = 'running'),
    COALESCE(EXTRACT(EPOCH FROM %(now)s - min(run_after) FILTER (WHERE state = 'queued' AND run_after <= %(now)s)), 0)
FROM agent_bridge_extractionjob WHERE state IN ('queued', 'running')
"""
ENDED = f"""
SELECT state, count(*), COALESCE(EXTRACT(EPOCH FROM avg(finished_at - created_at)), 0)
FROM agent_bridge_extractionjob WHERE {HOUR} GROUP BY state
"""  # noqa: S608  # of constants
RESULTS = f"""
SELECT found.key, sum(found.value::numeric) FROM agent_bridge_extractionjob AS job, jsonb_each_text(job.counts) AS found
WHERE {HOUR} GROUP BY found.key
"""  # noqa: S608
PARKED = """
SELECT count(*) FROM agent_bridge_extractionjob WHERE state = 'parked' AND finished_at > %(now)s - interval '1 day'
"""
OTHERS = """
SELECT (SELECT count(*) FROM agent_bridge_import WHERE state IN ('queued', 'running')),
    (SELECT count(*) FROM agent_bridge_webhook WHERE active AND failures > 0 AND parked_at IS NULL),
    (SELECT count(*) FROM agent_bridge_webhook WHERE parked_at IS NOT NULL),
    (SELECT count(*) FROM agent_bridge_messagebatch),
    COALESCE((SELECT tokens FROM agent_bridge_dayspend WHERE customer_id IS NULL AND day = %(day)s), 0)
"""
ROWS = """
SELECT relname, greatest(reltuples, 0) FROM pg_class
WHERE relkind = 'r' AND relname IN ('memory_portal_customer', 'memory_portal_memoryfact', 'memory_portal_factevent')
"""

Gauge = tuple[str, str, str, list[tuple[str, float]]]


def gauges(now: datetime | None = None) -> Iterator[Gauge]:
    """Each as its name, what it says, its label and its values. A few short statements, each over an index."""
    at = now or timezone.now()
    (due, queued, running, oldest), *_ = ask(QUEUE, at)
    states = [("due", due), ("queued", queued), ("running", running)]
    yield "portal_jobs", "Conversations that wait or are being read.", "state", [(name, float(n)) for name, n in states]
    yield "portal_jobs_oldest_due_seconds", "How long the oldest due one has waited.", "", [("", float(oldest))]
    ended = ask(ENDED, at)
    many = [(str(state), float(count)) for state, count, _ in ended]
    took = [(str(state), float(seconds)) for state, _, seconds in ended]
    yield "portal_jobs_ended_last_hour", "Conversations that ended in the last hour.", "state", many
    yield "portal_jobs_mean_seconds_last_hour", "From hand-over to the end, in the last hour.", "state", took
    yield (
        "portal_jobs_parked_last_day",
        "Conversations given up in the last day.",
        "",
        [("", float(ask(PARKED, at)[0][0]))],
    )
    found = [(str(name), float(count)) for name, count in ask(RESULTS, at)]
    yield "portal_candidates_last_hour", "What reading came to: learned, proposed, refused by reason.", "result", found
    (imports, failing, given_up, batches, tokens), *_ = ask(OTHERS, at)
    yield "portal_imports_open", "Imports that are not done.", "", [("", float(imports))]
    hooks = [("failing", float(failing)), ("given_up", float(given_up))]
    yield "portal_webhooks", "Webhooks in trouble.", "state", hooks
    yield "portal_batches_open", "Batches that the provider holds for us.", "", [("", float(batches))]
    yield "portal_tokens_today", "Tokens spent and reserved this UTC day.", "", [("", float(tokens))]
    lags = [(name, (at - seen).total_seconds()) for name, seen in Heartbeat.objects.values_list("name", "at")]
    yield "portal_sweep_age_seconds", "Since the sweeps were last here.", "sweep", lags
    rows = [(str(name).partition("memory_portal_")[2], float(count)) for name, count in ask(ROWS, at)]
    yield "portal_rows_estimated", "Rows of the large tables, as PostgreSQL estimates them.", "table", rows


def ask(sql: str, now: datetime) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, {"now": now, "day": now.date()} if "%(" in sql else None)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows
