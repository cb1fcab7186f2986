"""Row-level security by customer. It says nothing to the tables' owner; DATABASE_ROLE names who it is for (store/wall.py)."""

from django.db import migrations

OF_ONE = {
    "memory_portal_customer": "id",
    "memory_portal_memoryfact": "customer_id",
    "memory_portal_factevent": "customer_id",
    "memory_portal_factread": "customer_id",
    "memory_portal_tombstone": "customer_id",
    "memory_portal_proposal": "customer_id",
    "memory_portal_consent": "customer_id",
    "memory_portal_ticket": "customer_id",
    "memory_portal_erasureledger": "customer_number",
    "memory_portal_privacyrequest": "customer_id",
}
WHO = """
CREATE FUNCTION memory_portal_customer_seen() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT nullif(current_setting('memory_portal.customer', true), '')::bigint
$$;
"""


def walled(table, column):
    return migrations.RunSQL(
        f"""
        SET LOCAL lock_timeout = '2s';
        ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
        CREATE POLICY one_customer ON {table} USING ({column} = memory_portal_customer_seen());
        """,
        f"DROP POLICY one_customer ON {table}; ALTER TABLE {table} DISABLE ROW LEVEL SECURITY;",
    )


class Migration(migrations.Migration):
    dependencies = [("memory_portal", "0013_no_samples")]
    operations = [
        migrations.RunSQL(WHO, "DROP FUNCTION memory_portal_customer_seen()"),
        *(walled(table, column) for table, column in OF_ONE.items()),
        migrations.RunSQL(
            """
            SET LOCAL lock_timeout = '2s';
            ALTER TABLE memory_portal_factrevision ENABLE ROW LEVEL SECURITY;
            CREATE POLICY one_customer ON memory_portal_factrevision
                USING (EXISTS (SELECT FROM memory_portal_memoryfact AS f WHERE f.id = fact_id));
            """,
            "DROP POLICY one_customer ON memory_portal_factrevision;"
            " ALTER TABLE memory_portal_factrevision DISABLE ROW LEVEL SECURITY;",
        ),
    ]
