"""The bridge's own rows: who may call, what was handed over, what was answered. Names memory_portal.models, imports nothing."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class AgentKey(models.Model):
    """One agent's key: its look-up prefix and a keyed digest of the rest. The key itself is shown once and kept nowhere."""

    name = models.CharField(max_length=64, help_text=_("The agent's name as customers read it."))
    profile = models.CharField(max_length=32, help_text=_("Whose customers it may reach: a profile of the policy."))
    prefix = models.CharField(max_length=16, unique=True)
    digest = models.CharField(max_length=64)
    pepper_version = models.PositiveSmallIntegerField(default=1)
    scopes = ArrayField(models.CharField(max_length=24), default=list)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("agent key")
        verbose_name_plural = _("agent keys")

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def live(self, now: datetime) -> bool:
        return self.revoked_at is None and now < self.expires_at


class JobState(models.TextChoices):
    QUEUED = "queued", _("Waiting")
    RUNNING = "running", _("Running")
    DONE = "done", _("Done")
    PARKED = "parked", _("Given up")
    DISCARDED = "discarded", _("Discarded unread")


class ExtractionJob(models.Model):
    """A finished conversation waiting to be read. The row is the truth; the broker only rings the bell."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    customer = models.ForeignKey("memory_portal.Customer", on_delete=models.CASCADE, related_name="jobs")
    key = models.ForeignKey(AgentKey, null=True, on_delete=models.SET_NULL, related_name="jobs")
    agent = models.CharField(max_length=64)
    profile = models.CharField(max_length=32)
    source_session_id = models.CharField(max_length=12, blank=True)
    turns = models.JSONField(default=list)
    generation = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=JobState.choices, default=JobState.QUEUED)
    attempts = models.PositiveSmallIntegerField(default=0)
    run_after = models.DateTimeField()
    lease_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=32, blank=True, help_text=_("A code: why it ended or is tried again."))
    counts = models.JSONField(
        default=dict, help_text=_("How many candidates were learned, proposed or refused, by reason.")
    )
    extractor = models.CharField(max_length=64, blank=True)
    prompt_version = models.CharField(max_length=12, blank=True)
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    cost = models.DecimalField(
        max_digits=12,
        decimal_places=6,
        default=0,
        db_default=0,
        help_text=_("Of all tries, at the prices of their day."),
    )
    batch = models.CharField(
        max_length=64, blank=True, db_default="", help_text=_("The provider's batch that it waits for.")
    )
    reserved_tokens = models.PositiveIntegerField(
        default=0, db_default=0, help_text=_("Counted as spent until its batch answers.")
    )

    class Meta:
        verbose_name = _("conversation")
        verbose_name_plural = _("conversations")
        indexes = [
            models.Index(
                fields=["run_after"], name="job_due", condition=Q(state__in=[JobState.QUEUED, JobState.RUNNING])
            ),
            models.Index(
                fields=["customer", "created_at"],
                name="job_turn",
                condition=Q(state__in=[JobState.QUEUED, JobState.RUNNING]),
            ),
            models.Index(
                fields=["created_at"],
                name="job_begun",
                condition=Q(state__in=[JobState.QUEUED, JobState.RUNNING], attempts__gt=0),
            ),
            models.Index(fields=["finished_at"], name="job_ended", condition=Q(finished_at__isnull=False)),
            models.Index(fields=["batch"], name="job_batched", condition=~Q(batch="")),
            models.Index(fields=["-created_at"], name="job_newest"),
            models.Index(fields=["outcome"], name="job_parked", condition=Q(state=JobState.PARKED)),
        ]

    def __str__(self) -> str:
        return str(self.id)


class MessageBatch(models.Model):
    """A batch that the provider holds for us. The row is there as long as anything of it is left over there."""

    id = models.CharField(max_length=64, primary_key=True)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = _("batch at the provider")
        verbose_name_plural = _("batches at the provider")

    def __str__(self) -> str:
        return self.id


class DaySpend(models.Model):
    """Tokens spent and reserved on one UTC day: by one customer, or by everybody where there is none."""

    day = models.DateField()
    # No constraint in the database: its check would wait for whoever has the customer's row locked.
    customer = models.ForeignKey(
        "memory_portal.Customer", null=True, on_delete=models.CASCADE, related_name="+", db_constraint=False
    )
    tokens = models.BigIntegerField(default=0)

    class Meta:
        verbose_name = _("tokens of a day")
        verbose_name_plural = _("tokens of a day")
        constraints = [
            models.UniqueConstraint(fields=["day", "customer"], name="one_spend_per_customer_and_day"),
            models.UniqueConstraint(fields=["day"], condition=Q(customer=None), name="one_spend_per_day"),
        ]

    def __str__(self) -> str:
        return f"{self.day}"


class IdempotencyKey(models.Model):
    """What one request with an Idempotency-Key came to: its status and the thing it made, never a body."""

    agent_key = models.ForeignKey(AgentKey, on_delete=models.CASCADE, related_name="+", db_index=False)
    key = models.CharField(max_length=128)
    request_mac = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    resource = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = _("idempotency key")
        verbose_name_plural = _("idempotency keys")
        constraints = [models.UniqueConstraint(fields=["agent_key", "key"], name="one_answer_per_idempotency_key")]

    def __str__(self) -> str:
        return f"idempotency key {self.pk}"


class Webhook(models.Model):
    """Where an agent's host wants to be told of changes. The row is the truth: how far it was told, and when to try again.

    It is told what the live keys of this agent and profile may read. Its secret is derived and stands nowhere.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    agent = models.CharField(max_length=64, help_text=_("The name of the keys whose rights it has."))
    profile = models.CharField(max_length=32)
    url = models.CharField(max_length=500, help_text=_("Starts with https:// and leads to a public address."))
    events = ArrayField(
        models.CharField(max_length=20), default=list, blank=True, help_text=_("Kinds of changes; none means all.")
    )
    pepper_version = models.PositiveSmallIntegerField(default=1)
    cursor = models.CharField(max_length=64, blank=True)
    active = models.BooleanField(default=True)
    created_at = models.DateTimeField()
    next_at = models.DateTimeField()
    lease_until = models.DateTimeField(null=True, blank=True)
    fence = models.PositiveBigIntegerField(default=0)
    failures = models.PositiveIntegerField(default=0, help_text=_("In a row."))
    failing_since = models.DateTimeField(null=True, blank=True)
    parked_at = models.DateTimeField(null=True, blank=True, help_text=_("Given up; an action tries again."))
    last_code = models.CharField(max_length=32, blank=True, help_text=_("Why the last delivery failed."))
    last_delivered_at = models.DateTimeField(null=True, blank=True)
    delivered = models.PositiveBigIntegerField(default=0, help_text=_("Changes delivered so far."))

    class Meta:
        verbose_name = _("webhook")
        verbose_name_plural = _("webhooks")

    def __str__(self) -> str:
        return f"webhook {self.pk}"


class Import(models.Model):
    """Facts an agent brings along, line by line. What a line says stands in its ImportLine until it is decided."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    key = models.ForeignKey(AgentKey, null=True, on_delete=models.SET_NULL, related_name="imports")
    agent = models.CharField(max_length=64)
    profile = models.CharField(max_length=32)
    state = models.CharField(max_length=10, choices=JobState.choices, default=JobState.QUEUED)
    outcome = models.CharField(max_length=32, blank=True, help_text=_("A code: why it ended before its end."))
    notes = ArrayField(models.CharField(max_length=32), default=list, blank=True)
    lines = models.PositiveIntegerField()
    fence = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("import")
        verbose_name_plural = _("imports")
        indexes = [
            models.Index(
                fields=["created_at"], name="import_open", condition=Q(state__in=[JobState.QUEUED, JobState.RUNNING])
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)


class ImportLine(models.Model):
    """One line: whose it is and what it says until it is decided, and from then on only what was decided."""

    job = models.ForeignKey(Import, on_delete=models.CASCADE, related_name="rows", db_index=False)
    line = models.PositiveIntegerField()
    subject_id = models.CharField(max_length=128, blank=True)
    text = models.TextField(blank=True)
    decision = models.CharField(max_length=12, blank=True)
    reason = models.CharField(max_length=32, blank=True)
    field = models.CharField(max_length=20, blank=True)

    class Meta:
        verbose_name = _("line of an import")
        verbose_name_plural = _("lines of imports")
        constraints = [models.UniqueConstraint(fields=["job", "line"], name="one_row_per_line")]
        indexes = [models.Index(fields=["subject_id"], name="import_line_waiting", condition=Q(decision=""))]

    def __str__(self) -> str:
        return f"line {self.line}"


class CallWindow(models.Model):
    """How many calls came in since `started_at`, by key and for the whole. Unlogged: a crash lets it count anew."""

    name = models.CharField(max_length=32, primary_key=True)
    started_at = models.DateTimeField()
    calls = models.PositiveIntegerField()

    class Meta:
        verbose_name = _("calls in this minute")
        verbose_name_plural = _("calls in this minute")

    def __str__(self) -> str:
        return self.name


class Heartbeat(models.Model):
    """When a sweep was last here, by its name."""

    name = models.CharField(max_length=16, primary_key=True)
    at = models.DateTimeField()

    class Meta:
        verbose_name = _("sign of life")
        verbose_name_plural = _("signs of life")

    def __str__(self) -> str:
        return self.name
