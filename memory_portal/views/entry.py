"""Coming in and going out: a code by e-mail. allauth does the work; this sets its bounds.

Only the routes in urls.py exist: no sign-up, no password, no address of one's own choosing.
"""

from __future__ import annotations

from typing import Any, ClassVar

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.views import ConfirmLoginCodeView, LogoutView, RequestLoginCodeView
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import get_random_string
from django.utils.translation import gettext_lazy as _
from django.views.defaults import page_not_found, permission_denied

from memory_portal.forms import SignInForm

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

    def is_open_for_signup(self, request: Any) -> bool:
        return False


class RequestCode(RequestLoginCodeView):  # type: ignore[misc]  # allauth has no annotations
    form_class = SignInForm


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
