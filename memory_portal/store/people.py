"""Who may sign in as whom. In: an e-mail address. Out: the one Django user that stands for one Customer, or None.

An address opens a Customer only because the host or staff put it there. May import models, the types and nothing else.
"""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from memory_portal.enums import EventKind
from memory_portal.models import Customer, FactEvent
from memory_portal.store.errors import NotFound
from memory_portal.store.types import Actor, Subject


def attach_email(customer: Subject | int, email: str) -> None:
    """Put the address on the Customer at which its person receives sign-in codes; an empty one takes it away.

    For the host and staff only: no customer can name an address for themselves. Raises NotFound.
    """
    rows = Customer.objects.all()
    rows = (
        rows.filter(pk=customer)
        if isinstance(customer, int)
        else rows.filter(profile=customer.profile, subject_id=customer.subject_id)
    )
    if not rows.update(email=email.strip().lower()):
        raise NotFound


def user_of_email(email: str) -> AbstractBaseUser | None:
    """The user to whom a code for this address may be sent; made when the address is used for the first time.

    An address on several Customers opens the one known first. Staff sign in through the admin only: an address alone
    never opens an account with rights there.
    """
    found = Customer.objects.filter(email=email.strip().lower()).exclude(email="").order_by("pk").first()
    if found is None:
        return None
    user = found.user or _make_user(found.pk)
    return None if user.is_staff or user.is_superuser or not user.is_active else user  # type: ignore[attr-defined]


def _make_user(customer_id: int) -> AbstractBaseUser:
    """Under the row lock, so that two first sign-ins at once make one user."""
    with transaction.atomic():
        customer = Customer.objects.select_for_update().get(pk=customer_id)
        if customer.user is None:
            customer.user = get_user_model().objects.create_user(f"customer-{customer.pk}", customer.email)
            customer.save(update_fields=["user"])
        return customer.user


def customer_of_user(user_id: int) -> Customer | None:
    return Customer.objects.filter(user=user_id).first()


def note(customer_id: int, kind: EventKind, actor: Actor, *, now: datetime, code: str = "") -> None:
    """Enter into the activity list what changes no fact: a sign-in, an export, an import. Agents' caches need not hear of it."""
    FactEvent.objects.create(
        customer_id=customer_id, at=now, kind=kind, code=code, actor_kind=actor.kind, actor_id=actor.id
    )
