"""Schemathesis against the bridge as it answers over HTTP: every phase, from the schema that it serves itself.

No answer of 5xx, none that the schema does not know, nothing without a key, nothing used after it was deleted. How many requests
that takes is read from BRIDGE_FUZZ.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.servers.basehttp import WSGIRequestHandler
from django.core.signals import request_started
from django.test.client import Client
from pytest_django import Settings

from agent_bridge import auth, exchange
from agent_bridge.models import AgentKey
from agent_bridge.problems import Problem
from memory_portal import store
from tests.figures import Figure

ROOT = Path(__file__).resolve().parent.parent
REQUESTS = int(os.environ.get("BRIDGE_FUZZ", "2500"))
DEEP = 100_000
# What is not asked here, and why. A body that fits the schema may say what is never kept (a card number), and one that does not
# fit may fit after all once its hidden characters are gone: tests/test_rest_problems.py has those answers one by one.
NOT_ASKED = ["positive_data_acceptance", "negative_data_rejection"]

# A customer who was cleared has an empty list, as one who never was; schemathesis takes the list for the thing that was deleted.
CLEARED = """
[[operations]]
include-name = "GET /bridge/v1/subjects/{subject_id}/facts"
checks.use_after_free.enabled = false
"""

# One operation after another, as the schema's links lead: from a customer's session to what is written, read and deleted there.
WALK = ["--phases", "stateful", "--mode", "positive", "--include-path-regex", "/sessions$|/subjects/|/jobs/"]


@pytest.fixture
def asked() -> Iterator[Counter[str]]:
    """How many requests came in, by method."""
    seen: Counter[str] = Counter()

    def count(environ: dict[str, Any], **_: object) -> None:
        seen[environ["REQUEST_METHOD"]] += 1

    request_started.connect(count)
    yield seen
    request_started.disconnect(count)


def fuzz(url: str, key: str, folder: Path, seed: int, *more: str) -> None:
    """One run over every operation but the one that would end the key it runs with."""
    (folder / "schemathesis.toml").write_text(CLEARED)
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{url}/bridge/v1/openapi.json"),
        *("--header", f"Authorization: Bearer {key}", "--exclude-path", "/bridge/v1/key", "--seed", str(seed)),
        *("--exclude-checks", ",".join(NOT_ASKED), "--continue-on-failure", "--no-shrink", "--warnings", "off"),
        *("--suppress-health-check", "all", "--request-timeout", "30", "--no-color", *more),
    ]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"{run.stdout[-12000:]}\n{run.stderr[-2000:]}"


def explore(live_server: Any, key: str, asked: Counter[str], folder: Path, wanted: int, figure: Figure) -> None:
    """Every operation by itself, with what fits its schema and what does not; then one after the other, as links lead."""
    seed, each = 0, min(200, max(10, wanted // 150))
    while asked.total() < wanted:
        seed += 1
        fuzz(live_server.url, key, folder, seed, "--phases", "examples,coverage,fuzzing", "-n", str(each))
        fuzz(live_server.url, key, folder, seed, *WALK, "-n", str(8 * each))
    figure("K6", f"{asked.total():,} requests: 0 5xx, 0 undocumented, 0 ignored auth; {dict(asked)}")


@pytest.fixture
def key(agent: Any, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> str:
    # Head and body of an answer are two packets; without this, each waits 40 ms for the other's receipt.
    monkeypatch.setattr(WSGIRequestHandler, "disable_nagle_algorithm", True)
    settings.BRIDGE_CALLS_PER_KEY = settings.BRIDGE_CALLS = 10**7
    settings.BRIDGE_WAITS = 0  # nobody waits for changes here
    client: Client = agent()
    return str(client.defaults["HTTP_AUTHORIZATION"]).removeprefix("Bearer ")


@pytest.mark.django_db(transaction=True)
def test_the_schema_tells_the_whole_truth(
    live_server: Any, key: str, asked: Counter[str], tmp_path: Path, figure: Figure
) -> None:
    explore(live_server, key, asked, tmp_path, REQUESTS, figure)


@pytest.mark.deep
@pytest.mark.django_db(transaction=True)
def test_the_schema_tells_the_whole_truth_at_length(
    live_server: Any, key: str, asked: Counter[str], tmp_path: Path, figure: Figure
) -> None:
    explore(live_server, key, asked, tmp_path, DEEP, figure)


# --- that it would notice ---------------------------------------------------------------------------------------------

ONE = ["--include-path-regex", "/purge_generation$", "--phases", "coverage", "-n", "5"]
Plant = Callable[[pytest.MonkeyPatch], None]


def answers_with(kind: type[Exception], *words: str) -> Plant:
    def broken(*_: object) -> int:
        raise kind(*words)

    return lambda patch: patch.setattr(store, "purge_generation", broken, raising=False)


def lets_everybody_in(patch: pytest.MonkeyPatch) -> None:
    allowed = auth.Grant(AgentKey.objects.get(), "airline", "Clearsky assistant", frozenset(auth.SCOPES))
    patch.setattr(exchange, "grant", lambda *_, **__: allowed)


def forgets_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(store, "forget_key", lambda *_, **__: store.Outcome("forgotten"), raising=False)


@pytest.mark.parametrize(
    ("plant", "how", "found"),
    [
        (answers_with(RuntimeError), ONE, "Server error"),
        (answers_with(Problem, "gone"), ONE, "Undocumented status code"),
        (lets_everybody_in, ONE, "API accepts"),
        (forgets_nothing, [*WALK, "-n", "150"], "Deleted resource still available"),
    ],
    ids=["a 5xx", "an undocumented status", "ignored auth", "use after delete"],
)
@pytest.mark.django_db(transaction=True)
def test_a_planted_fault_is_found(
    live_server: Any,
    key: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    plant: Plant,
    how: list[str],
    found: str,
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError, match=found):
        fuzz(live_server.url, key, tmp_path, 1, *how)
