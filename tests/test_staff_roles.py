"""Who may open what in the admin: every address by every role, exactly."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db.models import Model
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from agent_bridge import auth
from agent_bridge.models import ExtractionJob, Import, Webhook
from memory_portal import store
from memory_portal.enums import Channel, Regime, RequestKind
from memory_portal.models import FactEvent, MemoryFact, PrivacyRequest, StaffAlert
from memory_portal.staff.roles import ROLES, group_name
from memory_portal.store import requests
from tests.figures import Figure
from tests.office import OFFICER, OPERATOR, SUPPORT, browser_of, member
from tests.people import Person

NOBODY: tuple[Any, ...] = ()
EVERYBODY = (SUPPORT, OFFICER, OPERATOR, None)
HELP = (SUPPORT, OFFICER)

PAGES: dict[str, tuple[Any, ...]] = {
    "index": EVERYBODY, "login": EVERYBODY, "password_change": EVERYBODY, "password_change_done": EVERYBODY,
    "jsi18n": EVERYBODY, "confirm": EVERYBODY, "autocomplete": NOBODY, "view_on_site": NOBODY, "logout": NOBODY,
    "policy": (OFFICER, OPERATOR), "agent_bridge_quality": (OPERATOR,),
    "memory_portal_find": HELP, "memory_portal_reveal": HELP, "memory_portal_correct": HELP, "memory_portal_forget": HELP,
    "memory_portal_erase": (OFFICER,), "memory_portal_step": NOBODY,  # a step is taken by POST only
    "auth_user_password_change": NOBODY,
}  # fmt: skip
"""Addresses that are no list of a table, by GET. Whoever is not named is refused."""

TABLES: dict[str, dict[str, tuple[Any, ...]]] = {
    **{f"memory_portal_{name}": {"changelist": HELP, "history": HELP, "change": HELP}
       for name in ("customer", "memoryfact", "proposal", "factevent", "tombstone", "consent", "factread")},
    "memory_portal_privacyrequest": {"changelist": (OFFICER,), "history": (OFFICER,), "change": (OFFICER,), "add": (OFFICER,)},
    "memory_portal_staffalert": {"changelist": (OFFICER,), "history": (OFFICER,), "change": (OFFICER,)},
    "agent_bridge_extractionjob": {"changelist": (OPERATOR,), "history": (OPERATOR,), "change": (OPERATOR,)},
    "agent_bridge_agentkey": {"changelist": (OPERATOR,), "history": (OPERATOR,), "change": (OPERATOR,), "add": (OPERATOR,)},
    "agent_bridge_webhook": {"changelist": (OPERATOR,), "history": (OPERATOR,), "change": (OPERATOR,), "add": (OPERATOR,),
                             "delete": (OPERATOR,)},
    "agent_bridge_import": {"changelist": (OPERATOR,), "history": (OPERATOR,), "change": (OPERATOR,)},
    **{name: {} for name in ("auth_user", "auth_group", "account_emailaddress", "account_emailconfirmation",
                             "mfa_authenticator", "socialaccount_socialapp", "socialaccount_socialaccount",
                             "socialaccount_socialtoken")},
}  # fmt: skip
"""Tables and their pages, by GET; what is not named is for the administrator who sets the site up, or for nobody."""
KINDS = ("changelist", "add", "history", "delete", "change")


def addresses(patterns: Any = None) -> Iterator[str]:
    """Every name of the admin's own address list."""
    if patterns is None:
        (admin,) = [found for found in get_resolver().url_patterns if getattr(found, "namespace", "") == "admin"]
        patterns = admin.url_patterns
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern.url_patterns)
        elif isinstance(pattern, URLPattern) and pattern.name and pattern.name != "app_list":
            yield pattern.name


def who_may(name: str) -> tuple[Any, ...]:
    """Raises KeyError for an address nobody thought of."""
    if name in PAGES:
        return PAGES[name]
    table, _, kind = name.rpartition("_")
    assert kind in KINDS, name
    return TABLES[table].get(kind, NOBODY)


@pytest.fixture
def rows(alice: Person) -> dict[str, list[Any]]:
    return one_of_each(alice)


def one_of_each(alice: Person) -> dict[str, list[Any]]:
    """One row of every table, and where an address wants more than a number, what it wants."""
    now = timezone.now()
    alice.agrees()
    fact = alice.fact("coffee", "Dark")
    alice.writes("tea", "Green")
    alice.says("tea", "Black", ago=0)
    gone = alice.fact("milk", "Oat")
    alice.post(reverse("forget", args=[gone.id]))
    alice.is_read_by("helper")
    key, _ = auth.issue("helper", "grocery", auth.SCOPES, now=now)
    ExtractionJob.objects.create(
        customer=alice.customer, agent="helper", profile="grocery", generation=0, run_after=now, created_at=now
    )
    Webhook.objects.create(agent="helper", profile="grocery", url="https://example.org/", created_at=now, next_at=now)
    Import.objects.create(agent="helper", profile="grocery", lines=0, created_at=now)
    asked = requests.enter(
        RequestKind.ACCESS,
        Regime.GDPR,
        Channel.LETTER,
        received_at=now - timedelta(days=1),
        staff_id=1,
        now=now,
        customer=alice.customer,
    )
    StaffAlert.objects.create(staff_id=1, at=now, customers=21)
    EmailAddress.objects.create(user=alice.customer.user, email="alice@example.org")
    about = [alice.pk, fact.id]
    return {
        "memory_portal_reveal": about, "memory_portal_correct": about, "memory_portal_forget": about,
        "memory_portal_erase": [alice.pk], "memory_portal_step": [asked.pk, "acknowledge"], "view_on_site": [1, 1],
        "auth_user_password_change": [1],
        "memory_portal_memoryfact": [fact.id], "agent_bridge_agentkey": [key.pk],
    }  # fmt: skip


def path_of(name: str, rows: dict[str, list[Any]]) -> str:
    if name in PAGES:
        return reverse(f"admin:{name}", args=rows.get(name, []))
    table, _, kind = name.rpartition("_")
    if kind in ("changelist", "add"):
        return reverse(f"admin:{name}")
    app, _, model = table.rpartition("_")
    found: type[Model] = apps.get_model(app, model)
    first = found._base_manager.order_by("pk").first()
    return reverse(f"admin:{name}", args=rows.get(table) or [first.pk if first else 1])


def opened(client: Client, path: str) -> bool:
    """Whether a page came, or the way to one. A refusal is 403, 404 or 405, or the login."""
    answer = client.get(path)
    assert answer.status_code < 500, path
    there = answer.headers.get("Location", "")
    return answer.status_code == 200 or (
        answer.status_code == 302 and not there.startswith("/admin/login") and there != "/admin/"
    )


@pytest.mark.parametrize("role", EVERYBODY)
def test_each_role_opens_exactly_its_pages(rows: dict[str, list[Any]], role: Any, figure: Figure) -> None:
    client = browser_of(member(role))
    names = [name for name in dict.fromkeys(addresses()) if name not in ("logout", "login", "confirm")]
    wrong = {
        name: opened(client, path_of(name, rows))
        for name in names
        if opened(client, path_of(name, rows)) != (role in who_may(name))
    }
    assert wrong == {}
    may = sum(role in who_may(name) for name in names)
    figure(
        "A6",
        f"{role or 'no role'}: {len(names)} addresses of the admin, {may} open, {len(names) - may} refused, 0 differ",
    )


def test_an_address_nobody_thought_of_is_noticed() -> None:
    for name in addresses():
        who_may(name)
    with pytest.raises(KeyError):
        who_may("memory_portal_newtable_changelist")
    assert set(PAGES) <= set(addresses()), "none is named that is not there"


@pytest.mark.parametrize("role", list(ROLES))
def test_a_group_holds_exactly_the_rights_of_its_role(db: None, role: Any) -> None:
    group = Group.objects.get(name=group_name(role))
    held = {(row.content_type.app_label, row.codename) for row in group.permissions.select_related("content_type")}
    assert held == {(app, name) for app, names in ROLES[role].items() for name in names}


def test_a_right_given_by_hand_to_a_role_is_taken_back_at_the_next_migration(db: None) -> None:
    from django.contrib.auth.models import Permission
    from django.core.management import call_command

    group = Group.objects.get(name="operator")
    group.permissions.add(Permission.objects.get(codename="view_customer"))
    call_command("migrate", verbosity=0)
    assert not group.permissions.filter(codename="view_customer").exists()


STEPS = [
    ("acknowledge", {}),
    ("ask-back", {}),
    ("hear-back", {}),
    ("extend", {"reason": "complex"}),
    ("answer", {"outcome": "done"}),
]


@pytest.mark.parametrize("role", [SUPPORT, OPERATOR, None])
def test_buttons_do_nothing_for_whoever_may_not_press_them(
    rows: dict[str, list[Any]], alice: Person, role: Any
) -> None:
    client = browser_of(member(role))
    before = (PrivacyRequest.objects.values().first(), ExtractionJob.objects.values("state").first(), alice.held)
    for step, data in STEPS:
        assert (
            client.post(
                reverse("admin:memory_portal_step", args=[rows["memory_portal_step"][0], step]), data
            ).status_code
            == 403
        )
    assert (
        client.post(
            reverse("admin:memory_portal_erase", args=[alice.pk]), {"reason": "customer_asked", "sure": "alice"}
        ).status_code
        == 403
    )
    if role != SUPPORT:
        for act in ("reveal", "correct", "forget"):
            data = {"purpose": "customer_asked", "value": "Light", "version": 1}
            assert (
                client.post(reverse(f"admin:memory_portal_{act}", args=rows[f"memory_portal_{act}"]), data).status_code
                == 403
            )
    if role != OPERATOR:
        job = ExtractionJob.objects.get()
        client.post(
            reverse("admin:agent_bridge_extractionjob_changelist"),
            {"action": "drop", "_selected_action": [str(job.pk)]},
        )
    assert before == (
        PrivacyRequest.objects.values().first(),
        ExtractionJob.objects.values("state").first(),
        alice.held,
    )
    assert FactEvent.objects.filter(actor_kind="staff").count() == 0


def test_staff_are_no_customers_and_open_none_of_their_pages(db: None, alice: Person) -> None:
    client = browser_of(member(SUPPORT))
    for path in ("/", "/activity/", "/take/", "/control/", "/suggestions/", "/assistant/"):
        assert client.get(path).status_code == 403, path
    assert not [name for name in addresses() if "login_as" in name or "impersonate" in name]


def test_the_accounts_behind_customers_are_nobody_s_to_open(staff: Client, alice: Person) -> None:
    behind = alice.customer.user
    assert behind
    assert str(behind) not in staff.get(reverse("admin:auth_user_changelist")).content.decode()
    assert staff.get(reverse("admin:auth_user_password_change", args=[behind.pk])).status_code == 404
    assert staff.get(reverse("admin:auth_user_change", args=[behind.pk])).headers["Location"] == "/admin/"


def test_whoever_is_made_here_is_staff(staff: Client) -> None:
    told = {
        "username": "newcomer",
        "usable_password": "true",
        "password1": "quite a long secret",
        "password2": "quite a long secret",
    }
    staff.post(reverse("admin:auth_user_add"), told)
    newcomer = get_user_model().objects.get(username="newcomer")
    assert (newcomer.is_staff, newcomer.is_superuser) == (True, False)
    assert LogEntry.objects.get().object_repr == "newcomer"


def test_a_fact_is_corrected_by_nobody_through_its_table(rows: dict[str, list[Any]], alice: Person) -> None:
    """The right to correct is a right to act on the customer's behalf, not to write into a table."""
    client = browser_of(member(OFFICER))
    fact = MemoryFact.objects.get(key="coffee")
    for page in ("change", "delete"):
        client.post(
            reverse(f"admin:memory_portal_memoryfact_{page}", args=[fact.pk]), {"value": "Light", "post": "yes"}
        )
    client.post(
        reverse("admin:memory_portal_memoryfact_changelist"),
        {"action": "delete_selected", "_selected_action": [fact.pk], "post": "yes"},
    )
    assert alice.held["coffee"] == "Dark"
    assert store.facts(alice.pk, now=timezone.now())[0].version == fact.version
