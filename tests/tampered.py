"""What somebody with all rights in the database does to its events: triggers off, plain SQL. Each edit by the name it must be found
under; each is an SQL statement or several, given a trail of four events of alice, three of bob and the ids of alice's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import connection

E, C, S = "memory_portal_factevent", "memory_portal_customer", "memory_portal_auditseal"
FIELDS = "customer_id, at, kind, fact_id, key, category, code, actor_kind, actor_id, agent"


def sql(statement: str, *values: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []


def unseen(statement: str, *values: Any) -> None:
    """No trigger fires."""
    sql("SET LOCAL session_replication_role = replica")
    sql(statement, *values)
    sql("SET LOCAL session_replication_role = DEFAULT")


def number(name: str) -> int:
    ((pk,),) = sql(f"SELECT id FROM {C} WHERE subject_id = %s", name)
    return int(pk)


def ids(name: str) -> list[int]:
    return [pk for (pk,) in sql(f"SELECT id FROM {E} WHERE customer_id = %s ORDER BY id", number(name))]


def change(column: str, value: str) -> Callable[[], None]:
    return lambda: unseen(f"UPDATE {E} SET {column} = {value} WHERE id = %s", ids("alice")[1])


def delete(*places: int) -> Callable[[], None]:
    return lambda: unseen(f"DELETE FROM {E} WHERE id = ANY(%s)", [ids("alice")[place] for place in places])


def insert(columns: str, values: str) -> Callable[[], None]:
    """As a copy of alice's second event but for some columns."""
    return lambda: unseen(
        f"INSERT INTO {E} ({FIELDS}{columns}) SELECT {FIELDS}{values} FROM {E} WHERE id = %s", ids("alice")[1]
    )


def exchange(*columns: str) -> Callable[[], None]:
    def swap() -> None:
        one, two = ids("alice")[1:3]
        pairs = ", ".join(f"{column} = o.{column}" for column in columns)
        unseen(
            f"UPDATE {E} AS e SET {pairs} FROM {E} AS o WHERE (e.id, o.id) IN ((%s, %s), (%s, %s))",
            *(one, two, two, one),
        )

    return swap


def exchange_ids() -> None:
    one, two = ids("alice")[1:3]
    unseen(f"UPDATE {E} SET id = -1 WHERE id = %s", one)
    unseen(f"UPDATE {E} SET id = %s WHERE id = %s", one, two)
    unseen(f"UPDATE {E} SET id = %s WHERE id = -1", two)


def move(name: str, more: str = "") -> Callable[[], None]:
    return lambda: unseen(f"UPDATE {E} SET customer_id = %s{more} WHERE id = %s", number(name), ids("alice")[1])


def remove_trail(*also: str) -> Callable[[], None]:
    def act() -> None:
        pk = number("alice")
        for statement in (f"DELETE FROM {E} WHERE customer_id = %s", *also):
            unseen(statement, pk)

    return act


def cut_and_set_back() -> None:
    """The last event goes, and the customer's row says what it said before: all that can be read in the database."""
    last, before = ids("alice")[-1], ids("alice")[-2]
    unseen(f"DELETE FROM {E} WHERE id = %s", last)
    unseen(
        f"UPDATE {C} AS c SET trail_seq = e.seq, trail_mac = e.mac FROM {E} AS e WHERE e.id = %s AND c.id = e.customer_id",
        before,
    )


EDITS: dict[str, tuple[str, Callable[[], None]]] = {
    **{
        f"another {column}": ("changed", change(column, value))
        for column, value in {
            "kind": "'forgotten'",
            "at": "at + interval '1 microsecond'",
            "fact_id": "fact_id + 1",
            "key": "'meal'",
            "category": "'safety'",
            "code": "'forged'",
            "actor_kind": "'staff'",
            "actor_id": "'x'",
            "agent": "'another'",
            "prev": "decode('00', 'hex')",
            "mac": "decode(repeat('00', 20), 'hex')",
            "xid": "xid + 1",
        }.items()
    },
    "another month": ("changed", change("at", "at + interval '1 year'")),
    "a digest of nobody's key": ("changed", change("mac", "set_byte(mac, 0, get_byte(mac, 0) # 1)")),
    "one from the middle": ("deleted", delete(1)),
    "the first": ("deleted", delete(0)),
    "two from the middle": ("deleted", delete(1, 2)),
    "the last": ("cut off", delete(3)),
    "the last two": ("cut off", delete(2, 3)),
    "the last, and its customer set back": ("cut off", cut_and_set_back),
    "one of its own making, at the end": ("inserted", insert(", seq, prev, mac", ", 5, prev, mac")),
    "one of its own making, at a place that is taken": ("inserted", insert(", seq, prev, mac", ", 4, prev, mac")),
    "one in no trail": ("inserted", insert("", "")),
    "one in no trail, before all others": ("inserted", insert(", id", ", -7")),
    "one with a digest and no place": ("inserted", insert(", prev, mac", ", prev, mac")),
    "two places": ("reordered", exchange("seq")),
    "two places with their links": ("reordered", exchange("seq", "prev")),
    "two places with their digests": ("reordered", exchange("seq", "prev", "mac")),
    "two times": ("reordered", exchange("at")),
    "two ids": ("reordered", exchange_ids),
    "a copy": ("duplicated", insert(", seq, prev, mac", ", seq, prev, mac")),
    "one to bob": ("moved", move("bob")),
    "one to the end of bob's": ("moved", move("bob", ", seq = 4")),
    "one to nobody": (
        "moved",
        lambda: unseen(f"UPDATE {E} SET customer_id = 999999 WHERE id = %s", ids("alice")[1]),
    ),
    "all of alice's": ("trail removed", remove_trail()),
    "all of alice's, and what is known of it": (
        "trail removed",
        remove_trail(f"UPDATE {C} SET trail_seq = 0, trail_mac = NULL, trail_head = NULL WHERE id = %s"),
    ),
    "all of alice's, and herself": (
        "trail removed",
        remove_trail(f"DELETE FROM {C} WHERE id = %s", "DELETE FROM memory_portal_memoryfact WHERE customer_id = %s"),
    ),
}
"""What was done, and the name it must be found under."""
