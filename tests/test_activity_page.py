"""Activity: what happened, who looked and when, month by month; never what anything said."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memory_portal import store
from memory_portal.enums import ActorKind, EventKind
from memory_portal.models import FactEvent, FactRead
from tests.people import Person


def lines(who: Person, query: str = "") -> list[str]:
    """The page's lines, without markup."""
    page = unescape(who.sees(f"{reverse('activity')}{query}"))
    found = re.findall(r'<li class="(?:learned|changed|erased|used|looked)">(.*?)</li>', page, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", line).split()) for line in found]


def test_everything_that_happened_is_told_in_a_sentence(alice: Person) -> None:
    fact = alice.fact("coffee", "Dark roast", ago=2)
    alice.is_read_by("recipe assistant")
    alice.post(reverse("forget", args=[fact.id]))
    forgot, used, learned = lines(alice)
    assert "You forgot Coffee" in forgot
    assert "won’t be learned again" in forgot
    assert "Recipe assistant used Coffee" in used
    assert "Learned Coffee" in learned
    assert "from your talk with Shopping assistant" in learned


def test_no_value_ever_stands_on_the_page(alice: Person) -> None:
    fact = alice.fact("coffee", "Verydarkroast", quote="I said Verydarkroast")
    alice.is_read_by("recipe assistant")
    data = {"value": "Palelightroast", "category": "preference", "version": fact.version}
    alice.post(reverse("correct", args=[fact.id]), data)
    alice.says("coffee", "Mediumroastagain", ago=0)
    page = alice.sees(reverse("activity"))
    for value in ("Verydarkroast", "Palelightroast", "Mediumroastagain"):
        assert value not in page


def test_nothing_of_another_customer_is_told(alice: Person, bob: Person) -> None:
    bob.fact("hobby_of_bob", "Chess")
    bob.is_read_by("snooping assistant")
    fact = bob.fact("tea_of_bob", "Green")
    assert lines(alice) == []
    assert lines(alice, f"?fact={fact.id}") == []
    assert "Nothing here yet." in alice.sees(reverse("activity"))


@pytest.mark.parametrize(
    ("show", "count", "says"),
    [
        ("learned", 1, "Learned Coffee"),
        ("changed", 1, "You froze Coffee"),
        ("used", 1, "Recipe assistant used Coffee"),
        ("looked", 1, "A member of our staff looked at Coffee"),
        ("chosen", 1, "You paused learning"),
        ("forgotten", 1, "You had us forget everything"),
        ("", 6, "Learned Coffee"),
        ("no_such_filter", 6, "Learned Coffee"),
    ],
)
def test_the_filters_show_one_sort_each(alice: Person, show: str, count: int, says: str) -> None:
    fact = alice.fact("coffee", "Dark roast")
    alice.is_read_by("recipe assistant")
    alice.post(reverse("not_me", args=[fact.id]))
    now = timezone.now()
    FactEvent.objects.create(
        customer=alice.customer,
        at=now,
        kind=EventKind.REVEALED,
        fact_id=fact.id,
        key="coffee",
        actor_kind=ActorKind.STAFF,
    )
    store.pause(alice.pk, "learning", alice.actor, now=now)
    store.clear(alice.pk, alice.actor, now=now)
    found = lines(alice, f"?show={show}")
    assert len(found) == count
    assert any(says in line for line in found)


def test_months_back_are_one_step_away_and_nothing_is_lost_between(alice: Person) -> None:
    now = timezone.now()
    FactEvent.objects.bulk_create(
        FactEvent(
            customer=alice.customer,
            at=now - timedelta(days=n // 3),  # three at each instant, so that pages end inside one
            kind=EventKind.LEARNED,
            key=f"thing {n}",
            actor_kind=ActorKind.JOB,
        )
        for n in range(130)
    )
    seen, query = [], ""
    for _ in range(9):
        page = unescape(alice.sees(f"{reverse('activity')}{query}"))
        seen += re.findall(r"<strong>Thing (\d+)</strong>", page)
        step = re.search(r'href="/activity/(\?[^"]*before=[^"]*)">([^<]*)</a>', page)
        if not step:
            break
        assert step[2].endswith("and earlier")
        query = step[1]
    assert sorted(map(int, seen)) == list(range(130))


@pytest.mark.parametrize(
    "before", ["", "x", "2026-01-01_1_1", "2026-01-01T00:00:00+00:00_1_999999999999999999999999", "\0"]
)
def test_a_place_that_is_none_is_no_error(alice: Person, before: str) -> None:
    alice.fact("coffee", "Dark roast")
    response = alice.get(reverse("activity"), data={"before": before, "fact": before})
    assert response.status_code == 200


def test_reads_alike_in_a_row_are_one_line_with_every_time(alice: Person) -> None:
    fact = alice.fact("coffee", "Dark roast")
    noon = timezone.now().replace(hour=12, minute=0) - timedelta(days=1)
    for minute in (1, 2, 3):
        FactRead.objects.create(
            customer=alice.customer, at=noon.replace(minute=minute), agent="helper", layer=1, fact_ids=[fact.id]
        )
    (line,) = lines(alice, "?show=used")
    assert "3 times" in line
    assert all(f":0{minute}" in line for minute in (1, 2, 3))


def test_htmx_gets_the_list_only(alice: Person) -> None:
    alice.fact("coffee", "Dark roast")
    part = alice.get(f"{reverse('activity')}?show=learned", htmx=True)
    assert b"<html" not in part.content
    assert b'id="list"' in part.content
    restored: Any = alice.get(reverse("activity"), htmx=True, headers={"HX-History-Restore-Request": "true"})
    assert b"<html" in restored.content


def test_it_needs_a_sign_in_and_changes_nothing(alice: Person) -> None:
    assert Client().get(reverse("activity")).headers["Location"] == "/sign-in/?next=%2Factivity%2F"
    assert alice.post(reverse("activity")).status_code == 405
