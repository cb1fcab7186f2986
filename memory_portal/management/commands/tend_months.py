"""python manage.py tend_months: makes the coming months of events and reads, and drops those past their time.

The retention task does the same. By hand, and as a role that owns the tables, where the site's own role does not.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from memory_portal import store


class Command(BaseCommand):
    help = __doc__

    def handle(self, *args: Any, **options: Any) -> None:
        for what, names in store.tend_months(timezone.now()).items():
            self.stdout.write(f"{what}: {' '.join(names) or 'nothing'}")
