"""Built beside the running site: no lock that a writer would notice. Interrupted, it is dropped and built again."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import Q

TOLD = (
    "accepted", "added", "choices_changed", "cleared", "consent_withdrawn", "corrected", "expired", "forgotten", "frozen",
    "learned", "thawed", "updated", "using_paused", "using_resumed",
)  # fmt: skip


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("memory_portal", "0003_event_feed")]
    operations = [
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS event_feed", migrations.RunSQL.noop),
        AddIndexConcurrently(
            "factevent",
            models.Index(fields=["xid", "id"], name="event_feed", condition=Q(xid__isnull=False, kind__in=TOLD)),
        ),
    ]
