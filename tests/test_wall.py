"""The second wall: PostgreSQL shows one customer's rows at a time, whoever asks and however, and nobody's while none is named."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import DatabaseError, ProgrammingError, connection, transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from psycopg import sql
from pytest_django import Settings

from agent_bridge import jobs
from agent_bridge.auth import SCOPES, issue
from agent_bridge.extraction import Turn
from memory_portal import backups, store
from memory_portal.store import shelf, wall
from memory_portal.walled.base import DatabaseWrapper
from memory_portal.walled.requests import Walled
from tests.figures import Figure
from tests.people import Person
from tests.test_backup import served

ROLE = "memory_portal_walled"
ASSISTANT = "Shopping assistant"
ELSEWHERE = {
    "agent_bridge_importline": "a file that an agent brought, of many customers at once; each text goes as it is decided",
    "memory_portal_staffalert": "how many customers, not which",
}
"""Tables with something of a customer in them that are not walled, and why."""


def rows(query: str, *values: object) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return cursor.fetchall() if cursor.description else []


def personal() -> dict[str, str]:
    """Every table that leads to one customer, and by which column."""
    found = {}
    for model in apps.get_models():
        for field in model._meta.concrete_fields:
            if field.column in ("customer_id", "customer_number"):
                found[model._meta.db_table] = field.column
    return {**found, "memory_portal_customer": "id", "memory_portal_factrevision": "fact_id"}


def as_role(customer: int | str) -> None:
    rows("SELECT set_config('role', %s, true), set_config('memory_portal.customer', %s, true)", ROLE, str(customer))


@pytest.fixture
def walled(settings: Settings, db: None) -> Iterator[None]:
    """The wall, raised within this test's transaction."""
    settings.DATABASE_ROLE = ROLE
    for _ in range(2):  # twice is once
        call_command("raise_wall", stdout=StringIO())
    yield
    rows("RESET ROLE")


@pytest.fixture
def both(alice: Person, bob: Person) -> tuple[Person, Person]:
    """Alice and Bob with a row of their own in every table."""
    for who in (alice, bob):
        now = timezone.now()
        who.agrees()
        fact = who.fact("coffee", "Dark roast")
        draft = store.draft(
            key="coffee", value="Light", category="preference", origin=fact.origin, said_at=now, now=now
        )
        store.correct(who.pk, fact.id, draft, who.actor, now=now, version=fact.version)
        who.says("coffee", "Medium", ago=0)
        store.forget(who.pk, [who.fact("tea", "Green").id], who.actor, now=now)
        who.is_read_by(ASSISTANT)
        store.issue_ticket(who.pk, "export", now=now)
        key, _ = issue(ASSISTANT, "grocery", SCOPES, now=now)
        subject = store.Subject(who.customer.subject_id, "grocery")
        jobs.submit(
            subject, key, [Turn("user", "I like tea", now)], session_id="s", now=now, debounce=timedelta(days=9)
        )
        rows("INSERT INTO agent_bridge_dayspend (day, customer_id, tokens) VALUES (current_date, %s, 1)", who.pk)
    return alice, bob


# --- by raw SQL -----------------------------------------------------------------------------------------------------------


def test_every_table_about_a_customer_is_behind_the_wall(db: None) -> None:
    secured = {name for (name,) in rows("SELECT relname FROM pg_class WHERE relrowsecurity")}
    policed = {name for (name,) in rows("SELECT tablename FROM pg_policies WHERE policyname = 'one_customer'")}
    assert set(personal()) <= secured & policed | set(ELSEWHERE), "give it a policy, or write down why not"


def test_raw_sql_sees_nobody_while_none_is_named_and_one_customer_when_one_is(
    both: tuple[Person, Person], walled: None, figure: Figure
) -> None:
    alice, bob = both
    tables = personal()
    filled = {table for table in tables if rows(f"SELECT 1 FROM {table} LIMIT 1")}
    assert filled >= set(tables) - {"memory_portal_privacyrequest", "memory_portal_trailend"}
    for nobody in ("", "0"):
        as_role(nobody)
        assert {table: rows(f"SELECT count(*) FROM {table}")[0][0] for table in tables} == dict.fromkeys(tables, 0)
    seen = 0
    for mine, other in ((alice.pk, bob.pk), (bob.pk, alice.pk)):
        as_role(mine)
        for table, column in tables.items():
            if column == "fact_id":
                column = "(SELECT customer_id FROM memory_portal_memoryfact WHERE id = fact_id)"
            owners = {pk for (pk,) in rows(f"SELECT {column} FROM {table}")}
            assert owners == ({mine} if table in filled else set()), table
            assert rows(f"SELECT count(*) FROM {table} WHERE {column} = %s", other) == [(0,)]
            seen += 1
    joined = "SELECT count(*) FROM memory_portal_memoryfact AS f, memory_portal_customer AS c WHERE %s NOT IN (f.customer_id, c.id)"
    assert rows(joined, bob.pk) == [(0,)]
    figure(
        "W3",
        f"{len(tables)} personal tables by raw SQL: 0 rows with no customer named, 0 of the other's in {seen} tries",
    )


def test_nothing_of_another_can_be_changed_removed_or_put_under_them(both: tuple[Person, Person], walled: None) -> None:
    alice, bob = both
    as_role(alice.pk)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE memory_portal_memoryfact SET value = 'Tea' WHERE customer_id = %s", [bob.pk])
        assert cursor.rowcount == 0
        cursor.execute("DELETE FROM memory_portal_tombstone WHERE customer_id = %s", [bob.pk])
        assert cursor.rowcount == 0
        cursor.execute("UPDATE memory_portal_memoryfact SET value = 'Tea'")
        assert cursor.rowcount == len(alice.held)
    moves = "UPDATE memory_portal_memoryfact SET customer_id = %s"
    adds = """
        INSERT INTO memory_portal_consent (customer_id, purpose, text_version, channel, language, given_at)
        VALUES (%s, '', '', '', '', now())
    """
    for statement in (moves, adds):
        with pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
            rows(statement, bob.pk)
    rows("RESET ROLE")
    assert bob.held == {"coffee": "Light"}


def test_the_months_of_a_table_are_no_way_around(both: tuple[Person, Person], walled: None) -> None:
    months = [name for (name,) in rows("SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r'")]
    assert months
    as_role(both[0].pk)
    for month in months:
        with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
            rows(f'SELECT 1 FROM "{month}"')


def test_a_role_may_neither_lift_the_wall_nor_make_a_door(walled: None) -> None:
    as_role("")
    for statement in (
        "ALTER TABLE memory_portal_memoryfact DISABLE ROW LEVEL SECURITY",
        "DROP POLICY one_customer ON memory_portal_memoryfact",
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'",
        "TRUNCATE memory_portal_memoryfact",
    ):
        with pytest.raises(DatabaseError), transaction.atomic():
            rows(statement)
    rows("SET row_security = off")
    with pytest.raises(DatabaseError, match="row-level security"), transaction.atomic():
        rows("SELECT 1 FROM memory_portal_memoryfact")


def test_there_is_no_wall_to_raise_where_none_is_asked_for(settings: Settings) -> None:
    settings.DATABASE_ROLE = ""
    with pytest.raises(CommandError, match="not set"):
        call_command("raise_wall")


# --- how a session is told ------------------------------------------------------------------------------------------------


def test_a_request_begins_as_nobodys_and_ends_as_it_began(settings: Settings) -> None:
    settings.DATABASE_ROLE = ROLE
    seen: list[wall.Told] = []

    def answer(request: HttpRequest) -> HttpResponse:
        seen.append(wall.wanted())
        wall.only(7)
        seen.append(wall.wanted())
        with wall.everyone("a test"):
            wall.only(8)
            seen.append(wall.wanted())
        seen.append(wall.wanted())
        return HttpResponse()

    for path, expected in (
        ("/", [(ROLE, ""), (ROLE, "7"), ("none", ""), (ROLE, "7")]),
        ("/admin/x", [("none", "")] * 4),
    ):
        seen.clear()
        request = HttpRequest()
        request.path_info = path
        Walled(answer)(request)
        assert seen == expected
        assert wall.wanted() == ("none", "")


@pytest.fixture
def session(settings: Settings, transactional_db: None) -> Iterator[DatabaseWrapper]:
    """A connection of the walled engine, and a wall that others than this test's transaction see."""
    settings.DATABASE_ROLE = ROLE
    store.raise_wall()
    session = DatabaseWrapper({**connection.settings_dict})
    yield session
    session.close()
    role = sql.Identifier(ROLE)
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("DROP OWNED BY {}; DROP ROLE {}").format(role, role))


def sees(session: DatabaseWrapper) -> tuple[str, str]:
    with session.cursor() as cursor:
        cursor.execute("SELECT current_setting('role'), current_setting('memory_portal.customer', true)")
        found: tuple[str, str] = cursor.fetchone()
        return found


def test_a_session_is_told_when_something_changed_and_after_all_that_takes_it_back(session: DatabaseWrapper) -> None:
    assert sees(session) == ("none", "")
    with wall.nobody():
        assert sees(session) == (ROLE, "")
        wall.only(1)
        assert sees(session) == (ROLE, "1")
        session.set_autocommit(False)
        wall.only(2)
        assert sees(session) == (ROLE, "2")
        session.rollback()
        assert sees(session) == (ROLE, "2"), "the rollback took it back, and it was told again"
        session.in_atomic_block = True
        point = session.savepoint()
        wall.only(3)
        assert sees(session) == (ROLE, "3")
        with pytest.raises(DatabaseError), session.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")
        wall.only(4)
        session.savepoint_rollback(point)
        assert sees(session) == (ROLE, "4")
        session.in_atomic_block = False
        session.rollback()
        session.set_autocommit(True)
        session.close()
        assert sees(session) == (ROLE, "4"), "a new connection knows nothing of the old one"
    assert sees(session) == ("none", "")


def test_nothing_is_told_twice(session: DatabaseWrapper) -> None:
    told = 0
    with wall.nobody():
        sees(session)
        for _ in range(5):
            assert sees(session) == (ROLE, "")
            told += session.told != (ROLE, "")
    assert told == 0


@pytest.mark.django_db
def test_the_agents_reads_come_through_doors_and_are_the_same(both: tuple[Person, Person], walled: None) -> None:
    alice, now = both[0], timezone.now()
    subject, agent = store.Subject("alice", "grocery"), store.Actor(store.types.ActorKind.AGENT, "1", ASSISTANT)
    owner = (store.context(subject, agent, now=now), store.lookup(subject, "coffee", agent, now=now))
    version = store.version_of(subject)
    reads = rows("SELECT count(*) FROM memory_portal_factread WHERE customer_id = %s", alice.pk)[0][0]
    as_role("")
    assert (store.context(subject, agent, now=now), store.lookup(subject, "coffee", agent, now=now)) == owner
    assert store.version_of(subject) == version
    assert store.lookup(store.Subject("nobody", "grocery"), "", agent, now=now) == []
    rows("RESET ROLE")
    assert rows("SELECT count(*) FROM memory_portal_factread WHERE customer_id = %s", alice.pk) == [(reads + 2,)]
    assert wall.door(shelf.READ).count("%s") == shelf.READ.count("%s")


# --- the site behind it -----------------------------------------------------------------------------------------------------


@pytest.mark.live
@pytest.mark.django_db(transaction=True)
def test_the_site_serves_pages_and_agents_from_behind_the_wall(
    alice: Person, bob: Person, settings: Settings, tmp_path: Path, figure: Figure
) -> None:
    settings.DATABASE_ROLE = ROLE
    store.raise_wall()
    mine, theirs = alice.fact("coffee", "Dark roast"), bob.fact("coffee", "Decaf zq")
    _, key = issue(ASSISTANT, "grocery", SCOPES, now=timezone.now())
    target = backups.conninfo(connection.settings_dict)
    environment = {
        "DATABASE_ROLE": ROLE,
        "SECRET_KEY": settings.SECRET_KEY,
        "AGENT_KEY_PEPPER": settings.AGENT_KEY_PEPPER,
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        with served(target, settings.ERASURE_LEDGER, tmp_path / "var") as bridge:
            assert bridge is not None
            cookies = {settings.SESSION_COOKIE_NAME: alice.client.cookies[settings.SESSION_COOKIE_NAME].value}
            ask = {"Authorization": f"Bearer {key}"}
            with httpx2.Client(
                base_url=str(bridge.base_url).partition("/bridge")[0], cookies=cookies, timeout=30
            ) as page:
                text = page.get("/").text
                assert "Dark roast" in text
                assert "Decaf zq" not in text
                assert page.get(f"/facts/{theirs.id}").status_code == 404
                assert page.get(f"/facts/{mine.id}").status_code == 302, "to its place in the list"
                for path in ("/suggestions/", "/activity/", "/control/", "/assistant/"):
                    assert page.get(path).status_code == 200, path
            told = bridge.get("/subjects/alice/context", headers=ask).json()["always"]
            assert [fact["value"] for fact in told] == ["Dark roast"]
            wrote = bridge.put(
                "/subjects/bob/facts/tea", headers=ask, json={"value": "green tea", "category": "preference"}
            )
            assert wrote.status_code in (201, 202), wrote.text
            turns = {"session_id": "s", "messages": [{"role": "user", "content": "I never eat mushrooms."}]}
            handed = bridge.post("/subjects/bob/turns", headers=ask, json=turns)
            assert handed.status_code == 202, handed.text
            assert bridge.get(f"/jobs/{handed.json()['job_id']}", headers=ask).json()["state"] in ("queued", "running")
            changes = bridge.get("/changes", headers=ask).json()["changes"]
            assert {change["subject_id"] for change in changes} == {"alice", "bob"}
    with psycopg.connect(target) as watched:
        roles = watched.execute(
            "SELECT count(*) FROM pg_roles WHERE rolname = %s AND NOT rolbypassrls AND NOT rolsuper", [ROLE]
        )
        assert roles.fetchone() == (1,)
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("DROP OWNED BY {r}; DROP ROLE {r}").format(r=sql.Identifier(ROLE)))
    figure(
        "W3",
        "the web server behind the wall: pages, an agent's read, write, hand-over, job and feed work; another's fact is 404",
    )
