"""Reads a file that a customer brings: our own JSON, CSV, or plain text with a thing a line. In: bytes. Out: lines, unjudged.

What may be kept is decided where everything is decided, in the store. Pure; imports signing and takeout.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson

from memory_portal import signing, takeout

LINES = 200
BYTES = 2 * 1024 * 1024
KEY_WORDS = 4
"""How many first words of a line without a name become its name."""


class Unreadable(Exception):
    """`why` is one of "empty", "not_text", "not_ours", "too_many"."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True, slots=True)
class Line:
    key: str
    value: str
    category: str


@dataclass(frozen=True, slots=True)
class Brought:
    lines: tuple[Line, ...]
    verdict: signing.Verdict | None = None
    """What the signature says, for a JSON file of ours."""


def read(raw: bytes, *, default_category: str) -> Brought:
    """Raises Unreadable. Nothing is cut: a file with more lines than LINES is refused whole."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable("not_text") from error
    if "\0" in text:
        raise Unreadable("not_text")
    if text.lstrip().startswith(("{", "[")):
        return _json(text)
    found = tuple(islice(_rows(text, default_category), LINES + 1))
    return Brought(_enough(found))


def _enough(lines: tuple[Line, ...]) -> tuple[Line, ...]:
    if not lines:
        raise Unreadable("empty")
    if len(lines) > LINES:
        raise Unreadable("too_many")
    return lines


def _json(text: str) -> Brought:
    try:
        envelope = orjson.loads(text)
        facts = envelope["memory"]["facts"]
        lines = tuple(
            Line(_text(fact["key"]), _text(fact["value"]), _text(fact["category"])) for fact in islice(facts, LINES + 1)
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Unreadable("not_ours") from error
    return Brought(_enough(lines), signing.checked(envelope))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _rows(text: str, category: str) -> Iterator[Line]:
    """CSV where the first line names a column `value`, else a line each: `name: what is so`, or only what is so."""
    first = text.lstrip().partition("\n")[0].lower()
    if "," in first and "value" in [cell.strip(' "\r') for cell in first.split(",")]:
        yield from _table(text, category)
        return
    for line in text.splitlines():
        if what := line.strip().lstrip("-*•").strip():
            name, colon, rest = what.partition(":")
            named = colon and rest.strip() and len(name.split()) <= KEY_WORDS
            yield Line(name.strip(), rest.strip(), category) if named else Line(_first_words(what), what, category)


def _table(text: str, category: str) -> Iterator[Line]:
    table = csv.DictReader(io.StringIO(text.lstrip(), newline=""))
    table.fieldnames = [name.strip().lower() for name in table.fieldnames or []]
    try:
        for row in table:
            cells = {name: takeout.untamed(cell) for name, cell in row.items() if isinstance(cell, str)}
            if cells.get("value", "").strip() and cells.get("state", "active") in ("", "active", "frozen"):
                value = cells["value"]
                yield Line(cells.get("key") or _first_words(value), value, cells.get("category") or category)
    except csv.Error as error:
        raise Unreadable("not_text") from error


def _first_words(text: str) -> str:
    return " ".join(text.split()[:KEY_WORDS])[:48]
