"""The demo learns what its people said of themselves and nothing else, through the pipeline that production uses."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from agent_bridge import demo, reading
from agent_bridge.extraction.explicit import Explicit
from agent_bridge.management.commands.demo import empty_mailbox
from agent_bridge.models import AgentKey, ExtractionJob, JobState
from memory_portal import store
from memory_portal.enums import Reason
from memory_portal.models import Customer

pytestmark = pytest.mark.django_db

LEARNED = {
    "fern-1001": {
        "dietary_restriction": "no shellfish",
        "default_store": "Oakland store",
        "oat_milk": "always buy oat milk",
        "bags": "never use plastic bags",
    },
    "fern-1002": {
        "diet": "vegetarian",
        "delivery_note": "leave the delivery at the side door",
        "dietary_restriction": "allergic to peanuts",
    },
    "fern-1003": {"sunday_evenings": "usually shop on Sunday evenings"},
    "sky-2001": {
        "seat_preference": "長途航班通常坐走道",
        "overnight_flight": "不要紅眼班機",
        "travel_party": "通常和先生一起旅行",
    },
    "sky-2002": {"seat_preference": "以後長途班機還是幫我找走道", "overnight_flight": "不搭紅眼班機"},
    "sky-2003": {
        "seat_preference": "Prefiero el pasillo",
        "overnight_flight": "nunca tomo vuelos nocturnos",
        "travel_party": "Siempre viajo con mi hermana",
    },
    "noor-3001": {
        "dining_table": "for the lake house",
        "solid_oak": "prefer solid oak over veneer",
        "shoe_size": "UK 6",
        "wool": "don't wear wool",
    },
    "noor-3002": {"shoe_size": "38", "cuero": "no uso cuero", "mesa": "para la casa de mi madre"},
}


def remembered(now: datetime) -> dict[str, dict[str, str]]:
    return {
        customer.subject_id: {fact.key: fact.value for fact in store.facts(customer, now=now)}
        for customer in Customer.objects.order_by("pk")
    }


def run(now: datetime) -> None:
    reading.drain(clock=lambda: now, extractor=Explicit())


def test_the_demo_learns_exactly_what_its_people_said(now: datetime) -> None:
    demo.load(now)
    assert remembered(now) == {person["subject_id"]: {} for person in demo.people()}, "facts come through jobs only"
    run(now)
    assert remembered(now) == LEARNED
    assert set(ExtractionJob.objects.values_list("state", flat=True)) == {JobState.DONE}


def test_an_allergy_without_consent_waits_as_a_suggestion(now: datetime) -> None:
    demo.load(now)
    run(now)
    ruth = Customer.objects.get(subject_id="fern-1003")
    assert [(asked.key, asked.reason) for asked in ruth.proposals.all()] == [
        ("dietary_restriction", Reason.NEEDS_CONSENT)
    ]


def test_a_second_start_keeps_keys_and_data(now: datetime) -> None:
    made = demo.load(now)
    assert set(made) == set(demo.AGENTS)
    run(now)
    before = remembered(now)
    assert demo.load(now) == {}
    run(now)
    assert remembered(now) == before
    assert AgentKey.objects.count() == len(demo.AGENTS)


def test_starting_afresh_empties_the_broker_and_keeps_its_folders(tmp_path: Path) -> None:
    for folder in ("bell", "control"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "1.message").touch()
    empty_mailbox(tmp_path)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == ["bell", "control"]
