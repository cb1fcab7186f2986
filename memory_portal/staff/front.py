"""What the front page of the admin says beside its lists: alarms nobody has seen, open requests, ways to other pages."""

from __future__ import annotations

from datetime import date
from typing import Any

from django.contrib.auth import get_user_model
from django.http import HttpRequest
from django.utils import timezone

from memory_portal.models import PrivacyRequest, StaffAlert
from memory_portal.store import requests
from memory_portal.store.clocks import Due

SHOWN = 10


def front(request: HttpRequest) -> dict[str, Any]:
    may = request.user.has_perm
    return {
        "alarms": unseen() if may("memory_portal.view_staffalert") else [],
        "waiting_requests": near() if may("memory_portal.view_privacyrequest") else [],
        "may_see_policy": may("memory_portal.view_policy"),
        "may_see_quality": may("agent_bridge.view_extractionjob"),
        "may_find": may("memory_portal.view_customer"),
    }


def unseen() -> list[dict[str, Any]]:
    rows = list(StaffAlert.objects.filter(seen_at=None).order_by("-at")[:SHOWN])
    names = get_user_model().objects.in_bulk({row.staff_id for row in rows})
    return [{"row": row, "who": names.get(row.staff_id) or row.staff_id} for row in rows]


def near() -> list[dict[str, Any]]:
    """The oldest of those that are open, each with the day of its next step."""
    now = timezone.now()
    rows = PrivacyRequest.objects.filter(answered_at=None).order_by("received_at")[:SHOWN]
    return [
        {"row": row, "next": _next(row, requests.days(row, now)), "late": requests.is_late(row, now)} for row in rows
    ]


def _next(row: PrivacyRequest, due: Due) -> date | None:
    if due.acknowledge and not row.acknowledged_at:
        return due.acknowledge
    return due.extended if row.extended_at else due.answer
