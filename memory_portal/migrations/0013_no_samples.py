"""PostgreSQL keeps samples of what columns hold, for its planner: values of people who are erased long since. Of these columns none.

The planner loses nothing: they are looked up by unique index or not at all. The lock is one that readers and writers do not notice.
"""

from django.db import migrations

COLUMNS = {
    "memory_portal_customer": ["subject_id", "display_name", "email", "never_words", "salt"],
    "memory_portal_memoryfact": ["value", "topics", "source_quote", "vector"],
    "memory_portal_factrevision": ["value", "source_quote"],
    "memory_portal_proposal": ["value", "topics", "source_quote"],
    "memory_portal_cache": ["value"],
    "auth_user": ["username", "first_name", "last_name", "email", "password"],
    "account_emailaddress": ["email"],
    "socialaccount_socialaccount": ["uid", "extra_data"],
    "mfa_authenticator": ["data"],
    "django_session": ["session_key", "session_data"],
}
CLEAR = """
DO $$ BEGIN
    IF current_setting('server_version_num')::int >= 180000 THEN
        PERFORM pg_clear_attribute_stats('public', '{table}', '{column}', false);
    END IF;
END $$
"""


def none(table, column):
    alter = f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS"
    return migrations.RunSQL(
        ["SET LOCAL lock_timeout = '2s'", f"{alter} 0", CLEAR.format(table=table, column=column)], f"{alter} -1"
    )


class Migration(migrations.Migration):
    dependencies = [
        ("memory_portal", "0012_staff_indexes"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("account", "0009_emailaddress_unique_primary_email"),
        ("socialaccount", "0006_alter_socialaccount_extra_data"),
        ("mfa", "0003_authenticator_type_uniq"),
        ("sessions", "0001_initial"),
    ]
    operations = [none(table, column) for table, columns in COLUMNS.items() for column in columns]
