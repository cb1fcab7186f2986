"""Looks for a value everywhere it might have been left, and says where and how often; never what. Exit code 1: it was found."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memory_portal import traces


class Command(BaseCommand):
    help = "Search every table, the planner's statistics, sessions, broker and files for a value, in every encoding."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "value",
            nargs="?",
            help="better on the standard input, one a line: arguments stand in process lists and histories",
        )
        parser.add_argument(
            "--also", action="append", default=[], type=Path, help="a file or folder of logs, mails, exports"
        )

    def handle(self, *args: Any, value: str | None, also: list[Path], **options: Any) -> None:
        values = [value] if value is not None else [line.rstrip("\n") for line in sys.stdin if line.strip()]
        if not values:
            raise CommandError("No value to look for.")
        if gone := [path for path in also if not path.exists()]:
            raise CommandError(f"{gone[0]} is not there.")
        try:
            found = traces.everywhere(values, also)
        except ValueError as error:
            raise CommandError(str(error)) from None
        for trace in found:
            self.stdout.write(f"value {trace.value}: {trace.place}: {trace.count} ({trace.form})")
        files = len(traces.files(also))
        self.stdout.write(f"{len(found)} traces of {len(values)} values in all tables and {files} files")
        if found:
            sys.exit(1)
