"""What PostgreSQL may write into its own log: that a statement failed is told by this site's log; a value is told by neither.

Given to the embedded server when it starts, looked for at any other by a system check. Imports nothing of this project.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

QUIET: Mapping[str, str] = {
    "log_min_messages": "log",  # an error's own sentence may quote what it could not read
    "log_min_error_statement": "panic",  # the statement that failed
    "log_error_verbosity": "terse",  # the row that broke a rule
    "log_parameter_max_length_on_error": "0",
    "log_parameter_max_length": "0",
    "log_statement": "none",
    "log_min_duration_statement": "-1",
    "log_min_duration_sample": "-1",
}
ENOUGH: Mapping[str, frozenset[str]] = {
    "log_min_messages": frozenset({"log", "fatal", "panic"}),
    "log_statement": frozenset({"none", "ddl"}),
}
"""Where more than one setting tells no values."""


class Cursor(Protocol):
    def execute(self, sql: Any, params: Any = None) -> Any: ...
    def fetchall(self) -> Any: ...


def loud(cursor: Cursor) -> list[str]:
    """The settings by which this connection's server may log values."""
    cursor.execute("SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", [list(QUIET)])
    found = dict(cursor.fetchall())
    return [name for name, wanted in QUIET.items() if found.get(name) not in ENOUGH.get(name, {wanted})]


def hush(cursor: Cursor) -> None:
    """Have the whole server be quiet, from now on and after a restart. Needs a superuser and no transaction."""
    for name in loud(cursor):
        cursor.execute(f"ALTER SYSTEM SET {name} = '{QUIET[name]}'")
    cursor.execute("SELECT pg_reload_conf()")
