"""The office's own rows: requests made by hand with their legal clock, and alarms about staff. Codes and times, never a value.

Neither has a foreign key in the database to a customer or a user: both outlive them, as numbers. `memory_portal.models` shows them.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memory_portal.enums import Channel, ExtensionReason, Regime, RequestKind, RequestOutcome


class PrivacyRequest(models.Model):
    """One request made by letter, call or mail. What it says stays in the letter; here is what the law's clock needs."""

    customer = models.ForeignKey(
        "memory_portal.Customer",
        null=True,
        blank=True,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        related_name="requests",
        verbose_name=_("customer"),
    )
    kind = models.CharField(_("asks for"), max_length=10, choices=RequestKind.choices)
    regime = models.CharField(_("law"), max_length=4, choices=Regime.choices)
    channel = models.CharField(_("came by"), max_length=9, choices=Channel.choices)
    received_at = models.DateTimeField(_("received"))
    acknowledged_at = models.DateTimeField(_("acknowledged"), null=True, blank=True)
    asked_back_at = models.DateTimeField(_("asked back"), null=True, blank=True)
    paused_days = models.PositiveSmallIntegerField(_("days stood still"), default=0)
    extended_at = models.DateTimeField(_("extended"), null=True, blank=True)
    extension_reason = models.CharField(_("why extended"), max_length=8, blank=True, choices=ExtensionReason.choices)
    answered_at = models.DateTimeField(_("answered"), null=True, blank=True)
    outcome = models.CharField(_("outcome"), max_length=12, blank=True, choices=RequestOutcome.choices)
    staff_id = models.BigIntegerField(_("entered by"), help_text=_("The number of the member of staff."))

    class Meta:
        verbose_name = _("request by hand")
        verbose_name_plural = _("requests by hand")
        indexes = [
            models.Index(fields=["received_at"], name="request_open", condition=Q(answered_at=None)),
            models.Index(fields=["answered_at"], name="request_ended", condition=Q(answered_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"request {self.pk}"


class StaffAlert(models.Model):
    """One member of staff touched unusually many customers within an hour. Who, how many, when; not whom."""

    staff_id = models.BigIntegerField(_("member of staff"))
    code = models.CharField(max_length=32, default="many_customers")
    at = models.DateTimeField(_("at"))
    customers = models.PositiveIntegerField(_("customers"))
    seen_at = models.DateTimeField(_("seen"), null=True, blank=True)
    seen_by = models.BigIntegerField(_("seen by"), null=True, blank=True)

    class Meta:
        verbose_name = _("alarm about staff")
        verbose_name_plural = _("alarms about staff")
        indexes = [models.Index(fields=["staff_id", "-at"], name="alert_by_staff")]

    def __str__(self) -> str:
        return f"alarm {self.pk}"
