"""Conversations and lines that wait leave no samples with the planner, as memory_portal's 0013 says."""

from django.db import migrations

COLUMNS = {"agent_bridge_extractionjob": ["turns"], "agent_bridge_importline": ["subject_id", "text"]}


def none(table, column):
    alter = f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS"
    return migrations.RunSQL(["SET LOCAL lock_timeout = '2s'", f"{alter} 0"], f"{alter} -1")


class Migration(migrations.Migration):
    dependencies = [("agent_bridge", "0007_staff_indexes")]
    operations = [none(table, column) for table, columns in COLUMNS.items() for column in columns]
