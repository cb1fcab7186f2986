"""The staff's read-only look at the portal's tables. No value is shown, nothing can be added, changed or deleted here.

Writing goes through the store; looking at a value will be an act of its own that the customer sees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from memory_portal.models import Consent, Customer, FactEvent, FactRead, MemoryFact, Proposal, Tombstone

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin

MASK = "•••••"


class ReadOnly(ModelAdmin):
    """Lists without full counts, since the tables grow; pages without a way to save."""

    show_full_result_count = False
    list_per_page = 50
    actions = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class OfOneCustomer(ReadOnly):
    """Searched by exact subject id or e-mail of the customer, never by what a fact says."""

    list_select_related = ("customer",)
    search_help_text = _("Exact customer id or e-mail address")

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        return ("customer__subject_id",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if not search_term:
            return queryset, False
        return queryset.filter(customer__in=customers_named(search_term)), False


def customers_named(term: str) -> QuerySet[Customer]:
    """The customers of exactly this subject id or e-mail address."""
    if "\0" in term:
        return Customer.objects.none()
    term = term.strip()
    return Customer.objects.filter(subject_id=term) | Customer.objects.filter(email=term.lower()).exclude(email="")


@admin.register(Customer)
class CustomerAdmin(ReadOnly):
    list_display = ("id", "profile", "subject_id", "email", "learning_paused_at", "using_paused_at", "created_at")
    list_filter = ("profile",)
    ordering = ("-id",)
    exclude = ("user", "never_words")  # the words say what the customer does not want known
    search_help_text = _("Exact customer id or e-mail address")

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        return ("subject_id",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Customer], search_term: str
    ) -> tuple[QuerySet[Customer], bool]:
        if not search_term:
            return queryset, False
        return queryset.filter(pk__in=customers_named(search_term)), False


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
        "customer",
        "key",
        "masked_value",
        "category",
        "origin",
        "state",
        "said_at",
        "updated_at",
        "expires_at",
    )
    list_filter = ("category", "origin", "state")
    ordering = ("-id",)


@admin.register(Proposal)
class ProposalAdmin(Masked):
    list_display = ("id", "customer", "action", "key", "masked_value", "reason", "created_at", "expires_at")
    list_filter = ("reason", "action")
    ordering = ("-id",)


@admin.register(FactEvent)
class FactEventAdmin(OfOneCustomer):
    list_display = ("at", "customer", "kind", "key", "code", "actor_kind", "actor_id", "agent")
    list_filter = ("kind", "actor_kind")
    ordering = ("-id",)


@admin.register(Tombstone)
class TombstoneAdmin(OfOneCustomer):
    list_display = ("id", "customer", "key", "reason", "watermark")
    list_filter = ("reason",)
    exclude = ("value_mac", "quote_mac")
    ordering = ("-id",)


@admin.register(Consent)
class ConsentAdmin(OfOneCustomer):
    list_display = ("id", "customer", "purpose", "text_version", "channel", "language", "given_at", "withdrawn_at")
    list_filter = ("purpose",)
    ordering = ("-id",)


@admin.register(FactRead)
class FactReadAdmin(OfOneCustomer):
    list_display = ("at", "customer", "agent", "layer", "source_session_id", "facts_served")
    list_filter = ("layer",)
    ordering = ("-id",)

    @admin.display(description=_("facts"))
    def facts_served(self, read: FactRead) -> int:
        return len(read.fact_ids)
