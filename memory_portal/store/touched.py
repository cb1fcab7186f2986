"""After a breach: whom an agent, a key or a member of staff touched between two instants. In: who, from when to when. Out: Touched.

One statement over the months it concerns; nothing of what was read or written is in it. Raw SQL like shelf.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from django.db import connection

By = Literal["agent", "key", "staff"]

# What a key's conversations taught stands under the number of the job that read them.
OF: dict[By, tuple[str, str]] = {
    "agent": ("agent = %(who)s::text", "agent = %(who)s::text AND actor_kind IN ('agent', 'job')"),
    "key": (
        "key_id = %(who)s::text::bigint",
        """(actor_kind = 'agent' AND actor_id = %(who)s::text) OR (actor_kind = 'job' AND actor_id IN (
            SELECT id::text FROM agent_bridge_extractionjob WHERE key_id = %(who)s::text::bigint))""",
    ),
    "staff": ("false", "actor_kind = 'staff' AND actor_id = %(who)s::text"),
}
SPAN = "at >= %(since)s AND at < %(until)s"
TOUCHED = """
SELECT t.customer_id, c.profile, c.subject_id, sum(t.read), sum(t.look), sum(t.change), min(t.at), max(t.at)
FROM (
    SELECT customer_id, at, 1 AS read, 0 AS look, 0 AS change FROM memory_portal_factread WHERE {span} AND ({reads})
    UNION ALL
    SELECT customer_id, at, 0, (kind = 'revealed')::int, (kind <> 'revealed')::int
    FROM memory_portal_factevent WHERE {span} AND ({events})
) AS t LEFT JOIN memory_portal_customer AS c ON c.id = t.customer_id
GROUP BY t.customer_id, c.profile, c.subject_id ORDER BY c.profile, c.subject_id, t.customer_id
"""
STATEMENTS = {by: TOUCHED.format(span=SPAN, reads=reads, events=events) for by, (reads, events) in OF.items()}


@dataclass(frozen=True, slots=True)
class Touched:
    """One customer, and how often. `profile` and `subject_id` are None for an account that was closed since."""

    number: int
    profile: str | None
    subject_id: str | None
    reads: int
    looks: int
    changes: int
    first: datetime
    last: datetime


def who_was_touched(by: By, who: str, since: datetime, until: datetime) -> Sequence[Touched]:
    """`who` is an agent's name, or the number of a key or of a member of staff. From `since` on, before `until`."""
    with connection.cursor() as cursor:
        cursor.execute(STATEMENTS[by], {"who": who, "since": since, "until": until})
        return [Touched(*row) for row in cursor.fetchall()]
