"""System checks of this project's own: a wrong policy file stops every command with the name of the wrong setting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from memory_portal.store import semantic
from memory_portal.store.desk import current_policy
from memory_portal.store.policy import PolicyError


@register()
def policy_file(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    try:
        current_policy()
    except PolicyError as error:
        return [
            Error(
                f"The memory policy cannot be used: {error}",
                hint="MEMORY_POLICY names the file.",
                id="memory_portal.E001",
            )
        ]
    return []


@register()
def semantic_model(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    if settings.SEMANTIC and (missing := semantic.missing()):
        return [
            Error(
                f"SEMANTIC is on, but {missing}.",
                hint="pip install memory-portal[semantic], or name the model's directory in SEMANTIC_MODEL_DIR.",
                id="memory_portal.E002",
            )
        ]
    return []
