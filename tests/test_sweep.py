"""`manage.py sweep`: a value is found wherever and however it stands, and nothing of what it is is said."""

from __future__ import annotations

import base64
import gzip
import html
import json
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from pathlib import Path
from urllib.parse import quote

import pytest
import redis
from django.contrib.sessions.backends.db import SessionStore
from django.core.cache import caches
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import override_settings
from django.utils import timezone
from pytest_django import Settings

from agent_bridge import jobs
from agent_bridge.auth import SCOPES, issue
from agent_bridge.extraction import Turn
from memory_portal import store, traces
from memory_portal.enums import Origin
from memory_portal.models import Customer, Proposal
from tests.conftest import NOW
from tests.figures import Figure
from tests.live import redis_server
from tests.people import Person, person

pytestmark = pytest.mark.django_db

CANARY = 'Zéq"Muß&“茶”Ö7'
WRITTEN: dict[str, Callable[[str], str]] = {
    "raw": str,
    "case-folded": str.casefold,
    "capitals": str.upper,
    "JSON": json.dumps,
    "JSON, not in ASCII": lambda text: json.dumps(text, ensure_ascii=False),
    "URL": quote,
    "HTML": html.escape,
    **{
        f"base64 from {pad}": lambda text, pad=pad: base64.b64encode(("x" * pad + text).encode()).decode()  # type: ignore[misc]
        for pad in range(3)
    },
}


def sweep(*values: str, **options: object) -> tuple[int, str]:
    """Exit code and what was printed, with the values on the standard input."""
    out = StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", StringIO("\n".join(values)))
        try:
            call_command("sweep", stdout=out, **options)
        except SystemExit as left:
            return int(str(left.code)), out.getvalue()
    return 0, out.getvalue()


@pytest.fixture
def empty(settings: Settings, tmp_path: Path) -> Path:
    settings.VAR = tmp_path / "var"
    settings.VAR.mkdir()
    return tmp_path / "var"


@pytest.mark.parametrize("how", WRITTEN)
def test_it_is_found_in_a_file_and_in_a_column_however_it_is_written(how: str, alice: Person, empty: Path) -> None:
    code, said = sweep(CANARY)
    assert (code, said.startswith("0 traces")) == (0, True), said
    written = WRITTEN[how](CANARY)
    (empty / "worker.log").write_text(f"before {written} after")
    assert sweep(CANARY)[0] == 1
    (empty / "worker.log").unlink()
    Customer.objects.filter(pk=alice.pk).update(never_words=["x", written[:64]])
    code, said = sweep(CANARY)
    assert code == 1
    assert "memory_portal_customer.never_words: 1" in said
    assert CANARY not in said


def test_every_kind_of_column_is_looked_into(alice: Person, empty: Path) -> None:
    Customer.objects.filter(pk=alice.pk).update(display_name=CANARY, salt=b"\xff" + CANARY.encode()[:15])
    key, _ = issue("Shopping assistant", "grocery", SCOPES, now=NOW)
    subject = store.Subject("alice", "grocery")
    jobs.submit(subject, key, [Turn("user", CANARY, NOW)], session_id="s", now=NOW, debounce=timedelta(days=9))
    session = SessionStore()
    session["receipt"] = {"note": CANARY, "padding": "x" * 900}
    session.save()
    table = {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "memory_portal_cache"}
    with override_settings(CACHES={"default": table}):
        caches.create_connection("default").set("tries", {"who": CANARY})
    said = sweep(CANARY)[1]
    for place in (
        "memory_portal_customer.display_name",
        "agent_bridge_extractionjob.turns",
        "sessions, opened",
        "memory_portal_cache.value",
    ):
        assert place in said, (place, said)
    assert "memory_portal_customer.salt" in sweep(CANARY[:8])[1]


def test_what_the_planner_keeps_is_looked_into(alice: Person, empty: Path) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memory_portal_customer")
        cursor.execute("CREATE TABLE kept AS SELECT %s::text AS said FROM generate_series(1, 50)", [CANARY])
        cursor.execute("ANALYZE kept; DELETE FROM kept")
    code, said = sweep(CANARY)
    assert (code, "statistics of public.kept.said" in said) == (1, True), said


def test_packed_files_and_folders_named_besides_are_looked_into(empty: Path, tmp_path: Path) -> None:
    mails, log = tmp_path / "mails", tmp_path / "web.log.1.gz"
    (mails / "1").mkdir(parents=True)
    (mails / "1" / "mail").write_text(f"Hello {CANARY}")
    log.write_bytes(gzip.compress((" " * traces.PIECE)[:-9].encode() + CANARY.encode()))
    assert sweep(CANARY)[0] == 0
    code, said = sweep(CANARY, also=[mails, log])
    assert (code, said.count("raw")) == (1, 2), said
    log.write_bytes(log.read_bytes()[:100])
    assert sweep(CANARY, also=[log])[0] == 0, "cut off, and no reason to stop"
    with override_settings(EMAIL_FILE_PATH=str(mails)):
        assert sweep(CANARY)[0] == 1


@pytest.mark.live
def test_what_waits_in_redis_is_looked_into(empty: Path, settings: Settings, tmp_path: Path) -> None:
    with redis_server(tmp_path / "redis") as url:
        client = redis.Redis.from_url(url)

        def answers() -> bool:
            try:
                return bool(client.ping())
            except redis.ConnectionError:
                return False

        while not answers():
            pass
        settings.CELERY_BROKER_URL = url
        assert sweep(CANARY)[0] == 0
        body = base64.b64encode(json.dumps([[CANARY], {}, {}]).encode()).decode()
        client.lpush("celery", json.dumps({"body": body}))
        client.hset("unacked", "1", CANARY)
        client.sadd("set", CANARY)
        client.zadd("zset", {CANARY: 1})
        client.set("string", CANARY)
        client.xadd("stream", {"is": "not read"})
        said = sweep(CANARY)[1]
        client.close()
    for name in ("celery", "unacked", "set", "zset", "string"):
        assert f"broker {name}: 1" in said, (name, said)


@pytest.mark.parametrize(
    ("values", "named"), [([], "No value"), (["ab"], "less than 4"), (["good one", "  a "], "value 2")]
)
def test_it_says_why_it_does_not_look(values: list[str], named: str, empty: Path) -> None:
    with pytest.raises(CommandError, match=named):
        sweep(*values)


def test_a_folder_that_is_not_there_is_no_folder_without_traces(empty: Path, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="not there"):
        sweep(CANARY, also=[tmp_path / "gone"])


def test_the_value_may_be_an_argument(alice: Person, empty: Path) -> None:
    with pytest.raises(SystemExit):
        call_command("sweep", "alice@example.org", stdout=StringIO())


# --- E2: a closed account -----------------------------------------------------------------------------------------------


def planted(who: Person, word: Callable[[str], str]) -> None:
    """A word of its own in everything that can hold one for this customer."""
    name = who.customer.subject_id
    Customer.objects.filter(pk=who.pk).update(display_name=word("name"), never_words=[word("never")], region="DE")
    who.agrees()
    fact = who.fact("coffee", word("value"), quote=f"I like {word('quote')} and {word('value')}")
    for _ in range(2):
        now = timezone.now()
        said = {"key": "coffee", "value": word("corrected"), "category": "preference"}
        draft = store.draft(**said, origin=Origin.CUSTOMER, said_at=now, now=now)
        fact = store.correct(who.pk, fact.id, draft, who.actor, now=now, version=fact.version)
    who.says("coffee", word("proposed"), ago=0)
    gone = who.fact("tea", word("forgotten"))
    store.forget(who.pk, [gone.id], who.actor, now=timezone.now())
    who.is_read_by("Shopping assistant")
    store.issue_ticket(who.pk, "export", now=timezone.now())
    subject, now = store.Subject(name, "grocery"), timezone.now()
    key, _ = issue("Shopping assistant", "grocery", SCOPES, now=now)
    turns, wait = [Turn("user", word("turn"), now)], timedelta(days=9)
    jobs.submit(subject, key, turns, session_id=word("session"), now=now, debounce=wait)
    session = who.client.session
    session["left"] = word("in a session")
    session.save()


def checksum(people: list[Person]) -> list[tuple[str, str]]:
    """Every row of every table that names one of these customers or users, but for what a neighbour's erasure may not touch."""
    found = []
    ids = [who.pk for who in people]
    with connection.cursor() as cursor:
        for table, column in (
            ("memory_portal_customer", "id"),
            ("memory_portal_memoryfact", "customer_id"),
            ("memory_portal_proposal", "customer_id"),
            ("memory_portal_tombstone", "customer_id"),
            ("memory_portal_consent", "customer_id"),
            ("memory_portal_factread", "customer_id"),
            ("memory_portal_factevent", "customer_id"),
            ("memory_portal_ticket", "customer_id"),
            ("agent_bridge_extractionjob", "customer_id"),
        ):
            cursor.execute(
                f"SELECT md5(coalesce(string_agg(t::text, chr(10) ORDER BY t::text), '')) FROM {table} AS t"
                f" WHERE {column} = ANY(%s)",
                [ids],
            )
            found.append((table, cursor.fetchone()[0]))
        cursor.execute(
            "SELECT md5(string_agg(r::text, chr(10) ORDER BY r.id)) FROM memory_portal_factrevision AS r"
            " JOIN memory_portal_memoryfact AS f ON f.id = r.fact_id WHERE f.customer_id = ANY(%s)",
            [ids],
        )
        found.append(("memory_portal_factrevision", cursor.fetchone()[0]))
    return found


@pytest.mark.parametrize(("gone", "all_"), [(3, 12), pytest.param(50, 500, marks=pytest.mark.deep)])
def test_of_closed_accounts_nothing_is_left_and_of_others_everything(
    gone: int, all_: int, empty: Path, figure: Figure, django_capture_on_commit_callbacks: Callable[..., object]
) -> None:
    people = [person(f"customer-{n:04d}-{CANARY}", email=f"zq{n:04d}@mail.example") for n in range(all_)]
    words: list[list[str]] = []
    for n, who in enumerate(people):
        own: dict[str, str] = {}

        def word(what: str, own: dict[str, str] = own, n: int = n) -> str:
            return own.setdefault(what, f"Zéq&{what[:8]}“茶”{n:04d}")

        planted(who, word)
        words.append([*own.values(), f"customer-{n:04d}-{CANARY}", f"zq{n:04d}@mail.example", f"customer-{who.pk}"])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    closed, others = people[:gone], people[gone:]
    sought = [text for own in words[:gone] for text in own[:-1]]
    assert {trace.value for trace in traces.everywhere(sought)} == {
        n for n, text in enumerate(sought, 1) if not text.startswith(("Zéq&session", "Zéq&forgotte"))
    }, "a search that does not find it before proves nothing after"
    before = checksum(others)
    with django_capture_on_commit_callbacks(execute=True):
        for who in closed:
            store.erase(who.pk, who.actor, now=timezone.now())
    assert traces.everywhere(sought) == []
    assert checksum(others) == before
    assert Proposal.objects.count() == all_ - gone
    figure(
        "E2",
        f"{gone} of {all_} accounts closed: {len(sought)} words, names, addresses and ids in"
        f" {len(traces.forms(CANARY))} forms, tables, statistics, sessions and files: 0 left;"
        f" others' rows unchanged by checksum of {len(before)} tables",
    )
