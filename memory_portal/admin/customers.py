"""The page from which staff help one customer: everything about them but what was said, with what may be done beside each fact."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memory_portal import plain, store
from memory_portal.admin import acts
from memory_portal.admin.tables import EXACT, MASK, customers_named
from memory_portal.models import Consent, Customer, MemoryFact, PrivacyRequest, Proposal
from memory_portal.staff.tables import ReadOnly

LATEST = 25
"""Lines of the activity on the page; the rest is one step away."""


@admin.register(Customer)
class CustomerAdmin(ReadOnly):
    list_display = ("id", "profile", "subject_id", "email", "learning_paused_at", "using_paused_at", "created_at")
    ordering = ("-id",)
    search_help_text = EXACT

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        return ("subject_id",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Customer], search_term: str
    ) -> tuple[QuerySet[Customer], bool]:
        if not search_term:
            return queryset, False
        return queryset.filter(pk__in=customers_named(search_term)), False

    def has_view_permission(self, request: HttpRequest, obj: Customer | None = None) -> bool:
        return request.user.has_perm("memory_portal.view_customer")

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        own = [
            path("find/", wrap(self.find), name="memory_portal_find"),
            path("<int:pk>/facts/<int:fact_id>/reveal/", wrap(self.reveal), name="memory_portal_reveal"),
            path("<int:pk>/facts/<int:fact_id>/correct/", wrap(self.correct), name="memory_portal_correct"),
            path("<int:pk>/facts/<int:fact_id>/forget/", wrap(self.forget), name="memory_portal_forget"),
            path("<int:pk>/erase/", wrap(self.erase), name="memory_portal_erase"),
        ]
        return [*own, *super().get_urls()]

    def find(self, request: HttpRequest) -> HttpResponse:
        """From the front page: the only one of that name at once, else the list, which says that there is none or several."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        term = request.GET.get("q", "")
        found = customers_named(term)
        if len(found) == 1:
            return redirect("admin:memory_portal_customer_change", found[0])
        return redirect(f"{reverse('admin:memory_portal_customer_changelist')}?{urlencode({'q': term})}")

    reveal, correct, forget, erase = acts.reveal, acts.correct, acts.forget, acts.erase

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if request.method not in ("GET", "HEAD") or not self.has_view_permission(request):
            raise PermissionDenied
        customer = self.get_object(request, object_id)
        if customer is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[no-any-return,attr-defined]
        return TemplateResponse(request, "admin/memory_portal/customer/page.html", self.page(request, customer))

    def page(self, request: HttpRequest, customer: Customer) -> dict[str, Any]:
        now = timezone.now()
        may = request.user.has_perm
        happened = store.activity(customer.pk, size=LATEST) if may("memory_portal.view_factevent") else None
        policy = store.current_policy()
        return {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": _("Customer %(number)d") % {"number": customer.pk},
            "customer": customer,
            "profile": policy.profiles[customer.profile].name if customer.profile in policy.profiles else "",
            "mask": MASK,
            "now": now,
            "facts": facts(customer, now) if may("memory_portal.view_memoryfact") else None,
            "suggestions": waiting(customer, now) if may("memory_portal.view_proposal") else None,
            "stones": store.tombstones(customer.pk) if may("memory_portal.view_tombstone") else None,
            "consents": Consent.objects.filter(customer=customer).order_by("-given_at")
            if may("memory_portal.view_consent")
            else None,
            "happened": happened,
            "requests": PrivacyRequest.objects.filter(customer=customer).order_by("-received_at")
            if may("memory_portal.view_privacyrequest")
            else None,
            "may_reveal": may("memory_portal.reveal_memoryfact"),
            "may_correct": may("memory_portal.change_memoryfact"),
            "may_forget": may("memory_portal.delete_memoryfact"),
            "may_erase": may("memory_portal.delete_customer"),
            "may_enter": may("memory_portal.add_privacyrequest"),
        }


def waiting(customer: Customer, now: datetime) -> QuerySet[Proposal]:
    rows = Proposal.objects.filter(customer=customer, expires_at__gt=now).order_by("-created_at", "-pk")
    return rows.only("key", "action", "reason", "expires_at")


def facts(customer: Customer, now: datetime) -> list[dict[str, Any]]:
    """Without what they say: it is not even read from the table."""
    rows = (
        MemoryFact.objects.of(customer)
        .live(now)
        .only("key", "category", "origin", "state", "agent", "said_at", "updated_at", "expires_at", "locked")
    )
    uses = store.readers(customer.pk)
    return [
        {"row": row, "name": plain.key(row.key), "uses": uses.get(row.pk, []), "theirs": acts.is_theirs(row)}
        for row in rows.order_by("pk")
    ]
