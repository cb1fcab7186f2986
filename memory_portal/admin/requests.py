"""The ledger of requests made by hand: entered with codes and a day, then taken on step by step. The clock is the law's."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from memory_portal import store
from memory_portal.admin.tables import Searched, customers_named
from memory_portal.enums import Channel, ExtensionReason, Regime, RequestKind, RequestOutcome
from memory_portal.models import Customer, PrivacyRequest
from memory_portal.staff.tables import MadeOnce
from memory_portal.store import requests as ledger

DAY_AND_TIME = "%Y-%m-%dT%H:%M"


class NewRequest(forms.ModelForm):  # type: ignore[type-arg]  # the class takes no parameter when it runs
    """No free text: what was asked stays in the letter."""

    who = forms.CharField(
        label=_("Customer"),
        required=False,
        max_length=254,
        help_text=_("Exact customer id or e-mail address. Left empty: nobody we know."),
        widget=forms.TextInput(attrs={"class": "vTextField", "autocomplete": "off"}),
    )
    received_at = forms.DateTimeField(
        label=_("Received"),
        input_formats=[DAY_AND_TIME],
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format=DAY_AND_TIME),
    )

    class Meta:
        model = PrivacyRequest
        fields = ("who", "kind", "regime", "channel", "received_at")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["regime"].initial = store.current_policy().requests.regime
        self.fields["received_at"].initial = timezone.localtime().replace(second=0, microsecond=0)

    def clean_who(self) -> Customer | None:
        term = self.cleaned_data["who"]
        by_number = term[1:] if term.startswith("#") and term[1:].isdecimal() else ""
        found = [min(int(by_number), 2**63 - 1)] if by_number else customers_named(term)
        if term.strip() and len(found) != 1:
            raise forms.ValidationError(
                _("Several customers have it; come from the customer’s page.") if found else _("Nobody has it.")
            )
        customer = Customer.objects.filter(pk__in=found).first()
        if found and customer is None:
            raise forms.ValidationError(_("Nobody has it."))
        return customer

    def clean_received_at(self) -> datetime:
        received: datetime = self.cleaned_data["received_at"]
        if received > timezone.now():
            raise forms.ValidationError(_("That is yet to come."))
        return received


class Answered(admin.SimpleListFilter):
    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("answered", _("Answered"))]

    def choices(self, changelist: Any) -> Any:
        choices = list(super().choices(changelist))
        choices[0]["display"] = _("Open")
        return choices

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(answered_at__isnull=self.value() != "answered")


class AnswerForm(forms.Form):
    outcome = forms.ChoiceField(label=_("Outcome"), choices=RequestOutcome.choices)


class ExtendForm(forms.Form):
    reason = forms.ChoiceField(label=_("Why"), choices=ExtensionReason.choices)


@admin.register(PrivacyRequest)
class PrivacyRequestAdmin(Searched, MadeOnce):
    made_by = NewRequest
    list_display = ("id", "kind", "regime", "who", "received_at", "answer_by", "state")
    list_filter = (Answered,)
    fields = readonly_fields = (
        "kind", "regime", "channel", "received_at", "acknowledged_at", "asked_back_at", "paused_days", "extended_at",
        "extension_reason", "answered_at", "outcome", "staff_id",
    )  # fmt: skip

    def has_view_permission(self, request: HttpRequest, obj: PrivacyRequest | None = None) -> bool:
        return request.user.has_perm("memory_portal.view_privacyrequest")

    def has_delete_permission(self, request: HttpRequest, obj: PrivacyRequest | None = None) -> bool:
        return False  # The sweep does it, 24 months after the answer.

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        return ("-answered_at",) if request.GET.get("state") == "answered" else ("received_at",)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Of the address only whose page it comes from: an id of the host's may be several customers', a number is one."""
        number = request.GET.get("customer", "")
        return {"who": f"#{number}"} if number.isdecimal() else {}

    def save_model(self, request: HttpRequest, obj: PrivacyRequest, form: Any, change: bool) -> None:
        told = form.cleaned_data
        row = ledger.enter(
            RequestKind(told["kind"]),
            Regime(told["regime"]),
            Channel(told["channel"]),
            received_at=told["received_at"],
            staff_id=int(request.user.pk or 0),
            now=timezone.now(),
            customer=told["who"],
        )
        obj.__dict__.update(row.__dict__)

    @admin.display(description=_("customer"))
    def who(self, row: PrivacyRequest) -> str:
        return str(row.customer_id or "–")

    @admin.display(description=_("answer by"))
    def answer_by(self, row: PrivacyRequest) -> Any:
        found = ledger.days(row, timezone.now())
        return (found.extended if row.extended_at else found.answer) or _("without undue delay")

    @admin.display(description=_("state"))
    def state(self, row: PrivacyRequest) -> Any:
        if row.answered_at:
            return RequestOutcome(row.outcome).label
        if ledger.is_late(row, timezone.now()):
            return _("Late")
        return _("Asked back") if row.asked_back_at else _("Open")

    # --- steps --------------------------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        step = path(
            "<int:pk>/<str:step>/take/", self.admin_site.admin_view(require_POST(self.take)), name="memory_portal_step"
        )
        return [step, *super().get_urls()]

    def take(self, request: HttpRequest, pk: int, step: str) -> HttpResponse:
        if not self.has_act_permission(request):
            raise PermissionDenied
        now = timezone.now()
        try:
            if step == "acknowledge":
                ledger.acknowledge(pk, now=now)
            elif step == "ask-back":
                ledger.ask_back(pk, now=now)
            elif step == "hear-back":
                ledger.hear_back(pk, now=now)
            elif step == "extend":
                ledger.extend(pk, ExtensionReason(request.POST.get("reason", "")), now=now)
            elif step == "answer":
                ledger.answer(pk, RequestOutcome(request.POST.get("outcome", "")), now=now)
            else:
                raise Http404
        except store.NotFound as gone:
            raise Http404 from gone
        except (store.WrongMoment, ValueError):
            messages.error(request, gettext("That step is not open now."))
        return redirect("admin:memory_portal_privacyrequest_change", pk)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if request.method not in ("GET", "HEAD") or not self.has_view_permission(request):
            raise PermissionDenied
        row = self.get_object(request, object_id)
        if row is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[no-any-return,attr-defined]
        now = timezone.now()
        known = Customer.objects.filter(pk=row.customer_id).exists()
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": f"{row.get_kind_display()}, {row.get_regime_display()}",
            "row": row,
            "due": ledger.days(row, now),
            "late": ledger.is_late(row, now),
            "known": known,
            "may_act": self.has_act_permission(request),
            "may_erase": known and request.user.has_perm("memory_portal.delete_customer"),
            "may_ask_back": row.regime == Regime.UK and row.kind != RequestKind.COMPLAINT,
            "answer": AnswerForm(),
            "extend": ExtendForm(),
        }
        return TemplateResponse(request, "admin/memory_portal/privacyrequest/page.html", context)
