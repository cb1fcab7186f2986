"""What may stand in a log, and that nothing else gets there: whatever is sent, whatever breaks, whichever library speaks.

The sinks: this site's log lines at their loudest, what is printed, mails to admins, metrics, messages to the worker, PostgreSQL's
own log. Beside them a careless handler hears the same records, to show that there was something to leak. LOG_FUZZ: how many.
"""

from __future__ import annotations

import ast
import base64
import io
import json
import logging
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.conf import settings as site
from django.core import mail
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.utils import timezone

from agent_bridge import auth, jobs, reading, tasks
from agent_bridge.celery import app
from agent_bridge.extraction import Extraction, ExtractionRequest, Turn
from agent_bridge.models import ExtractionJob, JobState
from memory_portal import logs, metrics, postgres, store
from tests.addresses import Address, addresses, furnished
from tests.figures import Figure
from tests.mcp_caller import MCP, token_of
from tests.people import Person
from tests.test_settings import SAFE

ROOT = Path(__file__).resolve().parent.parent
CANARY = "zebracanary"
FORMS = [
    CANARY,
    CANARY.encode().hex(),
    *(base64.b64encode(b" " * n + CANARY.encode())[4:-4].decode() for n in range(3)),
]
"""As it is, and what hex and base64 make of it, however it lies in them."""


def leaks(text: str) -> list[str]:
    return [form for form in FORMS if form.lower() in text.lower()]


# --- the sinks --------------------------------------------------------------------------------------------------------


class Sinks:
    def __init__(self) -> None:
        self.lines, self.careless = io.StringIO(), io.StringIO()
        self.handlers = [logging.StreamHandler(self.lines), logging.StreamHandler(self.careless)]
        self.handlers[0].setFormatter(logs.formatter(as_json=True))
        self.log_of_postgres = Path(site.VAR) / "postgres" / "log"
        self.start = self.log_of_postgres.stat().st_size if self.log_of_postgres.exists() else 0

    def of_postgres(self) -> str:
        if not self.log_of_postgres.exists():
            pytest.skip("the log of a server that is not ours")
        return self.log_of_postgres.read_bytes()[self.start :].decode("utf-8", "replace")

    def of_broker(self) -> str:
        bell = Path(site.VAR) / "broker" / "bell"
        return "\n".join(path.read_text("utf-8", "replace") for path in bell.glob("*"))

    def all(self) -> dict[str, str]:
        return {
            "log": self.lines.getvalue(),
            "error mail": "\n".join(str(letter.message()) for letter in mail.outbox),
            "metrics": metrics.page().decode(),
            "broker": self.of_broker(),
            "postgres": self.of_postgres(),
        }


@pytest.fixture
def sinks(settings: Any) -> Iterator[Sinks]:
    """Every logger speaks at DEBUG, the database's statements too."""
    settings.ADMINS = [("Admin", "admin@example.org")]
    settings.LOG_REQUESTS = True
    there, root = Sinks(), logging.getLogger()
    loggers = [root, *(logging.getLogger(name) for name in [*site.LOGGING["loggers"], "memory_portal", "agent_bridge"])]
    before = [logger.level for logger in loggers]
    connection.force_debug_cursor = True
    for handler in there.handlers:
        root.addHandler(handler)
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
    yield there
    connection.force_debug_cursor = False
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)
    for handler in there.handlers:
        root.removeHandler(handler)


@pytest.fixture
def faults(db: None) -> None:
    """Some writes fail in the database, with the very words in the error, as a broken rule or trigger would have it."""
    with connection.cursor() as cursor:
        cursor.execute("""
            CREATE FUNCTION pg_temp.broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF NEW.value LIKE '%zebracanary%' AND length(NEW.value) % 3 = 0 THEN
                    RAISE EXCEPTION 'cannot keep %', NEW.value USING DETAIL = NEW.source_quote, ERRCODE = 'XX001';
                END IF;
                RETURN NEW;
            END $$;
            CREATE TRIGGER broken BEFORE INSERT OR UPDATE ON memory_portal_memoryfact
                FOR EACH ROW EXECUTE FUNCTION pg_temp.broken();
        """)


# --- fuzzed requests --------------------------------------------------------------------------------------------------


class Fuzz:
    """Requests to every address and every tool, with the marker in whatever a caller can fill."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def word(self) -> str:
        dice, tail = self.dice, "x" * self.dice.randrange(6)
        return dice.choice(
            [
                CANARY + tail,
                f"I love {CANARY} {tail}",
                f"{CANARY}@example.org",
                f"{CANARY}{tail}\x00",
                f"<b>{CANARY}</b>",
                f"{CANARY} 4242 4242 4242 4242",
                CANARY * dice.choice([2, 40]),
                f"\ud800{CANARY}".encode("utf-8", "surrogatepass").decode("utf-8", "replace"),
                f"'; SELECT '{CANARY}",
                f"%s %({CANARY})s {{{CANARY}}}",
            ]
        )

    def tree(self, names: list[str], depth: int = 0) -> Any:
        dice = self.dice
        if depth > 2 or dice.random() < 0.3:
            return dice.choice([self.word(), self.word(), dice.randrange(9), None, True])
        if dice.random() < 0.3:
            return [self.tree(names, depth + 1) for _ in range(dice.randrange(3))]
        chosen = dice.sample(names, dice.randrange(1, 4)) + ([self.word()] if dice.random() < 0.3 else [])
        return {name: self.tree(names, depth + 1) for name in chosen}

    def headers(self) -> dict[str, str]:
        named = ["User-Agent", "X-Request-ID", "Idempotency-Key", "If-Match", "Referer", "Cookie", "X-Forwarded-For"]
        named += ["HX-Current-URL", "Accept-Language", "Origin", "traceparent"]
        return {name: quote(self.word(), safe=" @;=%'<>") for name in self.dice.sample(named, 3)}

    def address(self, path: str) -> str:
        if self.dice.random() < 0.3:
            parts = path.split("/")
            parts[self.dice.randrange(1, len(parts))] = quote(self.word(), safe="")
            path = "/".join(parts)
        return path + (f"?{quote(self.word())}={quote(self.word())}" if self.dice.random() < 0.3 else "")


BODIES = {
    "turns": lambda f: {
        "session_id": f.word(),
        "messages": [{"role": f.dice.choice(["user", "assistant"]), "text": f.word()}],
    },
    "facts": lambda f: {"value": f.word(), "category": f.dice.choice(["preference", f.word()])},
    "sessions": lambda f: {"subject_id": f.word(), "session_id": f.word()},
    "context": lambda f: {"message": f.word()},
}
NAMES = [
    "value",
    "key",
    "category",
    "session_id",
    "subject_id",
    "messages",
    "text",
    "role",
    "message",
    "topic",
    "email",
    "code",
]


def fitting(fuzz: Fuzz, agent: Client, person: Person) -> tuple[str, int]:
    """A write as it should be, which the database takes, or breaks on with the words in its error."""
    letters = "".join(fuzz.dice.choices("abcdefgh", k=fuzz.dice.randrange(5, 12)))
    key, value = f"note_{letters}", f"{CANARY} {letters}"
    if fuzz.dice.random() < 0.5:
        path = f"/bridge/v1/subjects/{CANARY}/facts/{key}"
        told = agent.put(path, {"value": value}, "application/json", headers=fuzz.headers())
        return "bridge", told.status_code
    fields = {"key": key, "value": value, "category": "preference"}
    return "portal", person.client.post("/facts/add", fields).status_code


def to_bridge(fuzz: Fuzz, agent: Client, address: Address) -> int:
    method = fuzz.dice.choice(["GET", "POST", "PUT", "DELETE", "PATCH", CANARY.upper()])
    makes = [make for part, make in BODIES.items() if part in address.path]
    told = makes[0](fuzz) if makes and fuzz.dice.random() < 0.6 else fuzz.tree(NAMES)
    body = json.dumps(told).encode()[: fuzz.dice.choice([None, None, None, 40])]
    path = fuzz.address(address.path)
    return agent.generic(method, path, body, "application/json", headers=fuzz.headers()).status_code


def to_mcp(fuzz: Fuzz, token: str) -> int:
    tool = fuzz.dice.choice(["recall_memories", "save_memory", "forget_memory", fuzz.word()])
    told = {
        "jsonrpc": "2.0",
        "id": fuzz.word(),
        "method": "tools/call",
        "params": {"name": tool, "arguments": fuzz.tree(NAMES)},
    }
    headers = {"Authorization": f"Bearer {token}", "MCP-Protocol-Version": "2025-11-25"}
    return (
        Client(raise_request_exception=False)
        .post(MCP, json.dumps(told), "application/json", headers=headers)
        .status_code
    )


def to_portal(fuzz: Fuzz, person: Person, address: Address) -> int:
    client = person.client
    if fuzz.dice.random() < 0.4:
        return client.get(fuzz.address(address.path), headers=fuzz.headers()).status_code
    fields: dict[str, Any] = {name: fuzz.word() for name in fuzz.dice.sample(NAMES, 5)}
    if "facts" in address.path:
        fields |= {"key": f"note {fuzz.dice.randrange(999)}", "value": fuzz.word(), "category": "preference"}
    if "bring" in address.path:
        fields["file"] = SimpleUploadedFile(f"{CANARY}.json", json.dumps(fuzz.tree(NAMES)).encode())
    return client.post(fuzz.address(address.path), fields, headers=fuzz.headers()).status_code


def fuzzed(requests: int, agent: Client, alice: Person) -> Counter[str]:
    fuzz, statuses = Fuzz(6), Counter[str]()
    alice.client.raise_request_exception = agent.raise_request_exception = False
    there = [one for one in addresses(furnished(alice)) if not one.of_staff and "close-account" not in one.path]
    bridge = [one for one in there if one.of_bridge and "key" not in one.path.split("/")]
    pages = [one for one in there if not one.of_bridge and one.name != "account_logout"]
    token = token_of(agent, CANARY)
    for _ in range(requests):
        door = fuzz.dice.choice(["bridge", "bridge", "mcp", "portal", "portal", "fitting", "fitting"])
        if door == "fitting":
            door, status = fitting(fuzz, agent, alice)
        elif door == "bridge":
            status = to_bridge(fuzz, agent, fuzz.dice.choice(bridge))
        elif door == "mcp":
            status = to_mcp(fuzz, token)
        else:
            status = to_portal(fuzz, alice, fuzz.dice.choice(pages))
        statuses[f"{door} {status // 100}xx"] += 1
    return statuses


@pytest.mark.django_db
@pytest.mark.parametrize(
    "requests", [int(os.environ.get("LOG_FUZZ", "300")), pytest.param(10_000, marks=pytest.mark.deep)]
)
def test_fuzzed_requests_leave_no_word_in_any_sink(
    requests: int, sinks: Sinks, faults: None, agent: Any, alice: Person, settings: Any, figure: Figure, capfd: Any
) -> None:
    settings.BRIDGE_CALLS_PER_KEY = settings.BRIDGE_CALLS = 10**7
    settings.BRIDGE_WAITS = 0
    settings.EXTRACTION_DEBOUNCE = 0
    statuses = fuzzed(requests, agent(), alice)
    assert leaks(sinks.careless.getvalue()), "a careless handler would have told"
    assert statuses["bridge 5xx"] > 1, statuses
    assert statuses["portal 5xx"] > 1, statuses
    assert min(statuses["bridge 2xx"], statuses["bridge 4xx"], statuses["mcp 2xx"], statuses["portal 2xx"]) > 3, (
        statuses
    )
    printed = "".join(capfd.readouterr())
    found = {name: leaks(text) for name, text in {**sinks.all(), "printed": printed}.items()}
    assert not any(found.values()), found
    assert not mail.outbox or all(letter.to != ["admin@example.org"] for letter in mail.outbox)
    figure(
        "P6", f"{requests:,} fuzzed requests with a marker in every field ({dict(statuses)}): 0 in {', '.join(found)}"
    )


# --- failing jobs -----------------------------------------------------------------------------------------------------


class Careless:
    """An extractor that fails with the customer's words in its error, its locals and its cause."""

    def __init__(self) -> None:
        self.number = 0

    def extract(self, request: ExtractionRequest) -> Extraction:
        said, self.number = request.turns[0].text, self.number + 1
        if self.number % 3 == 0:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SELECT %s::text::int", [said])
        try:
            json.loads(said)
        except json.JSONDecodeError as error:
            raise ValueError(f"cannot read {said}") from error
        raise KeyError(said)

    def tokens_at_most(self, request: ExtractionRequest) -> int:
        return 0


@app.task(name="tests.careless")  # type: ignore[untyped-decorator]
def careless(said: str) -> str:
    held = {"said": said}
    raise RuntimeError(f"cannot do {held}")


@pytest.mark.django_db
@pytest.mark.parametrize("failing", [40, pytest.param(500, marks=pytest.mark.deep)])
def test_failing_jobs_leave_no_word_in_any_sink(failing: int, sinks: Sinks, figure: Figure, capfd: Any) -> None:
    now = timezone.now()
    key, _ = auth.issue("agent", "retail", auth.SCOPES, now=now)
    extractor = Careless()
    for number in range(failing):
        turns = [Turn("user", f"I always buy {CANARY}{number} tea", now)]
        jobs.submit(
            store.Subject(f"{CANARY}{number}", "retail"), key, turns, session_id=CANARY, now=now, debounce=timedelta()
        )
    for job_id in list(ExtractionJob.objects.values_list("pk", flat=True)):
        assert reading.run(job_id, clock=lambda: now, extractor=extractor, dice=random.Random(1)) == JobState.QUEUED
        assert careless.apply(args=[f"{CANARY} tea"], headers={"request_id": "0" * 32}).failed()
    assert set(ExtractionJob.objects.values_list("outcome", flat=True)) == {"internal_error"}
    assert leaks(sinks.careless.getvalue()), "a careless handler would have told"
    printed = "".join(capfd.readouterr())
    found = {name: leaks(text) for name, text in {**sinks.all(), "printed": printed}.items()}
    assert not any(found.values()), found
    lines = [json.loads(line) for line in sinks.lines.getvalue().splitlines()]
    broke = [line for line in lines if line["event"] == "job_broke"]
    assert len(broke) == failing
    assert {line["error"] for line in broke} == {"ValueError", "DataError"}
    assert all("test_logs.py" in line["at"] for line in broke)
    assert {line.get("sqlstate") for line in broke} == {None, "22P02"}
    told = [line for line in lines if line["event"] == "task_failed"]
    assert {(line["task"], line["error"], line["request_id"]) for line in told} == {
        ("tests.careless", "RuntimeError", "0" * 32)
    }
    figure(
        "P6",
        f"{failing} jobs and {failing} tasks that fail with a marker in error, cause and locals: 0 in {', '.join(found)}",
    )


# --- PostgreSQL's own log ---------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_postgres_would_tell_and_is_told_not_to(sinks: Sinks, faults: None) -> None:
    """The same broken statements, once with a server's usual settings and once with ours."""
    broken = [
        ("SELECT %s::text::int", [CANARY]),
        (f"SELECT '{CANARY}'::int", None),
        ("INSERT INTO memory_portal_customer (profile, subject_id) VALUES ('retail', %s)", [CANARY]),
    ]

    def all_of_them() -> None:
        for sql, params in broken:
            with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(sql, params)

    with connection.cursor() as cursor:
        assert postgres.loud(cursor) == []
        all_of_them()
        assert not leaks(sinks.of_postgres())
        for name, usual in {
            "log_min_messages": "warning",
            "log_min_error_statement": "error",
            "log_error_verbosity": "default",
        }.items():
            cursor.execute(f"SET LOCAL {name} = '{usual}'")
        assert set(postgres.loud(cursor)) == {"log_min_messages", "log_min_error_statement", "log_error_verbosity"}
        all_of_them()
    assert leaks(sinks.of_postgres())


# --- the list ---------------------------------------------------------------------------------------------------------


def calls() -> Iterator[tuple[str, str, set[str]]]:
    """Every log call of the product: where, the event, its keys."""
    for path in [*(ROOT / "memory_portal").rglob("*.py"), *(ROOT / "agent_bridge").rglob("*.py")]:
        if path.name == "client.py":  # a host's own process, with a log of its own
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            of_log = (
                isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "log"
            )
            if of_log or (isinstance(node.func, ast.Name) and node.func.id == "level"):
                assert len(node.args) == 1, (path, node.lineno)
                assert isinstance(node.args[0], ast.Constant), (path, node.lineno)
                yield f"{path.name}:{node.lineno}", node.args[0].value, {word.arg for word in node.keywords if word.arg}


def test_every_line_the_product_logs_is_on_the_list_and_the_list_has_no_others() -> None:
    used = set()
    for where, event, keys in calls():
        assert event in logs.EVENTS, where
        assert keys <= set(logs.EVENTS[event]) | set(logs.ALWAYS), where
        used.add(event)
    assert used == set(logs.EVENTS)


def test_nothing_logs_but_by_the_list() -> None:
    """`logging` itself is for the one room that keeps the list, and `print` for commands."""
    for path in [*(ROOT / "memory_portal").rglob("*.py"), *(ROOT / "agent_bridge").rglob("*.py")]:
        if path.name not in ("logs.py", "client.py"):
            assert "import logging" not in path.read_text("utf-8"), path


def heard(sinks: Sinks) -> list[dict[str, Any]]:
    return [json.loads(line) for line in sinks.lines.getvalue().splitlines()]


@pytest.fixture
def quiet(sinks: Sinks) -> Callable[[], dict[str, Any]]:
    def last() -> dict[str, Any]:
        return heard(sinks)[-1]

    return last


def test_an_event_keeps_what_fits_and_loses_the_rest(quiet: Callable[[], dict[str, Any]]) -> None:
    log = logs.get("memory_portal.test")
    log.info(
        "job_done",
        job=7,
        extractor=f"{CANARY}\n",
        counts={"learned": 1, CANARY + " x": 2, "refused": CANARY},
        said=CANARY,
    )
    line = quiet()
    assert {"event": "job_done", "job": "7", "counts": {"learned": 1}, "level": "info"}.items() <= line.items()
    assert not leaks(json.dumps(line))
    log.info(f"{CANARY} was here", job=7)
    assert quiet()["event"] == "unlisted"
    assert "job" not in quiet()
    assert not leaks(json.dumps(quiet()))


def test_of_a_library_stay_its_place_and_the_kind_of_error(quiet: Callable[[], dict[str, Any]]) -> None:
    library = logging.getLogger("some.package")
    try:
        raise ValueError(CANARY)
    except ValueError:
        library.exception("cannot do %s", CANARY, stack_info=True, extra={"said": CANARY})
    line = quiet()
    assert {
        "event": "library",
        "logger": "some.package",
        "level": "error",
        "error": "ValueError",
    }.items() <= line.items()
    assert line["at"].startswith("tests/test_logs.py:")
    assert not leaks(json.dumps(line))
    library.warning("%s %s", CANARY)  # cannot be put together
    assert not leaks(json.dumps(quiet()))
    library.warning("%s ready.", CANARY)
    assert quiet()["said"] == "%s ready."


def test_no_logger_has_a_handler_but_the_root() -> None:
    import granian.log  # sets its own up when its server starts

    granian.log.configure_logging(granian.log.LogLevels.info)
    logging.config.dictConfig(site.LOGGING)
    speaking = {
        name
        for name, logger in logging.Logger.manager.loggerDict.items()
        if [one for one in getattr(logger, "handlers", []) if not isinstance(one, logging.NullHandler)]
    }
    assert speaking == set()


def test_celery_adds_no_handler_of_its_own() -> None:
    code = (
        "import logging; from agent_bridge.celery import app; app.log.setup(loglevel='INFO');"
        "import celery.utils.log as l; names = ['celery', 'celery.task', 'celery.redirected', 'multiprocessing'];"
        "print([h for n in names for h in logging.getLogger(n).handlers if type(h) is not logging.NullHandler],"
        "len(logging.getLogger().handlers))"
    )
    said = subprocess.run(
        [sys.executable, "-c", f"import django; django.setup(); {code}"],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "memory_portal.settings"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.strip() == "[] 1"


@pytest.mark.parametrize("how", ["raise RuntimeError(f'{said}')", "threading.Thread(target=lambda: {}[said]).start()"])
def test_a_process_that_dies_in_production_tells_where_and_not_what(how: str) -> None:
    code = f"import threading, django; django.setup(); said = '{CANARY}'\n{how}"
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "VAR_DIR") if name in os.environ}
    died = subprocess.run(
        [sys.executable, "-c", code], env={**kept, **SAFE, "DJANGO_SETTINGS_MODULE": "memory_portal.settings"},
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    line = json.loads(died.stderr.splitlines()[-1])
    assert line["event"] == "crashed"
    assert line["error"] in ("RuntimeError", "KeyError")
    assert not leaks(died.stdout + died.stderr)


# --- ids through the log ----------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_a_request_has_one_id_in_its_answer_its_lines_and_the_task_it_rings_for(
    sinks: Sinks, agent: Any, settings: Any
) -> None:
    settings.EXTRACTION_DEBOUNCE = 0
    name = "0f8fad5b-d9cb-469f-a165-70867728950e"
    turns = {"session_id": "s", "messages": [{"role": "user", "text": "I love green tea"}]}
    answer = agent().post("/bridge/v1/subjects/alice/turns", turns, "application/json", headers={"X-Request-ID": name})
    assert answer.status_code == 202
    assert answer["X-Request-ID"] == name
    job = answer.json()["job_id"]
    mine = [line for line in heard(sinks) if line.get("request_id") == name]
    assert [line["job"] for line in mine if line["event"] == "job_queued"] == [job]
    (request,) = [line for line in mine if line["event"] == "request"]
    assert {"route": "bridge:hand_over_turns", "method": "POST", "status": 202}.items() <= request.items()
    assert name in sinks.of_broker()
    tasks.run_job.apply(args=[job], headers={"request_id": name})
    (done,) = [line for line in heard(sinks) if line["event"] == "job_done"]
    assert (done["job"], done["task"], done["request_id"]) == (job, "agent_bridge.run_job", name)


@pytest.mark.parametrize("offered", ["", CANARY, "a" * 500, "0f8fad5b d9cb", "12345", "ä" * 32])
def test_a_name_out_of_a_callers_mouth_is_not_taken_over(client: Client, offered: str) -> None:
    given = client.get("/healthz", headers={"X-Request-ID": offered})["X-Request-ID"]
    assert given != offered
    assert len(given) == 32
