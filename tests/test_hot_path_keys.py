"""A key is believed for half a second and its calls are counted in blocks: what that means for revoking and for limits.

Told by real processes, HOT_PROCESSES of them.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from multiprocessing.connection import Connection
from typing import Any

import pytest
from django.db import connection, connections
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from agent_bridge import allowance, auth
from agent_bridge.allowance import Allowance, Answer, Counter, Question, allowances
from agent_bridge.models import AgentKey, CallWindow
from memory_portal import store
from tests.conftest import NOW
from tests.figures import Figure

PROCESSES = int(os.environ.get("HOT_PROCESSES", "8"))
FORK = multiprocessing.get_context("fork")


def made(*scopes: str) -> tuple[AgentKey, str]:
    return auth.issue("Helper", "airline", scopes or [auth.READ], now=timezone.now())


def passes(shown: str) -> bool:
    try:
        auth.grant(f"Bearer {shown}", now=timezone.now())
    except (auth.NotAuthenticated, auth.TooManyCalls):
        return False
    return True


def in_processes(act: Callable[[], Any], meanwhile: Callable[[], None] = lambda: None) -> list[Any]:
    """What `act` returns in each of PROCESSES processes that start at once, each with its own connection and nothing known."""
    connections.close_all()
    together = FORK.Barrier(PROCESSES + 1)

    def run(pipe: Connection) -> None:
        connections.close_all()
        allowances.forget()
        together.wait(30)
        pipe.send(act())
        connections.close_all()
        os._exit(0)

    pipes = [FORK.Pipe() for _ in range(PROCESSES)]
    workers = [FORK.Process(target=run, args=(there,)) for _, there in pipes]
    for worker in workers:
        worker.start()
    together.wait(30)
    meanwhile()
    found = []
    for (here, there), worker in zip(pipes, workers, strict=True):
        there.close()
        found.append(here.recv())
        worker.join(30)
    return found


# --- revoking ---------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("shown_as", ["key", "session"])
def test_a_second_after_revoking_no_process_lets_a_call_pass(figure: Figure, shown_as: str) -> None:
    row, key = made()
    if shown_as == "session":
        until = timezone.now() + timedelta(minutes=5)
        key = auth.session_token(row, store.Subject("alice", "airline"), "tag", [auth.READ], until=until)
    revoked_at, pause = FORK.Value("d", 0.0), threading.Event()
    each = -(-1000 // PROCESSES)

    def calls() -> tuple[int, int, int, float]:
        before = late = passed = 0
        last = 0.0
        while late < each:
            asked = time.monotonic()
            went_through = passes(key)
            revoked = revoked_at.value
            if revoked and asked > revoked + 1:
                late, passed = late + 1, passed + went_through
            elif went_through:
                before, last = before + 1, asked - revoked if revoked else 0.0
            pause.wait(0.002)
        return before, late, passed, last

    def revoke() -> None:
        pause.wait(0.3)
        auth.revoke(AgentKey.objects.get(pk=row.pk), now=timezone.now())
        revoked_at.value = time.monotonic()

    found = in_processes(calls, revoke)
    late, passed = sum(row[1] for row in found), sum(row[2] for row in found)
    latest = max(row[3] for row in found)
    figure(
        "K4",
        f"{shown_as} revoked under {PROCESSES} processes: {passed} of {late:,} calls passed after 1 s, the last at {latest:.2f} s",
    )
    assert all(row[0] for row in found), "each process had let calls pass before"
    assert late >= 1000
    assert passed == 0


@pytest.mark.django_db
def test_in_the_process_that_revokes_it_a_key_is_dead_at_once() -> None:
    row, key = made()
    _, other = made()
    assert all(passes(shown) for shown in (key, key, key, other))
    auth.revoke(row, now=timezone.now())
    assert not passes(key)
    assert passes(other)


@pytest.mark.django_db
def test_an_expired_key_is_not_believed_any_longer() -> None:
    row, key = made()
    auth.grant(f"Bearer {key}", now=timezone.now())
    with pytest.raises(auth.NotAuthenticated, match="key_expired"):
        auth.grant(f"Bearer {key}", now=row.expires_at)


# --- asking seldom ----------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_calls_in_a_row_ask_the_database_seldom(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    row, key = made()
    token = auth.session_token(
        row, store.Subject("a", "airline"), "t", [auth.READ], until=timezone.now() + timedelta(minutes=5)
    )
    for shown in (key, token):
        with django_assert_num_queries(7) as seen:  # 1, 1, 2, 4 … calls a question
            for _ in range(100):
                assert passes(shown)
        assert all("agent_bridge_callwindow" in query["sql"] for query in seen.captured_queries)


@pytest.mark.django_db
def test_what_was_not_used_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    row, key = made()
    for _ in range(50):
        passes(key)
    monkeypatch.setattr(allowance, "BELIEVED", 0.0)
    for _ in range(3):
        passes(key)
    assert CallWindow.objects.get(name=f"key:{row.pk}").calls == 53
    assert CallWindow.objects.get(name="whole").calls == 53


def counted(taken: int, calls: int, limit: int, since: datetime = NOW) -> Counter:
    return Counter(taken, calls, since, limit)


@pytest.mark.parametrize(
    ("counter", "granted"),
    [
        (counted(1, 1, 10), 1),
        (counted(4, 10, 10), 4),
        (counted(4, 12, 10), 2),
        (counted(4, 14, 10), 0),
        (counted(4, 90, 10), 0),
    ],
)
def test_a_block_grants_what_lies_below_the_limit(counter: Counter, granted: int) -> None:
    assert counter.granted == granted


def test_blocks_shrink_towards_the_limit() -> None:
    """One process alone: each question in turn, until nothing is left."""
    limit, key = 1_000, AgentKey(expires_at=NOW + timedelta(days=1))
    held, taken, blocks = Allowance(), 0, []

    def ask(question: Question) -> Answer:
        nonlocal taken
        taken += question.want - question.unused
        blocks.append(question.want)
        return Answer(key, counted(question.want, taken, limit), counted(question.want, taken, 10 * limit))

    for _ in range(limit):
        held.call(ask, NOW)
    with pytest.raises(allowance.Exhausted):
        held.call(ask, NOW)
    assert max(blocks) <= limit / allowance.SHARE
    assert blocks[-1] == 1
    assert len(blocks) < 200


def test_the_keys_seen_longest_ago_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowance, "KEPT", 2)
    held = allowance.Allowances()
    first, second = held.of("first"), held.of("second")
    assert held.of("first") is first
    held.of("third")
    assert held.of("first") is first
    assert held.of("second") is not second


# --- limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_all_processes_together_accept_the_limit_and_no_more(figure: Figure, settings: Settings) -> None:
    limit = 2_000
    settings.BRIDGE_CALLS_PER_KEY = limit
    _, key = made()
    found = in_processes(lambda: sum(passes(key) for _ in range(limit // 2)))
    accepted, tried = sum(found), PROCESSES * (limit // 2)
    figure("K8", f"{PROCESSES} processes, limit {limit:,}: {accepted:,} of {tried:,} calls accepted")
    assert accepted <= limit * 1.01
    assert accepted >= limit * 0.97


@pytest.mark.django_db(transaction=True)
def test_a_refusal_is_remembered_until_its_minute_is_over(
    settings: Settings, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    settings.BRIDGE_CALLS_PER_KEY = 1
    _, key = made()
    now = timezone.now()
    auth.grant(f"Bearer {key}", now=now)
    with django_assert_num_queries(1):
        for _ in range(20):
            with pytest.raises(auth.TooManyCalls) as refused:
                auth.grant(f"Bearer {key}", now=now)
    assert 1 <= refused.value.retry_after <= 60
    auth.grant(f"Bearer {key}", now=now + timedelta(seconds=61))
    connection.close()
