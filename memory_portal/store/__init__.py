"""The MemoryStore's door: what others may import. Behind it the rooms in the order of the path: sanitise, write_filter,
policy, dedupe, intake (pure), recall and fence (pure), orm (the database), contract (the commerce-agents store).

The names of the database room are fetched when first used, so that the pure rooms work without Django's apps.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from memory_portal.store.errors import (
    Conflict,
    InvalidDraft,
    MemoryDisabled,
    MemoryStoreError,
    MemoryWriteRejected,
    NotFound,
)
from memory_portal.store.types import (
    KEY_LIMIT,
    QUOTE_LIMIT,
    SAFETY,
    SUBJECT_LIMIT,
    VALUE_LIMIT,
    Actor,
    Candidate,
    Draft,
    Fact,
    Outcome,
    Recall,
    Receipt,
    Subject,
)

if TYPE_CHECKING:
    from memory_portal.store.contract import DjangoMemoryStore
    from memory_portal.store.orm import (
        accept,
        add,
        choose,
        clear,
        context,
        correct,
        dismiss,
        facts,
        find,
        forget,
        forget_session,
        freeze,
        give_consent,
        keep_until,
        lift,
        lookup,
        pause,
        policy,
        purge_generation,
        resume,
        reviewed,
        submit,
        sweep,
        thaw,
        withdraw_consent,
        withdrawn,
    )
    from memory_portal.store.sanitise import clean, draft, fold, normalise_key, session_tag

_ROOMS = {
    "contract": ("DjangoMemoryStore",),
    "orm": (
        "accept",
        "add",
        "choose",
        "clear",
        "context",
        "correct",
        "dismiss",
        "facts",
        "find",
        "forget",
        "forget_session",
        "freeze",
        "give_consent",
        "keep_until",
        "lift",
        "lookup",
        "pause",
        "policy",
        "purge_generation",
        "resume",
        "reviewed",
        "submit",
        "sweep",
        "thaw",
        "withdraw_consent",
        "withdrawn",
    ),
    "sanitise": ("clean", "draft", "fold", "normalise_key", "session_tag"),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _ROOM_OF:
        return getattr(import_module(f"memory_portal.store.{_ROOM_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "KEY_LIMIT",
    "QUOTE_LIMIT",
    "SAFETY",
    "SUBJECT_LIMIT",
    "VALUE_LIMIT",
    "Actor",
    "Candidate",
    "Conflict",
    "DjangoMemoryStore",
    "Draft",
    "Fact",
    "InvalidDraft",
    "MemoryDisabled",
    "MemoryStoreError",
    "MemoryWriteRejected",
    "NotFound",
    "Outcome",
    "Recall",
    "Receipt",
    "Subject",
    "accept",
    "add",
    "choose",
    "clean",
    "clear",
    "context",
    "correct",
    "dismiss",
    "draft",
    "facts",
    "find",
    "fold",
    "forget",
    "forget_session",
    "freeze",
    "give_consent",
    "keep_until",
    "lift",
    "lookup",
    "normalise_key",
    "pause",
    "policy",
    "purge_generation",
    "resume",
    "reviewed",
    "session_tag",
    "submit",
    "sweep",
    "thaw",
    "withdraw_consent",
    "withdrawn",
]
