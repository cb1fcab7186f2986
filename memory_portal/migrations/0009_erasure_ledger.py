"""What a restored copy of the database must forget again. A new table: no other is touched or locked."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory_portal", "0008_shared_cache")]
    operations = [
        migrations.CreateModel(
            name="ErasureLedger",
            fields=[
                ("epoch", models.BigAutoField(primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=20)),
                ("at", models.DateTimeField()),
                ("customer_number", models.BigIntegerField(db_index=True)),
                ("fact_id", models.BigIntegerField(null=True)),
                ("code", models.CharField(blank=True, help_text="A reason or purpose code.", max_length=32)),
                ("profile", models.CharField(blank=True, max_length=32)),
                ("pseudonym", models.CharField(blank=True, max_length=32)),
                ("sealed_subject", models.BinaryField(editable=False, null=True)),
            ],
        ),
    ]
