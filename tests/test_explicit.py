"""The offline extractor reads plainly stated standing facts in three languages, and misses rather than invents."""

from __future__ import annotations

from datetime import datetime

import pytest

from agent_bridge.extraction import ExtractionRequest, Known, Profile, Turn
from agent_bridge.extraction.explicit import Explicit
from agent_bridge.extraction.grounding import Source, ground
from memory_portal import store
from memory_portal.enums import ChangeAction
from tests.poisoned import TRANSCRIPTS, Poisoned

NOW = datetime.fromisoformat("2026-05-14T14:00:00+00:00")


def read(*said: str | tuple[str, str], held: tuple[Known, ...] = ()) -> list[store.Candidate]:
    """What is found, all of which must stand on the customer's own words."""
    found = grounded(*said, held=held)
    assert all(draft.suspicion is None for _, draft in found)
    return [candidate for candidate, _ in found]


def grounded(*said: str | tuple[str, str], held: tuple[Known, ...] = ()) -> list[tuple[store.Candidate, store.Draft]]:
    turns = tuple(Turn("user", s, NOW) if isinstance(s, str) else Turn(*s, NOW) for s in said)  # type: ignore[arg-type]
    found = Explicit().extract(ExtractionRequest(Profile(), turns, NOW, held=held))
    drafts = []
    for candidate in found.candidates:
        draft = ground(candidate, Source(turns, "t", "agent", found.extractor), now=NOW)
        assert isinstance(draft, store.Draft), (candidate, draft)
        drafts.append((candidate, draft))
    return drafts


def told(*said: str | tuple[str, str], held: tuple[Known, ...] = ()) -> list[tuple[str, str, str]]:
    return [(c.key, c.value, c.category) for c in read(*said, held=held)]


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ("no shellfish for me, I'm allergic", [("dietary_restriction", "no shellfish", "safety")]),
        ("I’m allergic to penicillin.", [("dietary_restriction", "allergic to penicillin", "safety")]),
        ("Heads up: I have a severe peanut allergy", [("dietary_restriction", "a severe peanut allergy", "safety")]),
        ("I prefer aisle seats.", [("seat_preference", "prefer aisle seats", "preference")]),
        (
            "I prefer the aisle, and I never fly red-eyes.",
            [("seat_preference", "prefer the aisle", "preference"), ("overnight_flight", "never fly red-eyes", "constraint")],
        ),
        ("use the Oakland store from now on", [("default_store", "Oakland store", "preference")]),
        ("actually I moved, use the Oakland store now", [("default_store", "Oakland store", "preference")]),
        ("the dining table I bought was for the lake house", [("dining_table", "for the lake house", "context")]),
        ("My shoe size is EU 43.", [("shoe_size", "EU 43", "preference")]),
        ("I wear a size 11 shoe", [("shoe_size", "size 11 shoe", "preference")]),
        ("I usually travel with my husband.", [("travel_party", "usually travel with my husband", "context")]),
        ("I don't eat pork.", [("pork", "don't eat pork", "constraint")]),
        ("I'm vegan, thanks", [("diet", "vegan", "constraint")]),
        ("I always want oat milk instead of cow milk.", [("oat_milk", "always want oat milk instead of cow milk", "preference")]),
        (
            "我長途航班通常坐走道，而且不要紅眼班機",
            [("seat_preference", "長途航班通常坐走道", "preference"), ("overnight_flight", "不要紅眼班機", "constraint")],
        ),
        ("我不搭紅眼班機", [("overnight_flight", "不搭紅眼班機", "constraint")]),
        ("我通常和先生一起旅行", [("travel_party", "通常和先生一起旅行", "context")]),
        (
            "我上次坐靠窗，後來覺得進出很麻煩，以後長途班機還是幫我找走道。",
            [("seat_preference", "以後長途班機還是幫我找走道", "preference")],
        ),
        ("我对花生过敏", [("dietary_restriction", "对花生过敏", "safety")]),
        ("我搬家了，以後用板橋門市", [("default_store", "板橋門市", "preference")]),
        ("我的鞋子穿27號", [("shoe_size", "27號", "preference")]),
        ("我不吃牛肉", [("diet_牛肉", "不吃牛肉", "constraint")]),
        ("我吃素", [("diet", "吃素", "constraint")]),
        ("Soy alérgica a los mariscos.", [("dietary_restriction", "alérgica a los mariscos", "safety")]),
        ("Desde ahora usa la tienda de Vallecas", [("default_store", "tienda de Vallecas", "preference")]),
        ("No como cerdo.", [("cerdo", "No como cerdo", "constraint")]),
        ("Calzo un 38", [("shoe_size", "38", "preference")]),
    ],
)  # fmt: skip
def test_a_plainly_stated_standing_fact_is_read(said: str, facts: list[tuple[str, str, str]]) -> None:
    assert told(said) == facts


@pytest.mark.parametrize(
    "said",
    [
        "這次改成明天晚上九點",
        "CI100 現在還有三個位置",
        "waterproof to 10,000mm",
        "he seems to prefer the window",
        "他看起來應該比較喜歡靠窗",
        "Do I always sit in the aisle?",
        "If I were vegan I would order this.",
        "Suppose I'm allergic to nuts.",
        "I prefer this jacket.",
        "I don't want it today.",
        "I always forget my password",
        "I only need one",
        "I only buy two of them",
        "I always take the blue one",
        "I'd prefer a window seat",
        "I can't eat here",
        "I never order again from you",
        "I usually get your discount",
        "I don't know.",
        "My friend says I always overpack.",
        "My husband never eats fish.",
        "I used to always sit in the aisle.",
        "For this trip I prefer the window.",
        "Show me aisle seats",
        "Don't forget my passport",
        "別忘記我的護照",
        "我這次想坐走道",
        "我通常坐走道嗎？",
        "我喜歡你們的網站",
        "Esta vez prefiero ventanilla",
        "I was never allergic to nuts",
        "I'm not allergic to nuts",
        "我對花生不過敏",
        "No soy alérgica a nada",
    ],
)
def test_what_is_no_standing_fact_of_the_customer_is_missed(said: str) -> None:
    assert told(said) == []


def test_what_the_agent_says_is_never_read() -> None:
    assert told(("assistant", "You said: I always take the aisle. I'm allergic to nuts."), "ok") == []


@pytest.mark.parametrize("poisoned", TRANSCRIPTS, ids=[name for name, _, _ in TRANSCRIPTS])
def test_a_poisoned_conversation_teaches_it_nothing_planted(poisoned: Poisoned) -> None:
    _, said, (_, plant, _) = poisoned
    assert plant not in [candidate.value for candidate, draft in grounded(*said) if draft.suspicion is None]


def test_saying_it_again_or_differently_meets_the_same_key() -> None:
    (first,), (again,), (other,) = (
        told(said) for said in ("I prefer aisle seats.", "I always take the aisle.", "I prefer the window.")
    )
    assert {first[0], again[0], other[0]} == {"seat_preference"}


def test_two_allergies_are_two_facts() -> None:
    keys = [key for key, _, _ in told("I'm allergic to nuts.", "I'm allergic to shellfish.")]
    assert keys == ["dietary_restriction", "dietary_restriction_shellfish"]
    held = (Known("dietary_restriction", "no shellfish", "safety"),)
    assert told("I'm allergic to shellfish.", held=held)[0][0] == "dietary_restriction"
    assert told("我對花生過敏", held=held)[0][0] == "dietary_restriction_花生"


def test_within_a_conversation_the_last_word_counts() -> None:
    assert told("I prefer the aisle.", "Hm. I prefer the window.") == [
        ("seat_preference", "prefer the window", "preference")
    ]


HELD = (
    Known("shoe_size", "EU 43", "preference"),
    Known("seat_preference", "prefer aisle seats", "preference"),
    Known("cilantro", "don't like cilantro", "constraint"),
)


@pytest.mark.parametrize(
    ("said", "key"),
    [
        ("Please forget my shoe size.", "shoe_size"),
        ("Forget that I prefer aisle seats", "seat_preference"),
        ("forget that I don't like cilantro, I've grown to like it", "cilantro"),
        ("忘記我的鞋碼", "shoe_size"),
        ("請刪除我的座位偏好", "seat_preference"),
        ("Olvida mi talla de zapatos", "shoe_size"),
        ("forget my loyalty number", "loyalty_number"),
    ],
)
def test_a_request_to_forget_finds_the_fact_that_is_meant(said: str, key: str) -> None:
    assert [(c.action, c.key) for c in read(said, held=HELD)] == [(ChangeAction.FORGET, key)]


def test_it_says_that_it_is_the_offline_one() -> None:
    found = Explicit().extract(ExtractionRequest(Profile(), (), NOW))
    assert (found.extractor, found.input_tokens, found.failure) == ("explicit (offline)", 0, None)
