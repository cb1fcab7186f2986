"""Makes the role that requests are answered as, its rights, and the functions of the agents' reads. Run it after each `migrate`."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from memory_portal import store


class Command(BaseCommand):
    help = "Make the role that DATABASE_ROLE names, and what it may do; as the owner of the tables, after each migrate."

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DATABASE_ROLE:
            raise CommandError("DATABASE_ROLE is not set: there is no wall.")
        store.raise_wall()
        self.stdout.write(f"{settings.DATABASE_ROLE} sees the rows of one customer at a time")
