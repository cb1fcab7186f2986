"""What we keep and why: the notice (GDPR 13, 14), open to everybody, made from the data inventory with the times that hold here."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from memory_portal import record, store
from memory_portal.inventory import BASES, KINDS, RECIPIENTS, Recipient


@require_safe
def notice(request: HttpRequest) -> HttpResponse:
    """Says who is signed in only by the page's frame; a customer's own brand where there is one."""
    if request.user.is_authenticated:
        request.customer = store.customer_of_user(request.user.pk)  # type: ignore[attr-defined]  # as the guard sets it
    told = [
        {
            "name": kind.name,
            "holds": kind.holds,
            "why": record.why(kind),
            "kept": record.kept(kind),
            "grounds": [BASES[basis] for basis in kind.bases],
            "recipients": [RECIPIENTS[one] for one in kind.recipients if one != Recipient.MODEL or by_model()],
        }
        for kind in KINDS.values()
        if kind.of == "customers"
    ]
    return render(request, "notice.html", {"told": told, "by_model": by_model(), "backups": settings.BACKUP_DAYS})


def by_model() -> bool:
    """Whether conversations leave for a provider of AI."""
    return bool(settings.EXTRACTOR == "claude")
