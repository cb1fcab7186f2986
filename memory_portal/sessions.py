"""How long a sign-in lasts, and that no cache keeps what an answer showed. Two middlewares, and the end of other sessions.

A sign-in ends when nobody used it for a while, and at last however much it is used (SESSION_LIMITS: customers, staff). Its start is
noted at the sign-in, its last use now and then, so that a look at a page seldom writes. Imports settings and logs.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from allauth.account.signals import authentication_step_completed, login_code_rejected
from django.conf import settings
from django.contrib.auth import SESSION_KEY, logout, update_session_auth_hash
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_login_failed
from django.contrib.sessions.models import Session
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils import timezone

from memory_portal import logs

log = logs.get(__name__)
BEGAN, SEEN = "began", "seen"
NOTED = 20
"""How often within the idle limit a use is noted, at most."""

Answers = Callable[[HttpRequest], HttpResponse]


@receiver(user_logged_in)
def begin(sender: Any, request: HttpRequest, user: Any, **kwargs: Any) -> None:
    request.session[BEGAN] = request.session[SEEN] = timezone.now().timestamp()
    log.info("signed_in", user=user.pk, code="staff" if user.is_staff else "customer")


@receiver(user_login_failed)
def refused(sender: Any, **kwargs: Any) -> None:
    log.warning("sign_in_refused", code="password")


@receiver(login_code_rejected)
def code_refused(sender: Any, user: Any, **kwargs: Any) -> None:
    log.warning("sign_in_refused", code="mailed_code", user=user.pk)


@receiver(authentication_step_completed)
def proved(sender: Any, user: Any, method: str, **kwargs: Any) -> None:
    log.info("proof_given", user=user.pk, code=method)


def limits(user: Any) -> tuple[timedelta, timedelta]:
    """For how long it may lie unused, and for how long it lasts at all."""
    return settings.SESSION_LIMITS["staff" if user.is_staff else "customer"]


class Limits:
    """Below the authentication's middleware. Who comes with no session, such as an agent, is not asked for one."""

    def __init__(self, get_response: Answers) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if settings.SESSION_COOKIE_NAME in request.COOKIES and SESSION_KEY in request.session:
            self.check(request)
        return self.get_response(request)

    def check(self, request: HttpRequest) -> None:
        session, now = request.session, timezone.now().timestamp()
        idle, whole = limits(request.user)
        unused = now - session.get(SEEN, 0)
        if unused > idle.total_seconds() or now - session.get(BEGAN, 0) > whole.total_seconds():
            logout(request)
        elif unused > idle.total_seconds() / NOTED:
            session[SEEN] = now


class NothingKept:
    """What says nothing of its own about caches is kept by none: pages show who is signed in, errors too. And no page answers
    TRACE, which Django takes for a look (the bridge says so itself)."""

    def __init__(self, get_response: Answers) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method == "TRACE" and not request.path_info.startswith("/bridge/"):
            response: HttpResponse = HttpResponseNotAllowed(["GET", "HEAD", "POST", "OPTIONS"])
        else:
            response = self.get_response(request)
        response.headers.setdefault("Cache-Control", "no-store")
        return response


def end_elsewhere(request: HttpRequest, user: User) -> None:
    """End this customer's sessions in every browser but this one: sessions rest on the password field, which nobody signs in with.

    Staff, who have a password, end theirs by changing it.
    """
    if not user.has_usable_password():
        user.set_unusable_password()  # another random text
        user.save(update_fields=["password"])
        update_session_auth_hash(request, user)


def forget_ended(now: datetime) -> int:
    """Erase the rows of sessions that are over, whose browsers never come back to have it done."""
    return Session.objects.filter(expire_date__lt=now).delete()[0]
