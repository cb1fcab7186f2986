"""PostgreSQL dies in mid-work, again and again: what was acknowledged is there afterwards, what was deleted stays away, and whoever
asked meanwhile got a plain "come again" and never an error.

Web, worker and scheduler are the product's own processes; the database is a server of this test's own, killed with -9.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import psutil
import psycopg
import pytest

from tests.figures import Figure
from tests.live import free_port, until

pytestmark = pytest.mark.live

ROOT = Path(__file__).resolve().parent.parent
BACK = 30.0
"""Seconds within which the site works again once the database does, with nothing restarted."""
BRIDGE = "/bridge/v1/subjects"


class Postgres:
    """The embedded server of a folder, as a process that can be killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = self.start()

    def start(self) -> str:
        code = "import sys, pathlib; from memory_portal import embedded;"
        code += "print(embedded.url(pathlib.Path(sys.argv[1]), stop_at_exit=False))"
        run = [sys.executable, "-c", code, str(self.folder)]
        started = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
        assert started.returncode == 0, started.stderr + (self.folder / "log").read_text("utf-8", "replace")[-2000:]
        return started.stdout.strip()

    def kill(self) -> None:
        """All at once: nobody writes a last word."""
        master = psutil.Process(int((self.folder / "postmaster.pid").read_text().split()[0]))
        master.suspend()  # or it has children after they were counted, and they hold the memory that it starts with again
        gone = [master, *master.children(recursive=True)]
        for process in gone:
            process.kill()
        psutil.wait_procs(gone, 10)


class Site:
    def __init__(self, var: Path, database: str) -> None:
        self.var, self.port = var, free_port()
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("ANTHROPIC", "DJANGO", "CELERY", "EXTRACT"))
        }
        self.environment = {
            **kept,
            "DATABASE_URL": database,
            "VAR_DIR": str(var),
            "EXTRACTION_DEBOUNCE": "0",
            "EXTRACTION_LEASE": "5",
            "BRIDGE_CALLS_PER_KEY": "1000000",
            "BRIDGE_CALLS": "1000000",
        }
        self.run("manage.py", "migrate", "-v0")
        scopes = "facts:read,facts:write,facts:delete,turns:write,links:create"
        self.key = self.run("manage.py", "agent_key", "create", "agent", "--quiet", "--scopes", scopes)
        web = ["-m", "granian", "--interface", "wsgi", "--workers", "1", "--blocking-threads", "3"]
        web += ["--host", "127.0.0.1", "--port", str(self.port), "memory_portal.wsgi:application"]
        celery = ["-m", "celery", "-A", "agent_bridge"]
        self.running = [
            self.started("web", web),
            self.started("worker", [*celery, "worker", "-c", "1"]),
            self.started("beat", [*celery, "beat", "--schedule", str(var / "schedule")]),
        ]

    def run(self, *command: str) -> str:
        done = subprocess.run(
            [sys.executable, *command], cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def started(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        with (self.var / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, *command],
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def stop(self) -> None:
        for process in self.running:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def client(self, *, agent: bool) -> httpx2.Client:
        headers = {"Authorization": f"Bearer {self.key}"} if agent else {}
        return httpx2.Client(base_url=f"http://127.0.0.1:{self.port}", headers=headers, timeout=30)


class Load:
    """Hosts and a customer who go on whatever happens, and note what they were promised."""

    def __init__(self, site: Site) -> None:
        self.site, self.over = site, threading.Event()
        self.kept: set[tuple[str, str]] = set()
        self.deleted: set[tuple[str, str]] = set()
        self.read: set[str] = set()
        self.written: set[str] = set()
        self.statuses: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.last_write = 0.0
        self.threads = [threading.Thread(target=work, daemon=True) for work in (self.facts, self.turns, self.pages)]

    def seen(self, door: str, answer: httpx2.Response, *fine: int) -> bool:
        """Note the answer; whether it is a promise. Anything but that and a proper 503 is wrong."""
        self.statuses[f"{door} {answer.status_code}"] += 1
        if answer.status_code in fine:
            return True
        kind = "application/problem+json" if door == "bridge" else "text/html"
        if (
            answer.status_code != 503
            or "Retry-After" not in answer.headers
            or kind not in answer.headers["Content-Type"]
        ):
            self.wrong.append(f"{door} {answer.request.method} {answer.status_code} {answer.text[:300]}")
        return False

    def again(self) -> Iterator[int]:
        for number in itertools.count():
            if self.over.wait(0.02):
                return
            yield number

    def facts(self) -> None:
        with self.site.client(agent=True) as http:
            for number in self.again():
                subject, key = f"s{number // 20}", f"note_{number}"
                address = f"{BRIDGE}/{subject}/facts/{key}"
                if self.seen("bridge", http.put(address, json={"value": f"the {number}th word"}), 201, 202):
                    self.kept.add((subject, key))
                    self.last_write = time.monotonic()
                    if number % 2 and self.seen("bridge", http.delete(address), 204):
                        self.deleted.add((subject, key))

    def turns(self) -> None:
        with self.site.client(agent=True) as http:
            for number in self.again():
                said = {"session_id": f"t{number}", "messages": [{"role": "user", "content": f"I love tea {number}"}]}
                answer = http.post(f"{BRIDGE}/t{number}/turns", json=said, headers={"Idempotency-Key": f"t-{number}"})
                if self.seen("bridge", answer, 202):
                    self.read.add(answer.json()["job_id"])
                self.over.wait(0.2)

    def pages(self) -> None:
        with self.site.client(agent=True) as host, self.site.client(agent=False) as http:
            link = host.post("/bridge/v1/portal-links", json={"subject_id": "p"}).json()["url"]
            self.post(http, link.partition(str(self.site.port))[2])
            for number in self.again():
                self.seen("portal", http.get("/"), 200)
                words = {"key": f"mark {number}", "value": f"the {number}th mark", "category": "preference"}
                answer = self.post(http, "/facts/add", **words)
                if answer is not None and self.seen("portal", answer, 302):
                    self.written.add(f"mark_{number}")
                self.over.wait(0.2)

    def post(self, http: httpx2.Client, address: str, **words: str) -> httpx2.Response | None:
        """As a browser does: the form first, then what was typed into it."""
        form = http.get(address)
        if not self.seen("portal", form, 200):
            return None
        token = form.text.partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]
        return http.post(address, data={"csrfmiddlewaretoken": token, **words})

    def __enter__(self) -> Load:
        for thread in self.threads:
            thread.start()
        until(lambda: self.last_write or (self.wrong and pytest.fail(self.wrong[0])) or None, "the first write")
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Postgres]:
    there = Postgres(tmp_path / "postgres")
    yield there
    there.kill()


@pytest.fixture
def site(tmp_path: Path, database: Postgres) -> Iterator[Site]:
    (tmp_path / "var").mkdir()
    there = Site(tmp_path / "var", database.url)
    yield there
    there.stop()


def fresh(load: Load, since: float) -> Callable[[], float | None]:
    return lambda: load.last_write - since if load.last_write > since else None


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.deep)])
def test_killed_under_load_it_loses_nothing_and_the_site_comes_back_by_itself(
    database: Postgres, site: Site, kills: int, figure: Figure
) -> None:
    dice, moment, waits = random.Random(6), threading.Event(), list[float]()
    with site.client(agent=False) as http:
        until(lambda: answers(http, "/readyz"), "the site")
        with Load(site) as load:
            for _ in range(kills):
                moment.wait(dice.uniform(0.5, 2))
                before = load.statuses.copy()
                database.kill()
                until(lambda: refused(load.statuses - before), "a refusal at each door", 20)  # noqa: B023
                assert http.get("/healthz").status_code == 200, "the process lives"
                away = http.get("/readyz")
                assert (away.status_code, away.json()["checks"]["database"]) == (503, "unreachable")
                assert database.start() == database.url
                there = time.monotonic()
                waits.append(until(fresh(load, there), "a write", BACK))
                until(lambda: answers(http, "/readyz"), "ready again", BACK)
    assert not load.wrong, load.wrong[:5]
    with psycopg.connect(database.url) as connection:
        rows = set(
            connection.execute("""
            SELECT c.subject_id, f.key FROM memory_portal_memoryfact f JOIN memory_portal_customer c ON c.id = f.customer_id
        """).fetchall()
        )
        unread = "SELECT state, outcome, attempts FROM agent_bridge_extractionjob WHERE state <> 'done' AND id = ANY(%s::uuid[])"
        until(
            lambda: None if connection.execute(unread, [sorted(load.read)]).fetchall() else True, "all to be read", 90
        )
        found = connection.execute(
            "SELECT count(*) FROM agent_bridge_extractionjob WHERE id = ANY(%s::uuid[])", [sorted(load.read)]
        ).fetchone()
    lost = load.kept - load.deleted - rows
    risen = load.deleted & rows
    assert not lost
    assert not risen
    assert not load.written - {key for subject, key in rows if subject == "p"}
    assert found == (len(load.read),)
    assert min(len(load.kept), len(load.deleted), len(load.written), len(load.read)) >= kills
    logged = "".join(path.read_text("utf-8", "replace") for path in site.var.glob("*.log"))
    assert "Traceback" not in logged
    assert "th word" not in logged
    figure(
        "J6",
        f"killed {kills} times under load: of {len(load.kept) + len(load.written)} acknowledged writes, {len(load.deleted)} "
        f"deletes and {len(load.read)} conversations 0 lost; answers {dict(sorted(load.statuses.items()))}, all else 0; "
        f"back {max(waits):.1f} s after the database at most",
    )


def answers(http: httpx2.Client, path: str) -> bool | None:
    try:
        return True if http.get(path).status_code == 200 else None
    except httpx2.TransportError:
        return None


def refused(since: Counter[str]) -> bool | None:
    return True if since["bridge 503"] and since["portal 503"] else None
