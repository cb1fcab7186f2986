"""python manage.py verify_audit: checks every event against its digest, its trail, the seals and the witness outside.

Says OK with its counts, or names each fault with what was done; the exit status is 1 then. Nothing is changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from memory_portal import store

SHOWN = 50


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--witness", type=Path, help="another copy of the file AUDIT_WITNESS, from where it is safer"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        report = store.verify(timezone.now(), options["witness"])
        for fault in report.faults[:SHOWN]:
            self.stdout.write(str(fault))
        if len(report.faults) > SHOWN:
            self.stdout.write(f"and {len(report.faults) - SHOWN:,} more")
        counts = (
            f"{report.events:,} events in {report.trails:,} trails under {report.seals:,} seals; "
            f"{report.older:,} from before the trails, {report.dropped:,} dropped in time, "
            f"{report.unsealed:,} not sealed yet; {report.seconds:.1f} s"
        )
        if not report.ok:
            raise CommandError(f"{len(report.faults):,} faults among {counts}")
        self.stdout.write(f"OK: {counts}")
