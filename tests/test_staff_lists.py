"""The staff's lists give nothing away: no search, filter, order or button reaches what was said, and their log holds none of it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.db.models import Model
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from agent_bridge import auth
from agent_bridge.models import AgentKey, ExtractionJob, JobState
from memory_portal import store
from memory_portal.models import Customer, FactRevision, MemoryFact, Proposal
from memory_portal.staff.tables import MOST, Table
from tests.figures import Figure
from tests.office import OFFICER, SUPPORT, browser_of, member
from tests.people import Person

OURS = [
    model
    for model in admin.site._registry
    if model._meta.app_label in ("memory_portal", "agent_bridge") or model._meta.label == "auth.User"
]
LOOKUPS = ("", "exact", "startswith", "icontains", "regex", "gt", "in", "isnull", "contains", "0", "len")
CANARY = "zephyrquilt"


def listing(model: type[Model]) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


@pytest.fixture
def filled(alice: Person) -> Person:
    alice.agrees()
    fact = alice.fact("coffee", CANARY, quote=f"I like {CANARY}")
    alice.writes("tea", f"{CANARY} green")
    alice.says("tea", f"{CANARY} black", ago=0)
    data = {"value": f"{CANARY} light", "category": "preference", "version": fact.version}
    alice.post(reverse("correct", args=[fact.id]), data)
    now = timezone.now()
    ExtractionJob.objects.create(
        customer=alice.customer, agent="helper", profile="grocery", generation=0, run_after=now, created_at=now,
        turns=[{"role": "user", "text": CANARY}], state=JobState.PARKED, outcome="garbage",
    )  # fmt: skip
    return alice


def test_the_address_filters_by_nothing_but_what_the_page_offers(staff: Client, figure: Figure) -> None:
    """Django's admin takes any field of the table itself: `?value__startswith=z` would spell a value out, letter by letter."""
    request = staff.get("/admin/").wsgi_request
    tried, taken = 0, []
    for model in OURS:
        page = admin.site.get_model_admin(model)
        assert isinstance(page, Table)
        names = [field.name for field in model._meta.get_fields() if field.name not in page.offered(request)]
        for name in [*names, "customer__facts__value", "customer__facts__source_quote", "fact__value", "key__digest"]:
            terms = [f"{name}__{lookup}" if lookup else name for lookup in LOOKUPS]
            tried += len(terms)
            taken += [(model, term) for term in terms if page.lookup_allowed(term, "z", request)]
    assert taken == []
    figure("A6", f"{tried} filters by fields of {len(OURS)} tables written into the address: {len(taken)} taken")


SECRET = {MemoryFact: ("value", "source_quote", "topics", "vector"), Proposal: ("value", "source_quote", "topics", "value_mac"),
          ExtractionJob: ("turns",), AgentKey: ("digest",), Customer: ("never_words", "salt")}  # fmt: skip


@pytest.mark.parametrize(("model", "name"), [(model, name) for model, names in SECRET.items() for name in names])
def test_what_was_said_cannot_be_spelled_out_by_filters(
    staff: Client, filled: Person, model: type[Model], name: str
) -> None:
    for lookup in ("startswith", "icontains", "isnull"):
        assert staff.get(listing(model), {f"{name}__{lookup}": CANARY[:2]}).status_code == 400


def test_nothing_secret_is_among_what_a_page_offers() -> None:
    for model, names in SECRET.items():
        page = admin.site.get_model_admin(model)
        shown = {*page.list_display, *page.offered(RequestFactory().get("/"))}  # type: ignore[attr-defined]
        assert shown.isdisjoint(names)
        assert page.sortable_by == ()


@pytest.mark.parametrize("term", [f"{CANARY} green", CANARY[:4], "coffee"])
def test_no_search_reaches_what_was_said(filled: Person, term: str) -> None:
    client = browser_of(member(OFFICER))
    request = client.get("/admin/").wsgi_request
    for model in OURS:
        page = admin.site.get_model_admin(model)
        if page.has_view_permission(request):
            found = client.get(listing(model), {"q": term})
            assert found.status_code == 200
            if page.get_search_fields(request):
                assert len(found.context["cl"].result_list) == 0, model
            assert CANARY in term or CANARY not in found.content.decode()


def test_an_order_written_into_the_address_changes_nothing(filled: Person) -> None:
    client = browser_of(member(SUPPORT))
    orders = {
        tuple(row.pk for row in client.get(listing(MemoryFact), {"o": order}).context["cl"].result_list)
        for order in ("", "3", "-3", "4.-5")
    }
    assert len(orders) == 1
    assert client.get(listing(MemoryFact), {"_to_field": "value", "_popup": "1"}).status_code == 400


def test_there_is_no_button_that_takes_values_along(filled: Person) -> None:
    known = {"seen", "retry", "drop", "revoke", "pause", "resume", "delete_selected"}
    for model in OURS:
        page = admin.site.get_model_admin(model)
        actions = set(page.actions or ())
        assert actions <= known, model
    client = browser_of(member(OFFICER))
    for model in (MemoryFact, Proposal, Customer):
        for more in ({"format": "csv"}, {"e": "1"}, {"export": "csv"}, {"all": ""}):
            assert CANARY not in client.get(listing(model), more).content.decode()
    about = {"app_label": "memory_portal", "model_name": "proposal", "field_name": "fact"}
    for term in ("", CANARY):
        assert CANARY not in client.get(reverse("admin:autocomplete"), {**about, "term": term}).content.decode()


def test_the_admin_s_own_log_and_history_hold_no_value(filled: Person, staff: Client, figure: Figure) -> None:
    """Everything that can be done is done once, with the word planted wherever a form takes words."""
    fact = store.facts(filled.pk, now=timezone.now())[0]
    about = [filled.pk, fact.id]
    asked = {"purpose": "complaint"}
    assert CANARY in staff.post(reverse("admin:memory_portal_reveal", args=about), asked).content.decode()
    staff.post(
        reverse("admin:memory_portal_correct", args=about),
        {**asked, "value": f"{CANARY} again", "version": fact.version},
    )
    staff.post(reverse("admin:memory_portal_forget", args=about), asked)
    received = (timezone.now() - timedelta(days=1)).strftime("%Y-%m-%dT%H:%M")
    told = {"who": "alice", "kind": "access", "regime": "gdpr", "channel": "letter", "received_at": received}
    assert staff.post(reverse("admin:memory_portal_privacyrequest_add"), told | {"note": CANARY}).status_code == 302
    assert staff.post(reverse("admin:memory_portal_privacyrequest_add"), told | {"who": CANARY}).status_code == 200
    key = {"name": "helper", "profile": "grocery", "scopes": [auth.READ], "days": 30}
    assert staff.post(reverse("admin:agent_bridge_agentkey_add"), key).status_code == 302
    staff.post(listing(ExtractionJob), {"action": "drop", "_selected_action": [str(ExtractionJob.objects.get().pk)]})
    staff.post(reverse("admin:memory_portal_erase", args=[filled.pk]), {"reason": "customer_asked", "sure": "alice"})
    entries = list(LogEntry.objects.values())
    assert {row["object_repr"].split()[0] for row in entries} == {"request", "helper"}
    assert CANARY not in str(entries)
    assert not any(CANARY in str(model()) for model in (MemoryFact, Proposal, FactRevision))
    figure("A6", f"the admin's log after each thing staff can do: {len(entries)} entries, 0 with the planted word")


def test_a_list_looks_no_further_than_a_thousand_rows(alice: Person) -> None:
    now = timezone.now()
    MemoryFact.objects.bulk_create(
        MemoryFact(
            customer=alice.customer,
            key=f"k{n}",
            value="v",
            category="preference",
            said_at=now,
            created_at=now,
            origin="agent",
        )
        for n in range(MOST + 20)
    )
    client = browser_of(member(SUPPORT))
    page = client.get(listing(MemoryFact), {"p": "20"})
    assert "The latest 1000 facts; older ones by their customer" in page.content.decode()
    assert len(page.context["cl"].result_list) == 50
    assert client.get(listing(MemoryFact), {"p": "21"}).status_code == 302


@pytest.mark.parametrize("number", [1, 3])
def test_the_customer_s_page_asks_the_same_number_of_times_however_much_there_is(alice: Person, number: int) -> None:
    for n in range(number):
        alice.fact(f"thing_{n}", "Dark", session=f"s{n}")
        alice.says(f"thing_{n}", "Grey", ago=0, quote="", agent="other")
        alice.is_read_by(f"agent {n}")
    client = browser_of(member(OFFICER))
    with CaptureQueriesContext(connection) as asked:
        page = client.get(reverse("admin:memory_portal_customer_change", args=[alice.pk]))
    assert page.status_code == 200
    assert len(asked) == 14, [query["sql"] for query in asked]
    assert not [query["sql"] for query in asked if '"value"' in query["sql"]], "it is not even read"
