"""Members of staff by role, with a browser each."""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, User
from django.test import Client

from memory_portal.enums import StaffRole
from memory_portal.staff.roles import group_name
from tests.people import BACKEND, proves

PASSWORD = "a long password of staff"
SUPPORT, OFFICER, OPERATOR = StaffRole.SUPPORT, StaffRole.PRIVACY_OFFICER, StaffRole.OPERATOR


def member(role: StaffRole | None, name: str = "") -> User:
    """Somebody who may come in; without a role, and no more than that."""
    user = get_user_model().objects.create_user(name or str(role), password=PASSWORD, is_staff=True)
    if role:
        user.groups.add(Group.objects.get(name=group_name(role)))
    return user


def browser_of(user: User, *, fresh: bool = True) -> Client:
    client = Client()
    client.force_login(user, backend=BACKEND)
    if fresh:
        proves(client, user)
    return client
