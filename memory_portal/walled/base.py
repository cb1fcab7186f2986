"""One override: before a statement, the session is told role and customer, if they are not what it was told last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from psycopg.pq import TransactionStatus

from memory_portal.database import base
from memory_portal.store import wall

TELL = "SELECT set_config('role', %s, false), set_config('memory_portal.customer', %s, false)"


class DatabaseWrapper(base.DatabaseWrapper):
    told: wall.Told | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.execute_wrappers.append(self.tell)

    def tell(self, execute: Callable[..., Any], statement: str, params: Any, many: bool, context: Any) -> Any:
        wanted = wall.wanted()
        # In a failed transaction nothing can be told, and nothing be asked but to go back.
        if self.told != wanted and self.connection.info.transaction_status != TransactionStatus.INERROR:
            with self.connection.cursor() as cursor:
                cursor.execute(TELL, wanted)
            self.told = wanted
        return execute(statement, params, many, context)

    def init_connection_state(self) -> None:
        self.told = None
        super().init_connection_state()

    # What was told in a transaction is taken back with it.

    def _rollback(self) -> None:
        super()._rollback()  # type: ignore[misc]  # the stubs leave it out
        self.told = None

    def _savepoint_rollback(self, sid: str) -> None:
        super()._savepoint_rollback(sid)  # type: ignore[misc]  # the stubs leave it out
        self.told = None
