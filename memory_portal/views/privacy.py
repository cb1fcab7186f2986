"""Control: what may be learned and used, and by whom; consent; what won't be learned again; forgetting everything."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import AnonymousUser
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import get_language, gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memory_portal import plain, store
from memory_portal.enums import Theme
from memory_portal.forms import ChoicesForm, CloseForm, EverythingForm, WordForm
from memory_portal.models import Customer
from memory_portal.views import Request, acting, customer_required, posted
from memory_portal.views.facts import asked_by_htmx
from memory_portal.views.stepup import next_of, recently_signed_in

RECEIPT, CLOSED = "receipt", "closed"


@customer_required
@require_GET
def control(request: Request, customer: Customer) -> HttpResponse:
    return render(request, "control/page.html", picture(customer, timezone.now()))


def picture(customer: Customer, now: datetime, **forms: Any) -> dict[str, Any]:
    """Everything the page shows, as it is now."""
    customer.refresh_from_db()
    held = store.facts(customer.pk, now=now)
    return {
        "customer": customer,
        "now": now,
        "total": len(held),
        "kinds": kinds(),
        "agents": store.agents(customer),
        "consent_asked": any(rule.consent for rule in store.current_policy().categories.values())
        or store.current_policy().consent.sensitive,
        "agreed": store.consent(customer.pk),
        "text_version": store.current_policy().consent.text_version,
        "safety_held": sum(fact.category == store.SAFETY for fact in held),
        "buried": store.tombstones(customer.pk),
        "word_form": WordForm(held=customer.never_words),
    } | forms


def kinds() -> list[str]:
    return sorted((name for name, rule in store.current_policy().categories.items() if rule.kept), key=plain.order)


def back(
    request: Request, customer: Customer, section: str, now: datetime, said: str = "", **forms: Any
) -> HttpResponse:
    """The one section that changed, or a redirect to it."""
    failed = bool(forms)
    if asked_by_htmx(request):
        context = picture(customer, now, **forms) | {"said": said}
        return render(request, f"control/page.html#{section}", context, status=422 if failed else 200)
    if failed:
        return render(request, "control/page.html", picture(customer, now, **forms), status=422)
    if said:
        messages.success(request, said)
    return redirect(f"{reverse('control')}#{section}")


@customer_required
@require_POST
def pause(request: Request, customer: Customer, what: str) -> HttpResponse:
    now = timezone.now()
    store.pause(customer.pk, what, acting(customer), now=now)
    return back(request, customer, "pause", now)


@customer_required
@require_POST
def resume(request: Request, customer: Customer, what: str) -> HttpResponse:
    now = timezone.now()
    store.resume(customer.pk, what, acting(customer), now=now)
    if request.POST.get("from") == "facts":
        return redirect("facts")
    return back(request, customer, "pause", now)


@customer_required
@require_POST
def choices(request: Request, customer: Customer) -> HttpResponse:
    now = timezone.now()
    form = ChoicesForm(request.POST, kinds=kinds(), agents=store.agents(customer))
    if not form.is_valid():
        said = gettext("The page was out of date, so nothing was saved. Please look again.")
        return back(request, customer, "who", now, said)
    wanted = {
        "no_learn_categories": form.off("learn_kind", customer.no_learn_categories),
        "no_use_categories": form.off("use_kind", customer.no_use_categories),
        "no_learn_agents": form.off("learn_agent", customer.no_learn_agents),
        "no_use_agents": form.off("use_agent", customer.no_use_agents),
    }
    store.choose(customer.pk, wanted, acting(customer), now=now)
    return back(request, customer, "who", now, gettext("Saved. It counts from now on."))


@customer_required
@require_POST
def give_consent(request: Request, customer: Customer) -> HttpResponse:
    now = timezone.now()
    store.give_consent(customer.pk, acting(customer), now=now, channel="portal", language=get_language() or "")
    return back(request, customer, "consent", now)


@customer_required
@require_POST
def withdraw_consent(request: Request, customer: Customer) -> HttpResponse:
    now = timezone.now()
    waiting = store.withdraw_consent(customer.pk, acting(customer), now=now)
    hours = store.current_policy().limits.consent_wait_hours
    said = (
        gettext("Withdrawn. What rested on it waits under Suggestions for %(hours)d hours and is then erased.")
        % {"hours": hours}
        if waiting
        else gettext("Withdrawn.")
    )
    return back(request, customer, "consent", now, said)


@customer_required
@require_POST
def allow_again(request: Request, customer: Customer) -> HttpResponse:
    now = timezone.now()
    store.lift(customer.pk, request.POST.get("key", "").replace("\0", ""), acting(customer), now=now)
    return back(request, customer, "again", now)


@customer_required
@require_POST
def add_word(request: Request, customer: Customer) -> HttpResponse:
    now = timezone.now()
    form = WordForm(request.POST, held=customer.never_words)
    if not form.is_valid():
        return back(request, customer, "words", now, word_form=form)
    words = [*customer.never_words, form.cleaned_data["word"]]
    store.choose(customer.pk, {"never_words": words}, acting(customer), now=now)
    return back(request, customer, "words", now)


@customer_required
@require_POST
def remove_word(request: Request, customer: Customer) -> HttpResponse:
    now = timezone.now()
    words = [word for word in customer.never_words if word != request.POST.get("word")]
    if len(words) == len(customer.never_words):
        raise store.NotFound
    store.choose(customer.pk, {"never_words": words}, acting(customer), now=now)
    return back(request, customer, "words", now)


@customer_required
@require_POST
def notices(request: Request, customer: Customer) -> HttpResponse:
    """Mails that say how much is new, and never what."""
    now = timezone.now()
    store.prefer(
        customer.pk, mail_notices=request.POST.get("mail") == "on", mailed_at=now, language=get_language() or ""
    )
    return back(request, customer, "notices", now, gettext("Saved."))


@customer_required
@require_POST
def theme(request: Request, customer: Customer) -> HttpResponse:
    wanted = request.POST.get("theme", "")
    if wanted in ("", *Theme.values):
        store.prefer(customer.pk, theme=wanted)
    return redirect(next_of(request))


@customer_required
@recently_signed_in
@require_http_methods(["GET", "HEAD", "POST"])
def clear(request: Request, customer: Customer) -> HttpResponse:
    """Forget everything, once the words are typed. The receipt holds counts only and lasts as long as the session."""
    now = timezone.now()
    form = EverythingForm(posted(request))
    if request.method != "POST" or not form.is_valid():
        total = len(store.facts(customer.pk, now=now))
        context = {"form": form, "words": form.words(), "total": total}
        return render(request, "control/everything.html", context, status=422 if form.errors else 200)
    done = store.clear(customer.pk, acting(customer), now=now)
    request.session[RECEIPT] = {**done.counts, "tombstones": done.tombstones, "at": now.isoformat(), "of": customer.pk}
    return redirect("receipt")


@customer_required
@require_GET
def receipt(request: Request, customer: Customer) -> HttpResponse:
    counts = request.session.get(RECEIPT)
    if not counts or counts["of"] != customer.pk:
        return redirect("control")
    return render(request, "control/receipt.html", told(counts))


def told(counts: dict[str, Any]) -> dict[str, Any]:
    """A receipt's context: what was erased where, when, and how long backups keep it."""
    return {"counts": counts, "at": datetime.fromisoformat(counts["at"]), "days": settings.BACKUP_DAYS}


@customer_required
@recently_signed_in
@require_http_methods(["GET", "HEAD", "POST"])
def close(request: Request, customer: Customer) -> HttpResponse:
    """Erase the customer. The session ends with them; a new one holds the receipt's counts and nothing else."""
    now = timezone.now()
    form = CloseForm(posted(request))
    if request.method != "POST" or not form.is_valid():
        context = {"form": form, "words": form.words(), "total": len(store.facts(customer.pk, now=now))}
        return render(request, "control/close.html", context, status=422 if form.errors else 200)
    done = store.erase(customer.pk, acting(customer), now=now)
    request.session.flush()
    request.user = AnonymousUser()
    request.customer = None
    request.session[CLOSED] = {**done.counts, "at": now.isoformat()}
    return redirect("closed")


@never_cache
@require_GET
def closed(request: Request) -> HttpResponse:
    """The receipt of who is nobody here any more."""
    counts = request.session.get(CLOSED)
    if not counts:
        return redirect("account_login")
    return render(request, "control/closed.html", told(counts))
