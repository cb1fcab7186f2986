"""What must not come back with a restored copy, noted twice: in a table, and in a file outside the database.

A row is written in the very transaction that forgets; once that is committed its line is appended to the file ERASURE_LEDGER. So
the table may know more than the file (a crash between the two; `reconcile` makes up for it), and the file never more than the
table, except where the database is a copy from before: then nobody is served by it until `replay` has forgotten again.

Out: ids, codes, times and for an account a keyed pseudonym. No name, no key, no value. Imports models and errors.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import hmac
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import OperationalError, connection, transaction
from django.db.backends.signals import connection_created
from django.db.models import Q

from memory_portal.enums import Noted
from memory_portal.models import Customer, ErasureLedger

TELL_FOR = timedelta(days=30)
"""How long agents can hear that an account was closed; so long the host's id of it is kept, encrypted."""
KEEP_FORGOTTEN = timedelta(days=60)
"""Longer than any backup lives (35 days), which is all that these lines are for."""
KEEP_ERASED = timedelta(days=731)
"""The register of erased accounts: two years and a day."""


UNKNOWN = """
SELECT e FROM unnest(%s::bigint[]) AS e
WHERE NOT EXISTS (SELECT FROM memory_portal_erasureledger AS l WHERE l.epoch = e) ORDER BY e
"""


class OldCopy(OperationalError):
    """This database is older than what is known outside of it to have been forgotten."""


# --- who --------------------------------------------------------------------------------------------------------------


def keys() -> list[bytes]:
    """The ledger's key and its predecessors, the one that is in use first."""
    return [key.encode() for key in (settings.LEDGER_KEY, *settings.LEDGER_KEY_FALLBACKS)]


def pseudonyms(profile: str, subject_id: str) -> list[str]:
    """128 bits of HMAC-SHA-256 under each key: whoever has the key and the id finds the line, and nobody else does."""
    text = json.dumps(["memory-portal erased", profile, subject_id]).encode()
    return [hmac.new(key, text, hashlib.sha256).hexdigest()[:32] for key in keys()]


def _box() -> MultiFernet:
    digests = [hashlib.sha256(b"memory-portal erased subject\0" + key).digest() for key in keys()]
    return MultiFernet([Fernet(base64.urlsafe_b64encode(digest)) for digest in digests])


def unsealed(sealed: bytes) -> str:
    """The host's id of a closed account; empty where the key is gone."""
    try:
        return _box().decrypt(bytes(sealed)).decode()
    except InvalidToken:
        return ""


_again: ContextVar[ErasureLedger | None] = ContextVar("memory_portal_ledger", default=None)


@contextmanager
def doing_again(row: ErasureLedger) -> Iterator[None]:
    """What is forgotten in here is what this row says, and leaves no row of its own."""
    token = _again.set(row)
    try:
        yield
    finally:
        _again.reset(token)


# --- noting, inside -----------------------------------------------------------------------------------------------------


def note(
    customer: Customer, kind: Noted, now: datetime, *, fact_ids: Sequence[int | None] = (None,), code: str = ""
) -> None:
    """Note what is being forgotten, in the transaction that forgets it: one row a fact, or one for all of the customer."""
    erased = kind is Noted.ERASED
    if (again := _again.get()) is not None:  # It has its line already, which the replay writes.
        again.sealed_subject = _box().encrypt(customer.subject_id.encode()) if erased else None
        return
    rows = [
        ErasureLedger(
            kind=kind,
            at=now,
            customer_number=customer.pk,
            fact_id=fact_id,
            code=code,
            profile=customer.profile if erased else "",
            pseudonym=pseudonyms(customer.profile, customer.subject_id)[0] if erased else "",
            sealed_subject=_box().encrypt(customer.subject_id.encode()) if erased else None,
        )
        for fact_id in fact_ids
    ]
    if not rows:
        return
    ErasureLedger.objects.bulk_create(rows)
    transaction.on_commit(
        lambda: _append(map(line, rows)), robust=True
    )  # What is committed is so, whatever a disk says.


def line(row: ErasureLedger) -> dict[str, Any]:
    told = {
        "epoch": row.pk,
        "kind": str(row.kind),
        "at": row.at.isoformat(),
        "customer": row.customer_number,
        "fact": row.fact_id,
        "code": row.code,
        "profile": row.profile,
        "pseudonym": row.pseudonym,
    }
    return {name: value for name, value in told.items() if value not in ("", None)}


def entry(said: dict[str, Any]) -> ErasureLedger:
    """The row that a line was made of."""
    return ErasureLedger(
        epoch=said["epoch"],
        kind=said["kind"],
        at=datetime.fromisoformat(said["at"]),
        customer_number=said["customer"],
        fact_id=said.get("fact"),
        code=said.get("code", ""),
        profile=said.get("profile", ""),
        pseudonym=said.get("pseudonym", ""),
    )


# --- the file, outside ------------------------------------------------------------------------------------------------


def _path() -> Path:
    return Path(settings.ERASURE_LEDGER)


@contextmanager
def _alone() -> Iterator[Path]:
    """One writer at a time, of however many processes share the file."""
    path = _path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield path
    finally:
        os.close(descriptor)


def _append(lines: Iterable[dict[str, Any]]) -> None:
    with _alone() as path:
        _write(path, lines, os.O_APPEND)


def _write(path: Path, lines: Iterable[dict[str, Any]], how: int) -> None:
    """On the disk before it returns, name and all. Each line starts with a line break: a torn one before it spoils nothing."""
    text = "".join("\n" + json.dumps(said, separators=(",", ":")) for said in lines)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | how, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def outside() -> dict[int, dict[str, Any]]:
    """What the file says, by epoch. A torn line is one whose write was cut off; `reconcile` has written it again since."""
    try:
        text = _path().read_text("utf-8", "replace")
    except FileNotFoundError:
        return {}
    told = {}
    for part in text.splitlines():
        try:
            said = json.loads(part)
            told[int(said["epoch"])] = said
        except (ValueError, KeyError, TypeError):
            continue
    return told


def reconcile(now: datetime) -> int:
    """Write what the table knows and the file does not, let go of what no backup can hold any more. Returns how many lines."""
    over = Q(kind=Noted.ERASED, at__lte=now - KEEP_ERASED) | Q(at__lte=now - KEEP_FORGOTTEN) & ~Q(kind=Noted.ERASED)
    ErasureLedger.objects.filter(over).delete()
    ErasureLedger.objects.filter(at__lte=now - TELL_FOR).exclude(sealed_subject=None).update(sealed_subject=None)
    told, kept = outside(), {row.pk: row for row in ErasureLedger.objects.all()}
    new = [line(row) for pk, row in sorted(kept.items()) if pk not in told]
    if new:
        _append(new)
    # A line that the table does not hold is over, as one of a copy that waits to be replayed is not.
    lapsed = {epoch for epoch, said in told.items() if epoch not in kept and _is_over(said, now)}
    if lapsed:
        with _alone() as path:
            rest = [said for epoch, said in outside().items() if epoch not in lapsed]
            fresh = path.with_suffix(".new")
            _write(fresh, rest, os.O_TRUNC)
            fresh.replace(path)
    return len(new)


def _is_over(said: dict[str, Any], now: datetime) -> bool:
    keep = KEEP_ERASED if said["kind"] == Noted.ERASED else KEEP_FORGOTTEN
    return datetime.fromisoformat(said["at"]) <= now - keep


# --- nobody is served by an old copy --------------------------------------------------------------------------------------


def unknown(now: datetime) -> list[dict[str, Any]]:
    """What the file knows and this database does not, in the order in which it happened; lines that are over do not count."""
    told = {epoch: said for epoch, said in outside().items() if not _is_over(said, now)}
    if not told:
        return []
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('memory_portal_erasureledger') IS NULL")
        if cursor.fetchone()[0]:  # A copy from before there was a ledger.
            return [told[epoch] for epoch in sorted(told)]
        cursor.execute(UNKNOWN, [sorted(told)])
        return [told[epoch] for (epoch,) in cursor.fetchall()]


def check_copy(now: datetime) -> None:
    """Raises OldCopy where this database is one."""
    if missing := unknown(now):
        raise OldCopy(
            f"This database is a copy from before {len(missing)} erasures that {_path().name} knows of. "
            "Nobody is served by it until `manage.py replay_erasures` has run; docs/backup.md says more."
        )


def refuse_old_copies(clock: Callable[[], datetime]) -> None:
    """From now on this process opens no connection to an old copy. Raises OldCopy at once where the database is one.

    A database that does not answer now is asked when it does.
    """

    def asked(sender: object, **kwargs: Any) -> None:
        try:
            check_copy(clock())
        except OldCopy:
            connection.close()  # Django would take it for a good one.
            raise

    connection_created.connect(asked, dispatch_uid="memory_portal.ledger", weak=False)
    try:
        check_copy(clock())
    except OldCopy:
        raise
    except OperationalError:
        return  # It does not answer; whatever connection comes to be is asked.
