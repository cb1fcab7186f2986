"""Walls that the import contracts cannot see: who writes facts, and who reads the clock."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = [path for app in ("memory_portal", "agent_bridge") for path in (ROOT / app).rglob("*.py")]
WRITERS = {"desk.py", "orm.py", "acts.py"}
WRITING = {"create", "bulk_create", "update", "bulk_update", "delete", "update_or_create", "get_or_create", "raw"}
SQL = re.compile(r"(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM)\s+memory_portal_(?:memoryfact|factrevision)\b", re.IGNORECASE)


def calls(path: Path) -> list[tuple[int, str]]:
    """Each call of a method in the file, as dotted text with its line."""
    tree = ast.parse(path.read_text("utf-8"))
    return [(node.lineno, ast.unparse(node.func)) for node in ast.walk(tree) if isinstance(node, ast.Call)]


def writes_facts(call: str) -> bool:
    root, _, method = call.rpartition(".")
    return method in WRITING and ("MemoryFact" in root or ".facts" in root or "FactRevision" in root)


def writing(path: Path) -> list[tuple[int, str]]:
    """Where the file writes facts or former versions, by the ORM or in a statement of its own."""
    texts = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Constant)]
    said = [(node.lineno, found[0]) for node in texts for found in SQL.finditer(str(node.value))]
    return said + [found for found in calls(path) if writes_facts(found[1])]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_facts_are_written_in_the_stores_own_rooms_only(path: Path) -> None:
    if path.parent.name == "store" and path.name in WRITERS:
        return
    assert writing(path) == []


def test_the_walk_finds_the_writers() -> None:
    found = {path.name for path in SOURCES if writing(path)}
    assert {"desk.py", "orm.py"} <= found <= WRITERS
    statements = {text.split()[0] for path in SOURCES for _, text in writing(path) if SQL.match(text)}
    assert statements == {"DELETE", "INSERT", "UPDATE"}


PURE = [
    "sanitise",
    "write_filter",
    "policy",
    "dedupe",
    "intake",
    "recall",
    "fence",
    "words",
    "sentences",
    "vocabulary",
    "types",
]


@pytest.mark.parametrize("room", PURE)
def test_the_pure_rooms_never_read_the_clock(room: str) -> None:
    clocks = {"now", "utcnow", "today", "time", "monotonic"}
    asked = calls(ROOT / "memory_portal" / "store" / f"{room}.py")
    assert [call for _, call in asked if call.rpartition(".")[2] in clocks] == []
