"""`make demo` says in one line what is wrong and what to do, before it starts anything."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.live


def demo(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", "demo", *arguments],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": settings.DATABASE_URL, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_taken_port_is_one_line_that_names_another() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        refused = demo("--port", str(port))
    assert refused.returncode != 0
    assert refused.stderr.strip() == (
        f"CommandError: Port {port} is taken. Choose another one: make demo ARGS='--port {port + 1}'"
    )


def test_a_database_of_the_operators_own_is_not_emptied() -> None:
    refused = demo("--reset", "--port", "0")
    assert refused.returncode != 0
    assert "only empties the embedded database" in refused.stderr.strip().splitlines()[-1]


def test_a_wrong_policy_stops_it_with_the_name_of_the_setting(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text((ROOT / "memory_policy.toml").read_text().replace("tier_one_cap = 8", "tier_one_cap = -1"))
    refused = demo("--port", "0", MEMORY_POLICY=str(policy))
    assert refused.returncode != 0
    assert "limits.tier_one_cap" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    ("found", "said"),
    [("#!/bin/sh\nexit 1\n", "Python 3.11 or newer is needed")],
    ids=["an old Python"],
)
def test_an_unusable_python_is_one_line_that_says_what_to_do(tmp_path: Path, found: str, said: str) -> None:
    python = tmp_path / "python"
    python.write_text(found)
    python.chmod(0o755)
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text())
    (tmp_path / "requirements.txt").write_text("")
    refused = subprocess.run(
        ["make", "demo", f"PYTHON={python}"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert refused.returncode != 0
    assert said in refused.stderr
