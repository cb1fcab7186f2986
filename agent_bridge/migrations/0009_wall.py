"""Row-level security by customer, as in memory_portal's 0014, for what waits and what it cost."""

from django.db import migrations


def walled(table):
    return migrations.RunSQL(
        f"""
        SET LOCAL lock_timeout = '2s';
        ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
        CREATE POLICY one_customer ON {table} USING (customer_id = memory_portal_customer_seen());
        """,
        f"DROP POLICY one_customer ON {table}; ALTER TABLE {table} DISABLE ROW LEVEL SECURITY;",
    )


class Migration(migrations.Migration):
    dependencies = [("agent_bridge", "0008_no_samples"), ("memory_portal", "0014_wall")]
    operations = [walled("agent_bridge_extractionjob"), walled("agent_bridge_dayspend")]
