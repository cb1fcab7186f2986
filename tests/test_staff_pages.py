"""What else staff read: the policy as loaded, charts of how reading goes, a customer's page as each role sees it."""

from __future__ import annotations

import re
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as configured
from django.urls import reverse
from django.utils import timezone

from agent_bridge import charts
from agent_bridge.models import ExtractionJob, JobState
from agent_bridge.quality import Figures
from memory_portal import store
from memory_portal.enums import ActorKind
from tests.office import OFFICER, OPERATOR, SUPPORT, browser_of, member
from tests.people import Person


def row(day: int, learned: int, proposed: int, refused: int, **reasons: int) -> Figures:
    found = Figures(date(2026, 5, day), "claude", "abc", learned=learned, proposed=proposed, refused=refused)
    found.reasons.update({code.replace("__", "/"): number for code, number in reasons.items()})
    return found


def test_a_day_s_bars_stand_on_each_other_and_fill_what_they_count() -> None:
    found = charts.days([row(14, 2, 1, 1), row(14, 2, 0, 0), row(13, 0, 0, 3)])
    assert [day.day.day for day in found] == [13, 14], "the oldest on the left"
    bars = found[1].bars
    assert [(bar.kind, bar.number) for bar in bars] == [("learned", 4), ("proposed", 1), ("refused", 1)]
    assert sum(bar.height for bar in bars) == pytest.approx(charts.HEIGHT, abs=0.2), "the highest day fills the chart"
    for lower, upper in pairwise(bars):
        assert upper.y + upper.height == pytest.approx(lower.y, abs=0.2)
    assert found[0].bars[0].height == pytest.approx(charts.HEIGHT / 2)
    assert all(0 <= bar.x <= bar.x + bar.width <= charts.WIDTH for day in found for bar in day.bars)


def test_where_nothing_was_claimed_there_is_no_chart() -> None:
    assert charts.days([row(14, 0, 0, 0)]) == charts.days([]) == []
    assert charts.reasons([]) == []


def test_reasons_are_ranked_and_the_longest_bar_is_the_most_frequent() -> None:
    found = charts.reasons(
        [row(14, 0, 1, 5, refused__no_quote=4, proposed__quoted_text=1), row(13, 0, 0, 2, refused__no_quote=2)]
    )
    assert [(bar.name, bar.number, bar.kind) for bar in found] == [
        ("refused/no_quote", 6, "refused"),
        ("proposed/quoted_text", 1, "proposed"),
    ]
    assert found[0].width == charts.LONGEST
    assert len(charts.reasons([row(14, 0, 0, 1, **{f"refused__r{n}": n for n in range(1, 40)})])) == charts.MOST_REASONS


def test_the_charts_are_drawn_without_a_style_or_a_script(alice: Person) -> None:
    now = timezone.now()
    ExtractionJob.objects.create(
        customer=alice.customer, agent="a", profile="grocery", generation=0, run_after=now, created_at=now, finished_at=now,
        state=JobState.DONE, extractor="claude", prompt_version="abc", cost=1, counts={"learned": 3, "refused/no_quote": 1},
    )  # fmt: skip
    page = browser_of(member(OPERATOR)).get(reverse("admin:agent_bridge_quality")).content.decode()
    main = page.partition('id="content-main"')[2].partition("</main>")[0]
    assert re.findall(r'<rect class="bar (\w+)"', main) == ["learned", "refused", "refused"]
    assert "<title>" in main
    assert not re.search(r"style=|<style|<script|on\w+=", main)


def test_the_policy_is_shown_as_it_is_loaded(db: None, settings: Any, tmp_path: Path) -> None:
    changed = Path(configured.MEMORY_POLICY).read_text("utf-8")
    changed = changed.replace("facts_per_customer = 200", "facts_per_customer = 137").replace(
        "gdpr = []", "gdpr = [2026-12-25]"
    )
    settings.MEMORY_POLICY = tmp_path / "policy.toml"
    settings.MEMORY_POLICY.write_text(changed, "utf-8")
    page = browser_of(member(OPERATOR)).get(reverse("admin:policy")).content.decode()
    loaded = store.current_policy()
    assert loaded.fingerprint in page
    for word in (
        "137",
        "2026-12-25",
        "price_override",
        *loaded.categories,
        *(profile.name for profile in loaded.profiles.values()),
    ):
        assert str(word) in page
    assert str(tmp_path) not in page, "the name of the file, not where it lies"
    assert browser_of(member(SUPPORT)).get(reverse("admin:policy")).status_code == 403
    assert browser_of(member(OFFICER)).post(reverse("admin:policy")).status_code == 405


def test_the_customer_s_page_offers_each_role_what_it_may_do(alice: Person) -> None:
    fact = alice.fact("coffee", "Dark")
    alice.is_read_by("helper")
    page = reverse("admin:memory_portal_customer_change", args=[alice.pk])
    support, officer = (browser_of(member(role)).get(page).content.decode() for role in (SUPPORT, OFFICER))
    look = reverse("admin:memory_portal_reveal", args=[alice.pk, fact.id])
    assert look in support
    assert look in officer
    assert "Helper (1)" in support
    assert "Erase this customer" in officer
    assert "Erase this customer" not in support
    assert "Requests by hand" not in support


def test_a_paused_customer_s_page_says_so_and_lists_what_staff_did(alice: Person) -> None:
    store.pause(alice.pk, "using", alice.actor, now=timezone.now())
    store.pause(alice.pk, "learning", alice.actor, now=timezone.now())
    alice.writes("coffee", "Dark")
    fact = store.facts(alice.pk, now=timezone.now())[0]
    actor = store.Actor(ActorKind.STAFF, "7", role="support", purpose="complaint")
    store.reveal(alice.pk, fact.id, actor, now=timezone.now())
    page = (
        browser_of(member(SUPPORT))
        .get(reverse("admin:memory_portal_customer_change", args=[alice.pk]))
        .content.decode()
    )
    assert page.count("paused since") == 2
    assert "Looked at by staff · Coffee · staff · support · complaint" in page


def test_a_customer_who_is_none_leads_back_to_the_front_page(db: None) -> None:
    client = browser_of(member(OFFICER))
    for model in ("customer", "privacyrequest"):
        assert client.get(reverse(f"admin:memory_portal_{model}_change", args=[404])).headers["Location"] == "/admin/"


@pytest.mark.parametrize("number", ["404", "x", "99999999999999999999999"])
def test_a_request_entered_from_a_customer_s_page_is_theirs(alice: Person, number: str) -> None:
    client = browser_of(member(OFFICER))
    add = reverse("admin:memory_portal_privacyrequest_add")
    assert f'value="#{alice.pk}"' in client.get(f"{add}?customer={alice.pk}").content.decode()
    told = {"kind": "access", "regime": "gdpr", "channel": "mail", "received_at": "2026-05-01T09:00"}
    assert client.post(add, {**told, "who": f"#{number}"}).status_code == 200
    assert client.post(add, {**told, "who": f"#{alice.pk}"}).status_code == 302
    assert alice.customer.requests.count() == 1  # type: ignore[attr-defined]
