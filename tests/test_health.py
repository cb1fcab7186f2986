"""Alive, ready, and what is wrong: for a load balancer that names no host and for the person on call."""

from __future__ import annotations

import logging
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from agent_bridge import tasks, vitals
from agent_bridge.models import Heartbeat
from memory_portal import metrics
from memory_portal.models import MemoryFact
from tests.live import free_port
from tests.people import Person

pytestmark = pytest.mark.django_db

Settings = Any


@pytest.fixture
def swept() -> None:
    tasks.sweep()
    tasks.retention()


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_a_probe_needs_no_host_no_https_and_gets_no_cookie(path: str, settings: Settings, swept: None) -> None:
    settings.SECURE_SSL_REDIRECT, settings.ALLOWED_HOSTS = True, ["memory.example.com"]
    answer = Client(headers={"Host": "10.0.0.7:8000"}).get(path)
    assert answer.status_code == 200
    assert not answer.cookies
    assert answer["Cache-Control"] == "no-store"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert "Content-Security-Policy" in answer
    assert Client().post(path).status_code == 405


def test_everything_well_is_ready(client: Client, swept: None) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json() == {
        "status": "ready",
        "checks": {"database": "ok", "migrations": "ok", "broker": "ok", "sweeper": "ok"},
    }


def test_probes_are_neither_counted_nor_logged(client: Client, settings: Settings, caplog: Any, swept: None) -> None:
    settings.LOG_REQUESTS = True
    caplog.set_level(logging.INFO)
    before = metrics.page()
    for path in ("/healthz", "/readyz", "/metrics"):
        client.get(path)
    assert "'request'" not in caplog.text
    assert [line for line in metrics.page().splitlines() if line.startswith(b"portal_requests")] == [
        line for line in before.splitlines() if line.startswith(b"portal_requests")
    ]


def test_alive_asks_the_database_nothing(client: Client, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        assert client.get("/healthz").json() == {"status": "alive"}


def test_a_missing_migration_is_not_ready_and_one_too_many_is(client: Client, swept: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO django_migrations (app, name, applied) VALUES ('memory_portal', '9999_next', now())"
        )
        assert client.get("/readyz").status_code == 200, "old code beside new tables"
        cursor.execute("DELETE FROM django_migrations WHERE name = '0006_heartbeat'")
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer["Retry-After"] == "5"
    assert answer.json()["checks"]["migrations"] == "pending"


def test_a_sweeper_that_is_late_is_told_and_the_site_still_gets_requests(client: Client, swept: None) -> None:
    Heartbeat.objects.filter(name=vitals.SWEEP).update(at=timezone.now() - timedelta(minutes=2))
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
    assert answer.json()["checks"]["sweeper"] == "late"
    Heartbeat.objects.all().delete()
    assert client.get("/readyz").json()["checks"]["sweeper"] == "never"


def test_retention_that_did_not_come_for_an_hour_is_late(client: Client, swept: None) -> None:
    Heartbeat.objects.filter(name=vitals.RETENTION).update(at=timezone.now() - timedelta(minutes=61))
    assert client.get("/readyz").json()["checks"]["sweeper"] == "late"


def test_a_deployment_may_need_more_to_be_ready(client: Client, settings: Settings) -> None:
    settings.READY_NEEDS = ["database", "migrations", "sweeper"]
    assert client.get("/readyz").status_code == 503


@pytest.mark.parametrize("broker", ["redis://127.0.0.1:{port}/0", "amqp://guest@127.0.0.1:{port}//"])
def test_a_broker_that_is_gone_is_told_at_once(
    client: Client, settings: Settings, swept: None, broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.CELERY_BROKER_URL = broker.format(port=free_port())
    monkeypatch.setitem(vitals.app.conf, "broker_url", settings.CELERY_BROKER_URL)
    monkeypatch.setitem(vitals.app.conf, "broker_transport_options", {})
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["checks"]["broker"]) == (200, "unreachable")


def test_a_mailbox_of_files_that_is_gone_is_told(
    client: Client, swept: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(vitals.app.conf, "broker_transport_options", {"data_folder_out": str(tmp_path / "gone")})
    assert client.get("/readyz").json()["checks"]["broker"] == "unreachable"


def test_without_a_broker_what_is_over_is_erased_all_the_same(client: Client, alice: Person) -> None:
    fact = alice.fact("tea", "Green tea")
    MemoryFact.objects.filter(pk=fact.id).update(expires_at=timezone.now())
    call_command("work_jobs", until_empty=True, stdout=StringIO())
    assert not MemoryFact.objects.filter(pk=fact.id).exists()
    assert client.get("/readyz").json()["checks"]["sweeper"] == "ok"
