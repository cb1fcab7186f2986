"""An encrypted copy into a new database beside the one in use, made ready to serve: what was forgotten since is forgotten again.

Prints the DATABASE_URL it then has, without the password (docs/backup.md).
"""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from memory_portal import backups


class Command(BaseCommand):
    help = "Restore a backup into a new database of the same server, migrate it and replay the erasure ledger."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, help="the newest in BACKUP_DIR where none is named")
        parser.add_argument("--into", required=True, help="the name of the new database")
        parser.add_argument(
            "--only", action="store_true", help="restore and no more: `replay_erasures` is then yours to run"
        )

    def handle(self, *args: Any, file: Path | None, into: str, only: bool, **options: Any) -> None:
        try:
            made, target = restored(file, into)
        except OSError as error:
            raise CommandError(f"The backup cannot be read: {error.strerror}") from None
        except backups.BackupError as error:
            raise CommandError(str(error)) from None
        self.stderr.write(f"restored, as it was at {made}")
        if not only:
            for command in (["migrate", "--verbosity", "0"], ["replay_erasures"]):
                if manage(target, *command):
                    raise CommandError(f"{command[0]} failed; the copy must not serve")
        self.stdout.write(backups.url(target, password=False))


def restored(file: Path | None, into: str) -> tuple[str, str]:
    """When the copy was made, and how its new database is reached."""
    copies = backups.copies(settings.BACKUP_DIR)
    if file is None and not copies:
        raise backups.BackupError(f"there is no backup in {settings.BACKUP_DIR}")
    file = file or copies[-1]
    with file.open("rb") as sealed:
        _, head = backups.head_of(sealed)
    here = backups.conninfo(connection.settings_dict)
    target = backups.make_database(here, into)
    try:
        backups.restore(file, target)
    except BaseException:
        backups.drop_database(here, into)
        raise
    return head["made_at"], target


def manage(target: str, *command: str) -> int:
    """One of our commands on that database, in a process of its own; what it says goes to our standard error. Its exit code."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "manage.py", *command],
        cwd=settings.BASE_DIR,
        env={**os.environ, "DATABASE_URL": backups.url(target)},
        stdout=sys.__stderr__,
        check=False,
    )
    return done.returncode
