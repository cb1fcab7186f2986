"""Looking at a value, for every door that staff have: page and command. The look, its event, the alarm where it is one too many."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMessage

from memory_portal import logs, store
from memory_portal.enums import ActorKind, Purpose
from memory_portal.models import StaffAlert
from memory_portal.staff.roles import role_of

log = logs.get(__name__)

MAIL = """A member of our staff (number {staff}) looked at or changed the memory of {customers} customers within an hour.

The admin's front page has it. This mail names nobody else.
"""


def acting(user: User, purpose: str) -> store.Actor:
    """The member of staff as the store knows them: a number, an office and a reason."""
    return store.Actor(ActorKind.STAFF, str(user.pk), role=role_of(user), purpose=Purpose(purpose))


def look(user: User, customer: int, fact_id: int, purpose: str, *, now: datetime) -> store.Fact:
    """What the fact says, after the event of it is kept. Raises NotFound, and ValueError for a purpose that is none."""
    fact, alarm = store.reveal(customer, fact_id, acting(user, purpose), now=now)
    if alarm:
        tell(alarm)
    return fact


def tell(alarm: StaffAlert) -> None:
    log.warning("staff_alarm", staff=alarm.staff_id, customers=alarm.customers)
    if not settings.PRIVACY_EMAIL:
        return
    text = MAIL.format(staff=alarm.staff_id, customers=alarm.customers)
    try:
        EmailMessage("Many customers within an hour", text, to=settings.PRIVACY_EMAIL).send()
    except Exception as error:  # the look is written down and the alarm stands; a mail is not owed
        log.error("mail_failed", mails=1, **logs.of_error(error))
