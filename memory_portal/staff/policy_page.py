"""The memory policy as this process has it loaded, to read."""

from __future__ import annotations

from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from memory_portal import store


@require_safe
def policy(request: HttpRequest) -> HttpResponse:
    if not request.user.has_perm("memory_portal.view_policy"):
        raise PermissionDenied
    loaded = store.current_policy()
    context = {
        **admin.site.each_context(request),
        "title": _("The policy as loaded"),
        "policy": loaded,
        "limits": loaded.limits.model_dump().items(),
        "file": settings.MEMORY_POLICY.name,
    }
    return TemplateResponse(request, "admin/policy.html", context)
