"""System checks of this project's own: a wrong policy file stops every command with the name of the wrong setting."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import connections

from memory_portal import postgres
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


@register(Tags.database)
def quiet_database(
    app_configs: Sequence[Any] | None, databases: Sequence[str] | None, **kwargs: Any
) -> list[CheckMessage]:
    """Asked at `migrate`, and by `check --database default`."""
    found: list[CheckMessage] = []
    for alias in databases or ():
        with connections[alias].cursor() as cursor:
            if loud := postgres.loud(cursor):
                found.append(
                    Warning(
                        f"PostgreSQL may write customers' words into its log: {', '.join(loud)}.",
                        hint="docs/operations.md has the settings.",
                        id="memory_portal.W003",
                    )
                )
    return found


@register(deploy=True)
def counts_of_all_processes(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    if settings.METRICS_TOKEN and not os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        return [
            Warning(
                "/metrics is open, and each process would tell its own counts only.",
                hint="Name an empty directory in PROMETHEUS_MULTIPROC_DIR; it is the processes' of one machine.",
                id="memory_portal.W004",
            )
        ]
    return []
