"""Cleans erased values out of PostgreSQL's files (docs/backup.md). The worker's clock runs it every night."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from memory_portal import scrub


class Command(BaseCommand):
    help = "Rewrite tables and begin a new write-ahead log, so that what was erased is gone from the database's files."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--up-to-mb", type=float, default=scrub.MOMENT_MB, help="rewrite tables up to this size")
        parser.add_argument(
            "--all", action="store_true", help="rewrite every table, however large: in a maintenance window"
        )

    def handle(self, *args: Any, up_to_mb: float, **options: Any) -> None:
        done = scrub.scrub(up_to_mb=float("inf") if options["all"] else up_to_mb)
        self.stdout.write(f"{len(done.rewritten)} tables rewritten")
        for table in done.vacuumed:
            self.stdout.write(f"{table}: vacuumed only; erased bytes may stay in its free space until --all")
        for note in done.notes:
            self.stdout.write(note)
        self.stdout.write(
            "the write-ahead log is new" if done.log_is_new else "the write-ahead log may hold older bytes"
        )
