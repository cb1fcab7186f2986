"""The commerce-agents contract, section by section, on the production store and on the double the other tests use."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from agent_bridge import auth
from agent_bridge.client import BridgeMemoryStore
from memory_portal import store
from memory_portal.store.contract import MemoryFact
from tests.conftest import NOW
from tests.double import InMemoryStore

METHODS = ("get_facts", "upsert_facts", "search_facts", "delete_fact", "clear", "purge_generation")
OLD = datetime(2019, 2, 28, 23, 59, 59, 123456, tzinfo=UTC)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def opened() -> Iterator[Callable[..., Any]]:
    """Makes production stores, and closes them when the test is over."""
    stores: list[Any] = []

    def make(profile: str = "grocery", **kwargs: Any) -> Any:
        stores.append(store.DjangoMemoryStore(profile, clock=lambda: NOW, **kwargs))
        return stores[-1]

    yield make
    for each in stores:
        each.close()


@pytest.fixture
def production(opened: Callable[..., Any]) -> Any:
    return opened()


@pytest.fixture
def run() -> Iterator[Callable[..., Any]]:
    """One event loop for a whole test, as a host has it."""
    with asyncio.Runner() as runner:
        yield runner.run


@pytest.fixture(params=["production", "bridge", "double"])
def memory(request: pytest.FixtureRequest, opened: Callable[..., Any], run: Callable[..., Any]) -> Iterator[Any]:
    """The store in this process, the store over HTTP, and the double."""
    if request.param == "production":
        yield opened()
    elif request.param == "double":
        yield InMemoryStore()
    else:
        server = request.getfixturevalue("live_server")
        _, key = auth.issue("assistant", "grocery", auth.SCOPES, now=timezone.now())
        memory = BridgeMemoryStore(f"{server.url}/bridge/v1", key, make_fact=MemoryFact)
        yield memory
        run(memory.aclose())


def fact(key: str, value: str, **kwargs: Any) -> MemoryFact:
    return MemoryFact(key=key, value=value, **kwargs)


def test_all_six_methods_are_coroutine_functions(memory: Any) -> None:
    assert all(inspect.iscoroutinefunction(getattr(memory, name)) for name in METHODS)


def test_an_unknown_subject_has_no_facts_and_generation_zero(memory: Any, run: Any) -> None:
    assert run(memory.get_facts("nobody")) == []
    assert run(memory.search_facts("nobody", "tea")) == []
    assert run(memory.purge_generation("nobody")) == 0
    assert run(memory.delete_fact("nobody", "tea")) is False


def test_reading_creates_no_customer(production: Any, run: Any) -> None:
    run(production.get_facts("nobody"))
    run(production.purge_generation("nobody"))
    assert store.find(store.Subject("nobody", "grocery")) is None


@pytest.mark.parametrize("stamp", [OLD, None, NOW])
def test_a_timestamp_comes_back_as_given(memory: Any, run: Any, stamp: datetime | None) -> None:
    given = fact("drink", "likes green tea", updated_at=stamp)
    run(memory.upsert_facts("alice", [given]))
    assert run(memory.get_facts("alice")) == [given]


def test_a_timestamp_of_an_update_comes_back_as_given_even_when_older(memory: Any, run: Any) -> None:
    run(memory.upsert_facts("alice", [fact("drink", "likes green tea", updated_at=NOW)]))
    run(memory.upsert_facts("alice", [fact("drink", "likes black coffee", updated_at=OLD)]))
    assert run(memory.get_facts("alice")) == [fact("drink", "likes black coffee", updated_at=OLD)]
    run(memory.upsert_facts("alice", [fact("drink", "likes black coffee", updated_at=None)]))
    assert run(memory.get_facts("alice"))[0].updated_at is None


def test_a_timestamp_without_zone_is_read_as_utc(production: Any, run: Any) -> None:
    run(production.upsert_facts("alice", [fact("drink", "likes green tea", updated_at=OLD.replace(tzinfo=None))]))
    assert run(production.get_facts("alice"))[0].updated_at == OLD


def test_a_timestamp_from_the_future_counts_as_now_and_never_leads_for_ever(production: Any, run: Any) -> None:
    run(production.upsert_facts("alice", [fact("drink", "likes green tea", updated_at=NOW + timedelta(days=300_000))]))
    assert run(production.get_facts("alice"))[0].updated_at == NOW


def test_facts_keep_their_first_order_and_an_update_keeps_its_place(memory: Any, run: Any) -> None:
    run(memory.upsert_facts("alice", [fact("drink", "tea"), fact("seat", "aisle"), fact("store", "Oakland")]))
    run(memory.upsert_facts("alice", [fact("drink", "coffee"), fact("size", "EU 42")]))
    assert [(f.key, f.value) for f in run(memory.get_facts("alice"))] == [
        ("drink", "coffee"),
        ("seat", "aisle"),
        ("store", "Oakland"),
        ("size", "EU 42"),
    ]


def test_the_last_of_one_key_wins_inside_one_list(memory: Any, run: Any) -> None:
    run(memory.upsert_facts("alice", [fact("seat", "aisle"), fact("drink", "tea"), fact("seat", "window")]))
    assert {f.key: f.value for f in run(memory.get_facts("alice"))} == {"seat": "window", "drink": "tea"}


def test_two_keys_may_say_the_same(memory: Any, run: Any) -> None:
    run(memory.upsert_facts("alice", [fact("drink", "likes tea"), fact("breakfast", "likes tea")]))
    assert [f.key for f in run(memory.get_facts("alice"))] == ["drink", "breakfast"]


def test_changing_what_was_handed_in_or_out_changes_nothing_stored(memory: Any, run: Any) -> None:
    given = fact("drink", "likes tea")
    run(memory.upsert_facts("alice", [given]))
    given.value = "tampered"
    run(memory.get_facts("alice"))[0].value = "tampered"
    assert run(memory.get_facts("alice"))[0].value == "likes tea"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["drink", "food", "seat"]),
        ("   ", ["drink", "food", "seat"]),
        ("TEA", ["drink", "food"]),
        ("aisle tea", ["drink", "food", "seat"]),
        ("constraint", ["food"]),
        ("sea", ["seat"]),
        ("茶", ["drink"]),
        ("nothing", []),
    ],
)
def test_search_finds_any_word_as_part_of_key_value_or_category_in_stored_order(
    memory: Any, run: Any, query: str, found: list[str]
) -> None:
    facts = [
        fact("drink", "likes tea, 綠茶", category="context"),
        fact("food", "no steak", category="constraint"),
        fact("seat", "aisle"),
    ]
    run(memory.upsert_facts("alice", facts))
    assert [f.key for f in run(memory.search_facts("alice", query))] == found


def test_delete_says_whether_something_was_removed_and_moves_no_generation(memory: Any, run: Any) -> None:
    run(memory.upsert_facts("alice", [fact("drink", "tea"), fact("seat", "aisle")]))
    assert run(memory.delete_fact("alice", "drink")) is True
    assert run(memory.delete_fact("alice", "drink")) is False
    assert run(memory.delete_fact("alice", "never there")) is False
    assert [f.key for f in run(memory.get_facts("alice"))] == ["seat"]
    assert run(memory.purge_generation("alice")) == 0


def test_delete_and_then_clear_is_generation_one(memory: Any, run: Any) -> None:
    run(memory.upsert_facts("alice", [fact("drink", "tea")]))
    run(memory.delete_fact("alice", "drink"))
    run(memory.clear("alice"))
    assert run(memory.purge_generation("alice")) == 1


def test_clear_empties_this_subject_only_and_counts_even_when_empty(memory: Any, run: Any) -> None:
    run(memory.upsert_facts("alice", [fact("drink", "tea")]))
    run(memory.upsert_facts("bob", [fact("drink", "coffee")]))
    run(memory.clear("alice"))
    run(memory.clear("alice"))
    run(memory.clear("carol"))
    assert run(memory.get_facts("alice")) == []
    assert [f.value for f in run(memory.get_facts("bob"))] == ["coffee"]
    generations = [run(memory.purge_generation(who)) for who in ("alice", "bob", "carol")]
    assert generations == [2, 0, 1]


def test_generation_survives_reopening_the_store(opened: Any, run: Any) -> None:
    run(opened().clear("alice"))
    assert run(opened().purge_generation("alice")) == 1


@pytest.mark.parametrize(
    "subject",
    ["a", "x" * 128, "顧客-42", "👩‍👩‍👧", "mia@example.test", "a/b?c#d", "' OR 1=1 --", "%2e%2e", "  spaced  ", "Ω≈ç√"],
)
def test_odd_subject_ids_are_just_ids(memory: Any, run: Any, subject: str) -> None:
    run(memory.upsert_facts(subject, [fact("drink", "tea")]))
    assert [f.value for f in run(memory.get_facts(subject))] == ["tea"]
    assert run(memory.get_facts(subject + "!"[: 128 - len(subject)])) == [] or len(subject) == 128


@pytest.mark.parametrize("subject", ["", "x" * 129, "a\x00b", "a\nb", "a\x85b", "a\ud800b"])
def test_an_unusable_subject_id_is_refused_by_name(production: Any, run: Any, subject: str) -> None:
    with pytest.raises(store.InvalidDraft) as refused:
        run(production.upsert_facts(subject, [fact("drink", "tea")]))
    assert refused.value.field == "subject_id"


@pytest.mark.parametrize(
    "value",
    [
        "不吃辣，也不喝酒。（嚴重）",
        "5½",
        "10²",
        "می‌خواهم چای سبز",
        "👨‍👩‍👧‍👦 picnic on Sundays",
        "café au lait",
        "naïve Größe",
        "ﾊﾝｶｸ",
    ],
)
def test_values_of_every_script_come_back_byte_for_byte(memory: Any, run: Any, value: str) -> None:
    run(memory.upsert_facts("alice", [fact("note", value)]))
    assert [f.value.encode() for f in run(memory.get_facts("alice"))] == [value.encode()]


def test_another_profile_of_the_same_deployment_sees_nothing(production: Any, opened: Any, run: Any) -> None:
    run(production.upsert_facts("alice", [fact("drink", "tea")]))
    assert run(opened("airline").get_facts("alice")) == []


def test_a_host_gets_its_own_fact_class_back(opened: Any, run: Any) -> None:
    class HostFact(MemoryFact):
        pass

    memory = opened(make_fact=HostFact)
    run(memory.upsert_facts("alice", [HostFact(key="drink", value="tea")]))
    assert isinstance(run(memory.get_facts("alice"))[0], HostFact)


def test_a_session_id_is_never_kept_only_its_tag(production: Any, run: Any) -> None:
    tag = store.session_tag("session-1")
    run(production.upsert_facts("alice", [fact("drink", "tea", source_session_id=tag)]))
    run(production.upsert_facts("alice", [fact("seat", "aisle", source_session_id="session-1")]))
    assert {f.source_session_id for f in run(production.get_facts("alice"))} == {tag}


def test_what_may_never_be_kept_is_refused_with_a_code_and_the_rest_of_the_list_is_stored(
    production: Any, run: Any
) -> None:
    facts = [fact("drink", "tea"), fact("card", "4111 1111 1111 1111"), fact("seat", "aisle")]
    with pytest.raises(store.MemoryWriteRejected) as refused:
        run(production.upsert_facts("alice", facts))
    assert "4111" not in f"{refused.value!r} {refused.value}"
    assert [f.key for f in run(production.get_facts("alice"))] == ["drink", "seat"]


def test_a_deleted_fact_written_again_waits_for_the_customer(production: Any, run: Any) -> None:
    run(production.upsert_facts("alice", [fact("drink", "tea")]))
    run(production.delete_fact("alice", "drink"))
    run(production.upsert_facts("alice", [fact("drink", "tea")]))
    assert run(production.get_facts("alice")) == []


def test_many_tasks_of_one_loop_and_two_loops_at_once_lose_nothing(production: Any, run: Any) -> None:
    async def write(many: range) -> None:
        await asyncio.gather(*(production.upsert_facts("alice", [fact(f"k{i}", f"v{i}")]) for i in many))

    run(write(range(20)))
    with asyncio.Runner() as other:
        other.run(write(range(20, 40)))
    assert {f.key for f in run(production.get_facts("alice"))} == {f"k{i}" for i in range(40)}


WRITER = """
import asyncio, os, sys
import django
from django.conf import settings
settings.DATABASES["default"]["NAME"] = sys.argv[1]
django.setup()
from memory_portal import store
from memory_portal.store.contract import MemoryFact
memory = store.DjangoMemoryStore("grocery")
async def main():
    for i in range(20):
        await memory.upsert_facts("alice", [MemoryFact(key=f"{sys.argv[2]}_{i}", value=f"value {sys.argv[2]} {i}")])
asyncio.run(main())
"""


def test_two_processes_writing_at_once_lose_nothing(production: Any, run: Any) -> None:
    name = str(settings.DATABASES["default"]["NAME"])
    environment = {"DJANGO_SETTINGS_MODULE": "memory_portal.settings", "DATABASE_URL": settings.DATABASE_URL}
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, name, who], env=environment, cwd=settings.BASE_DIR)
        for who in ("left", "right")
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert {f.key for f in run(production.get_facts("alice"))} == {
        f"{w}_{i}" for w in ("left", "right") for i in range(20)
    }
