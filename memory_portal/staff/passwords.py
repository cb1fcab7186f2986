"""Rules for passwords of staff beside Django's own: the longest that is taken (without an end, one long text would keep the hasher
busy), and no resting on words that anybody would try here first.
"""

from __future__ import annotations

import re
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from memory_portal import store


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


class NotOfThisPlace:
    """What is left of it without the names of the product and its shops must still be eight characters long."""

    WORDS = ("memory", "portal", "admin", "staff", "password")
    LEFT = 8

    def words(self) -> set[str]:
        names = [settings.BRAND_NAME, *(profile.name for profile in store.current_policy().profiles.values())]
        named = {word for name in names for word in re.findall(r"\w{4,}", name.lower())}
        return {*self.WORDS, *named}

    def validate(self, password: str, user: Any = None) -> None:
        left = password.lower()
        for word in sorted(self.words(), key=len, reverse=True):
            left = left.replace(word, "")
        if len(left) < self.LEFT:
            raise ValidationError(_("This password rests on names of this place."), code="password_of_this_place")

    def get_help_text(self) -> str:
        return _("Your password can’t rest on names of this place, such as the shop’s.")
