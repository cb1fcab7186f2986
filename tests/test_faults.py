"""A thousand provider faults through the real client: no conversation is lost, nothing is learned from a bad answer, nobody's words
get into a row or a log. And a few hopeless conversations hold up none of the others.
"""

from __future__ import annotations

import json
import logging
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import anthropic
import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from agent_bridge import auth, jobs, reading
from agent_bridge.extraction import Extraction, ExtractionFailed, ExtractionRequest, Turn
from agent_bridge.extraction.claude import Claude
from agent_bridge.models import AgentKey, ExtractionJob, JobState
from memory_portal import store
from memory_portal.enums import ActorKind, ChangeAction
from memory_portal.models import FactEvent, MemoryFact
from tests.figures import Figure
from tests.messages_server import (
    KEY,
    MessagesServer,
    Reply,
    answer,
    change,
    cut,
    error,
    hang,
    message,
    rate_limited,
    raw,
)

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 5, 14, 14, 0, tzinfo=UTC)
CANARY = "zephyrquilt"
PLANT = "quokkafelt"
"""A bad answer holds a fact that would pass every rule, had the answer been a good one."""


def bad(said: str) -> str:
    """The start of an answer whose one change is well-founded, and which is not whole."""
    return json.dumps({"changes": [change(said, "plant", said.removeprefix("I "))]})[:-2]


def faults(said: str, dice: random.Random) -> dict[str, Callable[[], Reply]]:
    whole = f"{bad(said)}]}}"
    return {
        "rate_limited": lambda: rate_limited(dice.choice([0, 2, 30, 90, 10_000])),
        "provider_error": lambda: error(dice.choice([500, 502, 503]), "api_error"),
        "overloaded": lambda: error(529, "overloaded_error", retry_after="7"),
        "timeout": hang,
        "unreachable": cut,
        "garbage": lambda: dice.choice(
            [
                message(bad(said)),
                raw(f"{CANARY} <html>{said}</html>".encode()),
                raw(message(whole).body[:-30]),
                message(whole, stop=None),
                message(whole, content=f"{PLANT}"),
            ]
        ),
        "refused": lambda: message(whole, stop="refusal"),
        "cut_off": lambda: message(bad(said), stop="max_tokens"),
        "a megabyte": lambda: message('{"changes": [' + f'"{said}",' * (1_000_000 // len(said)) + "1]}"),
        "wrong_shape": lambda: message(dice.choice(["[]", '{"facts": []}', '{"changes": {}}', f'"{said}"', "7"])),
        "unusable": lambda: answer([change(said, "plant", said[2:], verified=True), said, None]),
    }


WEIGHTS = {"timeout": 2, "a megabyte": 1}


def said_in(asked: dict[str, Any]) -> str:
    lines = asked["messages"][0]["content"].splitlines()
    return next(str(json.loads(line)["said"]) for line in lines if line.startswith('{"speaker":"customer"'))


class Provider:
    """Breaks as often as it is told to, in every way there is, and then works."""

    def __init__(self, seed: int, breaks: int) -> None:
        self.dice, self.left = random.Random(seed), breaks
        self.given: Counter[str] = Counter()

    def __call__(self, asked: dict[str, Any]) -> Reply:
        said = said_in(asked)
        if self.left <= 0 or self.dice.random() < 0.05:
            return answer([change(said, "tea", said.removeprefix("I "))])
        ways = faults(said, self.dice)
        (way,) = self.dice.choices(list(ways), [WEIGHTS.get(name, 6) for name in ways])
        self.left -= 1
        self.given[way] += 1
        return ways[way]()


@pytest.fixture
def claude() -> Iterator[tuple[Claude, MessagesServer]]:
    with (
        MessagesServer() as server,
        anthropic.Anthropic(
            api_key=KEY, base_url=server.url, timeout=0.3, max_retries=0, open_telemetry=False
        ) as client,
    ):
        yield Claude(client, "claude-test", "low"), server


@pytest.fixture
def key(db: None) -> AgentKey:
    return auth.issue("agent", "retail", auth.SCOPES, now=NOW)[0]


def hand_over(key: AgentKey, name: str, text: str, at: datetime = NOW) -> ExtractionJob:
    turns = [Turn("user", text, at)]
    return jobs.submit(store.Subject(name, "retail"), key, turns, session_id=name, now=at, debounce=timedelta())


def rows() -> str:
    """Everything in the bridge's tables and the events, but for the words that wait to be read."""
    found = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            if table.startswith("agent_bridge_") or table == "memory_portal_factevent":
                cursor.execute(f"SELECT to_jsonb(t) - 'turns' FROM {table} t")
                found += [str(row) for row in cursor.fetchall()]
    return "\n".join(found)


@pytest.mark.parametrize("injected", [200, pytest.param(1_000, marks=pytest.mark.deep)])
def test_many_provider_faults_lose_nothing_teach_nothing_and_tell_nothing(
    key: AgentKey,
    claude: tuple[Claude, MessagesServer],
    caplog: pytest.LogCaptureFixture,
    injected: int,
    figure: Figure,
) -> None:
    caplog.set_level(logging.DEBUG)
    logging.getLogger("django.db.backends").setLevel(logging.INFO)
    extractor, server = claude
    provider, dice = Provider(11, injected), random.Random(12)
    server.will(provider)
    conversations = injected // 4
    for number in range(conversations):
        hand_over(key, f"c{number}", f"I always buy {CANARY}{number} tea")
    at, waits, parked = NOW, Counter[str](), 0
    while provider.left > 0 or ExtractionJob.objects.exclude(state=JobState.DONE).exists():
        due = list(jobs.due(at).values_list("pk", flat=True))
        for job_id in due:
            before = provider.given.copy()
            state = reading.run(job_id, clock=lambda: at, extractor=extractor, dice=dice)  # noqa: B023
            job = ExtractionJob.objects.get(pk=job_id)
            fault = next(iter(provider.given - before), "")
            if not fault or fault == "unusable":
                assert state == JobState.DONE
                continue
            assert state in (JobState.QUEUED, JobState.PARKED)
            assert job.outcome == ("garbage" if fault == "a megabyte" else fault)
            if state == JobState.QUEUED:
                waited = (job.run_after - at) / (jobs.BACKOFF * 2 ** (job.attempts - 1))
                waits[f"{job.attempts}/{waited:.4f}"] += 1
        for job in ExtractionJob.objects.filter(state=JobState.PARKED):
            assert job.turns, "its words are there for another try"
            parked += jobs.retry(job, at)
        if not jobs.due(at).exists():
            following = ExtractionJob.objects.filter(state=JobState.QUEUED).order_by("run_after").first()
            if following is None:
                break
            at = following.run_after
    while provider.left > 0:  # so many that the conversations ran out first
        number, conversations = conversations, conversations + 1
        job = hand_over(key, f"c{number}", f"I always buy {CANARY}{number} tea", at)
        while (state := reading.run(job.pk, clock=lambda: at, extractor=extractor, dice=dice)) != JobState.DONE:  # noqa: B023
            assert state in (JobState.QUEUED, JobState.PARKED)
            job.refresh_from_db()
            parked += jobs.retry(job, at)
            job.refresh_from_db()
            at = max(at, job.run_after)
    server.release.set()

    unusable = ExtractionJob.objects.filter(counts__has_key="refused/unusable").count()
    facts = list(MemoryFact.objects.values_list("customer__subject_id", "key", "value"))
    assert sum(provider.given.values()) == injected
    assert len(provider.given) == len(faults("", dice)), "each kind came up"
    assert ExtractionJob.objects.filter(state=JobState.DONE, turns=[]).count() == conversations, "none is lost"
    assert len(facts) == conversations - unusable
    assert {key for _, key, _ in facts} == {"tea"}, "none comes out of a bad answer"
    assert all(value == f"always buy {CANARY}{name[1:]} tea" for name, _, value in facts)
    assert FactEvent.objects.filter(kind="learned").count() == len(facts)
    assert all(float(wait.split("/")[1]) >= 1 for wait in waits)
    assert len(waits) > injected / 10, "jitter spreads them"
    text = caplog.text + rows()
    for secret in (CANARY, "CANARY", PLANT):
        assert secret not in text
    figure(
        "J4",
        f"{injected} faults in {conversations} conversations: {dict(provider.given)}; {parked} given up and retried",
    )


# --- hopeless conversations -------------------------------------------------------------------------------------------


class Reader:
    """Takes a second for each conversation, and fails on those that are poison."""

    def __init__(self, clock: list[datetime]) -> None:
        self.clock = clock

    def extract(self, request: ExtractionRequest) -> Extraction:
        self.clock[0] += timedelta(seconds=1)
        text = request.turns[0].text
        if "poison" in text:
            return Extraction("stub", failure=ExtractionFailed("garbage"))
        return Extraction("stub", candidates=(store.Candidate(ChangeAction.REMEMBER, "tea", text[2:], quote=text),))

    def tokens_at_most(self, request: ExtractionRequest) -> int:
        return 0


def p95(key: AgentKey, of: int, poison: int, gap: float, prefix: str) -> float:
    """Seconds from due to done of the healthy ones, with one worker. They come at random, so many seconds apart on average."""
    dice = random.Random(5)
    sick = set(dice.sample(range(of), poison))
    clock, came, at = [NOW], {}, NOW
    arrivals: list[tuple[datetime, str, str]] = []
    for number in range(of):
        arrivals.append((at, "poison" if number in sick else "tea", f"{prefix}{number}"))
        at += timedelta(seconds=dice.expovariate(1 / gap) if gap else 0)
    latency: list[float] = []
    extractor = Reader(clock)
    while arrivals or ExtractionJob.objects.filter(state=JobState.QUEUED).exists():
        while arrivals and arrivals[0][0] <= clock[0]:
            at, kind, name = arrivals.pop(0)
            came[hand_over(key, name, f"I always buy {kind} {name}", at).pk] = at, kind
        job_id = jobs.due(clock[0]).values_list("pk", flat=True).first()
        if job_id is None:
            later = ExtractionJob.objects.filter(state=JobState.QUEUED).order_by("run_after").first()
            clock[0] = min([at for at, *_ in arrivals[:1]] + ([later.run_after] if later else []))
            continue
        state = reading.run(job_id, clock=lambda: clock[0], extractor=extractor, dice=dice)
        at, kind = came[job_id]
        if kind == "tea":
            assert state == JobState.DONE
            latency.append((clock[0] - at).total_seconds())
    assert len(latency) == of - poison
    return sorted(latency)[int(0.95 * len(latency))]


@pytest.mark.parametrize(
    ("of", "poison", "gap"),
    [
        pytest.param(200, 10, 0, id="all at once"),
        pytest.param(1_000, 50, 0, id="a thousand at once", marks=pytest.mark.deep),
        pytest.param(1_000, 50, 2, id="a thousand one by one", marks=pytest.mark.deep),
    ],
)
@pytest.mark.django_db(transaction=True)  # thousands of versions of rows in one transaction are nobody's day
def test_poison_is_parked_in_sight_and_slows_the_others_by_less_than_half(
    key: AgentKey, staff: Client, of: int, poison: int, gap: float, figure: Figure
) -> None:
    usual = p95(key, of, 0, gap, "a")
    with_poison = p95(key, of, poison, gap, "b")
    figure("J5", f"p95 {usual:.1f} s, with {poison} poison of {of}: {with_poison:.1f} s")
    assert with_poison <= 1.5 * usual
    parked = ExtractionJob.objects.filter(state=JobState.PARKED)
    assert set(parked.values_list("attempts", "outcome")) == {(jobs.TRIES, "garbage")}
    assert parked.count() == poison
    listing = reverse("admin:agent_bridge_extractionjob_changelist")
    shown = staff.get(listing, {"state": JobState.PARKED, "all": "1"}).content.decode()
    assert f"{poison} conversations" in shown
    chosen = [str(pk) for pk in parked.values_list("pk", flat=True)]
    staff.post(listing, {"action": "retry", "_selected_action": chosen})
    assert not parked.exists()
    assert ExtractionJob.objects.filter(state=JobState.QUEUED, attempts=0).count() == poison


# --- E8: what the provider is told --------------------------------------------------------------------------------------


FIELDS = {"model", "max_tokens", "system", "messages", "output_config"}


def test_the_provider_gets_one_kind_of_call_and_nothing_that_says_who_the_customer_is(
    key: AgentKey, claude: tuple[Claude, MessagesServer], figure: Figure
) -> None:
    extractor, server = claude
    provider = Provider(8, 30)
    server.will(provider)
    for n in range(50):
        name = f"subject-{n:04}-of-the-host"
        store.submit(store.Subject(name, "retail"), [], store.Actor(ActorKind.SYSTEM), now=NOW)
        customer = store.find(store.Subject(name, "retail"))
        assert customer is not None
        store.attach_email(customer.pk, f"mailbox{n:04}@example.org")
        text = (
            f"I buy {n} teas, write to other{n:04}@example.net or call +49 30 901820 {n:02}, card 4111 1111 1111 1111"
        )
        job = hand_over(key, name, text)
        at = NOW
        while (job.state not in (JobState.DONE, JobState.PARKED)) and job.attempts < jobs.TRIES:
            at += timedelta(hours=1)
            reading.run(job.pk, clock=lambda at=at: at, extractor=extractor)
            job.refresh_from_db()
    assert set(server.calls) == {"POST /v1/messages"}
    sent = json.dumps(server.requests)
    told = re.findall(r"subject-\d|of-the-host|mailbox\d|other\d|@example|901820|4111", sent)
    assert told == []
    assert {name for request in server.requests for name in request} == FIELDS, "no file, no tool, no metadata"
    figure("E8", f"{len(server.calls)} calls: 0 but POST /v1/messages, 0 customer ids, 0 contact data, 0 card numbers")
