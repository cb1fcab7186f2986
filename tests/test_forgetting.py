"""Who may have a fact forgotten without asking the customer: whoever may delete, but for safety and for what a person wrote."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from agent_bridge import auth
from memory_portal import store
from memory_portal.enums import ActorKind, ChangeAction, Origin, Reason
from memory_portal.models import Customer, FactEvent, MemoryFact, Proposal, Tombstone
from tests.people import Person, person

pytestmark = pytest.mark.django_db

Agent = Callable[..., Client]
AGENT = store.Actor(ActorKind.AGENT, "3", "Clearsky assistant")
STAFF = store.Actor(ActorKind.STAFF, "7")
JOB = store.Actor(ActorKind.JOB, "1", "Clearsky assistant")
BRIDGE = "/bridge/v1/subjects/carol"


@pytest.fixture
def carol() -> Person:
    return person("carol", profile="airline")


@pytest.fixture
def memory_off(settings: Settings, tmp_path: Path) -> Callable[[], None]:
    def switched_off() -> None:
        text = Path(settings.MEMORY_POLICY).read_text("utf-8").replace("memory = true", "memory = false")
        settings.MEMORY_POLICY = tmp_path / "off.toml"
        settings.MEMORY_POLICY.write_text(text, "utf-8")

    return switched_off


def asks(person: Person, key: str, actor: store.Actor, origin: Origin, quote: str = "") -> store.Outcome:
    now = timezone.now()
    wish = store.draft(
        action=ChangeAction.FORGET,
        key=key,
        value="",
        category="preference",
        origin=origin,
        said_at=now,
        now=now,
        source_quote=quote,
    )
    return store.submit(person.pk, [wish], actor, now=now)[0]


def accepted(person: Person, key: str, origin: Origin) -> None:
    """Suggested by somebody, and kept by the customer as it stood."""
    person.says(key, "Window", origin=origin, quote="", suspicion=None)
    MemoryFact.objects.filter(customer=person.pk, key=key).update(locked=True)


@pytest.mark.parametrize("learned_by", [Origin.EXTRACTION, Origin.AGENT])
def test_what_was_only_learned_is_forgotten_at_once(carol: Person, learned_by: Origin) -> None:
    carol.fact("seat", origin=learned_by)
    assert asks(carol, "seat", AGENT, Origin.AGENT).decision == "forgotten"
    assert carol.held == {}
    assert Tombstone.objects.get().key == "seat"


@pytest.mark.parametrize(
    ("actor", "origin"),
    [(AGENT, Origin.AGENT), (STAFF, Origin.STAFF), (JOB, Origin.EXTRACTION)],
    ids=["agent", "staff", "job"],
)
@pytest.mark.parametrize("kept", [Origin.AGENT, Origin.EXTRACTION, Origin.STAFF, Origin.CUSTOMER])
def test_nobody_removes_what_the_customer_settled_without_their_words(
    carol: Person, actor: store.Actor, origin: Origin, kept: Origin
) -> None:
    if kept is Origin.CUSTOMER:
        carol.writes("seat", "Window")
    else:
        accepted(carol, "seat", kept)
    outcome = asks(carol, "seat", actor, origin)
    assert (outcome.decision, outcome.reason) == ("proposed", Reason.LOWER_RANK)
    assert carol.held == {"seat": "Window"}


def test_what_staff_noted_is_asked_about_too(carol: Person) -> None:
    carol.fact("seat", origin=Origin.STAFF, actor=STAFF)
    assert asks(carol, "seat", AGENT, Origin.AGENT).decision == "proposed"


def test_the_customers_own_words_are_enough(carol: Person) -> None:
    carol.writes("seat", "Window")
    assert asks(carol, "seat", JOB, Origin.EXTRACTION, "please forget my seat").decision == "forgotten"
    assert carol.held == {}


def test_safety_is_asked_about_as_safety_even_with_their_words(carol: Person) -> None:
    carol.agrees()
    carol.writes("allergy", "Allergic to nuts", "safety")
    outcome = asks(carol, "allergy", JOB, Origin.EXTRACTION, "forget my allergy")
    assert (outcome.decision, outcome.reason) == ("proposed", Reason.WEAKENS_SAFETY)
    assert Proposal.objects.get().category == "safety"


def test_no_switch_of_the_customer_keeps_a_fact_alive(carol: Person) -> None:
    carol.fact("seat")
    store.pause(carol.pk, "learning", carol.actor, now=timezone.now())
    store.choose(
        carol.pk,
        {"no_learn_categories": ["preference"], "no_learn_agents": ["Clearsky assistant"]},
        carol.actor,
        now=timezone.now(),
    )
    assert asks(carol, "seat", AGENT, Origin.AGENT).decision == "forgotten"


def test_forgetting_works_where_memory_is_off(carol: Person, agent: Agent, memory_off: Callable[[], None]) -> None:
    for key in ("seat", "meal"):
        carol.fact(key, key.title())
    client = agent()
    memory_off()
    assert client.delete(f"{BRIDGE}/facts/seat").status_code == 204
    assert asks(carol, "meal", AGENT, Origin.AGENT).decision == "forgotten"
    with pytest.raises(store.MemoryDisabled):
        store.submit(carol.pk, [], AGENT, now=timezone.now())
    assert carol.held == {}


# --- the same through the bridge --------------------------------------------------------------------------------------


def test_an_agent_deletes_what_was_learned_and_asks_about_what_was_written(carol: Person, agent: Agent) -> None:
    carol.fact("seat")
    carol.writes("meal", "Vegetarian")
    client = agent()
    assert client.delete(f"{BRIDGE}/facts/seat").status_code == 204
    answer = client.delete(f"{BRIDGE}/facts/meal")
    assert answer.status_code == 202
    assert answer.json() == {"decision": "proposed", "reason": "lower_rank", "fact": None}
    assert carol.held == {"meal": "Vegetarian"}
    assert FactEvent.objects.filter(kind="forgotten").get().agent == "Clearsky assistant"


def test_the_customer_sees_which_agent_asked(carol: Person, agent: Agent) -> None:
    carol.writes("meal", "Vegetarian")
    agent(name="Clearsky crew").delete(f"{BRIDGE}/facts/meal")
    question = Proposal.objects.get()
    assert (question.action, question.key, question.agent) == ("forget", "meal", "Clearsky crew")
    assert store.accept(carol.pk, question.pk, carol.actor, now=timezone.now()) is None
    assert carol.held == {}


def test_deleting_what_is_not_there_makes_no_customer(agent: Agent) -> None:
    client = agent(auth.DELETE)
    assert client.delete("/bridge/v1/subjects/nobody/facts/seat").status_code == 404
    assert client.delete("/bridge/v1/subjects/nobody/facts/seat", headers={"If-Match": '"1"'}).status_code == 404
    assert Customer.objects.count() == 0


def test_a_deletion_names_the_version_it_means(carol: Person, agent: Agent) -> None:
    carol.fact("seat")
    client = agent()
    assert client.delete(f"{BRIDGE}/facts/seat", headers={"If-Match": '"2"'}).status_code == 412
    assert client.delete(f"{BRIDGE}/facts/meal", headers={"If-Match": '"1"'}).status_code == 404
    assert client.delete(f"{BRIDGE}/facts/seat", headers={"If-Match": '"1"'}).status_code == 204


def test_what_was_said_after_the_clock_of_the_caller_is_not_forgotten(carol: Person) -> None:
    fact = carol.fact("seat")
    MemoryFact.objects.filter(pk=fact.id).update(said_at=timezone.now() + timedelta(hours=1))
    assert asks(carol, "seat", AGENT, Origin.AGENT).reason == Reason.STALE
