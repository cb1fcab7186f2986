"""A conversation handed over is read exactly once, in order, or not at all when the customer does not want it: whatever dies."""

from __future__ import annotations

import base64
import json
import logging
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from celery import Celery
from django.conf import settings
from django.db import connection, connections, transaction
from django.test import Client
from django.urls import reverse

from agent_bridge import auth, jobs, reading
from agent_bridge.celery import app, transport_options
from agent_bridge.extraction import Extraction, ExtractionFailed, ExtractionRequest, Turn
from agent_bridge.extraction.explicit import Explicit
from agent_bridge.models import AgentKey, ExtractionJob, JobState
from memory_portal import store
from memory_portal.enums import ActorKind, ChangeAction, Reason
from memory_portal.models import Customer, FactEvent, MemoryFact
from tests.live import free_port
from tests.messages_server import KEY, MessagesServer, answer, change, hang

SUBJECT = store.Subject("alice-1", "airline")
CANARY = "zephyrquilt"
AISLE = "I always take an aisle seat."
SECOND = timedelta(seconds=1)


class Says:
    """An extractor with a fixed answer, which may do something while it reads."""

    def __init__(self, *candidates: store.Candidate, failure: ExtractionFailed | None = None, tokens: int = 0) -> None:
        self.answer = Extraction("stub", "v1", candidates, failure=failure, input_tokens=tokens, output_tokens=tokens)
        self.meanwhile: Callable[[], object] = lambda: None
        self.asked: list[ExtractionRequest] = []

    def extract(self, request: ExtractionRequest) -> Extraction:
        self.asked.append(request)
        self.meanwhile()
        return self.answer

    def tokens_at_most(self, request: ExtractionRequest) -> int:
        return self.answer.input_tokens + self.answer.output_tokens


class Breaks:
    """An extractor with a fault, whose message holds what the customer said."""

    def extract(self, request: ExtractionRequest) -> Extraction:
        raise RuntimeError(f"cannot read {request.turns[0].text}")

    def tokens_at_most(self, request: ExtractionRequest) -> int:
        return 0


def aisle(quote: str = "I always take an aisle seat", value: str = "always take an aisle seat") -> store.Candidate:
    return store.Candidate(ChangeAction.REMEMBER, "seat_preference", value, "preference", quote)


@pytest.fixture
def key(db: None, now: datetime) -> AgentKey:
    return auth.issue("Clearsky Concierge", "airline", auth.SCOPES, now=now - timedelta(days=1))[0]


@pytest.fixture
def hand_over(key: AgentKey, now: datetime) -> Callable[..., ExtractionJob]:
    def handed(
        *texts: str, at: datetime = now, session: str = "s-1", debounce: float = 0, **more: Any
    ) -> ExtractionJob:
        turns = [Turn("user", text, at) for text in texts or (AISLE,)]
        arguments: dict[str, Any] = {"subject": SUBJECT, "key": key} | more
        return jobs.submit(
            arguments["subject"],
            arguments["key"],
            turns,
            session_id=session,
            now=at,
            debounce=timedelta(seconds=debounce),
        )

    return handed


def fresh(job: ExtractionJob) -> ExtractionJob:
    return ExtractionJob.objects.get(pk=job.pk)


def customer() -> Customer:
    return Customer.objects.get(subject_id=SUBJECT.subject_id)


def themselves() -> store.Actor:
    return store.Actor(ActorKind.CUSTOMER, str(customer().pk))


def values(now: datetime) -> dict[str, str]:
    return {fact.key: fact.value for fact in store.facts(customer(), now=now)}


def run(job: ExtractionJob, now: datetime, extractor: Any = None) -> str | None:
    return reading.run(job.pk, clock=lambda: now, extractor=extractor or Explicit(), dice=random.Random(7))


# --- handing over -----------------------------------------------------------------------------------------------------


def test_a_conversation_handed_over_becomes_a_fact_with_its_source(
    hand_over: Callable[..., ExtractionJob], now: datetime
) -> None:
    job = hand_over()
    assert (job.state, job.generation, job.agent) == (JobState.QUEUED, 0, "Clearsky Concierge")
    assert run(job, now) == JobState.DONE
    fact = MemoryFact.objects.get()
    assert (fact.key, fact.value) == ("seat_preference", "always take an aisle seat")
    assert fact.source_quote == "I always take an aisle seat"
    assert fact.source_session_id == store.session_tag("s-1")
    assert (fact.agent, fact.extractor, fact.said_at) == ("Clearsky Concierge", "explicit (offline)", now)


def test_when_a_job_ends_its_words_are_gone_and_counts_stay(
    hand_over: Callable[..., ExtractionJob], now: datetime
) -> None:
    job = hand_over()
    run(job, now, Says(aisle(), aisle(quote="never said"), tokens=12))
    ended = fresh(job)
    assert (ended.turns, ended.finished_at, ended.lease_until) == ([], now, None)
    assert ended.counts == {"learned": 1, "refused/no_quote": 1}
    assert (ended.extractor, ended.prompt_version, ended.input_tokens, ended.output_tokens) == ("stub", "v1", 12, 12)


@pytest.mark.parametrize(
    ("forbid", "reason"),
    [
        (lambda c, a, now: store.pause(c, "learning", a, now=now), Reason.LEARNING_PAUSED),
        (lambda c, a, now: store.choose(c, {"no_learn_agents": ["Clearsky Concierge"]}, a, now=now), Reason.AGENT_OFF),
        (
            lambda c, a, now: store.choose(
                c, {"no_learn_categories": list(store.current_policy().categories)}, a, now=now
            ),
            Reason.CATEGORY_OFF,
        ),
    ],
)
def test_a_customer_who_wants_no_learning_has_nothing_kept(
    hand_over: Callable[..., ExtractionJob], now: datetime, forbid: Callable[..., None], reason: Reason
) -> None:
    waiting = hand_over(session="before")
    forbid(customer().pk, themselves(), now)
    with pytest.raises(store.MemoryWriteRejected) as refused:
        hand_over()
    assert refused.value.reason is reason
    assert ExtractionJob.objects.count() == 1
    assert run(waiting, now) in (JobState.DISCARDED, None), "what waited before is not read either"
    assert fresh(waiting).turns == []


def test_with_memory_off_nothing_is_kept(key: AgentKey, now: datetime, settings: Any, tmp_path: Path) -> None:
    policy = Path(settings.MEMORY_POLICY).read_text().replace("memory = true", "memory = false")
    settings.MEMORY_POLICY = tmp_path / "off.toml"
    settings.MEMORY_POLICY.write_text(policy)
    with pytest.raises(store.MemoryDisabled):
        jobs.submit(SUBJECT, key, [Turn("user", AISLE, now)], session_id="s", now=now)
    assert not Customer.objects.exists()
    assert not ExtractionJob.objects.exists()


def test_memory_switched_off_meanwhile_discards_the_job_unread(
    hand_over: Callable[..., ExtractionJob], now: datetime, settings: Any, tmp_path: Path
) -> None:
    job = hand_over()
    policy = Path(settings.MEMORY_POLICY).read_text().replace("memory = true", "memory = false")
    settings.MEMORY_POLICY = tmp_path / "off.toml"
    settings.MEMORY_POLICY.write_text(policy)
    extractor = Says(aisle())
    assert run(job, now, extractor) == JobState.DISCARDED
    assert (extractor.asked, fresh(job).turns) == ([], [])


def test_characters_the_database_cannot_hold_do_not_lose_the_turn(
    hand_over: Callable[..., ExtractionJob], now: datetime
) -> None:
    job = hand_over("I always take\x00 an aisle\ud800 seat.")
    run(job, now)
    assert values(now) == {"seat_preference": "always take an aisle seat"}


# --- debounce ---------------------------------------------------------------------------------------------------------


def said(job: ExtractionJob) -> list[str]:
    return [turn["text"] for turn in fresh(job).turns]


def test_turns_of_one_session_join_the_waiting_job_in_order(
    hand_over: Callable[..., ExtractionJob], now: datetime
) -> None:
    first = hand_over("one", debounce=20)
    again = hand_over("two", at=now + 10 * SECOND, debounce=20)
    assert again.pk == first.pk
    assert said(first) == ["one", "two"]
    assert fresh(first).run_after == now + 30 * SECOND
    assert run(first, now + 29 * SECOND) is None, "not before the window is over"
    assert run(first, now + 30 * SECOND) == JobState.DONE


def test_a_session_that_never_pauses_is_read_all_the_same(
    hand_over: Callable[..., ExtractionJob], now: datetime
) -> None:
    first = hand_over("0", debounce=20)
    for number in range(1, 12):
        hand_over(str(number), at=now + 10 * number * SECOND, debounce=20)
    assert fresh(first).run_after == now + jobs.WINDOWS * 20 * SECOND
    late = hand_over("late", at=now + (jobs.WINDOWS * 20 + 1) * SECOND, debounce=20)
    assert late.pk != first.pk


def test_turns_posted_twice_stand_in_the_job_once(hand_over: Callable[..., ExtractionJob], now: datetime) -> None:
    first = hand_over("one", "two", debounce=20)
    hand_over("one", "two", debounce=20)
    assert said(first) == ["one", "two"]


def test_other_sessions_other_keys_and_begun_jobs_are_not_joined(
    hand_over: Callable[..., ExtractionJob], now: datetime
) -> None:
    first = hand_over("one", debounce=20)
    other_key = auth.issue("Another", "airline", auth.SCOPES, now=now)[0]
    assert hand_over("two", session="s-2", debounce=20).pk != first.pk
    assert hand_over("two", key=other_key, debounce=20).pk != first.pk
    assert hand_over("two", session="", debounce=20).pk != hand_over("two", session="", debounce=20).pk
    jobs.claim(first.pk, now + 20 * SECOND)
    assert hand_over("two", at=now + 20 * SECOND, debounce=20).pk != first.pk


# --- claiming ---------------------------------------------------------------------------------------------------------


def test_of_two_claims_one_succeeds(hand_over: Callable[..., ExtractionJob], now: datetime) -> None:
    job = hand_over()
    assert jobs.claim(job.pk, now) is not None
    assert jobs.claim(job.pk, now) is None


def test_a_claim_whose_lease_ran_out_is_given_to_another(
    hand_over: Callable[..., ExtractionJob], now: datetime
) -> None:
    job = hand_over()
    jobs.claim(job.pk, now)
    assert jobs.claim(job.pk, now + jobs.lease() - SECOND) is None
    again = jobs.claim(job.pk, now + jobs.lease())
    assert again is not None
    assert again.attempts == 2


def test_a_slow_worker_whose_job_was_given_away_writes_nothing(
    hand_over: Callable[..., ExtractionJob], now: datetime
) -> None:
    job = hand_over()
    slow = Says(aisle())
    later = now + jobs.lease()
    slow.meanwhile = lambda: reading.run(
        job.pk, clock=lambda: later, extractor=Says(aisle(value="always take an aisle"))
    )
    assert run(job, now, slow) == JobState.DONE
    assert values(now) == {"seat_preference": "always take an aisle"}
    assert FactEvent.objects.filter(kind="learned").count() == 1
    assert fresh(job).attempts == 2


def test_a_requeued_job_is_not_settled_by_its_former_worker(
    hand_over: Callable[..., ExtractionJob], now: datetime
) -> None:
    job = hand_over()
    slow = Says(aisle())
    slow.meanwhile = lambda: jobs.sweep(now + jobs.lease(), ring_bells=False)
    assert run(job, now, slow) == JobState.QUEUED
    assert values(now) == {}


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_once_read_a_job_once(hand_over: Callable[..., ExtractionJob], now: datetime) -> None:
    job = hand_over()
    extractor, together, came = Says(aisle()), threading.Barrier(2), []

    def work() -> None:
        together.wait()
        came.append(run(job, now, extractor))
        connections.close_all()

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(came, key=str) == [None, JobState.DONE]
    assert len(extractor.asked) == 1


def test_a_request_to_forget_does_not_overtake_the_conversation_it_is_about(
    hand_over: Callable[..., ExtractionJob], now: datetime
) -> None:
    first = hand_over()
    second = hand_over("Please forget my seat preference.", at=now + SECOND, session="s-2")
    at = now + 2 * SECOND
    run(first, at, Says(failure=ExtractionFailed("overloaded")))
    assert jobs.claim(second.pk, at) is None, "the earlier one waits for its second try"
    reading.drain(clock=lambda: at + timedelta(minutes=5), extractor=Explicit())
    assert fresh(second).counts == {"forgotten": 1}
    assert values(at) == {}


def test_one_customer_s_trouble_holds_up_nobody_else(hand_over: Callable[..., ExtractionJob], now: datetime) -> None:
    poison = hand_over()
    other = hand_over(subject=store.Subject("bob-1", "airline"), session="b")
    run(poison, now, Says(failure=ExtractionFailed("garbage")))
    assert run(other, now) == JobState.DONE


# --- failing ----------------------------------------------------------------------------------------------------------


def test_a_failed_try_waits_in_the_row_and_longer_each_time(
    hand_over: Callable[..., ExtractionJob], now: datetime
) -> None:
    job, at, waits = hand_over(), now, []
    for _ in range(jobs.TRIES - 1):
        assert run(job, at, Says(failure=ExtractionFailed("overloaded"), tokens=3)) == JobState.QUEUED
        assert run(job, at) is None
        waits.append((fresh(job).run_after - at).total_seconds())
        at = fresh(job).run_after
    assert all(5 * 2**n <= wait <= 5 * 2**n * (1 + jobs.JITTER) for n, wait in enumerate(waits))
    assert fresh(job).turns, "the words stay for the next try"
    assert run(job, at, Says(failure=ExtractionFailed("overloaded"), tokens=3)) == JobState.PARKED
    assert (fresh(job).outcome, fresh(job).input_tokens) == ("overloaded", 3 * jobs.TRIES)


def test_jitter_spreads_and_a_seed_repeats_it() -> None:
    spread = {jobs.wait(1, None, random.Random(seed)) for seed in range(20)}
    assert len(spread) == 20
    assert jobs.wait(3, None, random.Random(5)) == jobs.wait(3, None, random.Random(5))


@pytest.mark.parametrize(
    ("asked", "least", "most"), [(60, 60, 75), (0.5, 5, 6.25), (86_400, 900, 900), (float("1e300"), 900, 900)]
)
def test_retry_after_is_obeyed_up_to_a_cap(asked: float, least: float, most: float) -> None:
    waited = jobs.wait(1, asked, random.Random(1)).total_seconds()
    assert least <= waited <= most


def test_what_cannot_get_better_is_parked_at_once(hand_over: Callable[..., ExtractionJob], now: datetime) -> None:
    job = hand_over()
    assert run(job, now, Says(failure=ExtractionFailed("refused", transient=False))) == JobState.PARKED
    assert fresh(job).attempts == 1


def test_a_parked_job_may_be_tried_again_while_its_words_last(
    hand_over: Callable[..., ExtractionJob], now: datetime
) -> None:
    job = hand_over()
    run(job, now, Says(failure=ExtractionFailed("refused", transient=False)))
    assert jobs.sweep(now + jobs.KEEP_PARKED - SECOND)["wiped"] == 0
    assert jobs.retry(fresh(job), now)
    assert run(job, now) == JobState.DONE


def test_words_of_a_parked_job_are_wiped_after_a_day(hand_over: Callable[..., ExtractionJob], now: datetime) -> None:
    job = hand_over()
    run(job, now, Says(failure=ExtractionFailed("refused", transient=False)))
    assert jobs.sweep(now + jobs.KEEP_PARKED)["wiped"] == 1
    assert fresh(job).turns == []
    assert not jobs.retry(fresh(job), now)


def test_a_fault_in_an_extractor_ends_as_a_code_and_tells_nothing(
    hand_over: Callable[..., ExtractionJob], now: datetime, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    job = hand_over(f"I always buy {CANARY}.")
    assert run(job, now, Breaks()) == JobState.QUEUED
    assert fresh(job).outcome == "internal_error"
    assert CANARY not in caplog.text
    assert CANARY not in json.dumps(fresh(job).counts)


def test_no_value_is_logged_on_the_way_to_a_fact(
    hand_over: Callable[..., ExtractionJob], now: datetime, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="agent_bridge")
    job = hand_over(f"I always buy {CANARY} tea.")
    run(job, now)
    assert CANARY in str(values(now))
    assert "'extractor': 'explicit (offline)'" in caplog.text
    assert CANARY not in caplog.text


def test_a_job_without_a_word_of_the_customer_asks_no_extractor(key: AgentKey, now: datetime) -> None:
    turns = [Turn("assistant", AISLE, now)]
    job = jobs.submit(SUBJECT, key, turns, session_id="s", now=now, debounce=timedelta())
    extractor = Says(aisle())
    assert run(job, now, extractor) == JobState.DONE
    assert (fresh(job).outcome, extractor.asked) == ("nothing_said", [])


# --- the doorbell and the sweep ---------------------------------------------------------------------------------------


@pytest.fixture
def bell() -> Iterator[Path]:
    folder = Path(app.conf.broker_transport_options["data_folder_in"])
    for message in folder.iterdir():
        message.unlink()
    yield folder
    for message in folder.iterdir():
        message.unlink()


Commits = Callable[..., Any]


def test_the_message_holds_the_job_s_id_and_nothing_else(
    hand_over: Callable[..., ExtractionJob], bell: Path, django_capture_on_commit_callbacks: Commits
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        job = hand_over(f"I always buy {CANARY}.")
    (message,) = bell.iterdir()
    envelope = json.loads(message.read_text())
    arguments, named, _ = json.loads(base64.b64decode(envelope["body"]))
    assert (arguments, named) == ([str(job.pk)], {})
    assert CANARY not in message.read_text() + base64.b64decode(envelope["body"]).decode()
    assert SUBJECT.subject_id not in message.read_text()


def test_a_broker_that_is_gone_does_not_fail_the_hand_over(
    hand_over: Callable[..., ExtractionJob],
    bell: Path,
    now: datetime,
    django_capture_on_commit_callbacks: Commits,
    caplog: pytest.LogCaptureFixture,
) -> None:
    away = bell.rename(bell.with_name("away"))
    try:
        with django_capture_on_commit_callbacks(execute=True):
            job = hand_over()
    finally:
        away.rename(bell)
    assert "job_no_doorbell" in caplog.text
    with django_capture_on_commit_callbacks(execute=True):
        assert jobs.sweep(now + jobs.RING_AGAIN)["rung"] == 1
    assert len(list(bell.iterdir())) == 1
    assert run(job, now) == JobState.DONE


def test_a_hand_over_does_not_wait_for_a_redis_that_is_gone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    address = f"redis://127.0.0.1:{free_port()}/0"
    alone = Celery("alone", broker=address, set_as_current=False)
    alone.conf.update(broker_transport_options=transport_options(address), broker_connection_timeout=2)
    monkeypatch.setattr(jobs, "app", alone)
    started = time.monotonic()
    for _ in range(3):
        jobs.ring(UUID(int=0))
    assert time.monotonic() - started < 2, (
        "less than one time-out, on a busy machine, too; retries alone would take six"
    )
    assert caplog.text.count("no_doorbell") == 3
    alone.close()


def test_the_sweep_rings_once_for_a_while(
    hand_over: Callable[..., ExtractionJob], bell: Path, now: datetime, django_capture_on_commit_callbacks: Commits
) -> None:
    hand_over(debounce=20)
    assert jobs.sweep(now)["rung"] == 0, "not due"
    due = now + 20 * SECOND
    assert [jobs.sweep(due)["rung"], jobs.sweep(due)["rung"], jobs.sweep(due + jobs.RING_AGAIN)["rung"]] == [1, 0, 1]


def test_the_sweep_takes_back_what_a_dead_worker_held(
    hand_over: Callable[..., ExtractionJob], bell: Path, now: datetime
) -> None:
    job = hand_over()
    jobs.claim(job.pk, now)
    assert jobs.sweep(now + jobs.lease() - SECOND)["requeued"] == 0
    swept = jobs.sweep(now + jobs.lease())
    assert (swept["requeued"], swept["rung"]) == (1, 1)
    assert run(job, now + jobs.lease()) == JobState.DONE


def test_what_a_dead_worker_left_goes_before_those_whose_bell_stood_in_front(
    hand_over: Callable[..., ExtractionJob], bell: Path, now: datetime
) -> None:
    left, waiting = hand_over(), hand_over(subject=store.Subject("somebody-else", SUBJECT.profile))
    jobs.claim(left.pk, now)
    at = now + jobs.lease()
    assert reading.answer_bell(waiting.pk, clock=lambda: at - SECOND) == JobState.DONE, (
        "while it is being read, nobody waits for it"
    )
    late = hand_over(subject=store.Subject("another", SUBJECT.profile))
    assert reading.answer_bell(late.pk, clock=lambda: at) == JobState.DONE
    assert (fresh(left).state, fresh(late).state) == (JobState.DONE, JobState.QUEUED)
    assert len(list(bell.iterdir())) == 1, "whose turn was taken is rung for again"
    assert reading.answer_bell(late.pk, clock=lambda: at) == JobState.DONE
    assert fresh(late).state == JobState.DONE


def test_a_job_that_kills_its_worker_is_parked_after_five_tries(
    hand_over: Callable[..., ExtractionJob], bell: Path, now: datetime
) -> None:
    job, at = hand_over(), now
    for _ in range(jobs.TRIES):
        assert jobs.claim(job.pk, at) is not None
        at += jobs.lease()
        jobs.sweep(at)
    assert (fresh(job).state, fresh(job).outcome) == (JobState.PARKED, "lease_lost")
    assert jobs.claim(job.pk, at) is None


def test_the_worker_finds_its_tasks_by_the_names_in_the_messages() -> None:
    app.loader.import_default_modules()
    assert {"agent_bridge.run_job", "agent_bridge.sweep", "agent_bridge.retention"} <= set(app.tasks)
    assert {entry["task"] for entry in app.conf.beat_schedule.values()} <= set(app.tasks)
    assert app.conf.task_time_limit < jobs.lease().total_seconds()


# --- what the customer takes back -------------------------------------------------------------------------------------


def test_forgetting_everything_discards_waiting_and_parked_jobs_and_says_how_many(
    hand_over: Callable[..., ExtractionJob], now: datetime
) -> None:
    parked = hand_over()
    run(parked, now, Says(failure=ExtractionFailed("refused", transient=False)))
    waiting = hand_over(session="s-2")
    receipt = store.clear(SUBJECT, themselves(), now=now)
    assert receipt.counts["conversations"] == 2
    ended = {(fresh(job).state, str(fresh(job).turns), fresh(job).finished_at) for job in (parked, waiting)}
    assert ended == {(JobState.DISCARDED, "[]", now)}


@pytest.mark.parametrize("what", ["clear", "pause"])
def test_a_job_that_runs_while_the_customer_takes_it_back_writes_nothing(
    hand_over: Callable[..., ExtractionJob], now: datetime, what: str
) -> None:
    job = hand_over()
    extractor = Says(aisle())
    extractor.meanwhile = (
        (lambda: store.clear(SUBJECT, themselves(), now=now))
        if what == "clear"
        else (lambda: store.pause(customer().pk, "learning", themselves(), now=now))
    )
    assert run(job, now, extractor) == JobState.DISCARDED
    assert values(now) == {}
    assert fresh(job).turns == []


def test_a_forgotten_fact_s_words_are_blanked_in_waiting_conversations(
    hand_over: Callable[..., ExtractionJob], now: datetime
) -> None:
    run(hand_over(), now)
    waiting = hand_over(f"As I said, i always take\n an AISLE seat. I prefer {CANARY}.", session="s-2")
    fact = store.facts(customer(), now=now)[0]
    store.forget(customer().pk, [fact.id], themselves(), now=now)
    (left,) = said(waiting)
    assert "aisle" not in left.lower()
    assert CANARY in left, "what is not forgotten is still read"


def test_blanking_a_short_value_spares_other_words(hand_over: Callable[..., ExtractionJob], now: datetime) -> None:
    assert jobs._blanked("size 11 of 2011, M for Madrid", [jobs._needle("11"), jobs._needle("M")]) == (
        "size … of 2011, … for Madrid"
    )


def test_an_extractor_is_told_the_names_of_what_was_forgotten_and_no_value(
    hand_over: Callable[..., ExtractionJob], now: datetime
) -> None:
    run(hand_over(), now)
    store.forget(customer().pk, [store.facts(customer(), now=now)[0].id], themselves(), now=now)
    extractor = Says()
    run(hand_over("I like tea.", session="s-2"), now, extractor)
    (asked,) = extractor.asked
    assert (asked.forgotten_keys, asked.held) == (("seat_preference",), ())
    assert "aisle" not in repr(asked)


# --- staff ------------------------------------------------------------------------------------------------------------


def test_staff_see_a_job_but_no_word_of_it_and_may_retry_it(
    hand_over: Callable[..., ExtractionJob], now: datetime, staff: Client
) -> None:
    job = hand_over(f"I always buy {CANARY}.")
    run(job, now, Says(failure=ExtractionFailed("refused", transient=False)))
    listing = reverse("admin:agent_bridge_extractionjob_changelist")
    for page in (listing, reverse("admin:agent_bridge_extractionjob_change", args=[job.pk])):
        shown = staff.get(page).content.decode()
        assert "refused" in shown
        assert CANARY not in shown
    staff.post(listing, {"action": "retry", "_selected_action": [str(job.pk)]})
    assert fresh(job).state == JobState.QUEUED
    staff.post(listing, {"action": "drop", "_selected_action": [str(job.pk)]})
    assert (fresh(job).state, fresh(job).turns) == (JobState.DISCARDED, [])


def test_a_key_made_in_the_admin_is_shown_once_and_works(staff: Client, now: datetime) -> None:
    asked = {"name": "New agent", "profile": "retail", "scopes": [auth.READ, auth.TURNS], "days": 30}
    page = staff.post(reverse("admin:agent_bridge_agentkey_add"), asked, follow=True).content.decode()
    row = AgentKey.objects.get(name="New agent")
    secret = auth.KEY_LIKE.search(page)
    assert secret is not None
    assert auth.grant(f"Bearer {secret[0]}", now=row.created_at).key == row
    again = staff.get(reverse("admin:agent_bridge_agentkey_change", args=[row.pk])).content.decode()
    assert secret[0] not in again
    staff.post(
        reverse("admin:agent_bridge_agentkey_changelist"), {"action": "revoke", "_selected_action": [str(row.pk)]}
    )
    row.refresh_from_db()
    assert row.revoked_at is not None


# --- death ------------------------------------------------------------------------------------------------------------


def database_url() -> str:
    named = connection.settings_dict
    host = named["HOST"] or (named.get("OPTIONS") or {}).get("host", "")
    at = f"{named['USER']}:{named['PASSWORD']}@" if named["PASSWORD"] else f"{named['USER']}@"
    if str(host).startswith("/"):
        return f"postgresql://{at}/{named['NAME']}?host={host}"
    return f"postgresql://{at}{host}:{named['PORT']}/{named['NAME']}"


def worker(server: MessagesServer) -> subprocess.Popen[bytes]:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC", "DJANGO"))},
        "DATABASE_URL": database_url(),
        "VAR_DIR": str(settings.VAR),
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": server.url,
        "EXTRACTOR": "claude",
    }
    return subprocess.Popen(
        [sys.executable, "manage.py", "work_jobs", "--until-empty"],
        cwd=settings.BASE_DIR,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def kill_9(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def after_the_lease(job: ExtractionJob) -> None:
    """As if that much time had gone by."""
    ExtractionJob.objects.filter(pk=job.pk).update(lease_until=job.created_at)


def finishes_once(job: ExtractionJob, server: MessagesServer, attempts: int) -> None:
    second = worker(server)
    _, errors = second.communicate(timeout=60)
    assert second.returncode == 0, errors
    assert CANARY not in errors.decode()
    ended = fresh(job)
    assert (ended.state, ended.attempts, ended.turns) == (JobState.DONE, attempts, [])
    assert list(MemoryFact.objects.values_list("key", "value")) == [("tea", f"always buy {CANARY} tea")]
    assert FactEvent.objects.filter(kind="learned").count() == 1


TEA = change(f"I always buy {CANARY} tea", "tea", f"always buy {CANARY} tea")


@pytest.mark.live
@pytest.mark.django_db(transaction=True)
def test_a_worker_killed_while_the_model_thinks_loses_and_doubles_nothing(
    hand_over: Callable[..., ExtractionJob],
) -> None:
    job = hand_over(f"I always buy {CANARY} tea.")
    with MessagesServer() as server:
        server.will(hang(), answer([TEA]))
        first = worker(server)
        assert server.asked.wait(60)
        kill_9(first)
        assert fresh(job).state == JobState.RUNNING
        after_the_lease(job)
        finishes_once(job, server, attempts=2)


@pytest.mark.live
@pytest.mark.django_db(transaction=True)
def test_a_worker_killed_before_its_commit_loses_and_doubles_nothing(
    hand_over: Callable[..., ExtractionJob],
) -> None:
    job = hand_over(f"I always buy {CANARY} tea.")
    with MessagesServer() as server:
        server.will(answer([TEA]))
        with transaction.atomic():
            Customer.objects.select_for_update().get()
            first = worker(server)
            assert server.asked.wait(60)
            while not somebody_waits_for_the_customer():
                assert first.poll() is None
            kill_9(first)
        while somebody_waits_for_the_customer():
            pass
        assert not MemoryFact.objects.exists()
        after_the_lease(job)
        finishes_once(job, server, attempts=2)


def somebody_waits_for_the_customer() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return bool(cursor.fetchone()[0])


@pytest.mark.live
@pytest.mark.django_db(transaction=True)
def test_a_worker_started_again_after_the_commit_has_nothing_left_to_do(
    hand_over: Callable[..., ExtractionJob],
) -> None:
    job = hand_over(f"I always buy {CANARY} tea.")
    with MessagesServer() as server:
        server.will(answer([TEA]))
        finishes_once(job, server, attempts=1)
        finishes_once(job, server, attempts=1)
        assert len(server.requests) == 1
