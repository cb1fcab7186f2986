"""Out of the files of PostgreSQL, too: what was erased still stands in pages and in the write-ahead log until both are made anew.

VACUUM frees the space and does not clean it: measured, copies of erased values stay in it. So tables are rewritten, as long as that
takes a moment; a larger one is vacuumed, its indexes are made anew beside the running site, and it says so. Imports settings only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.db import ProgrammingError, connection
from django.db.utils import OperationalError
from psycopg import sql

MOMENT_MB = 64
"""What is rewritten while the site runs: a table of this size is locked for about a second."""
PATIENCE = "2s"
"""How long to wait for a lock; others wait behind who waits."""

TABLES = """
SELECT c.relname, pg_total_relation_size(c.oid) / 1048576.0, pg_relation_size(c.oid) = 0
FROM pg_class AS c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' ORDER BY 2, 1
"""


@dataclass
class Scrubbed:
    rewritten: list[str] = field(default_factory=list)
    vacuumed: list[str] = field(default_factory=list)
    """Too large, or in use for longer than the patience: erased bytes may stay in their free space."""
    log_is_new: bool = False
    notes: list[str] = field(default_factory=list)


def scrub(*, up_to_mb: float = MOMENT_MB) -> Scrubbed:
    """Outside of any transaction, as the owner of the tables. What the role may not do is noted and left out."""
    done = Scrubbed()
    with _owner(), connection.cursor() as cursor:
        cursor.execute(TABLES)
        for table, size, empty in cursor.fetchall():
            name = sql.Identifier(table)
            if size <= up_to_mb and _tried(cursor, sql.SQL("VACUUM (FULL, ANALYZE) {}").format(name)):
                done.rewritten.append(table)
                continue
            cursor.execute(sql.SQL("VACUUM (ANALYZE) {}").format(name))
            if not empty:
                cursor.execute(sql.SQL("REINDEX TABLE CONCURRENTLY {}").format(name))
                done.vacuumed.append(table)
        _new_log(cursor, done)
    return done


def _tried(cursor: object, statement: sql.Composed) -> bool:
    """False where somebody else had the table for longer than we wait."""
    try:
        cursor.execute(statement)  # type: ignore[attr-defined]
    except OperationalError:
        return False
    return True


@contextmanager
def _owner() -> Iterator[None]:
    """As the role that signed in, who owns the tables, and with little patience; both until the end only."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('role')")
        role = cursor.fetchone()[0]
        cursor.execute(f"RESET ROLE; SET lock_timeout = '{PATIENCE}'")
        try:
            yield
        finally:
            cursor.execute("RESET lock_timeout")
            if role != "none":
                cursor.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))


def _new_log(cursor: object, done: Scrubbed) -> None:
    """Begin a new segment and let go of those before the checkpoint. Segments that are used again keep their old bytes."""
    execute = cursor.execute  # type: ignore[attr-defined]
    try:
        execute("SELECT pg_switch_wal()")
        execute("CHECKPOINT")
    except ProgrammingError:
        done.notes.append("This role may not begin a new log: GRANT pg_checkpoint and EXECUTE ON pg_switch_wal to it.")
        return
    execute(
        "SELECT current_setting('wal_recycle')::bool, current_setting('archive_mode'), count(*) FROM pg_replication_slots"
    )
    recycles, archives, slots = cursor.fetchone()  # type: ignore[attr-defined]
    if recycles:
        done.notes.append("wal_recycle is on: used segments of the log are kept for later with what stands in them.")
    if archives != "off":
        done.notes.append("archive_mode is on: the archive is a backup, and ends with the backups.")
    if slots:
        done.notes.append("There are replication slots: the log is kept as long as one of them lags behind.")
    done.log_is_new = not recycles and not slots
