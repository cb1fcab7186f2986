"""After a breach somebody asks whom a key, an agent or a member of staff touched, and has minutes to answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from agent_bridge import jobs
from agent_bridge.extraction import Turn
from agent_bridge.models import AgentKey
from memory_portal import store
from memory_portal.enums import ActorKind, Origin
from memory_portal.models import Customer
from memory_portal.store import Actor, Subject
from tests.conftest import NOW
from tests.figures import Figure
from tests.people import Person

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


def subjects(by: store.By, who: object, since: datetime, until: datetime) -> dict[str | None, tuple[int, int, int]]:
    return {
        row.subject_id: (row.reads, row.looks, row.changes) for row in store.who_was_touched(by, str(who), since, until)
    }


def asks(client: Client, name: str) -> None:
    answer = client.post(f"/bridge/v1/subjects/{name}/context", {}, content_type="application/json")
    assert answer.status_code == 200, answer.content


def test_whom_a_key_reached_by_its_calls_and_by_its_conversations(
    agent: Callable[..., Client], alice: Person, bob: Person
) -> None:
    now = timezone.now()
    mine, others = agent(profile="grocery", name="Shelf"), agent(profile="grocery", name="Till")
    key, other = AgentKey.objects.order_by("pk")
    asks(mine, "alice")
    asks(mine, "alice")
    asks(others, "bob")
    turns = [Turn("user", "I like oat milk", now)]
    job = jobs.submit(Subject("bob", "grocery"), key, turns, session_id="s", now=now, debounce=timedelta())
    heard = store.draft(
        key="milk",
        value="oat milk",
        category="preference",
        origin=Origin.EXTRACTION,
        said_at=now,
        now=now,
        source_quote="oat milk",
    )
    store.submit(Subject("bob", "grocery"), [heard], Actor(ActorKind.JOB, str(job.pk), "Shelf"), now=now)
    since, until = now - DAY, now + DAY
    assert subjects("key", key.pk, since, until) == {"alice": (2, 0, 0), "bob": (0, 0, 1)}
    assert subjects("key", other.pk, since, until) == {"bob": (1, 0, 0)}
    assert subjects("agent", "Shelf", since, until) == {"alice": (2, 0, 0), "bob": (0, 0, 1)}
    assert subjects("agent", "Nobody", since, until) == {}
    assert subjects("key", key.pk, now + DAY, now + 2 * DAY) == {}, "the span counts"


def test_whom_staff_looked_at_and_changed(alice: Person, bob: Person) -> None:
    now = timezone.now()
    fact, other = alice.fact("coffee", "Dark roast"), bob.fact("tea", "Green")
    person = Actor(ActorKind.STAFF, "7", role="support", purpose="customer_asked")
    store.reveal(alice.pk, fact.id, person, now=now)
    store.reveal(alice.pk, fact.id, person, now=now + timedelta(hours=1))
    store.forget(bob.pk, [other.id], person, now=now)
    found = store.who_was_touched("staff", "7", now - DAY, now + DAY)
    assert [(row.subject_id, row.reads, row.looks, row.changes) for row in found] == [
        ("alice", 0, 2, 0),
        ("bob", 0, 0, 1),
    ]
    assert (found[0].first, found[0].last) == (now, now + timedelta(hours=1))
    assert store.who_was_touched("staff", "8", now - DAY, now + DAY) == []
    assert subjects("agent", "support", now - DAY, now + DAY) == {}, "a role is no agent"


def test_the_command_names_the_host_own_ids_and_a_closed_account_by_its_number(alice: Person, bob: Person) -> None:
    now = timezone.now()
    person = Actor(ActorKind.STAFF, "7", role="support", purpose="customer_asked")
    for who in (alice, bob):
        store.reveal(who.pk, who.fact("coffee", "Zebra roast").id, person, now=now)
    gone = bob.pk
    store.erase(gone, bob.actor, now=now)
    out, err = StringIO(), StringIO()
    since = (now - DAY).astimezone(UTC).replace(tzinfo=None).isoformat()
    call_command("who_was_touched", "--staff", "7", "--from", since, stdout=out, stderr=err)
    first, second = (line.split("\t") for line in out.getvalue().splitlines())
    assert first[:5] == ["grocery", "alice", "0", "1", "0"]
    assert second[:2] == ["closed", str(gone)]
    assert datetime.fromisoformat(first[5]) == now
    assert err.getvalue() == "2 customers: 0 reads, 2 looks, 0 changes\n"
    assert "Zebra" not in out.getvalue()
    call_command("who_was_touched", "--agent", "Nobody", "--from", since, "--to", "2999-01-01", stdout=out, stderr=err)
    assert err.getvalue().endswith("0 customers: 0 reads, 0 looks, 0 changes\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--from", "2026-05-01"],
        ["--key", "12"],
        ["--key", "x", "--from", "2026-05-01"],
        ["--key", "1", "--staff", "1", "--from", "2026-05-01"],
        ["--key", "1", "--from", "yesterday"],
    ],
)
def test_half_a_question_gets_no_half_an_answer(arguments: list[str]) -> None:
    with pytest.raises(CommandError):
        call_command("who_was_touched", *arguments)


@pytest.mark.parametrize("size", [20_000, pytest.param(1_000_000, marks=pytest.mark.deep)])
def test_the_answer_is_there_in_seconds(size: int, figure: Figure) -> None:
    """Reads and events of a month, 1,000 customers, three keys; asked for one of them over a week."""
    month = NOW.replace(day=1, hour=0)
    store.tend_months(NOW)
    Customer.objects.bulk_create(Customer(profile="grocery", subject_id=f"c{n}", created_at=NOW) for n in range(1_000))
    every = 30 * 86_400 / (size // 2)
    rows = (
        "SELECT c.id, %s::timestamptz + n * interval '1 second' * %s, {} FROM generate_series(1, %s) AS n"
        " JOIN memory_portal_customer AS c ON c.subject_id = 'c' || n %% 1000"
    )
    event = "kind, key, code, actor_kind, actor_id, agent"
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO memory_portal_factread (customer_id, at, agent, key_id, layer, source_session_id, fact_ids) "
            + rows.format("'a' || n %% 3, n %% 3, 1, '', '{1}'"),
            [month, every, size // 2],
        )
        cursor.execute(
            f"INSERT INTO memory_portal_factevent (customer_id, at, {event}) "
            + rows.format("'learned', 'seat', '', 'agent', (n %% 3)::text, 'a' || n %% 3"),
            [month, every, size // 2],
        )
    began = time.perf_counter()
    found = store.who_was_touched("key", "1", month + timedelta(days=1), month + timedelta(days=8))
    took = time.perf_counter() - began
    assert len(found) > 700
    assert sum(row.reads for row in found) == sum(row.changes for row in found) > size // 30
    assert took < 5
    figure("O5", f"{size:,} reads and events, whom one key touched in a week: {len(found):,} customers in {took:.2f} s")
