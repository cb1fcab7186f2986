"""A MemoryStore of the commerce-agents contract in plain memory: what other tests use where no database is the point."""

from __future__ import annotations

from collections.abc import Sequence

from memory_portal.store.contract import MemoryFact


class InMemoryStore:
    def __init__(self) -> None:
        self._facts: dict[str, dict[str, MemoryFact]] = {}
        self._purges: dict[str, int] = {}

    async def get_facts(self, subject_id: str) -> list[MemoryFact]:
        return [fact.model_copy() for fact in self._facts.get(subject_id, {}).values()]

    async def search_facts(self, subject_id: str, query: str) -> list[MemoryFact]:
        terms = query.lower().split()
        return [
            fact
            for fact in await self.get_facts(subject_id)
            if not terms or any(term in f"{fact.key} {fact.value} {fact.category}".lower() for term in terms)
        ]

    async def upsert_facts(self, subject_id: str, facts: Sequence[MemoryFact]) -> None:
        held = self._facts.setdefault(subject_id, {})
        for fact in facts:
            held[fact.key] = fact.model_copy()

    async def delete_fact(self, subject_id: str, key: str) -> bool:
        return self._facts.get(subject_id, {}).pop(key, None) is not None

    async def clear(self, subject_id: str) -> None:
        self._facts.pop(subject_id, None)
        self._purges[subject_id] = self._purges.get(subject_id, 0) + 1

    async def purge_generation(self, subject_id: str) -> int:
        return self._purges.get(subject_id, 0)
