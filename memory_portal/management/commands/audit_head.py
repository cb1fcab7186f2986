"""python manage.py audit_head: seals what came in and prints the line that the witness outside the database holds of it.

Send the line wherever nobody who can write to the database can write: syslog, an object store with a lock. `--restored` after the
database was brought back from a backup on purpose: the witness notes it, and what it knew before is not held against the copy.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from memory_portal import store


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--restored", action="store_true", help="this database was restored from a backup on purpose"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        last = store.restored() if options["restored"] else store.seal(timezone.now())
        self.stdout.write(store.head_line(last, restored=options["restored"]))
