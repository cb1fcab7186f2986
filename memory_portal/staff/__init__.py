"""The staff's site: Django's admin behind a password and, where STAFF_MFA is on, a second factor before its first page.

In this package: the fresh proof (proof), who may do what (roles), lists that stay fast and give nothing away (tables), the look
at a value (looking), the policy as loaded (policy_page). The pages are `memory_portal.admin` and `agent_bridge.admin`.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from allauth.core import ratelimit
from django.contrib import admin
from django.contrib.admin.apps import AdminConfig
from django.db.models.signals import post_migrate
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils.translation import gettext_lazy as _


class StaffSite(admin.AdminSite):
    site_title = site_header = _("Memory Portal for staff")
    site_url = None  # what customers see is not theirs to see
    index_title = _("What there is to do")
    index_template = "admin/front.html"

    def has_permission(self, request: HttpRequest) -> bool:
        from memory_portal.views.second_step import passed

        return super().has_permission(request) and passed(request)

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Tries are counted by name and by address; who has given the password goes on to the second step."""
        if super().has_permission(request) and not self.has_permission(request):
            return redirect(f"{reverse('staff_second_step')}?{urlencode({'next': request.GET.get('next', '')})}")
        if request.method != "POST":
            return super().login(request, extra_context)
        name = request.POST.get("username", "")[:150].lower()
        if not ratelimit.consume(request, action="staff_sign_in", key=name):
            return ratelimit.respond_429(request)  # type: ignore[no-any-return]
        response = super().login(request, extra_context)
        if response.status_code == 302:
            from memory_portal.staff.proof import given

            given(request, "password")
        return response

    def get_urls(self) -> list[URLPattern | URLResolver]:
        from memory_portal.staff.policy_page import policy
        from memory_portal.staff.proof import confirm

        own = [
            path("confirm/", self.admin_view(confirm), name="confirm"),
            path("policy/", self.admin_view(policy), name="policy"),
        ]
        return [*own, *super().get_urls()]

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        from memory_portal.staff.front import front

        return super().index(request, {**front(request), **(extra_context or {})})


class StaffConfig(AdminConfig):
    default_site = "memory_portal.staff.StaffSite"

    def ready(self) -> None:
        super().ready()
        from memory_portal.staff.roles import keep_roles

        post_migrate.connect(keep_roles, dispatch_uid="memory_portal.staff.roles")
