"""A tombstone for each reason: dismissing what was forgotten before leaves the forgetting in force."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory_portal", "0002_append_only_events")]
    operations = [
        migrations.RemoveConstraint(model_name="tombstone", name="one_tombstone_per_value"),
        migrations.AddConstraint(
            model_name="tombstone",
            constraint=models.UniqueConstraint(
                fields=("customer", "key", "value_mac", "reason"), name="one_tombstone_per_value"
            ),
        ),
    ]
