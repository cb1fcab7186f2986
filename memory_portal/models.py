"""The truth, table by table. Values live in MemoryFact, FactRevision and Proposal and nowhere else.

Rows of FactEvent and FactRead hold ids, keys, codes and times; they have no foreign key to a fact, which may be gone.
Facts are written by the store's rooms desk, orm and acts only.
"""

from __future__ import annotations

import secrets
from datetime import datetime

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memory_portal.enums import (
    ActorKind,
    ChangeAction,
    EventKind,
    FactState,
    FreezeReason,
    Origin,
    Reason,
    Theme,
    TombstoneReason,
)
from memory_portal.evidence import AuditSeal as AuditSeal
from memory_portal.evidence import TrailEnd as TrailEnd
from memory_portal.office import PrivacyRequest as PrivacyRequest
from memory_portal.office import StaffAlert as StaffAlert


def new_salt() -> bytes:
    return secrets.token_bytes(16)


def words(size: int) -> ArrayField:  # type: ignore[type-arg]  # the stubs want two parameters, the class takes none
    """A short list of short strings, empty by default."""
    return ArrayField(models.CharField(max_length=size), default=list, blank=True)


class Customer(models.Model):
    """One person of one profile, known by the host's opaque id. Its row lock orders every write to its facts."""

    profile = models.CharField(max_length=32)
    subject_id = models.CharField(max_length=128)
    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="customer"
    )
    display_name = models.CharField(max_length=80, blank=True)
    email = models.EmailField(blank=True)
    region = models.CharField(max_length=2, blank=True, help_text=_("Country, for reading local phone numbers."))

    purge_generation = models.PositiveIntegerField(default=0)
    cleared_at = models.DateTimeField(null=True, blank=True)
    version = models.PositiveBigIntegerField(default=0)
    salt = models.BinaryField(max_length=16, default=new_salt, editable=False)

    learning_paused_at = models.DateTimeField(null=True, blank=True)
    using_paused_at = models.DateTimeField(null=True, blank=True)
    no_learn_categories = words(32)
    no_use_categories = words(32)
    no_learn_agents = words(64)
    no_use_agents = words(64)
    never_words = words(64)

    mail_notices = models.BooleanField(default=False, db_default=False)
    mailed_at = models.DateTimeField(null=True, blank=True)
    language = models.CharField(max_length=10, blank=True, db_default="", help_text=_("Of mails."))
    theme = models.CharField(max_length=5, blank=True, db_default="", choices=Theme.choices)

    # How far the trail of events goes (store/trail.py): moved on under the row's lock with each event.
    trail_seq = models.BigIntegerField(default=0, db_default=0, editable=False)
    trail_mac = models.BinaryField(max_length=20, null=True, editable=False)
    trail_head = models.BinaryField(max_length=20, null=True, editable=False)

    created_at = models.DateTimeField()

    class Meta:
        verbose_name = _("customer")
        verbose_name_plural = _("customers")
        constraints = [models.UniqueConstraint(fields=["profile", "subject_id"], name="one_customer_per_subject")]
        indexes = [
            models.Index(fields=["email"], name="customer_email", condition=~Q(email="")),
            models.Index(fields=["subject_id"], name="customer_subject"),  # staff do not always know the profile
        ]

    def __str__(self) -> str:
        return f"customer {self.pk}"


class FactQuerySet(models.QuerySet["MemoryFact"]):
    def of(self, customer: Customer | int) -> FactQuerySet:
        return self.filter(customer=customer)

    def live(self, now: datetime) -> FactQuerySet:
        """Not yet expired at `now`; a frozen fact is live, though served to nobody."""
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=now))


class Statement(models.Model):
    """What a fact and a proposal share: what was said, by whom, where."""

    key = models.CharField(max_length=64)
    value = models.CharField(max_length=200)
    category = models.CharField(max_length=32)
    topics = words(40)
    source_quote = models.CharField(max_length=1000, blank=True)
    source_session_id = models.CharField(max_length=12, blank=True)
    agent = models.CharField(max_length=64, blank=True)
    extractor = models.CharField(max_length=64, blank=True)
    said_at = models.DateTimeField()
    origin = models.CharField(max_length=12, choices=Origin.choices)

    class Meta:
        abstract = True


class MemoryFact(Statement):
    customer = models.ForeignKey(Customer, on_delete=models.CASCADE, related_name="facts", db_index=False)
    state = models.CharField(max_length=8, choices=FactState.choices, default=FactState.ACTIVE)
    freeze_reason = models.CharField(max_length=8, choices=FreezeReason.choices, blank=True)
    frozen_at = models.DateTimeField(null=True, blank=True)
    locked = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    review_at = models.DateTimeField(null=True, blank=True)
    version = models.PositiveIntegerField(default=1)
    vector = models.BinaryField(null=True, editable=False)
    """What its words mean, for SEMANTIC: as personal as the value, and written and erased with it."""

    objects = FactQuerySet.as_manager()

    class Meta:
        verbose_name = _("fact")
        verbose_name_plural = _("facts")
        # The unique index serves every read by customer; an index on a time would make each update rewrite it.
        constraints = [models.UniqueConstraint(fields=["customer", "key"], name="one_fact_per_key")]
        # Of what staff may do: "change" is to correct, "delete" to forget, both on the customer's behalf.
        permissions = [("reveal_memoryfact", "Can look at a value"), ("view_policy", "Can read the policy")]

    def __str__(self) -> str:
        return f"fact {self.pk}"


class FactRevision(models.Model):
    """A former value. Dies with its fact."""

    fact = models.ForeignKey(MemoryFact, on_delete=models.CASCADE, related_name="revisions")
    version = models.PositiveIntegerField()
    value = models.CharField(max_length=200)
    category = models.CharField(max_length=32)
    source_quote = models.CharField(max_length=1000, blank=True)
    origin = models.CharField(max_length=12, choices=Origin.choices)
    said_at = models.DateTimeField()
    replaced_at = models.DateTimeField()

    class Meta:
        verbose_name = _("former version")
        verbose_name_plural = _("former versions")

    def __str__(self) -> str:
        return f"version {self.version} of fact {self.fact_id}"


class FeedOrder(models.Func):
    """The writing transaction's id, or a later one that had ended by then: why, store/feed.py tells."""

    template = (
        "(GREATEST(pg_current_xact_id()::text::bigint, pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1))"
    )
    output_field = models.BigIntegerField()


TOLD = (
    "accepted", "added", "choices_changed", "cleared", "consent_withdrawn", "corrected", "expired", "forgotten", "frozen",
    "learned", "thawed", "updated", "using_paused", "using_resumed",
)  # fmt: skip
"""The kinds of events that agents hear of (store/feed.py): written out, as the index is built over them."""


class FactEvent(models.Model):
    """Something happened. Append-only; ids, keys, codes, times and the actor, never a value.

    `xid` is its place in the feed, before `id`; events older than the feed have none. `seq` is its place in the customer's own
    trail, `mac` its keyed digest over all of that and over the digest before, `prev`; events older than the trails have none.
    """

    customer = models.ForeignKey(
        Customer, on_delete=models.DO_NOTHING, db_constraint=False, related_name="events", db_index=False
    )
    at = models.DateTimeField()
    kind = models.CharField(max_length=20, choices=EventKind.choices)
    fact_id = models.BigIntegerField(null=True)
    key = models.CharField(max_length=64, blank=True)
    category = models.CharField(max_length=32, blank=True, db_default="")
    code = models.CharField(max_length=32, blank=True, help_text=_("A reason or purpose code."))
    actor_kind = models.CharField(max_length=8, choices=ActorKind.choices)
    actor_id = models.CharField(max_length=64, blank=True)
    agent = models.CharField(max_length=64, blank=True)
    xid = models.BigIntegerField(null=True, editable=False, db_default=FeedOrder())
    seq = models.BigIntegerField(null=True, editable=False)
    prev = models.BinaryField(max_length=20, null=True, editable=False)
    mac = models.BinaryField(max_length=20, null=True, editable=False)

    class Meta:
        verbose_name = _("event")
        verbose_name_plural = _("events")
        indexes = [
            models.Index(fields=["customer", "-at", "-id"], name="event_by_customer"),
            models.Index(fields=["xid", "id"], name="event_feed", condition=Q(xid__isnull=False, kind__in=TOLD)),
            models.Index(fields=["actor_id", "at"], name="event_by_staff", condition=Q(actor_kind=ActorKind.STAFF)),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.key}".strip()


class Tombstone(models.Model):
    """Forgotten stays forgotten: the key, a keyed digest of what it said, and when. Nothing here says what it was."""

    customer = models.ForeignKey(Customer, on_delete=models.CASCADE, related_name="tombstones", db_index=False)
    key = models.CharField(max_length=64)
    value_mac = models.CharField(max_length=32)
    quote_mac = models.CharField(max_length=32, blank=True)
    source_session_id = models.CharField(max_length=12, blank=True)
    watermark = models.DateTimeField()
    reason = models.CharField(max_length=12, choices=TombstoneReason.choices)

    class Meta:
        verbose_name = _("won’t be learned again")
        verbose_name_plural = _("won’t be learned again")
        # By reason, too: dismissing what was forgotten before must not make the forgetting forgotten.
        constraints = [
            models.UniqueConstraint(fields=["customer", "key", "value_mac", "reason"], name="one_tombstone_per_value")
        ]

    def __str__(self) -> str:
        return f"tombstone {self.key}"


class Proposal(Statement):
    """A question for the customer. No agent sees it until it is kept."""

    customer = models.ForeignKey(Customer, on_delete=models.CASCADE, related_name="proposals")
    action = models.CharField(max_length=8, choices=ChangeAction.choices, default=ChangeAction.REMEMBER)
    reason = models.CharField(max_length=32, choices=Reason.choices)
    fact = models.ForeignKey(MemoryFact, null=True, blank=True, on_delete=models.CASCADE, related_name="proposals")
    value_mac = models.CharField(max_length=32)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    class Meta:
        verbose_name = _("suggestion")
        verbose_name_plural = _("suggestions")
        constraints = [
            models.UniqueConstraint(
                fields=["customer", "action", "key", "value_mac"], name="one_proposal_per_statement"
            )
        ]

    def __str__(self) -> str:
        return f"suggestion {self.pk}"


class Consent(models.Model):
    """A receipt: which wording the customer agreed to, when, where; and when they took it back."""

    customer = models.ForeignKey(Customer, on_delete=models.CASCADE, related_name="consents")
    purpose = models.CharField(max_length=32)
    text_version = models.CharField(max_length=16)
    channel = models.CharField(max_length=16)
    language = models.CharField(max_length=10, blank=True)
    given_at = models.DateTimeField()
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("consent")
        verbose_name_plural = _("consents")
        constraints = [
            models.UniqueConstraint(
                fields=["customer", "purpose"], condition=Q(withdrawn_at=None), name="one_consent_in_force_per_purpose"
            )
        ]

    def __str__(self) -> str:
        return f"consent {self.purpose} of customer {self.customer_id}"


class FactRead(models.Model):
    """One read by one agent: when, which layer, which facts were handed over."""

    customer = models.ForeignKey(
        Customer, on_delete=models.DO_NOTHING, db_constraint=False, related_name="reads", db_index=False
    )
    at = models.DateTimeField()
    agent = models.CharField(max_length=64)
    key_id = models.BigIntegerField(null=True)
    layer = models.PositiveSmallIntegerField()
    source_session_id = models.CharField(max_length=12, blank=True)
    fact_ids = ArrayField(models.BigIntegerField())

    class Meta:
        verbose_name = _("read")
        verbose_name_plural = _("reads")
        indexes = [models.Index(fields=["customer", "-at", "-id"], name="read_by_customer")]

    def __str__(self) -> str:
        return f"read {self.pk}"


class Ticket(models.Model):
    """A link that works once and soon ends. Only its digest is kept; `purpose` keeps it from opening another door."""

    customer = models.ForeignKey(Customer, on_delete=models.CASCADE, related_name="tickets")
    purpose = models.CharField(max_length=16)
    detail = models.CharField(max_length=64, blank=True)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("single-use link")
        verbose_name_plural = _("single-use links")

    def __str__(self) -> str:
        return f"link {self.pk}"


class ErasureLedger(models.Model):
    """What a restored copy must forget again: an account by its keyed pseudonym, a fact by its number (store/ledger.py).

    No foreign key to a customer, whom it outlives. A copy of each row but the encrypted id stands in a file outside.
    """

    epoch = models.BigAutoField(primary_key=True)
    kind = models.CharField(max_length=20)
    at = models.DateTimeField()
    customer_number = models.BigIntegerField(db_index=True)
    fact_id = models.BigIntegerField(null=True)
    code = models.CharField(max_length=32, blank=True, help_text="A reason or purpose code.")
    profile = models.CharField(max_length=32, blank=True)
    pseudonym = models.CharField(max_length=32, blank=True)
    sealed_subject = models.BinaryField(null=True, editable=False)
    """The host's id of a closed account, encrypted, for as long as its agents may hear of the closing."""

    def __str__(self) -> str:
        return f"{self.kind} {self.epoch}"
