from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agent_bridge", "0005_job_turn")]

    operations = [
        migrations.CreateModel(
            name="Heartbeat",
            fields=[
                ("name", models.CharField(max_length=16, primary_key=True, serialize=False)),
                ("at", models.DateTimeField()),
            ],
            options={"verbose_name": "sign of life", "verbose_name_plural": "signs of life"},
        ),
    ]
