"""Once after SEMANTIC was switched on, or the model changed: vectors for the facts that are there. Safe to stop and repeat."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from memory_portal import store


class Command(BaseCommand):
    help = "Write the vectors of facts that have none of the current model (SEMANTIC=1)."

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.SEMANTIC:
            raise CommandError("SEMANTIC is off.")
        last, written = store.embed()
        while last:
            last, more = store.embed(after=last)
            written += more
        self.stdout.write(f"{written} vectors written")
