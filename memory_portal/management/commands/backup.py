"""One more encrypted copy of the database, and the end of those that are over. For a timer, every night (docs/backup.md)."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.utils import timezone

from memory_portal import backups


class Command(BaseCommand):
    help = "Write an encrypted copy of the database into BACKUP_DIR; remove those older than BACKUP_DAYS."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            made = backups.backup(backups.conninfo(connection.settings_dict), settings.BACKUP_DIR, timezone.now())
        except backups.BackupError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(str(made))
