"""Suggestions: what was heard but not saved, because the customer decides. Keep, dismiss, or edit and keep."""

from __future__ import annotations

from datetime import datetime

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import get_language, gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memory_portal import store
from memory_portal.enums import Reason
from memory_portal.forms import KeepSuggestionForm
from memory_portal.models import Customer
from memory_portal.views import Request, acting, customer_required, posted
from memory_portal.views.facts import asked_by_htmx


@customer_required
@require_GET
def suggestions(request: Request, customer: Customer) -> HttpResponse:
    now = timezone.now()
    return render(request, "suggestions/list.html", {"suggestions": store.suggestions(customer.pk, now), "now": now})


@customer_required
@require_GET
def suggestion(request: Request, customer: Customer, proposal_id: int) -> HttpResponse:
    """One card as it is: where Cancel leads."""
    now = timezone.now()
    if not asked_by_htmx(request):
        return redirect("suggestions")
    return render(request, "suggestions/card.html", {"asked": one(customer, proposal_id, now), "now": now})


def one(customer: Customer, proposal_id: int, now: datetime) -> store.Suggestion:
    asked = store.suggestion(customer.pk, proposal_id, now)
    if asked is None:
        raise store.NotFound
    return asked


@customer_required
@require_http_methods(["GET", "HEAD", "POST"])
def keep_suggestion(request: Request, customer: Customer, proposal_id: int) -> HttpResponse:
    """GET is "edit, then keep". Where consent is asked, one button gives it and keeps."""
    now = timezone.now()
    asked = one(customer, proposal_id, now)
    form = KeepSuggestionForm(posted(request), initial={"value": asked.value})
    form.asks_consent = asked.asks_consent
    if request.method == "POST" and form.is_valid():
        try:
            if form.cleaned_data["consent"]:
                language = get_language() or ""
                store.give_consent(customer.pk, acting(customer), now=now, channel="portal", language=language)
            store.accept(customer.pk, proposal_id, acting(customer), now=now, value=form.cleaned_data["value"])
            return answered(request, asked, gettext("Kept. It counts from now on."))
        except store.MemoryWriteRejected as refusal:
            form.refuse(refusal.reason)
        except store.MemoryDisabled:
            form.refuse(Reason.MEMORY_OFF)
    context = {"form": form, "asked": asked, "now": now}
    template = "suggestions/edit.html#row" if asked_by_htmx(request) else "suggestions/edit.html"
    return render(request, template, context, status=422 if form.errors else 200)


@customer_required
@require_POST
def dismiss_suggestion(request: Request, customer: Customer, proposal_id: int) -> HttpResponse:
    now = timezone.now()
    asked = one(customer, proposal_id, now)
    store.dismiss(customer.pk, proposal_id, acting(customer), now=now)
    return answered(request, asked, gettext("Dismissed and erased. These words won’t be suggested again."))


def answered(request: Request, asked: store.Suggestion, said: str) -> HttpResponse:
    if asked_by_htmx(request):
        return render(request, "suggestions/answered.html", {"asked": asked, "said": said})
    messages.success(request, said)
    return redirect("suggestions")
