"""Single facts over HTTP: remembering, overwriting with a version, forgetting, and what the customer is asked."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from agent_bridge import auth
from memory_portal import store
from memory_portal.enums import ActorKind, Origin
from memory_portal.models import FactEvent, MemoryFact, Proposal, Tombstone
from tests.figures import Figure

pytestmark = pytest.mark.django_db

Agent = Callable[..., Client]
ALICE = store.Subject("alice", "airline")
CUSTOMER = store.Actor(ActorKind.CUSTOMER)
FACTS = "/bridge/v1/subjects/alice/facts"
SEAT = f"{FACTS}/seat_preference"


def put(client: Client, value: str, address: str = SEAT, version: int | None = None, **more: object) -> Any:
    headers = {} if version is None else {"If-Match": f'"{version}"'}
    return client.put(address, {"value": value, **more}, "application/json", headers=headers)


def told(answer: Any) -> tuple[int, str]:
    body = answer.json()
    return answer.status_code, body.get("decision") or body.get("reason") or body["code"]


def said_by_customer(key: str, value: str, category: str = "preference") -> store.Fact:
    now = timezone.now()
    draft = store.draft(key=key, value=value, category=category, origin=Origin.CUSTOMER, said_at=now, now=now)
    fact = store.add(ALICE, draft, CUSTOMER, now=now).fact
    assert fact is not None
    return fact


def consenting() -> None:
    store.submit(ALICE, [], CUSTOMER, now=timezone.now())
    customer = store.find(ALICE)
    assert customer is not None
    store.give_consent(customer.pk, CUSTOMER, now=timezone.now(), channel="test", language="en")


def held() -> dict[str, str]:
    return dict(MemoryFact.objects.values_list("key", "value"))


# --- remembering ------------------------------------------------------------------------------------------------------


def test_a_fact_is_remembered_read_overwritten_and_forgotten(agent: Agent) -> None:
    client = agent()
    made = put(client, "likes the aisle", category="preference", session_id="s-1", topics=["seat"])
    assert told(made) == (201, "learned")
    assert made["ETag"] == '"1"'
    read = client.get(SEAT)
    assert read["ETag"] == '"1"'
    assert read.json()["value"] == "likes the aisle"
    assert read.json()["origin"] == "agent"
    assert read.json()["session"] == store.session_tag("s-1")
    changed = put(client, "likes the window", version=1)
    assert told(changed) == (200, "updated")
    assert changed["ETag"] == '"2"'
    assert client.delete(SEAT).status_code == 204
    assert client.get(SEAT).status_code == 404
    assert client.delete(SEAT).status_code == 404
    assert Tombstone.objects.count() == 1


def test_the_key_is_normalised_on_every_way(agent: Agent) -> None:
    client = agent()
    assert told(put(client, "likes the aisle", f"{FACTS}/Seat-Preference")) == (201, "learned")
    assert client.get(f"{FACTS}/seat%20preference").json()["key"] == "seat_preference"
    assert client.delete(f"{FACTS}/SEAT_PREFERENCE").status_code == 204


def test_restating_renews_and_keeps_the_version(agent: Agent) -> None:
    client = agent()
    put(client, "likes the aisle")
    again = put(client, "likes the aisle", version=1)
    assert told(again) == (200, "renewed")
    assert again["ETag"] == '"1"'


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ({"value": "4242 4242 4242 4242"}, 422, "card"),
        ({"value": "see https://example.com/offer"}, 422, "link"),
        ({"value": "x", "category": "gossip"}, 422, "unknown_category"),
        ({"value": "\u200b\u200b"}, 422, "empty"),
    ],
)
def test_what_is_never_kept_is_refused_with_its_reason(
    agent: Agent, body: dict[str, str], status: int, reason: str
) -> None:
    answer = agent().put(SEAT, body, "application/json")
    problem = answer.json()
    assert answer.status_code == status
    assert reason in (problem.get("reason"), *(error["code"] for error in problem.get("errors", [])))
    assert held() == {}


def test_too_long_is_refused_never_cut(agent: Agent) -> None:
    client = agent()
    assert told(put(client, "字" * 200)) == (201, "learned")
    answer = put(client, "字" * 201, f"{FACTS}/other")
    assert answer.status_code == 422
    assert answer.json()["errors"] == [
        {"pointer": "#/value", "code": "string_too_long", "detail": "is too long", "limit": 200}
    ]
    long_key = put(client, "x", f"{FACTS}/{'k' * 65}")
    assert (long_key.status_code, long_key.json()["errors"][0]["limit"]) == (422, 64)


# --- who may write what -----------------------------------------------------------------------------------------------


def test_a_key_that_may_only_propose_proposes(agent: Agent) -> None:
    client = agent(auth.PROPOSE)
    answer = put(client, "likes the aisle")
    assert answer.json() == {"decision": "proposed", "reason": "agent_suggestion", "fact": None}
    assert answer.status_code == 202
    assert held() == {}
    assert Proposal.objects.get().reason == "agent_suggestion"


def test_an_agent_never_overwrites_what_the_customer_wrote(agent: Agent) -> None:
    said_by_customer("seat_preference", "likes the window")
    answer = put(agent(), "likes the aisle", version=1)
    assert told(answer) == (202, "proposed")
    assert answer.json()["reason"] == "differs_from_correction"
    assert held() == {"seat_preference": "likes the window"}


def test_a_forgotten_fact_comes_back_as_a_question_only(agent: Agent) -> None:
    client = agent()
    put(client, "likes the window")
    assert client.delete(SEAT).status_code == 204
    assert put(client, "likes the window").json()["reason"] == "after_forgetting"
    said = (timezone.now() - timedelta(days=1)).isoformat()
    assert told(put(client, "likes the window", said_at=said)) == (409, "forgotten_before")
    assert held() == {}


def test_safety_is_asked_about(agent: Agent) -> None:
    consenting()
    said_by_customer("allergy", "allergic to shellfish", "safety")
    client, allergy = agent(), f"{FACTS}/allergy"
    answer = client.delete(allergy)
    assert answer.status_code == 202
    assert answer.json() == {"decision": "proposed", "reason": "weakens_safety", "fact": None}
    assert told(put(client, "eats everything", allergy, version=1))[0] == 202
    assert told(put(client, "allergic to nuts", f"{FACTS}/nut_allergy", category="safety")) == (202, "proposed")
    assert held() == {"allergy": "allergic to shellfish"}


def test_writing_is_not_reading(agent: Agent) -> None:
    client = agent(auth.WRITE)
    assert put(client, "likes the aisle").json() == {"decision": "learned", "reason": None, "fact": None}


def test_pausing_learning_stops_agents(agent: Agent) -> None:
    said_by_customer("meal", "vegetarian")
    customer = store.find(ALICE)
    assert customer is not None
    store.pause(customer.pk, "learning", CUSTOMER, now=timezone.now())
    assert told(put(agent(), "likes the aisle")) == (409, "learning_paused")


# --- versions ---------------------------------------------------------------------------------------------------------


def test_overwriting_needs_the_version_that_was_read(agent: Agent) -> None:
    client = agent()
    put(client, "likes the aisle")
    assert told(put(client, "likes the window")) == (428, "precondition_required")
    assert told(put(client, "likes the window", version=7)) == (412, "changed_meanwhile")
    assert told(put(client, "x", f"{FACTS}/absent", version=1)) == (412, "changed_meanwhile")
    only_new = client.put(SEAT, {"value": "x"}, "application/json", headers={"If-None-Match": "*"})
    assert told(only_new) == (412, "changed_meanwhile")
    assert client.delete(SEAT, headers={"If-Match": '"7"'}).status_code == 412
    assert held() == {"seat_preference": "likes the aisle"}
    assert client.delete(SEAT, headers={"If-Match": '"1"'}).status_code == 204


@pytest.mark.parametrize(
    "named", ["", "*", '"x"', "1, 2", '"-1"', '"9999999999999"', '"１"'.encode().decode("latin-1")]
)
def test_a_version_that_is_none_is_refused(agent: Agent, named: str) -> None:
    answer = agent().put(SEAT, {"value": "x"}, "application/json", headers={"If-Match": named})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "If-Match"


@pytest.mark.parametrize("edits", [40, pytest.param(10_000, marks=pytest.mark.deep)])
@pytest.mark.django_db(transaction=True)
def test_parallel_edits_lose_none(agent: Agent, edits: int, settings: Any, figure: Figure) -> None:
    """Each reads the version and sends its edit; who was overtaken is told so and reads again."""
    settings.BRIDGE_CALLS_PER_KEY = settings.BRIDGE_CALLS = 1_000_000
    client = agent()
    put(client, "edit 0")
    done: Counter[int] = Counter()

    def edit(number: int) -> None:
        mine = Client(**client.defaults)
        for round_ in range(edits // 8):
            status = 412
            while status == 412:
                version = int(mine.get(SEAT)["ETag"].strip('"'))
                status = put(mine, f"edit {number} of round {round_}", version=version).status_code
                done[status] += 1
        connection.close()

    threads = [threading.Thread(target=edit, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(done) <= {200, 412}
    assert done[200] == edits
    assert client.get(SEAT).json()["version"] == edits + 1
    assert FactEvent.objects.filter(kind="updated").count() == edits
    figure(
        "K10",
        f"{edits:,} edits of one fact by {len(threads)} at once: 0 lost; {done[412]:,} came too late and were told",
    )


# --- forgetting everything --------------------------------------------------------------------------------------------


def test_clearing_forgets_all_and_moves_the_generation(agent: Agent) -> None:
    said_by_customer("seat_preference", "likes the window")
    client = agent()
    assert client.get("/bridge/v1/subjects/alice/purge_generation").json() == {"purge_generation": 0}
    assert client.delete(FACTS).json() == {"facts": 1, "purge_generation": 1}
    assert client.get(FACTS).json() == {"facts": [], "next": None}
    assert client.get("/bridge/v1/subjects/alice/purge_generation").json() == {"purge_generation": 1}


def test_clearing_reaches_nobody_else(agent: Agent) -> None:
    said_by_customer("seat_preference", "likes the window")
    agent(profile="grocery", name="Fernhill helper").delete(FACTS)
    assert held() == {"seat_preference": "likes the window"}
