"""For what a dead worker left, which goes first. Built beside the running site: no lock that a writer would notice."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import Q

BEGUN = Q(state__in=["queued", "running"], attempts__gt=0)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("agent_bridge", "0010_defaults_for_old_code")]
    operations = [
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS job_begun", migrations.RunSQL.noop),  # one that was cut off
        AddIndexConcurrently("extractionjob", models.Index(fields=["created_at"], name="job_begun", condition=BEGUN)),
    ]
