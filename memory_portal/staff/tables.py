"""Lists of the admin that stay fast with millions of rows and give nothing away: no full count, no sorting, no search but an exact
one, no filter but those on the page (Django's own would take `?value__startswith=` from the address), no export.

For both applications' admins. Imports Django only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin import SimpleListFilter
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
    Pages = Paginator[Any]
else:
    ModelAdmin, Pages = admin.ModelAdmin, Paginator

MOST = 1_000
"""So many rows are counted and can be paged to; whoever needs an older one names its customer."""

PARTS = frozenset({"", "exact", "id__exact", "isnull", "gte", "lt"})
"""What a filter of Django's puts behind its field's name."""


class Bounded(Pages):
    """Counts no further than MOST."""

    @cached_property
    def count(self) -> int:
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]  # the admin's are query sets
        return rows[:MOST].count()

    @property
    def is_full(self) -> bool:
        return self.count == MOST


class Table(ModelAdmin):
    paginator = Bounded
    show_full_result_count = False
    list_per_page = 50
    list_max_show_all = 0
    sortable_by = ()
    actions: Any = None

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """What stands in the address asks the database; so only what the page itself offers may stand there."""
        field, _, part = lookup.partition("__")
        return field in self.offered(request) and part in PARTS

    def offered(self, request: HttpRequest) -> set[str]:
        return set(_names(self.get_list_filter(request)))

    def has_act_permission(self, request: HttpRequest) -> bool:
        """May press the buttons of the list, though no field of a row can be changed."""
        meta = self.opts
        return request.user.has_perm(f"{meta.app_label}.change_{meta.model_name}")


def _names(filters: Iterable[Any]) -> Iterable[str]:
    for item in filters:
        if isinstance(item, type) and issubclass(item, SimpleListFilter):
            yield str(item.parameter_name)
        else:
            yield item[0] if isinstance(item, list | tuple) else item


class ReadOnly(Table):
    """Pages without a way to save. What may be done is a button of its own."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class MadeOnce(Table):
    """What is made by a form, shown once with its secret, and never edited afterwards."""

    made_by: Any
    """The form that makes one."""

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def get_form(self, request: HttpRequest, obj: Model | None = None, change: bool = False, **kwargs: Any) -> Any:
        return super().get_form(request, obj, change, **kwargs) if obj else self.made_by

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        return self.fields if obj else list(self.made_by.base_fields)

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        return self.readonly_fields if obj else ()


def counted(counts: dict[str, int]) -> SafeString:
    """Codes and how many of each, as a list."""
    rows = format_html_join("", "<li>{}: {}</li>", sorted(counts.items()))
    return format_html("<ul>{}</ul>", rows) if rows else SafeString("–")
