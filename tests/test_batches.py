"""Conversations sent in batches come to the same end as those asked about one by one, whatever becomes of the batch."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from io import StringIO
from typing import Any

import anthropic
import pytest
from django.core.management import call_command

from agent_bridge import auth, batching, jobs
from agent_bridge.extraction import Turn
from agent_bridge.extraction import claude as rooms
from agent_bridge.extraction.batches import Batches
from agent_bridge.extraction.claude import Claude
from agent_bridge.models import DaySpend, ExtractionJob, JobState, MessageBatch
from memory_portal import store
from memory_portal.enums import ActorKind
from memory_portal.models import FactEvent, MemoryFact
from tests.messages_server import KEY, MessagesServer, Reply, answer, change, error, message, rate_limited, raw

CANARY = "zephyrquilt"
LATER = timedelta(hours=1)


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    with MessagesServer() as running:
        running.will(learns)
        yield running


@pytest.fixture
def batches(server: MessagesServer) -> Iterator[Batches]:
    with anthropic.Anthropic(
        api_key=KEY, base_url=server.url, timeout=30, max_retries=0, open_telemetry=False
    ) as client:
        yield Batches(Claude(client, "claude-test", "low"))


def said_in(asked: dict[str, Any]) -> list[str]:
    lines = asked["messages"][0]["content"].splitlines()
    return [json.loads(line)["said"] for line in lines if line.startswith('{"speaker":"customer"')]


def learns(asked: dict[str, Any]) -> Reply:
    """The fact of each conversation: "I always buy X tea"."""
    return answer([change(text, "tea", text.removeprefix("I ")) for text in said_in(asked)])


@pytest.fixture
def hand_over(db: None, now: datetime) -> Callable[..., ExtractionJob]:
    key, _ = auth.issue("agent", "retail", [auth.TURNS], now=now)

    def handed(name: str, *texts: str) -> ExtractionJob:
        turns = [Turn("user", text, now) for text in texts or (f"I always buy {CANARY}{name} tea",)]
        return jobs.submit(store.Subject(name, "retail"), key, turns, session_id="s", now=now, debounce=timedelta())

    return handed


def send(batches: Batches, at: datetime) -> int:
    return batching.send(clock=lambda: at, batches=batches, dice=random.Random(1))


def collect(batches: Batches, at: datetime) -> int:
    return batching.collect(clock=lambda: at, batches=batches, dice=random.Random(1))


def fresh(job: ExtractionJob) -> ExtractionJob:
    return ExtractionJob.objects.get(pk=job.pk)


def the_batch() -> str:
    return MessageBatch.objects.get().pk


def held() -> dict[str, str]:
    return dict(MemoryFact.objects.values_list("customer__subject_id", "value"))


def spent() -> int:
    return DaySpend.objects.filter(customer=None).values_list("tokens", flat=True).first() or 0


def test_waiting_conversations_go_as_one_batch_and_come_back_each_to_its_own(
    server: MessagesServer, batches: Batches, hand_over: Callable[..., ExtractionJob], now: datetime
) -> None:
    waiting = [hand_over(name) for name in ("alice", "bob", "carol")]
    assert send(batches, now) == 3
    assert send(batches, now) == 0, "they are on their way"
    assert collect(batches, now) == 0, "not answered yet"
    assert {fresh(job).state for job in waiting} == {JobState.RUNNING}
    server.finish(the_batch())
    assert collect(batches, now + LATER) == 3
    assert held() == {name: f"always buy {CANARY}{name} tea" for name in ("alice", "bob", "carol")}
    assert all((fresh(job).state, fresh(job).turns) == (JobState.DONE, []) for job in waiting)
    assert {fresh(job).cost for job in waiting} == {fresh(waiting[0]).cost}
    assert float(fresh(waiting[0]).cost) == pytest.approx((900 * 0.1 + 40 * 0.5) / 2e6)
    assert spent() == 3 * 940


def test_the_provider_learns_no_customer_and_keeps_nothing_afterwards(
    server: MessagesServer, batches: Batches, hand_over: Callable[..., ExtractionJob], now: datetime
) -> None:
    job = hand_over("alice-4711", "I always buy oolong tea")
    send(batches, now)
    batch = the_batch()
    (asked,) = server.batches[batch].requests
    assert asked["custom_id"] == f"{job.pk.hex}-1-0-1"
    assert "alice-4711" not in json.dumps(asked)
    assert set(asked["params"]) == {"model", "max_tokens", "system", "messages", "output_config"}
    server.finish(batch)
    collect(batches, now)
    assert (server.batches, MessageBatch.objects.count()) == ({}, 0)
    paths = {call.replace(batch, "ID") for call in server.calls}
    root = "/v1/messages/batches"
    assert paths == {f"POST {root}", f"GET {root}/ID", f"GET {root}/ID/results", f"DELETE {root}/ID"}, "and no files"


ERRORED = {"type": "errored", "error": {"type": "error", "error": {"type": "overloaded_error", "message": "CANARY"}}}
BAD = {"type": "errored", "error": {"type": "error", "error": {"type": "invalid_request_error", "message": "CANARY"}}}
FATES: dict[str, tuple[Any, str, str]] = {
    "expired": ({"type": "expired"}, JobState.QUEUED, "batch_expired"),
    "canceled": ({"type": "canceled"}, JobState.QUEUED, "batch_canceled"),
    "overloaded": (ERRORED, JobState.QUEUED, "overloaded"),
    "bad request": (BAD, JobState.PARKED, "bad_request"),
    "an error nobody knows": ({"type": "errored", "error": "CANARY"}, JobState.QUEUED, "provider_error"),
    "a fate nobody knows": ({"type": "eaten"}, JobState.QUEUED, "garbage"),
    "no line": (None, JobState.QUEUED, "batch_lost"),
    "no message": ({"type": "succeeded"}, JobState.QUEUED, "garbage"),
    "refusal": (message("no", stop="refusal"), JobState.PARKED, "refused"),
    "cut off": (message('{"changes": [', stop="max_tokens"), JobState.QUEUED, "cut_off"),
    "wrong shape": (message("[]"), JobState.QUEUED, "wrong_shape"),
}


@pytest.mark.parametrize(("fate", "state", "code"), FATES.values(), ids=FATES)
def test_a_result_that_is_none_is_the_job_s_outcome_and_touches_no_other_job(
    server: MessagesServer,
    batches: Batches,
    hand_over: Callable[..., ExtractionJob],
    now: datetime,
    caplog: pytest.LogCaptureFixture,
    fate: Any,
    state: str,
    code: str,
) -> None:
    caplog.set_level(logging.INFO)
    unlucky, other = hand_over("alice"), hand_over("bob")
    send(batches, now)
    server.finish(
        the_batch(), lambda asked: fate if asked["custom_id"].startswith(unlucky.pk.hex) else learns(asked["params"])
    )
    assert collect(batches, now) == 2
    assert (fresh(unlucky).state, fresh(unlucky).outcome) == (state, code)
    assert fresh(unlucky).turns, "its words wait for another try"
    assert fresh(other).state == JobState.DONE
    assert held() == {"bob": f"always buy {CANARY}bob tea"}
    assert server.batches == {}
    assert "CANARY" not in caplog.text
    assert CANARY not in caplog.text


def test_a_long_conversation_is_several_requests_and_one_outcome(
    server: MessagesServer, batches: Batches, hand_over: Callable[..., ExtractionJob], now: datetime
) -> None:
    job = hand_over("alice", "I always buy oolong tea", "word " * 9_000)
    send(batches, now)
    names = [asked["custom_id"] for asked in server.batches[the_batch()].requests]
    assert len(names) > 1
    assert {name.rsplit("-", 2)[0] for name in names} == {batching.name_of(fresh(job))}
    server.finish(
        the_batch(),
        lambda asked: answer([change("I always buy oolong tea", "tea", "always buy oolong tea")]),
    )
    collect(batches, now)
    assert (held(), fresh(job).input_tokens) == ({"alice": "always buy oolong tea"}, 900 * len(names))


def test_a_window_without_an_answer_throws_the_conversation_back(
    server: MessagesServer, batches: Batches, hand_over: Callable[..., ExtractionJob], now: datetime
) -> None:
    job = hand_over("alice", "I always buy oolong tea", "word " * 9_000)
    send(batches, now)
    first = server.batches[the_batch()].requests[0]["custom_id"]
    server.finish(the_batch(), lambda asked: None if asked["custom_id"] == first else answer([]))
    collect(batches, now)
    assert (fresh(job).state, fresh(job).outcome) == (JobState.QUEUED, "batch_lost")


def test_an_answer_that_comes_after_the_lease_fits_no_later_try(
    server: MessagesServer, batches: Batches, hand_over: Callable[..., ExtractionJob], now: datetime
) -> None:
    job = hand_over("alice")
    send(batches, now)
    old = the_batch()
    late = now + batching.LEASE
    assert jobs.sweep(late)["requeued"] == 1
    collect(batches, late)
    assert server.batches[old].status == "canceling", "nobody waits for it any more"
    assert send(batches, late) == 1
    server.finish(old)
    assert collect(batches, late) == 0
    assert held() == {}
    assert fresh(job).attempts == 2
    server.finish(the_batch())
    assert collect(batches, late) == 1
    assert FactEvent.objects.filter(kind="learned").count() == 1
    assert (server.batches, MessageBatch.objects.count()) == ({}, 0)


def test_the_lease_outlives_the_provider_s_day(
    batches: Batches, hand_over: Callable[..., ExtractionJob], now: datetime
) -> None:
    job = hand_over("alice")
    send(batches, now)
    assert jobs.sweep(now + timedelta(hours=24, minutes=30))["requeued"] == 0
    assert jobs.claim(job.pk, now + timedelta(hours=24)) is None


def test_what_the_customer_takes_back_meanwhile_is_not_learned_and_its_batch_is_cancelled(
    server: MessagesServer, batches: Batches, hand_over: Callable[..., ExtractionJob], now: datetime
) -> None:
    job = hand_over("alice")
    send(batches, now)
    batch, me = the_batch(), store.Actor(ActorKind.CUSTOMER, str(job.customer_id))
    store.clear(store.Subject("alice", "retail"), me, now=now)
    collect(batches, now)
    assert server.batches[batch].status == "canceling"
    server.finish(batch)
    collect(batches, now)
    assert (held(), fresh(job).state) == ({}, JobState.DISCARDED)
    assert (server.batches, MessageBatch.objects.count()) == ({}, 0)


@pytest.mark.parametrize("trouble", [rate_limited(40), error(400, "invalid_request_error"), raw(b"{}"), raw(b"[")])
def test_a_batch_that_is_not_taken_sends_its_jobs_back_to_wait(
    server: MessagesServer,
    batches: Batches,
    hand_over: Callable[..., ExtractionJob],
    now: datetime,
    trouble: Reply,
) -> None:
    waiting = [hand_over("alice"), hand_over("bob")]
    server.trouble = [trouble]
    assert send(batches, now) == 0
    assert {fresh(job).state for job in waiting} == {JobState.QUEUED}
    assert all(fresh(job).run_after > now for job in waiting)
    assert (MessageBatch.objects.count(), spent()) == (0, 0)
    at = now + LATER
    assert send(batches, at) == 2
    server.finish(the_batch())
    assert collect(batches, at) == 2


def test_a_provider_that_cannot_be_asked_keeps_the_jobs_waiting_and_one_that_lost_the_batch_does_not(
    server: MessagesServer, batches: Batches, hand_over: Callable[..., ExtractionJob], now: datetime
) -> None:
    job = hand_over("alice")
    send(batches, now)
    for trouble in (error(500, "api_error"), raw(b"null"), rate_limited(3)):
        server.trouble = [trouble]
        assert collect(batches, now) == 0
        assert fresh(job).state == JobState.RUNNING
    server.batches.clear()
    assert collect(batches, now) == 1
    assert (fresh(job).state, fresh(job).outcome) == (JobState.QUEUED, "batch_lost")
    assert not MessageBatch.objects.exists()


def test_a_batch_that_cannot_be_deleted_yet_is_deleted_the_next_time(
    server: MessagesServer, batches: Batches, hand_over: Callable[..., ExtractionJob], now: datetime
) -> None:
    hand_over("alice")
    send(batches, now)
    batch = server.batches[the_batch()]
    server.finish(batch.id)
    shown = server._shown(batch)
    lines = server._batches("GET", f"/v1/messages/batches/{batch.id}/results", {})
    server.trouble = [shown, shown, lines, error(500, "api_error")]
    assert collect(batches, now) == 1
    assert MessageBatch.objects.count() == 1
    assert collect(batches, now) == 0
    assert (server.batches, MessageBatch.objects.count()) == ({}, 0)
    assert spent() == 940, "settled once"


def test_what_a_batch_may_cost_is_reserved_while_it_is_away(
    server: MessagesServer, batches: Batches, hand_over: Callable[..., ExtractionJob], now: datetime, settings: Any
) -> None:
    settings.EXTRACTION_DAY_TOKENS = 1
    first, second = hand_over("alice"), hand_over("bob")
    assert send(batches, now) == 1
    assert {fresh(first).outcome, fresh(second).outcome} == {"", "day_spent"}
    assert spent() == ExtractionJob.objects.get(state=JobState.RUNNING).reserved_tokens > 940
    server.finish(the_batch())
    collect(batches, now + timedelta(days=1))
    assert spent() == 940, "in the place of the reservation, on its day"


def test_in_batch_mode_no_bell_is_rung_and_work_jobs_sends_and_collects(
    server: MessagesServer, hand_over: Callable[..., ExtractionJob], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ANTHROPIC_API_KEY, settings.ANTHROPIC_BASE_URL, settings.EXTRACTOR = KEY, server.url, "claude"
    settings.MESSAGE_BATCHES = True
    rooms._client.cache_clear()
    rung: list[object] = []
    monkeypatch.setattr(jobs.app, "send_task", lambda *arguments, **_: rung.append(arguments))
    job = hand_over("alice")
    jobs.ring(job.pk)
    assert rung == []
    for expected in (0, 1):
        out = StringIO()
        call_command("work_jobs", until_empty=True, stdout=out)
        assert f"{expected} conversations read" in out.getvalue()
        if not expected:
            server.finish(the_batch())
    rooms._client().close()
    rooms._client.cache_clear()
    assert fresh(job).state == JobState.DONE
