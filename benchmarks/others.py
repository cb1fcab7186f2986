"""Contestants that keep the same facts their own way: LangGraph's PostgresStore, mem0, and one JSON file for everybody.

They run in an environment of their own (benchmarks/requirements.txt) and see no settings of ours. Nothing here leaves the machine: mem0
is given vectors made from a hash instead of a model, which makes it faster than it can be, and its reports home are switched off.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Act = Callable[[int], object]

TABLES = """
INSERT INTO store (prefix, key, value, created_at, updated_at)
SELECT 'facts.c' || (c.id - low.id + 1), f.key, jsonb_build_object('key', f.key, 'value', f.value, 'category', f.category), f.created_at,
    f.updated_at
FROM memory_portal_memoryfact AS f JOIN memory_portal_customer AS c ON c.id = f.customer_id
CROSS JOIN (SELECT min(id) AS id FROM memory_portal_customer) AS low
WHERE c.profile = %s AND c.subject_id LIKE 'c%%' ON CONFLICT DO NOTHING
"""


def langgraph(settings: Mapping[str, Any]) -> Any:
    from langgraph.store.postgres import PostgresStore
    from psycopg import Connection
    from psycopg.rows import dict_row

    connection = Connection.connect(settings["url"], autocommit=True, prepare_threshold=0, row_factory=dict_row)
    return PostgresStore(connection)


def langgraph_tables(settings: Mapping[str, Any]) -> Act:
    """Fills its table with our facts, once, for the contestants below."""
    store = langgraph(settings)
    store.setup()
    with store.conn.cursor() as cursor:
        cursor.execute("TRUNCATE store")
        cursor.execute(TABLES, (settings["profile"],))
        cursor.execute("VACUUM (ANALYZE) store")
    return lambda number: None


def langgraph_read(settings: Mapping[str, Any]) -> Act:
    """Layer 1 as its interface allows it: the rules by a filter, and the latest of the rest."""
    store = langgraph(settings)

    def read(number: int) -> object:
        place = ("facts", f"c{number}")
        first = store.search(place, filter={"category": "constraint"}, limit=100)
        return first + store.search(place, limit=8)

    return read


def langgraph_read_in_one(settings: Mapping[str, Any]) -> Act:
    """The same with one call, cut by hand: kinder to it."""
    store = langgraph(settings)

    def read(number: int) -> object:
        found = store.search(("facts", f"c{number}"), limit=100)
        first = [item for item in found if item.value["category"] == "constraint"]
        return (first + [item for item in found if item.value["category"] != "constraint"])[:8]

    return read


def langgraph_put(settings: Mapping[str, Any]) -> Act:
    store, turn = langgraph(settings), itertools.count()

    def put(number: int) -> object:
        value = {"key": "k", "value": f"a new value, the {next(turn)}th of its kind", "category": "preference"}
        store.put(("facts", f"c{number}"), f"fact_{number % 20}", value, index=False)
        return None

    return put


# --- one JSON file ------------------------------------------------------------------------------------------------------


class File:
    """All customers in one file, read for each read and replaced for each write."""

    def __init__(self, customers: int, each: int) -> None:
        self.path = Path(tempfile.mkdtemp()) / "memory.json"
        fact = {"value": "v" * 90, "category": "preference", "updated_at": "2026-05-14T14:00:00+00:00"}
        self.write({f"c{n}": {f"fact_{f}": fact for f in range(each)} for n in range(1, customers + 1)})

    def read(self) -> Any:
        return json.loads(self.path.read_text("utf-8"))

    def write(self, held: Any) -> None:
        fresh = self.path.with_suffix(".new")
        with fresh.open("w", encoding="utf-8") as file:
            json.dump(held, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.path)


def json_read(settings: Mapping[str, Any]) -> Act:
    file = File(settings["json_customers"], settings["each"])

    def read(number: int) -> object:
        held = file.read()[f"c{number % settings['json_customers'] + 1}"]
        return sorted(held.items(), key=lambda item: item[1]["category"] != "constraint")[:8]

    return read


def json_upsert(settings: Mapping[str, Any]) -> Act:
    file = File(settings["json_customers"], settings["each"])

    def upsert(number: int) -> object:
        held = file.read()
        held[f"c{number % settings['json_customers'] + 1}"][f"fact_{number % 20}"]["value"] = f"new {number}"
        file.write(held)
        return None

    return upsert


# --- mem0 ---------------------------------------------------------------------------------------------------------------


def mem0(settings: Mapping[str, Any]) -> Any:
    folder = tempfile.mkdtemp()
    os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=folder, ANONYMIZED_TELEMETRY="False", OPENAI_API_KEY="none")
    from mem0 import Memory

    kept = {"provider": settings["kept"], "config": {"path": f"{folder}/vectors", "embedding_model_dims": 64}}
    memory = Memory.from_config({"vector_store": kept, "history_db_path": f"{folder}/history.db"})
    memory.embedding_model.embed = lambda text, *more, **named: [
        byte / 255 for byte in hashlib.shake_256(str(text).encode()).digest(64)
    ]
    memory.embedding_model.embed_batch = lambda texts, *more, **named: [
        memory.embedding_model.embed(text) for text in texts
    ]
    for number in range(1, settings["mem0_customers"] + 1):
        for fact in range(settings["each"]):
            memory.add(f"fact {fact} of customer {number}", user_id=f"c{number}", infer=False)
    return memory


def mem0_read(settings: Mapping[str, Any]) -> Act:
    """Everything it holds of one customer: it has no layers."""
    memory = mem0(settings)
    return lambda number: memory.get_all(filters={"user_id": f"c{number % settings['mem0_customers'] + 1}"}, top_k=20)


def mem0_search(settings: Mapping[str, Any]) -> Act:
    memory = mem0(settings)
    return lambda number: memory.search(
        f"fact {number % 20}", filters={"user_id": f"c{number % settings['mem0_customers'] + 1}"}, top_k=8
    )


def mem0_add(settings: Mapping[str, Any]) -> Act:
    memory = mem0(settings)
    return lambda number: memory.add(
        f"new fact {number}", user_id=f"c{number % settings['mem0_customers'] + 1}", infer=False
    )
