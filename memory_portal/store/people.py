"""Who may sign in as whom. In: an e-mail address. Out: the one Django user that stands for one Customer, or None.

An address opens a Customer only because the host or staff put it there. May import models, types, errors and sanitise.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Count, F, Q

from memory_portal.enums import ActorKind, EventKind
from memory_portal.models import Customer
from memory_portal.store import trail, wall
from memory_portal.store.errors import EmailTaken, NotFound
from memory_portal.store.sanitise import clean
from memory_portal.store.types import Actor, Subject


@wall.everyone("an address opens one customer only")
def attach_email(customer: Subject | int, email: str) -> None:
    """Put the address on the Customer at which its person receives sign-in codes; an empty one takes it away.

    For the host and staff only: no customer can name an address for themselves. Raises NotFound or EmailTaken.
    """
    with transaction.atomic():
        rows = Customer.objects.select_for_update()
        row = (
            rows.filter(pk=customer).first()
            if isinstance(customer, int)
            else rows.filter(profile=customer.profile, subject_id=customer.subject_id)
            .order_by("profile", "subject_id")
            .first()
        )
        if row is None:
            raise NotFound
        _attach(row, email)


@wall.everyone("the host names whom it means")
def welcome(subject: Subject, *, now: datetime, display_name: str | None = None, email: str | None = None) -> None:
    """Make sure that the subject is a Customer, the only one of its name, and note what the host says of them.

    None leaves a field as it is. Raises EmailTaken, and then nothing is changed.
    """
    named = Customer.objects.filter(profile=subject.profile, subject_id=subject.subject_id)
    with transaction.atomic():
        if not named.exists():
            new = Customer(profile=subject.profile, subject_id=subject.subject_id, created_at=now)
            Customer.objects.bulk_create([new], ignore_conflicts=True)  # two first links at once make one customer
        if display_name is not None:
            named.update(display_name=clean(display_name))
        if email is not None:
            _attach(named.select_for_update().get(), email)


def _attach(row: Customer, email: str) -> None:
    """One at a time for one address, so that no two customers of a profile ever get the same."""
    email = email.strip().lower()
    if email and email != row.email:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"{row.profile} {email}"])
        others = Customer.objects.filter(profile=row.profile, email=email).exclude(email="").exclude(pk=row.pk)
        if others.order_by("email").values("pk").first():  # by its index, as there are no statistics of addresses
            raise EmailTaken
    row.email = email
    row.save(update_fields=["email"])


@wall.everyone("who signs in is known by an address")
def user_of_email(email: str) -> User | None:
    """The user to whom a code for this address may be sent; made when the address is used for the first time.

    An address on several Customers opens the one known first, and `same_address` the way to the others. Staff sign in
    through the admin only: an address alone never opens an account with rights there.
    """
    found = Customer.objects.filter(email=email.strip().lower()).exclude(email="").order_by("email", "pk").first()
    if found is None:
        return None
    return user_of_customer(found.pk)


@wall.everyone("one mailbox may be known to several shops")
def same_address(customer: Customer) -> list[Customer]:
    """The Customers of this one's address, itself among them, by the name of their profile; none where it has no address."""
    if not customer.email:
        return []
    return list(Customer.objects.filter(email=customer.email).order_by("profile"))


@wall.everyone("who signs in is known by their link or their company")
def user_of_customer(customer_id: int) -> User | None:
    """The user who stands for this Customer, made at the first sign-in; None where that is staff or was switched off."""
    user = Customer.objects.select_related("user").get(pk=customer_id).user or _make_user(customer_id)
    return None if user.is_staff or user.is_superuser or not user.is_active else user


def _make_user(customer_id: int) -> User:
    """Under the row lock, so that two first sign-ins at once make one user."""
    with transaction.atomic():
        customer = Customer.objects.select_for_update().get(pk=customer_id)
        if customer.user is None:
            customer.user = get_user_model().objects.create_user(f"customer-{customer.pk}", customer.email)
            customer.save(update_fields=["user"])
        return customer.user


def customer_of_user(user_id: int) -> Customer | None:
    with wall.everyone("whose session it is"):
        row = Customer.objects.filter(user=user_id).first()
    if row is not None:
        wall.only(row.pk)
    return row


def prefer(customer_id: int, **choices: object) -> None:
    """What the customer chose about pages and mail: `theme`, `mail_notices`, `mailed_at`, `language`. No agent need know."""
    wall.only(customer_id)
    Customer.objects.filter(pk=customer_id).update(**choices)


def to_be_told(now: datetime) -> list[tuple[Customer, int]]:
    """Who asked for mails, has an address and got none for a day, with how many things were noted since. None are left out."""
    since = now - timedelta(days=1)
    asked = Customer.objects.filter(mail_notices=True, mailed_at__lte=since).exclude(email="")
    learned = Count("events", filter=Q(events__kind__in=NEWS, events__at__gt=F("mailed_at")) & ~OWN)
    return [(row, row.new) for row in asked.annotate(new=learned).filter(new__gt=0).order_by("pk")]


def claim_telling(customer: Customer, now: datetime) -> bool:
    """Note that this one is told now; False where another clock was faster, so that no two mails say the same."""
    return bool(Customer.objects.filter(pk=customer.pk, mailed_at=customer.mailed_at).update(mailed_at=now))


NEWS = (EventKind.LEARNED, EventKind.ADDED, EventKind.PROPOSED)
OWN = Q(events__actor_kind=ActorKind.CUSTOMER)


def note(customer_id: int, kind: EventKind, actor: Actor, *, now: datetime, code: str = "") -> None:
    """Enter into the activity list what changes no fact: a sign-in, an export, an import. Agents' caches need not hear of it."""
    wall.only(customer_id)
    with transaction.atomic():
        row = Customer.objects.select_for_update(no_key=True).filter(pk=customer_id).first()
        if row:  # else they were erased this moment
            happened = trail.follow(row, at=now, kind=kind, code=code, actor_kind=actor.kind, actor_id=actor.id)
            trail.enter(row, [happened])
