"""The same read with facts and notes in hash partitions by customer: what a database spread over machines would be asked.

In: the server. Out: a table of the read's CPU over one table and over partitions, and how many of them each statement touches.
"""

from __future__ import annotations

import json
import re

import psycopg

from benchmarks import callers, ground, report
from benchmarks.callers import Contestant

PARTS = 16
MADE = """
DROP TABLE IF EXISTS spread_fact; DROP TABLE IF EXISTS spread_read; DROP TABLE IF EXISTS spread_customer;
CREATE TABLE spread_customer (LIKE memory_portal_customer INCLUDING DEFAULTS) PARTITION BY HASH (id);
CREATE TABLE spread_fact (LIKE memory_portal_memoryfact INCLUDING DEFAULTS) PARTITION BY HASH (customer_id);
CREATE TABLE spread_read (LIKE memory_portal_factread INCLUDING DEFAULTS INCLUDING IDENTITY) PARTITION BY HASH (customer_id);
"""
KEYS = """
ALTER TABLE spread_fact ADD PRIMARY KEY (customer_id, id);
CREATE UNIQUE INDEX ON spread_fact (customer_id, key);
CREATE INDEX ON spread_read (customer_id, at DESC, id DESC);
"""


def make(connection: psycopg.Connection) -> None:
    for statement in MADE.split(";")[:-1]:
        connection.execute(statement)
    for table in ("fact", "read"):
        for number in range(PARTS):
            connection.execute(
                f"CREATE TABLE spread_{table}_{number} PARTITION OF spread_{table} FOR VALUES WITH (MODULUS {PARTS}, REMAINDER {number})"
            )
    for statement in KEYS.split(";")[:-1]:
        connection.execute(statement)
    connection.execute("INSERT INTO spread_fact SELECT * FROM memory_portal_memoryfact")
    connection.execute("VACUUM (ANALYZE) spread_fact")


def statement(noted: bool, spread: bool) -> str:
    """The product's own statement, over other tables."""
    from memory_portal.store import shelf

    text = shelf.READ_AND_NOTE if noted else shelf.JUST_READ
    return (
        text.replace("memory_portal_memoryfact", "spread_fact").replace("memory_portal_factread", "spread_read")
        if spread
        else text
    )


def touched(connection: psycopg.Connection, text: str, values: tuple[object, ...]) -> int:
    """How many partitions of facts the plan really looks into."""
    plan = psycopg.ClientCursor(connection).execute("EXPLAIN (ANALYZE, FORMAT JSON) " + text, values).fetchone()
    assert plan

    def walk(node: dict) -> set[str]:  # type: ignore[type-arg]
        here = (
            {node["Relation Name"]}
            if re.match(r"spread_fact_\d", node.get("Relation Name", "")) and node.get("Actual Loops")
            else set()
        )
        return here.union(*(walk(below) for below in node.get("Plans", ())))

    told = plan[0] if isinstance(plan[0], list) else json.loads(plan[0])
    return len(walk(told[0]["Plan"]))


def measured(server: ground.Server, customers: int, rounds: int, n: int) -> str:
    with psycopg.connect(server.url, autocommit=True) as connection:
        make(connection)
        looked = touched(connection, statement(noted=True, spread=True), values("c7", noted=True))
    kinds = {
        f"{'partitions' if spread else 'one table'}, {'noted' if noted else 'read only'}": (noted, spread)
        for spread in (False, True)
        for noted in (False, True)
    }
    there = [
        Contestant(name, "benchmarks.spread:contestant", more={"noted": noted, "spread": spread})
        for name, (noted, spread) in kinds.items()
    ]
    found = callers.compare(
        there,
        {"url": server.url, "profile": ground.PROFILE, "customers": customers},
        rounds=rounds,
        n=n,
        server=[server.pid],
    )
    table = report.compared(found, "one table, read only", {})
    return (
        f"{customers * ground.FACTS_EACH:,} facts and the notes in {PARTS} native hash partitions by customer; the statement is the product's own, "
        f"with the tables' names exchanged. Its plan looked into {looked} of {PARTS} partitions of facts. The primary key has the customer in "
        f"front, as any spread table's must.\n\n{table}"
    )


def values(subject: str, *, noted: bool) -> tuple[object, ...]:
    from datetime import UTC, datetime, timedelta

    now = datetime.now(UTC)
    read = ("bench", ground.PROFILE, subject, ["constraint", "safety"], now, [], now + timedelta(days=1), 8, 8, 4_000)
    return (*read, now, "bench", 7, "") if noted else read


def contestant(settings):  # type: ignore[no-untyped-def]
    from benchmarks.inside import ours, raw_connection

    ours()
    connection, text = raw_connection(settings), statement(settings["noted"], settings["spread"])
    from psycopg.pq import Format

    def read(number: int) -> object:
        with connection.cursor() as cursor:
            cursor.format = Format.BINARY
            return cursor.execute(text, values(f"c{number}", noted=settings["noted"])).fetchall()

    return read
