"""A fresh proof that it is this member of staff: the code of the second step where there is one, else the password, minutes old.

`fresh` stands before whatever shows a value, makes a secret or cannot be taken back. Tries are counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import urlencode

from allauth.account.authentication import get_authentication_records
from allauth.account.internal.flows.login import record_authentication
from allauth.core import ratelimit
from allauth.mfa.models import Authenticator
from allauth.mfa.utils import is_mfa_enabled
from django import forms
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

P = ParamSpec("P")
T = TypeVar("T")

BY_CODE, BY_PASSWORD = "mfa", "password"


def way(user: User) -> str:
    """Whoever has a second step proves it by that: a password alone is weaker than what let them in."""
    return BY_CODE if is_mfa_enabled(user) else BY_PASSWORD


def given(request: HttpRequest, how: str) -> None:
    record_authentication(request, request.user, how)


def is_fresh(request: HttpRequest) -> bool:
    since = time.time() - settings.ACCOUNT_REAUTHENTICATION_TIMEOUT
    wanted = way(request.user)  # type: ignore[arg-type]  # nobody anonymous comes so far
    records = get_authentication_records(request, request.user)
    return any(record["method"] == wanted and record["at"] > since for record in records)


def proves(user: User, secret: str) -> bool:
    """Whether this is the code, used nowhere before, or where there is no second step the password."""
    if way(user) == BY_PASSWORD:
        return not settings.STAFF_MFA and user.check_password(secret)
    for authenticator in Authenticator.objects.filter(user=user):
        if authenticator.wrap().validate_code(secret.strip()):
            authenticator.record_usage()
            return True
    return False


View = Callable[Concatenate[T, HttpRequest, P], HttpResponse]


def fresh(view: View[T, P]) -> View[T, P]:
    """For a page of an admin class. Who proved long ago that it is them goes to prove it again, and comes back."""

    @wraps(view)
    def guarded(page: T, request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if is_fresh(request):
            return view(page, request, *args, **kwargs)
        return redirect(f"{reverse('admin:confirm')}?{urlencode({'next': request.path})}")

    return guarded  # type: ignore[return-value]  # mypy knows a wrapped function by another type


class ProofForm(forms.Form):
    secret = forms.CharField(
        max_length=128, strip=False, widget=forms.PasswordInput(attrs={"autocomplete": "off", "autofocus": True})
    )

    def __init__(self, *args: Any, by: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["secret"].label = _("Code from the app, or a spare code") if by == BY_CODE else _("Password")


@require_http_methods(["GET", "HEAD", "POST"])
def confirm(request: HttpRequest) -> HttpResponse:
    user: User = request.user  # type: ignore[assignment]
    form = ProofForm(request.POST if request.method == "POST" else None, by=way(user))
    back = next_of(request)
    if form.is_valid():
        if not ratelimit.consume(request, action="reauthenticate", user=user):
            return ratelimit.respond_429(request)  # type: ignore[no-any-return]
        if proves(user, form.cleaned_data["secret"]):
            request.session.cycle_key()
            given(request, way(user))
            return redirect(back)
        form.add_error("secret", _("That is not right, or it was used already."))
    context = {
        **admin.site.each_context(request),
        "title": _("Confirm that it is you"),
        "form": form,
        "next": back,
        "minutes": settings.ACCOUNT_REAUTHENTICATION_TIMEOUT // 60,
    }
    return TemplateResponse(request, "admin/confirm.html", context, status=422 if form.errors else 200)


def next_of(request: HttpRequest) -> str:
    url = request.POST.get("next") or request.GET.get("next") or ""
    safe = url_has_allowed_host_and_scheme(url, allowed_hosts=None)
    return url if safe else reverse("admin:index")
