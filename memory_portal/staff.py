"""The staff's site: Django's admin behind a password and, where STAFF_MFA is on, a second factor before its first page."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from allauth.core import ratelimit
from django.contrib import admin
from django.contrib.admin.apps import AdminConfig
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse


class StaffSite(admin.AdminSite):
    def has_permission(self, request: HttpRequest) -> bool:
        from memory_portal.views.second_step import passed

        return super().has_permission(request) and passed(request)

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Tries are counted by name and by address; who has given the password goes on to the second step."""
        if super().has_permission(request) and not self.has_permission(request):
            return redirect(f"{reverse('staff_second_step')}?{urlencode({'next': request.GET.get('next', '')})}")
        if request.method == "POST":
            name = request.POST.get("username", "")[:150].lower()
            if not ratelimit.consume(request, action="staff_sign_in", key=name):
                return ratelimit.respond_429(request)  # type: ignore[no-any-return]
        return super().login(request, extra_context)


class StaffConfig(AdminConfig):
    default_site = "memory_portal.staff.StaffSite"
