"""python manage.py who_was_touched --key 12 --from 2026-05-01 --to 2026-05-08T12:00: whom an agent, a key or staff touched.

For the days after a breach. One line a customer: profile, the host's own id (or the number of an account closed since), reads,
looks at a value, changes, first and last time; separated by tabs. Times without a zone are UTC; without --to it is until now.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from memory_portal import store


def instant(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def number(text: str) -> str:
    return str(int(text))


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        who = parser.add_mutually_exclusive_group(required=True)
        who.add_argument("--agent", help="its name, whichever key it used")
        who.add_argument("--key", type=number, help="the number of an agent's key")
        who.add_argument("--staff", type=number, help="the number of a member of staff")
        parser.add_argument("--from", dest="since", type=instant, required=True)
        parser.add_argument("--to", dest="until", type=instant)

    def handle(self, *args: Any, **options: Any) -> None:
        for by in ("agent", "key", "staff"):
            if options[by] is not None:
                found = store.who_was_touched(by, options[by], options["since"], options["until"] or timezone.now())
        for row in found:
            name = (row.profile, row.subject_id) if row.subject_id is not None else ("closed", row.number)
            times = (row.first.astimezone(UTC).isoformat(), row.last.astimezone(UTC).isoformat())
            self.stdout.write("\t".join(map(str, (*name, row.reads, row.looks, row.changes, *times))))
        sums = (sum(row.reads for row in found), sum(row.looks for row in found), sum(row.changes for row in found))
        self.stderr.write("{:,} customers: {:,} reads, {:,} looks, {:,} changes".format(len(found), *sums))
