"""The client against a bridge that hangs, breaks, says no and lies; and against the real one for what goes beyond the contract."""

from __future__ import annotations

import asyncio
import logging
import re
import subprocess
import sys
import textwrap
import traceback
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone as clock

from agent_bridge import auth, client, problems
from agent_bridge.client import BridgeMemoryStore, MemoryFact, Retries
from agent_bridge.models import ExtractionJob
from memory_portal import store
from memory_portal.enums import ActorKind, Origin
from memory_portal.store import contract
from tests.conftest import NOW
from tests.stub_bridge import Reply, Stub, problem

SUBJECT, VALUE, KEY = "subject-canary", "value-canary", "mp_test_key-canary"
AT_ONCE = Retries(first=0)


def using(act: Callable[[BridgeMemoryStore], Any], *script: Reply, **kwargs: Any) -> tuple[Any, Stub]:
    """What comes of one act against a scripted bridge, and that bridge."""
    kwargs = {"timeout": 5, "retries": AT_ONCE, **kwargs}

    async def run(address: str) -> Any:
        async with BridgeMemoryStore(address, KEY, **kwargs) as memory:
            return await act(memory)

    with Stub(*script) as stub:
        return asyncio.run(run(stub.address)), stub


def failing(act: Callable[[BridgeMemoryStore], Any], *script: Reply, **kwargs: Any) -> tuple[client.BridgeError, Stub]:
    async def caught(memory: BridgeMemoryStore) -> client.BridgeError:
        with pytest.raises(client.BridgeError) as raised:
            await act(memory)
        return raised.value

    return using(caught, *script, **kwargs)


def read(memory: BridgeMemoryStore) -> Any:
    return memory.get_facts(SUBJECT)


ACTS: dict[str, Callable[[BridgeMemoryStore], Any]] = {
    "get": read,
    "search": lambda memory: memory.search_facts(SUBJECT, VALUE),
    "upsert": lambda memory: memory.upsert_facts(SUBJECT, [MemoryFact(VALUE, VALUE)]),
    "delete": lambda memory: memory.delete_fact(SUBJECT, VALUE),
    "clear": lambda memory: memory.clear(SUBJECT),
    "generation": lambda memory: memory.purge_generation(SUBJECT),
    "context": lambda memory: memory.context(SUBJECT, VALUE),
    "recall": lambda memory: memory.recall(SUBJECT, VALUE),
    "turns": lambda memory: memory.submit_turns(SUBJECT, VALUE, [{"role": "user", "content": VALUE}]),
    "job": lambda memory: memory.job(VALUE),
    "changes": lambda memory: memory.changes(VALUE),
    "session": lambda memory: memory.open_session(SUBJECT, VALUE),
}


# --- trying again -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "first",
    [
        problem(500, "failed"),
        problem(503, "unavailable", {"Retry-After": "0"}),
        Reply(502, b"<html>Bad Gateway</html>"),
        problem(429, "too_many_calls", {"Retry-After": "0"}),
        problem(409, "idempotency_in_flight", {"Retry-After": "0"}),
        Reply(cut=True),
    ],
    ids=["500", "503", "a proxy's 502", "429", "in flight", "cut"],
)
def test_a_call_that_cannot_be_answered_now_is_sent_again(first: Reply) -> None:
    facts, stub = using(read, first, Reply())
    assert facts == []
    assert len(stub.requests) == 2


@pytest.mark.parametrize("name", ACTS)
def test_after_two_repetitions_it_gives_up(name: str) -> None:
    error, stub = failing(ACTS[name], problem(500, "failed"))
    assert isinstance(error, client.Unavailable)
    assert (error.code, error.status) == ("failed", 500)
    assert len(stub.requests) == 3


@pytest.mark.parametrize("name", ["upsert", "delete", "clear", "turns"])
def test_a_write_keeps_its_idempotency_key_when_it_is_sent_again(name: str) -> None:
    _, stub = failing(ACTS[name], problem(500, "failed"))
    keys = {headers["Idempotency-Key"] for _, _, headers, _ in stub.requests}
    assert len(keys) == 1


def test_two_writes_have_two_idempotency_keys() -> None:
    async def twice(memory: BridgeMemoryStore) -> None:
        await memory.delete_fact(SUBJECT, "seat")
        await memory.delete_fact(SUBJECT, "seat")

    _, stub = using(twice, Reply(204))
    assert len({headers["Idempotency-Key"] for _, _, headers, _ in stub.requests}) == 2


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (problem(401, "key_revoked"), client.NotAuthenticated),
        (problem(403, "scope_missing", scopes=["facts:read"]), client.NotAllowed),
        (problem(404, "not_found"), client.NotFound),
        (problem(409, "refused", reason="learning_paused"), client.MemoryWriteRejected),
        (problem(410, "gone"), client.Gone),
        (problem(412, "changed_meanwhile"), client.Conflict),
        (problem(422, "invalid", errors=[{"pointer": "#/value", "code": "string_too_long"}]), client.InvalidRequest),
        (problem(503, "memory_disabled"), client.MemoryDisabled),
        (problem(429, "too_many_calls", {"Retry-After": "3600"}), client.RateLimited),
        (Reply(302, b"", {"Location": "http://127.0.0.1:1/elsewhere"}), client.BridgeError),
    ],
    ids=lambda given: given.__name__ if isinstance(given, type) else str(given.status),
)
def test_an_answer_is_not_asked_for_again(reply: Reply, kind: type[client.BridgeError]) -> None:
    error, stub = failing(read, reply)
    assert type(error) is kind
    assert len(stub.requests) == 1


def test_a_longer_wait_than_it_keeps_is_told_to_the_caller() -> None:
    error, _ = failing(read, problem(429, "too_many_calls", {"Retry-After": "3600"}))
    assert isinstance(error, client.RateLimited)
    assert error.retry_after == 3600


def test_a_hanging_bridge_costs_the_time_out_and_no_more() -> None:
    error, stub = failing(read, Reply(hang=True), timeout=0.05)
    assert isinstance(error, client.Unavailable)
    assert error.code == "timed_out"
    assert len(stub.requests) <= 3


def test_a_bridge_that_is_not_there_is_unreachable() -> None:
    async def ask() -> None:
        async with BridgeMemoryStore(address, KEY, retries=AT_ONCE) as memory:
            await memory.get_facts(SUBJECT)

    with Stub() as stub:
        address = stub.address
    with pytest.raises(client.Unavailable, match=r"^unreachable$"):
        asyncio.run(ask())


def test_waits_double_and_end_and_obey_the_bridge_up_to_a_limit() -> None:
    rules = Retries(most=6, first=0.1, longest=2)
    assert [rules.wait(tries, None, 1) for tries in range(1, 8)] == [0.1, 0.2, 0.4, 0.8, 1.6, 2, None]
    assert rules.wait(1, None, 0) == 0.05
    assert rules.wait(1, 1, 0) == 1
    assert rules.wait(1, 1, 1) == 1.1
    assert rules.wait(1, 2.5, 0) is None
    assert Retries(most=0).wait(1, None, 0.5) is None


# --- connections ------------------------------------------------------------------------------------------------------


def test_calls_one_after_the_other_share_a_connection() -> None:
    async def often(memory: BridgeMemoryStore) -> None:
        for _ in range(10):
            await memory.get_facts(SUBJECT)
            await memory.purge_generation(SUBJECT)

    _, stub = using(often, Reply(body={"facts": [], "purge_generation": 0}))
    assert len(stub.requests) == 20
    assert stub.connections == 1


def test_many_calls_at_once_share_a_bounded_number_of_connections() -> None:
    async def many(memory: BridgeMemoryStore) -> None:
        await asyncio.gather(*(memory.get_facts(SUBJECT) for _ in range(100)))

    _, stub = using(many)
    assert len(stub.requests) == 100
    assert stub.connections <= 20


# --- a host's turn ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Reply(hang=True), "timed_out"),
        (problem(401, "key_unknown"), "key_unknown"),
        (problem(500, "failed"), "failed"),
        (problem(503, "memory_disabled"), "memory_disabled"),
        (problem(429, "too_many_calls", {"Retry-After": "60"}), "too_many_calls"),
        (Reply(cut=True), "unreachable"),
        (Reply(body=b"not json"), "unreadable"),
        (Reply(body={"always": [{"value": VALUE}]}), "unreadable"),
    ],
    ids=["hang", "401", "500", "off", "429", "cut", "no json", "wrong shape"],
)
def test_a_turn_goes_on_without_memory_whatever_happens(
    reply: Reply, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    within = 0.2 if reply.hang else 30
    context, _ = using(lambda memory: memory.context_or_empty(SUBJECT, VALUE, format="json", within=within), reply)
    assert context == client.Context()
    assert [record.getMessage() for record in caplog.records] == [f"a turn goes on without memory: {told}"]
    assert VALUE not in caplog.text
    assert SUBJECT not in caplog.text


def test_a_turn_goes_on_when_the_hosts_own_fact_class_fails(caplog: pytest.LogCaptureFixture) -> None:
    def make_fact(**_: object) -> None:
        raise RuntimeError(VALUE)

    fact = {"key": "k", "value": VALUE, "category": "context", "updated_at": None, "session": ""}
    reply = Reply(body={"always": [fact], "relevant": [], "left_out": 0})
    context, _ = using(lambda memory: memory.context_or_empty(SUBJECT, format="json"), reply, make_fact=make_fact)
    assert context == client.Context()
    assert VALUE not in caplog.text


def test_a_cancelled_turn_is_cancelled() -> None:
    async def cancelled(memory: BridgeMemoryStore) -> bool:
        turn = asyncio.ensure_future(memory.context_or_empty(SUBJECT, within=60))
        await asyncio.sleep(0)
        turn.cancel()
        await asyncio.wait([turn])
        return turn.cancelled()

    assert using(cancelled, Reply(hang=True))[0]


def test_an_empty_block_is_an_empty_text() -> None:
    assert using(lambda memory: memory.context_or_empty(SUBJECT), problem(500, "failed"))[0] == ""


# --- what it says and does not say ------------------------------------------------------------------------------------

HOSTILE = [
    problem(422, "invalid", errors=[{"pointer": f"#/{VALUE} x", "code": VALUE, "limit": VALUE, "detail": VALUE}]),
    problem(422, VALUE, reason=VALUE, errors=VALUE),
    problem(500, VALUE),
    problem(409, "refused", reason=f"{VALUE}!"),
    Reply(418, VALUE.encode()),
    Reply(500, f"<html>{VALUE}</html>".encode()),
    Reply(200, VALUE.encode()),
    Reply(200, [VALUE]),
    Reply(200, {"facts": [{"key": VALUE}], "rejected": f"{VALUE}!", "always": VALUE, "purge_generation": VALUE}),
    Reply(200, {"token": VALUE, "expires_at": VALUE, "job_id": VALUE, "created_at": VALUE}),
    Reply(hang=True),
    Reply(cut=True, body=VALUE.encode()),
]


@pytest.mark.parametrize("reply", HOSTILE, ids=range(len(HOSTILE)))
def test_no_error_holds_a_value_a_subject_or_the_key(reply: Reply) -> None:
    async def act(memory: BridgeMemoryStore) -> list[str]:
        told = []
        for name, call in ACTS.items():
            try:
                await call(memory)
            except client.BridgeError as error:
                told += [name, repr(error), str(error), repr(vars(error)), repr(error.__context__)]
                told += traceback.format_exception(error)
        return told

    told, _ = using(act, reply, timeout=0.05, retries=Retries(most=0))
    assert told, "something went wrong for each of these"
    for planted in (SUBJECT, VALUE, KEY, client.segment(SUBJECT)):
        assert planted not in " ".join(told)


def test_half_a_surrogate_pair_is_an_invalid_request_without_its_text() -> None:
    error, stub = failing(lambda memory: memory.upsert_facts("alice", [MemoryFact("k", "\ud800" + VALUE)]))
    assert isinstance(error, client.InvalidRequest)
    assert VALUE not in "".join(traceback.format_exception(error))
    assert stub.requests == []


def test_an_invalid_request_names_field_and_limit() -> None:
    told = [{"pointer": "#/facts/0/value", "code": "string_too_long", "detail": "is too long", "limit": 200}]
    error, _ = failing(ACTS["upsert"], problem(422, "invalid", errors=told))
    assert isinstance(error, client.InvalidRequest)
    assert error.errors == (client.Field("#/facts/0/value", "string_too_long", 200),)
    assert str(error) == "invalid: #/facts/0/value string_too_long"


def test_every_code_of_the_bridge_becomes_an_error_of_its_own_kind() -> None:
    for code, kind in problems.KINDS.items():
        error, _ = failing(read, problem(kind.status, code), retries=Retries(most=0))
        assert error.code == code
        assert type(error) is not client.BridgeError or kind.status == 405, code


def test_neither_the_store_nor_a_session_shows_its_secret() -> None:
    session = client.Session("mps_secret", NOW, ("facts:read",))
    assert "mps_secret" not in repr(session)
    assert KEY not in repr(BridgeMemoryStore("http://127.0.0.1:1/bridge/v1", KEY))


def test_nothing_of_django_or_of_this_project_is_imported() -> None:
    code = """
import sys
class Refuses:
    def find_spec(self, name, path=None, target=None):
        top, _, rest = name.partition(".")
        if top in ("django", "ninja", "pydantic", "memory_portal") or (top == "agent_bridge" and rest not in ("", "client")):
            raise AssertionError(name)
sys.meta_path.insert(0, Refuses())
import agent_bridge.client
print(sorted(agent_bridge.client.__dict__)[0])
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=settings.BASE_DIR, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


def test_the_file_works_where_it_was_copied_to(tmp_path: Path) -> None:
    copy = tmp_path / "memory_client.py"
    copy.write_text(Path(client.__file__).read_text("utf-8"), "utf-8")
    command = [sys.executable, "-W", "error", "-c", "import memory_client; memory_client.BridgeMemoryStore"]
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0


# --- on the wire ------------------------------------------------------------------------------------------------------


def test_a_key_goes_in_a_header_and_never_in_an_address() -> None:
    _, stub = using(read)
    method, path, headers, _ = stub.requests[0]
    assert (method, path) == ("GET", "/bridge/v1/subjects/subject-canary/facts?order=written")
    assert headers["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("text", ["", ".", "..", "a/b", "~x", "facts", "顧客", "a b", "%2e", "x?y#z", "a\nb", "\ud800"])
def test_an_odd_name_is_one_plain_segment(text: str) -> None:
    segment = client.segment(text)
    assert segment.startswith("~")
    assert set(segment) <= set("~-_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")


def test_of_what_a_tool_said_only_the_blocks_type_leaves_the_host() -> None:
    sdk_block = SimpleNamespace(type="tool_use", id="t1", name=VALUE, input={"q": VALUE})
    messages = [
        {"role": "user", "content": "I always sit on the aisle", "said_at": datetime(2026, 5, 1)},  # noqa: DTZ001
        {"role": "assistant", "content": [SimpleNamespace(type="text", text="Noted."), sdk_block]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": VALUE}]},
    ]
    reply = Reply(202, {"job_id": "j", "state": "queued", "kept": 2, "dropped": 1})
    done, stub = using(lambda memory: memory.submit_turns("alice", "s-1", messages, idempotency_key="s-1:1"), reply)
    assert done == client.HandedOver("j", "queued", 2, 1)
    _, _, headers, body = stub.requests[0]
    assert headers["Idempotency-Key"] == "s-1:1"
    assert body == {
        "session_id": "s-1",
        "messages": [
            {"role": "user", "content": "I always sit on the aisle", "said_at": "2026-05-01T00:00:00+00:00"},
            {"role": "assistant", "content": [{"type": "text", "text": "Noted."}, {"type": "tool_use"}]},
            {"role": "user", "content": [{"type": "tool_result"}]},
        ],
    }


def test_more_facts_than_one_call_takes_go_in_several_in_order() -> None:
    facts = [MemoryFact(f"k{number}", "v") for number in range(450)]
    _, stub = using(lambda memory: memory.upsert_facts("alice", facts), Reply(body={"decisions": [], "rejected": None}))
    sent = [[fact["key"] for fact in body["facts"]] for *_, body in stub.requests]
    assert [len(keys) for keys in sent] == [200, 200, 50]
    assert [key for keys in sent for key in keys] == [fact.key for fact in facts]


def test_a_rejection_is_raised_after_everything_was_sent() -> None:
    facts = [MemoryFact(f"k{number}", "v") for number in range(201)]
    error, stub = failing(
        lambda memory: memory.upsert_facts("alice", facts),
        Reply(body={"decisions": [], "rejected": "card"}),
        Reply(body={"decisions": [], "rejected": None}),
    )
    assert isinstance(error, client.MemoryWriteRejected)
    assert error.reason == "card"
    assert len(stub.requests) == 2


def test_no_facts_are_no_call() -> None:
    assert using(lambda memory: memory.upsert_facts("alice", []))[1].requests == []


def test_safety_travels_as_constraint_the_same_way_as_in_the_other_store() -> None:
    assert client.TRAVELS_AS == contract.TRAVELS_AS


# --- the real bridge --------------------------------------------------------------------------------------------------


@pytest.fixture
def live(live_server: Any, transactional_db: None) -> Callable[..., Any]:
    """Runs an act of an agent against the real bridge, as its own profile's agent."""

    def run(act: Callable[[BridgeMemoryStore], Any], *scopes: str) -> Any:
        _, key = auth.issue("assistant", "grocery", scopes or auth.SCOPES, now=clock.now())

        async def with_memory() -> Any:
            async with BridgeMemoryStore(f"{live_server.url}/bridge/v1", key) as memory:
                return await act(memory)

        return asyncio.run(with_memory())

    return run


def consenting(subject: str) -> None:
    store.submit(store.Subject(subject, "grocery"), [], store.Actor(ActorKind.SYSTEM), now=clock.now())
    customer = store.find(store.Subject(subject, "grocery"))
    assert customer
    store.give_consent(customer.pk, store.Actor(ActorKind.CUSTOMER), now=clock.now(), channel="test", language="en")
    draft = store.draft(
        key="allergy",
        value="no peanuts",
        category="safety",
        origin=Origin.CUSTOMER,
        said_at=clock.now(),
        now=clock.now(),
    )
    store.submit(customer.pk, [draft], store.Actor(ActorKind.CUSTOMER, str(customer.pk)), now=clock.now())


def test_a_safety_fact_reads_as_constraint_and_stays_when_an_agent_deletes_it(live: Callable[..., Any]) -> None:
    consenting("alice")

    async def act(memory: BridgeMemoryStore) -> Any:
        facts = await memory.get_facts("alice")
        return (
            [fact.category for fact in facts],
            await memory.delete_fact("alice", "allergy"),
            await memory.get_facts("alice"),
        )

    categories, deleted, after = live(act)
    assert categories == ["constraint"]
    assert deleted is False
    assert [fact.key for fact in after] == ["allergy"]


def test_a_key_that_may_not_read_safety_is_not_given_it(live: Callable[..., Any]) -> None:
    consenting("alice")
    assert live(lambda memory: memory.get_facts("alice"), auth.READ) == []


def test_context_comes_as_facts_or_as_a_block(live: Callable[..., Any]) -> None:
    async def act(memory: BridgeMemoryStore) -> Any:
        await memory.upsert_facts("alice", [MemoryFact("drink", "likes oat milk")])
        return await memory.context("alice"), await memory.context_or_empty("alice", "Coffee, please", within=30)

    context, block = live(act)
    assert [fact.value for fact in context.always] == ["likes oat milk"]
    assert context.left_out == 0
    assert block.startswith("<customer_memory>")
    assert "likes oat milk" in block


def test_recall_finds_by_topic(live: Callable[..., Any]) -> None:
    async def act(memory: BridgeMemoryStore) -> Any:
        await memory.upsert_facts(
            "alice", [MemoryFact("drink", "likes oat milk"), MemoryFact("bags", "takes paper bags")]
        )
        return await memory.recall("alice", "which bags")

    assert [fact.key for fact in live(act)] == ["bags"]


def test_turns_handed_over_are_a_job_to_be_watched(live: Callable[..., Any]) -> None:
    async def act(memory: BridgeMemoryStore) -> Any:
        messages = [{"role": "user", "content": "I always take oat milk"}]
        done = await memory.submit_turns("alice", "s-1", messages, said_at=clock.now() - timedelta(hours=1))
        return done, await memory.job(done.job_id or "")

    done, job = live(act)
    assert (done.state, done.kept, done.dropped) == ("queued", 1, 0)
    assert (job.job_id, job.state, job.ended, job.finished_at) == (done.job_id, "queued", False, None)
    assert ExtractionJob.objects.count() == 1


def test_another_keys_job_is_not_found(live: Callable[..., Any]) -> None:
    messages = [{"role": "user", "content": "I always take oat milk"}]
    done = live(lambda memory: memory.submit_turns("alice", "s-1", messages))
    with pytest.raises(client.NotFound):
        live(lambda memory: memory.job(done.job_id))


def test_a_session_token_reaches_its_customer_only(live: Callable[..., Any], live_server: Any) -> None:
    async def act(memory: BridgeMemoryStore) -> Any:
        session = await memory.open_session("alice", "s-1", scopes=[auth.READ], minutes=5)
        async with BridgeMemoryStore(f"{live_server.url}/bridge/v1", session.token) as bound:
            assert await bound.get_facts("alice") == []
            with pytest.raises(client.NotAllowed) as refused:
                await bound.get_facts("bob")
            return session, refused.value.code

    session, code = live(act)
    assert code == "subject_bound"
    assert session.scopes == (auth.READ,)
    assert session.expires_at > clock.now()


def test_changes_are_followed_from_now_on(live: Callable[..., Any]) -> None:
    async def act(memory: BridgeMemoryStore) -> Any:
        await memory.upsert_facts("alice", [MemoryFact("before", "tea")])
        now = await memory.changes("now")
        await memory.upsert_facts("alice", [MemoryFact("drink", "tea"), MemoryFact("seat", "aisle")])
        await memory.clear("alice")
        first = await memory.changes(now.next, limit=2)
        return now, first, await memory.changes(first.next, wait=25)

    now, first, rest = live(act)
    assert (now.changes, now.more) == ([], False)
    told = [(change.subject_id, change.kind, change.key) for page in (first, rest) for change in page.changes]
    assert told == [("alice", "learned", "drink"), ("alice", "learned", "seat"), ("alice", "cleared", None)]
    assert (first.more, rest.more) == (True, False)
    assert all(change.at.tzinfo for change in rest.changes)


def test_a_call_that_waits_may_take_so_much_longer() -> None:
    """Longer than a try may take otherwise: it ends when the bridge lets go, and is not given up before."""

    async def run(stub: Stub) -> client.BridgeError:
        async with BridgeMemoryStore(stub.address, KEY, timeout=0.05, retries=Retries(most=0)) as memory:
            asyncio.get_running_loop().call_later(0.15, stub.release.set)
            with pytest.raises(client.Unavailable) as raised:
                await memory.changes(wait=25)
            return raised.value

    with Stub(Reply(hang=True)) as stub:
        assert asyncio.run(run(stub)).code == "unreachable"


def test_an_offset_of_a_timestamp_changes_its_look_and_not_its_moment(live: Callable[..., Any]) -> None:
    given = NOW.astimezone(timezone(timedelta(hours=9)))

    async def act(memory: BridgeMemoryStore) -> Any:
        await memory.upsert_facts("alice", [MemoryFact("drink", "tea", updated_at=given), MemoryFact("seat", "aisle")])
        return await memory.get_facts("alice")

    drink, seat = live(act)
    assert drink.updated_at == given
    assert drink.updated_at.tzinfo == UTC
    assert seat.updated_at is None


@pytest.mark.parametrize("subject", ["", "x" * 129, "a\x00b", "a\nb", "a\ud800b"])
def test_an_unusable_subject_is_an_invalid_request(live: Callable[..., Any], subject: str) -> None:
    with pytest.raises(client.InvalidRequest) as refused:
        live(lambda memory: memory.get_facts(subject))
    assert [error.pointer for error in refused.value.errors] == ["subject_id"]


def test_what_may_never_be_kept_is_refused_with_a_code_and_the_rest_of_the_list_is_stored(
    live: Callable[..., Any],
) -> None:
    async def act(memory: BridgeMemoryStore) -> Any:
        facts = [MemoryFact("drink", "tea"), MemoryFact("card", "4111 1111 1111 1111"), MemoryFact("seat", "aisle")]
        with pytest.raises(client.MemoryWriteRejected) as refused:
            await memory.upsert_facts("alice", facts)
        return refused.value, await memory.get_facts("alice")

    error, facts = live(act)
    assert error.reason == "card"
    assert [fact.key for fact in facts] == ["drink", "seat"]


def test_a_deleted_fact_written_again_waits_for_the_customer_without_a_word(live: Callable[..., Any]) -> None:
    async def act(memory: BridgeMemoryStore) -> Any:
        await memory.upsert_facts("alice", [MemoryFact("drink", "tea")])
        assert await memory.delete_fact("alice", "drink")
        await memory.upsert_facts("alice", [MemoryFact("drink", "tea")])
        return await memory.get_facts("alice")

    assert live(act) == []


def test_the_python_of_the_documentation_works_as_written(live: Callable[..., Any], live_server: Any) -> None:
    live(lambda memory: memory.context("alice-17"))  # the first call of a process takes longer than a turn may wait
    page = (settings.BASE_DIR / "docs" / "bridge.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    ours = next(block for block in blocks if "BridgeMemoryStore" in block)
    code = "async def main():\n" + textwrap.indent(ours, "    ") + "    return block, done\n"
    names = {
        "BRIDGE": f"{live_server.url}/bridge/v1",
        "KEY": auth.issue("assistant", "airline", auth.SCOPES, now=clock.now())[1],
        "messages": [{"role": "user", "content": "I always sit on the aisle"}],
    }
    exec(code, names)
    block, done = asyncio.run(names["main"]())
    assert block.startswith("<customer_memory>")
    assert done.state == "queued"
