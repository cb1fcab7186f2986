"""Step-up: what takes everything along or away asks for a fresh proof, a code by e-mail or from the app, minutes old at most.

`recently_signed_in` is the one guard for it. A sign-in by code counts as proof, one through the company does not where the
customer has an address to send a code to.
"""

from __future__ import annotations

import time
from functools import wraps
from typing import Any
from urllib.parse import urlencode

from allauth.account.authentication import get_authentication_records
from allauth.account.internal.flows.reauthenticate_by_code import ConfirmReauthenticationCodeProcess
from allauth.account.views import ConfirmReauthenticationCodeView
from allauth.core import ratelimit
from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from memory_portal.models import Customer
from memory_portal.views import Guarded, P, Request, customer_required, moved

BY_APP, BY_MAIL, ELSEWHERE = "app", "mail", "elsewhere"
PROOFS = {BY_APP: {"mfa"}, BY_MAIL: {"code", "mfa"}, ELSEWHERE: {"socialaccount", "handoff"}}
"""By the way a customer can prove that it is them: what allauth notes of it in the session."""


def way(customer: Customer) -> str:
    """The strongest way this customer has."""
    if customer.user and is_mfa_enabled(customer.user):
        return BY_APP
    return BY_MAIL if customer.email else ELSEWHERE


def is_fresh(request: Request, customer: Customer) -> bool:
    proofs = PROOFS[way(customer)]
    since = time.time() - settings.ACCOUNT_REAUTHENTICATION_TIMEOUT
    return any(
        record["method"] in proofs and record["at"] > since
        for record in get_authentication_records(request, request.user)
    )


def recently_signed_in(view: Guarded[P]) -> Guarded[P]:
    """Stands below `customer_required`. Who proved long ago that it is them goes to prove it again, and comes back."""

    @wraps(view)
    def guarded(request: Request, customer: Customer, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if is_fresh(request, customer):
            return view(request, customer, *args, **kwargs)
        return moved(request, f"{reverse('account_request_reauthentication_code')}?{urlencode({'next': request.path})}")

    return guarded  # type: ignore[return-value]  # mypy knows a wrapped function by another type


@customer_required
@require_http_methods(["GET", "HEAD", "POST"])
def confirm(request: Request, customer: Customer) -> HttpResponse:
    """Send a code to the address on the customer, never to one that was typed."""
    back = next_of(request)
    by = way(customer)
    if by == BY_APP:
        return redirect(f"{reverse('mfa_reauthenticate')}?{urlencode({'next': back})}")
    if request.method == "POST" and by == BY_MAIL:
        if ratelimit.consume(request, action="request_login_code", key=customer.email):
            ConfirmReauthenticationCodeProcess.initiate(request=request, user=request.user, email=customer.email)
            return redirect(f"{reverse('account_confirm_reauthentication_code')}?{urlencode({'next': back})}")
        messages.error(request, gettext("Too many tries. Please wait a minute and ask for a new code."))
    return render(request, "account/confirm_it_is_you.html", {"next": back, "by": by})


def next_of(request: Request) -> str:
    url = request.POST.get("next") or request.GET.get("next") or ""
    safe = url_has_allowed_host_and_scheme(url, allowed_hosts=None)
    return url if safe else reverse("control")


class ConfirmCode(ConfirmReauthenticationCodeView):  # type: ignore[misc]  # allauth has no annotations
    """The code is right: the session gets a new id, so that one copied before is worth nothing."""

    def _verify_form_valid(self, form: Any) -> HttpResponseRedirect:
        self.request.session.cycle_key()
        return super()._verify_form_valid(form)  # type: ignore[no-any-return]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        customer = getattr(self.request, "customer", None)
        return {**super().get_context_data(**kwargs), "customer": customer}


@customer_required
@require_http_methods(["GET", "HEAD", "POST"])
def confirm_code(request: Request, customer: Customer) -> HttpResponse:
    response = ConfirmCode.as_view()(request)
    return response.render() if hasattr(response, "render") else response  # type: ignore[no-any-return]
