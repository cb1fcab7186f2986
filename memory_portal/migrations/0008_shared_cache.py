"""The table of the shared cache: counted tries, used codes. Unlogged: after a crash it starts empty."""

from django.db import migrations

CREATE = """
CREATE UNLOGGED TABLE IF NOT EXISTS memory_portal_cache (
    cache_key varchar(255) NOT NULL PRIMARY KEY,
    value text NOT NULL,
    expires timestamp with time zone NOT NULL
);
CREATE INDEX IF NOT EXISTS memory_portal_cache_expires ON memory_portal_cache (expires);
"""


class Migration(migrations.Migration):
    dependencies = [("memory_portal", "0007_language_of_mails")]
    operations = [migrations.RunSQL(CREATE, "DROP TABLE memory_portal_cache")]
