"""A customer's act against a write in flight, for real: two connections, one row lock, no mocked clock or lock.

The write is a job's: it saw the customer's facts before the act and comes to store what it found at the same moment.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.db import connections

from memory_portal import store
from memory_portal.enums import ActorKind, FactState, FreezeReason, Origin
from memory_portal.store import Actor, Draft, Fact, Subject
from tests.conftest import NOW
from tests.figures import Figure

RUNS = int(os.environ.get("RACE_RUNS", "200"))
CUSTOMER = Actor(ActorKind.CUSTOMER)
JOB = Actor(ActorKind.JOB, "job-1", "Shopping assistant")
SAID, ACTED, WRITTEN = NOW, NOW + timedelta(seconds=1), NOW + timedelta(seconds=2)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(params=[RUNS, pytest.param(10_000, marks=pytest.mark.deep)])
def runs(request: pytest.FixtureRequest) -> int:
    """How often a race is run: on every change, and in make check-deep."""
    assert isinstance(request.param, int)
    return request.param


@pytest.fixture
def both() -> Iterator[Callable[..., tuple[object, object]]]:
    """Runs two functions at the same moment in two threads, each with a database connection of its own."""
    barrier = Barrier(2, timeout=30)

    def started_together(act: Callable[[], object]) -> object:
        barrier.wait()
        return act()

    def close() -> None:
        barrier.wait()
        connections.close_all()

    with ThreadPoolExecutor(2) as pool:

        def race(left: Callable[[], object], right: Callable[[], object]) -> tuple[object, object]:
            first, second = pool.submit(started_together, left), pool.submit(started_together, right)
            return first.result(60), second.result(60)

        yield race
        for done in [pool.submit(close), pool.submit(close)]:
            done.result(60)


def learned(value: str, key: str = "delivery_note") -> Draft:
    return store.draft(
        key=key,
        value=value,
        category="preference",
        origin=Origin.EXTRACTION,
        said_at=SAID,
        now=WRITTEN,
        source_quote=value,
        session_id="session-1",
        agent=JOB.name,
    )


def own_words(value: str) -> Draft:
    return store.draft(
        key="delivery_note", value=value, category="preference", origin=Origin.CUSTOMER, said_at=ACTED, now=ACTED
    )


def customer_with_a_fact(run: int) -> tuple[int, Fact]:
    subject = Subject(f"racer-{run}")
    outcome = store.submit(subject, [learned("leave it at the door")], JOB, now=SAID)[0]
    customer = store.find(subject)
    assert customer is not None
    assert outcome.fact is not None
    return customer.pk, outcome.fact


def write(customer: int, value: str, generation: int = 0) -> str:
    return store.submit(customer, [learned(value)], JOB, now=WRITTEN, generation=generation)[0].decision


def values(customer: int) -> list[str]:
    return [fact.value for fact in store.facts(customer, now=WRITTEN)]


def test_a_fact_forgotten_while_it_is_being_written_never_comes_back(
    both: Callable[..., tuple[object, object]], runs: int, figure: Figure
) -> None:
    seen: Counter[object] = Counter()
    for run in range(runs):
        customer, fact = customer_with_a_fact(run)
        new = "leave it at the door" if run % 2 else "leave it with the neighbour"
        _, wrote = both(
            lambda c=customer, f=fact: store.forget(c, [f.id], CUSTOMER, now=ACTED),
            lambda c=customer, n=new: write(c, n),
        )
        seen[wrote] += 1
        assert values(customer) == []
    figure("R4", f"forget against write: {runs} runs, 0 came back, writer saw {dict(seen)}")


def test_forgetting_everything_beats_a_write_in_flight(
    both: Callable[..., tuple[object, object]], runs: int, figure: Figure
) -> None:
    seen: Counter[object] = Counter()
    for run in range(runs):
        customer, _ = customer_with_a_fact(run)
        _, wrote = both(
            lambda c=customer: store.clear(c, CUSTOMER, now=ACTED),
            lambda c=customer, n=run: (
                store.submit(c, [learned("prefers mornings", f"time_{n}")], JOB, now=WRITTEN, generation=0)[0].decision
            ),
        )
        seen[wrote] += 1
        assert values(customer) == []
    figure("R4", f"clear against write: {runs} runs, 0 came back, writer saw {dict(seen)}")


def test_a_customers_correction_is_never_lost_to_a_write_in_flight(
    both: Callable[..., tuple[object, object]], runs: int, figure: Figure
) -> None:
    seen: Counter[object] = Counter()

    def correct(customer: int, fact: Fact) -> str:
        try:
            store.correct(customer, fact.id, own_words("ring twice"), CUSTOMER, now=ACTED, version=fact.version)
        except store.Conflict as conflict:
            assert conflict.current is not None
            assert conflict.current.value == "leave it with the neighbour"
            store.correct(
                customer, fact.id, own_words("ring twice"), CUSTOMER, now=ACTED, version=conflict.current.version
            )
            return "conflict shown"
        return "first"

    for run in range(runs):
        customer, fact = customer_with_a_fact(run)
        how, wrote = both(
            lambda c=customer, f=fact: correct(c, f), lambda c=customer: write(c, "leave it with the neighbour")
        )
        seen[how, wrote] += 1
        assert values(customer) == ["ring twice"]
    figure("R2", f"correction against write: {runs} runs, 0 lost, {dict(seen)}")


def test_a_fact_frozen_while_it_is_being_written_is_served_to_nobody(
    both: Callable[..., tuple[object, object]], runs: int, figure: Figure
) -> None:
    seen: Counter[object] = Counter()
    for run in range(runs):
        customer, fact = customer_with_a_fact(run)
        _, wrote = both(
            lambda c=customer, f=fact: store.freeze(c, f.id, FreezeReason.WRONG, CUSTOMER, now=ACTED),
            lambda c=customer: write(c, "leave it with the neighbour"),
        )
        seen[wrote] += 1
        (held,) = store.facts(customer, now=WRITTEN)
        assert held.state is FactState.FROZEN
        assert held.value == ("leave it with the neighbour" if wrote == "updated" else "leave it at the door")
        assert store.context(Subject(f"racer-{run}"), JOB, now=WRITTEN).always == ()
    figure("R6", f"freeze against write: {runs} runs, 0 served, {dict(seen)}")


def test_nothing_is_learned_after_learning_is_paused(
    both: Callable[..., tuple[object, object]], runs: int, figure: Figure
) -> None:
    seen: Counter[object] = Counter()
    for run in range(runs):
        customer, _ = customer_with_a_fact(run)
        _, wrote = both(
            lambda c=customer: store.pause(c, "learning", CUSTOMER, now=ACTED),
            lambda c=customer: write(c, "leave it with the neighbour"),
        )
        seen[wrote] += 1
        assert values(customer) == ["leave it with the neighbour" if wrote == "updated" else "leave it at the door"], (
            "a write that was refused must have changed nothing"
        )
        assert write(customer, "a third place") == "refused"
    figure("R5", f"pause against write: {runs} runs, {dict(seen)}")


def test_two_first_writes_for_a_new_customer_make_one_customer(
    both: Callable[..., tuple[object, object]], runs: int, figure: Figure
) -> None:
    for run in range(runs // 10):
        subject = Subject(f"newcomer-{run}")
        both(
            lambda s=subject: store.submit(s, [learned("aisle seats", "seat")], JOB, now=NOW),
            lambda s=subject: store.submit(s, [learned("oat milk", "milk")], JOB, now=NOW),
        )
        customer = store.find(subject)
        assert customer is not None
        assert len(store.facts(customer, now=NOW)) == 2


def test_one_fact_edited_from_two_places_at_once_loses_no_edit(both: Callable[..., tuple[object, object]]) -> None:
    """Each writer that is told of a conflict looks at the current fact and tries again: every edit is counted once."""
    customer, fact = customer_with_a_fact(0)

    def edit(who: str) -> None:
        version = fact.version
        for n in range(100):
            while True:
                try:
                    new = own_words(f"{who} note {n}")
                    version = store.correct(customer, fact.id, new, CUSTOMER, now=ACTED, version=version).version
                    break
                except store.Conflict as conflict:
                    assert conflict.current is not None
                    version = conflict.current.version

    both(lambda: edit("left"), lambda: edit("right"))
    (held,) = store.facts(customer, now=WRITTEN)
    assert held.version == fact.version + 200
