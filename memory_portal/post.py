"""Mail. `Later` is Django's mail backend for the running site: it hands messages to one thread, so that no answer waits for a
mail server and none tells by its time whether an address is known. `notify` writes the short mails that carry no value.

What waits is lost when the process dies: a person asks for a new code; nothing is owed by mail alone.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.base import BaseEmailBackend
from django.template.loader import render_to_string
from django.utils.translation import override

from memory_portal import logs, store
from memory_portal.models import Customer

log = logs.get(__name__)
WAITS = (0.0, 2.0, 15.0)
"""Seconds before each try."""

_sender = ThreadPoolExecutor(1, "mail")


class Later(BaseEmailBackend):
    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        _sender.submit(_send, list(email_messages))
        return len(email_messages)


def _send(messages: list[EmailMessage], waits: Sequence[float] = WAITS) -> None:
    for wait in waits:
        time.sleep(wait)
        try:
            get_connection(settings.MAIL_BACKEND).send_messages(messages)
        except Exception as error:  # its text may hold the address
            problem = logs.of_error(error)
        else:
            return
    log.error("mail_failed", mails=len(messages), **problem)


def notify(customer: Customer, what: str, **context: Any) -> None:
    """Send templates/mail/<what>.txt, whose first line is the subject, to the customer's address if there is one."""
    if not customer.email:
        return
    text = render_to_string(f"mail/{what}.txt", {"brand_name": brand_name(customer), **context})
    subject, _, body = text.strip().partition("\n")
    try:
        EmailMessage(subject.strip(), body.strip() + "\n", to=[customer.email]).send()
    except Exception as error:  # a notice that fails must not undo what it is about
        log.error("mail_failed", mails=1, **logs.of_error(error))


def send_digests(now: datetime) -> int:
    """How many mails went out. Each is noted before it is sent, so that no crash makes two of one."""
    sent = 0
    for customer, new in store.to_be_told(now):
        if not store.claim_telling(customer, now):
            continue
        sent += 1
        with override(customer.language or settings.LANGUAGE_CODE):
            notify(customer, "digest", count=new)
    return sent


def brand_name(customer: Customer) -> str:
    policy = store.current_policy()
    profile = policy.profiles.get(customer.profile, policy.profiles[policy.default_profile])
    return str(settings.BRAND_NAME or profile.name)
