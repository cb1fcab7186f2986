from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agent_bridge", "0001_first")]

    operations = [
        migrations.CreateModel(
            name="CallWindow",
            fields=[
                ("name", models.CharField(max_length=32, primary_key=True, serialize=False)),
                ("started_at", models.DateTimeField()),
                ("calls", models.PositiveIntegerField()),
            ],
            options={"verbose_name": "calls in this minute", "verbose_name_plural": "calls in this minute"},
        ),
        # One row a key, written at each call: no log to flush, and room in the page for its next version.
        migrations.RunSQL(
            "ALTER TABLE agent_bridge_callwindow SET UNLOGGED; ALTER TABLE agent_bridge_callwindow SET (fillfactor = 10)",
            "ALTER TABLE agent_bridge_callwindow SET LOGGED",
        ),
    ]
