from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class MemoryPortalConfig(AppConfig):
    name = "memory_portal"
    verbose_name = _("Memory")

    def ready(self) -> None:
        from memory_portal import checks, sessions  # noqa: F401  # register the system checks, and what a sign-in notes
