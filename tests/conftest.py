"""The small cast every test uses, and the fixed time they live at. Time is an argument: nothing here reads the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client, override_settings
from django.utils import timezone, translation
from playwright.sync_api import Browser
from pytest_django import DjangoDbBlocker, Settings

from agent_bridge import auth
from tests.live import chromium
from tests.people import BACKEND, Person, person, proves

NOW = datetime(2026, 5, 14, 14, 0, tzinfo=UTC)


@pytest.fixture
def now() -> datetime:
    return NOW


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    """Between tests on real transactions Django empties every table; the events' own guard would refuse it."""
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE memory_portal_factevent DISABLE TRIGGER never_emptied")


@pytest.fixture
def agent(db: None) -> Callable[..., Client]:
    """An agent of a profile with a key of its own: `agent()` may do everything, `agent(auth.READ, profile="grocery")` little."""

    def signed_in(*scopes: str, profile: str = "airline", name: str = "Clearsky assistant") -> Client:
        _, key = auth.issue(name, profile, scopes or auth.SCOPES, now=timezone.now())
        return Client(headers={"Authorization": f"Bearer {key}"})

    return signed_in


@pytest.fixture(scope="session", autouse=True)
def limits_of_this_process() -> Iterator[None]:
    """Tries are counted in memory here: the site counts them in a table, which tests without a database lack."""
    with override_settings(CACHES={"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}):
        yield


@pytest.fixture(autouse=True)
def language_of_this_test() -> Iterator[None]:
    """A page read in another language leaves its thread speaking it; the next test begins in the site's own."""
    with translation.override(settings.LANGUAGE_CODE):
        yield


@pytest.fixture(autouse=True)
def ledger_of_this_test(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file outside the database, for this process and those it starts: with another test's lines in it, the database,
    which was emptied since, would be an old copy.
    """
    settings.ERASURE_LEDGER = tmp_path / "erasures" / "ledger.jsonl"
    monkeypatch.setenv("ERASURE_LEDGER", str(settings.ERASURE_LEDGER))
    settings.AUDIT_WITNESS = tmp_path / "audit" / "witness.jsonl"


@pytest.fixture
def alice(db: None) -> Person:
    return person("alice")


@pytest.fixture
def bob(db: None) -> Person:
    return person("bob")


@pytest.fixture
def staff(db: None) -> Client:
    client = Client()
    user = get_user_model().objects.create_superuser("staff", "staff@example.org", "a long password of staff")
    client.force_login(user, backend=BACKEND)
    proves(client, user)
    return client


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window. Playwright runs an event loop in this thread, in which Django would refuse its database."""
    with pytest.MonkeyPatch.context() as patch, chromium() as found:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        yield found
