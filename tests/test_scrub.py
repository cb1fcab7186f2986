"""Erased means gone from PostgreSQL's own files as well: data pages and write-ahead log, byte by byte."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection, connections
from django.utils import timezone

from agent_bridge import jobs
from agent_bridge.auth import SCOPES, issue
from agent_bridge.extraction import Turn
from memory_portal import scrub, store
from memory_portal.enums import ActorKind, Origin
from memory_portal.models import Customer
from tests.figures import Figure

pytestmark = pytest.mark.django_db(transaction=True)

CUSTOMER = store.Actor(ActorKind.CUSTOMER, "c")


def asked(question: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(question)
        return str(cursor.fetchone()[0])


def told(*commands: str) -> None:
    with connection.cursor() as cursor:
        for command in commands:
            cursor.execute(command)


@pytest.fixture
def server() -> Iterator[Path]:
    """The server's own files, and a log whose segments are not used again."""
    folder = Path(asked("SHOW data_directory"))
    if not os.access(folder / "pg_wal", os.R_OK):
        pytest.skip("the files of this server are not to be read from here")
    told("ALTER SYSTEM SET wal_recycle = off", "SELECT pg_reload_conf()")
    yield folder
    told("ALTER SYSTEM RESET wal_recycle", "SELECT pg_reload_conf()")


def hits(folder: Path, words: list[str]) -> dict[str, int]:
    """How often any of the words stands in the data files and in the log."""
    told("CHECKPOINT")
    found = {"data": 0, "log": 0}
    own = f"base/{asked('SELECT oid FROM pg_database WHERE datname = current_database()')}"
    for path in [path for part in (own, "global", "pg_wal") for path in (folder / part).rglob("*")]:
        if not path.is_file():
            continue
        try:
            held = path.read_bytes()
        except FileNotFoundError:
            continue
        found["log" if "pg_wal" in path.parts else "data"] += sum(held.count(word.encode()) for word in words)
    return found


def customer(name: str, facts: int) -> list[str]:
    subject, now = store.Subject(name, "grocery"), timezone.now()
    words = [f"{name}-likes-{n:03d}" for n in range(facts)]
    drafts = [
        store.draft(key=f"note_{n}", value=word, category="preference", origin=Origin.CUSTOMER, said_at=now, now=now)
        for n, word in enumerate(words)
    ]
    store.submit(subject, drafts, CUSTOMER, now=now)
    store.attach_email(subject, f"{name}@example.org")
    return words


@pytest.mark.parametrize(("closed", "all_"), [(2, 6), pytest.param(100, 1_000, marks=pytest.mark.deep)])
def test_erased_values_are_gone_from_data_files_and_log(closed: int, all_: int, server: Path, figure: Figure) -> None:
    names = [f"zqx{n:04d}customer" for n in range(all_)]
    words = {name: customer(name, 15) for name in names}
    key, _ = issue("Shopping assistant", "grocery", SCOPES, now=timezone.now())
    gone = [word for name in names[::3][:closed] for word in (*words[name], name)]
    for n, name in enumerate(names[::3][:closed]):
        pk = Customer.objects.get(subject_id=name).pk
        said = f"{name} says zqturn{n:04d} aloud"
        gone += [f"zqturn{n:04d}"]
        now = timezone.now()
        jobs.submit(store.Subject(name, "grocery"), key, [Turn("user", said, now)], session_id="", now=now)
        for fact in store.facts(pk, now=now)[:5]:  # versions, too
            own = {"key": fact.key, "value": f"{fact.value} indeed", "category": "preference"}
            draft = store.draft(**own, origin=Origin.CUSTOMER, said_at=now, now=now)
            store.correct(pk, fact.id, draft, CUSTOMER, now=now, version=fact.version)
    told("ANALYZE")
    before = hits(server, gone)
    assert before["data"] > len(gone)
    assert before["log"] > len(gone)
    for name in names[::3][:closed]:
        store.erase(Customer.objects.get(subject_id=name).pk, CUSTOMER, now=timezone.now())
    told("VACUUM")
    vacuumed = hits(server, gone)
    done = scrub.scrub()
    assert hits(server, gone) == {"data": 0, "log": 0}
    assert done.log_is_new
    assert done.vacuumed == []
    assert hits(server, words[names[1]])["data"] >= 15, "a neighbour's stay"
    figure(
        "E6",
        f"{closed} of {all_} accounts erased: their words {before['data']} times in data files and {before['log']} in the log"
        f" before, {vacuumed['data']} in data files after VACUUM alone, 0 and 0 after the scrub",
    )


def test_a_large_table_is_vacuumed_and_said_to_be(server: Path) -> None:
    customer("alice", 3)
    out = StringIO()
    call_command("scrub", "--up-to-mb", "-1", stdout=out)
    assert "0 tables rewritten" in out.getvalue()
    assert "memory_portal_memoryfact: vacuumed only" in out.getvalue()
    out = StringIO()
    call_command("scrub", "--all", stdout=out)
    assert "vacuumed only" not in out.getvalue()
    assert "log is new" in out.getvalue()


def test_a_table_in_use_is_not_waited_for(server: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrub, "PATIENCE", "50ms")
    reading, over = threading.Event(), threading.Event()

    def read() -> None:
        told("BEGIN", "LOCK TABLE memory_portal_ticket IN ACCESS SHARE MODE")
        reading.set()
        over.wait(30)
        told("ROLLBACK")
        connections.close_all()

    thread = threading.Thread(target=read)
    thread.start()
    assert reading.wait(30)
    try:
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO memory_portal_ticket (customer_id, purpose, detail, digest, created_at, expires_at)"
                           " SELECT 1, '', '', '', now(), now() WHERE false")  # fmt: skip
        done = scrub.scrub()
    finally:
        over.set()
        thread.join()
    assert "memory_portal_ticket" not in done.rewritten
    assert "memory_portal_memoryfact" in done.rewritten
    assert asked("SHOW lock_timeout") == "0"


def test_what_the_role_may_not_do_is_said() -> None:
    told("DROP ROLE IF EXISTS plain", "CREATE ROLE plain")
    done = scrub.Scrubbed()
    try:
        told("SET ROLE plain")
        with connection.cursor() as cursor:
            scrub._new_log(cursor, done)
        assert (done.log_is_new, "pg_checkpoint" in done.notes[0]) == (False, True)
        with scrub._owner():
            assert asked("SELECT current_user") != "plain"
        assert asked("SELECT current_user") == "plain"
    finally:
        told("RESET ROLE", "DROP ROLE plain")


def test_a_log_whose_segments_are_used_again_is_not_called_new() -> None:
    done = scrub.Scrubbed()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_create_physical_replication_slot('lags')")
        try:
            scrub._new_log(cursor, done)
        finally:
            cursor.execute("SELECT pg_drop_replication_slot('lags')")
    assert not done.log_is_new
    assert "wal_recycle" in done.notes[0]
    assert "slots" in done.notes[1]
