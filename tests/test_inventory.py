"""One inventory of data: every column has purpose, ground, end and recipients; notice, record and export agree with it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.utils.translation import override

from memory_portal import record
from memory_portal.columns import COLUMNS, EVERY, OUTSIDE, kinds_of
from memory_portal.inventory import BASES, KINDS, RECIPIENTS, times
from tests.figures import Figure
from tests.people import Person
from tests.test_export_is_complete import EXPORTED, personal

ROOT = Path(__file__).resolve().parent.parent
MODELS: dict[str, type[Model]] = {model._meta.label: model for model in apps.get_models(include_auto_created=True)}


def test_every_column_of_every_table_stands_in_it_once(figure: Figure) -> None:
    assert set(COLUMNS) == set(MODELS), "a new table belongs into memory_portal/columns.py"
    columns = 0
    for label, said in COLUMNS.items():
        named = " ".join(said.values()).split()
        if named == [EVERY]:
            assert MODELS[label]._meta.app_label not in ("memory_portal", "agent_bridge"), (
                "our own are named one by one"
            )
            continue
        there = [field.name for field in MODELS[label]._meta.concrete_fields]
        assert sorted(named) == sorted(there), f"{label}: each column once, in memory_portal/columns.py"
        columns += len(there)
    figure("R13", f"{columns} columns of {len(COLUMNS)} tables: 100 % with kind, purpose, ground, end and recipients")


def test_no_table_stands_beside_the_models_unnamed(db: None) -> None:
    """Tables that no model owns, such as the cache's and the months of events, are somebody's, too."""
    owned = {model._meta.db_table for model in MODELS.values()}
    ours = {"django_migrations", *OUTSIDE}
    months = re.compile(r"_(\d{4}_\d{2}|until_\d{4}_\d{2}|default)$")
    with connection.cursor() as cursor:
        there = connection.introspection.table_names(cursor)
    assert [name for name in there if months.sub("", name) not in owned | ours] == []


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_says_all_that_the_law_asks(name: str) -> None:
    kind = KINDS[name]
    with override("en"):
        for text in (kind.name, kind.holds, record.why(kind), record.kept(kind), kind.erased):
            assert str(text).strip()
            assert "%" not in str(text)
    assert bool(kind.bases) == (kind.of != "nobody")
    assert all(BASES[basis] for basis in kind.bases)
    assert all(RECIPIENTS[one] for one in kind.recipients)
    assert name in {kind for said in COLUMNS.values() for kind in said}


def test_what_is_about_customers_is_exported_or_left_out_for_a_reason(figure: Figure) -> None:
    about = {label for label, said in COLUMNS.items() for kind in said if KINDS[kind].of == "customers"}
    assert {model._meta.label for model in EXPORTED} <= about
    lines = yes = 0
    for label in about:
        for column, kind in kinds_of(label):
            told = record.exported(label, column, kind)
            assert told == "yes" or len(told) > len("no: "), (label, column)
            lines, yes = lines + 1, yes + (told == "yes")
    unseen = {model._meta.label for model in personal()} - about - {"auth.User_groups", "auth.User_user_permissions"}
    assert unseen <= {"account.EmailAddress", "account.EmailConfirmation", "admin.LogEntry"}, "those of staff"
    figure("R7", f"{lines} columns about customers: {yes} exported, {lines - yes} left out, each with its reason")


def test_the_record_in_the_repository_is_what_the_inventory_says() -> None:
    assert (ROOT / "docs" / "privacy.md").read_text("utf-8") == record.text(), "python manage.py privacy_record"


@pytest.mark.parametrize("language", [code for code, _ in settings.LANGUAGES])
def test_the_notice_is_open_to_everybody_and_says_everything_in_each_language(db: None, language: str) -> None:
    page = Client().get("/privacy", headers={"accept-language": language})
    assert page.status_code == 200
    text = page.content.decode()
    with override(language):
        for kind in KINDS.values():
            shown = kind.of == "customers"
            assert (escaped(kind.name) in text) == shown
            assert not shown or all(escaped(said) in text for said in (kind.holds, record.why(kind), record.kept(kind)))
    if language != "en":
        assert "Until you close your account." not in text


def escaped(text: Any) -> str:
    return str(text).replace("'", "&#x27;").replace('"', "&quot;")


def test_the_notice_says_what_holds_on_this_site(db: None, settings: Any) -> None:
    settings.AUDIT_MONTHS, settings.BACKUP_DAYS = 31, 17
    page = Client().get("/privacy").content.decode()
    assert "31 months." in page
    assert "for up to 17 days" in page
    assert times()["events"] == 31
    assert "on our own machines" in page
    settings.EXTRACTOR = "claude"
    page = Client().get("/privacy").content.decode()
    assert "The provider of the AI that reads conversations" in page


def test_every_page_leads_to_the_notice_and_it_knows_who_looks(alice: Person) -> None:
    for client, path in ((Client(), "/sign-in/"), (alice.client, "/"), (alice.client, "/control/")):
        assert 'href="/privacy"' in client.get(path).content.decode()
    assert "Signed in with" in alice.sees("/privacy")


def test_what_ai_noted_says_so(alice: Person, figure: Figure) -> None:
    alice.fact("coffee", "Dark roast")
    alice.writes("tea", "Green tea")
    assert alice.sees().count("Noted from them by AI.") == 1
    figure("R13", "what was noted by AI says so beside its words; what the customer wrote does not")
