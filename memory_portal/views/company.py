"""Sign-in with the company's own account (OpenID Connect). The provider's claim is the host's id of the customer, and nothing else
of what it says is kept: no address, no name, no token.
"""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import get_adapter as account_adapter
from allauth.account.internal.flows.login import record_authentication
from allauth.account.utils import perform_login
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.providers.openid_connect import views
from django.conf import settings
from django.db import DataError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from memory_portal import store


class CompanyAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # allauth has no annotations
    """Finds the one Customer of the claim, makes it if the host never spoke of it, and signs its user in."""

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        if issuer_of(sociallogin) != settings.OIDC_ISSUER:
            raise ImmediateHttpResponse(failed(request))
        profile = settings.OIDC_PROFILE or store.current_policy().default_profile
        try:
            subject = store.Subject(sociallogin.account.uid, profile)
        except store.InvalidDraft:
            raise ImmediateHttpResponse(failed(request)) from None
        store.welcome(subject, now=timezone.now())
        customer = store.find(subject)
        user = store.user_of_customer(customer.pk) if customer else None
        if user is None:
            raise ImmediateHttpResponse(failed(request))
        if request.user.is_authenticated and request.user != user:
            account_adapter(request).logout(request)
        record_authentication(request, user, "socialaccount")
        raise ImmediateHttpResponse(perform_login(request, user, redirect_url=sociallogin.get_redirect_url(request)))

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return False

    def on_authentication_error(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        raise ImmediateHttpResponse(failed(request))


def issuer_of(sociallogin: Any) -> str:
    """Whom the token names. The library compares it with the provider's metadata, which could be another's."""
    token = sociallogin.account.extra_data.get("id_token", {})
    return str(token.get("iss", "")).rstrip("/")


def failed(request: HttpRequest) -> HttpResponse:
    return render(request, "entry/company_failed.html", status=401)


@require_POST
def go(request: HttpRequest, provider_id: str) -> HttpResponse:
    if not settings.OIDC_ISSUER:
        raise Http404
    return views.login(request, provider_id)  # type: ignore[no-any-return]


@never_cache
@require_GET
def come_back(request: HttpRequest, provider_id: str) -> HttpResponse:
    if not settings.OIDC_ISSUER:
        raise Http404
    try:
        return views.callback(request, provider_id)  # type: ignore[no-any-return]
    except (DataError, KeyError, ValueError):  # an answer without the claim, or one that is none
        return failed(request)


@require_GET
def not_done(request: HttpRequest) -> HttpResponse:
    return failed(request)
