"""Backups: sealed, over after five weeks, and restored so that nothing erased since is served, which the drill tries out."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from io import BytesIO, StringIO
from pathlib import Path

import httpx2
import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from agent_bridge.auth import SCOPES, issue
from memory_portal import backups, store, traces
from memory_portal.backups import PIECE, BackupError
from memory_portal.enums import ActorKind, Origin
from memory_portal.models import Customer, MemoryFact
from tests.figures import Figure
from tests.live import free_port, until

ROOT = Path(__file__).resolve().parent.parent
CUSTOMER = store.Actor(ActorKind.CUSTOMER, "c")
AGENT = "Shopping assistant"


@pytest.fixture(autouse=True)
def folder(settings: Settings, tmp_path: Path) -> Path:
    settings.BACKUP_DIR = tmp_path / "backups"
    return tmp_path / "backups"


# --- sealing ------------------------------------------------------------------------------------------------------------


def sealed(text: bytes) -> bytes:
    sink = BytesIO()
    backups.seal(BytesIO(text), sink, {"made_at": "now"})
    return sink.getvalue()


def opened(sealed: bytes) -> bytes:
    return b"".join(backups.unsealed(BytesIO(sealed)))


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE])
def test_what_is_sealed_opens_again_and_hides_what_it_is(size: int) -> None:
    text = (b"allergic to nuts " * (size // 17 + 1))[:size]
    assert opened(sealed(text)) == text
    assert b"nuts" not in sealed(text)
    assert sealed(text) != sealed(text)


@pytest.mark.parametrize("how", ["bit", "head", "cut", "cut between", "swapped", "added", "another file's"])
def test_what_was_touched_does_not_open(how: str) -> None:
    whole = sealed(os.urandom(3 * PIECE))
    start = whole.index(b"}\n") + 2
    pieces = [whole[start + n * (PIECE + 16) : start + (n + 1) * (PIECE + 16)] for n in range(3)]
    other = sealed(os.urandom(3 * PIECE))
    touched = {
        "bit": whole[: start + 99] + bytes([whole[start + 99] ^ 1]) + whole[start + 100 :],
        "head": whole.replace(b"now", b"new", 1),
        "cut": whole[:-1],
        "cut between": whole[: start + 2 * (PIECE + 16)],
        "swapped": whole[:start] + pieces[1] + pieces[0] + pieces[2],
        "added": whole + b"x",
        "another file's": whole[:start] + pieces[0] + other[start + PIECE + 16 :],
    }
    with pytest.raises(BackupError, match="changed or cut off"):
        opened(touched[how])


def test_another_key_opens_nothing(settings: Settings) -> None:
    whole = sealed(b"something")
    settings.BACKUP_KEY = "x" * 32
    with pytest.raises(BackupError, match="another one"):
        opened(whole)
    settings.BACKUP_KEY = "short"
    with pytest.raises(BackupError, match="32 characters"):
        opened(whole)
    with pytest.raises(BackupError, match="no backup"):
        opened(b"PGDMP" + bytes(100))


def test_a_copy_is_over_after_its_days_and_other_files_stay(folder: Path, settings: Settings) -> None:
    now = timezone.now()
    folder.mkdir()
    (folder / "notes.txt").touch()
    (folder / "mine.backup").touch()
    for age in (0, 1, settings.BACKUP_DAYS - 1, settings.BACKUP_DAYS + 1, 400):
        (folder / f"memory-portal-{now - timedelta(days=age):%Y%m%dT%H%M%S}Z.backup").touch()
    assert settings.BACKUP_DAYS == 35
    assert backups.prune(folder, now) == 2
    assert len(backups.copies(folder)) == 3
    assert (folder / "notes.txt").exists()
    assert (folder / "mine.backup").exists()


def test_a_url_says_the_same_as_the_connection_string() -> None:
    named = {"HOST": "db", "PORT": "5433", "USER": "p@t", "PASSWORD": "s/p&c:", "NAME": "portal"}
    network = backups.conninfo({**named, "OPTIONS": {"sslmode": "require", "prepare_threshold": 1}})
    assert backups.url(network) == "postgresql://p%40t:s%2Fp%26c%3A@db:5433/portal?sslmode=require"
    assert backups.url(network, password=False) == "postgresql://p%40t@db:5433/portal?sslmode=require"
    socket = backups.conninfo({"HOST": "", "USER": "postgres", "NAME": "portal", "OPTIONS": {"host": "/run/pg"}})
    assert backups.url(socket) == "postgresql://postgres@/portal?host=/run/pg"
    for target in (network, socket):
        assert psycopg.conninfo.conninfo_to_dict(backups.url(target)) == psycopg.conninfo.conninfo_to_dict(target)


# --- there and back -----------------------------------------------------------------------------------------------------


def customers(how_many: int, facts: int = 3) -> list[str]:
    now = timezone.now()
    names = [f"zq-customer-{n:05d}" for n in range(how_many)]
    for name in names:
        drafts = [
            store.draft(
                key=f"note_{n}",
                value=f"{name} likes {n}",
                category="preference",
                origin=Origin.CUSTOMER,
                said_at=now,
                now=now,
            )
            for n in range(facts)
        ]
        store.submit(store.Subject(name, "grocery"), drafts, CUSTOMER, now=now)
    return names


def here() -> str:
    return backups.conninfo(connection.settings_dict)


def on(target: str, ledger: Path) -> dict[str, str]:
    return {**os.environ, "DATABASE_URL": backups.url(target), "ERASURE_LEDGER": str(ledger)}


@contextmanager
def served(target: str, ledger: Path, var: Path) -> Iterator[httpx2.Client | None]:
    """The web server on that database, as it is started in production; None where it does not start."""
    port = free_port()
    command = [sys.executable, "-m", "granian", "--interface", "wsgi", "--host", "127.0.0.1", "--port", str(port)]
    environment = {**on(target, ledger), "VAR_DIR": str(var), "PYTHONWARNINGS": "ignore"}
    with (var.parent / "web.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "memory_portal.wsgi:application"], cwd=ROOT, env=environment, stdout=log, stderr=log
        )
    try:
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}/bridge/v1", timeout=30) as client:

            def answers() -> bool | None:
                if process.poll() is not None:
                    return False
                try:
                    return client.get("/health").status_code == 200 or None
                except httpx2.TransportError:
                    return None

            yield client if until(answers, "the web server or its end") else None
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.live
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("erased", "all_"), [(10, 40), pytest.param(100, 5_000, marks=pytest.mark.deep)])
def test_of_those_erased_since_a_restored_copy_serves_none(
    erased: int, all_: int, settings: Settings, folder: Path, tmp_path: Path, figure: Figure
) -> None:
    _, key = issue(AGENT, "grocery", SCOPES, now=timezone.now())
    names = customers(all_)
    forgot = names[erased]
    started = time.monotonic()
    call_command("backup", stdout=StringIO())
    made = time.monotonic() - started
    (copy,) = backups.copies(folder)
    assert copy.stat().st_mode & 0o77 == 0
    assert list(traces.in_files(traces.needles(names[:erased]), [folder])) == []
    for name in names[:erased]:
        store.erase(Customer.objects.get(subject_id=name).pk, CUSTOMER, now=timezone.now())
    note = MemoryFact.objects.get(customer__subject_id=forgot, key="note_0")
    store.forget(note.customer_id, [note.pk], CUSTOMER, now=timezone.now())
    before = {"customers": Customer.objects.count(), "facts": MemoryFact.objects.count()}

    out, name = StringIO(), "restored_copy"
    backups.drop_database(here(), name)
    started = time.monotonic()
    call_command("restore", "--into", name, "--only", stdout=out, stderr=StringIO())
    back = time.monotonic() - started
    target = psycopg.conninfo.make_conninfo(here(), dbname=name)
    try:
        assert out.getvalue().strip() == backups.url(target, password=False)
        with served(target, settings.ERASURE_LEDGER, settings.VAR) as client:
            assert client is None, "it opened on an old copy"
        replay = [sys.executable, "-W", "ignore", "manage.py", "replay_erasures"]
        subprocess.run(replay, cwd=ROOT, env=on(target, settings.ERASURE_LEDGER), check=True, stdout=subprocess.DEVNULL)
        with served(target, settings.ERASURE_LEDGER, settings.VAR) as client:
            assert client is not None
            ask = {"Authorization": f"Bearer {key}"}
            found = [client.get(f"/subjects/{name}/context", headers=ask).json() for name in names[:erased]]
            assert [answer["always"] for answer in found] == [[]] * erased
            held = client.get(f"/subjects/{forgot}/facts", headers=ask).json()["facts"]
            assert [fact["key"] for fact in held] == ["note_1", "note_2"]
            assert client.get(f"/subjects/{names[-1]}/context", headers=ask).json()["always"]
            told = client.get("/changes?limit=100", headers=ask).json()["changes"]
            assert {change["subject_id"] for change in told if change["kind"] == "erased"} == set(names[:erased])
        with psycopg.connect(target) as copy_of:
            counted = copy_of.execute(
                "SELECT (SELECT count(*) FROM memory_portal_customer), (SELECT count(*) FROM memory_portal_memoryfact)"
            ).fetchone()
        assert counted == (before["customers"], before["facts"])
    finally:
        backups.drop_database(here(), name)
    figure(
        "E7",
        f"{erased} of {all_} accounts erased after the backup: it did not open on the restored copy; after the replay"
        f" 0 of {erased} in the first answers, 1 fact forgotten since gone too, agents told of {erased}",
    )
    figure("J11", f"{all_ * 3:,} facts: backed up in {made:.1f} s, restored in {back:.1f} s, every row there")


@pytest.mark.live
@pytest.mark.django_db(transaction=True)
def test_the_drill_tries_every_promise_and_leaves_nothing_behind(folder: Path, figure: Figure) -> None:
    names = customers(6)
    call_command("backup", stdout=StringIO())
    store.erase(Customer.objects.get(subject_id=names[0]).pk, CUSTOMER, now=timezone.now())
    out = StringIO()
    call_command("drill", stdout=out)
    said = out.getvalue()
    for promise in (
        "refuses to serve before the replay",
        "0 accounts left",
        "5 of 5 rows of customer",
        "the drill held",
    ):
        assert promise in said, said
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_database WHERE datname LIKE 'memory_portal_drill%%'")
        assert cursor.fetchone()[0] == 0
    assert Customer.objects.count() == 5
    store.check_copy(timezone.now())  # the live ledger knows nothing of the drill's database
    figure("J11", "the drill: restored beside the live database, refused, replayed, opened, counted, dropped")


@pytest.mark.django_db(transaction=True)
def test_what_cannot_be_restored_says_why_and_leaves_no_database(folder: Path) -> None:
    def restore(*arguments: str) -> None:
        call_command("restore", *arguments, stdout=StringIO(), stderr=StringIO())

    with pytest.raises(CommandError, match="no backup in"):
        restore("--into", "never_made")
    with pytest.raises(CommandError, match="no backup in"):
        call_command("drill", stdout=StringIO())
    customers(1)
    call_command("backup", stdout=StringIO())
    (copy,) = backups.copies(folder)
    with pytest.raises(CommandError, match="already"):
        restore("--into", connection.settings_dict["NAME"])
    with pytest.raises(CommandError, match="cannot be read"):
        restore(str(folder / "gone.backup"), "--into", "never_made")
    copy.write_bytes(copy.read_bytes()[:-10])
    with pytest.raises(CommandError, match="cut off"):
        restore("--into", "never_made")
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_database WHERE datname = 'never_made'")
        assert cursor.fetchone()[0] == 0
    with pytest.raises(BackupError, match="not empty"):
        backups.restore(copy, here())


@pytest.mark.django_db(transaction=True)
def test_a_backup_that_fails_leaves_no_half_file(folder: Path, settings: Settings) -> None:
    settings.BACKUP_KEY = ""
    with pytest.raises(CommandError, match="BACKUP_KEY"):
        call_command("backup", stdout=StringIO())
    assert list(folder.iterdir()) == []
    with pytest.raises(BackupError, match="pg_dump of PostgreSQL 999"):
        backups.program("pg_dump", 999)


@pytest.mark.django_db(transaction=True)
def test_what_the_programs_say_when_they_fail_is_told_without_rows(folder: Path) -> None:
    ask = [backups.program("pg_dump", 10), "nothing"]
    with (
        pytest.raises(BackupError, match="pg_dump failed: "),
        backups._running(ask, {"PATH": os.environ["PATH"], "PGHOST": "/nowhere"}),
    ):
        pass
