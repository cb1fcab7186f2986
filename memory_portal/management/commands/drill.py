"""The weekly drill: the newest backup into a database of its own, every promise about it tried, and away with it (docs/backup.md).

Nothing of the live database is changed. Any promise that does not hold ends it with exit code 1.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from memory_portal import backups
from memory_portal.management.commands.restore import restored

COUNTED = ("customer", "memoryfact", "factrevision", "proposal", "tombstone", "consent", "factevent", "erasureledger")


class Copy:
    """The restored database, tried out with a copy of the ledger and without a witness: the live site's files are not touched."""

    def __init__(self, target: str, folder: Path) -> None:
        self.target = target
        ledger = folder / "ledger.jsonl"
        if settings.ERASURE_LEDGER.exists():
            shutil.copyfile(settings.ERASURE_LEDGER, ledger)
        files = {"ERASURE_LEDGER": str(ledger), "AUDIT_WITNESS": str(folder / "witness.jsonl")}
        self.environment = {**os.environ, **files, "DATABASE_URL": backups.url(target)}

    def run(self, *command: str) -> bool:
        done = subprocess.run(  # noqa: S603
            [sys.executable, *command],
            cwd=settings.BASE_DIR,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        return done.returncode == 0

    def opens(self) -> bool:
        return self.run("-c", "import memory_portal.wsgi")


class Command(BaseCommand):
    help = "Restore the newest backup into a database of its own, see that it serves nobody it should not, and drop it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, help="the newest in BACKUP_DIR where none is named")

    def handle(self, *args: Any, file: Path | None, **options: Any) -> None:
        self.began = time.monotonic()
        name = f"memory_portal_drill_{time.time_ns()}"
        try:
            made, target = restored(file, name)
        except (OSError, backups.BackupError) as error:
            raise CommandError(str(error)) from None
        try:
            self.say(f"restored, as it was at {made}")
            with tempfile.TemporaryDirectory() as folder:
                self.try_out(Copy(target, Path(folder)))
        finally:
            backups.drop_database(backups.conninfo(connection.settings_dict), name)
        self.say("the drill held")

    def say(self, what: str) -> None:
        self.stdout.write(f"{time.monotonic() - self.began:7.1f} s  {what}")

    def try_out(self, copy: Copy) -> None:
        if copy.run("manage.py", "replay_erasures", "--check"):
            self.say("nothing was forgotten since the copy")
        else:
            self.must(not copy.opens(), "refuses to serve before the replay")
        self.must(copy.run("manage.py", "migrate", "--verbosity", "0"), "migrated")
        self.must(copy.run("manage.py", "replay_erasures"), "everything erased since is erased again, 0 accounts left")
        self.must(copy.run("manage.py", "verify_audit"), "the events are as they were written")
        self.must(copy.opens(), "serves")
        for table in COUNTED:
            there, here = count(copy.target, table), count(backups.conninfo(connection.settings_dict), table)
            self.say(f"{there} of {here} rows of {table}")

    def must(self, held: bool, what: str) -> None:
        if not held:
            raise CommandError(f"this did not hold: {what}")
        self.say(what)


def count(target: str, table: str) -> int:
    with psycopg.connect(target) as database:
        row = database.execute(
            psycopg.sql.SQL("SELECT count(*) FROM {}").format(psycopg.sql.Identifier(f"memory_portal_{table}"))
        )
        return int((row.fetchone() or (0,))[0])
