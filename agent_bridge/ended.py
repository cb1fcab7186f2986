"""Conversations that ended long ago: their words are wiped since, and the row left goes with the notes of its day's reads.

In: the time. Out: how many rows. No month is dropped whole: a job is asked for by its id alone, which a table in months could not
find without looking into each, and its foreign keys would be lost; so rows go in batches along the index of their end, each batch a
short transaction that waits for nobody.
"""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import connection

BATCH = 2_000
DELETE = """
DELETE FROM agent_bridge_extractionjob WHERE id IN (
    SELECT id FROM agent_bridge_extractionjob WHERE finished_at < %s::timestamptz - make_interval(months => %s::int)
    ORDER BY finished_at LIMIT %s FOR UPDATE SKIP LOCKED
)
"""


def purge(*, now: datetime, batch: int = BATCH) -> int:
    gone = 0
    with connection.cursor() as cursor:
        while True:
            cursor.execute(DELETE, [now, settings.READ_MONTHS, batch])
            deleted = int(cursor.rowcount)
            gone += deleted
            if deleted < batch:
                return gone
