"""What an assistant would see: the customer types a request and reads what an agent would be told, by the code that tells it.

The request is looked at and forgotten: it is posted, so that it stands in no address and no log, and kept nowhere.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from memory_portal import store
from memory_portal.forms import AssistantForm
from memory_portal.models import Customer
from memory_portal.views import Request, customer_required, posted
from memory_portal.views.facts import asked_by_htmx


@customer_required
@require_http_methods(["GET", "HEAD", "POST"])
def assistant(request: Request, customer: Customer) -> HttpResponse:
    now = timezone.now()
    hidden = store.assistants(customer, now)
    form = AssistantForm(posted(request), agents=list(hidden))
    context: dict[str, Any] = {"form": form, "now": now, "agent": next(iter(hidden), ""), "asked": False}
    if form.is_valid():
        asked = form.cleaned_data["message"]
        context |= {"agent": form.cleaned_data["agent"], "asked": bool(asked.strip())}
        context |= told(customer, context["agent"], asked, hidden, now)
    elif not form.errors:
        context |= told(customer, context["agent"], "", hidden, now)
    template = "assistant/page.html#told" if asked_by_htmx(request) else "assistant/page.html"
    return render(request, template, context, status=422 if form.errors else 200)


def told(
    customer: Customer, agent: str, message: str, hidden: dict[str, frozenset[str]], now: datetime
) -> dict[str, Any]:
    """Layers 1 and 2 as that agent gets them, and the text they come to."""
    subject = store.Subject(customer.subject_id, customer.profile)
    kept_back = hidden.get(agent, frozenset())
    recall = store.preview(subject, agent, message, now=now, hidden=kept_back)
    return {
        "recall": recall,
        "text": store.read_out(recall, now=now),
        "count": len(recall.always) + len(recall.relevant),
        "switched_off": agent in customer.no_use_agents,
        "no_safety": store.SAFETY in kept_back,
    }
