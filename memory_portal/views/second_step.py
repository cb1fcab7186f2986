"""Two-step sign-in: a code from an app beside the code by mail. Offered to customers, asked of staff (STAFF_MFA).

allauth keeps secrets, recovery codes and limits; a code is taken once (its mark stands in the shared cache).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from allauth.account.authentication import get_authentication_records
from allauth.account.internal.flows.login import record_authentication
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base.forms import AuthenticateForm
from allauth.mfa.base.views import AuthenticateView, ReauthenticateView
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.views import GenerateRecoveryCodesView, ViewRecoveryCodesView
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.totp.internal.flows import activate_totp
from allauth.mfa.totp.views import ActivateTOTPView, DeactivateTOTPView
from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memory_portal.models import Customer
from memory_portal.sessions import end_elsewhere
from memory_portal.views import Request, customer_required
from memory_portal.views.stepup import recently_signed_in


def picture(svg: str) -> SafeString:
    """The square to scan, as part of the page: our policy loads no pictures out of addresses."""
    return mark_safe(svg[svg.index("<svg") :])  # noqa: S308  # drawn here from numbers and our own address


class Activate(ActivateTOTPView):  # type: ignore[misc]  # allauth has no annotations
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        return {**context, "square": picture(context["totp_svg"])}

    def form_valid(self, form: Any) -> HttpResponse:
        response: HttpResponse = super().form_valid(form)
        spend(self.request.user.pk, form.cleaned_data["code"])
        record_authentication(self.request, self.request.user, "mfa")
        end_elsewhere(self.request, self.request.user)
        return response


class Deactivate(DeactivateTOTPView):  # type: ignore[misc]  # allauth has no annotations
    def form_valid(self, form: Any) -> HttpResponse:
        response: HttpResponse = super().form_valid(form)
        end_elsewhere(self.request, self.request.user)
        return response


def spend(user_id: int, code: str) -> None:
    """The code that switched it on opens nothing any more."""
    authenticator = Authenticator.objects.get(user_id=user_id, type=Authenticator.Type.TOTP)
    authenticator.wrap()._mark_code_used(code)


class Prove(ReauthenticateView):  # type: ignore[misc]  # allauth has no annotations
    def form_valid(self, form: Any) -> HttpResponse:
        self.request.session.cycle_key()
        return super().form_valid(form)  # type: ignore[no-any-return]


def customers(view: Callable[..., Any], *, fresh: bool) -> Callable[..., HttpResponse]:
    """A view of allauth behind our own guards."""

    def guarded(request: Request, customer: Customer) -> HttpResponse:
        return view(request)  # type: ignore[no-any-return]

    return customer_required(recently_signed_in(guarded) if fresh else guarded)


@customer_required
@require_GET
def two_step(request: Request, customer: Customer) -> HttpResponse:
    types = dict(Authenticator.objects.filter(user=customer.user).values_list("type", "pk"))
    left = 0
    if pk := types.get(Authenticator.Type.RECOVERY_CODES):
        left = len(Authenticator.objects.get(pk=pk).wrap().get_unused_codes())
    return render(request, "mfa/index.html", {"on": Authenticator.Type.TOTP in types, "left": left})


@customer_required
@require_POST
def elsewhere(request: Request, customer: Customer) -> HttpResponse:
    """Asks for no fresh proof: who finds a stranger signed in must be quick, and the stranger gains nothing by it."""
    if customer.user:
        end_elsewhere(request, customer.user)
    messages.success(request, gettext("Signed out everywhere else."))
    return redirect("mfa_index")


activate = customers(Activate.as_view(), fresh=True)
deactivate = customers(Deactivate.as_view(), fresh=True)
recovery_codes = customers(ViewRecoveryCodesView.as_view(), fresh=True)
new_recovery_codes = customers(GenerateRecoveryCodesView.as_view(), fresh=True)
prove = customers(Prove.as_view(), fresh=False)
authenticate = AuthenticateView.as_view()


# --- staff ------------------------------------------------------------------------------------------------------------


def passed(request: HttpRequest) -> bool:
    """Whether this session has shown a second factor, or none is asked here."""
    if not settings.STAFF_MFA:
        return True
    return any(record["method"] == "mfa" for record in get_authentication_records(request, request.user))


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def staff_second_step(request: HttpRequest) -> HttpResponse:
    """Between the password and the first page of the admin: the code, or setting it up at the first sign-in."""
    user = request.user
    if not (user.is_active and user.is_staff):
        raise Http404
    if is_mfa_enabled(user):
        form = AuthenticateForm(request.POST if request.method == "POST" else None, user=user)
        if form.is_valid():
            form.save()
            return onward(request)
        return render(request, "staff/second_step.html", {"form": form, "next": next_of(request)})
    form = ActivateTOTPForm(request.POST if request.method == "POST" else None, user=user)
    if form.is_valid():
        _totp, codes = activate_totp(request, form)
        spend(user.pk, form.cleaned_data["code"])
        record_authentication(request, user, "mfa")
        request.session.cycle_key()
        shown = codes.wrap().get_unused_codes() if codes else []
        return render(request, "staff/second_step.html", {"codes": shown, "next": next_of(request)})
    adapter = get_adapter()
    square = picture(adapter.build_totp_svg(adapter.build_totp_url(user, form.secret)))
    context = {"form": form, "square": square, "secret": form.secret, "next": next_of(request)}
    return render(request, "staff/second_step.html", context)


def onward(request: HttpRequest) -> HttpResponse:
    request.session.cycle_key()
    return redirect(next_of(request))


def next_of(request: HttpRequest) -> str:
    url = request.POST.get("next") or request.GET.get("next") or ""
    return url if url_has_allowed_host_and_scheme(url, allowed_hosts=None) else reverse("admin:index")
