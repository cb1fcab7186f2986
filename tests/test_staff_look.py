"""The staff's pages in a browser: nothing inline, nothing wider than the screen, nothing axe complains about; a walk to a value."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect

from agent_bridge.models import DaySpend, ExtractionJob, JobState
from memory_portal import store
from memory_portal.enums import Channel, Regime, RequestKind
from memory_portal.models import FactEvent, StaffAlert
from memory_portal.store import requests
from tests.office import OFFICER, OPERATOR, PASSWORD, browser_of, member
from tests.people import Person
from tests.scenes import furnish
from tests.test_accessible import violations

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def fresh_limits() -> None:
    cache.clear()


def full(who: Person) -> dict[str, list[str]]:
    """Something on every page; the pages of each role, those with forms after those with lists."""
    furnish(who)
    now = timezone.now()
    for number, kind in enumerate(RequestKind):
        requests.enter(
            kind,
            list(Regime)[number % 3],
            Channel.LETTER,
            received_at=now - timedelta(days=9 * number),
            staff_id=1,
            now=now,
            customer=who.customer,
        )
    StaffAlert.objects.create(staff_id=77, at=now, customers=23)
    for day in range(4):
        ExtractionJob.objects.create(
            customer=who.customer, agent="shopping assistant", profile="grocery", generation=0, run_after=now, state=JobState.DONE,
            created_at=now, finished_at=now - timedelta(days=day), extractor="claude", prompt_version="3fa9", cost=1,
            counts={"learned": 2, "proposed/quoted_text": 1, "refused/no_quote": 2 + day},
        )  # fmt: skip
    DaySpend.objects.create(day=now.date(), tokens=123_456)
    fact = store.facts(who.pk, now=now)[0]
    about = [who.pk, fact.id]
    tables = (
        "customer",
        "memoryfact",
        "proposal",
        "factevent",
        "tombstone",
        "consent",
        "factread",
        "privacyrequest",
        "staffalert",
    )
    bridge = ("extractionjob", "agentkey", "webhook", "import")
    return {
        OFFICER: [
            reverse("admin:index"),
            *(reverse(f"admin:memory_portal_{name}_changelist") for name in tables),
            *(
                reverse(f"admin:memory_portal_{name}_change", args=[row.pk])
                for name, row in (("customer", who), ("privacyrequest", who.customer.requests.first()))
            ),  # type: ignore[attr-defined, union-attr]
            *(reverse(f"admin:memory_portal_{act}", args=about) for act in ("reveal", "correct", "forget")),
            reverse("admin:memory_portal_erase", args=[who.pk]),
            reverse("admin:memory_portal_privacyrequest_add"),
            reverse("admin:confirm"),
        ],
        OPERATOR: [
            reverse("admin:index"),
            reverse("admin:policy"),
            reverse("admin:agent_bridge_quality"),
            *(reverse(f"admin:agent_bridge_{name}_changelist") for name in bridge),
            reverse("admin:agent_bridge_agentkey_add"),
            reverse("admin:agent_bridge_webhook_add"),
        ],
    }


def opened(browser: Browser, live_server: Any, user: User, **options: Any) -> Page:
    context = browser.new_context(base_url=live_server.url, **options)
    context.add_cookies(
        [{"name": "sessionid", "value": browser_of(user).cookies["sessionid"].value, "url": live_server.url}]
    )
    return context.new_page()


def test_no_page_of_staff_breaks_a_rule(browser: Browser, live_server: Any, alice: Person) -> None:
    looks = (({"width": 320, "height": 800}, "light"), ({"width": 1280, "height": 800}, "dark"))
    found: list[str] = []
    for role, paths in full(alice).items():
        page = opened(browser, live_server, member(role), reduced_motion="reduce")  # type: ignore[arg-type]
        errors: list[str] = []
        page.on("console", lambda said, errors=errors: errors.append(said.text) if said.type == "error" else None)  # type: ignore[misc]
        for number, path in enumerate(paths):
            size, scheme = looks[number % 2]
            page.set_viewport_size(size)  # type: ignore[arg-type]
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            answer = page.goto(path)
            assert answer is not None
            assert answer.status == 200, path
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                found.append(f"{path} {size['width']}: wider than the screen")
            found += [f"{path}: {error}" for error in errors]
            found += [f"{path} {size['width']} {scheme}: {problem}" for problem in violations(page)]
            errors.clear()  # axe tries styles of its own
        page.context.close()
    assert found == []


def test_staff_walk_from_the_front_page_to_a_value_and_prove_themselves_on_the_way(
    browser: Browser, live_server: Any, alice: Person
) -> None:
    alice.fact("coffee", "Verydarkroast")
    user = member(OFFICER)
    page = opened(browser, live_server, user, java_script_enabled=False)
    page.context.clear_cookies()
    page.context.add_cookies(
        [
            {
                "name": "sessionid",
                "value": browser_of(user, fresh=False).cookies["sessionid"].value,
                "url": live_server.url,
            }
        ]
    )
    page.goto("/admin/")
    page.get_by_label("Exact customer id or e-mail address").fill("alice@example.org")
    page.get_by_role("button", name="Find").click()
    page.get_by_role("link", name="Look Coffee").click()
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Confirm").click()
    page.get_by_label("A complaint").check()
    page.get_by_role("button", name="Show it").click()
    expect(page.get_by_text("Verydarkroast", exact=True)).to_be_visible()
    page.get_by_role("link", name="Back to the customer").click()
    expect(page.get_by_text("Verydarkroast")).to_have_count(0)
    assert FactEvent.objects.get(kind="revealed").code == "complaint"
    page.context.close()
