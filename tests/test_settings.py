"""Production refuses to start unsafe; each refusal is one line that names the variable."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memory_portal import store

ROOT = Path(__file__).resolve().parent.parent
SAFE = {
    "ENVIRONMENT": "production",
    "SECRET_KEY": "s" * 50,
    "TOMBSTONE_KEY": "t" * 50,
    "AGENT_KEY_PEPPER": "p" * 50,
    "EXPORT_SIGNING_KEY": "e" * 50,
    "LEDGER_KEY": "l" * 50,
    "AUDIT_KEY": "a" * 50,
    "ALLOWED_HOSTS": "memory.example.com",
    "PORTAL_URL": "https://memory.example.com",
    "DATABASE_URL": "postgresql://portal@127.0.0.1/portal",
    "EMAIL_URL": "smtp://127.0.0.1:25",
}


def load(**changes: str | None) -> subprocess.CompletedProcess[str]:
    """Import the settings in a fresh process, with these variables only; None takes one away."""
    chosen = {name: value for name, value in {**SAFE, **changes}.items() if value is not None}
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "VAR_DIR") if name in os.environ}
    return subprocess.run(
        [
            sys.executable,
            "-c",
            "import memory_portal.settings as s; print('started', getattr(s, 'SESSION_COOKIE_SECURE', False))",
        ],
        env={**kept, **chosen},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_production_starts_when_everything_is_set() -> None:
    assert load().stdout.strip() == "started True"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"DEBUG": "1"}, "DEBUG"),
        ({"SECRET_KEY": None}, "SECRET_KEY"),
        ({"SECRET_KEY": "short"}, "SECRET_KEY"),
        ({"TOMBSTONE_KEY": None}, "TOMBSTONE_KEY"),
        ({"AGENT_KEY_PEPPER": None}, "AGENT_KEY_PEPPER"),
        ({"EXPORT_SIGNING_KEY": None}, "EXPORT_SIGNING_KEY"),
        ({"LEDGER_KEY": None}, "LEDGER_KEY"),
        ({"AUDIT_KEY": None}, "AUDIT_KEY"),
        ({"ALLOWED_HOSTS": None}, "ALLOWED_HOSTS"),
        ({"ALLOWED_HOSTS": "*"}, "ALLOWED_HOSTS"),
        ({"PORTAL_URL": None}, "PORTAL_URL"),
        ({"PORTAL_URL": "http://memory.example.com"}, "PORTAL_URL"),
        ({"PORTAL_URL": "https://memory.example.com/portal"}, "PORTAL_URL"),
        ({"EMAIL_URL": None}, "EMAIL_URL"),
        ({"EMAIL_URL": "filemail:///tmp/mail"}, "EMAIL_URL"),
        ({"CACHE_URL": "locmemcache://"}, "CACHE_URL"),
        ({"CACHE_URL": "dummycache://"}, "CACHE_URL"),
        ({"TOMBSTONE_KEY": "s" * 50}, "TOMBSTONE_KEY"),
        ({"METRICS_TOKEN": "short"}, "METRICS_TOKEN"),
        ({"READY_NEEDS": "database,coffee"}, "READY_NEEDS"),
        ({"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}, "ANTHROPIC_BASE_URL"),
        ({"DATABASE_URL": None}, "DATABASE_URL"),
        ({"DATABASE_URL": "sqlite:///x.db"}, "DATABASE_URL"),
        ({"ENVIRONMENT": "staging"}, "ENVIRONMENT"),
        ({"EXTRACTOR": "guess"}, "EXTRACTOR"),
        ({"EXTRACTOR": "claude"}, "ANTHROPIC_API_KEY"),
    ],
)
def test_production_refuses_to_start_and_names_what_is_wrong(changes: dict[str, str | None], named: str) -> None:
    refused = load(**changes)
    assert refused.returncode != 0
    last = refused.stderr.strip().splitlines()[-1]
    assert "ImproperlyConfigured" in last
    assert named in last


def test_the_store_is_warm_before_the_first_read() -> None:
    store.warm()
    assert store.current_policy().memory


def test_a_secret_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("f" * 60)
    assert load(SECRET_KEY=None, SECRET_KEY_FILE=str(tmp_path / "key")).returncode == 0


def test_development_makes_its_own_secrets_once_and_keeps_them_private(tmp_path: Path) -> None:
    development = dict.fromkeys(SAFE) | {"VAR_DIR": str(tmp_path), "DATABASE_URL": SAFE["DATABASE_URL"]}
    assert load(**development).returncode == 0
    kept = tmp_path / "secrets" / "secret_key"
    first = kept.read_text()
    assert load(**development).returncode == 0
    assert kept.read_text() == first
    assert len(first) >= 50
    assert kept.stat().st_mode & 0o077 == 0
