"""A column without a default: no row is rewritten and the lock lasts an instant, in both directions."""

from django.db import migrations, models

PATIENCE = "SET LOCAL lock_timeout = '2s'"


class Migration(migrations.Migration):
    dependencies = [("memory_portal", "0004_event_feed_index")]
    operations = [
        migrations.RunSQL(PATIENCE, migrations.RunSQL.noop),
        migrations.AddField("memoryfact", "vector", models.BinaryField(editable=False, null=True)),
        migrations.RunSQL(migrations.RunSQL.noop, PATIENCE),
    ]
