"""Mails how many things are new to those who asked for it, at most once a day each. Run by the worker's clock, or by cron."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from memory_portal import post


class Command(BaseCommand):
    help = "Send the mails that say how much is new, to those who asked for them."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"{post.send_digests(timezone.now())} mail(s)")
