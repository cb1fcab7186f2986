"""The erasure ledger: what was forgotten since a backup is forgotten again by its copy, and nobody is served before that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection, connections
from django.db.backends.signals import connection_created
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from memory_portal import store
from memory_portal.enums import ActorKind, EventKind, Noted, Origin, Reason
from memory_portal.models import Customer, ErasureLedger, FactEvent, MemoryFact, Tombstone
from memory_portal.store import ledger
from tests.conftest import NOW
from tests.figures import Figure
from tests.people import Person, person
from tests.test_jobs import database_url

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).resolve().parent.parent
CUSTOMER = store.Actor(ActorKind.CUSTOMER, "c")
OPERATOR = store.Actor(ActorKind.SYSTEM)
HOUR = timedelta(hours=1)


def customer(name: str, *keys: str, profile: str = "grocery", at: datetime = NOW) -> int:
    subject = store.Subject(name, profile)
    drafts = [
        store.draft(key=key, value=f"likes {key}", category="preference", origin=Origin.CUSTOMER, said_at=at, now=at)
        for key in keys
    ]
    store.submit(subject, drafts, CUSTOMER, now=at)
    found = store.find(subject)
    assert found
    return found.pk


def fact(pk: int, key: str) -> int:
    return MemoryFact.objects.get(customer=pk, key=key).pk


def lines() -> list[dict[str, Any]]:
    return list(ledger.outside().values())


class Copy:
    """The database as a restore would leave it: the rows of all tables as they were when it was made."""

    def __init__(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("DROP SCHEMA IF EXISTS backup CASCADE; CREATE SCHEMA backup")
            for table in self.tables():
                cursor.execute(f'CREATE TABLE backup."{table}" AS TABLE public."{table}"')

    @staticmethod
    def tables() -> list[str]:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
                " AND NOT relispartition AND relname <> 'django_migrations' ORDER BY relname"
            )
            return [name for (name,) in cursor.fetchall()]

    def restore(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = replica")
            for table in self.tables():
                cursor.execute(f'DELETE FROM public."{table}"')
                cursor.execute(f'INSERT INTO public."{table}" OVERRIDING SYSTEM VALUE SELECT * FROM backup."{table}"')
            cursor.execute("SELECT setval(pg_get_serial_sequence('memory_portal_erasureledger', 'epoch'), 1, false)")
            cursor.execute("SET session_replication_role = DEFAULT; DROP SCHEMA backup CASCADE")


# --- what is noted ----------------------------------------------------------------------------------------------------


def test_each_way_of_forgetting_leaves_a_line_outside_and_none_says_what_it_was() -> None:
    pk = customer("alice-canary", "seat", "meal", "drink")
    store.forget(pk, [], CUSTOMER, now=NOW)
    store.forget(pk, [fact(pk, "seat"), fact(pk, "meal")], CUSTOMER, now=NOW)
    store.give_consent(pk, CUSTOMER, now=NOW, channel="portal", language="en")
    store.withdraw_consent(pk, CUSTOMER, now=NOW)
    for what in ("learning", "using"):
        store.pause(pk, what, CUSTOMER, now=NOW)
        store.resume(pk, what, CUSTOMER, now=NOW)
    store.clear(pk, CUSTOMER, now=NOW)
    store.erase(pk, CUSTOMER, now=NOW)
    kinds = [said["kind"] for said in lines()]
    assert kinds == ["forgotten", "forgotten", "consent_withdrawn", "learning_paused", "learning_resumed",
                     "using_paused", "using_resumed", "cleared", "erased"]  # fmt: skip
    assert {said["customer"] for said in lines()} == {pk}
    text = settings.ERASURE_LEDGER.read_text()
    for word in ("alice", "canary", "seat", "likes", "meal"):
        assert word not in text, word
    assert settings.ERASURE_LEDGER.stat().st_mode & 0o77 == 0
    assert lines()[-1]["pseudonym"] == ledger.pseudonyms("grocery", "alice-canary")[0]


def test_what_is_rolled_back_leaves_no_line() -> None:
    pk = customer("alice", "seat")
    with pytest.raises(store.NotFound):
        store.forget(pk, [fact(pk, "seat"), 999_999], CUSTOMER, now=NOW)
    assert (lines(), ErasureLedger.objects.count()) == ([], 0)


def test_a_disk_that_fails_undoes_no_forgetting_and_the_line_is_written_later(settings: Settings) -> None:
    pk = customer("alice", "seat")
    good = settings.ERASURE_LEDGER
    good.parent.mkdir(parents=True)
    settings.ERASURE_LEDGER = good.parent / "file" / "ledger.jsonl"
    (good.parent / "file").touch()
    store.forget(pk, [fact(pk, "seat")], CUSTOMER, now=NOW)
    assert not MemoryFact.objects.exists()
    settings.ERASURE_LEDGER = good
    assert lines() == []
    assert store.reconcile(NOW) == 1
    assert store.reconcile(NOW) == 0
    assert [said["kind"] for said in lines()] == ["forgotten"]


def test_twenty_writers_at_once_lose_no_line() -> None:
    people = [customer(f"c-{n}", "a", "b", "c") for n in range(20)]

    def forget(pk: int) -> None:
        for key in "abc":
            store.forget(pk, [fact(pk, key)], CUSTOMER, now=NOW)
        connections.close_all()

    threads = [threading.Thread(target=forget, args=(pk,)) for pk in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines()) == ErasureLedger.objects.count() == 60


def test_a_torn_line_spoils_nothing_and_is_written_again() -> None:
    pk = customer("alice", "seat", "meal")
    store.forget(pk, [fact(pk, "seat")], CUSTOMER, now=NOW)
    whole = settings.ERASURE_LEDGER.read_text()
    settings.ERASURE_LEDGER.write_text(whole[: len(whole) // 2])
    store.forget(pk, [fact(pk, "meal")], CUSTOMER, now=NOW)
    assert len(lines()) == 1
    assert store.reconcile(NOW) == 1
    assert len(lines()) == 2


def test_lines_end_when_no_backup_can_hold_what_they_are_about() -> None:
    alice, bob = customer("alice", "seat"), customer("bob", "seat")
    store.forget(alice, [fact(alice, "seat")], CUSTOMER, now=NOW)
    store.erase(bob, CUSTOMER, now=NOW)
    sealed = ErasureLedger.objects.exclude(sealed_subject=None)
    store.reconcile(NOW + ledger.TELL_FOR - timedelta(microseconds=1))
    assert sealed.count() == 1
    store.reconcile(NOW + ledger.TELL_FOR)
    assert sealed.count() == 0
    store.reconcile(NOW + ledger.KEEP_FORGOTTEN - timedelta(microseconds=1))
    assert [said["kind"] for said in lines()] == ["forgotten", "erased"]
    store.reconcile(NOW + ledger.KEEP_FORGOTTEN)
    assert [said["kind"] for said in lines()] == ["erased"]
    assert ErasureLedger.objects.get().kind == Noted.ERASED
    store.reconcile(NOW + ledger.KEEP_ERASED)
    assert (lines(), ErasureLedger.objects.count()) == ([], 0)


def test_a_new_key_still_knows_the_lines_of_the_old_one(settings: Settings) -> None:
    pk, copy = customer("alice", "seat"), Copy()
    store.erase(pk, CUSTOMER, now=NOW)
    settings.LEDGER_KEY, settings.LEDGER_KEY_FALLBACKS = "another key", [settings.LEDGER_KEY]
    assert ledger.unsealed(ErasureLedger.objects.get().sealed_subject) == "alice"
    copy.restore()
    assert store.still_there() == 1
    store.replay(now=NOW)
    assert store.still_there() == Customer.objects.count() == 0
    settings.LEDGER_KEY_FALLBACKS = []
    assert ledger.unsealed(b"what another key sealed") == ""


# --- replaying --------------------------------------------------------------------------------------------------------


def test_a_copy_forgets_again_what_was_forgotten_since_and_nothing_else(figure: Figure) -> None:
    everyone = [customer(f"c-{n}", "seat", "meal") for n in range(10)]
    erased, cleared, forgot, paused, quiet = everyone[0:4], everyone[4], everyone[5], everyone[6], everyone[7]
    store.give_consent(quiet, CUSTOMER, now=NOW, channel="portal", language="en")
    copy = Copy()
    for pk in erased:
        store.erase(pk, CUSTOMER, now=NOW + HOUR)
    store.clear(cleared, CUSTOMER, now=NOW + HOUR)
    store.forget(forgot, [fact(forgot, "seat")], CUSTOMER, now=NOW + HOUR)
    store.pause(paused, "using", CUSTOMER, now=NOW + HOUR)
    store.pause(paused, "learning", CUSTOMER, now=NOW + HOUR)
    store.resume(paused, "learning", CUSTOMER, now=NOW + 2 * HOUR)
    store.withdraw_consent(quiet, CUSTOMER, now=NOW + HOUR)
    left = {
        "customers": sorted(Customer.objects.values_list("subject_id", "using_paused_at", "learning_paused_at")),
        "facts": sorted(MemoryFact.objects.values_list("customer", "key")),
        "stones": sorted(Tombstone.objects.values_list("customer", "key", "watermark")),
        "generation": Customer.objects.get(pk=cleared).purge_generation,
        "consent": store.consent(quiet),
    }
    before = {said["epoch"] for said in lines()}
    copy.restore()
    assert Customer.objects.count() == 10
    with pytest.raises(store.OldCopy, match="replay_erasures"):
        store.check_copy(NOW)
    Session.objects.create(session_key="s" * 32, session_data="x", expire_date=timezone.now() + HOUR)
    done = store.replay(now=NOW + 3 * HOUR)
    assert done == {"erased": 4, "cleared": 1, "forgotten": 1, "using_paused": 1, "learning_paused": 1,
                    "learning_resumed": 1, "consent_withdrawn": 1, "done": 10}  # fmt: skip
    assert left == {
        "customers": sorted(Customer.objects.values_list("subject_id", "using_paused_at", "learning_paused_at")),
        "facts": sorted(MemoryFact.objects.values_list("customer", "key")),
        "stones": sorted(Tombstone.objects.values_list("customer", "key", "watermark")),
        "generation": Customer.objects.get(pk=cleared).purge_generation,
        "consent": store.consent(quiet),
    }
    assert not Session.objects.exists(), "a copy's sign-ins may be of people who signed out since"
    store.check_copy(NOW)
    assert store.replay(now=NOW + 3 * HOUR) == {}, "once is enough"
    assert {said["epoch"] for said in lines()} == before == set(ErasureLedger.objects.values_list("epoch", flat=True))
    store.clear(quiet, CUSTOMER, now=NOW + 4 * HOUR)
    assert max(said["epoch"] for said in lines()) > max(before), "later lines have later numbers"
    figure(
        "E7",
        "4 accounts, 1 clearing, 1 fact, 3 switches and 1 consent since a backup: each done again, nothing else touched",
    )


def test_what_came_after_the_forgetting_is_left_alone() -> None:
    alice, bob, copy = customer("alice", "seat"), customer("bob", "seat"), Copy()
    store.erase(alice, CUSTOMER, now=NOW + HOUR)
    store.forget(bob, [fact(bob, "seat")], CUSTOMER, now=NOW + HOUR)
    copy.restore()
    # The numbers are given out anew: a later account and a later fact have those that the lines name.
    later = NOW + 2 * HOUR
    Customer.objects.filter(pk=alice).update(created_at=later)
    MemoryFact.objects.filter(customer=bob).update(created_at=later)
    assert store.replay(now=later)["done"] == 0
    assert store.still_there() == 0, "she came back later"
    assert MemoryFact.objects.count() == 2


def test_an_account_of_the_same_number_but_another_person_is_left_alone() -> None:
    alice, copy = customer("alice", "seat"), Copy()
    store.erase(alice, CUSTOMER, now=NOW + HOUR)
    copy.restore()
    Customer.objects.filter(pk=alice).update(subject_id="somebody else")
    assert store.replay(now=NOW + HOUR) == {"erased": 1, "done": 0}
    assert Customer.objects.count() == 1


def test_a_replay_that_dies_goes_on_where_it_was() -> None:
    people, copy = [customer(f"c-{n}", "seat") for n in range(3)], Copy()
    for pk in people:
        store.erase(pk, CUSTOMER, now=NOW + HOUR)
    copy.restore()
    erased: list[int] = []

    def dies(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith('DELETE FROM "memory_portal_customer"'):
            erased.append(1)
            if len(erased) == 2:
                raise KeyboardInterrupt
        return execute(sql, params, many, context)

    with pytest.raises(KeyboardInterrupt), connection.execute_wrapper(dies):
        store.replay(now=NOW + HOUR)
    assert Customer.objects.count() == 2
    with pytest.raises(store.OldCopy):
        store.check_copy(NOW)
    assert store.replay(now=NOW + HOUR)["erased"] == 2
    assert Customer.objects.count() == 0


def test_the_command_says_what_it_did_again_and_whether_anything_is_left() -> None:
    pk, copy = customer("alice", "seat"), Copy()
    assert "Nothing to do again." in said_by("replay_erasures")
    store.erase(pk, CUSTOMER, now=NOW + HOUR)
    copy.restore()
    assert "the site may serve" in said_by("replay_erasures")
    customer("alice", "seat", at=NOW)
    with pytest.raises(CommandError, match="1 erased accounts are still there"):
        said_by("replay_erasures")


def said_by(command: str, *arguments: str) -> str:
    out = StringIO()
    call_command(command, *arguments, stdout=out)
    return out.getvalue()


# --- nobody is served by an old copy ----------------------------------------------------------------------------------


@pytest.fixture
def armed() -> Any:
    yield lambda: store.refuse_old_copies(lambda: NOW)
    connection_created.disconnect(dispatch_uid="memory_portal.ledger")


def test_a_process_that_serves_opens_no_connection_to_an_old_copy(armed: Any, agent: Any) -> None:
    pk, client = customer("alice", "seat", profile="airline"), agent()
    copy = Copy()
    armed()
    assert client.get("/bridge/v1/subjects/alice/context").json()["always"]
    store.erase(pk, CUSTOMER, now=NOW)
    copy.restore()
    connection.close()  # as a restore beneath a running site does
    answer = client.get("/bridge/v1/subjects/alice/context")
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert client.get("/bridge/v1/subjects/alice/context").status_code == 503, "and not only the first time"
    assert Client(raise_request_exception=False).post("/sign-in/", {"email": "a@example.org"}).status_code >= 500
    with pytest.raises(store.OldCopy):
        armed()
    connection_created.disconnect(dispatch_uid="memory_portal.ledger")
    store.replay(now=NOW)
    armed()
    connection.close()
    answer = client.get("/bridge/v1/subjects/alice/context")
    assert (answer.status_code, answer.json()["always"]) == (200, [])


def test_a_database_that_does_not_answer_is_asked_once_it_does(armed: Any) -> None:
    pk = customer("alice", "seat")
    store.erase(pk, CUSTOMER, now=NOW)
    connection.close()
    port, connection.settings_dict["PORT"] = connection.settings_dict["PORT"], "1"
    try:
        armed()
        with pytest.raises(OperationalError):
            connection.ensure_connection()
    finally:
        connection.settings_dict["PORT"] = port
    connection.ensure_connection()


def test_a_copy_from_before_there_was_a_ledger_is_an_old_one() -> None:
    pk = customer("alice", "seat")
    store.erase(pk, CUSTOMER, now=NOW)
    store.check_copy(NOW)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE memory_portal_erasureledger RENAME TO later")
        try:
            with pytest.raises(store.OldCopy):
                store.check_copy(NOW)
            store.check_copy(NOW + ledger.KEEP_ERASED)
        finally:
            cursor.execute("ALTER TABLE later RENAME TO memory_portal_erasureledger")


@pytest.mark.parametrize("process", ["web", "worker"])
def test_neither_web_nor_worker_starts_on_an_old_copy(process: str, tmp_path: Path) -> None:
    file = tmp_path / "ledger.jsonl"
    said = {"epoch": 10**6, "kind": "erased", "at": timezone.now().isoformat(), "customer": 1, "pseudonym": "0" * 32}
    file.write_text("\n" + json.dumps(said))
    code = {
        "web": "import memory_portal.wsgi",
        "worker": "from agent_bridge.celery import app; app.worker_main(['worker', '--pool=solo'])",
    }[process]
    environment = {**os.environ, "DATABASE_URL": database_url(), "ERASURE_LEDGER": str(file), "VAR_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode != 0
    assert "replay_erasures" in done.stderr + done.stdout, (done.stdout, done.stderr)


# --- by the operator --------------------------------------------------------------------------------------------------


def test_an_operator_erases_with_a_reason_and_reads_what_went(monkeypatch: pytest.MonkeyPatch) -> None:
    pk = customer("alice", "seat", "meal")
    said = said_by("erase_customer", "alice", "--profile", "grocery", "--reason", "customer_asked", "--yes")
    assert "2 facts" in said
    assert "customer_asked" in said
    assert "alice" not in said
    assert not Customer.objects.exists()
    event = FactEvent.objects.filter(customer=pk).latest("pk")
    assert (event.kind, event.code, event.actor_kind) == (EventKind.CLEARED, "customer_asked", ActorKind.SYSTEM)
    assert ErasureLedger.objects.get().code == "customer_asked"


def test_the_operator_is_asked_first_and_anything_but_the_word_means_no(monkeypatch: pytest.MonkeyPatch) -> None:
    customer("alice", "seat")
    command = ("erase_customer", "alice", "--profile", "grocery", "--reason", "test_data")
    monkeypatch.setattr("builtins.input", lambda _: "yes")
    with pytest.raises(CommandError, match="Nothing was erased"):
        said_by(*command)
    assert Customer.objects.count() == 1
    monkeypatch.setattr("builtins.input", lambda _: "erase")
    said_by(*command)
    assert Customer.objects.count() == 0


def test_the_id_may_come_from_the_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    customer("alice", "seat")
    monkeypatch.setattr(sys, "stdin", StringIO("alice\n"))
    said_by("erase_customer", "-", "--profile", "grocery", "--reason", "test_data")
    assert Customer.objects.count() == 0


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["nobody", "--profile", "grocery", "--reason", "test_data", "--yes"], "no such customer"),
        (["alice", "--profile", "travel", "--reason", "test_data", "--yes"], "no such customer"),
        (["x" * 200, "--profile", "grocery", "--reason", "test_data", "--yes"], "1 to 128"),
        (["alice", "--profile", "grocery", "--reason", "because", "--yes"], "invalid choice"),
        (["alice", "--profile", "grocery", "--yes"], "reason"),
    ],
)
def test_the_command_erases_nobody_it_was_not_told_of(arguments: list[str], named: str) -> None:
    customer("alice", "seat")
    with pytest.raises(CommandError, match=named):
        said_by("erase_customer", *arguments)
    assert Customer.objects.count() == 1


@pytest.mark.parametrize("kind", [ActorKind.STAFF, ActorKind.SYSTEM, ActorKind.AGENT, ActorKind.JOB])
@pytest.mark.parametrize("reason", ["", "because", "customer_asked"])
def test_only_operators_may_and_only_with_one_of_the_reasons(kind: ActorKind, reason: str) -> None:
    pk = customer("alice", "seat")
    if kind in (ActorKind.STAFF, ActorKind.SYSTEM) and reason == "customer_asked":
        assert store.erase(pk, store.Actor(kind, "7"), now=NOW, reason=reason).counts["facts"] == 1
        return
    with pytest.raises(store.MemoryWriteRejected) as refused:
        store.erase(pk, store.Actor(kind, "7"), now=NOW, reason=reason)
    assert refused.value.reason is Reason.NOT_ALLOWED


# --- what agents hear of it -------------------------------------------------------------------------------------------


def heard(client: Client) -> list[tuple[str, str, str | None]]:
    answer = client.get("/bridge/v1/changes")
    assert answer.status_code == 200, answer.content
    return [(change["subject_id"], change["kind"], change["key"]) for change in answer.json()["changes"]]


def test_agents_hear_that_an_account_was_closed_and_drop_what_they_hold(agent: Any, figure: Figure) -> None:
    mine, other = agent(), agent(profile="grocery", name="Basket")
    people = [customer(f"c-{n}", "seat", profile="airline") for n in range(10)]
    for n, pk in enumerate(people):
        store.clear(pk, CUSTOMER, now=NOW)
        store.erase(pk, CUSTOMER if n % 2 else OPERATOR, now=NOW + HOUR, reason="" if n % 2 else "account_closed")
    assert heard(mine) == [(f"c-{n}", "erased", None) for n in range(10)]
    assert heard(other) == []
    for kinds in (["erased"], ["cleared"]):
        told = store.changes("airline", "Clearsky assistant", "", kinds=kinds)
        assert {(change.kind, change.code) for change in told.changes} == {("erased", "")}
        assert len(told.changes) == 10
    assert store.changes("airline", "Clearsky assistant", "", kinds=["corrected"]).changes == ()
    ErasureLedger.objects.filter(customer_number=people[0]).update(sealed_subject=b"sealed by a key that is gone")
    assert len(heard(mine)) == 9
    store.reconcile(NOW + HOUR + ledger.TELL_FOR)
    assert heard(mine) == []
    figure(
        "R10", "10 accounts closed, by customer and by operator: 10 told as erased to their own profile, for 30 days"
    )


def test_who_comes_back_under_the_same_id_is_told_as_anybody(agent: Any) -> None:
    client, pk = agent(), customer("alice", "seat", profile="airline")
    store.erase(pk, CUSTOMER, now=NOW)
    customer("alice", "meal", profile="airline", at=NOW + HOUR)
    assert heard(client) == [("alice", "erased", None), ("alice", "added", "meal")]


def test_a_replayed_erasure_is_told_again(agent: Any) -> None:
    client, pk = agent(), customer("alice", "seat", profile="airline")
    copy = Copy()
    store.erase(pk, CUSTOMER, now=NOW)
    copy.restore()
    store.replay(now=NOW + HOUR)
    assert heard(client) == [("alice", "erased", None)]


def test_closing_by_page_reaches_the_file(alice: Person) -> None:
    alice.proves()
    alice.post("/control/close-account", {"sure": "close my account"})
    assert [said["kind"] for said in lines()] == ["erased"]
    assert person("bob").pk != alice.pk
