"""The right few facts: what every turn sees, what this message calls for, what an agent finds when it asks."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_portal.enums import FactState, Origin
from memory_portal.store import lexicon, ranking, recall
from memory_portal.store.types import CONSTRAINT, CONTEXT, PREFERENCE, SAFETY, TOPIC_LIMIT, TOPICS_LIMIT, Fact

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def fact(
    number: int,
    value: str,
    key: str = "",
    category: str = PREFERENCE,
    *,
    days: float = 1,
    topics: tuple[str, ...] = (),
    state: FactState = FactState.ACTIVE,
    expires_at: datetime | None = None,
) -> Fact:
    then = NOW - timedelta(days=days)
    return Fact(
        id=number,
        key=key or f"fact_{number}",
        value=value,
        category=category,
        origin=Origin.CUSTOMER,
        state=state,
        version=1,
        created_at=then,
        updated_at=then,
        said_at=then,
        expires_at=expires_at,
        topics=topics,
    )


HOUSEHOLD = [
    fact(1, "Wears EU 43", "shoe_size"),
    fact(2, "喜欢手冲咖啡", "taste"),
    fact(3, "Severe allergy to hazelnuts", "nut_allergy", SAFETY),
    fact(4, "The long dining table was for the cottage by the lake", "last_table", CONTEXT),
    fact(5, "Collects old hats", "hobby", CONTEXT),
    fact(6, "Kauft gern Wanderschuhe", "wandern"),
    fact(7, "Has two greyhounds", "dogs", CONTEXT),
    fact(8, "Avoids wool", "fabric", CONSTRAINT),
    fact(9, "Le gusta sentarse junto a la ventanilla", "seat"),
]


def ids(facts: Sequence[Fact]) -> list[int]:
    return [one.id for one in facts]


def told(message: str, facts: Sequence[Fact] = HOUSEHOLD, **options: object) -> list[int]:
    return ids(recall.relevant(facts, message, now=NOW, **options))  # type: ignore[arg-type]


def found(topic: str, facts: Sequence[Fact] = HOUSEHOLD) -> list[int]:
    return ids(recall.lookup(facts, topic, now=NOW))


class TestWhatEveryTurnSees:
    def test_safety_comes_first_then_constraints_then_the_rest_each_in_the_order_they_were_written(self) -> None:
        held = [
            fact(1, "Likes jazz", days=1),
            fact(2, "No pork", category=CONSTRAINT, days=9),
            fact(3, "Allergic to latex", category=SAFETY, days=300),
            fact(4, "Uses a wheelchair", category=CONSTRAINT, days=2),
            fact(5, "Planning a picnic", category=CONTEXT, days=40),
        ]
        assert ids(recall.always(held, now=NOW)[0]) == [3, 2, 4, 1, 5]

    def test_the_most_recently_updated_others_fill_up_to_the_cap(self) -> None:
        held = [fact(n, f"Fact number {n}", days=n) for n in range(1, 13)] + [fact(20, "No pork", category=CONSTRAINT)]
        shown, dropped = recall.always(held, now=NOW, cap=4)
        assert ids(shown) == [20, 1, 2, 3]
        assert dropped == 0

    def test_every_constraint_is_seen_even_past_the_cap(self) -> None:
        held = [fact(n, f"Rule number {n}", category=CONSTRAINT) for n in range(1, 13)]
        assert len(recall.always([*held, fact(20, "Likes jazz")], now=NOW, cap=8)[0]) == 12

    def test_a_hundred_constraints_do_not_flood_the_prompt_and_what_was_left_out_is_counted(self) -> None:
        held = [fact(n, f"Rule number {n} " + "x" * 150, category=CONSTRAINT) for n in range(1, 101)]
        shown, dropped = recall.always(held, now=NOW, cap=0, budget_chars=4_000)
        assert sum(len(one.key) + len(one.value) for one in shown) <= 4_000
        assert len(shown) + dropped == 100
        assert dropped > 0

    @pytest.mark.parametrize("budget", [0, 1, 100, 250, 4_000])
    def test_the_budget_drops_anything_but_safety(self, budget: int) -> None:
        held = [
            fact(1, "Allergic to hazelnuts " + "x" * 170, category=SAFETY),
            fact(2, "Never ring the bell " + "x" * 170, category=CONSTRAINT),
            fact(3, "Allergic to latex " + "x" * 170, category=SAFETY),
        ]
        shown, _ = recall.always(held, now=NOW, budget_chars=budget)
        assert {1, 3} <= set(ids(shown))

    def test_a_tight_budget_goes_to_constraints_before_newer_preferences(self) -> None:
        held = [fact(1, "Likes jazz", days=0), fact(2, "No pork", category=CONSTRAINT, days=90)]
        shown, dropped = recall.always(held, now=NOW, budget_chars=recall.RECORD_CHARS + 20)
        assert ids(shown) == [2]
        assert dropped == 1

    def test_the_order_stays_as_it_is_until_a_fact_changes(self) -> None:
        held = [fact(n, f"Fact number {n}", days=n % 5) for n in range(1, 9)]
        before = ids(recall.always(held, now=NOW)[0])
        for seed in range(5):
            shuffled = random.Random(seed).sample(held, len(held))
            assert ids(recall.always(shuffled, now=NOW + timedelta(minutes=seed))[0]) == before

    def test_updating_a_fact_does_not_move_it(self) -> None:
        held = [fact(n, f"Fact number {n}", days=5) for n in range(1, 4)]
        changed = [held[0], replace(held[1], value="Another value", updated_at=NOW), held[2]]
        assert ids(recall.always(changed, now=NOW)[0]) == [1, 2, 3]

    @pytest.mark.parametrize(
        "gone",
        [
            fact(9, "Old news", expires_at=NOW),
            fact(9, "Old news", expires_at=NOW - timedelta(days=1)),
            fact(9, "Disputed", state=FactState.FROZEN),
            fact(9, "Allergic to pollen", category=SAFETY, state=FactState.FROZEN),
            fact(9, "Switched off", category="gossip"),
        ],
        ids=["expiring this instant", "expired", "frozen", "frozen safety", "category off"],
    )
    def test_no_layer_shows_what_must_not_be_used(self, gone: Fact) -> None:
        off = frozenset({"gossip"})
        assert recall.always([gone], now=NOW, off_categories=off) == ([], 0)
        assert recall.relevant([gone], gone.value, now=NOW, off_categories=off) == []
        if gone.category != "gossip":
            assert recall.lookup([gone], gone.value, now=NOW) == recall.lookup([gone], "", now=NOW) == []

    def test_a_fact_is_used_up_to_the_instant_it_expires(self) -> None:
        assert recall.always([fact(1, "Visiting Lima", expires_at=NOW + timedelta(seconds=1))], now=NOW)[0]

    def test_a_date_in_the_far_future_does_not_lead(self) -> None:
        absurd = replace(fact(1, "From the year 2999"), updated_at=NOW.replace(year=2999))
        held = [absurd, *(fact(n, f"Fact number {n}", days=n) for n in range(2, 5))]
        assert ids(recall.always(held, now=NOW, cap=3)[0]) == [2, 3, 4]

    def test_a_clock_a_minute_ahead_is_forgiven(self) -> None:
        ahead = replace(fact(1, "Just said"), updated_at=NOW + timedelta(minutes=1))
        assert ids(recall.always([ahead, fact(2, "Older")], now=NOW, cap=1)[0]) == [1]

    def test_a_fact_without_a_time_is_the_oldest_and_one_without_a_zone_is_in_utc(self) -> None:
        timeless = replace(fact(1, "Nobody knows when"), updated_at=None)  # type: ignore[arg-type]
        naive = replace(fact(2, "No zone"), updated_at=NOW.replace(tzinfo=None), expires_at=datetime(2026, 3, 2))  # noqa: DTZ001  # the point
        held = [timeless, naive, fact(3, "A day old")]
        assert ids(recall.always(held, now=NOW, cap=2)[0]) == [2, 3]
        assert ids(recall.always(held, now=NOW.replace(tzinfo=None), cap=2)[0]) == [2, 3]

    def test_the_policy_says_which_categories_are_always_seen(self) -> None:
        held = [
            fact(1, "Likes jazz"),
            fact(2, "No pork", category=CONSTRAINT),
            fact(3, "Is 8 ft tall", category="measure"),
        ]
        assert ids(recall.always(held, now=NOW, cap=0, layer_one={"measure"})[0]) == [3]

    def test_a_customer_of_whom_nothing_is_known_gives_nothing(self) -> None:
        assert recall.always([], now=NOW) == ([], 0)
        assert recall.relevant([], "a sofa", now=NOW) == []
        assert recall.lookup([], "sofa") == recall.lookup([], "") == recall.matches([], "sofa") == []


class TestWhatThisMessageCallsFor:
    @pytest.mark.parametrize(
        ("message", "expected"),
        [
            ("Do you have running shoes in my size?", 1),
            ("is this pullover made of wool?", 8),
            ("what could I get for my dogs?", 7),
            ("我想买点咖啡豆", 2),
            ("Which desserts contain hazelnuts?", 3),
        ],
    )
    def test_the_fact_that_bears_on_the_request_comes_first(self, message: str, expected: int) -> None:
        assert told(message)[:1] == [expected]

    @pytest.mark.parametrize(
        "message",
        [
            "",
            "   ",
            "hello",
            "thanks!",
            "ok",
            "where is my order 48213?",
            "tell me more",
            "谢谢",
            "gracias",
            "?!",
            "🙂",
            "the",
        ],
    )
    def test_small_talk_and_errands_bring_up_nothing(self, message: str) -> None:
        assert told(message) == []

    def test_words_of_a_topic_find_a_fact_that_shares_none_with_the_request(self) -> None:
        plain = fact(1, "Takes the stairs only in good company")
        helped = replace(plain, topics=("hotel room", "high floor", "elevator", "accommodation"))
        others = [fact(n, f"Collects stamps of series {n}") for n in range(2, 9)]
        assert told("Please book a hotel room with an elevator", [plain, *others]) == []
        assert told("Please book a hotel room with an elevator", [helped, *others]) == [1]

    def test_never_more_than_asked_for(self) -> None:
        held = [fact(n, f"Prefers oat milk brand {n} in coffee", topics=("coffee", "milk")) for n in range(1, 12)]
        held += [fact(n, "Likes jazz") for n in range(20, 60)]
        assert len(told("coffee with oat milk please", held)) == recall.PREFETCH_CAP
        assert len(told("coffee with oat milk please", held, k=2)) == 2
        assert told("coffee with oat milk please", held, k=0) == []

    def test_a_fact_shown_in_layer_one_is_not_told_twice(self) -> None:
        assert 8 in told("is this pullover made of wool?")
        assert 8 not in told("is this pullover made of wool?", exclude={8})

    def test_the_page_the_customer_is_on_counts_as_asked(self) -> None:
        assert told("which of these is best?") == []
        assert told("which of these is best?", hint="running shoes, size filter")[:1] == [1]

    def test_a_single_fact_is_not_shown_for_any_message_only_because_it_is_the_only_one(self) -> None:
        assert told("I want to learn how to play the piano", [fact(1, "Wants a quiet room")]) == []


class TestWhatAnAgentFindsWhenItAsks:
    def test_an_empty_topic_lists_everything_in_store_order(self) -> None:
        assert found("") == found("  \n") == ids(HOUSEHOLD)

    @pytest.mark.parametrize(
        ("topic", "expected"),
        [
            # contract row 32: plural, punctuation and hyphens
            ("shoes", 1),
            ("wool?", 8),
            ("shoe-size", 1),
            ("is there a dog", 7),
            ("Hats", 5),
            ("hat", 5),
            # contract row 31: Chinese without spaces
            ("我喜欢喝什么咖啡", 2),
            ("咖啡", 2),
            ("手沖咖啡", 2),
            # parts of words
            ("haz", 3),
            ("hazeln", 3),
            ("schuhe", 6),
            ("cotta", 4),
            # one letter wrong, missing, too many, or two swapped
            ("hazelmuts", 3),
            ("hazlnuts", 3),
            ("hazellnuts", 3),
            ("hazelntus", 3),
            ("alergy", 3),
            # names of keys, of categories, of departments, in other languages
            ("nut_allergy", 3),
            ("safety", 3),
            ("constraints", 8),
            ("furniture", 4),
            ("muebles", 4),
            ("Möbel", 4),
            ("傢俱", 4),
            ("Hunde", 7),
            ("perros", 7),
            ("狗", 7),
            ("alergia", 3),
            ("ventanilla", 9),
            ("window seat on a flight", 9),
        ],
    )
    def test_the_fact_meant_comes_first(self, topic: str, expected: int) -> None:
        assert found(topic)[:1] == [expected]

    @pytest.mark.parametrize("topic", ["quantum physics", "xyzzy", "1234567", "???", "…", "zzzz zzzz"])
    def test_a_topic_of_which_nothing_is_known_finds_nothing(self, topic: str) -> None:
        assert found(topic) == []

    @pytest.mark.parametrize(
        ("topic", "unwanted"), [("rain", "Takes the train"), ("owl", "Broke a bowl"), ("art", "Hates to start early")]
    )
    def test_a_word_inside_another_is_not_that_word(self, topic: str, unwanted: str) -> None:
        assert found(topic, [fact(1, unwanted), fact(2, "Plays chess")]) == []

    def test_a_question_full_of_small_words_does_not_list_everything(self) -> None:
        assert found("is there a dog in the house of this one or not")[0] == 7
        assert len(found("is there a dog in the house of this one or not")) <= 3

    def test_facts_with_more_of_the_topic_rank_higher(self) -> None:
        held = [
            fact(1, "Owns a red kettle"),
            fact(2, "Owns a kettle and a red teapot, both enamel"),
            fact(3, "Enamel only"),
        ]
        assert found("enamel kettle", held)[0] == 2

    def test_no_more_than_asked_for(self) -> None:
        held = [fact(n, f"Likes jazz record {n}") for n in range(1, 40)]
        assert len(recall.lookup(held, "jazz", k=7)) == 7
        assert recall.lookup(held, "jazz", k=0) == []

    def test_equal_facts_stay_in_store_order(self) -> None:
        held = [fact(n, "Likes jazz", "music") for n in (4, 2, 9)]
        assert found("jazz", held) == [4, 2, 9]

    @settings(deadline=None)
    @given(
        st.text(max_size=120),
        st.lists(
            st.tuples(st.text(max_size=64), st.text(max_size=200), st.lists(st.text(max_size=40), max_size=12)),
            max_size=6,
        ),
    )
    def test_no_text_whatever_breaks_a_read(self, asked: str, texts: list[tuple[str, str, list[str]]]) -> None:
        held = [fact(n, value, key, topics=tuple(topics)) for n, (key, value, topics) in enumerate(texts)]
        assert set(recall.lookup(held, asked)) <= set(held)
        assert set(recall.relevant(held, asked, now=NOW)) <= set(held)
        assert set(recall.matches(held, asked)) <= set(held)

    def test_broken_characters_break_nothing(self) -> None:
        assert found("\ud800 wool \x00")[0] == 8


class TestTheSearchOfTheContract:
    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("", [1, 2, 3, 4, 5, 6, 7, 8, 9]),
            ("WOOL", [8]),
            ("oo", [8]),
            ("shoe hats", [1, 5]),
            ("safety", [3]),
            ("nut_allergy", [3]),
            ("shoes", []),
            ("咖啡", [2]),
        ],
    )
    def test_any_word_is_a_substring_of_key_value_category_in_store_order(
        self, query: str, expected: list[int]
    ) -> None:
        assert ids(recall.matches(HOUSEHOLD, query)) == expected


class TestTheBuiltInTopics:
    @pytest.mark.parametrize(
        ("text", "department"),
        [
            ("The dining table was for the lake cottage", "furniture"),
            ("我的餐桌太小了", "furniture"),
            ("我的餐桌太小了，換一張餐桌", "furniture"),
            ("La mesa es demasiado pequeña", "furniture"),
            ("Der Esstisch ist zu klein", "furniture"),
            ("Kauft gern Trekkingschuhe", "footwear"),
            ("Drinks no coffee after noon", "coffee and tea"),
            ("對花生過敏", "allergy"),
            ("Alérgica a los frutos secos", "nuts"),
            ("薪水不高", "work"),
        ],
    )
    def test_what_a_customer_typed_gets_its_department_at_once(self, text: str, department: str) -> None:
        assert department in lexicon.topics_for(text)

    def test_a_wider_department_comes_after_its_own(self) -> None:
        topics = lexicon.topics_for("a sofa")
        assert topics.index("furniture") < topics.index("home")

    def test_a_phrase_is_not_its_parts(self) -> None:
        assert "coffee and tea" not in lexicon.topics_for("a coffee table")

    @pytest.mark.parametrize("text", ["", "xyzzy", "42", "…"])
    def test_of_an_unknown_text_nothing_is_guessed(self, text: str) -> None:
        assert lexicon.topics_for(text) == ()

    def test_topics_fit_a_fact_whatever_the_text(self) -> None:
        everything = " ".join(lexicon.lexicon().words)
        assert len(lexicon.topics_for(everything)) == TOPICS_LIMIT
        assert all(len(name) <= TOPIC_LIMIT for name in lexicon.lexicon().wider)

    def test_every_department_has_words_in_all_four_languages(self) -> None:
        for head, lines in lexicon._blocks():
            if not head.startswith(("same ", "light ")):
                assert [line.partition(": ")[0] for line in lines] == ["en", "zh", "es", "de"], head

    def test_topics_of_the_lexicon_do_not_pass_for_topics_that_somebody_wrote(self) -> None:
        typed = fact(1, "Wears EU 43", "shoe_size", topics=lexicon.topics_for("shoe size: Wears EU 43"))
        assert not ranking.cards_of([typed])[0].has_topics


@pytest.mark.parametrize("layer", ["relevant", "lookup"])
def test_two_hundred_facts_are_ranked_in_a_blink(layer: str) -> None:
    things = ["sofa", "kettle", "raincoat", "guitar", "bicycle", "notebook", "blanket", "lantern", "teapot", "hammock"]
    looks = ["green", "wooden", "second-hand", "quiet", "light", "sturdy", "foldable", "handmade", "tall", "plain"]
    held = [
        fact(
            n,
            f"Wants a {looks[n % 10]} {things[n // 10 % 10]} for room {n}, nothing shiny",
            topics=(things[n % 10], "home", "shop"),
        )
        for n in range(200)
    ]
    asked = [f"Can you recommend a {look} {thing} for the holidays?" for look in looks for thing in things]
    ask = {"relevant": lambda text: told(text, held), "lookup": lambda text: found(text, held)}[layer]
    ask(asked[0])
    took = []
    for text in asked:
        start = time.thread_time()
        ask(text)
        took.append((time.thread_time() - start) * 1000)
    p95 = statistics.quantiles(took, n=20)[-1]
    print(f"\n{layer}: 200 facts, p50 {statistics.median(took):.2f} ms, p95 {p95:.2f} ms")
    assert p95 < 5
