"""Events and reads lie in partitions by the month: the next ones are made ahead, those past their time are dropped whole.

In: the time. Out: what was made and dropped. Raw SQL on the names that the migration gave: `..._2026_11` is a month,
`..._until_2027_01` what was there before months were kept, `..._default` what no month takes. Dropping takes the same instant
however full a month is. Each step is one short transaction that gives up rather than hold writers up; the next call tries again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from psycopg import sql
from psycopg.errors import InsufficientPrivilege, LockNotAvailable

from memory_portal import logs

log = logs.get(__name__)

EVENTS, READS = "memory_portal_factevent", "memory_portal_factread"
AHEAD = 3
PATIENCE = "1s"

PARTS = "SELECT relid::regclass::text FROM pg_partition_tree(%s) WHERE level = 1"
NAME = re.compile(r"_(until_)?(\d{4})_(\d\d)$")


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """One partition: of the month that begins at `start`, or of everything before it."""

    start: datetime
    table: str
    before: bool

    @property
    def end(self) -> datetime:
        return self.start if self.before else later(self.start, 1)


def month(at: datetime) -> datetime:
    """The instant its month begins, in UTC."""
    return at.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def later(start: datetime, months: int) -> datetime:
    index = start.year * 12 + start.month - 1 + months
    return start.replace(year=index // 12, month=index % 12 + 1)


def parts(table: str) -> list[Part]:
    """The oldest first; the default partition is not among them."""
    with connection.cursor() as cursor:
        cursor.execute(PARTS, [table])
        names = [name for (name,) in cursor.fetchall()]
    found = [(name, NAME.search(name)) for name in names]
    return sorted(
        Part(datetime(int(match[2]), int(match[3]), 1, tzinfo=UTC), name, bool(match[1]))
        for name, match in found
        if match
    )


def kept_since(table: str, now: datetime) -> datetime:
    """Months that ended by then are past their time."""
    months = settings.AUDIT_MONTHS if table == EVENTS else settings.READ_MONTHS
    return later(month(now), -months)


def tend_months(now: datetime, *, farewell: Callable[[Part], None] = lambda part: None) -> dict[str, list[str]]:
    """Make the months that are missing, drop those past their time; `farewell` is called in the transaction that drops events.

    Returns the names of the partitions, by what was done. What somebody holds a lock on is left to the next call, and all of
    it where the tables are another role's: then that role calls (`manage.py tend_months`).
    """
    done: dict[str, list[str]] = {"made": [], "dropped": []}
    for table in (EVENTS, READS):
        try:
            for start in _missing(table, now):
                with _patience():
                    _make(table, start)
                done["made"].append(f"{table}_{start:%Y_%m}")
            since = kept_since(table, now)
            for part in [part for part in parts(table) if part.end <= since]:
                with _patience():
                    if table == EVENTS:
                        farewell(part)
                    _drop(table, part)
                done["dropped"].append(part.table)
        except DatabaseError as error:
            if not isinstance(error.__cause__, LockNotAvailable | InsufficientPrivilege):
                raise
            log.warning("months_left", **logs.of_error(error))
    return done


@contextmanager
def _patience() -> Iterator[None]:
    """One step, all or nothing, that gives up after a short wait for a lock."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{PATIENCE}'")
        yield


def _missing(table: str, now: datetime) -> list[datetime]:
    """Months to be made: this one and those ahead, and those of the past that rows wait for in the default partition."""
    there = parts(table)
    covered = {part.start for part in there if not part.before}
    bound = max((part.start for part in there if part.before), default=datetime.min.replace(tzinfo=UTC))
    wanted = {later(month(now), ahead) for ahead in range(AHEAD + 1)}
    with connection.cursor() as cursor:
        cursor.execute(
            sql.SQL("SELECT DISTINCT date_trunc('month', at, 'UTC') FROM {} WHERE at >= %s AND at < %s").format(
                sql.Identifier(f"{table}_default")
            ),
            [kept_since(table, now), month(now)],
        )
        wanted |= {start.astimezone(UTC) for (start,) in cursor.fetchall()}
    return sorted(start for start in wanted - covered if start >= bound)


def _make(table: str, start: datetime) -> None:
    """Rows of that month leave the default partition in the same step; writers wait for it, so that none goes astray."""
    names = {
        "all": sql.Identifier(table),
        "month": sql.Identifier(f"{table}_{start:%Y_%m}"),
        "default": sql.Identifier(f"{table}_default"),
        "start": sql.Literal(start),
        "end": sql.Literal(later(start, 1)),
    }
    steps = [
        "LOCK TABLE {all} IN SHARE ROW EXCLUSIVE MODE",
        "CREATE TABLE {month} (LIKE {all} INCLUDING DEFAULTS)",
        # Their owner alone may do this: the rows do not go, they move.
        "ALTER TABLE {default} DISABLE TRIGGER USER",
        "WITH moved AS (DELETE FROM {default} WHERE at >= {start} AND at < {end} RETURNING *)"
        " INSERT INTO {month} SELECT * FROM moved",
        "ALTER TABLE {default} ENABLE TRIGGER USER",
        "ALTER TABLE {month} ENABLE ROW LEVEL SECURITY",  # for who asks it by itself; the whole has its policy
        "ALTER TABLE {all} ATTACH PARTITION {month} FOR VALUES FROM ({start}) TO ({end})",
    ]
    if table == EVENTS:
        steps.append(
            "CREATE TRIGGER never_emptied BEFORE TRUNCATE ON {month}"
            " FOR EACH STATEMENT EXECUTE FUNCTION memory_portal_refuse_emptying()"
        )
    with connection.cursor() as cursor:
        for step in steps:
            cursor.execute(sql.SQL(step).format(**names))


def _drop(table: str, part: Part) -> None:
    names = {"all": sql.Identifier(table), "part": sql.Identifier(part.table)}
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("ALTER TABLE {all} DETACH PARTITION {part}").format(**names))
        cursor.execute(sql.SQL("DROP TABLE {part}").format(**names))
