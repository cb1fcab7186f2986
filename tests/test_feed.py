"""The feed of changes: nothing is missed, nothing is told to whom it does not concern, no value stands in it."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, connections, transaction
from django.test import Client
from django.utils import timezone

from agent_bridge import auth, feed
from memory_portal import store
from memory_portal.enums import ActorKind, EventKind, FreezeReason, Origin
from memory_portal.models import TOLD, Customer, FactEvent
from memory_portal.store.feed import CHANGE_KINDS, ERASED, GIVING, TAKING

pytestmark = pytest.mark.django_db(transaction=True)

Agent = Callable[..., Client]
ASSISTANT = store.Actor(ActorKind.AGENT, "1", "Clearsky assistant")
CUSTOMER = store.Actor(ActorKind.CUSTOMER, "c")
CANARY = "zebra-canary-4711"


def subject(name: str = "alice", profile: str = "airline") -> store.Subject:
    return store.Subject(name, profile)


def writes(key: str, value: str = "the aisle", *, name: str = "alice", profile: str = "airline", **more: Any) -> int:
    """The customer writes a fact of their own; its id."""
    now = timezone.now()
    draft = store.draft(
        key=key,
        value=value,
        category=more.pop("category", "preference"),
        origin=Origin.CUSTOMER,
        said_at=now,
        now=now,
    )
    fact = store.submit(subject(name, profile), [draft], CUSTOMER, now=now)[0].fact
    assert fact
    return fact.id


def pk(name: str = "alice") -> int:
    customer = store.find(subject(name))
    assert customer
    return customer.pk


def agrees(name: str = "alice") -> None:
    store.give_consent(pk(name), CUSTOMER, now=timezone.now(), channel="portal", language="en")


def told(client: Client, query: str = "") -> list[tuple[str, str, str | None]]:
    answer = client.get(f"/bridge/v1/changes{query}")
    assert answer.status_code == 200, answer.content
    return [(change["subject_id"], change["kind"], change["key"]) for change in answer.json()["changes"]]


def follow(client: Client, limit: int = 100, after: str = "") -> Iterator[dict[str, Any]]:
    """Every change there is, page by page."""
    more = True
    while more:
        page = client.get(f"/bridge/v1/changes?limit={limit}&after={after}").json()
        yield from page["changes"]
        after, more = page["next"], page["more"]


def test_an_agent_hears_what_happened_to_the_facts_and_never_what_they_say(agent: Agent) -> None:
    seat = writes("seat", CANARY)
    meal = writes("meal", f"{CANARY} for dinner")
    now = timezone.now()
    store.freeze(pk(), seat, FreezeReason.WRONG, CUSTOMER, now=now)
    store.thaw(pk(), seat, CUSTOMER, now=now)
    store.correct(
        pk(),
        seat,
        store.draft(key="seat", value="window", category="preference", origin=Origin.CUSTOMER, said_at=now, now=now),
        CUSTOMER,
        now=now,
        version=3,
    )
    store.forget(pk(), [meal], CUSTOMER, now=now)
    store.pause(pk(), "learning", CUSTOMER, now=now)
    store.clear(pk(), CUSTOMER, now=now)
    client = agent()
    assert told(client) == [
        ("alice", "added", "seat"),
        ("alice", "added", "meal"),
        ("alice", "frozen", "seat"),
        ("alice", "thawed", "seat"),
        ("alice", "corrected", "seat"),
        ("alice", "forgotten", "meal"),
        ("alice", "cleared", None),
    ]
    answer = client.get("/bridge/v1/changes")
    assert CANARY not in answer.content.decode()
    assert answer.json()["changes"][2]["code"] == "wrong"


def test_withdrawn_consent_and_what_ended_by_itself_are_told(agent: Agent) -> None:
    fact = writes("seat")
    agrees()
    writes("nut_allergy", "peanuts", category="safety")
    now = timezone.now()
    store.withdraw_consent(pk(), CUSTOMER, now=now)
    store.keep_until(pk(), fact, now + timedelta(days=1), CUSTOMER, now=now)
    store.sweep(now=now + timedelta(days=2))
    assert told(agent())[-2:] == [("alice", "consent_withdrawn", None), ("alice", "expired", "seat")]


def test_a_page_ends_where_it_was_told_to_and_the_next_goes_on_there(agent: Agent) -> None:
    for number in range(7):
        writes(f"seat_{number}", f"seat {number}")
    client = agent()
    for limit in (1, 2, 3, 7, 100):
        assert [change["key"] for change in follow(client, limit)] == [f"seat_{number}" for number in range(7)]


def test_a_reader_at_the_end_stays_there_until_something_happens(agent: Agent) -> None:
    writes("seat")
    client = agent()
    page = client.get("/bridge/v1/changes").json()
    again = client.get(f"/bridge/v1/changes?after={page['next']}").json()
    assert again == {"changes": [], "next": page["next"], "more": False}
    writes("meal", "fish")
    assert told(client, f"?after={page['next']}") == [("alice", "added", "meal")]


def test_now_leaves_out_what_was_and_misses_nothing_that_comes(agent: Agent) -> None:
    writes("seat")
    client = agent()
    start = client.get("/bridge/v1/changes?after=now").json()
    assert start["changes"] == []
    writes("meal", "fish")
    assert told(client, f"?after={start['next']}") == [("alice", "added", "meal")]


def test_what_commits_late_is_not_passed_over(agent: Agent) -> None:
    """The slow writer has the lower id and transaction, and is not there yet when the feed is read."""
    writes("seat")
    writes("seat", name="bob")
    client = agent()
    start = client.get("/bridge/v1/changes").json()["next"]
    slow = connections.create_connection("default")
    slow.set_autocommit(False)
    try:
        with slow.cursor() as cursor:
            cursor.execute(
                "INSERT INTO memory_portal_factevent (customer_id, at, kind, key, code, actor_kind, actor_id, agent)"
                " VALUES (%s, now(), 'corrected', 'late', '', 'customer', '', '')",
                [pk()],
            )
        writes("meal", "fish", name="bob")
        at_once = client.get(f"/bridge/v1/changes?after={start}").json()
        assert at_once["changes"] == []
        slow.commit()
    finally:
        slow.close()
    assert told(client, f"?after={at_once['next']}") == [("alice", "corrected", "late"), ("bob", "added", "meal")]


def test_while_many_write_at_once_a_follower_misses_nothing_and_sees_each_customer_in_order() -> None:
    writers, rounds = 6, 40
    names = [f"customer-{number}" for number in range(4)]
    for name in names:
        store.submit(subject(name), [], ASSISTANT, now=timezone.now())
    broke: list[BaseException] = []

    def write(number: int) -> None:
        dice = random.Random(number)
        try:
            for turn in range(rounds):
                name = dice.choice(names)
                with transaction.atomic():  # others commit between the first and the last of it
                    for part in range(dice.choice([1, 1, 3])):
                        writes(f"key_{number}_{turn}_{part}", f"value {number} {turn} {part}", name=name)
        except BaseException as error:
            broke.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    seen: list[store.Change] = []
    page, after, pages = store.changes("airline", "a", "", limit=1), "", 0
    writing = True
    while writing or page.more or page.changes:
        writing = any(thread.is_alive() for thread in threads)  # asked before reading: the last commit is still ahead
        page = store.changes("airline", "a", after, limit=7)
        seen += page.changes
        after, pages = page.next, pages + 1
    for thread in threads:
        thread.join()
    assert not broke
    assert sorted(change.id for change in seen) == list(FactEvent.objects.order_by("pk").values_list("pk", flat=True))
    for name in names:
        mine = [change.id for change in seen if change.subject_id == name]
        assert mine == sorted(mine)
    print(f"{len(seen)} changes of {writers} writers followed in {pages} pages")


def test_one_transactions_changes_come_together_savepoints_too(agent: Agent) -> None:
    with transaction.atomic():
        writes("seat")
        with transaction.atomic():
            writes("meal", "fish")
    assert FactEvent.objects.values("xid").distinct().count() == 1
    assert len(told(agent())) == 2


def test_events_older_than_the_feed_are_not_in_it(agent: Agent) -> None:
    writes("seat")
    FactEvent.objects.create(
        customer_id=pk(),
        at=timezone.now(),
        kind=EventKind.CORRECTED,
        key="old",
        actor_kind=ActorKind.CUSTOMER,
        xid=None,
    )
    assert told(agent()) == [("alice", "added", "seat")]


# --- to whom ----------------------------------------------------------------------------------------------------------


def test_a_key_hears_of_its_own_profile_only(agent: Agent) -> None:
    writes("seat")
    writes("milk", "oat", profile="grocery")
    assert told(agent()) == [("alice", "added", "seat")]
    assert told(agent(profile="grocery")) == [("alice", "added", "milk")]


def test_rows_of_others_move_the_cursor_and_are_not_read_twice(agent: Agent) -> None:
    for number in range(6):
        writes(f"milk_{number}", f"brand {number}", profile="grocery")
    writes("seat")
    seen, after, calls, more = [], "", 0, True
    while more:
        page = store.changes("airline", "Clearsky assistant", after, scan=3)
        seen += [change.key for change in page.changes]
        after, more, calls = page.next, page.more, calls + 1
    assert (seen, calls) == (["seat"], 3)


def test_without_the_safety_scope_no_safety_fact_is_named(agent: Agent) -> None:
    writes("seat")
    agrees()
    fact = writes("nut_allergy", "peanuts", category="safety")
    store.forget(pk(), [fact], CUSTOMER, now=timezone.now())
    store.withdraw_consent(pk(), CUSTOMER, now=timezone.now())
    assert told(agent(auth.READ)) == [("alice", "added", "seat")]
    assert len(told(agent(auth.READ, auth.READ_SAFETY))) == 4


def test_who_knew_an_ordinary_fact_hears_that_it_became_a_safety_fact(agent: Agent) -> None:
    fact = writes("nuts", "likes none of them")
    agrees()
    now = timezone.now()
    draft = store.draft(
        key="nuts", value="allergic to nuts", category="safety", origin=Origin.CUSTOMER, said_at=now, now=now
    )
    store.correct(pk(), fact, draft, CUSTOMER, now=now, version=1)
    assert told(agent(auth.READ))[-1] == ("alice", "corrected", "nuts")


@pytest.mark.parametrize("how", ["paused", "agent off", "category off"])
def test_an_agent_that_may_not_use_the_facts_hears_only_of_what_is_taken_away(agent: Agent, how: str) -> None:
    writes("seat")
    now = timezone.now()
    if how == "paused":
        store.pause(pk(), "using", CUSTOMER, now=now)
    elif how == "agent off":
        store.choose(pk(), {"no_use_agents": ["Clearsky assistant"]}, CUSTOMER, now=now)
    else:
        store.choose(pk(), {"no_use_categories": ["preference"]}, CUSTOMER, now=now)
    fact = writes("meal", "fish")
    store.forget(pk(), [fact], CUSTOMER, now=now)
    heard = told(agent())
    assert ("alice", "added", "meal") not in heard
    assert heard[-1] == ("alice", "forgotten", "meal")


def test_a_session_token_of_one_customer_follows_no_feed(agent: Agent) -> None:
    opened = agent().post(
        "/bridge/v1/sessions", {"subject_id": "alice", "session_id": "s"}, content_type="application/json"
    )
    client = Client(headers={"Authorization": f"Bearer {opened.json()['token']}"})
    answer = client.get("/bridge/v1/changes")
    assert (answer.status_code, answer.json()["code"]) == (403, "key_needed")


# --- cursors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", ["x", "0", "AQ", "é", "////", "AAAAAAAAAAAAAAAAAAAAAAAAAAAA", "NOW", "A" * 64])
def test_what_is_no_cursor_is_refused_by_name(agent: Agent, after: str) -> None:
    answer = agent().get("/bridge/v1/changes", {"after": after})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert answer.json()["errors"][0]["pointer"] == "after"


def test_a_cursor_of_another_server_or_from_the_future_is_lost(agent: Agent) -> None:
    from memory_portal.store.feed import _place, _text

    writes("seat")
    place = _place(store.changes("airline", "a", "").next, _server(), 2**62)
    for lost in (place._replace(server=place.server ^ 1), place._replace(xid=place.xid + 2**40)):
        answer = agent().get("/bridge/v1/changes", {"after": _text(lost)})
        assert (answer.status_code, answer.json()["code"]) == (410, "cursor_lost")


def _server() -> int:
    from memory_portal.store.feed import HERE, _short

    with connection.cursor() as cursor:
        cursor.execute(HERE)
        return _short(cursor.fetchone()[0])


# --- waiting ----------------------------------------------------------------------------------------------------------


class Clock:
    """Time that passes only while somebody waits; `at` says what happens then."""

    def __init__(self, **at: Callable[[], object]) -> None:
        self.now, self.looks = 0.0, 0
        self.at = {int(name.removeprefix("s")): act for name, act in at.items()}

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds
        self.looks += 1
        if act := self.at.get(round(self.now)):
            act()


def read(after: str) -> store.Changes:
    return store.changes("airline", "Clearsky assistant", after)


def test_a_call_that_waits_is_answered_when_something_happens() -> None:
    clock = Clock(s3=lambda: writes("seat"))
    page = feed.wait_for(read, "now", 25, pause=clock.pause, clock=clock)
    assert [change.key for change in page.changes] == ["seat"]
    assert clock.now == 3


def test_a_call_that_waits_in_vain_ends_with_a_cursor_that_misses_nothing() -> None:
    clock = Clock()
    page = feed.wait_for(read, "now", 25, pause=clock.pause, clock=clock)
    assert (page.changes, clock.now, clock.looks) == ((), 25, 25)
    writes("seat")
    assert len(read(page.next).changes) == 1


def test_while_a_call_waits_no_transaction_is_open() -> None:
    idle: list[bool] = []
    clock = Clock(s1=lambda: idle.append(connection.in_atomic_block), s2=lambda: idle.append(not _idle()))
    feed.wait_for(read, "now", 3, pause=clock.pause, clock=clock)
    assert idle == [False, False]


def _idle() -> bool:
    assert connection.connection
    return bool(connection.connection.info.transaction_status.name == "IDLE")


def test_a_call_that_does_not_wait_takes_no_seat(settings: Any) -> None:
    settings.BRIDGE_WAITS = 1
    clock = Clock(s1=lambda: feed.wait_for(read, "now", 0), s2=lambda: writes("seat"))
    assert len(feed.wait_for(read, "now", 25, pause=clock.pause, clock=clock).changes) == 1


def test_more_waiting_calls_than_seats_are_answered_at_once() -> None:
    clock = Clock()
    with feed.SEATS.one_of(settings.BRIDGE_WAITS) as first:
        assert first
        page = feed.wait_for(read, "now", 25, pause=clock.pause, clock=clock)
    assert (page.changes, clock.looks) == ((), 0)
    with feed.SEATS.one_of(settings.BRIDGE_WAITS) as again:
        assert again


def test_a_key_revoked_while_its_call_waits_is_not_answered(agent: Agent) -> None:
    client = agent()
    key = auth.AgentKey.objects.get()
    clock = Clock(s2=lambda: auth.revoke(key, now=timezone.now()), s3=lambda: writes("seat"))
    del client

    def check() -> None:
        key.refresh_from_db(fields=["revoked_at"])
        if key.revoked_at:
            raise auth.NotAuthenticated("key_revoked")

    with pytest.raises(auth.NotAuthenticated):
        feed.wait_for(read, "now", 25, check=check, pause=clock.pause, clock=clock)
    assert clock.now == 2


# --- the index --------------------------------------------------------------------------------------------------------


def test_the_index_is_over_exactly_the_kinds_that_are_told() -> None:
    assert sorted({*TOLD, ERASED}) == sorted(CHANGE_KINDS) == sorted({*GIVING, *TAKING, ERASED})


def _scans() -> tuple[int, int]:
    """How often the month of these events was read through and how often its feed's index was asked, as the server counts."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute(
            "SELECT t.seq_scan, i.idx_scan FROM pg_stat_user_tables AS t JOIN pg_stat_user_indexes AS i USING (relid)"
            " JOIN pg_inherits AS h ON h.inhrelid = i.indexrelid AND h.inhparent = 'event_feed'::regclass"
            " WHERE t.relname = to_char(now() AT TIME ZONE 'UTC', '\"memory_portal_factevent_\"YYYY_MM')"
        )
        read_through, asked = cursor.fetchone()
    return read_through, asked


def test_a_page_of_many_events_is_read_from_the_index_alone() -> None:
    writes("seat")
    customer = Customer.objects.get()
    FactEvent.objects.bulk_create(
        [
            FactEvent(
                customer=customer,
                at=timezone.now(),
                kind=EventKind.RENEWED if number % 2 else EventKind.UPDATED,
                key="seat",
                actor_kind=ActorKind.AGENT,
            )
            for number in range(20_000)
        ],
        batch_size=2_000,
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memory_portal_factevent")
    after, (read_through, asked) = "", _scans()
    for _ in range(8):  # past the change to a generic plan
        after = store.changes("airline", "a", after).next
    assert _scans() == (read_through, asked + 8)
