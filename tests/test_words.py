"""How words are folded: much for a search, little for a comparison."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_portal.store import sentences, words
from memory_portal.store.sentences import DONE, NOT, ONCE, inflection, key_words, read
from memory_portal.store.words import tokens


def found(query: str, text: str) -> bool:
    return not set(tokens(query)).isdisjoint(tokens(text))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("running shoes", "Wears a size 42 shoe"),
        ("allergies", "has a pollen allergy"),
        ("cafe", "meets friends in a café"),
        ("咖啡", "喜歡手沖咖啡"),
        ("手冲", "喜歡手沖咖啡"),
        ("zapatos", "prefiere los zapatos de piel"),
        ("un zapato de piel", "zapatos"),
        ("Schuhe", "Ich mag keine engen Schuhe"),
        ("ＷＯＯＬ", "avoids wool"),
        ("iPhone 手機殼", "wants an iPhone case"),
        ("42", "wears EU 42"),
        ("कपड़े", "सूती कपड़े पसंद"),
    ],
)
def test_a_search_finds_other_forms_of_a_word(query: str, text: str) -> None:
    assert found(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [("is there a dog", "there is a cat"), ("tea", "prefers steak"), ("4", "wears EU 42"), ("don't", "doesn't smoke")],
)
def test_small_words_and_parts_of_words_find_nothing(query: str, text: str) -> None:
    assert not found(query, text)


def test_chinese_is_searched_by_characters_and_pairs() -> None:
    assert tokens("手沖咖啡") == ("手", "冲", "咖", "啡", "手冲", "冲咖", "咖啡")


def test_a_text_without_words_has_none() -> None:
    assert tokens("... !") == ()
    assert read("... !").said == ()


@pytest.mark.parametrize(
    "forms",
    [
        "walk walks walking",
        "make makes making",
        "hope hopes hoping",
        "stop stops stopping",
        "dance dances dancing",
        "travel travels travelling traveling",
        "movie movies",
        "box boxes",
        "watch watches watching",
        "shoe shoes",
        "tomato tomatos",
        "allergy allergies",
        "glass glasses",
        "roll rolls rolling",
    ],
)
def test_forms_of_one_word_compare_equal(forms: str) -> None:
    assert len({inflection(form) for form in forms.split()}) == 1


@pytest.mark.parametrize(
    "pair",
    [
        "cap cape",
        "hop hope",
        "late lately",
        "hard hardly",
        "organ organic",
        "custom customer",
        "bed bedding",
        "cloth clothing",
        "plan plane",
        "live lived",
        "need needed",
        "feed fed",
        "universe university",
    ],
)
def test_different_words_do_not_compare_equal(pair: str) -> None:
    one, other = pair.split()
    assert inflection(one) != inflection(other)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("I don't like wool", (NOT, "like", "wool")),
        ("cannot eat wheat", ("can", NOT, "eat", "wheat")),
        ("can't eat wheat", ("can", NOT, "eat", "wheat")),
        ("isn't vegan", (NOT, "vegan")),
        ("no longer eats meat", (NOT, "eat", "meat")),
        ("does not eat meat any more", (NOT, "eat", "meat")),
        ("eats no more than 2 eggs", ("eat", NOT, "more", "than", "2", "egg")),
        ("used to smoke", (ONCE, "smoke")),
        ("didn't smoke", (ONCE, NOT, "smoke")),
        ("tried a boat", (DONE, "try", "boat")),
        ("bought a boat", (DONE, "buy", "boat")),
        ("mag kein Leder mehr", ("mag", NOT, "led")),
        ("nicht mehr als 2 Eier", (NOT, "mehr", "als", "2", "eier")),
        ("ya no come carne", (NOT, "com", "carn")),
        ("3 1/2 cups", ("3", "1/2", "cup")),
        ("5½", ("5", "1/2")),
        ("10²", ("10^2",)),
        ("-5°C", ("-5", "°", "c")),
        ("10kg", ("10", "kg")),
        ("1,200 EUR", ("1200", "€")),
        ("two cats", ("2", "cat")),
        ("我的貓不吃魚", ("猫", "不", "吃", "鱼")),
        ("特别的机会", ("特", "别", "机", "会")),
    ],
)
def test_negation_past_numbers_and_units_are_read(text: str, said: tuple[str, ...]) -> None:
    assert read(text).said == said


@pytest.mark.parametrize(
    ("passive", "active"),
    [
        ("is bothered by trains", "trains bother me"),
        ("is not bothered by trains", "trains don't bother me"),
        ("was helped by Ann", "Ann helped me"),
        ("was not helped by Ann", "Ann did not help me"),
        ("the garden is watered by Ann, the lawn isn't", "Ann waters the garden, the lawn isn't"),
    ],
)
def test_a_passive_reads_like_its_active(passive: str, active: str) -> None:
    assert [word for word in read(passive).said if word not in (ONCE, DONE)] == [
        word for word in read(active).said if word not in (ONCE, DONE)
    ]


@pytest.mark.parametrize("text", ["by bus", "made by hand", "travelled by train", "is loved by", "bothered by noise"])
def test_by_without_a_doer_and_a_verb_of_being_turns_nothing(text: str) -> None:
    assert "by" in read(text).said


def test_a_relative_clause_reads_like_its_adjective() -> None:
    assert read("a coat which is warm").said == read("a warm coat").said
    assert read("a coat which is not warm").said != read("a warm coat").said


@pytest.mark.parametrize(
    "text",
    [
        "avoids wool",
        "I run daily",
        "My dog is vegan",
        "不吃辣",
        "我是獅子座",
        "I am tall",
        "I live in the US",
        "has one small dog",
    ],
)
def test_a_value_that_names_its_subject_stands_alone(text: str) -> None:
    assert read(text).stands


@pytest.mark.parametrize(
    "text", ["M", "a", "tea", "42", "EU 42", "likes it black", "wears EU 43", "red wine", "茶", "!"]
)
def test_a_value_that_hangs_on_its_key_does_not_stand_alone(text: str) -> None:
    assert not read(text).stands


def test_the_words_of_a_key_have_no_order() -> None:
    assert key_words("shirt_size") == key_words("size_shirts")


@settings(deadline=None)
@given(st.text(max_size=80))
def test_any_text_can_be_read_and_searched(text: str) -> None:
    assert all(tokens(text))
    assert all(read(text).said)


@settings(deadline=None)
@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=14))
def test_inflection_leaves_a_word(word: str) -> None:
    assert inflection(word).rstrip("+")


def test_what_was_worked_out_of_texts_can_be_forgotten_at_once() -> None:
    words.tokens("Wears a marker zzyzx")
    sentences.read("Wears a marker zzyzx")
    words.forget_texts()
    assert [cached for cached in words._of_texts if cached.cache_info().currsize] == []
    assert words.tokens.cache_info().maxsize == words.CACHED_TEXTS


def test_threads_that_read_words_at_once_do_not_get_each_others(request: pytest.FixtureRequest) -> None:
    request.addfinalizer(partial(sys.setswitchinterval, sys.getswitchinterval()))
    sys.setswitchinterval(1e-6)
    heads = ["".join(letters) for letters in product("bcdfglmnp", "aeiou", "rstvz")]
    spoken = [f"{head}ational {head}fulness {head}ibility {head}ization {head}ousli" for head in heads]
    words.forget_texts()
    with ThreadPoolExecutor(8) as pool:
        at_once = list(pool.map(tokens, spoken))
    words.forget_texts()
    assert at_once == [tokens(text) for text in spoken]
