"""Every error the store raises on purpose. One root; no message ever carries a key's value, a quote or a subject id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory_portal.enums import Reason

if TYPE_CHECKING:
    from memory_portal.store.types import Fact


class MemoryStoreError(Exception):
    """Root of the store's errors; `code` is stable and safe to show, to count and to log."""

    code = "store_error"


class InvalidDraft(MemoryStoreError, ValueError):
    """A field of the input is unusable. `field` names it, `limit` is the number it broke, where there is one."""

    code = "invalid"

    def __init__(self, field: str, reason: Reason, message: str, *, limit: int | None = None) -> None:
        super().__init__(message)
        self.field = field
        self.reason = reason
        self.limit = limit


class MemoryWriteRejected(MemoryStoreError, ValueError):
    """The rules refuse this write. Carries the reason code only; the refused text is kept nowhere."""

    code = "rejected"

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class NotFound(MemoryStoreError, LookupError):
    """No such thing for this customer; the same whether it never existed or is someone else's."""

    code = "not_found"


class Conflict(MemoryStoreError):
    """The fact changed since the caller read it. `current` is the fact as it is now, or None when it is gone."""

    code = "conflict"

    def __init__(self, current: Fact | None) -> None:
        super().__init__("the fact changed meanwhile")
        self.current = current


class MemoryDisabled(MemoryStoreError):
    """Memory is switched off for the whole deployment."""

    code = "memory_disabled"


class BadCursor(MemoryStoreError, ValueError):
    """No cursor of ours."""

    code = "bad_cursor"


class LostCursor(MemoryStoreError):
    """A cursor of another database server: what it points to cannot be found again here."""

    code = "lost_cursor"


class EmailTaken(MemoryStoreError):
    """The address opens another customer of the same profile already. Does not say whose."""

    code = "email_taken"


class WrongMoment(MemoryStoreError):
    """This step of a request is not open: it is answered, or another law's, or its time is over."""

    code = "wrong_moment"
