"""Tampering with the events is found and named, by trails, by seals and by a witness outside; what is lawful is no fault."""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.test import override_settings
from pytest_django.fixtures import Settings

from memory_portal import store
from memory_portal.enums import ActorKind, EventKind, Origin
from memory_portal.models import AuditSeal, Customer, FactEvent
from memory_portal.store import Actor, Subject, faults, months, seals, trail
from memory_portal.store.faults import Edit
from tests.conftest import NOW
from tests.figures import Figure
from tests.tampered import EDITS, C, E, S, delete, ids, number, sql, unseen

pytestmark = pytest.mark.django_db

CUSTOMER = Actor(ActorKind.CUSTOMER, "1")
LATER = NOW + timedelta(days=2)
"""When the time is over in which events of the version before are taken for what they are."""
NINE = set(Edit)


def acts(name: str, *keys: str, now: datetime = NOW) -> None:
    """One event for each key, a second apart."""
    for place, key in enumerate(keys):
        at = now + timedelta(seconds=place)
        draft = store.draft(
            key=key, value=f"{key} x", category="preference", origin=Origin.CUSTOMER, said_at=at, now=at
        )
        store.submit(Subject(name, "grocery"), [draft], CUSTOMER, now=at)


def pk(name: str) -> int:
    return number(name)


@pytest.fixture
def trails(db: None) -> None:
    acts("alice", "seat", "tea")
    acts("bob", "seat", "tea", "size")
    acts("alice", "size", "milk")
    store.seal(NOW)


def found(now: Any = LATER) -> list[str]:
    return [str(fault) for fault in store.verify(now).faults]


def kinds(now: Any = LATER) -> Counter[str]:
    return Counter(str(fault.edit) for fault in store.verify(now).faults)


# --- nothing wrong ----------------------------------------------------------------------------------------------------


def test_what_the_store_wrote_is_in_order(trails: None) -> None:
    acts("carol", "seat")
    report = store.verify(LATER)
    assert report.ok, report.faults
    assert (report.events, report.trails, report.older, report.dropped, report.unsealed) == (8, 3, 0, 0, 1)


def test_an_empty_database_is_in_order() -> None:
    assert store.verify(NOW).ok
    assert store.seal(NOW) is None
    assert store.verify(NOW).ok


def test_every_act_and_every_note_leaves_the_trail_whole(trails: None) -> None:
    fact = store.facts(pk("alice"), now=NOW)[0]
    store.forget(pk("alice"), [fact.id], CUSTOMER, now=NOW)
    store.note(pk("alice"), EventKind.SIGNED_IN, CUSTOMER, now=NOW)
    store.pause(pk("alice"), "using", CUSTOMER, now=NOW)
    store.pause(pk("alice"), "using", CUSTOMER, now=NOW)
    store.clear(pk("alice"), CUSTOMER, now=NOW)
    assert found() == []
    alice = Customer.objects.get(subject_id="alice")
    assert alice.trail_seq == len(ids("alice")) == 8
    assert list(FactEvent.objects.filter(customer=alice).order_by("pk").values_list("seq", flat=True)) == [*range(1, 9)]


def test_an_erased_customers_trail_stays_whole_under_a_number_that_is_nobodys(trails: None) -> None:
    gone = pk("alice")
    store.erase(gone, CUSTOMER, now=NOW)
    store.seal(NOW)
    assert found() == []
    unseen(f"DELETE FROM {E} WHERE customer_id = %s AND kind = 'cleared'", gone)
    assert any(f"cut off: customer {gone}, places 5" in line for line in found())


def test_somebody_erased_this_moment_signs_in_and_leaves_nothing(trails: None) -> None:
    gone = pk("alice")
    store.erase(gone, CUSTOMER, now=NOW)
    store.note(gone, EventKind.SIGNED_IN, CUSTOMER, now=NOW)
    assert found() == []


def test_what_is_rolled_back_leaves_no_gap(trails: None) -> None:
    with transaction.atomic():
        acts("alice", "gone")
        transaction.set_rollback(True)
    acts("alice", "kept")
    assert found() == []


# --- the nine edits ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", EDITS)
def test_each_edit_is_named(trails: None, what: str) -> None:
    edit, act = EDITS[what]
    assert found() == []
    act()
    assert edit in kinds(), found()


def test_nine_kinds_of_edits_are_named_nine_times_out_of_nine(figure: Figure) -> None:
    """Each kind once in a database of its own making; rolling it all back is the ninth."""
    named = {}
    for edit in NINE - {Edit.ROLLED_BACK}:
        what, (_, act) = next((what, how) for what, how in EDITS.items() if how[0] == edit)
        with transaction.atomic():
            acts("alice", "seat", "tea")
            acts("bob", "seat", "tea", "size")
            acts("alice", "size", "milk")
            store.seal(NOW)
            act()
            named[edit] = edit in kinds(), what
            transaction.set_rollback(True)
        seals.path().unlink()
    acts("alice", "seat")
    store.seal(NOW)
    older = transaction.savepoint()
    acts("alice", "tea")
    store.seal(NOW)
    assert found() == []
    transaction.savepoint_rollback(older)
    named[Edit.ROLLED_BACK] = Edit.ROLLED_BACK in kinds(), "an older copy of the database"
    assert set(named) == NINE
    assert all(right for right, _ in named.values()), named
    figure("A2", f"{len(named)} kinds of edits by the owner of the database, triggers off: {len(named)} named")


def test_the_faults_say_where(trails: None) -> None:
    second, bob = ids("alice")[1], pk("bob")
    unseen(f"UPDATE {E} SET code = 'forged' WHERE id = %s", second)
    unseen(f"UPDATE {E} SET customer_id = %s WHERE id = %s", bob, ids("alice")[2])
    assert f"changed: customer {pk('alice')}, event {second} (place 2)" in found()
    assert any(line.endswith(f"from customer {pk('alice')}") for line in found())


def test_a_whole_trail_that_was_moved_is_named_event_by_event(trails: None) -> None:
    unseen(f"UPDATE {E} SET customer_id = %s WHERE customer_id = %s", pk("bob"), pk("alice"))
    assert kinds()["moved"] == 4
    assert "trail removed" not in kinds()


def test_many_misfits_are_all_told(trails: None) -> None:
    acts("dora", *(f"k{number}" for number in range(40)))
    unseen(f"UPDATE {E} SET agent = 'x' WHERE customer_id = %s", pk("dora"))
    unseen(f"DELETE FROM {E} WHERE customer_id = %s", pk("bob"))
    assert kinds()["changed"] == 40


def test_the_search_for_where_it_came_from_ends(trails: None) -> None:
    keys = trail.ring()
    event = faults.Event(1, 1, b"", NOW, "learned", None, "", "", "", "job", "", "", b"x" * 20, 1)
    lost = faults.Findings(misfits=[event] * 3, empty={(number, 1) for number in range(2, faults.PAIRS)}, last={})
    lost.last = dict.fromkeys(range(2, faults.PAIRS), 0)
    named = Counter(fault.edit for fault in faults.settle(keys, lost))
    assert named == {Edit.INSERTED: 3, Edit.TRAIL_REMOVED: faults.PAIRS - 2}


@pytest.mark.parametrize(
    ("what", "named"),
    [
        ("trail_head = NULL", "cut off: {}: where the trail ends was set back"),
        ("trail_seq = 1000000000", "changed: {}: where the trail ends was changed"),
        ("trail_seq = 0, trail_mac = NULL, trail_head = NULL", "changed: {}: where the trail ends is not noted"),
    ],
)
def test_a_customers_row_that_was_tampered_with_is_named(trails: None, what: str, named: str) -> None:
    unseen(f"UPDATE {C} SET {what} WHERE id = %s", pk("alice"))
    assert named.format(f"customer {pk('alice')}") in found()


def test_a_customer_set_back_to_an_older_self_is_named(trails: None) -> None:
    columns = "trail_seq, trail_mac, trail_head"
    ((*older,),) = sql(f"SELECT {columns} FROM {C} WHERE id = %s", pk("alice"))
    acts("alice", "more")
    with transaction.atomic():
        unseen(f"UPDATE {C} SET ({columns}) = (%s, %s, %s) WHERE id = %s", *older, pk("alice"))
        assert f"rolled back: customer {pk('alice')}: the trail is noted to end before it does" in found()
        acts("alice", "other")  # goes on from there
        assert "rolled back" in kinds()
        # … and the first continuation is taken out of the way.
        unseen(f"DELETE FROM {E} WHERE id = %s", ids("alice")[4])
        acts("alice", "another")
        assert found() == []  # which the seals and the witness tell: nothing had been sealed of it
        transaction.set_rollback(True)
    store.seal(NOW)
    unseen(f"UPDATE {C} SET ({columns}) = (%s, %s, %s) WHERE id = %s", *older, pk("alice"))
    unseen(f"DELETE FROM {E} WHERE id = %s", ids("alice")[4])
    assert "deleted" in kinds()


def test_two_histories_in_one_trail_are_named(trails: None) -> None:
    columns = "trail_seq, trail_mac, trail_head"
    ((*older,),) = sql(f"SELECT {columns} FROM {C} WHERE id = %s", pk("alice"))
    acts("alice", "one")
    first = ids("alice")[-1]
    unseen(f"UPDATE {C} SET ({columns}) = (%s, %s, %s) WHERE id = %s", *older, pk("alice"))
    acts("alice", "other", "two")
    unseen(f"DELETE FROM {E} WHERE id = %s", ids("alice")[5])
    assert any("it follows another event" in line for line in found())
    unseen(f"DELETE FROM {E} WHERE id = %s", ids("alice")[5])
    sql("SELECT 1")
    assert any("the trail ends" in line or "cut off" in line for line in found())
    assert first in ids("alice")


def test_the_same_place_under_another_end_is_named(trails: None) -> None:
    columns = "trail_seq, trail_mac, trail_head"
    ((*older,),) = sql(f"SELECT {columns} FROM {C} WHERE id = %s", pk("alice"))
    acts("alice", "one")
    unseen(f"UPDATE {C} SET ({columns}) = (%s, %s, %s) WHERE id = %s", *older, pk("alice"))
    acts("alice", "other")
    unseen(f"DELETE FROM {E} WHERE id = %s", ids("alice")[5])
    assert f"rolled back: customer {pk('alice')}: the trail ends in another event than noted" in found()


# --- seals and witness ------------------------------------------------------------------------------------------------


def test_a_seal_covers_what_came_since_the_last(trails: None) -> None:
    first = AuditSeal.objects.get()
    assert (first.number, first.events, first.chained, first.trails) == (1, 7, 7, 2)
    assert store.seal(NOW) == first
    acts("carol", "seat")
    second = store.seal(NOW)
    assert second
    assert (second.number, second.from_id, second.events, second.trails) == (2, first.to_id, 1, 1)


def test_events_of_two_months_get_a_seal_each(trails: None) -> None:
    acts("carol", "seat", now=NOW - timedelta(days=40))
    acts("carol", "tea", now=NOW)
    store.seal(NOW)
    assert [f"{seal.month:%m}" for seal in AuditSeal.objects.order_by("number")] == ["05", "04", "05"]
    assert found() == []


def test_a_long_way_is_sealed_in_steps(trails: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seals, "CHUNK", 4)
    acts("carol", *(f"k{number}" for number in range(10)))
    store.seal(NOW)
    assert list(AuditSeal.objects.order_by("number").values_list("events", flat=True)) == [7, 4, 4, 2]
    assert found() == []


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        (f"UPDATE {S} SET events = 6 WHERE number = 1", "changed: seal 1"),
        (f"UPDATE {S} SET mac = decode(repeat('00', 20), 'hex') WHERE number = 2", "changed: seal 2"),
        (f"DELETE FROM {S} WHERE number = 1", "deleted: seals 1 to 1"),
        (f"DELETE FROM {S} WHERE number = 2", "rolled back: the witness knows 1 seals, from 2 on"),
        (f"DELETE FROM {S}", "rolled back: the witness knows 2 seals, from 1 on"),
    ],
)
def test_seals_are_watched_themselves(trails: None, statement: str, named: str) -> None:
    acts("carol", "seat")
    store.seal(NOW)
    unseen(statement)
    assert any(line.startswith(named) for line in found()), found()


def test_a_seal_laid_over_what_another_covers_is_a_fault(trails: None) -> None:
    last = AuditSeal.objects.get()
    seals._write(sealed_at=NOW, from_id=0, to_id=1, month=last.month, events=0, chained=0, trails=0, digest=b"")
    assert "changed: seal 2" in found()


def test_without_the_witness_nobody_can_say(trails: None) -> None:
    seals.path().unlink()
    assert found() == ["rolled back: there is no witness to say otherwise"]


def test_the_witness_is_told_each_new_seal_once_and_torn_lines_spoil_nothing(trails: None) -> None:
    with seals.path().open("a") as file:
        file.write('\n{"seal": 1, "ma')
    acts("carol", "seat")
    store.seal(NOW)
    store.seal(NOW)
    lines = [json.loads(line) for line in seals.path().read_text().splitlines() if line.endswith("}")]
    assert [line["seal"] for line in lines] == [1, 2]
    assert {"seal", "mac", "at", "reach"} == set(lines[1])
    assert found() == []
    assert os.stat(seals.path()).st_mode & 0o777 == 0o600


def test_a_copy_behind_the_witness_tells_it_nothing_until_somebody_says_it_is_on_purpose(trails: None) -> None:
    older = transaction.savepoint()
    acts("alice", "lost")
    store.seal(NOW)
    transaction.savepoint_rollback(older)
    before = seals.path().read_text()
    acts("alice", "other")
    store.seal(NOW)
    assert seals.path().read_text() == before
    assert "rolled back" in kinds()
    call_command("audit_head", "--restored", stdout=StringIO())
    assert found() == []
    acts("alice", "more")
    store.seal(NOW)
    assert found() == []
    assert seals.path().read_text().count("\n") == before.count("\n") + 2


def test_an_empty_copy_can_be_on_purpose_too(trails: None) -> None:
    unseen(f"DELETE FROM {S}")
    unseen(f"DELETE FROM {E}")
    unseen(f"UPDATE {C} SET trail_seq = 0, trail_mac = NULL, trail_head = NULL")
    assert "rolled back" in kinds()
    store.restored()
    assert found() == []
    acts("alice", "anew")
    store.seal(NOW)
    assert found() == []


def test_another_copy_of_the_witness_is_believed(trails: None, tmp_path: Path) -> None:
    other = tmp_path / "copy.jsonl"
    other.write_text(seals.path().read_text() + '\n{"seal":9,"mac":"00"}')
    assert store.verify(LATER).ok
    assert not store.verify(LATER, other).ok


@pytest.mark.django_db(transaction=True)
def test_nothing_is_sealed_while_a_writer_may_still_hold_an_id(figure: Figure) -> None:
    """Who began to write before the seal and ends after it would stand among ids that are sealed."""
    import threading

    acts("alice", "seat")
    acts("bob", "seat")
    begun, may_end = threading.Event(), threading.Event()

    def slow() -> None:
        with transaction.atomic():
            acts("alice", "tea")
            begun.set()
            may_end.wait(30)
        connection.close()

    thread = threading.Thread(target=slow)
    thread.start()
    assert begun.wait(30)
    acts("bob", "tea")  # with a later id, and at once
    waited: list[int] = []
    assert store.seal(NOW, pause=lambda: waited.append(1)) is None
    assert len(waited) == seals.TRIES

    def end() -> None:
        may_end.set()
        thread.join()

    sealed = store.seal(NOW, pause=end)
    assert sealed
    assert sealed.events == 4
    assert store.verify(LATER).ok, store.verify(LATER).faults
    figure("A2", "a writer amid its transaction: sealed after it, and nothing appears below a seal")


@pytest.mark.django_db(transaction=True)
def test_two_sealers_at_once_are_one(figure: Figure) -> None:
    acts("alice", "seat")
    with seals.nobody_else():
        import threading

        got: list[Any] = []

        def other() -> None:
            got.append(store.seal(NOW))
            connection.close()

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert got == [None]
    assert store.seal(NOW)


# --- what is older than the trails ---------------------------------------------------------------------------------------


def old(name: str, count: int) -> None:
    """As the version before wrote them."""
    FactEvent.objects.bulk_create(
        FactEvent(customer_id=pk(name), at=NOW, kind="learned", key=f"k{place}", actor_kind="job")
        for place in range(count)
    )


def test_events_from_before_the_trails_are_covered_by_the_first_seal(trails: None) -> None:
    unseen(f"DELETE FROM {S}")
    seals.path().unlink()
    old("alice", 5)
    report = store.verify(LATER)
    assert report.ok, report.faults
    assert report.older == report.unsealed - 7 == 5
    store.seal(NOW)
    assert store.verify(LATER).ok
    for statement, edit in {
        "UPDATE {} SET key = 'other' WHERE id = %s": "changed",
        "DELETE FROM {} WHERE id = %s": "deleted",
    }.items():
        with transaction.atomic():
            unseen(statement.format(E), ids("alice")[-1])
            assert set(kinds()) == {edit}
            transaction.set_rollback(True)
    old("alice", 1)
    assert "inserted" in kinds()


def test_a_process_of_the_version_before_may_still_write_for_a_day(trails: None) -> None:
    old("alice", 1)
    assert found(NOW + timedelta(hours=20)) == []
    store.seal(NOW + timedelta(hours=20))
    assert found() == []
    old("alice", 1)
    store.seal(LATER)
    assert kinds() == {"inserted": 1}


# --- months -------------------------------------------------------------------------------------------------------------


@override_settings(AUDIT_MONTHS=2)
def test_months_that_were_dropped_in_time_are_no_fault_and_everything_else_still_is(
    trails: None, figure: Figure
) -> None:
    store.tend_months(NOW)
    start = months.later(months.month(NOW), 1)
    for ahead in range(4):
        now = months.later(start, ahead)
        store.tend_months(now)
        acts("alice", f"a{ahead}", f"b{ahead}", now=now)
        acts(f"new{ahead}", "seat", now=now)
    store.erase(pk("bob"), CUSTOMER, now=now)
    store.tend_months(now)
    report = store.verify(LATER)
    assert report.ok, report.faults
    assert report.dropped == 7 + 3  # May and June
    assert not FactEvent.objects.filter(at__lt=months.later(start, 1)).exists()
    figure("A2", f"{report.dropped} events dropped with their months, {report.events} kept: in order")
    with transaction.atomic():
        unseen(f"DELETE FROM {E} WHERE id = %s", ids("alice")[1])
        assert "deleted" in kinds()
        transaction.set_rollback(True)
    with transaction.atomic():
        unseen(f"DELETE FROM {E} WHERE id = %s", ids("alice")[0])
        assert "deleted" in kinds()
        transaction.set_rollback(True)
    with transaction.atomic():
        unseen(f"UPDATE {E} SET agent = 'x' WHERE id = %s", ids("alice")[0])
        assert "changed" in kinds()
        transaction.set_rollback(True)
    with transaction.atomic():
        unseen(f"DROP TABLE {months.parts(months.EVENTS)[0].table}")
        assert "deleted" in kinds()
        transaction.set_rollback(True)
    with transaction.atomic():  # a dropped month comes back in parts
        unseen(f"UPDATE {E} SET at = '2026-05-20T00:00:00Z', id = 1 WHERE id = %s", ids("alice")[0])
        assert any("which was dropped" in line or "no seal knows" in line for line in found())
        transaction.set_rollback(True)
    acts("alice", "late", now=NOW)  # a clock that is years behind: it is kept, and sealed anew
    store.seal(now)
    assert found() == []


@override_settings(AUDIT_MONTHS=2)
def test_what_was_there_before_months_is_dropped_by_one_note(trails: None) -> None:
    sql(f"CREATE TABLE {E}_until_2020_03 (LIKE {E} INCLUDING DEFAULTS)")
    sql(f"ALTER TABLE {E} ATTACH PARTITION {E}_until_2020_03 FOR VALUES FROM (MINVALUE) TO ('2020-03-01T00:00:00Z')")
    for year in (2018, 2019, 2026):
        acts("carol", f"k{year}", now=NOW.replace(year=year))
    old_ones = FactEvent.objects.filter(at__year__lt=2020).count()
    store.seal(NOW)
    store.tend_months(NOW)
    report = store.verify(LATER)
    assert report.ok, report.faults
    assert report.dropped == old_ones > 1


@override_settings(AUDIT_MONTHS=2)
def test_clocks_that_differ_about_midnight_are_no_fault(trails: None) -> None:
    """The second of these was written after the first, by a machine whose month had not ended; it is dropped before it."""
    midnight = months.later(months.month(NOW), 1)
    store.tend_months(NOW)
    acts("carol", "one", now=midnight)
    acts("carol", "two", now=midnight - timedelta(seconds=2))
    acts("carol", "three", now=midnight + timedelta(days=3))
    store.tend_months(months.later(midnight, 2))
    assert not FactEvent.objects.filter(at__lt=midnight).exists()
    assert found(months.later(midnight, 2)) == []


# --- keys -------------------------------------------------------------------------------------------------------------


def test_the_key_can_be_replaced_while_events_lie_under_the_old_one(trails: None, settings: Settings) -> None:
    settings.AUDIT_KEY_FALLBACKS, settings.AUDIT_KEY = [settings.AUDIT_KEY], "another key of forty characters or more"
    acts("alice", "tea2")
    store.seal(NOW)
    assert found() == []
    settings.AUDIT_KEY_FALLBACKS = []
    assert set(kinds()) == {"changed", "rolled back"} or "changed" in kinds()


def test_whoever_has_the_database_and_not_the_key_makes_no_event_that_fits(trails: None, figure: Figure) -> None:
    """Two hundred forgeries of one who knows the code and every row."""
    dice = random.Random(7)
    refused = 0
    for _ in range(200):
        key = dice.randbytes(32)
        event = FactEvent.objects.order_by("?").first()
        assert event
        assert event.mac
        text = trail.event_text(event.customer_id, 99, bytes(event.mac), NOW, "learned", 1, "k", "", "", "job", "1", "")
        mac = bytes(event.mac)[: trail.TAG] + __import__("hmac").digest(key, text, "sha256")[: trail.MAC]
        refused += not trail.signed(trail.ring(), text, mac)
    assert refused == 200
    figure("A2", "200 forged digests without the key: 0 fit")


# --- the commands -----------------------------------------------------------------------------------------------------


def test_the_command_says_ok_with_its_counts(trails: None) -> None:
    out = StringIO()
    call_command("verify_audit", stdout=out)
    assert out.getvalue().startswith(
        "OK: 7 events in 2 trails under 1 seals; 0 from before the trails, 0 dropped in time"
    )


def test_the_command_names_each_fault_and_fails(trails: None, tmp_path: Path) -> None:
    delete(1)()
    out = StringIO()
    with pytest.raises(CommandError, match="2 faults among 6 events"):
        call_command("verify_audit", stdout=out)
    assert out.getvalue().startswith(f"deleted: customer {pk('alice')}, places 2\n")


def test_the_command_shows_so_many_and_counts_the_rest(trails: None) -> None:
    acts("dora", *(f"k{place}" for place in range(60)))
    unseen(f"UPDATE {E} SET agent = 'x' WHERE customer_id = %s", pk("dora"))
    out = StringIO()
    with pytest.raises(CommandError):
        call_command("verify_audit", stdout=out)
    assert out.getvalue().splitlines()[-1] == "and 10 more"


def test_the_head_is_printed_as_the_witness_has_it(trails: None) -> None:
    out = StringIO()
    call_command("audit_head", stdout=out)
    assert out.getvalue().strip() == seals.path().read_text().splitlines()[-1]


# --- how fast ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [20_000, pytest.param(1_000_000, marks=pytest.mark.deep)])
def test_a_million_events_are_checked_in_half_a_minute(size: int, figure: Figure) -> None:
    """Written as the store writes them, in bulk; in the suite a fiftieth of it in a fiftieth of the time, and some."""
    each = 20
    customers = [
        row
        for start in range(0, size // each, 2_000)
        for row in Customer.objects.bulk_create(
            Customer(profile="grocery", subject_id=f"c{start + place}", created_at=NOW)
            for place in range(min(2_000, size // each - start))
        )
    ]
    moment = NOW.replace(tzinfo=None)
    with connection.cursor() as cursor:
        columns = "customer_id, at, kind, fact_id, key, code, actor_kind, actor_id, agent, category, seq, prev, mac"
        with cursor.copy(f"COPY {E} ({columns}) FROM STDIN") as copy:
            for seq in range(1, each + 1):
                for row in customers:
                    prev = row.trail_mac or b""
                    fields = ("learned", seq, "seat", "preference", "", "job", "7", "Clearsky assistant")
                    kind, fact, key, category, code, actor, actor_id, agent = fields
                    mac = trail.sign(trail.event_text(row.pk, seq, prev, moment, *fields))
                    copy.write_row(
                        (row.pk, NOW, kind, fact, key, code, actor, actor_id, agent, category, seq, prev, mac)
                    )
                    row.trail_seq, row.trail_mac = seq, mac
        cursor.execute("CREATE TEMP TABLE heads (id bigint, seq bigint, mac bytea, head bytea)")
        with cursor.copy("COPY heads FROM STDIN") as copy:
            for row in customers:
                head = trail.sign(trail.head_text(row.pk, row.trail_seq, row.trail_mac))
                copy.write_row((row.pk, row.trail_seq, row.trail_mac, head))
        cursor.execute(
            f"UPDATE {C} AS c SET trail_seq = h.seq, trail_mac = h.mac, trail_head = h.head FROM heads AS h WHERE h.id = c.id"
        )
        cursor.execute(f"ANALYZE {E}")
    began = time.perf_counter()
    store.seal(NOW)
    sealing = time.perf_counter() - began
    report = store.verify(LATER)
    assert report.ok, report.faults[:3]
    assert report.events == size
    print(f"{size:,} events: sealed in {sealing:.1f} s, checked in {report.seconds:.1f} s")
    assert report.seconds < 30 * size / 1_000_000 + 3  # the machine has other work, too
    figure("A2", f"{size:,} events checked in {report.seconds:.1f} s")


def test_no_event_is_written_whose_place_cannot_be_noted() -> None:
    gone = Customer(pk=10**9, profile="airline", subject_id="nobody", created_at=NOW)
    happened = trail.follow(gone, at=NOW, kind=EventKind.EXPORTED, actor_kind=ActorKind.CUSTOMER)
    with pytest.raises(DatabaseError, match="not there"), transaction.atomic():
        trail.enter(gone, [happened])
    assert not FactEvent.objects.filter(customer=10**9).exists()
