"""Take it with you, and bring a file from elsewhere: out over a link that works once, in by one question a line."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods

from memory_portal import bringing, post, signing, store, takeout
from memory_portal.enums import EventKind, Origin, Reason
from memory_portal.forms import BringForm, TakeForm, complaint
from memory_portal.models import Customer
from memory_portal.views import Request, acting, customer_required, posted
from memory_portal.views.stepup import recently_signed_in

PURPOSE = "export"
TYPES = {"json": "application/json", "csv": "text/csv; charset=utf-8", "html": "text/html; charset=utf-8"}


@customer_required
@recently_signed_in
@require_http_methods(["GET", "HEAD", "POST"])
def take(request: Request, customer: Customer) -> HttpResponse:
    """Choose a form; the answer is a link that works once."""
    now = timezone.now()
    form = TakeForm(posted(request), initial={"form": "json"})
    if request.method == "POST" and form.is_valid():
        return redirect(
            "take_file", token=store.issue_ticket(customer.pk, PURPOSE, now=now, detail=form.cleaned_data["form"])
        )
    context = {"form": form, "key": signing.public_key()}
    return render(request, "take/page.html", context, status=422 if form.errors else 200)


@customer_required
@require_http_methods(["GET", "HEAD", "POST"])
def take_file(request: Request, customer: Customer, token: str) -> HttpResponse:
    """Looking changes nothing; the button uses the link up, for whoever it was made for and nobody else."""
    now = timezone.now()
    if request.method != "POST":
        link = store.ticket(token, PURPOSE, now=now, customer_id=customer.pk)
        return render(request, "take/ready.html", {"link": link, "minutes": store.TICKET_MINUTES})
    kind = store.redeem(token, PURPOSE, now=now, customer_id=customer.pk).detail
    response = HttpResponse(made(request, customer, kind, now), content_type=TYPES[kind])
    response["Content-Disposition"] = f'attachment; filename="my-memory-{now:%Y-%m-%d}.{kind}"'
    store.note(customer.pk, EventKind.EXPORTED, acting(customer), now=now, code=kind)
    post.notify(customer, "exported", when=now)
    return response


def made(request: Request, customer: Customer, kind: str, now: datetime) -> bytes | str:
    kept = store.everything_kept(customer.pk)
    if kind == "json":
        return takeout.as_json(kept, now)
    if kind == "csv":
        return takeout.as_csv(kept)
    context = {"kept": takeout.readable(kept), "now": now}
    return render(request, "take/export.html", context).content


@require_GET
def key(request: HttpRequest) -> JsonResponse:
    """The public half of the key that signs exports, for anyone who wants to check one."""
    public = signing.public_key()
    former = [{"key_id": key.id, "public_key": key.text} for key in signing.former_keys()]
    answer = JsonResponse(
        {"algorithm": signing.ALGORITHM, "key_id": public.id, "public_key": public.text, "former": former}
    )
    answer["Access-Control-Allow-Origin"] = "*"
    answer["Cache-Control"] = "public, max-age=3600"
    return answer


# --- bring a file -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Refused:
    """A line that is not kept. It is shown once, in this answer, and stored nowhere."""

    line: bringing.Line
    why: str


@customer_required
@require_http_methods(["GET", "HEAD", "POST"])
def bring(request: Request, customer: Customer) -> HttpResponse:
    """Every line that may be kept becomes a suggestion; nothing is remembered until the customer says so."""
    now = timezone.now()
    form = BringForm(posted(request), request.FILES or None)
    if request.method != "POST" or not form.is_valid():
        return render(request, "take/bring.html", {"form": form}, status=422 if form.errors else 200)
    brought = form.brought
    drafts, refused = [], []
    for line in brought.lines:
        try:
            drafts.append((line, drafted(line, now)))
        except store.InvalidDraft as error:
            refused.append(Refused(line, complaint(error)))
    try:
        outcomes = store.submit(customer.pk, [draft for _line, draft in drafts], acting(customer), now=now)
    except store.MemoryDisabled:
        form.add_error("file", str(Reason.MEMORY_OFF.label))
        return render(request, "take/bring.html", {"form": form}, status=422)
    asked = {outcome.proposal_id for outcome in outcomes if outcome.proposal_id}
    refused += [
        Refused(line, reason_of(outcome))
        for (line, _draft), outcome in zip(drafts, outcomes, strict=True)
        if not outcome.proposal_id
    ]
    store.note(customer.pk, EventKind.IMPORTED, acting(customer), now=now)
    suggestions = [one for one in store.suggestions(customer.pk, now) if one.id in asked]
    context = {"suggestions": suggestions, "refused": refused, "verdict": brought.verdict, "now": now}
    return render(request, "take/brought.html", context)


def drafted(line: bringing.Line, now: datetime) -> store.Draft:
    return store.draft(
        key=line.key,
        value=line.value,
        category=line.category,
        origin=Origin.CUSTOMER,
        said_at=now,
        now=now,
        suspicion=Reason.IMPORTED,
    )


def reason_of(outcome: store.Outcome) -> str:
    return str(outcome.reason.label) if outcome.reason else gettext("It is known already.")
