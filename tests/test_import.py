"""Bringing facts along: each line passes the rules of any write, is decided once whatever dies, and leaves nothing behind."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from agent_bridge import auth, imports
from agent_bridge.models import AgentKey, Import, ImportLine, JobState
from memory_portal import store
from memory_portal.enums import ActorKind, Origin, Reason
from memory_portal.models import FactEvent, FactRevision, MemoryFact, Proposal

pytestmark = pytest.mark.django_db

Agent = Callable[..., Client]
CUSTOMER = store.Actor(ActorKind.CUSTOMER, "c")
CANARY = "zebra-canary-4711"
NDJSON = "application/x-ndjson"


def line(subject: str = "alice", key: str = "seat", value: str = "the aisle", **more: Any) -> dict[str, Any]:
    return {"subject_id": subject, "key": key, "value": value, "category": "preference", **more}


def brought(client: Client, *lines: dict[str, Any] | str, **headers: str) -> Any:
    body = "\n".join(said if isinstance(said, str) else json.dumps(said, ensure_ascii=False) for said in lines)
    return client.generic("POST", "/bridge/v1/import", body.encode(), NDJSON, headers=headers)


def accepted(client: Client, *lines: dict[str, Any] | str, **headers: str) -> str:
    answer = brought(client, *lines, **headers)
    assert answer.status_code == 202, answer.content
    return str(answer.json()["import_id"])


def worked(client: Client, *lines: dict[str, Any] | str) -> list[tuple[int, str, str | None]]:
    """Bring, work off, and what became of each line."""
    job = accepted(client, *lines)
    assert imports.run(job) == JobState.DONE
    return report(client, job)


def report(client: Client, job: str, query: str = "") -> list[tuple[int, str, str | None]]:
    answer = client.get(f"/bridge/v1/imports/{job}/report{query}")
    assert (answer.status_code, answer["Content-Type"]) == (200, NDJSON)
    told = [json.loads(row) for row in answer.content.splitlines()]
    assert all(set(row) == {"line", "decision", "reason", "field"} for row in told)
    return [(row["line"], row["decision"], row["reason"]) for row in told]


def progress(client: Client, job: str) -> dict[str, Any]:
    told: dict[str, Any] = client.get(f"/bridge/v1/imports/{job}").json()
    return told


def held(subject: str = "alice") -> dict[str, str]:
    facts = MemoryFact.objects.filter(customer__subject_id=subject, customer__profile="airline")
    return dict(facts.values_list("key", "value"))


def pk(subject: str = "alice") -> int:
    customer = store.find(store.Subject(subject, "airline"))
    assert customer
    return customer.pk


def writes(key: str, value: str, subject: str = "alice") -> store.Fact:
    now = timezone.now()
    draft = store.draft(key=key, value=value, category="preference", origin=Origin.CUSTOMER, said_at=now, now=now)
    fact = store.submit(store.Subject(subject, "airline"), [draft], CUSTOMER, now=now)[0].fact
    assert fact
    return fact


# --- what comes in ----------------------------------------------------------------------------------------------------


def test_lines_become_facts_and_a_report(agent: Agent) -> None:
    client = agent()
    job = accepted(client, line(), line("bob", "meal", "fish"), line("alice", "luggage", "hand luggage only"))
    before = progress(client, job)
    assert (before["state"], before["lines"], before["decided"], before["counts"]) == ("queued", 3, 0, {})
    assert report(client, job) == []
    assert imports.run(job) == JobState.DONE
    assert held() == {"seat": "the aisle", "luggage": "hand luggage only"}
    assert held("bob") == {"meal": "fish"}
    after = progress(client, job)
    assert (after["state"], after["decided"], after["counts"]) == ("done", 3, {"learned": 3})
    assert report(client, job) == [(1, "learned", None), (2, "learned", None), (3, "learned", None)]


def test_it_is_written_as_the_agent_with_its_own_times(agent: Agent) -> None:
    said, updated = timezone.now() - timedelta(days=40), timezone.now() - timedelta(days=20)
    worked(
        agent(),
        line(said_at=said.isoformat(), updated_at=updated.isoformat(), session_id="s-1"),
        line(key="meal", value="fish", updated_at=updated.isoformat(), source_session_id="0123456789ab"),
        line(key="luggage", value="two bags", said_at=(timezone.now() + timedelta(days=9)).isoformat()),
    )
    seat, meal, luggage = MemoryFact.objects.order_by("pk")
    assert (seat.said_at, seat.updated_at, seat.origin, seat.agent) == (said, updated, "agent", "Clearsky assistant")
    assert seat.source_session_id == store.session_tag("s-1")
    assert (meal.said_at, meal.source_session_id) == (updated, "0123456789ab")
    assert luggage.said_at <= timezone.now()
    event = FactEvent.objects.filter(kind="learned").first()
    assert event
    assert (event.actor_kind, event.agent) == ("agent", "Clearsky assistant")


BAD: list[tuple[Any, str, str]] = [
    ("{", "bad_json", ""),
    ("[]", "object", ""),
    ('"text"', "object", ""),
    ('{"subject_id":"alice","key":"k","value":"\\ud800"}', "bad_json", ""),
    ({"key": "k", "value": "v"}, "missing", "subject_id"),
    ({"subject_id": "alice", "value": "v"}, "missing", "key"),
    ({"subject_id": "alice", "key": "k"}, "missing", "value"),
    (line(value="x" * 201), "too_long", "value"),
    (line(key="x" * 65), "too_long", "key"),
    (line("x" * 129), "too_long", "subject_id"),
    (line("a\u0007"), "bad_key", "subject_id"),
    (line(value="a\u0000b"), "null_character", "value"),
    (line(value="\u200b"), "empty", "value"),
    (line(key="!!"), "empty", "key"),
    (line(value=7), "type", "value"),
    (line(said_at="yesterday"), "datetime_from_date_parsing", "said_at"),
    (line(said_at="2026-05-01T10:00:00"), "timezone_aware", "said_at"),
    (line(updated_at="1999-01-01T00:00:00Z"), "date", "updated_at"),
    (line(**{CANARY: 1}), "extra_forbidden", ""),
    (line(value="card 4242 4242 4242 4242"), "card", ""),
    (line(category="no such kind"), "unknown_category", ""),
    (line(value="x" * 70_000), "too_long", ""),
]


def test_a_line_that_cannot_be_used_is_told_with_its_reason_and_holds_up_no_other(agent: Agent) -> None:
    client = agent()
    job = accepted(client, *(bad for bad, *_ in BAD), line())
    assert imports.run(job) == JobState.DONE
    rows = list(ImportLine.objects.order_by("line").values_list("decision", "reason", "field"))
    assert rows == [("refused", reason, field) for _, reason, field in BAD] + [("learned", "", "")]
    assert held() == {"seat": "the aisle"}


def test_empty_lines_and_a_byte_order_mark_do_not_count_but_keep_the_numbers(agent: Agent) -> None:
    client = agent()
    first = "\ufeff" + json.dumps(line())
    assert worked(client, first, "", "  ", json.dumps(line(key="meal", value="fish")) + "\r") == [
        (1, "learned", None),
        (4, "learned", None),
    ]


@pytest.mark.parametrize(
    ("body", "kind", "status", "code"),
    [
        (b"\n\n", NDJSON, 422, "invalid"),
        (b"{}\n" * 100_001, NDJSON, 422, "invalid"),
        (b"{}", "text/plain", 415, "unsupported_media_type"),
        (b"{", "application/json", 400, "bad_json"),
        (b"[]", "application/json", 422, "invalid"),
        (b"{}", "application/json", 422, "invalid"),
        (b'{"facts": []}', "application/json", 422, "invalid"),
        (b'{"facts": {"alice": {}}}', "application/json", 422, "invalid"),
        (b'{"facts": {}}', "application/json", 422, "invalid"),
        (b'{"facts": {"a": [{}]}, "more": 1}', "application/json", 422, "invalid"),
    ],
)
def test_a_body_that_is_no_import_is_refused_as_a_whole(
    agent: Agent, body: bytes, kind: str, status: int, code: str
) -> None:
    answer = agent().generic("POST", "/bridge/v1/import", body, kind)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert not Import.objects.exists()


def test_a_body_over_the_setting_is_too_large(agent: Agent, settings: Any) -> None:
    settings.BRIDGE_IMPORT_BYTES = 200
    client = agent()
    assert brought(client, line()).status_code == 202
    answer = brought(client, line(), line(), line())
    assert (answer.status_code, answer.json()["limit"]) == (413, 200)


def test_the_file_of_a_commerce_agents_store_is_taken_and_its_purges_are_not(agent: Agent) -> None:
    file = {
        "version": 1,
        "facts": {
            "alice": [
                {
                    "key": "seat",
                    "value": "the aisle",
                    "category": "preference",
                    "updated_at": "2026-06-01T10:00:00Z",
                    "source_session_id": None,
                },
                {"key": "diet", "value": "vegetarian", "category": "constraint", "updated_at": None},
            ],
            "bob": [{"key": "meal", "value": "fish"}, {"subject_id": "alice", "key": "meal", "value": "meat"}, 7],
        },
        "purges": {"alice": 3},
    }
    client = agent()
    answer = client.post("/bridge/v1/import", file, "application/json")
    job = answer.json()["import_id"]
    assert answer.json()["notes"] == ["purges_not_taken"]
    imports.run(job)
    assert held() == {"seat": "the aisle", "diet": "vegetarian"}
    assert held("bob") == {"meal": "fish"}
    assert [row[1:] for row in report(client, job)[3:]] == [("refused", "object"), ("refused", "object")]
    assert store.purge_generation(store.Subject("alice", "airline")) == 0


# --- the rules of any write -------------------------------------------------------------------------------------------


def test_what_needs_the_customer_becomes_a_suggestion(agent: Agent) -> None:
    client = agent()
    writes("seat", "the window")
    assert worked(client, line(value="the aisle"), line(key="allergy", value="peanuts", category="safety")) == [
        (1, "proposed", "differs_from_correction"),
        (2, "proposed", "agent_suggestion"),
    ]
    assert held() == {"seat": "the window"}
    assert Proposal.objects.count() == 2


def test_an_old_file_brings_back_nothing_that_was_forgotten(agent: Agent) -> None:
    client = agent()
    fact = writes("seat", "the aisle")
    store.forget(pk(), [fact.id], CUSTOMER, now=timezone.now())
    old = (timezone.now() - timedelta(days=3)).isoformat()
    assert worked(client, line(updated_at=old), line(key="place", said_at=old), line(key="seat", value="the exit")) == [
        (1, "refused", "forgotten_before"),
        (2, "refused", "forgotten_before"),
        (3, "proposed", "after_forgetting"),
    ]
    assert held() == {}


def test_what_has_passed_its_end_already_is_not_written(agent: Agent) -> None:
    long_ago = (timezone.now() - timedelta(days=4_000)).isoformat()
    assert worked(agent(), line(said_at=long_ago)) == [(1, "refused", "expired")]


def test_a_paused_customer_learns_nothing_from_a_file(agent: Agent) -> None:
    writes("meal", "fish")
    store.pause(pk(), "learning", CUSTOMER, now=timezone.now())
    assert worked(agent(), line()) == [(1, "refused", "learning_paused")]


def test_a_file_brought_twice_changes_nothing_the_second_time(agent: Agent) -> None:
    client = agent()
    worked(client, line(), line(key="meal", value="fish"))
    before = held()
    assert [decision for _, decision, _ in worked(client, line(), line(key="meal", value="fish"))] == ["renewed"] * 2
    assert held() == before
    assert not FactRevision.objects.exists()


def test_the_last_line_of_a_key_wins(agent: Agent) -> None:
    assert [row[1] for row in worked(agent(), line(value="the aisle"), line(value="the window"))] == [
        "learned",
        "updated",
    ]
    assert held() == {"seat": "the window"}


# --- whose it is ------------------------------------------------------------------------------------------------------


def test_another_keys_import_is_one_that_is_not_there(agent: Agent) -> None:
    job = accepted(agent(), line())
    other = agent(name="Another")
    missing = "0c9a9f0e-5f0b-4a52-9a6a-d1d6f1f6f0aa"
    for tail in ("", "/report"):
        answers = [other.get(f"/bridge/v1/imports/{pk}{tail}") for pk in (job, missing, "x")]
        assert {(answer.status_code, answer.content) for answer in answers} == {(404, answers[0].content)}


def test_it_reaches_customers_of_the_keys_profile_only(agent: Agent) -> None:
    worked(agent(profile="grocery"), line())
    assert held() == {}
    assert store.find(store.Subject("alice", "airline")) is None


def test_a_session_token_of_one_customer_brings_nothing(agent: Agent) -> None:
    opened = agent().post(
        "/bridge/v1/sessions", {"subject_id": "alice", "session_id": "s"}, content_type="application/json"
    )
    client = Client(headers={"Authorization": f"Bearer {opened.json()['token']}"})
    for answer in (
        brought(client, line()),
        client.get("/bridge/v1/imports/x"),
        client.get("/bridge/v1/imports/x/report"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (403, "key_needed")


def test_a_key_that_ends_takes_its_waiting_lines_along(agent: Agent) -> None:
    client = agent()
    job = accepted(client, line(value=CANARY))
    auth.revoke(AgentKey.objects.get(), now=timezone.now())
    assert imports.run(job) == JobState.PARKED
    assert held() == {}
    assert CANARY not in repr(list(ImportLine.objects.values()))


def test_a_key_has_only_so_many_imports_waiting(agent: Agent) -> None:
    client = agent()
    for _ in range(imports.OPEN_LIMIT):
        accepted(client, line())
    answer = brought(client, line())
    assert (answer.status_code, answer["Retry-After"]) == (429, "60")
    imports.drain()
    assert brought(client, line()).status_code == 202


# --- once, whatever dies ----------------------------------------------------------------------------------------------


def test_the_same_request_again_is_the_same_import(agent: Agent) -> None:
    client = agent()
    first = accepted(client, line(), **{"Idempotency-Key": "k-1"})
    again = brought(client, line(), **{"Idempotency-Key": "k-1"})
    assert (again.json()["import_id"], again["Idempotency-Replayed"]) == (first, "true")
    assert Import.objects.count() == 1
    assert brought(client, line(key="other"), **{"Idempotency-Key": "k-1"}).json()["code"] == "idempotency_mismatch"
    Import.objects.all().delete()
    assert brought(client, line(), **{"Idempotency-Key": "k-1"}).json()["code"] == "gone"


class Killed(BaseException):
    """What a worker's death looks like from inside: nothing catches it, everything uncommitted is gone."""


class Clock:
    """Real enough a time that moves on by itself, and kills whoever looks at it for the nth time."""

    def __init__(self, dies_at: int = 10**9, step: float = 0.0) -> None:
        self.now, self.looks, self.dies_at, self.step = timezone.now(), 0, dies_at, timedelta(seconds=step)

    def __call__(self) -> datetime:
        self.looks += 1
        if self.looks == self.dies_at:
            raise Killed
        self.now += self.step
        return self.now


def events() -> list[tuple[str, str]]:
    return list(FactEvent.objects.order_by("pk").values_list("kind", "key"))


@pytest.mark.parametrize("death", range(2, 14))
def test_a_worker_killed_between_two_batches_doubles_and_loses_nothing(agent: Agent, death: int) -> None:
    client = agent()
    lines = [line(f"customer-{number % 4}", f"key_{number}", f"value {number}") for number in range(12)]
    job = accepted(client, *lines)
    clock = Clock(death)
    with pytest.raises(Killed):
        imports.run(job, clock=clock)
    clock.dies_at = 10**9
    assert imports.run(job, clock=clock) is None  # the dead worker's lease still holds
    clock.now += imports.LEASE
    assert imports.run(job, clock=clock) == JobState.DONE
    assert report(client, job) == [(number, "learned", None) for number in range(1, 13)]
    assert MemoryFact.objects.count() == 12
    assert sorted(events()) == sorted(("learned", f"key_{number}") for number in range(12))


def test_a_worker_killed_after_writing_and_before_saying_so_has_written_nothing(agent: Agent) -> None:
    client = agent()
    job = accepted(client, line())

    def killed(execute: Any, sql: str, *more: Any) -> Any:
        done = execute(sql, *more)
        if "INSERT INTO memory_portal_factevent" in sql:
            raise Killed
        return done

    with pytest.raises(Killed), transaction.atomic(), connection.execute_wrapper(killed):
        imports.run(job)
    assert held() == {}
    assert imports.run(job) == JobState.DONE
    assert events() == [("learned", "seat")]


def test_a_slow_worker_whose_lease_is_over_writes_nothing_any_more(agent: Agent) -> None:
    client = agent()
    job = accepted(client, line(), line("bob"))
    clock = Clock()
    inner: list[str | None] = []

    def slow() -> datetime:
        clock.looks += 1
        if clock.looks == 2:  # between claiming and writing
            clock.now += imports.LEASE
            inner.append(imports.run(job, clock=clock))
            clock.now -= imports.LEASE
        return clock.now

    assert imports.run(job, clock=slow) is None or inner == [JobState.DONE]
    assert sorted(events()) == [("learned", "seat"), ("learned", "seat")]
    assert progress(client, job)["counts"] == {"learned": 2}


def test_a_long_import_makes_room_and_goes_on_where_it_was(agent: Agent) -> None:
    client = agent()
    job = accepted(client, *(line(f"customer-{number}") for number in range(8)))
    clock = Clock(step=4.0)
    states: list[str | None] = []
    while not states or states[-1] != JobState.DONE:
        states.append(imports.run(job, clock=clock))
    assert states[:-1] == [JobState.QUEUED] * (len(states) - 1)
    assert len(states) > 2
    assert MemoryFact.objects.count() == 8


def test_the_report_ends_before_the_first_line_that_waits_and_is_paged(agent: Agent) -> None:
    client = agent()
    job = accepted(client, "{", line(), "{", line("bob"))
    assert report(client, job) == [(1, "refused", "bad_json")]
    imports.run(job)
    assert [row[0] for row in report(client, job, "?limit=3")] == [1, 2, 3]
    assert [row[0] for row in report(client, job, "?after=3")] == [4]
    assert report(client, job, "?after=4") == []


def test_the_sweep_rings_for_what_nobody_works_on_and_ends_what_is_a_day_old(agent: Agent) -> None:
    job = accepted(agent(), line(value=CANARY))
    now = timezone.now()
    assert imports.sweep(now)["rung"] == 0  # just rung for
    assert imports.sweep(now + imports.RING_AGAIN)["rung"] == 1
    assert imports.sweep(now + timedelta(hours=25)) == {"rung": 0, "stopped": 1}
    ended = Import.objects.get(pk=job)
    assert (ended.state, ended.outcome) == (JobState.PARKED, "too_late")
    assert CANARY not in repr(list(ImportLine.objects.values()))
    assert imports.run(job) is None
    assert imports.purge(now=now + timedelta(days=40)) == 1
    assert not ImportLine.objects.exists()


def test_with_memory_off_nothing_is_taken_and_what_waits_goes_on_waiting(
    agent: Agent, settings: Any, tmp_path: Any
) -> None:
    client = agent()
    job = accepted(client, line())
    policy = settings.MEMORY_POLICY.read_text("utf-8")
    off = tmp_path / "policy.toml"
    off.write_text(policy.replace("memory = true", "memory = false"), "utf-8")
    on, settings.MEMORY_POLICY = settings.MEMORY_POLICY, off
    assert brought(client, line()).json()["code"] == "memory_disabled"
    assert imports.run(job) == JobState.QUEUED
    assert imports.drain() == 0
    settings.MEMORY_POLICY = on
    assert imports.run(job) == JobState.DONE


def test_staff_see_an_import_without_its_text_and_can_drop_it(agent: Agent, staff: Client) -> None:
    job = accepted(agent(), line(value=CANARY), "{")
    listed = reverse("admin:agent_bridge_import_changelist")
    page = staff.get(reverse("admin:agent_bridge_import_change", args=[job])).content.decode()
    assert "refused/bad_json: 1" in page
    assert CANARY not in page + staff.get(listed).content.decode()
    for said in ("1 import dropped", "0 imports dropped"):
        answer = staff.post(listed, {"action": "drop", "_selected_action": [job]}, follow=True)
        assert said in answer.content.decode()
    assert Import.objects.get().outcome == "dropped"
    assert CANARY not in repr(list(ImportLine.objects.values()))


# --- what the customer takes back -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (lambda fact: store.clear(pk(), CUSTOMER, now=timezone.now()), "cleared"),
        (lambda fact: store.pause(pk(), "learning", CUSTOMER, now=timezone.now()), "learning_paused"),
        (lambda fact: store.forget(pk(), [fact.id], CUSTOMER, now=timezone.now()), Reason.FORGOTTEN_BEFORE),
    ],
)
def test_what_a_customer_takes_back_goes_from_waiting_lines_too(
    agent: Agent, act: Callable[[store.Fact], object], reason: str
) -> None:
    fact = writes("animal", CANARY)
    client = agent()
    said = "the aisle" if reason == "cleared" else f"likes the {CANARY}"
    job = accepted(client, line(value=said), line("bob", value=said))
    act(fact)
    mine, other = ImportLine.objects.order_by("line")
    assert (mine.decision, mine.reason, mine.text, mine.subject_id) == ("refused", reason, "", "")
    assert other.text
    imports.run(job)
    assert held("bob") == {"seat": said}
    assert held().get("seat") is None


def test_a_line_that_says_what_just_expired_is_still_decided(agent: Agent) -> None:
    """Erasing the old fact on the way must not take back the line that is being written."""
    fact = writes("seat", "the aisle by the wing")
    store.keep_until(pk(), fact.id, timezone.now() + timedelta(seconds=1), CUSTOMER, now=timezone.now())
    job = accepted(agent(), line(value="the aisle by the wing"))
    clock = Clock()
    clock.now += timedelta(minutes=1)
    assert imports.run(job, clock=clock) == JobState.DONE
    assert ImportLine.objects.get().decision == "learned"


# --- nothing is left behind -------------------------------------------------------------------------------------------


def test_no_text_stays_in_rows_logs_or_answers(agent: Agent, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    client = agent()
    lines = [
        line(CANARY, value=CANARY),
        line(CANARY, key="card", value=f"{CANARY} 4242 4242 4242 4242"),
        f'{{"{CANARY}',
        line(CANARY, **{CANARY: CANARY}),
    ]
    job = accepted(client, *lines)
    imports.run(job)
    rows = repr(list(ImportLine.objects.values())) + repr(list(Import.objects.values()))
    told = json.dumps(progress(client, job)) + repr(report(client, job))
    ours = "\n".join(
        logging.Formatter().format(record) for record in caplog.records if not record.name.startswith("django.db")
    )
    assert CANARY not in rows + told + ours


def test_an_error_nobody_foresaw_costs_its_line_and_no_other(agent: Agent, caplog: pytest.LogCaptureFixture) -> None:
    client = agent()
    job = accepted(client, line(), line(key="meal", value=CANARY))
    ImportLine.objects.filter(line=2).update(text=json.dumps({"key": "meal", "value": CANARY}))
    assert imports.run(job) == JobState.DONE
    assert report(client, job) == [(1, "learned", None), (2, "refused", "failed")]
    assert CANARY not in caplog.text


def test_ten_thousand_lines_are_taken_and_decided(agent: Agent) -> None:
    client = agent()
    job = accepted(client, *(json.dumps(line(f"customer-{number}", "bad", "x" * 300)) for number in range(10_000)))
    assert progress(client, job)["counts"] == {"refused/too_long": 10_000}
    assert UUID(job)
    assert imports.run(job) == JobState.DONE
