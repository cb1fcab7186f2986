"""Control: pause, who may learn and use what, consent, what won't be learned again, words, forgetting everything."""

from __future__ import annotations

from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memory_portal import store
from memory_portal.enums import ActorKind
from memory_portal.models import Consent, FactRevision, MemoryFact, Proposal
from tests.people import HTMX, Person


def text(response: Any) -> str:
    return unescape(response.content.decode())


def reload(who: Person) -> Any:
    who.customer.refresh_from_db()
    return who.customer


@pytest.mark.parametrize("htmx", [True, False])
@pytest.mark.parametrize("what", ["learning", "using"])
def test_pausing_takes_one_click_and_so_does_resuming(alice: Person, what: str, htmx: bool) -> None:
    answer = alice.post(reverse(f"pause_{what}"), htmx=htmx)
    assert getattr(reload(alice), f"{what}_paused_at")
    if htmx:
        assert b"<html" not in answer.content
        assert f"{what.title()} is paused" in text(answer)
    else:
        assert answer.headers["Location"] == "/control/#pause"
    alice.post(reverse(f"resume_{what}"), htmx=htmx)
    assert getattr(reload(alice), f"{what}_paused_at") is None


def test_paused_learning_learns_nothing_and_paused_using_serves_nothing(alice: Person) -> None:
    alice.fact("coffee", "Dark roast")
    alice.post(reverse("pause_learning"))
    assert alice.says("tea", "Green").decision == "refused"
    alice.post(reverse("pause_using"))
    subject = store.Subject(alice.customer.subject_id, alice.customer.profile)
    agent = store.Actor(ActorKind.AGENT, "1", "helper")
    assert store.context(subject, agent, now=timezone.now()).always == ()
    assert alice.held == {"coffee": "Dark roast"}, "paused is not deleted"


def test_kinds_and_assistants_are_switched_one_by_one(alice: Person) -> None:
    alice.fact("coffee", "Dark roast", agent="shopping assistant")
    alice.is_read_by("recipe assistant")
    page = alice.sees(reverse("control"))
    assert 'value="shopping assistant"' in page
    assert 'value="recipe assistant"' in page
    kinds = ["safety", "constraint", "preference", "context"]
    agents = ["recipe assistant", "shopping assistant"]
    data = {
        "shown_kind": kinds,
        "shown_agent": agents,
        "learn_kind": kinds[:3],
        "use_kind": kinds,
        "learn_agent": agents,
        "use_agent": agents[:1],
    }
    assert "Saved." in text(alice.post(reverse("choices"), data, htmx=True))
    customer = reload(alice)
    assert customer.no_learn_categories == ["context"]
    assert customer.no_use_categories == []
    assert customer.no_learn_agents == []
    assert customer.no_use_agents == ["shopping assistant"]


def test_an_assistant_that_came_since_the_page_was_opened_keeps_its_state(alice: Person) -> None:
    store.choose(alice.pk, {"no_use_agents": ["old assistant"]}, alice.actor, now=timezone.now())
    alice.is_read_by("new assistant")
    alice.post(reverse("choices"), {"shown_kind": ["safety"], "learn_kind": ["safety"], "use_kind": ["safety"]})
    assert reload(alice).no_use_agents == ["old assistant"]


def test_choices_about_what_is_not_known_change_nothing(alice: Person) -> None:
    answer = alice.post(reverse("choices"), {"shown_kind": ["no_such_kind"], "shown_agent": ["\0"]}, htmx=True)
    assert "nothing was saved" in text(answer)
    assert reload(alice).no_learn_categories == []


def test_consent_is_given_and_withdrawn_with_one_click_each(alice: Person) -> None:
    assert "You have not agreed to this" in unescape(alice.sees(reverse("control")))
    assert "You agreed on" in text(alice.post(reverse("give_consent"), htmx=True))
    receipt = Consent.objects.get()
    assert (receipt.channel, receipt.language, receipt.text_version) == (
        "portal",
        "en",
        store.current_policy().consent.text_version,
    )
    alice.fact("food_allergy", "Allergic to peanuts", category="safety")
    answer = text(alice.post(reverse("withdraw_consent"), htmx=True))
    assert "waits under Suggestions for 24 hours" in answer
    assert alice.held == {}
    assert Proposal.objects.count() == 1
    assert store.consent(alice.pk) is None


def test_what_was_forgotten_is_listed_by_name_and_can_be_allowed_again(alice: Person) -> None:
    fact = alice.fact("coffee", "Verydarkroast", ago=3)
    alice.post(reverse("forget", args=[fact.id]))
    page = unescape(alice.sees(reverse("control")))
    assert "Allow again" in page
    assert "Verydarkroast" not in page
    assert alice.says("coffee", "Verydarkroast", ago=2).decision == "refused"
    answer = alice.post(reverse("allow_again"), {"key": "coffee"}, htmx=True)
    assert "Allow again" not in text(answer)
    assert alice.says("coffee", "Verydarkroast", ago=0).decision == "learned"


@pytest.mark.parametrize("key", ["", "never_there", "\0"])
def test_allowing_what_is_not_buried_is_not_found(alice: Person, bob: Person, key: str) -> None:
    fact = bob.fact("coffee", "Dark")
    bob.post(reverse("forget", args=[fact.id]))
    assert alice.post(reverse("allow_again"), {"key": key}).status_code == 404
    assert alice.post(reverse("allow_again"), {"key": "coffee"}).status_code == 404
    assert len(store.tombstones(bob.pk)) == 1


def test_a_word_never_to_remember_is_refused_from_then_on(alice: Person) -> None:
    answer = alice.post(reverse("add_word"), {"word": "  Lottery "}, htmx=True)
    assert "Lottery" in text(answer)
    assert alice.says("hobby", "Plays the lottery on Fridays").decision == "refused"
    alice.post(reverse("remove_word"), {"word": "Lottery"})
    assert alice.says("hobby", "Plays the lottery on Fridays").decision == "learned"
    assert alice.post(reverse("remove_word"), {"word": "Lottery"}).status_code == 404


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("", "Please write something"),
        ("   ", "Please write something"),
        ("\u200b", "Please write something"),
        ("w" * 65, "at most 64 characters"),
        ("w" * 9000, "at most 64 characters"),
        ("\0", "Null characters"),
    ],
)
@pytest.mark.parametrize("htmx", [True, False])
def test_an_unusable_word_is_a_form_error(alice: Person, word: str, says: str, htmx: bool) -> None:
    answer = alice.post(reverse("add_word"), {"word": word}, htmx=htmx)
    assert answer.status_code == 422
    assert says in text(answer)
    assert reload(alice).never_words == []


def test_the_list_of_words_has_an_end(alice: Person) -> None:
    store.choose(alice.pk, {"never_words": [f"w{n}" for n in range(50)]}, alice.actor, now=timezone.now())
    assert "room for 50" in text(alice.post(reverse("add_word"), {"word": "one more"}, htmx=True))


@pytest.mark.parametrize("typed", ["forget everything", " Forget  Everything "])
def test_forgetting_everything_gives_an_honest_receipt(alice: Person, bob: Person, typed: str) -> None:
    bob.fact("coffee", "Decaf")
    alice.agrees()
    fact = alice.fact("coffee", "Verydarkroast", ago=3)
    alice.fact("food_allergy", "Peanuts", category="safety", ago=3)
    data = {"value": "Palelightroast", "category": "preference", "version": fact.version}
    alice.post(reverse("correct", args=[fact.id]), data)
    alice.says("coffee", "Mediumroast", ago=0)
    alice.proves()
    answer = alice.post(reverse("clear"), {"sure": typed})
    assert answer.headers["Location"] == reverse("receipt")
    page = unescape(alice.sees(reverse("receipt")))
    for line in (
        "2 erased",
        "1 erased, and every quote",
        "1 erased",
        "0 discarded unread",
        "what they said: 2",
        "within 35 days",
    ):
        assert line in page, line
    assert alice.held == {}
    assert not FactRevision.objects.filter(fact__customer=alice.pk).exists()
    assert not Proposal.objects.filter(customer=alice.pk).exists()
    assert bob.held == {"coffee": "Decaf"}
    assert "roast" not in page + alice.sees() + alice.sees(reverse("control")) + alice.sees(reverse("activity"))


@pytest.mark.parametrize("typed", ["", "forget", "yes", "\0", "x" * 500])
def test_without_the_words_nothing_is_erased(alice: Person, typed: str) -> None:
    alice.fact("coffee", "Dark")
    alice.proves()
    answer = alice.post(reverse("clear"), {"sure": typed})
    assert answer.status_code == 422
    assert alice.held == {"coffee": "Dark"}


def test_a_receipt_is_for_its_customer_and_for_none_without_one(alice: Person) -> None:
    assert alice.get(reverse("receipt")).headers["Location"] == reverse("control")


POSTS = [
    "pause_learning",
    "pause_using",
    "resume_learning",
    "resume_using",
    "choices",
    "give_consent",
    "withdraw_consent",
    "allow_again",
    "add_word",
    "remove_word",
]


@pytest.mark.parametrize("name", POSTS)
def test_no_choice_is_a_link_and_every_one_needs_a_sign_in(alice: Person, name: str) -> None:
    MemoryFact.objects.all().delete()
    assert alice.get(reverse(name)).status_code == 405
    assert Client().post(reverse(name)).headers["Location"].startswith("/sign-in/")
    assert Client().post(reverse(name), headers=HTMX).headers["HX-Redirect"].startswith("/sign-in/")


def test_expired_facts_are_not_counted_as_held(alice: Person) -> None:
    alice.fact("coffee", "Dark")
    MemoryFact.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert "0 things" in unescape(alice.sees(reverse("control")))
