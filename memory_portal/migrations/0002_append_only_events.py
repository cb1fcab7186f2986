"""Events are written once. The database itself refuses the rest, whoever asks: ORM, admin or SQL by hand."""

from django.db import migrations

REFUSE = """
CREATE FUNCTION memory_portal_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of % is refused: it is append-only', TG_OP, TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON memory_portal_factevent
    FOR EACH ROW EXECUTE FUNCTION memory_portal_refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON memory_portal_factevent
    FOR EACH STATEMENT EXECUTE FUNCTION memory_portal_refuse_change();
"""

ALLOW = """
DROP TRIGGER never_emptied ON memory_portal_factevent;
DROP TRIGGER append_only ON memory_portal_factevent;
DROP FUNCTION memory_portal_refuse_change();
"""


class Migration(migrations.Migration):
    dependencies = [("memory_portal", "0001_first")]
    operations = [migrations.RunSQL(REFUSE, ALLOW)]
