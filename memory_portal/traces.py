"""Where a value may still stand: every column of every table, what the planner keeps of them, sessions opened, every file.

In: values. Out: Traces: which of them, a place, in how many rows or files, in which form; never the value. It is looked for as it
is, in JSON, in addresses, in HTML, in base64 wherever it begins, in hexadecimal, and all that in any case. Imports settings only.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote, quote_plus, urlsplit

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import connection
from psycopg import sql

LEAST = 4
"""A shorter value stands everywhere."""
PIECE = 4 * 1024 * 1024
OVERLAP = 16 * 1024


@dataclass(frozen=True, slots=True)
class Trace:
    value: int
    """The how-manieth of the values, from 1."""
    place: str
    form: str
    count: int


@lru_cache(maxsize=4096)
def forms(text: str) -> dict[str, str]:
    """Each way in which a copy of the text may be written down, and its name; a form that looks like another is left out."""
    known = {
        "raw": text,
        "case-folded": text.casefold(),
        "JSON": json.dumps(text)[1:-1],
        "JSON, not in ASCII": json.dumps(text, ensure_ascii=False)[1:-1],
        "URL": quote(text),
        "form": quote_plus(text),
        "HTML": html.escape(text),
        "hexadecimal": text.encode().hex(),
    }
    for name in ("raw", "JSON", "JSON, not in ASCII"):
        # In base64 a text inside a longer one depends on where it begins; its inner characters do not, for three beginnings.
        for pad in range(3):
            inner = base64.b64encode(b"\0" * pad + known[name].encode()).decode()[(pad + 2) // 3 * 4 : -4]
            known[f"base64 of {name} from {pad}"] = inner
            known[f"base64 for addresses of {name} from {pad}"] = inner.replace("+", "-").replace("/", "_")
    found: dict[str, str] = {}
    for name, form in known.items():
        if len(form) >= len(text) and form.lower() not in map(str.lower, found.values()):
            found[name] = form
    return found


@dataclass(frozen=True, slots=True)
class Needle:
    value: int
    name: str
    form: str
    lower: str


def needles(texts: Sequence[str]) -> list[Needle]:
    """Raises ValueError for a text too short to be told from others."""
    for number, text in enumerate(texts, 1):
        if len(text.strip()) < LEAST:
            raise ValueError(f"value {number} has less than {LEAST} characters: it would be found everywhere")
    return [
        Needle(number, name, form, form.lower())
        for number, text in enumerate(texts, 1)
        for name, form in forms(text).items()
    ]


def everywhere(texts: Sequence[str], also: Iterable[Path] = ()) -> list[Trace]:
    sought = needles(texts)
    return [
        *in_tables(sought),
        *in_statistics(sought),
        *in_sessions(sought),
        *in_broker(sought),
        *in_files(sought, also),
    ]


# --- the database -------------------------------------------------------------------------------------------------------

COLUMNS = """
SELECT n.nspname, c.relname, a.attname, format_type(a.atttypid, NULL)
FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm') AND a.attnum > 0 AND NOT a.attisdropped
    AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_(toast|temp)'
ORDER BY 1, 2, a.attnum
"""
PLAIN = {
    "text", "character varying", "character", "json", "jsonb", "xml", "uuid", "inet", "cidr", "name", "citext", "hstore",
}  # fmt: skip
STATISTICS = """
SELECT schemaname || '.' || tablename || '.' || attname, concat_ws(' ', most_common_vals, histogram_bounds, most_common_elems)
FROM pg_stats WHERE schemaname NOT IN ('pg_catalog', 'information_schema')
"""


def in_tables(sought: Sequence[Needle]) -> Iterator[Trace]:
    with connection.cursor() as cursor:
        cursor.execute(COLUMNS)
        columns = cursor.fetchall()
        collation = _collation(cursor)
        for schema, table, column, kind in columns:
            match = _match(column, kind, collation)
            if match is None:
                continue
            form = "bytea" if kind == "bytea" else "text"
            query = sql.SQL(
                "SELECT n.place, count(*) FROM {table} AS t, unnest(%s{form}) WITH ORDINALITY AS n(needle, place)"
                " WHERE {match} GROUP BY 1"
            ).format(table=sql.Identifier(schema, table), form=sql.SQL(f"::{form}[]"), match=match)
            cursor.execute(query, [[n.form.encode() if form == "bytea" else n.lower for n in sought]])
            for place, count in cursor.fetchall():
                yield Trace(sought[place - 1].value, f"{table}.{column}", sought[place - 1].name, count)


def _collation(cursor: Any) -> sql.Composable:
    """One that knows capitals beyond ASCII, whatever the database was made with."""
    cursor.execute(
        "SELECT collname FROM pg_collation WHERE collname IN ('pg_c_utf8', 'und-x-icu') ORDER BY collname LIMIT 1"
    )
    row = cursor.fetchone()
    return sql.SQL("COLLATE {}").format(sql.Identifier(row[0])) if row else sql.SQL("")


def _match(column: str, kind: str, collation: sql.Composable) -> sql.Composable | None:
    name = sql.Identifier("t", column)
    if kind == "bytea":
        return sql.SQL("position(n.needle IN {}) > 0").format(name)
    if kind.endswith("[]") and kind[:-2] in PLAIN:
        said: sql.Composable = sql.SQL("array_to_string({}, chr(10))").format(name)
    elif kind in PLAIN:
        said = sql.SQL("{}::text").format(name)
    else:
        return None
    return sql.SQL("strpos(lower({} {}), n.needle) > 0").format(said, collation)


def in_statistics(sought: Sequence[Needle]) -> Iterator[Trace]:
    """The planner keeps samples of what columns hold."""
    with connection.cursor() as cursor:
        cursor.execute(STATISTICS)
        for place, samples in cursor.fetchall():
            yield from _in_text(sought, samples.replace('\\"', '"'), f"statistics of {place}")


def in_sessions(sought: Sequence[Needle]) -> Iterator[Trace]:
    """Sessions are packed and signed, so each is opened."""
    found: Counter[tuple[int, str]] = Counter()
    for session in Session.objects.iterator():
        said = json.dumps(session.get_decoded(), default=str)
        found.update((trace.value, trace.form) for trace in _in_text(sought, said, ""))
    for (value, form), count in found.items():
        yield Trace(value, "sessions, opened", form, count)


def _in_text(sought: Sequence[Needle], within: str, place: str) -> Iterator[Trace]:
    lower = within.lower()
    for needle in sought:
        if needle.lower in lower:
            yield Trace(needle.value, place, needle.name, 1)


# --- beside it ----------------------------------------------------------------------------------------------------------


def in_broker(sought: Sequence[Needle]) -> Iterator[Trace]:
    """What waits in Redis. Messages kept as files are found among the files."""
    if urlsplit(settings.CELERY_BROKER_URL).scheme not in ("redis", "rediss"):
        return
    import redis

    client: Any = redis.Redis.from_url(settings.CELERY_BROKER_URL)
    read: dict[bytes, Callable[[bytes], Iterable[Any]]] = {
        b"string": lambda key: [client.get(key)],
        b"list": lambda key: client.lrange(key, 0, -1),
        b"hash": lambda key: client.hgetall(key).values(),
        b"set": client.smembers,
        b"zset": lambda key: client.zrange(key, 0, -1),
    }
    for key in client.scan_iter():
        kind = client.type(key)
        for value in read[kind](key) if kind in read else ():
            yield from _in_text(sought, bytes(value or b"").decode("utf-8", "replace"), f"broker {key.decode()}")


def files(also: Iterable[Path] = ()) -> list[Path]:
    """Everything under var/ but the database's own files, of which its log alone is text; mails kept as files; and `also`."""
    var = Path(settings.VAR)
    kept = [path for path in var.rglob("*") if "postgres" not in path.relative_to(var).parts]
    mails = getattr(settings, "EMAIL_FILE_PATH", None)
    for place in (var / "postgres" / "log", *([Path(mails)] if mails else []), *also):
        kept += place.rglob("*") if place.is_dir() else [place]
    return sorted({path for path in kept if path.is_file()})


def in_files(sought: Sequence[Needle], also: Iterable[Path] = ()) -> Iterator[Trace]:
    for path in files(also):
        found = {(trace.value, trace.form) for piece in _pieces(path) for trace in _in_text(sought, piece, "")}
        for value, form in sorted(found):
            yield Trace(value, str(path), form, 1)


def _pieces(path: Path) -> Iterator[str]:
    """The file piece by piece, each with the end of the one before; a packed one is unpacked."""
    with path.open("rb") as plain:
        packed = plain.read(2) == b"\x1f\x8b"
        plain.seek(0)
        file: BinaryIO = gzip.GzipFile(fileobj=plain) if packed else plain  # type: ignore[assignment]
        end = b""
        try:
            while read := file.read(PIECE):
                yield (end + read).decode("utf-8", "replace")
                end = read[-OVERLAP:]
        except (EOFError, zlib.error, gzip.BadGzipFile):
            return  # Cut off; what could be unpacked was looked at.
