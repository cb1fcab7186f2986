import django.contrib.postgres.fields
import django.db.models.deletion
import uuid
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("memory_portal", "0001_first"),
    ]

    operations = [
        migrations.CreateModel(
            name="AgentKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(help_text="The agent's name as customers read it.", max_length=64)),
                (
                    "profile",
                    models.CharField(help_text="Whose customers it may reach: a profile of the policy.", max_length=32),
                ),
                ("prefix", models.CharField(max_length=16, unique=True)),
                ("digest", models.CharField(max_length=64)),
                ("pepper_version", models.PositiveSmallIntegerField(default=1)),
                (
                    "scopes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=24), default=list, size=None
                    ),
                ),
                ("created_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "verbose_name": "agent key",
                "verbose_name_plural": "agent keys",
            },
        ),
        migrations.CreateModel(
            name="ExtractionJob",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("agent", models.CharField(max_length=64)),
                ("profile", models.CharField(max_length=32)),
                ("source_session_id", models.CharField(blank=True, max_length=12)),
                ("turns", models.JSONField(default=list)),
                ("generation", models.PositiveIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("queued", "Waiting"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("parked", "Given up"),
                            ("discarded", "Discarded unread"),
                        ],
                        default="queued",
                        max_length=10,
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("run_after", models.DateTimeField()),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "outcome",
                    models.CharField(blank=True, help_text="A code: why it ended or is tried again.", max_length=32),
                ),
                (
                    "counts",
                    models.JSONField(
                        default=dict, help_text="How many candidates were learned, proposed or refused, by reason."
                    ),
                ),
                ("extractor", models.CharField(blank=True, max_length=64)),
                ("prompt_version", models.CharField(blank=True, max_length=12)),
                ("input_tokens", models.PositiveIntegerField(default=0)),
                ("output_tokens", models.PositiveIntegerField(default=0)),
                (
                    "customer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="jobs", to="memory_portal.customer"
                    ),
                ),
                (
                    "key",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="jobs",
                        to="agent_bridge.agentkey",
                    ),
                ),
            ],
            options={
                "verbose_name": "conversation",
                "verbose_name_plural": "conversations",
                "indexes": [
                    models.Index(
                        condition=models.Q(("state__in", ["queued", "running"])), fields=["run_after"], name="job_due"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="IdempotencyKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=128)),
                ("request_mac", models.CharField(max_length=64)),
                ("status", models.PositiveSmallIntegerField(null=True)),
                ("resource", models.CharField(blank=True, max_length=64)),
                ("created_at", models.DateTimeField()),
                (
                    "agent_key",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="agent_bridge.agentkey",
                    ),
                ),
            ],
            options={
                "verbose_name": "idempotency key",
                "verbose_name_plural": "idempotency keys",
                "constraints": [
                    models.UniqueConstraint(fields=("agent_key", "key"), name="one_answer_per_idempotency_key")
                ],
            },
        ),
    ]
