"""Events say when their transaction wrote them, in transaction ids, so that the feed to agents misses none, and of which category the fact was.

The column first and its default afterwards: in one step every old row would get the migration's own transaction. Neither step
rewrites the table or looks at a row.
"""

from django.db import migrations, models

import memory_portal.models

ADD = """
SET LOCAL lock_timeout = '2s';
ALTER TABLE memory_portal_factevent ADD COLUMN xid bigint NULL;
ALTER TABLE memory_portal_factevent ALTER COLUMN xid SET DEFAULT
    (GREATEST(pg_current_xact_id()::text::bigint, pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1));
ALTER TABLE memory_portal_factevent ADD COLUMN category varchar(32) NOT NULL DEFAULT '';
"""

REMOVE = """
ALTER TABLE memory_portal_factevent DROP COLUMN category;
ALTER TABLE memory_portal_factevent DROP COLUMN xid;
"""


class Migration(migrations.Migration):
    dependencies = [("memory_portal", "0003_one_stone_per_reason")]
    operations = [
        migrations.RunSQL(
            ADD,
            REMOVE,
            state_operations=[
                migrations.AddField(
                    "factevent", "category", models.CharField(max_length=32, blank=True, db_default="")
                ),
                migrations.AddField(
                    "factevent",
                    "xid",
                    models.BigIntegerField(
                        null=True, editable=False, db_default=memory_portal.models.FeedOrder()
                    ),
                ),
            ],
        )
    ]
