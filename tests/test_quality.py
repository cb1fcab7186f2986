"""Staff see how reading goes: rates by day, extractor and prompt, from counts alone, at a glance however many jobs there are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agent_bridge import quality
from agent_bridge.extraction import explicit
from agent_bridge.models import DaySpend, ExtractionJob, JobState
from memory_portal.models import Customer
from tests.people import BACKEND, Person

NOW = datetime(2026, 5, 14, 14, 0, tzinfo=UTC)
CANARY = "zephyrquilt"


def ended(person: Person, counts: dict[str, int], *, at: datetime = NOW, **more: Any) -> ExtractionJob:
    return ExtractionJob(
        customer=person.customer,
        agent="agent",
        profile="grocery",
        generation=0,
        run_after=at,
        created_at=at,
        counts=counts,
        **{
            "finished_at": at,
            "state": JobState.DONE,
            "extractor": "claude-x",
            "prompt_version": "abc",
            "cost": Decimal("0.002"),
        }
        | more,
    )


@pytest.fixture
def read(alice: Person) -> Iterator[None]:
    ExtractionJob.objects.bulk_create(
        [
            ended(alice, {"learned": 2, "updated": 1, "proposed/quoted_text": 1, "refused/no_quote": 4}),
            ended(alice, {"learned": 0, "refused/no_quote": 1, "refused/bare_assent": 1}),
            ended(alice, {}, state=JobState.PARKED, outcome="refused"),
            ended(alice, {"learned": 1}, prompt_version="def"),
            ended(alice, {"learned": 1}, extractor=explicit.NAME, prompt_version=explicit.VERSION, cost=0),
            ended(alice, {"refused/echo": 1}, at=NOW - timedelta(days=1)),
            ended(alice, {"refused/echo": 1}, at=NOW - timedelta(days=quality.DAYS)),
            ended(alice, {}, extractor="", outcome="nothing_said"),
            ended(alice, {}, state=JobState.DISCARDED, outcome="cleared"),
            ended(alice, {}, state=JobState.QUEUED, finished_at=None, turns=[{"role": "user", "text": CANARY}]),
        ]
    )
    DaySpend.objects.create(day=NOW.date(), tokens=12_345)
    return


@pytest.mark.usefixtures("read")
def test_rates_are_by_day_extractor_and_prompt() -> None:
    found = quality.quality(NOW)
    assert [(row.day.day, row.extractor, row.prompt_version, row.conversations) for row in found.rows] == [
        (14, "claude-x", "abc", 3),
        (14, "claude-x", "def", 1),
        (14, explicit.NAME, explicit.VERSION, 1),
        (13, "claude-x", "abc", 1),
    ]
    first = found.rows[0]
    assert (first.learned, first.proposed, first.refused, first.parked) == (3, 1, 6, 1)
    assert first.rates == [("learned", 0.3), ("proposed", 0.1), ("refused", 0.6)]
    assert first.reasons.most_common(1) == [("refused/no_quote", 5)]
    assert (first.cost, first.per_thousand) == (Decimal("0.006"), Decimal(2))
    assert [row.offline for row in found.rows] == [False, False, True, False]
    assert (found.sampled, found.tokens) == (False, [(NOW.date(), 12_345)])


def test_a_busy_day_is_looked_at_in_part_and_the_page_says_so(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quality, "SAMPLE", 3)
    ExtractionJob.objects.bulk_create(ended(alice, {"learned": 1}, at=NOW - timedelta(minutes=n)) for n in range(5))
    found = quality.quality(NOW)
    assert (found.rows[0].conversations, found.sampled) == (3, True)


@pytest.mark.usefixtures("read")
def test_staff_see_it_within_the_strict_policy_and_not_a_word_of_a_conversation(
    staff: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_bridge.admin.timezone.now", lambda: NOW)
    page = staff.get(reverse("admin:agent_bridge_quality"))
    shown = page.content.decode()
    main = shown.partition('id="content-main"')[2]
    assert '<meter min="0" max="1" value="0.3" aria-label="learned"></meter> 30 %' in main
    assert "refused/no_quote: 5" in main
    assert f"{explicit.NAME} is the offline extractor" in main
    assert "2.0000" in main
    assert "12345" in re.sub(r"\D", "", main)
    assert not re.search(r"style=|<style|<script|onclick", main)
    assert "style-src 'self'" in page.headers["Content-Security-Policy"]
    assert CANARY not in shown
    assert (
        reverse("admin:agent_bridge_quality")
        in staff.get(reverse("admin:agent_bridge_extractionjob_changelist")).content.decode()
    )


def test_nothing_read_is_said_so(staff: Client) -> None:
    assert "Nothing has been read" in staff.get(reverse("admin:agent_bridge_quality")).content.decode()


def test_others_do_not_get_in(alice: Person, db: None) -> None:
    page = reverse("admin:agent_bridge_quality")
    assert alice.get(page).status_code == 302
    helper = get_user_model().objects.create_user("helper", password="a long password", is_staff=True)
    client = Client()
    client.force_login(helper, backend=BACKEND)
    assert client.get(page).status_code == 403


@pytest.mark.usefixtures("read")
def test_it_reads_by_the_index_and_a_fixed_number_of_times() -> None:
    with CaptureQueriesContext(
        connection,
    ) as asked:
        quality.quality(NOW)
    assert len(asked) == quality.DAYS + 1
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("EXPLAIN " + next(q["sql"] for q in asked if "finished_at" in q["sql"]))
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "job_ended" in plan


@pytest.mark.deep
def test_with_a_million_conversations_it_takes_less_than_a_second(alice: Person) -> None:
    columns = (
        "customer_id, agent, profile, source_session_id, turns, generation, state, attempts, run_after, created_at"
    )
    rest = "finished_at, outcome, counts, extractor, prompt_version, input_tokens, output_tokens, cost, batch, reserved_tokens"
    with connection.cursor() as cursor:
        cursor.execute(
            f"""INSERT INTO agent_bridge_extractionjob (id, {columns}, {rest})
            SELECT gen_random_uuid(), %s, 'a', 'grocery', '', '[]', 0, 'done', 1, %s, %s,
                   %s - n * interval '2 seconds', '', '{{"learned": 1, "refused/no_quote": 2}}', 'claude-x', 'abc', 9, 9, 0, '', 0
            FROM generate_series(1, 1000000) n""",
            [alice.pk, NOW, NOW, NOW],
        )
        cursor.execute("ANALYZE agent_bridge_extractionjob")
    assert Customer.objects.exists()
    started = datetime.now(UTC)
    found = quality.quality(NOW)
    took = datetime.now(UTC) - started
    print(f"\nquality page over 1,000,000 jobs: {took.total_seconds():.2f} s")
    assert found.sampled
    assert took < timedelta(seconds=1)
