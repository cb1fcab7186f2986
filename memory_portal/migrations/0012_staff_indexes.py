"""Built beside the running site: no lock that a writer would notice. Interrupted, they are dropped and built again.

Events lie in months, and PostgreSQL builds an index beside the writers only on one month at a time; the index of the whole table
takes those over, and months made later get their own by it.
"""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import Q

EVENT = "memory_portal_factevent"
NAME = "event_by_staff"
ON = "(actor_id, at) WHERE actor_kind = 'staff'"


def build(apps, schema_editor):
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT relkind = 'p' FROM pg_class WHERE oid = %s::regclass", [EVENT])
        (in_months,) = cursor.fetchone()
        if not in_months:
            cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {NAME}")
            cursor.execute(f"CREATE INDEX CONCURRENTLY {NAME} ON {EVENT} {ON}")
            return
        cursor.execute(f"DROP INDEX IF EXISTS {NAME}")
        cursor.execute(f"CREATE INDEX {NAME} ON ONLY {EVENT} {ON}")
        cursor.execute("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass", [EVENT])
        for (month,) in cursor.fetchall():
            index = f"{month.removeprefix('memory_portal_')}_by_staff"
            cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {index}")
            cursor.execute(f"CREATE INDEX CONCURRENTLY {index} ON {month} {ON}")
            cursor.execute(f"ALTER INDEX {NAME} ATTACH PARTITION {index}")


def drop(apps, schema_editor):
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX IF EXISTS {NAME}")


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("memory_portal", "0011_staff_office")]
    operations = [
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS customer_subject", migrations.RunSQL.noop),
        AddIndexConcurrently("customer", models.Index(fields=["subject_id"], name="customer_subject")),
        migrations.SeparateDatabaseAndState(
            [migrations.RunPython(build, drop)],
            [
                migrations.AddIndex(
                    "factevent",
                    models.Index(fields=["actor_id", "at"], name=NAME, condition=Q(actor_kind="staff")),
                )
            ],
        ),
    ]
