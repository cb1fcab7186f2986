"""Events and reads lie by the month: made ahead, dropped whole, and no row is lost on the way."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection, transaction
from django.db.utils import ProgrammingError
from django.test import override_settings
from django.utils import timezone

from memory_portal import store
from memory_portal.models import Customer, FactEvent, FactRead
from memory_portal.store import months
from tests.conftest import NOW

pytestmark = pytest.mark.django_db

TABLES = {months.EVENTS: FactEvent, months.READS: FactRead}


@pytest.fixture
def customer(db: None) -> Customer:
    return Customer.objects.create(profile="grocery", subject_id="alice", created_at=NOW)


def event(customer: Customer, at: datetime) -> FactEvent:
    return FactEvent.objects.create(customer=customer, at=at, kind="learned", key="seat", actor_kind="job")


def read(customer: Customer, at: datetime) -> FactRead:
    return FactRead.objects.create(customer=customer, at=at, agent="helper", layer=1, fact_ids=[1])


def many(customer: Customer, at: datetime, count: int) -> None:
    sql(
        "INSERT INTO memory_portal_factevent (customer_id, at, kind, key, code, actor_kind, actor_id, agent)"
        " SELECT %s, %s, 'learned', 'seat', '', 'job', '1', 'helper' FROM generate_series(1, %s)",
        customer.pk,
        at,
        count,
    )


def sql(statement: str, *values: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


def lies_in(row: FactEvent | FactRead) -> str:
    table = type(row)._meta.db_table
    ((name,),) = sql(f"SELECT tableoid::regclass::text FROM {table} WHERE id = %s", row.pk)
    return str(name).removeprefix(f"{table}_")


def names(table: str) -> list[str]:
    return [part.table.removeprefix(f"{table}_") for part in months.parts(table)]


# --- where a row lies -------------------------------------------------------------------------------------------------


def test_the_last_instant_of_a_month_and_the_first_of_the_next_lie_apart(customer: Customer) -> None:
    midnight = months.later(months.month(timezone.now()), 1)
    for make in (event, read):
        before, after = make(customer, midnight - timedelta(microseconds=1)), make(customer, midnight)
        assert lies_in(before) == f"{timezone.now():%Y_%m}"
        assert lies_in(after) == f"{midnight:%Y_%m}"


@pytest.mark.parametrize("year", [1, 1970, 2099, 9999])
def test_a_clock_that_is_wrong_by_years_loses_nothing(customer: Customer, year: int) -> None:
    odd = datetime(year, 6, 15, tzinfo=UTC)
    rows = event(customer, odd), read(customer, odd)
    store.tend_months(timezone.now())
    store.tend_months(timezone.now())
    for row in rows:
        assert lies_in(row) == "default"
        assert type(row)._default_manager.get(pk=row.pk).at == odd


@pytest.mark.parametrize("table", TABLES)
def test_reading_one_month_looks_into_that_month_alone(customer: Customer, table: str) -> None:
    first = months.month(timezone.now())
    plan = sql(
        f"EXPLAIN SELECT * FROM {table} WHERE customer_id = 1 AND at >= %s AND at < %s", first, months.later(first, 1)
    )
    text = "\n".join(line for (line,) in plan)
    assert f"{table}_{first:%Y_%m}" in text
    assert "default" not in text
    assert f"{months.later(first, 1):%Y_%m}" not in text


# --- the months ahead -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", TABLES)
def test_three_months_are_always_ready(table: str) -> None:
    now = datetime(2031, 11, 30, 23, 59, tzinfo=UTC)
    made = store.tend_months(now)["made"]
    ready = [f"{table}_{name}" for name in ("2031_11", "2031_12", "2032_01", "2032_02")]
    assert [name for name in made if name.startswith(table)] == ready
    assert store.tend_months(now)["made"] == []


def test_rows_that_came_before_their_month_was_made_move_there_unchanged(customer: Customer) -> None:
    when = [NOW - timedelta(days=40), NOW, NOW + timedelta(days=20)]
    rows = [make(customer, at) for make in (event, read) for at in when]
    assert {lies_in(row) for row in rows} == {"default"}
    before = [list(model.objects.order_by("pk").values()) for model in TABLES.values()]
    store.tend_months(NOW)
    assert [lies_in(row) for row in rows] == ["2026_04", "2026_05", "2026_06"] * 2
    assert [list(model.objects.order_by("pk").values()) for model in TABLES.values()] == before


@pytest.mark.parametrize(
    "attempt",
    [
        "UPDATE {} SET code = 'forged'",
        "DELETE FROM {}",
        "TRUNCATE {}",
        "UPDATE memory_portal_factevent SET at = at + interval '1 month'",
    ],
)
@pytest.mark.parametrize("part", ["memory_portal_factevent_2026_05", "memory_portal_factevent_default"])
def test_a_month_is_as_closed_as_the_whole(customer: Customer, attempt: str, part: str) -> None:
    event(customer, NOW)
    event(customer, datetime(1999, 1, 1, tzinfo=UTC))
    store.tend_months(NOW)
    sql("ALTER TABLE memory_portal_factevent ENABLE TRIGGER never_emptied")
    with pytest.raises(ProgrammingError, match="append-only"), transaction.atomic():
        sql(attempt.format(part))
    assert FactEvent.objects.count() == 2


# --- the months behind ------------------------------------------------------------------------------------------------


@override_settings(AUDIT_MONTHS=24, READ_MONTHS=13)
def test_events_go_after_two_years_and_reads_after_thirteen_months(customer: Customer) -> None:
    for ago in reversed(range(30)):
        at = months.later(months.month(NOW), -ago) + timedelta(days=5)
        event(customer, at)
        read(customer, at)
        store.tend_months(at)
    done = store.tend_months(NOW)
    assert done["dropped"] == []  # each went when its time came
    assert names(months.EVENTS)[0] == "2024_05"
    assert names(months.READS)[0] == "2025_04"
    later = store.tend_months(months.later(months.month(NOW), 1))
    assert later["dropped"] == ["memory_portal_factevent_2024_05", "memory_portal_factread_2025_04"]
    assert FactEvent.objects.count() == 24
    assert FactRead.objects.count() == 13


def test_what_was_there_before_months_were_kept_goes_when_its_last_month_does(customer: Customer) -> None:
    sql("CREATE TABLE memory_portal_factread_until_2020_03 (LIKE memory_portal_factread INCLUDING DEFAULTS)")
    sql(
        "ALTER TABLE memory_portal_factread ATTACH PARTITION memory_portal_factread_until_2020_03"
        " FOR VALUES FROM (MINVALUE) TO ('2020-03-01T00:00:00Z')"
    )
    old = read(customer, datetime(2018, 7, 1, tzinfo=UTC))
    assert lies_in(old) == "until_2020_03"
    now = datetime(2021, 3, 31, tzinfo=UTC)
    read(customer, datetime(2020, 3, 1, tzinfo=UTC))
    done = store.tend_months(now)
    assert "memory_portal_factread_2020_02" not in done["made"], "the old rows have a place"
    assert "memory_portal_factread_2020_03" in done["made"]
    assert not [name for name in done["dropped"] if "factread" in name]
    assert "memory_portal_factread_until_2020_03" in store.tend_months(now + timedelta(days=1))["dropped"]
    assert not FactRead.objects.filter(pk=old.pk).exists()


def test_a_full_month_is_dropped_as_fast_as_an_empty_one(customer: Customer) -> None:
    start = datetime(2010, 1, 1, tzinfo=UTC)
    took = {}
    for count in (0, 20_000):
        store.tend_months(start)
        many(customer, start, count)
        assert names(months.EVENTS)[0] == "2010_01"
        began = time.perf_counter()
        part = months.parts(months.EVENTS)[0]
        months._drop(months.EVENTS, part)
        took[count] = time.perf_counter() - began
    assert FactEvent.objects.count() == 0
    print(f"dropped an empty month in {1000 * took[0]:.1f} ms, one of 20,000 events in {1000 * took[20_000]:.1f} ms")
    assert took[20_000] < 5 * took[0] + 0.1


@contextmanager
def somebody_reads() -> Iterator[None]:
    """Another connection amid a long transaction that has read both tables."""
    there, over = threading.Event(), threading.Event()

    def reads() -> None:
        with transaction.atomic():
            sql("SELECT count(*) FROM memory_portal_factevent")
            sql("SELECT count(*) FROM memory_portal_factread")
            there.set()
            over.wait(30)
        connection.close()

    thread = threading.Thread(target=reads)
    thread.start()
    assert there.wait(30)
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.django_db(transaction=True)
def test_a_long_reader_makes_it_wait_for_another_time() -> None:
    now = datetime(2012, 1, 1, tzinfo=UTC)
    store.tend_months(now)
    gone = datetime(2015, 1, 1, tzinfo=UTC)
    try:
        with somebody_reads():
            assert store.tend_months(gone) == {"made": [], "dropped": []}
        done = store.tend_months(gone)
        assert "memory_portal_factevent_2012_01" in done["dropped"]
        assert "memory_portal_factread_2015_01" in done["made"]
    finally:
        store.tend_months(timezone.now())


@pytest.mark.django_db(transaction=True)
def test_what_breaks_otherwise_is_told() -> None:
    with somebody_reads(), transaction.atomic():
        sql("SET LOCAL statement_timeout = '200ms'")
        with pytest.raises(OperationalError), transaction.atomic():
            store.tend_months(datetime(2013, 1, 1, tzinfo=UTC))


def test_a_month_by_itself_shows_nothing_to_a_role_that_owns_it_not(customer: Customer) -> None:
    event(customer, NOW)
    read(customer, NOW)
    store.tend_months(NOW)
    sql("CREATE ROLE only_a_guest")
    sql("GRANT SELECT ON ALL TABLES IN SCHEMA public TO only_a_guest")
    sql("SET LOCAL ROLE only_a_guest")
    shown = [sql(f"SELECT count(*) FROM {table}_{part}") for table in TABLES for part in ("2026_05", "default")]
    sql("RESET ROLE")
    assert shown == [[(0,)]] * 4
    assert lies_in(FactEvent.objects.get()) == "2026_05"


def test_a_role_that_owns_no_table_leaves_it_to_the_one_that_does() -> None:
    sql("CREATE ROLE only_a_guest")
    sql(
        "GRANT SELECT, INSERT, DELETE ON memory_portal_factevent_default, memory_portal_factread_default TO only_a_guest"
    )
    sql("SET LOCAL ROLE only_a_guest")
    try:
        assert months.tend_months(datetime(2014, 1, 1, tzinfo=UTC)) == {"made": [], "dropped": []}
    finally:
        sql("RESET ROLE")


def test_the_command_says_what_it_did() -> None:
    out = StringIO()
    call_command("tend_months", stdout=out)
    call_command("tend_months", stdout=out)
    assert out.getvalue().splitlines()[-2:] == ["made: nothing", "dropped: nothing"]
