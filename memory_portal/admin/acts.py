"""What staff do on a customer's behalf, each with a reason and a fresh proof: look at a value, correct it, forget it, erase.

The acts are the store's, under an actor with an office and a purpose that the customer reads. What only the customer may change
(safety, their own words) becomes a suggestion. Methods of CustomerAdmin, kept apart from its page.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from memory_portal import plain, store
from memory_portal.enums import ChangeAction, Origin, Purpose
from memory_portal.models import Customer, MemoryFact
from memory_portal.staff.looking import acting, look
from memory_portal.staff.proof import fresh
from memory_portal.staff.roles import role_of

WHY = {
    Purpose.ASKED: _("The customer asked, by phone, chat or in person"),
    Purpose.COMPLAINT: _("A complaint"),
    Purpose.LEGAL_REQUEST: _("A request under privacy law"),
    Purpose.FRAUD_CHECK: _("A fraud check"),
    Purpose.FAULT: _("Looking for a fault"),
}
ERASED_FOR = {
    "customer_asked": _("The customer asked"),
    "court_or_authority": _("A court or an authority ordered it"),
    "entered_by_mistake": _("Entered by mistake"),
    "test_data": _("Test data"),
}


class WhyForm(forms.Form):
    purpose = forms.ChoiceField(label=_("Why"), choices=list(WHY.items()), widget=forms.RadioSelect)


class CorrectForm(WhyForm):
    field_order = ("value", "purpose")
    value = forms.CharField(
        label=_("What it should say"),
        max_length=store.VALUE_LIMIT,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 2, "autocomplete": "off"}),
    )
    version = forms.IntegerField(widget=forms.HiddenInput)


class EraseForm(forms.Form):
    reason = forms.ChoiceField(label=_("Why"), choices=list(ERASED_FOR.items()), widget=forms.RadioSelect)
    sure = forms.CharField(label=_("Type the customer’s id"), max_length=128, strip=False)

    def __init__(self, *args: Any, subject_id: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.subject_id = subject_id

    def clean_sure(self) -> str:
        if self.cleaned_data["sure"] != self.subject_id:
            raise forms.ValidationError(_("That is not this customer’s id."))
        return self.subject_id


def is_theirs(row: MemoryFact) -> bool:
    """Only the customer changes it: a matter of safety, or their own words."""
    return row.category == store.SAFETY or (row.locked and row.origin != Origin.STAFF)


def _one(request: HttpRequest, permission: str, pk: int, fact_id: int) -> MemoryFact:
    if not request.user.has_perm(f"memory_portal.{permission}"):
        raise PermissionDenied
    rows = MemoryFact.objects.of(pk).live(timezone.now()).defer("value", "source_quote", "topics", "vector")
    row = rows.filter(pk=fact_id).select_related("customer").first()
    if row is None:
        raise Http404
    return row


def _page(request: HttpRequest, template: str, title: str, customer: Customer, **more: Any) -> HttpResponse:
    form = more.get("form")
    context = {
        **admin.site.each_context(request),
        "opts": Customer._meta,
        "title": title,
        "customer": customer,
        "role": role_of(request.user).label,  # type: ignore[arg-type]  # nobody anonymous comes so far
        **more,
    }
    status = 422 if form is not None and form.errors else 200
    return TemplateResponse(request, f"admin/memory_portal/customer/{template}.html", context, status=status)


def _back(pk: int) -> HttpResponse:
    return redirect("admin:memory_portal_customer_change", pk)


POSTED = require_http_methods(["GET", "HEAD", "POST"])


@fresh
def reveal(self: Any, request: HttpRequest, pk: int, fact_id: int) -> HttpResponse:
    """The answer to the form is the only page that ever shows it; asked for again, it is another look."""
    row = _one(request, "reveal_memoryfact", pk, fact_id)
    form = WhyForm(request.POST if request.method == "POST" else None)
    name = plain.key(row.key)
    if not form.is_valid():
        title = gettext("Look at %(name)s") % {"name": name}
        return _page(request, "reveal", title, row.customer, form=form, name=name, fact=row)
    try:
        fact = look(request.user, pk, fact_id, form.cleaned_data["purpose"], now=timezone.now())  # type: ignore[arg-type]
    except store.NotFound as gone:
        raise Http404 from gone
    return _page(request, "revealed", name, row.customer, fact=fact, name=name)


@fresh
def correct(self: Any, request: HttpRequest, pk: int, fact_id: int) -> HttpResponse:
    row = _one(request, "change_memoryfact", pk, fact_id)
    name, theirs = plain.key(row.key), is_theirs(row)
    form = CorrectForm(request.POST if request.method == "POST" else None, initial={"version": row.version})
    if form.is_valid() and (said := _corrected(request, row, form, theirs)):
        messages.success(request, said)
        return _back(pk)
    title = gettext("Correct %(name)s for the customer") % {"name": name}
    return _page(request, "correct", title, row.customer, form=form, name=name, theirs=theirs)


def _corrected(request: HttpRequest, row: MemoryFact, form: CorrectForm, theirs: bool) -> str | None:
    """What to say of it, or None with the trouble noted on the form."""
    now, told = timezone.now(), form.cleaned_data
    actor = acting(request.user, told["purpose"])  # type: ignore[arg-type]
    try:
        draft = store.draft(
            key=row.key, value=told["value"], category=row.category, origin=Origin.STAFF, said_at=now, now=now
        )
        if theirs:
            (outcome,) = store.submit(row.customer_id, [draft], actor, now=now)
            if outcome.decision == "proposed":
                return gettext("The customer is asked about it.")
            form.add_error("value", str(outcome.reason.label) if outcome.reason else gettext("It is known already."))
            return None
        store.correct(row.customer_id, row.pk, draft, actor, now=now, version=told["version"])
        return gettext("Corrected.")
    except store.Conflict:
        form.add_error(None, gettext("It was changed meanwhile. Please start again from the customer’s page."))
    except store.NotFound as gone:
        raise Http404 from gone
    except (store.InvalidDraft, store.MemoryWriteRejected) as refused:
        form.add_error("value", str(refused.reason.label))
    except store.MemoryDisabled:
        form.add_error(None, gettext("Memory is switched off here."))
    return None


@fresh
def forget(self: Any, request: HttpRequest, pk: int, fact_id: int) -> HttpResponse:
    row = _one(request, "delete_memoryfact", pk, fact_id)
    name, for_safety = plain.key(row.key), row.category == store.SAFETY
    form = WhyForm(request.POST if request.method == "POST" else None)
    if not form.is_valid():
        title = gettext("Forget %(name)s for the customer") % {"name": name}
        return _page(request, "forget", title, row.customer, form=form, name=name, for_safety=for_safety)
    actor = acting(request.user, form.cleaned_data["purpose"])  # type: ignore[arg-type]
    now = timezone.now()
    try:
        if for_safety:
            _propose_forgetting(row, actor, now)
            messages.success(request, gettext("The customer is asked about it."))
        else:
            store.forget(pk, [fact_id], actor, now=now)
            messages.success(request, gettext("Forgotten. It won’t be learned again."))
    except store.NotFound as gone:
        raise Http404 from gone
    return _back(pk)


def _propose_forgetting(row: MemoryFact, actor: store.Actor, now: Any) -> None:
    draft = store.draft(
        key=row.key,
        value="",
        category=row.category,
        origin=Origin.STAFF,
        said_at=now,
        now=now,
        action=ChangeAction.FORGET,
    )
    store.submit(row.customer_id, [draft], actor, now=now)


@fresh
def erase(self: Any, request: HttpRequest, pk: int) -> HttpResponse:
    """The whole customer. For requests that reach the company by another way than the portal."""
    if not request.user.has_perm("memory_portal.delete_customer"):
        raise PermissionDenied
    customer = Customer.objects.filter(pk=pk).first()
    if customer is None:
        raise Http404
    form = EraseForm(request.POST if request.method == "POST" else None, subject_id=customer.subject_id)
    if not form.is_valid():
        return _page(request, "erase", gettext("Erase this customer"), customer, form=form)
    actor = acting(request.user, Purpose.LEGAL_REQUEST)  # type: ignore[arg-type]
    try:
        done = store.erase(pk, actor, now=timezone.now(), reason=form.cleaned_data["reason"])
    except store.NotFound as gone:
        raise Http404 from gone
    messages.success(
        request, gettext("Erased: %(number)d facts and everything else about them.") % {"number": done.counts["facts"]}
    )
    return redirect("admin:memory_portal_customer_changelist")
