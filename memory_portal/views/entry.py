"""Coming in and going out: a code by e-mail, where allauth does the work and this sets its bounds; and a host's link.

Only the routes in urls.py exist: no sign-up, no password, no address of one's own choosing.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any, ClassVar

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.authentication import get_authentication_records
from allauth.account.internal.flows.login import perform_login, record_authentication
from allauth.account.models import Login
from allauth.account.views import ConfirmLoginCodeView, LogoutView, RequestLoginCodeView
from allauth.mfa.adapter import DefaultMFAAdapter
from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.crypto import get_random_string
from django.utils.translation import get_language, override
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django.views.defaults import page_not_found, permission_denied

from memory_portal import handoff, store
from memory_portal.enums import ActorKind, EventKind
from memory_portal.forms import SignInForm
from memory_portal.models import Customer
from memory_portal.sessions import BEGAN
from memory_portal.views import Request, acting, brand, customer_required

CODE_LENGTH = 6


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no annotations
    """A code of six digits, a subject without the site's prefix, nobody signs up."""

    error_messages: ClassVar = {
        **DefaultAccountAdapter.error_messages,
        "incorrect_code": _("That is not the code we sent. Check it and try again."),
        "too_many_login_attempts": _("Too many tries. Please wait a minute and ask for a new code."),
        "rate_limited": _("Too many tries. Please wait a minute and ask for a new code."),
    }

    def generate_login_code(self) -> str:
        return get_random_string(CODE_LENGTH, "0123456789")

    def format_email_subject(self, subject: str) -> str:
        return subject

    def post_login(self, request: Any, user: Any, **kwargs: Any) -> Any:
        customer = store.customer_of_user(user.pk)
        if customer:
            store.note(customer.pk, EventKind.SIGNED_IN, acting(customer), now=timezone.now())
        return super().post_login(request, user, **kwargs)

    def get_login_redirect_url(self, request: Any) -> str:
        """To the memory; to the choice of one where the mailbox just proved is known to several shops."""
        customer = store.customer_of_user(request.user.pk)
        several = customer and by_mail(request) and len(store.same_address(customer)) > 1
        return reverse("shops") if several else str(super().get_login_redirect_url(request))

    def is_reauthentication_required(self, *, app: str, **kwargs: Any) -> bool:
        return False  # `recently_signed_in` stands before every view that would ask

    def is_open_for_signup(self, request: Any) -> bool:
        return False


class MfaAdapter(DefaultMFAAdapter):  # type: ignore[misc]  # allauth has no annotations
    """Secrets of the second step are kept encrypted, under a key drawn from SECRET_KEY and its fallbacks."""

    error_messages: ClassVar = {
        **DefaultMFAAdapter.error_messages,
        "incorrect_code": _("That code is not right, or it was used already. Wait for the next one."),
    }

    def encrypt(self, text: str) -> str:
        return self._box().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        return self._box().decrypt(encrypted_text.encode()).decode()

    @staticmethod
    def _box() -> MultiFernet:
        secrets = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
        keys = [hashlib.sha256(b"memory_portal.second_step\0" + secret.encode()).digest() for secret in secrets]
        return MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in keys])

    def get_totp_issuer(self) -> str:
        return str(settings.BRAND_NAME or "Memory Portal")


class RequestCode(RequestLoginCodeView):  # type: ignore[misc]  # allauth has no annotations
    form_class = SignInForm

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "company": bool(settings.OIDC_ISSUER)}


@require_http_methods(["GET", "POST"])
def enter(request: HttpRequest, token: str) -> HttpResponse:
    """A host's link. Looking at it signs nobody in, for mail scanners and browsers look ahead; its button does, once."""
    now = timezone.now()
    try:
        if request.method == "GET":
            return private(ask(request, handoff.look(token, now=now)))
        door, user = handoff.use(token, now=now)
    except store.NotFound:
        return private(render(request, "entry/used.html", status=410))
    request.session.flush()  # nothing of who was here before
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    record_authentication(request, user, "handoff")
    came = store.Actor(ActorKind.CUSTOMER, str(door.customer_id))
    # Whoever has the host's key can make such a link: the customer sees that it was one.
    store.note(door.customer_id, EventKind.SIGNED_IN, came, now=now, code="handoff")
    response: HttpResponse = redirect(door.next)
    if door.language:
        remember_language(response, door.language)
    return private(response)


def ask(request: HttpRequest, door: handoff.Door) -> HttpResponse:
    """The page with the one button, as the customer's own shop."""
    customer = Customer.objects.get(pk=door.customer_id)
    page = {
        "name": customer.display_name,
        "somebody_else": request.user.is_authenticated and request.user.pk != customer.user_id,
        **brand(customer.profile),
    }
    with override(door.language or get_language()):
        return render(request, "entry/enter.html", page)


def by_mail(request: HttpRequest) -> bool:
    """Whether this session began with a code by e-mail: only then is the mailbox proved, and with it all that it opens."""
    return any(record["method"] == "code" for record in get_authentication_records(request, request.user))


@customer_required
@require_GET
def shops(request: Request, customer: Customer) -> HttpResponse:
    """The memories that one address opens, a shop each."""
    there = store.same_address(customer) if by_mail(request) else []
    profiles = store.current_policy().profiles
    named = [(profiles[one.profile].name, one) for one in there if one.profile in profiles]
    return render(request, "entry/shops.html", {"shops": named})


@customer_required
@require_POST
def go_to_shop(request: Request, customer: Customer, customer_id: int) -> HttpResponse:
    """Sign in as who the same person is in another shop. A second step asked for there is asked for; the time runs on."""
    there = store.same_address(customer) if by_mail(request) else []
    user = store.user_of_customer(customer_id) if customer_id in [one.pk for one in there] else None
    if user is None:
        raise store.NotFound
    began = request.session[BEGAN]
    request.session.flush()
    request.user = AnonymousUser()
    record_authentication(request, user, "code", email=customer.email)
    response: HttpResponse = perform_login(request, Login(user=user, redirect_url=reverse("facts")))
    request.session[BEGAN] = began
    return response


def remember_language(response: HttpResponse, language: str) -> None:
    """As the language menu does."""
    response.set_cookie(
        settings.LANGUAGE_COOKIE_NAME,
        language,
        max_age=settings.LANGUAGE_COOKIE_AGE,
        path=settings.LANGUAGE_COOKIE_PATH,
        domain=settings.LANGUAGE_COOKIE_DOMAIN,
        secure=settings.LANGUAGE_COOKIE_SECURE,
        httponly=settings.LANGUAGE_COOKIE_HTTPONLY,
        samesite=settings.LANGUAGE_COOKIE_SAMESITE,
    )


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return private(page_not_found(request, exception))


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return private(permission_denied(request, exception))


def private(response: HttpResponse) -> HttpResponse:
    """An error page shows who is signed in, so no cache may keep it."""
    response["Cache-Control"] = "no-store"
    return response


request_code = RequestCode.as_view()
confirm_code = ConfirmLoginCodeView.as_view()
sign_out = LogoutView.as_view()
