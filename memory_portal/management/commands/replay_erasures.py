"""After a restore, before anybody is served: forgets again what was forgotten since the copy was made (docs/backup.md)."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from memory_portal import store


class Command(BaseCommand):
    help = "Do again in this database what the erasure ledger's file knows of and the database does not."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--check", action="store_true", help="change nothing; exit code 1 where there is something to do"
        )

    def handle(self, *args: Any, check: bool, **options: Any) -> None:
        if check:
            try:
                store.check_copy(timezone.now())
            except store.OldCopy as error:
                self.stdout.write(str(error))
                sys.exit(1)
            return
        done = store.replay(now=timezone.now())
        for kind, count in sorted(done.items()):
            self.stdout.write(f"{count:>6} {kind}")
        if left := store.still_there():
            raise CommandError(f"{left} erased accounts are still there.")
        self.stdout.write("Nothing that was erased is left; the site may serve." if done else "Nothing to do again.")
