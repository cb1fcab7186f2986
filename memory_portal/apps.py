from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class MemoryPortalConfig(AppConfig):
    name = "memory_portal"
    verbose_name = _("Memory")

    def ready(self) -> None:
        from memory_portal import checks, sessions  # noqa: F401  # register the system checks, and what a sign-in notes

        if settings.DATABASE_ROLE:
            post_migrate.connect(raise_wall, sender=self)


def raise_wall(sender: object, **kwargs: Any) -> None:
    """New tables, and new statements of the agents' reads, are behind the wall from their migration on."""
    from memory_portal import store

    store.raise_wall()
