"""The staff's tables: everything visible but what was said; nothing to add, change or delete."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memory_portal import store
from memory_portal.models import Consent, Customer, FactEvent, FactRead, MemoryFact, Proposal, Tombstone
from tests.people import Person

TABLES = [Customer, MemoryFact, FactEvent, Proposal, Tombstone, Consent, FactRead]
SECRETS = ("Verydarkroast", "Palelightroast", "Mediumroast", "Peanutssesame", "Lotteryword")


@pytest.fixture
def filled(alice: Person) -> Person:
    """One row in every table, with a value planted wherever one can be."""
    alice.agrees()
    store.choose(alice.pk, {"never_words": ["Lotteryword"]}, alice.actor, now=timezone.now())
    alice.fact("food_allergy", "Peanutssesame", category="safety")
    fact = alice.fact("coffee", "Verydarkroast", quote="I like Verydarkroast")
    data = {"value": "Palelightroast", "category": "preference", "version": fact.version}
    alice.post(reverse("correct", args=[fact.id]), data)
    alice.says("coffee", "Mediumroast", ago=0)
    gone = alice.fact("tea", "Verydarkroast green")
    alice.post(reverse("forget", args=[gone.id]))
    alice.is_read_by("helper")
    return alice


@pytest.mark.parametrize("table", TABLES)
def test_lists_and_pages_show_the_row_and_no_value(staff: Client, filled: Person, table: type[MemoryFact]) -> None:
    name = f"admin:memory_portal_{table._meta.model_name}"
    rows = list(table._base_manager.all())
    assert rows
    listed = staff.get(reverse(f"{name}_changelist"))
    assert listed.status_code == 200
    pages = [listed, *(staff.get(reverse(f"{name}_change", args=[row.pk])) for row in rows)]
    for page in pages:
        assert page.status_code == 200
        for secret in SECRETS:
            assert secret.lower() not in page.content.decode().lower(), (table, secret)
        assert b'name="_save"' not in page.content


@pytest.mark.parametrize("table", TABLES)
def test_nothing_is_added_changed_or_deleted_here(staff: Client, filled: Person, table: type[MemoryFact]) -> None:
    name = f"admin:memory_portal_{table._meta.model_name}"
    row = table._base_manager.first()
    assert row
    assert staff.get(reverse(f"{name}_add")).status_code == 403
    assert staff.get(reverse(f"{name}_delete", args=[row.pk])).status_code == 403
    assert staff.post(reverse(f"{name}_change", args=[row.pk]), {"key": "changed"}).status_code == 403
    before = table._base_manager.count()
    staff.post(reverse(f"{name}_changelist"), {"action": "delete_selected", "_selected_action": [row.pk]})
    assert table._base_manager.count() == before


@pytest.mark.parametrize("term", ["alice", "alice@example.org", "ALICE@example.org"])
def test_a_customer_is_found_by_exact_id_or_address_only(staff: Client, alice: Person, bob: Person, term: str) -> None:
    path = reverse("admin:memory_portal_customer_changelist")
    assert "1 customer" in staff.get(path, {"q": term}).content.decode()
    for part in ("alic", "example.org", "%", "alice' OR 1=1 --"):
        assert "0 customers" in staff.get(path, {"q": part}).content.decode()


def test_facts_are_searched_by_customer_and_never_by_what_they_say(staff: Client, filled: Person, bob: Person) -> None:
    bob.fact("coffee", "Decaf")
    path = reverse("admin:memory_portal_memoryfact_changelist")
    assert "2 facts" in staff.get(path, {"q": "alice"}).content.decode()
    assert "0 facts" in staff.get(path, {"q": "Palelightroast"}).content.decode()


def test_no_list_counts_the_whole_table(staff: Client) -> None:
    for table in TABLES:
        assert admin.site.get_model_admin(table).show_full_result_count is False


def test_customers_do_not_get_in(alice: Person) -> None:
    assert alice.get(reverse("admin:index")).status_code == 302
    assert alice.get(reverse("admin:memory_portal_memoryfact_changelist")).status_code == 302
