"""What happened to the facts of one profile's customers, in an order that misses nothing: ids, keys, codes and times, no value.

In: a profile, an agent and a cursor. Out: Changes and the next cursor. Raw SQL like shelf; imports enums, errors and ledger.

Ids are handed out before transactions commit, so that a reader who goes by id alone walks past rows that become visible behind
it. Each event carries a transaction id, `xid`; a page ends below the oldest transaction still running, where nothing can appear
any more. It is no smaller than the writer's own, so that this holds, and no smaller than that of any transaction which had ended
when the event was written: whoever waits for a customer's row may have got an id before somebody else wrote. So the events of one
customer stand in the order in which they happened, and by `id` where `xid` is the same.

One index over (transaction, id), and of the events only those told here, serves every profile: a page looks at no more than SCAN
rows of it and moves its cursor past the rows of others. A BRIN index would be smaller and could not end a page early.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.db import connection

from memory_portal.enums import EventKind
from memory_portal.store import wall
from memory_portal.store.errors import BadCursor, LostCursor
from memory_portal.store.ledger import unsealed

SCAN = 2_000
PAGE = 100

GIVING = (
    EventKind.LEARNED,
    EventKind.ADDED,
    EventKind.ACCEPTED,
    EventKind.THAWED,
    EventKind.USING_RESUMED,
)
"""Something may be used that could not be: told only where this agent may use it."""

TAKING = (
    EventKind.CORRECTED,
    EventKind.UPDATED,
    EventKind.FORGOTTEN,
    EventKind.CLEARED,
    EventKind.EXPIRED,
    EventKind.FROZEN,
    EventKind.USING_PAUSED,
    EventKind.CHOICES_CHANGED,
    EventKind.CONSENT_WITHDRAWN,
)
"""What an agent holds is not so any more: told to every agent that could have it."""

ERASED = "erased"
"""The account was closed. Such a customer has no row to look up: the ledger keeps the host's id, encrypted, for a month. What
happened is the CLEARED of the erasure, the last event there is of them; whoever wants to hear of either hears of it."""

CHANGE_KINDS = tuple(sorted((*GIVING, *TAKING, ERASED)))


@dataclass(frozen=True, slots=True)
class Change:
    """One event as an agent hears of it. `key` is empty for what concerns the customer as a whole."""

    id: int
    subject_id: str
    kind: str
    key: str
    code: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Changes:
    changes: tuple[Change, ...]
    next: str
    """Where to go on. It moves even if nothing was for this reader."""
    more: bool
    """Whether something may be waiting behind this page already."""


class Place(NamedTuple):
    """Behind which row to go on, and of which server: transaction ids mean nothing to another."""

    server: int
    xid: int
    id: int


FORM = struct.Struct(">BIQQ")
VERSION = 1
LAST = 2**63 - 1

HERE = """
SELECT (SELECT system_identifier FROM pg_control_system()), pg_snapshot_xmin(pg_current_snapshot())::text::bigint
"""

# The kinds are written out: as parameters they would keep the planner from the partial index. "last" is where the scan
# ended and how far it came, whatever of it is told.
READ = f"""
WITH scanned AS MATERIALIZED (
    SELECT e.xid, e.id, e.customer_id, e.kind, e.key, e.category, e.at,
        CASE WHEN e.actor_kind = 'staff' THEN '' ELSE e.code END AS code -- why staff did it is for the customer only
    FROM memory_portal_factevent AS e
    WHERE (e.xid, e.id) > (%(xid)s::bigint, %(id)s::bigint)
        AND e.xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint
        AND e.kind IN ({", ".join(f"'{kind.value}'" for kind in (*GIVING, *TAKING))})
    ORDER BY e.xid, e.id
    LIMIT %(scan)s
), told AS (
    SELECT s.xid, s.id, c.subject_id, l.sealed_subject, s.kind, s.key, s.code, s.at
    FROM scanned AS s
    LEFT JOIN memory_portal_customer AS c ON c.id = s.customer_id AND c.profile = %(profile)s
    LEFT JOIN memory_portal_erasureledger AS l ON c.id IS NULL AND s.kind = '{EventKind.CLEARED.value}'
        AND l.customer_number = s.customer_id AND l.kind = '{ERASED}' AND l.at <= s.at
        AND l.profile = %(profile)s AND l.sealed_subject IS NOT NULL
    WHERE l.epoch IS NOT NULL AND ARRAY['{ERASED}', s.kind]::text[] && %(kinds)s::text[]
        OR c.id IS NOT NULL AND s.kind = ANY(%(kinds)s::text[])
        AND NOT s.category = ANY(%(hidden)s::text[])
        AND NOT (s.kind = '{EventKind.CONSENT_WITHDRAWN.value}' AND s.code = ANY(%(hidden)s::text[]))
        AND (s.kind = ANY(%(taking)s::text[]) OR NOT (
            c.using_paused_at IS NOT NULL
            OR %(agent)s = ANY(c.no_use_agents)
            OR s.category = ANY(c.no_use_categories)
        ))
    ORDER BY s.xid, s.id
    LIMIT %(limit)s
), last AS (
    SELECT xid, id, count(*) OVER () AS scanned FROM scanned ORDER BY xid DESC, id DESC LIMIT 1
)
SELECT 0, xid, id, subject_id, sealed_subject, kind, key, code, at FROM told
UNION ALL SELECT scanned, xid, id, '', NULL, '', '', '', NULL FROM last
"""  # noqa: S608  # made of our own enums


@wall.everyone("the feed of all customers of a profile")
def changes(
    profile: str,
    agent: str,
    after: str,
    *,
    limit: int = PAGE,
    kinds: Collection[str] = CHANGE_KINDS,
    hidden: Collection[str] = (),
    scan: int = SCAN,
) -> Changes:
    """At most `limit` changes behind the cursor; "" is before the first, "now" behind what is there. `hidden` are categories.

    Raises BadCursor for what never was one, and LostCursor for one of another server (after a dump was restored elsewhere).
    """
    with connection.cursor() as cursor:
        cursor.execute(HERE)
        identifier, xmin = cursor.fetchone()
        place = _place(after, _short(identifier), xmin)
        told: list[tuple[int, Change]] = []
        end, scanned = (place.xid, place.id), 0
        cursor.execute(
            READ,
            {
                "xid": place.xid,
                "id": place.id,
                "profile": profile,
                "agent": agent,
                "kinds": list(kinds),
                "taking": [kind.value for kind in TAKING],
                "hidden": list(hidden),
                "limit": limit,
                "scan": scan,
            },
        )
        for count, xid, number, subject_id, sealed, kind, key, code, at in cursor.fetchall():
            if count:
                end, scanned = (xid, number), count
            elif sealed:
                told.append((xid, Change(number, unsealed(sealed), ERASED, "", "", at)))
            else:
                told.append((xid, Change(number, subject_id, kind, key, code, at)))
    told.sort(key=lambda row: (row[0], row[1].id))
    more = scanned == scan
    if len(told) == limit:
        xid, last = told[-1]
        more = more or (xid, last.id) != end
        end = xid, last.id
    return Changes(tuple(change for _, change in told if change.subject_id), _text(Place(place.server, *end)), more)


def _place(after: str, server: int, xmin: int) -> Place:
    if after == "":
        return Place(server, 0, 0)
    if after == "now":  # What still runs has not happened yet.
        return Place(server, xmin - 1, LAST)
    try:
        version, *parts = FORM.unpack(base64.b64decode(after.encode() + b"=" * (-len(after) % 4), b"-_", validate=True))
    except (binascii.Error, struct.error, ValueError):
        raise BadCursor from None
    place = Place(*parts)
    if version != VERSION or max(place) > LAST:
        raise BadCursor
    if place.server != server or place.xid >= xmin:
        raise LostCursor
    return place


def _text(place: Place) -> str:
    return base64.urlsafe_b64encode(FORM.pack(VERSION, *place)).decode().rstrip("=")


def _short(identifier: int) -> int:
    return int.from_bytes(hashlib.sha256(str(identifier).encode()).digest()[:4])
