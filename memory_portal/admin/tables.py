"""The staff's read-only look at the portal's tables, the newest first or one customer's. No value is shown, nothing changes."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from memory_portal.models import Consent, Customer, FactEvent, FactRead, MemoryFact, Proposal, Tombstone
from memory_portal.staff.tables import ReadOnly, Table

MASK = "•••••"
EXACT = _("Exact customer id or e-mail address")


def customers_named(term: str) -> list[int]:
    """The customers of exactly this subject id or e-mail address, each found by its own index."""
    term = term.strip()
    if not term or "\0" in term:
        return []
    by_id = Customer.objects.filter(subject_id=term)
    by_address = Customer.objects.filter(email=term.lower()).exclude(email="")
    return sorted({*by_id.values_list("pk", flat=True), *by_address.values_list("pk", flat=True)})


class Searched(Table):
    """By exact subject id or e-mail of the customer, never by what a fact says."""

    search_help_text = EXACT

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        return ("customer__subject_id",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if not search_term:
            return queryset, False
        return queryset.filter(customer__in=customers_named(search_term)), False


class OfOneCustomer(Searched, ReadOnly):
    """Rows that one customer has many of."""

    newest_first: tuple[str, ...] = ("-id",)

    def offered(self, request: HttpRequest) -> set[str]:
        return super().offered(request) | {"customer"}

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """By the index that is there: of one customer by theirs, of all by the primary key."""
        return self.newest_first if {"q", "customer"} & set(request.GET) else ("-id",)

    @admin.display(description=_("customer"))
    def of(self, row: Any) -> SafeString:
        path = reverse("admin:memory_portal_customer_change", args=[row.customer_id])
        return format_html('<a href="{}">{}</a>', path, row.customer_id)


class Masked(OfOneCustomer):
    """What was said stands behind a mask; so do the topics, which are drawn from it."""

    exclude = ("value", "value_mac", "source_quote", "topics")
    readonly_fields = ("masked_value", "masked_quote")

    @admin.display(description=_("value"))
    def masked_value(self, row: MemoryFact | Proposal) -> str:
        return MASK

    @admin.display(description=_("quoted words"))
    def masked_quote(self, row: MemoryFact | Proposal) -> str:
        return MASK if row.source_quote else "–"


@admin.register(MemoryFact)
class MemoryFactAdmin(Masked):
    list_display = (
        "id",
        "of",
        "key",
        "masked_value",
        "category",
        "origin",
        "state",
        "said_at",
        "updated_at",
        "expires_at",
    )

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """ "Change" and "delete" are of the acts on a customer's behalf; looking at masks is a right of its own."""
        return request.user.has_perm("memory_portal.view_memoryfact")


@admin.register(Proposal)
class ProposalAdmin(Masked):
    list_display = ("id", "of", "action", "key", "masked_value", "reason", "created_at", "expires_at")


@admin.register(FactEvent)
class FactEventAdmin(OfOneCustomer):
    list_display = ("at", "of", "kind", "key", "code", "actor_kind", "actor_id", "agent")
    exclude = ("category",)  # of some it would say that they are about health
    newest_first = ("-at", "-id")


@admin.register(Tombstone)
class TombstoneAdmin(OfOneCustomer):
    list_display = ("id", "of", "key", "reason", "watermark")
    exclude = ("value_mac", "quote_mac")


@admin.register(Consent)
class ConsentAdmin(OfOneCustomer):
    list_display = ("id", "of", "purpose", "text_version", "channel", "language", "given_at", "withdrawn_at")


@admin.register(FactRead)
class FactReadAdmin(OfOneCustomer):
    list_display = ("at", "of", "agent", "layer", "source_session_id", "facts_served")
    newest_first = ("-at", "-id")

    @admin.display(description=_("facts"))
    def facts_served(self, read: FactRead) -> int:
        return len(read.fact_ids)
