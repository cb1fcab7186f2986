"""Activity: what happened to the customer's memory and who looked, newest first. Names and times, never a value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime
from itertools import groupby

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from memory_portal import plain, store
from memory_portal.enums import EventKind
from memory_portal.models import Customer
from memory_portal.templatetags.portal import day_key, month_key
from memory_portal.views import Request, customer_required
from memory_portal.views.facts import asked_by_htmx

FILTERS: dict[str, tuple[plain.Text, set[EventKind] | None, bool]] = {
    "": (_("Everything"), None, True),
    "learned": (_("Learned"), plain.LEARNED, False),
    "changed": (_("Changed"), plain.CHANGED, False),
    "forgotten": (_("Forgotten"), plain.FORGOTTEN, False),
    "used": (_("Used by an assistant"), set(), True),
    "looked": (_("Looked at by staff"), plain.LOOKED, False),
    "chosen": (_("Your choices"), plain.CHOSEN, False),
}
"""By the word in the address: its name, the kinds of events it shows, and whether it shows reads."""


def by_month(happenings: Sequence[store.Happening]) -> list[dict[str, object]]:
    """Month by month and day by day, each with the time of its first line for its heading."""
    return [{"at": month[0].at, "days": by_day(month)} for month in runs(happenings, month_key)]


def by_day(happenings: Sequence[store.Happening]) -> list[dict[str, object]]:
    return [{"at": day[0].at, "happenings": together(day)} for day in runs(happenings, day_key)]


def together(day: Sequence[store.Happening]) -> list[store.Happening]:
    """Reads in a row by one agent of the same things are one line with every time: a talk reads at each turn."""
    lines: list[store.Happening] = []
    for happening in day:
        if happening.kind != "read":
            lines.append(happening)
        elif lines and (lines[-1].kind, lines[-1].agent, lines[-1].keys) == ("read", happening.agent, happening.keys):
            lines[-1] = replace(lines[-1], times=(*lines[-1].times, happening.at))
        else:
            lines.append(replace(happening, times=(happening.at,)))
    return lines


def runs(happenings: Sequence[store.Happening], of: Callable[[datetime], date]) -> list[list[store.Happening]]:
    return [list(run) for _, run in groupby(happenings, key=lambda happening: of(happening.at))]


@customer_required
@require_GET
def activity(request: Request, customer: Customer) -> HttpResponse:
    chosen = request.GET.get("show", "")
    name, kinds, reads = FILTERS.get(chosen, FILTERS[""])
    fact_id = request.GET.get("fact", "")
    page = store.activity(
        customer.pk,
        kinds=kinds,
        reads=reads,
        fact_id=min(int(fact_id), 2**63 - 1) if fact_id.isascii() and fact_id.isdigit() else None,
        before=request.GET.get("before", ""),
    )
    context = {
        "page": page,
        "months": by_month(page.happenings),
        "filters": [(word, label) for word, (label, _kinds, _reads) in FILTERS.items()],
        "chosen": chosen if chosen in FILTERS else "",
        "fact_id": fact_id,
        "name": name,
        "now": timezone.now(),
    }
    return render(request, "activity/list.html#list" if asked_by_htmx(request) else "activity/list.html", context)
