"""What we remember about you: the list, and everything one may do to a fact.

An htmx action is answered with the row or list that changed, any other request with a page or a redirect to one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any
from unicodedata import combining, normalize
from urllib.parse import urlsplit

from django.contrib import messages
from django.core.paginator import Page, Paginator
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import get_language, gettext
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import retarget

from memory_portal import plain, store
from memory_portal.enums import FactState, FreezeReason, Origin, Reason
from memory_portal.forms import AddForm, CorrectForm, KeepForm, ManyForm, end_of
from memory_portal.models import Customer
from memory_portal.views import Request, acting, customer_required, moved, posted

PAGE = 50
SOON = 30
"""Days before its end from which a fact's row offers to keep it longer."""

NEVER = "never"


@dataclass(frozen=True, slots=True)
class Row:
    """A fact with what its row says beside it."""

    fact: store.Fact
    uses: Sequence[store.Use] = ()
    freeze: store.Freeze | None = None
    together: int = 1
    """How many facts came from the same conversation and go together when it is forgotten."""

    @property
    def last(self) -> store.Use | None:
        return self.uses[0] if self.uses else None


@dataclass(frozen=True, slots=True)
class Group:
    category: str
    rows: Sequence[Row]
    total: int
    off: bool

    @property
    def heading(self) -> plain.Heading:
        return plain.heading(self.category)


# --- the list ---------------------------------------------------------------------------------------------------------


@gzip_page  # the one long page; Django pads it and masks its token, so that its length tells nothing
@customer_required
@require_GET
def facts(request: Request, customer: Customer) -> HttpResponse:
    now = timezone.now()
    context = listing(customer, request.GET, now)
    if asked_by_htmx(request):
        return render(request, "facts/list.html#list", context)
    return render(request, "facts/list.html", context | {"form": AddForm(now=now), "news": store.news(customer.pk)})


def listing(customer: Customer, query: QueryDict, now: datetime) -> dict[str, Any]:
    """One page of the customer's facts under the filters of the address bar, and what the filters may offer."""
    rows = rows_of(customer, now)
    found = [row for row in rows if matches(row, query)]
    page = Paginator(found, PAGE).get_page(query.get("page"))
    return {
        "now": now,
        "soon": SOON,
        "total": len(rows),
        "found": len(found),
        "page": page,
        "groups": grouped(page, found, customer),
        "sources": [origin for origin in Origin if any(row.fact.origin is origin for row in rows)],
        "agents": sorted({use.agent for row in rows for use in row.uses}, key=str.casefold),
        "query": query,
        "filtered": any(query.get(name) for name in ("q", "from", "used")),
        "selecting": "select" in query,
    }


def rows_of(customer: Customer, now: datetime) -> list[Row]:
    held = store.facts(customer.pk, now=now)
    uses, frozen = store.readers(customer.pk), store.freezes(customer.pk)
    sessions = Counter(fact.source_session_id for fact in held if not fact.locked)
    rows = [
        Row(
            fact,
            uses.get(fact.id, ()),
            frozen.get(fact.id),
            sessions[fact.source_session_id] if fact.source_session_id and not fact.locked else 1,
        )
        for fact in held
    ]
    rows.sort(key=lambda row: (row.fact.updated_at or row.fact.created_at, row.fact.id), reverse=True)
    return sorted(rows, key=lambda row: (plain.order(row.fact.category), row.fact.category))


def matches(row: Row, query: QueryDict) -> bool:
    fact = row.fact
    if (origin := query.get("from")) and fact.origin != origin:
        return False
    if (used := query.get("used")) and (row.uses if used == NEVER else all(use.agent != used for use in row.uses)):
        return False
    if not (words := searched(query.get("q", "")).split()):
        return True
    name, kind = plain.key(fact.key), plain.heading(fact.category).name
    text = searched(f"{name} {plain.words(fact.key)} {fact.value} {fact.source_quote} {kind} {' '.join(fact.topics)}")
    return all(word in text for word in words)


def searched(text: str) -> str:
    """Folded, and without accents: who types `creme` means crème. Done to both sides, so that every script works."""
    return "".join(c for c in normalize("NFD", store.fold(text)) if not combining(c))


def grouped(page: Page[Row], found: Sequence[Row], customer: Customer) -> list[Group]:
    totals = [row.fact.category for row in found]
    return [
        Group(category, list(rows), totals.count(category), category in customer.no_use_categories)
        for category, rows in groupby(page, key=lambda row: row.fact.category)
    ]


def one(customer: Customer, fact_id: int, now: datetime) -> Row:
    """The row of this customer's fact, or NotFound."""
    for row in rows_of(customer, now):
        if row.fact.id == fact_id:
            return row
    raise store.NotFound


def asked_by_htmx(request: Request) -> bool:
    """A fragment is wanted; when htmx restores history it wants the whole page."""
    return bool(request.htmx) and not request.htmx.history_restore_request


def place(customer: Customer, fact_id: int, now: datetime) -> str:
    """Where the fact stands in the unfiltered list."""
    ids = [row.fact.id for row in rows_of(customer, now)]
    page = ids.index(fact_id) // PAGE + 1 if fact_id in ids else 1
    return f"{reverse('facts')}{f'?page={page}' if page > 1 else ''}#fact-{fact_id}"


def changed(request: Request, customer: Customer, fact_id: int, now: datetime, said: str = "") -> HttpResponse:
    """The answer to an action on one fact: its row as it is now, or the list with the fact in sight."""
    if asked_by_htmx(request):
        row = one(customer, fact_id, now)
        return render(request, "facts/row.html", {"row": row, "now": now, "soon": SOON, "said": said})
    if said:
        messages.success(request, said)
    return redirect(place(customer, fact_id, now))


@customer_required
@require_GET
def fact(request: Request, customer: Customer, fact_id: int) -> HttpResponse:
    """One row as it is: where Cancel leads."""
    now = timezone.now()
    one(customer, fact_id, now)
    return changed(request, customer, fact_id, now)


# --- correct and add --------------------------------------------------------------------------------------------------


@customer_required
@require_http_methods(["GET", "HEAD", "POST"])
def correct(request: Request, customer: Customer, fact_id: int) -> HttpResponse:
    now = timezone.now()
    fact = one(customer, fact_id, now).fact
    initial = {"value": fact.value, "category": fact.category, "version": fact.version}
    form = CorrectForm(posted(request), now=now, key=fact.key, category=fact.category, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            agree_if_asked(form, customer, now)
            version, how = form.cleaned_data["version"], form.cleaned_data["how"]
            written = store.correct(customer.pk, fact_id, form.draft, acting(customer), now=now, version=version)
            if how and written.category != store.SAFETY:
                store.keep_until(customer.pk, fact_id, end_of(how, now), acting(customer), now=now)
            return changed(request, customer, fact_id, now, gettext("Saved. It counts from now on."))
        except store.Conflict as conflict:
            both = {"mine": form.draft, "theirs": conflict.current, "now": now, "form": form}
            return shown(request, "facts/conflict.html", both, status=409)
        except store.MemoryWriteRejected as refusal:
            form.refuse(refusal.reason)
        except store.MemoryDisabled:
            form.refuse(Reason.MEMORY_OFF)
    return shown(request, "facts/correct.html", {"form": form, "fact": fact}, status=422 if form.errors else 200)


def shown(request: Request, template: str, context: dict[str, Any], status: int = 200) -> HttpResponse:
    """The template, or only its part `row` for htmx."""
    return render(request, f"{template}#row" if asked_by_htmx(request) else template, context, status=status)


def agree_if_asked(form: AddForm | CorrectForm, customer: Customer, now: datetime) -> None:
    if form.cleaned_data["consent"]:
        store.give_consent(customer.pk, acting(customer), now=now, channel="portal", language=get_language() or "")


@customer_required
@require_http_methods(["GET", "HEAD", "POST"])
def add(request: Request, customer: Customer) -> HttpResponse:
    now = timezone.now()
    form = AddForm(posted(request), now=now)
    if request.method == "POST" and form.is_valid():
        try:
            agree_if_asked(form, customer, now)
            outcome = store.add(customer.pk, form.draft, acting(customer), now=now)
            if outcome.fact:
                return added(request, customer, outcome, now)
            form.refuse(outcome.reason or Reason.NEEDS_CONSENT)
        except store.MemoryWriteRejected as refusal:
            form.refuse(refusal.reason)
        except store.MemoryDisabled:
            form.refuse(Reason.MEMORY_OFF)
    status = 422 if form.errors else 200
    if asked_by_htmx(request):
        return retarget(render(request, "facts/add.html#form", {"form": form, "open": True}, status=status), "#add")
    return render(request, "facts/add.html", {"form": form, "open": True, "alone": True}, status=status)


def added(request: Request, customer: Customer, outcome: store.Outcome, now: datetime) -> HttpResponse:
    """The whole list, since the new fact has its place in it, and the form empty again."""
    assert outcome.fact
    said = {
        "learned": gettext("Remembered. It counts from now on."),
        "renewed": gettext("We knew this already and will keep it longer."),
    }.get(outcome.decision, gettext("We had a note about this already. It now says what you wrote."))
    messages.success(request, said)
    context = listing(customer, QueryDict(), now) | {"form": AddForm(now=now), "fresh": outcome.fact.id}
    if context["total"] == 1:  # the page of an empty memory becomes another
        return moved(request, place(customer, outcome.fact.id, now))
    if asked_by_htmx(request):
        response = render(request, "facts/list.html#after_adding", context)
        response["HX-Push-Url"] = reverse("facts")
        return response
    return redirect(place(customer, outcome.fact.id, now))


# --- forget, and undo -------------------------------------------------------------------------------------------------


@customer_required
@require_http_methods(["GET", "HEAD", "POST"])
def forget(request: Request, customer: Customer, fact_id: int) -> HttpResponse:
    """Ask, then erase. The answer holds what was erased, for undoing; nothing else does."""
    now = timezone.now()
    if request.method != "POST":
        row = one(customer, fact_id, now)
        return asked(request, [row.fact], reverse("forget", args=[fact_id]), f"#fact-{fact_id}")
    gone, _receipt = store.forget(customer.pk, [fact_id], acting(customer), now=now)
    if asked_by_htmx(request):
        total = len(store.facts(customer.pk, now=now))
        return render(request, "facts/gone.html#row", {"gone": gone, "fact": gone[0], "total": total})
    return render(request, "facts/gone.html", {"gone": gone})


def asked(
    request: Request, facts: Sequence[store.Fact], action: str, target: str, session: bool = False
) -> HttpResponse:
    """The question before forgetting: a dialog's content for htmx, a page otherwise."""
    context = {
        "facts": facts,
        "action": action,
        "target": target,
        "session": session,
        "safety": [fact for fact in facts if fact.category == store.SAFETY],
    }
    return render(request, "facts/ask.html#dialog" if asked_by_htmx(request) else "facts/ask.html", context)


@customer_required
@require_http_methods(["GET", "HEAD", "POST"])
def forget_several(request: Request, customer: Customer) -> HttpResponse:
    now = timezone.now()
    held = store.facts(customer.pk, now=now)
    form = ManyForm(request.POST if request.method == "POST" else request.GET, held=held)
    if not form.is_valid():
        if "id" in form.data:
            raise store.NotFound
        messages.info(request, gettext("Choose at least one thing first."))
        return moved(request, f"{reverse('facts')}?select=1")
    ids: list[int] = form.cleaned_data["id"]
    if request.method != "POST":
        return asked(request, [fact for fact in held if fact.id in ids], reverse("forget_several"), "#list")
    gone, _receipt = store.forget(customer.pk, ids, acting(customer), now=now)
    return forgotten(request, customer, gone, now)


@customer_required
@require_http_methods(["GET", "HEAD", "POST"])
def forget_conversation(request: Request, customer: Customer, fact_id: int) -> HttpResponse:
    """Everything learned in the conversation this fact came from and not written by the customer since."""
    now = timezone.now()
    session = one(customer, fact_id, now).fact.source_session_id
    held = store.facts(customer.pk, now=now)
    theirs = [fact for fact in held if session and fact.source_session_id == session and not fact.locked]
    if not theirs:
        raise store.NotFound
    if request.method != "POST":
        return asked(request, theirs, reverse("forget_conversation", args=[fact_id]), "#list", session=True)
    gone, _receipt = store.forget_session(customer.pk, session, acting(customer), now=now)
    return forgotten(request, customer, gone, now)


def forgotten(request: Request, customer: Customer, gone: Sequence[store.Fact], now: datetime) -> HttpResponse:
    if not asked_by_htmx(request):
        return render(request, "facts/gone.html", {"gone": gone})
    context = listing(customer, view_in_sight(request), now)
    return render(request, "facts/list.html#list", context | {"gone": gone, "selecting": False})


def view_in_sight(request: Request) -> QueryDict:
    """The filters of the page the person looks at."""
    return QueryDict(urlsplit(request.htmx.current_url or "").query)


@customer_required
@require_POST
def undo(request: Request, customer: Customer) -> HttpResponse:
    """Write again what the page still held, as stated by the customer: the store kept nothing."""
    now = timezone.now()
    fields = zip(*(request.POST.getlist(name) for name in ("key", "category", "value")), strict=False)
    forms = [AddForm({"key": key, "category": kind, "value": value}, now=now) for key, kind, value in fields]
    back, refused = [], 0
    for form in forms[: store.current_policy().limits.facts_per_customer]:
        try:
            outcome = store.add(customer.pk, form.draft, acting(customer), now=now) if form.is_valid() else None
        except (store.MemoryWriteRejected, store.MemoryDisabled):
            outcome = None
        back += [outcome.fact] if outcome and outcome.fact else []
        refused += not (outcome and outcome.fact)
    if refused:
        messages.warning(
            request, gettext("Not everything could be brought back. Some of it may wait under Suggestions.")
        )
    if not asked_by_htmx(request):
        return redirect(place(customer, back[0].id, now) if back else "facts")
    if len(forms) == 1 and back:
        total = len(store.facts(customer.pk, now=now))
        row = {"row": one(customer, back[0].id, now), "now": now, "soon": SOON, "total": total}
        return render(request, "facts/row.html", row | {"said": gettext("Brought back, as written by you.")})
    context = listing(customer, view_in_sight(request), now)
    return retarget(render(request, "facts/list.html#list", context), "#list")


# --- freeze, thaw, keep, check ----------------------------------------------------------------------------------------


@customer_required
@require_POST
def freeze(request: Request, customer: Customer, fact_id: int, why: str) -> HttpResponse:
    now = timezone.now()
    store.freeze(customer.pk, fact_id, FreezeReason(why), acting(customer), now=now)
    return changed(request, customer, fact_id, now)


@customer_required
@require_POST
def thaw(request: Request, customer: Customer, fact_id: int) -> HttpResponse:
    now = timezone.now()
    store.thaw(customer.pk, fact_id, acting(customer), now=now)
    return changed(request, customer, fact_id, now, gettext("In use again from now on."))


@customer_required
@require_http_methods(["GET", "HEAD", "POST"])
def keep(request: Request, customer: Customer, fact_id: int) -> HttpResponse:
    """Keep it longer, or let it go sooner."""
    now = timezone.now()
    fact = one(customer, fact_id, now).fact
    if fact.category == store.SAFETY or fact.state is FactState.FROZEN:
        raise store.NotFound
    form = KeepForm(posted(request), now=now)
    if request.method == "POST" and form.is_valid():
        store.keep_until(customer.pk, fact_id, form.until, acting(customer), now=now)
        return changed(request, customer, fact_id, now, gettext("Saved."))
    return shown(request, "facts/keep.html", {"form": form, "fact": fact}, status=422 if form.errors else 200)


@customer_required
@require_http_methods(["GET", "HEAD", "POST"])
def keep_several(request: Request, customer: Customer) -> HttpResponse:
    """The same end for everything that is ticked and can have one."""
    now = timezone.now()
    data = request.POST if request.method == "POST" else request.GET
    held = store.facts(customer.pk, now=now)
    many = ManyForm(data, held=held)
    if not many.is_valid():
        if "id" in data:
            raise store.NotFound
        messages.info(request, gettext("Choose at least one thing first."))
        return moved(request, f"{reverse('facts')}?select=1")
    ids = many.cleaned_data["id"]
    ticked = [fact for fact in held if fact.id in ids]
    facts = [fact for fact in ticked if fact.category != store.SAFETY and fact.state is not FactState.FROZEN]
    form = KeepForm(posted(request), now=now)
    if request.method == "POST" and form.is_valid():
        for fact in facts:
            store.keep_until(customer.pk, fact.id, form.until, acting(customer), now=now)
        messages.success(request, gettext("Saved."))
        return moved(request, reverse("facts"))
    context = {"form": form, "facts": facts, "left_out": len(ticked) - len(facts)}
    template = "facts/keep_several.html#dialog" if asked_by_htmx(request) else "facts/keep_several.html"
    return render(request, template, context, status=422 if form.errors else 200)


@customer_required
@require_POST
def reviewed(request: Request, customer: Customer, fact_id: int) -> HttpResponse:
    now = timezone.now()
    store.reviewed(customer.pk, fact_id, acting(customer), now=now)
    return changed(request, customer, fact_id, now, gettext("Thank you. Noted that it still holds."))
