"""The hand-off: a link by which a host sends one customer in. In: a subject the host vouches for. Out: an address, good once.

The link carries, signed, a single-use ticket, where it leads and in which language. Offered to the bridge beside the store; may
import the store and settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.contrib.auth.models import User
from django.core.signing import BadSignature, Signer
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import get_supported_language_variant

from memory_portal import store

PURPOSE = "enter"
MINUTES = 1
NEXT_LIMIT = 200
NAME_LIMIT = 80


@dataclass(frozen=True, slots=True)
class Door:
    """What a living link leads to, and for whom."""

    customer_id: int
    next: str
    language: str


def offer(subject: store.Subject, *, now: datetime, language: str = "", next: str = "/") -> tuple[str, datetime]:
    """A token for this subject's Customer and its end; an older one of theirs ends now. Raises NotFound for nobody."""
    customer = store.find(subject)
    if customer is None:
        raise store.NotFound
    ticket = store.issue_ticket(customer.pk, PURPOSE, now=now, minutes=MINUTES)
    until = store.ticket(ticket, PURPOSE, now=now).expires_at
    return _signer().sign_object([ticket, next, supported(language)]), until


def address(token: str, request: HttpRequest) -> str:
    """Where the token works. The host of the link is PORTAL_URL's; the request's own counts in development only."""
    path = reverse("enter", args=[token])
    return f"{settings.PORTAL_URL}{path}" if settings.PORTAL_URL else request.build_absolute_uri(path)


def look(token: str, *, now: datetime) -> Door:
    """Where the link leads, without using it. Raises NotFound for one that is used, too old, changed or made up."""
    ticket, next, language = _opened(token)
    return Door(store.ticket(ticket, PURPOSE, now=now).customer_id, next, language)


def use(token: str, *, now: datetime) -> tuple[Door, User]:
    """The same and who comes in, once. Raises NotFound, too, where that is staff or a person who was switched off."""
    ticket, next, language = _opened(token)
    door = Door(store.redeem(ticket, PURPOSE, now=now).customer_id, next, language)
    user = store.user_of_customer(door.customer_id)
    if user is None:
        raise store.NotFound
    return door, user


def same_site(path: str) -> bool:
    """Whether this is a path of this site and nothing a browser could read as another's address."""
    plain = path.isascii() and path.isprintable() and " " not in path and len(path) <= NEXT_LIMIT
    return plain and path.startswith("/") and url_has_allowed_host_and_scheme(path, allowed_hosts=None)


def supported(language: str) -> str:
    """The site's own code for a language, or nothing where it does not speak it: then the browser's choice counts."""
    try:
        return get_supported_language_variant(language.lower()) if language else ""
    except LookupError:
        return ""


def _opened(token: str) -> tuple[str, str, str]:
    try:
        ticket, next, language = _signer().unsign_object(token)
    except BadSignature:
        raise store.NotFound from None
    return ticket, next, language


def _signer() -> Signer:
    return Signer(salt="memory_portal.handoff", sep=".")
