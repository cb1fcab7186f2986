"""Who may do what. Three roles, each a group with exactly these permissions: `migrate` makes them so each time.

A deployment that needs another table makes a group of its own. Without a group a member of staff sees the front page and no more.
"""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig, apps
from django.contrib.auth.models import User
from django.db import transaction

from memory_portal.enums import StaffRole

LOOKING = (
    "view_customer", "view_memoryfact", "view_proposal", "view_tombstone", "view_consent", "view_factevent", "view_factread",
)  # fmt: skip
ON_BEHALF = ("reveal_memoryfact", "change_memoryfact", "delete_memoryfact")
"""Look at a value, correct it, have it forgotten: each with a reason, and the customer reads of it."""

ROLES: dict[StaffRole, dict[str, tuple[str, ...]]] = {
    StaffRole.SUPPORT: {"memory_portal": (*LOOKING, *ON_BEHALF)},
    StaffRole.PRIVACY_OFFICER: {
        "memory_portal": (
            *LOOKING,
            *ON_BEHALF,
            "delete_customer",
            "view_privacyrequest",
            "add_privacyrequest",
            "change_privacyrequest",
            "view_staffalert",
            "change_staffalert",
            "view_policy",
        ),
    },
    StaffRole.OPERATOR: {
        "memory_portal": ("view_policy",),
        "agent_bridge": (
            "view_extractionjob",
            "change_extractionjob",
            "view_agentkey",
            "add_agentkey",
            "change_agentkey",
            "view_webhook",
            "add_webhook",
            "change_webhook",
            "delete_webhook",
            "view_import",
            "change_import",
        ),
    },
}
"""By application; "change" of a job is to try it again or drop it, of a key to revoke it."""


def group_name(role: StaffRole) -> str:
    return role.value.replace("_", " ")


def role_of(user: User) -> StaffRole:
    """What the customer reads in place of a name: the first role this person has."""
    named = set(user.groups.values_list("name", flat=True))
    return next((role for role in ROLES if group_name(role) in named), StaffRole.ADMINISTRATOR)


def keep_roles(sender: AppConfig, using: str = "default", **kwargs: Any) -> None:
    """After `migrate`, once the last application that is named above has its permissions."""
    if sender.label != "agent_bridge":
        return
    migrated = kwargs.get("apps", apps)
    try:
        Group, Permission = migrated.get_model("auth", "Group"), migrated.get_model("auth", "Permission")
    except LookupError:
        return  # A partial migration, without the tables of rights.
    wanted = {(app, codename) for table in ROLES.values() for app, codenames in table.items() for codename in codenames}
    found = Permission.objects.using(using).filter(codename__in={codename for _, codename in wanted})
    ids = {(row.content_type.app_label, row.codename): row.pk for row in found.select_related("content_type")}
    with transaction.atomic(using=using):
        for role, table in ROLES.items():
            group, _ = Group.objects.using(using).get_or_create(name=group_name(role))
            group.permissions.set([ids[app, name] for app in table for name in table[app] if (app, name) in ids])
