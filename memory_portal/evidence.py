"""What makes tampering with the events evident: where the trails of erased customers ended, and the seals over all that came in.

Digests, counts and times; append-only as the events are. `memory_portal.models` shows them.
"""

from __future__ import annotations

from django.db import models


class TrailEnd(models.Model):
    """Where the trail of a customer ended who was erased since. The number stands for nobody any more."""

    customer_number = models.BigIntegerField(primary_key=True)
    seq = models.BigIntegerField()
    mac = models.BinaryField(max_length=20)
    head = models.BinaryField(max_length=20)

    def __str__(self) -> str:
        return f"end of trail {self.customer_number}"


class AuditSeal(models.Model):
    """One seal: over the events of one month among those with ids after `from_id`, up to `to_id`; or a note of what was dropped.

    Each covers the one before it, and the last one's digest stands outside the database (store/seals.py). Where `until` is set,
    the months from `month` until then were dropped because their time was over.
    """

    number = models.BigIntegerField(primary_key=True)
    sealed_at = models.DateTimeField()
    from_id = models.BigIntegerField()
    to_id = models.BigIntegerField()
    month = models.DateField()
    until = models.DateField(null=True)
    events = models.BigIntegerField()
    chained = models.BigIntegerField()
    trails = models.BigIntegerField()
    """How many of them begin a trail."""
    digest = models.BinaryField(max_length=32)
    mac = models.BinaryField(max_length=20)

    def __str__(self) -> str:
        return f"seal {self.number}"
