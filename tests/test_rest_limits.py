"""How many calls a minute: by key and for the whole, counted in one place for every process."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from agent_bridge import auth
from agent_bridge.allowance import allowances
from agent_bridge.models import AgentKey, CallWindow

pytestmark = pytest.mark.django_db

Agent = Callable[..., Client]
CONTEXT = "/bridge/v1/subjects/alice/context"


def statuses(client: Client, calls: int) -> Counter[int]:
    return Counter(client.get(CONTEXT).status_code for _ in range(calls))


def test_a_key_has_its_calls_and_no_more(agent: Agent, settings: Settings) -> None:
    settings.BRIDGE_CALLS_PER_KEY = 3
    client = agent()
    assert statuses(client, 5) == {200: 3, 429: 2}
    refused = client.get(CONTEXT)
    assert refused.json()["code"] == "too_many_calls"
    assert refused["Content-Type"] == "application/problem+json"
    assert 1 <= int(refused["Retry-After"]) <= 60
    assert statuses(agent(name="Other assistant"), 3) == {200: 3}


def test_all_keys_together_have_theirs(agent: Agent, settings: Settings) -> None:
    settings.BRIDGE_CALLS = 5
    assert statuses(agent(), 3) == {200: 3}
    assert statuses(agent(name="Other assistant"), 3) == {200: 2, 429: 1}


def test_the_next_minute_starts_anew(agent: Agent, settings: Settings) -> None:
    settings.BRIDGE_CALLS_PER_KEY = 2
    client = agent()
    assert statuses(client, 3)[429] == 1
    CallWindow.objects.update(started_at=timezone.now() - timedelta(seconds=60))
    allowances.forget()
    assert statuses(client, 3) == {200: 2, 429: 1}


def test_only_a_live_key_counts(agent: Agent) -> None:
    client = agent()
    Client(headers={"Authorization": f"Bearer {auth.new_key()}"}).get(CONTEXT)
    AgentKey.objects.update(revoked_at=timezone.now())
    client.get(CONTEXT)
    assert not CallWindow.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_at_once_the_limit_holds_to_the_call(agent: Agent, settings: Settings) -> None:
    settings.BRIDGE_CALLS_PER_KEY = 50
    client, seen = agent(), Counter[int]()

    def call() -> None:
        seen.update(statuses(Client(**client.defaults), 20))
        connection.close()

    threads = [threading.Thread(target=call) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {200: 50, 429: 70}


def test_the_counters_are_not_logged_by_the_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT relpersistence FROM pg_class WHERE relname = 'agent_bridge_callwindow'")
        assert cursor.fetchone() == ("u",)


def test_finding_the_key_and_counting_are_one_statement(agent: Agent, django_assert_num_queries: Any) -> None:
    client = agent()
    client.get(CONTEXT)
    with django_assert_num_queries(1):
        assert client.get("/bridge/v1/jobs/none").status_code == 404
