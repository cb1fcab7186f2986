"""Each event gets a place in its customer's trail and a keyed digest; what is there already is covered by the first seal.

Columns without a check or a default that rewrites: no row is looked at, and the locks last an instant. The two new tables refuse
what the events refuse, and the same switch opens them to being emptied.
"""

from django.db import migrations, models

PATIENCE = "SET LOCAL lock_timeout = '2s'"
NEW = ("memory_portal_auditseal", "memory_portal_trailend")
REFUSE = "\n".join(
    f"""
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON {table}
    FOR EACH ROW EXECUTE FUNCTION memory_portal_refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION memory_portal_refuse_emptying();
"""
    for table in NEW
)

# Who asks the whole table is shown what its policy says; a month by itself shows nothing to anybody but the owner.
CLOSE = """
DO $$ DECLARE month regclass; BEGIN
    FOR month IN SELECT inhrelid FROM pg_inherits WHERE inhparent IN
        ('memory_portal_factevent'::regclass, 'memory_portal_factread'::regclass)
    LOOP EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', month); END LOOP;
END $$;
ALTER TABLE memory_portal_trailend ENABLE ROW LEVEL SECURITY;
CREATE POLICY one_customer ON memory_portal_trailend USING (customer_number = memory_portal_customer_seen());
"""


class Migration(migrations.Migration):
    dependencies = [("memory_portal", "0014_wall")]
    operations = [
        migrations.RunSQL(PATIENCE, migrations.RunSQL.noop),
        migrations.CreateModel(
            name="AuditSeal",
            fields=[
                ("number", models.BigIntegerField(primary_key=True, serialize=False)),
                ("sealed_at", models.DateTimeField()),
                ("from_id", models.BigIntegerField()),
                ("to_id", models.BigIntegerField()),
                ("month", models.DateField()),
                ("until", models.DateField(null=True)),
                ("events", models.BigIntegerField()),
                ("chained", models.BigIntegerField()),
                ("trails", models.BigIntegerField()),
                ("digest", models.BinaryField(max_length=32)),
                ("mac", models.BinaryField(max_length=20)),
            ],
        ),
        migrations.CreateModel(
            name="TrailEnd",
            fields=[
                ("customer_number", models.BigIntegerField(primary_key=True, serialize=False)),
                ("seq", models.BigIntegerField()),
                ("mac", models.BinaryField(max_length=20)),
                ("head", models.BinaryField(max_length=20)),
            ],
        ),
        migrations.RunSQL(REFUSE, migrations.RunSQL.noop),
        migrations.RunSQL(CLOSE, migrations.RunSQL.noop),
        migrations.AddField("customer", "trail_seq", models.BigIntegerField(db_default=0, default=0, editable=False)),
        migrations.AddField("customer", "trail_mac", models.BinaryField(editable=False, max_length=20, null=True)),
        migrations.AddField("customer", "trail_head", models.BinaryField(editable=False, max_length=20, null=True)),
        migrations.AddField("factevent", "seq", models.BigIntegerField(editable=False, null=True)),
        migrations.AddField("factevent", "prev", models.BinaryField(editable=False, max_length=20, null=True)),
        migrations.AddField("factevent", "mac", models.BinaryField(editable=False, max_length=20, null=True)),
        migrations.RunSQL(migrations.RunSQL.noop, PATIENCE),
    ]
