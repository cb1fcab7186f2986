"""The second wall: PostgreSQL itself shows a web request one customer's rows and nobody else's, whatever a query forgets to ask.

With DATABASE_ROLE the site answers requests as a role without an owner's rights, and row-level security lets it see the rows of the
one customer that the session was told of: `only`, called where the store finds or locks a customer, nowhere else. Before that, it
sees none. What has to look across customers says so, `everyone("why")`, and is the owner. So are the worker and commands.

The agents' reads name their subject themselves, in one round trip: their statements are kept in the database as functions that
run as the owner (`door`). Imports settings only.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from psycopg import sql

OWNER = "none"
"""As PostgreSQL calls the role that signed in, while no other is taken on."""

Told = tuple[str, str]
"""What a session was told: its role, and whose rows it may see."""

_scope: ContextVar[str | None] = ContextVar("memory_portal_wall", default=None)
"""None: everyone. Else the number of a customer, or "" for nobody."""


@contextmanager
def everyone(reason: str) -> Iterator[None]:
    """For what has to look across customers; `reason` is for who reads the code."""
    token = _scope.set(None)
    try:
        yield
    finally:
        _scope.reset(token)


@contextmanager
def nobody() -> Iterator[None]:
    """Around a request: until it is known whose it is, no rows; afterwards as before."""
    token = _scope.set("")
    try:
        yield
    finally:
        _scope.reset(token)


def only(customer: int) -> None:
    """From here on, to the end of the request, this customer's rows. Means nothing where everyone's are seen."""
    if _scope.get() is not None:
        _scope.set(str(customer))


def wanted() -> Told:
    scope = _scope.get()
    return (OWNER, "") if scope is None else (settings.DATABASE_ROLE, scope)


# --- statements that name their subject ------------------------------------------------------------------------------------


@lru_cache(maxsize=32)
def _name(statement: str) -> str:
    return f"memory_portal_door_{hashlib.sha256(statement.encode()).hexdigest()[:16]}"


def door(statement: str) -> str:
    """The statement, or behind the wall the call of the function that is made of it: with the same parameters and rows."""
    return _call(statement) if settings.DATABASE_ROLE else statement


@lru_cache(maxsize=32)
def _call(statement: str) -> str:
    holes = ", ".join(["%s"] * statement.count("%s"))
    return f"SELECT * FROM {_name(statement)}({holes})"  # noqa: S608  # a name and placeholders of our own


def build(statements: tuple[str, ...]) -> None:
    """Make the role, its rights and the functions. As the owner, after each migration; done twice, it is done once."""
    role = sql.Identifier(settings.DATABASE_ROLE)
    with transaction.atomic(), connection.cursor() as cursor:  # Who is served meanwhile never lacks a right.
        cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [settings.DATABASE_ROLE])
        if cursor.fetchone() is None:
            cursor.execute(sql.SQL("CREATE ROLE {} NOLOGIN NOBYPASSRLS").format(role))
        cursor.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(role))
        cursor.execute(sql.SQL("GRANT USAGE ON SCHEMA public TO {}").format(role))
        cursor.execute(sql.SQL("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {}").format(role))
        cursor.execute(TABLES)  # Not the months of a partitioned table, which are behind no wall by themselves.
        for (table,) in cursor.fetchall():
            grant = sql.SQL("GRANT SELECT, INSERT, UPDATE, DELETE ON {} TO {}")
            cursor.execute(grant.format(sql.Identifier("public", table), role))
        cursor.execute(sql.SQL("GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {}").format(role))
        for statement in statements:
            _make(cursor, statement, role)


TABLES = """
SELECT relname FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
"""


def _make(cursor: Any, statement: str, role: sql.Identifier) -> None:
    """The statement as a function; what it takes and gives, PostgreSQL tells itself."""
    numbers = iter(range(1, 100))
    body = re.sub("%s", lambda _: f"${next(numbers)}", statement)
    cursor.execute(f"PREPARE at_the_door AS {body}")
    cursor.execute(
        "SELECT parameter_types::text[], result_types::text[] FROM pg_prepared_statements WHERE name = 'at_the_door'"
    )
    takes, gives = cursor.fetchone()
    cursor.execute("DEALLOCATE at_the_door")
    columns = [sql.SQL("c{} {}").format(sql.Literal(n), sql.SQL(kind)) for n, kind in enumerate(gives or ())]
    rows = sql.SQL("TABLE ({})").format(sql.SQL(", ").join(columns)) if columns else sql.SQL("void")
    name = sql.Identifier("public", _name(statement))
    kinds = sql.SQL(", ".join(takes))
    cursor.execute(
        sql.SQL(
            "CREATE OR REPLACE FUNCTION {name}({kinds}) RETURNS {rows} LANGUAGE sql SECURITY DEFINER"
            " SET search_path = pg_catalog, public AS {body}"
        ).format(name=name, kinds=kinds, rows=rows, body=sql.Literal(body))
    )
    cursor.execute(sql.SQL("REVOKE ALL ON FUNCTION {}({}) FROM PUBLIC").format(name, kinds))
    cursor.execute(sql.SQL("GRANT EXECUTE ON FUNCTION {}({}) TO {}").format(name, kinds, role))
