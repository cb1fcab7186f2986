"""The longest password that is taken. Beside Django's own rules; without an end, one long text would keep the hasher busy."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _


class LongestPassword:
    def __init__(self, max_length: int = 128) -> None:
        self.max_length = max_length

    def validate(self, password: str, user: Any = None) -> None:
        if len(password) > self.max_length:
            raise ValidationError(
                _("A password takes at most %(limit)d characters.") % {"limit": self.max_length},
                code="password_too_long",
            )

    def get_help_text(self) -> str:
        return _("Your password takes at most %(limit)d characters.") % {"limit": self.max_length}
