"""What /metrics tells, to whom, and that no label names a person."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from agent_bridge import auth, jobs, reading, tasks
from agent_bridge.extraction import Turn
from agent_bridge.extraction.explicit import Explicit
from memory_portal import metrics, store
from tests.figures import Figure
from tests.people import Person

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).resolve().parent.parent
LABELS = {"route", "method", "status", "le", "problem", "task", "ended", "state", "result", "sweep", "table"}
OF_PROCESS = {"generation", "implementation", "major", "minor", "patchlevel", "version"}


def told(text: str) -> dict[tuple[str, tuple[str, ...]], float]:
    return {
        (sample.name, tuple(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def labels(text: str) -> set[str]:
    return {
        name for family in text_string_to_metric_families(text) for sample in family.samples for name in sample.labels
    }


def test_requests_are_counted_by_route_and_status_never_by_address(agent: Any, alice: Person) -> None:
    before = told(metrics.page().decode())
    client = agent()
    for subject in ("zebra-1", "zebra-2"):
        client.put(f"/bridge/v1/subjects/{subject}/facts/zebra", {"value": "zebra"}, "application/json")
    client.put("/bridge/v1/subjects/zebra/facts/zebra", {"value": "4242 4242 4242 4242"}, "application/json")
    alice.get("/facts/999999")
    alice.get("/no/such/zebra")
    client.generic("ZEBRA", "/bridge/v1/health")
    text = metrics.page().decode()
    now = told(text)
    grown = {name: value - before.get(name, 0) for name, value in now.items() if value != before.get(name, 0)}
    assert grown["portal_requests_total", ("PUT", "bridge:read_fact", "201")] == 2
    assert grown["portal_requests_total", ("PUT", "bridge:read_fact", "422")] == 1
    assert grown["portal_requests_total", ("GET", "fact", "404")] == 1
    assert grown["portal_requests_total", ("GET", "none", "404")] == 1
    assert grown["portal_request_seconds_count", ("bridge:read_fact",)] == 3
    assert grown["portal_bridge_problems_total", ("rejected/card",)] == 1
    assert "zebra" not in text.lower()
    assert labels(text) <= LABELS | OF_PROCESS


def test_what_waits_and_what_came_of_it_is_asked_of_the_database(client: Client, figure: Figure) -> None:
    now = timezone.now()
    key, _ = auth.issue("agent", "retail", auth.SCOPES, now=now)
    made = [
        jobs.submit(
            store.Subject(f"zebra{n}", "retail"), key, [Turn("user", "I always buy green tea.", now)],
            session_id="s", now=now - timedelta(minutes=5), debounce=timedelta(),
        )
        for n in range(3)
    ]  # fmt: skip
    assert reading.run(made[0].pk, extractor=Explicit()) == "done"
    tasks.sweep()
    tasks.retention()
    text = client.get("/metrics").content.decode()
    said = told(text)
    assert said["portal_jobs", ("due",)] == 2
    assert 290 < said["portal_jobs_oldest_due_seconds", ()] < 400
    assert said["portal_jobs_ended_last_hour", ("done",)] == 1
    assert {name: value for name, value in said.items() if name[0] == "portal_candidates_last_hour"} == {
        ("portal_candidates_last_hour", ("learned",)): 1
    }
    assert said["portal_sweep_age_seconds", ("sweep",)] < 60
    assert said["portal_sweep_age_seconds", ("retention",)] < 60
    assert said["portal_database_up", ()] == 1
    assert "zebra" not in text
    figure("P6", f"{len(said)} metrics, labels {', '.join(sorted(labels(text) - OF_PROCESS))}: none names a person")


def test_metrics_are_for_who_has_the_token(client: Client, settings: Any) -> None:
    assert client.get("/metrics").status_code == 200, "on a developer's own machine"
    assert client.get("/metrics", REMOTE_ADDR="192.0.2.7").status_code == 404
    settings.PRODUCTION = True
    assert client.get("/metrics").status_code == 404, "closed until a token is set: behind a proxy everybody is local"
    settings.METRICS_TOKEN = "t" * 40
    assert client.get("/metrics").status_code == 404
    assert client.get("/metrics", headers={"Authorization": "Bearer " + "u" * 40}).status_code == 404
    assert client.get("/metrics", headers={"Authorization": "Bearer " + "t" * 40}).status_code == 200


def test_the_processes_of_a_machine_tell_their_counts_together(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "m"),
        "DJANGO_SETTINGS_MODULE": "memory_portal.settings",
    }
    code = "import django; django.setup(); from memory_portal import metrics; metrics.answered('facts', 'GET', 200, 0.1, '');"
    read = "print(metrics.page().decode())"

    def process(more: str) -> str:
        run = [sys.executable, "-c", code + more]
        return subprocess.run(run, env=environment, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    process("")
    assert told(process(read))["portal_requests_total", ("GET", "facts", "200")] == 2
