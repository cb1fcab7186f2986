"""The file a customer takes along, in three forms: JSON (signed, complete), CSV (statements, for a spreadsheet), HTML (to print).

In: what the store keeps, as plain dicts. Out: text. Imports plain words, signing and the store's names; touches no table.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from memory_portal import signing

FORMAT = "memory-portal-export"
VERSION = 1
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a spreadsheet knows a formula. Such a cell gets an apostrophe in front."""

TIMES = {"at", "watermark", "run_after"}
"""Names of times beside those in `_at`."""

COLUMNS = (
    "state", "key", "value", "category", "source", "said_at", "quote", "agent", "conversation", "created_at",
    "updated_at", "ends_at", "replaced_at",
)  # fmt: skip


def memory(kept: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    return {"format": FORMAT, "version": VERSION, "made_at": now.astimezone(UTC).isoformat(), **kept}


def as_json(kept: Mapping[str, Any], now: datetime) -> bytes:
    return orjson.dumps(signing.signed(memory(kept, now)), option=orjson.OPT_INDENT_2)


def as_csv(kept: Mapping[str, Any]) -> str:
    """Every statement a line: facts, their former versions, suggestions. Starts with a mark by which Excel knows UTF-8."""
    text = io.StringIO()
    text.write("\ufeff")
    lines = csv.writer(text, lineterminator="\r\n")
    lines.writerow(COLUMNS)
    for line in statements(kept):
        lines.writerow([tame(str(line.get(name) or "")) for name in COLUMNS])
    return text.getvalue()


def tame(cell: str) -> str:
    """A cell that no spreadsheet runs. A cell that had an apostrophe of its own before such a sign gets another."""
    return f"'{cell}" if cell.lstrip("'").startswith(FORMULA) else cell


def untamed(cell: str) -> str:
    """What the cell said before `tame`."""
    return cell[1:] if cell.startswith("'") and cell.lstrip("'").startswith(FORMULA) else cell


def statements(kept: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    for fact in kept["facts"]:
        yield _statement(fact["state"], fact)
        for former in fact["former_versions"]:
            yield _statement("former_version", {"key": fact["key"], **former})
    for asked in kept["suggestions"]:
        yield _statement("suggested_forgetting" if asked["action"] == "forget" else "suggestion", asked)


def _statement(state: str, row: Mapping[str, Any]) -> dict[str, Any]:
    renamed = {"quote": "source_quote", "conversation": "source_session_id", "ends_at": "expires_at"}
    return {name: row.get(renamed.get(name, name)) for name in COLUMNS} | {"state": state}


def readable(kept: Mapping[str, Any]) -> dict[str, Any]:
    """The same with times as times, for a page."""
    return {name: _timed(section) for name, section in kept.items()}


def _timed(item: Any) -> Any:
    if isinstance(item, Mapping):
        return {
            name: _moment(value) if name in TIMES or name.endswith("_at") else _timed(value)
            for name, value in item.items()
        }
    return [_timed(one) for one in item] if isinstance(item, list) else item


def _moment(value: Any) -> datetime | None:
    return datetime.fromisoformat(value) if value else None
