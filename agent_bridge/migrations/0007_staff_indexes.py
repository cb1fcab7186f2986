"""For the staff's lists. Built beside the running site: no lock that a writer would notice; interrupted, built again."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import Q


def anew(name):
    return migrations.RunSQL(f"DROP INDEX CONCURRENTLY IF EXISTS {name}", migrations.RunSQL.noop)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("agent_bridge", "0006_heartbeat")]
    operations = [
        anew("job_newest"),
        AddIndexConcurrently("extractionjob", models.Index(fields=["-created_at"], name="job_newest")),
        anew("job_parked"),
        AddIndexConcurrently(
            "extractionjob", models.Index(fields=["outcome"], name="job_parked", condition=Q(state="parked"))
        ),
    ]
