"""Reading costs what the settings allow and not more: by customer and day, and for all. What is over waits, and is not lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import connections
from django.test import Client
from django.urls import reverse

from agent_bridge import auth, jobs, reading, spend
from agent_bridge.extraction import Extraction, ExtractionFailed, ExtractionRequest, Profile, Turn
from agent_bridge.extraction.claude import Claude
from agent_bridge.models import AgentKey, DaySpend, ExtractionJob, JobState
from memory_portal import store
from memory_portal.enums import ActorKind, ChangeAction
from memory_portal.models import Customer, MemoryFact
from tests.people import Person

NOW = datetime(2026, 5, 14, 14, 0, tzinfo=UTC)
TOMORROW = datetime(2026, 5, 15, tzinfo=UTC)
TOKENS = 1_000
"""What one conversation costs here."""


class Costly:
    """An instant extractor that finds one fact, says so much beforehand, and then costs so much."""

    def __init__(
        self, tokens: int = TOKENS, at_most: int = 3 * TOKENS, failure: ExtractionFailed | None = None
    ) -> None:
        self.tokens, self.at_most, self.failure = tokens, at_most, failure
        self.read = 0

    def extract(self, request: ExtractionRequest) -> Extraction:
        self.read += 1
        text = request.turns[0].text
        found = store.Candidate(ChangeAction.REMEMBER, "tea", text.removeprefix("I "), "preference", text)
        half = self.tokens // 2
        return Extraction("costly", "v1", (found,), {}, half, self.tokens - half, self.failure)

    def tokens_at_most(self, request: ExtractionRequest) -> int:
        return self.at_most


@pytest.fixture
def key(db: None) -> AgentKey:
    return auth.issue("agent", "grocery", auth.SCOPES, now=NOW)[0]


def hand_over(key: AgentKey, name: str = "alice", *, session: str = "s", at: datetime = NOW) -> ExtractionJob:
    turns = [Turn("user", f"I always buy tea {session}", at)]
    return jobs.submit(store.Subject(name, "grocery"), key, turns, session_id=session, now=at, debounce=timedelta())


def run(job: ExtractionJob, extractor: Any, at: datetime = NOW) -> str | None:
    return reading.run(job.pk, clock=lambda: at, extractor=extractor)


def spent(name: str | None = None, day: datetime = NOW) -> int:
    row = DaySpend.objects.filter(day=day.date(), customer__subject_id=name) if name else None
    rows = DaySpend.objects.filter(day=day.date(), customer=None) if row is None else row
    return rows.values_list("tokens", flat=True).first() or 0


def outcomes() -> set[tuple[str, str]]:
    return set(ExtractionJob.objects.values_list("state", "outcome"))


# --- money ------------------------------------------------------------------------------------------------------------


def test_a_job_s_cost_is_its_tokens_at_the_settings_prices(key: AgentKey, settings: Any, staff: Client) -> None:
    settings.EXTRACTION_PRICE_IN, settings.EXTRACTION_PRICE_OUT = 0.10, 0.50
    job = hand_over(key)
    run(job, Costly(failure=ExtractionFailed("garbage")))
    run(job, Costly(), NOW + timedelta(minutes=1))
    job.refresh_from_db()
    assert job.cost == Decimal("0.000600"), "two tries, each 500 tokens in and 500 out"
    for page in ("changelist", "change"):
        arguments = [job.pk] if page == "change" else []
        assert (
            "0.000600"
            in staff.get(reverse(f"admin:agent_bridge_extractionjob_{page}", args=arguments)).content.decode()
        )


def test_a_batched_token_costs_half() -> None:
    assert spend.cost(1_000_000, 0, batched=True) * 2 == spend.cost(1_000_000, 0) == Decimal("0.1")


def test_claude_says_beforehand_more_than_it_will_cost() -> None:
    claude = Claude(None, "m", "low")  # type: ignore[arg-type]  # it is not asked
    turns = (Turn("user", "I always take the aisle. " * 100, NOW),)
    short, long = ExtractionRequest(Profile(), turns, NOW), ExtractionRequest(Profile(), turns * 10, NOW)
    assert 3_000 < claude.tokens_at_most(short) < 10_000
    assert claude.tokens_at_most(long) > claude.tokens_at_most(short) + 10_000


# --- caps -------------------------------------------------------------------------------------------------------------


def test_a_customer_over_the_day_s_cap_waits_for_the_next_day_and_others_do_not(key: AgentKey, settings: Any) -> None:
    settings.EXTRACTION_CUSTOMER_DAY_TOKENS = 2 * TOKENS
    extractor = Costly()
    mine = [hand_over(key, session=f"s{n}", at=NOW + timedelta(seconds=n)) for n in range(5)]
    other = hand_over(key, "bob")
    at = NOW + timedelta(minutes=1)
    assert reading.drain(clock=lambda: at, extractor=extractor) == 4, "two of hers, one that meets the cap, one of his"
    assert run(other, extractor, at) is None, "done already"
    left = ExtractionJob.objects.filter(pk__in=[job.pk for job in mine], state=JobState.QUEUED)
    assert set(left.values_list("outcome", "run_after", "attempts")) == {(spend.CUSTOMER_SPENT, TOMORROW, 0)}
    assert all(job.turns for job in left)
    assert (left.count(), spent("alice"), spent()) == (3, 2 * TOKENS, 3 * TOKENS)
    assert reading.drain(clock=lambda: TOMORROW, extractor=extractor) == 3
    assert reading.drain(clock=lambda: TOMORROW + timedelta(days=1), extractor=extractor) == 1
    assert outcomes() == {(JobState.DONE, "")}


def test_the_global_breaker_holds_everybody_until_the_next_day(key: AgentKey, settings: Any) -> None:
    settings.EXTRACTION_DAY_TOKENS = TOKENS
    for name in ("alice", "bob", "carol"):
        hand_over(key, name)
    assert reading.drain(clock=lambda: NOW, extractor=Costly()) == 2, (
        "one read, one that meets the breaker; no third try"
    )
    assert outcomes() == {(JobState.DONE, ""), (JobState.QUEUED, spend.DAY_SPENT)}
    of_customers = DaySpend.objects.exclude(customer=None).values_list("tokens", flat=True)
    assert list(of_customers) == [TOKENS], "nothing is counted for a customer whom the breaker holds"


def test_waiting_for_the_budget_uses_up_no_try_however_many_days_it_takes(key: AgentKey, settings: Any) -> None:
    settings.EXTRACTION_DAY_TOKENS = 1
    job, at = hand_over(key), NOW
    for _ in range(2 * jobs.TRIES):
        DaySpend.objects.create(day=at.date(), tokens=1)
        assert run(job, Costly(), at) == JobState.QUEUED
        at = spend.next_day(at)
    assert run(job, Costly(), at) == JobState.DONE


def test_without_caps_nothing_waits(key: AgentKey, settings: Any) -> None:
    settings.EXTRACTION_CUSTOMER_DAY_TOKENS = settings.EXTRACTION_DAY_TOKENS = 0
    assert run(hand_over(key), Costly(tokens=10**9)) == JobState.DONE
    assert spent() == 10**9


def test_a_free_extractor_meets_no_cap(key: AgentKey, settings: Any) -> None:
    settings.EXTRACTION_DAY_TOKENS = 1
    for n in range(3):
        assert run(hand_over(key, f"c{n}"), Costly(tokens=0, at_most=0)) == JobState.DONE
    assert not DaySpend.objects.exists()


def test_a_failed_call_gives_back_what_it_did_not_use_and_a_time_out_does_not(key: AgentKey) -> None:
    run(hand_over(key), Costly(tokens=0, failure=ExtractionFailed("overloaded")))
    assert spent() == 0
    run(hand_over(key, "bob"), Costly(tokens=0, failure=ExtractionFailed("timeout")))
    assert spent() == 3 * TOKENS, "it may have been read and billed"


def test_what_a_job_cost_counts_though_the_customer_took_it_back_meanwhile(key: AgentKey) -> None:
    job, extractor = hand_over(key), Costly()
    me = store.Actor(ActorKind.CUSTOMER, str(job.customer_id))

    class Meanwhile(Costly):
        def extract(self, request: ExtractionRequest) -> Extraction:
            store.clear(store.Subject("alice", "grocery"), me, now=NOW)
            return extractor.extract(request)

    assert run(job, Meanwhile()) == JobState.DISCARDED
    assert spent() == TOKENS


def test_the_day_is_the_utc_day() -> None:
    late = datetime(2026, 5, 14, 23, 30, tzinfo=UTC)
    assert spend.next_day(late) == TOMORROW
    in_taipei = late.astimezone(ZoneInfo("Asia/Taipei"))
    assert (spend.day_of(in_taipei), spend.next_day(in_taipei)) == (late.date(), TOMORROW)


def test_customers_rows_of_former_days_go_and_totals_stay(key: AgentKey) -> None:
    run(hand_over(key), Costly())
    spend.purge(NOW + timedelta(days=1))
    assert spent("alice") == TOKENS
    spend.purge(NOW + timedelta(days=spend.KEEP_DAYS))
    assert (spent("alice"), spent()) == (0, TOKENS)


@pytest.mark.django_db(transaction=True)
def test_workers_at_once_spend_the_cap_and_one_job_between_them(settings: Any) -> None:
    settings.EXTRACTION_DAY_TOKENS = 3 * TOKENS
    key = auth.issue("agent", "grocery", auth.SCOPES, now=NOW)[0]
    waiting = [hand_over(key, f"c{n}") for n in range(12)]
    together = threading.Barrier(4)

    def work(mine: list[ExtractionJob]) -> None:
        together.wait()
        for job in mine:
            run(job, Costly(at_most=TOKENS))
        connections.close_all()

    workers = [threading.Thread(target=work, args=(waiting[n::4],)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert 3 * TOKENS <= spent() <= 4 * TOKENS
    assert ExtractionJob.objects.filter(state=JobState.DONE).count() * TOKENS == spent()


# --- a flood ----------------------------------------------------------------------------------------------------------


def flood(key: AgentKey, customers: int, jobs_each: int) -> None:
    """Many conversations at once, as rows: handing them over one by one is another test's business."""
    Customer.objects.bulk_create(
        [Customer(profile="grocery", subject_id=f"flood-{n}", created_at=NOW) for n in range(customers)]
    )
    made = Customer.objects.filter(subject_id__startswith="flood-").values_list("pk", flat=True)
    rows = (
        ExtractionJob(
            customer_id=pk,
            key=key,
            agent=key.name,
            profile="grocery",
            turns=[{"role": "user", "text": f"I always buy tea {n}", "said_at": NOW.isoformat()}],
            generation=0,
            run_after=NOW,
            created_at=NOW + timedelta(milliseconds=n),
        )
        for n in range(jobs_each)
        for pk in made
    )
    ExtractionJob.objects.bulk_create(rows, batch_size=1_000)


@pytest.mark.django_db(transaction=True)  # thousands of versions of rows in one transaction are nobody's day
@pytest.mark.parametrize(("customers", "each"), [(200, 5), pytest.param(2_000, 5, marks=pytest.mark.deep)])
def test_a_flood_is_read_up_to_the_cap_and_waits_and_page_and_bridge_answer_meanwhile(
    key: AgentKey, settings: Any, customers: int, each: int, alice: Person, agent: Callable[..., Client]
) -> None:
    settings.EXTRACTION_CUSTOMER_DAY_TOKENS = 2 * TOKENS
    settings.EXTRACTION_DAY_TOKENS = cap = 50 * TOKENS
    flood(key, customers, each)
    extractor, at = Costly(), NOW + timedelta(minutes=1)
    reading.drain(clock=lambda: at, extractor=extractor)
    assert cap <= extractor.read * TOKENS == spent() <= cap + TOKENS
    held = ExtractionJob.objects.filter(state=JobState.QUEUED, run_after=TOMORROW).exclude(turns=[])
    assert held.count() == customers * each - extractor.read, "nothing is lost"
    assert max(DaySpend.objects.exclude(customer=None).values_list("tokens", flat=True)) <= 3 * TOKENS
    alice.fact("coffee", "Dark roast")
    assert "Dark roast" in alice.sees()
    caller = agent(profile="grocery")
    assert caller.get("/bridge/v1/subjects/alice/context").status_code == 200
    turns = {"session_id": "s", "messages": [{"role": "user", "content": "I always buy oats"}]}
    handed = caller.post("/bridge/v1/subjects/alice/turns", turns, content_type="application/json")
    assert handed.status_code == 202
    settings.EXTRACTION_DAY_TOKENS = settings.EXTRACTION_CUSTOMER_DAY_TOKENS = 0
    assert MemoryFact.objects.filter(customer__subject_id__startswith="flood-").count() <= extractor.read
    reading.drain(clock=lambda: TOMORROW, extractor=Costly(), stop=lambda: spent(day=TOMORROW) >= 100 * TOKENS)
    assert spent(day=TOMORROW) == 100 * TOKENS, "the next day goes on"
