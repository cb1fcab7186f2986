"""A write that is sent again: one effect, an answer from what is there now, and no body kept anywhere."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from agent_bridge import auth, idempotency
from agent_bridge.models import AgentKey, ExtractionJob, IdempotencyKey
from memory_portal import store
from memory_portal.enums import ActorKind
from memory_portal.models import FactEvent, MemoryFact, Proposal
from tests.figures import Figure

pytestmark = pytest.mark.django_db

Agent = Callable[..., Client]
FACTS = "/bridge/v1/subjects/alice/facts"
SEAT = f"{FACTS}/seat_preference"
TURNS = "/bridge/v1/subjects/alice/turns"
TALK = {"session_id": "s-1", "messages": [{"role": "user", "text": "I always sit on the aisle"}]}


def put(client: Client, value: str = "likes the aisle", name: str = "k-1", **headers: str) -> Any:
    return client.put(SEAT, {"value": value}, "application/json", headers={"Idempotency-Key": name, **headers})


def talk(client: Client, name: str = "k-1", body: object = TALK) -> Any:
    return client.post(TURNS, body, "application/json", headers={"Idempotency-Key": name})


def test_the_same_request_again_has_the_same_answer_and_no_effect(agent: Agent) -> None:
    client = agent()
    first, again = put(client), put(client)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first
    assert again.json()["fact"]["value"] == "likes the aisle"
    assert again["ETag"] == '"1"'
    assert FactEvent.objects.count() == 1


def test_an_answer_again_tells_what_is_there_now(agent: Agent) -> None:
    client = agent()
    put(client)
    client.put(SEAT, {"value": "likes the window"}, "application/json", headers={"If-Match": '"1"'})
    again = put(client)
    assert again.json()["fact"]["value"] == "likes the window"
    assert again["ETag"] == '"2"'


def test_after_deletion_the_answer_is_gone_and_nothing_comes_back(agent: Agent) -> None:
    client = agent()
    put(client, "likes the aisle CANARY")
    client.delete(SEAT)
    again = put(client, "likes the aisle CANARY")
    assert (again.status_code, again.json()["code"]) == (410, "gone")
    assert "CANARY" not in again.content.decode()
    assert not MemoryFact.objects.exists()


def test_another_request_under_the_same_key_is_refused(agent: Agent) -> None:
    client = agent()
    put(client)
    other = put(client, "likes the window")
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")
    elsewhere = client.put(
        f"{FACTS}/other", {"value": "likes the aisle"}, "application/json", headers={"Idempotency-Key": "k-1"}
    )
    assert elsewhere.status_code == 422
    assert MemoryFact.objects.count() == 1


def test_a_key_belongs_to_one_agent(agent: Agent) -> None:
    put(agent())
    assert put(agent(name="Other assistant"), "likes the window").status_code == 428  # a request of its own


def test_a_refused_write_may_be_sent_again(agent: Agent) -> None:
    client = agent()
    assert put(client, "4242 4242 4242 4242").status_code == 422
    assert not IdempotencyKey.objects.exists()
    assert put(client, "likes the aisle").status_code == 201


def test_a_conversation_is_handed_over_once(agent: Agent) -> None:
    client = agent()
    first, again = talk(client), talk(client)
    assert first.json() == again.json()
    assert (first.status_code, again.status_code) == (202, 202)
    assert ExtractionJob.objects.count() == 1
    assert len(ExtractionJob.objects.get().turns) == 1


def test_a_conversation_whose_job_is_gone_says_so(agent: Agent) -> None:
    client = agent()
    talk(client)
    ExtractionJob.objects.all().delete()
    again = talk(client)
    assert (again.status_code, again.json()["code"]) == (410, "gone")
    assert not ExtractionJob.objects.exists()


def test_deleting_and_clearing_happen_once(agent: Agent) -> None:
    client = agent()
    client.put(SEAT, {"value": "likes the aisle"}, "application/json")
    delete = {"Idempotency-Key": "k-2"}
    assert [client.delete(SEAT, headers=delete).status_code for _ in range(2)] == [204, 204]
    clear = {"Idempotency-Key": "k-3"}
    answers = [client.delete(FACTS, headers=clear).json() for _ in range(3)]
    assert answers == [{"facts": 0, "purge_generation": 1}] * 3


def test_a_proposal_is_made_once(agent: Agent) -> None:
    client = agent(auth.PROPOSE)
    answers = [put(client) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert answers[0].json() == answers[1].json()
    assert Proposal.objects.count() == 1


def test_repeating_is_not_a_way_to_read(agent: Agent) -> None:
    client = agent(auth.WRITE)
    put(client)
    assert put(client).json()["fact"] is None
    customer = store.find(store.Subject("alice", "airline"))
    assert customer is not None
    reader = agent()
    put(reader, "likes the window", "k-2", **{"If-Match": '"1"'})
    store.pause(customer.pk, "using", store.Actor(ActorKind.CUSTOMER), now=timezone.now())
    assert put(reader, "likes the window", "k-2", **{"If-Match": '"1"'}).json()["fact"] is None


def test_no_row_holds_a_word_of_the_request(agent: Agent) -> None:
    client = agent()
    put(client, "likes CANARY seats")
    talk(client, "k-2", TALK | {"messages": [{"role": "user", "text": "CANARY"}]})
    assert "CANARY" not in repr(list(IdempotencyKey.objects.values()))
    assert "alice" not in repr(list(IdempotencyKey.objects.values()))


def test_a_day_later_the_key_is_free(agent: Agent) -> None:
    client = agent()
    talk(client)
    IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(hours=24))
    assert "Idempotency-Replayed" not in talk(client)
    put(client, name="k-2")
    IdempotencyKey.objects.filter(key="k-1").update(created_at=timezone.now() - timedelta(hours=25))
    assert idempotency.purge(now=timezone.now()) == 1
    assert [row.key for row in IdempotencyKey.objects.all()] == ["k-2"]


# --- at once ----------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_what_is_being_worked_on_is_said_to_be(agent: Agent) -> None:
    client = agent()
    answers: list[Any] = []

    def elsewhere() -> None:
        answers.append(put(client))
        connection.close()

    with transaction.atomic():
        assert idempotency._alone(AgentKey.objects.get(), "k-1")
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert (answers[0].status_code, answers[0].json()["code"]) == (409, "idempotency_in_flight")
    assert answers[0]["Retry-After"] == "1"
    assert put(client).status_code == 201


def storm(client: Client, names: int, parallel: int) -> Counter[int]:
    """Every name is sent by `parallel` threads at the same moment; the answers by status."""
    seen: Counter[int] = Counter()
    gate = threading.Barrier(parallel)

    def send() -> None:
        mine = Client(**client.defaults)
        for number in range(names):
            gate.wait()
            body = TALK | {"session_id": f"s-{number}"}
            seen[talk(mine, f"k-{number}", body).status_code] += 1
        connection.close()

    threads = [threading.Thread(target=send) for _ in range(parallel)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seen


@pytest.mark.django_db(transaction=True)
def test_at_once_there_is_one_effect_a_key(agent: Agent, figure: Figure) -> None:
    seen = storm(agent(), names=10, parallel=8)
    assert ExtractionJob.objects.count() == IdempotencyKey.objects.count() == 10
    assert set(seen) <= {202, 409}
    assert seen[202] >= 10
    figure("K7", f"10 keys x 8 at once: 10 effects; answers {dict(seen)}")


@pytest.mark.deep
@pytest.mark.django_db(transaction=True)
def test_two_hundred_keys_fifty_times_at_once_are_two_hundred_effects(
    agent: Agent, settings: Any, figure: Figure
) -> None:
    settings.BRIDGE_CALLS_PER_KEY = settings.BRIDGE_CALLS = 1_000_000
    seen = storm(agent(), names=200, parallel=50)
    assert ExtractionJob.objects.count() == IdempotencyKey.objects.count() == 200
    assert set(seen) <= {202, 409}
    figure("K7", f"200 keys x 50 at once: 200 effects; answers {dict(seen)}")
