"""manage.py privacy_record: write docs/privacy.md from the data inventory."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from memory_portal import record


class Command(BaseCommand):
    help = "Write the record of processing, docs/privacy.md, from the data inventory."

    def handle(self, *args: Any, **options: Any) -> None:
        (settings.BASE_DIR / "docs" / "privacy.md").write_text(record.text(), encoding="utf-8")
        self.stdout.write("docs/privacy.md is written.")
