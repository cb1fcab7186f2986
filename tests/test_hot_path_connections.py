"""A kept connection costs no round trip to be trusted, and one that the server ended is replaced before it is used."""

from __future__ import annotations

import psycopg
import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from agent_bridge import auth
from tests.figures import Figure
from tests.test_jobs import database_url


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_lives_is_trusted_without_asking() -> None:
    connection.ensure_connection()
    with psycopg.connect(database_url(), autocommit=True) as watcher:
        pid = connection.connection.info.backend_pid
        asked = "SELECT query FROM pg_stat_activity WHERE pid = %s"
        with connection.cursor() as cursor:
            cursor.execute("SELECT 'the last one'")
        assert connection.is_usable()
        assert watcher.execute(asked, [pid]).fetchone() == ("SELECT 'the last one'",)
    connection.close()
    assert not connection.is_usable()


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_the_server_ended_is_replaced(figure: Figure) -> None:
    _, key = auth.issue("Helper", "airline", [auth.READ], now=timezone.now())
    client = Client(headers={"Authorization": f"Bearer {key}"})
    connection.ensure_connection()
    answered = set()
    with psycopg.connect(database_url(), autocommit=True) as admin:
        for _ in range(10):
            pid = connection.connection.info.backend_pid
            admin.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
            connection.close_if_unusable_or_obsolete()  # what Django does as a request begins
            connection.health_check_done = False
            answered.add(client.get("/bridge/v1/subjects/alice/context").status_code)
            assert connection.connection.info.backend_pid != pid
    assert answered == {200}
    figure("J6", "10 connections ended by the server between requests: 10 of 10 requests answered on a new one")
