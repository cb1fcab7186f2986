"""The 43 weaknesses found in the stores before this one, and the nine promises of the design: which tests hold each.

A weakness is held by the tests named beside it, or it says why it cannot concern this product. A name that is no test any
more, or a number without an answer, fails.
"""

from __future__ import annotations

import ast
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agent_bridge import jobs, reading
from agent_bridge.auth import SCOPES, issue
from agent_bridge.extraction import Extraction, ExtractionRequest, Turn
from memory_portal import store
from memory_portal.enums import ActorKind, ChangeAction, Origin, Reason
from memory_portal.models import Customer, MemoryFact, Tombstone
from memory_portal.store import Actor, Draft, Outcome, Subject
from memory_portal.store import contract as agreed
from memory_portal.store.contract import MemoryFact as ContractFact
from tests.conftest import NOW


class Held(NamedTuple):
    """What a customer would expect, and the tests that hold it."""

    expected: str
    tests: tuple[str, ...] = ()
    not_here: str = ""
    """Why there is nothing to hold."""


def held(expected: str, *tests: str) -> Held:
    return Held(expected, tests)


BREAKAGES: dict[str, Held] = {
    "1": held(
        "I no longer like leather: that is news, not a repetition",
        "test_no_longer_likes_leather_is_not_taken_for_likes_leather",
        "test_no_longer_liking_leather_is_not_lost_behind_liking_it",
        "test_adding_a_negation_is_never_the_same",
    ),
    "2": held("不吃辣 is not 吃辣", "test_not_eating_spicy_food_is_not_taken_for_eating_it"),
    "3": held(
        "EU 43 is not EU 42",
        "test_a_new_shoe_size_replaces_the_old_one_even_under_another_key",
        "test_a_different_amount_is_never_the_same",
        "test_changing_a_number_is_never_the_same",
    ),
    "4": held(
        "Tea has nothing to do with steak",
        "test_what_only_looks_alike_is_not_the_same",
        "test_one_short_value_mutes_nothing_under_another_key",
    ),
    "5": held("One short note mutes nothing", "test_one_short_value_mutes_nothing_under_another_key"),
    "6": held(
        "A long statement that mentions an old one is kept", "test_a_long_statement_that_mentions_a_short_one_is_kept"
    ),
    "7": held("Three ways to say it in Chinese are one fact", "test_three_ways_to_refuse_spicy_food_are_one_fact"),
    "8": held(
        "Said as a rule it becomes a rule",
        "test_saying_it_as_a_rule_raises_the_category_and_changes_nothing_else",
        "test_a_stronger_category_is_taken_over_and_a_weaker_one_is_not",
    ),
    "9": held(
        "My allergy is not overwritten by a whim",
        "test_nobody_but_the_customer_weakens_a_safety_fact",
        "test_a_weaker_statement_replaces_a_rule_in_place_but_the_stronger_category_stays",
        "test_a_former_value_is_there_until_the_fact_is_forgotten",
    ),
    "10": held(
        "My allergy comes before my bicycle, however much I said",
        "test_a_conversation_adds_at_most_three_facts_and_safety_comes_first",
        "test_one_name_three_times_in_a_conversation_uses_one_place",
    ),
    "11": held(
        "One shoe size, however its name is spelt",
        "test_three_spellings_of_a_name_written_by_an_agent_are_one_fact",
        "test_spellings_of_one_key_hold_one_shoe_size",
    ),
    "12": held(
        "What I wrote stays as I wrote it",
        "test_values_of_every_script_come_back_byte_for_byte",
        "test_what_the_customer_wrote_survives_unchanged",
    ),
    "13": held(
        "The exception at the end of a long sentence is not cut off",
        "test_too_long_names_field_and_limit_but_not_the_text",
        "test_a_statement_that_is_too_long_is_refused_whole_and_never_cut",
    ),
    "14": held(
        "Two long names stay two facts",
        "test_gift_topics_with_a_long_common_key_stay_two_facts",
        "test_a_long_key_is_refused_with_its_limit_and_never_cut",
    ),
    "15": held("A name has one spelling", "test_spellings_of_one_key_meet"),
    "16a": held("A card number does not hide in a name", "test_a_key_hides_nothing"),
    "16b": held(
        "Numbers and secrets are not kept, however they are written",
        "test_what_may_not_be_kept_is_refused_with_its_reason",
        "test_the_invented_set_meets_its_marks",
        "test_health_in_any_category_needs_the_same_consent",
    ),
    "16c": held("Dates, sizes and product numbers are kept", "test_what_shops_and_tastes_are_made_of_is_kept"),
    "17": held(
        "Forgetting in one process is not undone by another",
        "test_two_processes_writing_at_once_lose_nothing",
        "test_forgetting_everything_beats_a_write_in_flight",
    ),
    "18": held(
        "Two writers lose nothing",
        "test_two_processes_writing_at_once_lose_nothing",
        "test_many_tasks_of_one_loop_and_two_loops_at_once_lose_nothing",
    ),
    "19": Held("A crash does not empty the memory", not_here="PostgreSQL's write-ahead log; there is no file of ours"),
    "20": Held(
        "Nobody else on the machine reads my facts", not_here="they stand in PostgreSQL, whose files are its own"
    ),
    "21": held(
        "What I forget while a conversation is being read stays forgotten",
        "test_a_fact_forgotten_while_it_is_being_written_never_comes_back",
    ),
    "22": held(
        "Forgetting everything reaches what is being written",
        "test_forgetting_everything_beats_a_write_in_flight",
        "test_forgetting_everything_leaves_nothing_and_voids_work_in_flight",
    ),
    "23": held(
        "An agent's own note is held to the same",
        "test_a_deleted_fact_written_again_waits_for_the_customer",
        "test_nothing_but_the_customer_brings_a_forgotten_fact_back",
    ),
    "24": held(
        "The newest word counts, and mine before all",
        "test_an_older_statement_never_overwrites_a_newer_one_whatever_order_they_arrive_in",
        "test_a_customers_correction_is_never_lost_to_a_write_in_flight",
        "test_a_correction_is_overwritten_by_nobody_and_a_later_difference_is_a_question",
    ),
    "25": held(
        "Forgetting one thing is not forgetting everything",
        "test_delete_and_then_clear_is_generation_one",
        "test_forgetting_one_fact_does_not_move_the_generation",
    ),
    "26": held(
        "Saying forget it is enough",
        "test_a_request_to_forget_finds_the_fact_that_is_meant",
        "test_the_customers_own_words_are_enough",
        "test_forgetting_a_safety_fact_on_an_agents_word_is_a_question",
    ),
    "27": held(
        "After forgetting everything no name of a fact is kept for ever",
        "test_after_forgetting_everything_the_names_go_when_their_time_is_over",
    ),
    "28": held(
        "What has ended is erased, and an allergy never ends silently",
        "test_a_safety_fact_never_runs_out_silently_but_asks_for_a_review",
        "test_a_fact_ends_at_its_microsecond_whatever_the_clocks_did",
        "test_a_sweep_killed_anywhere_and_called_again_comes_to_the_same_end",
    ),
    "29": held(
        "Saying it again renews it, no clock runs ahead, and nothing fresh is swept away",
        "test_restating_a_fact_renews_it",
        "test_a_date_in_the_far_future_does_not_lead",
        "test_a_timestamp_from_the_future_counts_as_now_and_never_leads_for_ever",
        "test_a_fact_restated_at_the_last_moment_survives_the_sweep",
    ),
    "30": held("What is handed out is a copy", "test_changing_what_was_handed_in_or_out_changes_nothing_stored"),
    "31": held("A question in Chinese finds it", "test_chinese_is_searched_by_characters_and_pairs"),
    "32": held(
        "Small words find nothing, plurals do",
        "test_a_question_full_of_small_words_does_not_list_everything",
        "test_a_word_inside_another_is_not_that_word",
        "test_a_search_finds_other_forms_of_a_word",
    ),
    "33": held(
        "A hundred rules do not flood the conversation",
        "test_a_hundred_constraints_do_not_flood_the_prompt_and_what_was_left_out_is_counted",
        "test_an_edit_at_the_limit_still_works",
    ),
    "34": held("No half records", "test_a_bounded_answer_is_whole_records_within_the_bound"),
    "35": held(
        "The last thing I said is read, too",
        "test_what_is_said_at_the_end_of_a_long_conversation_is_handed_to_the_reader",
    ),
    "36": held(
        "Nothing said is lost because the reader was down",
        "test_turns_of_one_session_join_the_waiting_job_in_order",
        "test_a_failed_try_waits_in_the_row_and_longer_each_time",
        "test_a_worker_killed_while_the_model_thinks_loses_and_doubles_nothing",
    ),
    "37": held(
        "What a shop's page says is not what I said",
        "test_only_the_text_of_user_and_assistant_is_kept",
        "test_a_model_that_obeys_everybody_plants_no_active_fact",
    ),
    "38": held(
        "A review I quote does not speak for me",
        "test_a_quote_must_stand_in_one_turn",
        "test_a_pasted_request_to_forget_is_at_most_a_question",
        "test_a_model_that_obeys_everybody_plants_no_active_fact",
    ),
    "39": held(
        "A remembered value cannot pose as a new conversation",
        "test_a_line_break_becomes_one_space",
        "test_an_order_hidden_in_a_value_stays_a_value",
    ),
    "40": held(
        "A kind that does not exist is refused by name",
        "test_an_unknown_category_is_refused",
        "test_a_category_nobody_knows_is_refused_and_no_outage",
    ),
    "41": held("Correcting never makes a second fact", "test_correcting_a_fact_of_any_spelling_makes_no_second_one"),
    "42": held(
        "I see where each fact came from, and can undo one conversation",
        "test_a_session_id_is_never_kept_only_its_tag",
        "test_an_edit_keeps_the_category_and_drops_a_quote_that_no_longer_proves_it",
        "test_everything_from_one_conversation_goes_in_one_act_but_what_the_customer_wrote_stays",
    ),
    "43": held("Nobody is nobody's customer", "test_an_unusable_subject_id_is_refused_by_name"),
}

PROMISES: dict[str, Held] = {
    "P1": held(
        "Deleted stays deleted",
        "test_a_fact_forgotten_while_it_is_being_written_never_comes_back",
        "test_nothing_but_the_customer_brings_a_forgotten_fact_back",
        "test_the_store_does_what_the_model_says_in_any_order",
        "test_a_forgotten_fact_comes_back_as_a_question_only",
    ),
    "P2": held(
        "The customer's word wins",
        "test_a_thousand_re_extractions_after_a_correction_overwrite_nothing",
        "test_a_thousand_agent_writes_after_a_correction_overwrite_nothing_and_become_questions",
        "test_a_lower_rank_never_overwrites_a_higher_one",
    ),
    "P3": held(
        "Every fact carries the customer's own words",
        "test_the_draft_carries_the_words_as_they_were_said_and_where",
        "test_what_was_not_said_is_refused_with_a_reason",
        "test_fuzzed_answers_leave_no_ungrounded_active_fact_and_raise_nothing",
    ),
    "P4": held(
        "Rules are enforced by code, for every writer",
        "test_no_writer_sets_origin_lock_version_or_proof_of_a_fact",
        "test_fuzzed_writes_leave_nothing_outside_the_allowed_keys_kinds_and_lengths",
        "test_a_detector_that_fails_lets_nothing_in_on_any_way",
    ),
    "P5": held(
        "Tool results and agent text are never evidence",
        "test_only_the_text_of_user_and_assistant_is_kept",
        "test_the_agent_s_words_are_no_proof",
        "test_what_the_agent_says_is_never_read",
    ),
    "P6": held(
        "No turn is lost, none is learned twice",
        "test_a_conversation_is_kept_before_the_answer",
        "test_a_worker_killed_before_its_commit_loses_and_doubles_nothing",
        "test_a_whole_worker_killed_and_started_again_loses_and_doubles_nothing",
    ),
    "P7": held(
        "Nobody reaches another customer's facts",
        "test_another_customers_fact_is_not_there",
        "test_another_profiles_customer_is_the_same_bytes_as_nobody",
        "test_nothing_of_another_customer_is_ever_on_the_page",
    ),
    "P8": held(
        "Values live in the fact tables and nowhere else",
        "test_two_hundred_canaries_are_nowhere_after_forgetting",
        "test_events_reads_and_seals_have_no_room_for_a_value",
        "test_no_value_is_logged_on_the_way_to_a_fact",
    ),
    "P9": held(
        "Memory is off, or partly off, by deployment, customer and category",
        "test_with_memory_off_every_door_of_the_store_says_so_and_keeps_nothing",
        "test_after_pausing_learning_nothing_is_accepted_and_waiting_conversations_teach_nothing",
        "test_a_kind_switched_off_is_neither_learned_nor_used",
        "test_a_safety_fact_waits_for_consent_and_no_agent_sees_it",
    ),
}


@cache
def names_of_tests() -> frozenset[str]:
    return frozenset(
        node.name
        for path in Path(__file__).parent.glob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    )


def test_every_weakness_and_every_promise_has_an_answer() -> None:
    numbers = {str(n) for n in range(1, 44)} - {"16"} | {"16a", "16b", "16c"}
    assert set(BREAKAGES) == numbers
    assert set(PROMISES) == {f"P{n}" for n in range(1, 10)}
    unanswered = [name for name, answer in {**BREAKAGES, **PROMISES}.items() if not (answer.tests or answer.not_here)]
    assert unanswered == []
    print(f"\n43 weaknesses: {sum(bool(answer.tests) for answer in BREAKAGES.values())} entries held by tests")


@pytest.mark.parametrize("name", [*BREAKAGES, *PROMISES])
def test_the_tests_that_hold_it_exist(name: str) -> None:
    answer = {**BREAKAGES, **PROMISES}[name]
    assert set(answer.tests) - names_of_tests() == set()


# --- what no other test held ------------------------------------------------------------------------------------------

ALICE = Subject("alice", "grocery")
CUSTOMER = Actor(ActorKind.CUSTOMER, "alice")
JOB = Actor(ActorKind.JOB, "job-1", "Shopping assistant")
AGENT = Actor(ActorKind.AGENT, "3", "Shopping assistant")


def said(key: str, value: str, category: str = "preference", origin: Origin = Origin.EXTRACTION, **more: Any) -> Draft:
    at = more.pop("said_at", NOW)
    words = more.pop("source_quote", value)
    return store.draft(
        key=key, value=value, category=category, origin=origin, said_at=at, now=at, source_quote=words, **more
    )


def submit(*drafts: Draft, actor: Actor = JOB, **more: Any) -> list[Outcome]:
    return store.submit(ALICE, list(drafts), actor, now=max(d.said_at for d in drafts), **more)


def alice() -> Customer:
    found = store.find(ALICE)
    assert found is not None
    return found


@pytest.mark.django_db
def test_three_spellings_of_a_name_written_by_an_agent_are_one_fact() -> None:
    for key, value in (("shoe_size", "EU 42"), ("Shoe  Size", "EU 43"), ("shoe-size", "EU 42")):
        agreed.upsert(ALICE, [ContractFact(key=key, value=value)], AGENT, now=NOW)
    assert list(MemoryFact.objects.values_list("key", "value")) == [("shoe_size", "EU 42")]


@pytest.mark.django_db
def test_a_statement_that_is_too_long_is_refused_whole_and_never_cut() -> None:
    text = "likes cotton shirts, " * 9 + "but never anything with wool"
    assert len(text) > store.VALUE_LIMIT
    with pytest.raises(store.InvalidDraft, match="at most 200"):
        agreed.upsert(ALICE, [ContractFact.model_construct(key="shirts", value=text)], AGENT, now=NOW)
    assert not MemoryFact.objects.exists()


@pytest.mark.django_db
def test_a_former_value_is_there_until_the_fact_is_forgotten() -> None:
    submit(said("diet", "no dairy", "constraint"))
    submit(said("diet", "no dairy but butter", "preference", said_at=NOW + timedelta(days=1)))
    (row,) = MemoryFact.objects.all()
    assert (row.value, row.category) == ("no dairy but butter", "constraint")
    assert [former.value for former in row.revisions.all()] == ["no dairy"]


@pytest.mark.django_db
def test_after_forgetting_everything_the_names_go_when_their_time_is_over() -> None:
    submit(said("gift_for_mia", "likes tulips"))
    store.clear(ALICE, CUSTOMER, now=NOW)
    assert [stone.key for stone in Tombstone.objects.all()] == ["gift_for_mia"]
    store.sweep(now=NOW + timedelta(days=730))
    assert not Tombstone.objects.exists()


@pytest.mark.django_db
def test_a_fact_restated_at_the_last_moment_survives_the_sweep() -> None:
    submit(said("seat", "aisle"))
    last = NOW + timedelta(days=365) - timedelta(microseconds=1)
    assert submit(said("seat", "aisle", said_at=last))[0].decision == "renewed"
    assert store.sweep(now=NOW + timedelta(days=365))["facts"] == 0
    assert MemoryFact.objects.exists()


@pytest.mark.django_db
def test_what_is_said_at_the_end_of_a_long_conversation_is_handed_to_the_reader() -> None:
    heard: list[str] = []

    class Reader:
        def extract(self, request: ExtractionRequest) -> Extraction:
            heard.extend(turn.text for turn in request.turns)
            quote = "by the way I am vegan now"
            return Extraction(
                "reader", candidates=(store.Candidate(ChangeAction.REMEMBER, "diet", "vegan", quote=quote),)
            )

        def tokens_at_most(self, request: ExtractionRequest) -> int:
            return 0

    key, _ = issue("Shopping assistant", "grocery", SCOPES, now=NOW)
    turns = [Turn("user", "a long story " * 2_000, NOW), Turn("assistant", "I see. " * 2_000, NOW)]
    turns.append(Turn("user", "thanks, and by the way I am vegan now", NOW))
    job = jobs.submit(ALICE, key, turns, session_id="s", now=NOW, debounce=timedelta())
    reading.run(job.pk, clock=lambda: NOW, extractor=Reader())
    assert heard[-1].endswith("I am vegan now")
    assert [fact.value for fact in store.facts(alice(), now=NOW)] == ["vegan"]


@pytest.mark.django_db
def test_a_category_nobody_knows_is_refused_and_no_outage() -> None:
    for category in ("allergy", "", None):
        fact = ContractFact.model_construct(key="nuts", value="no nuts", category=category)
        assert agreed.upsert(ALICE, [fact], AGENT, now=NOW)["nuts"].reason is Reason.UNKNOWN_CATEGORY


@pytest.mark.django_db
def test_correcting_a_fact_of_any_spelling_makes_no_second_one() -> None:
    submit(said("Shoe Size", "EU 42"))
    (fact,) = store.facts(alice(), now=NOW)
    own = said("Shoe-Size", "EU 43", origin=Origin.CUSTOMER, source_quote="")
    store.correct(alice().pk, fact.id, own, CUSTOMER, now=NOW, version=fact.version)
    assert list(MemoryFact.objects.values_list("key", "value")) == [("shoe_size", "EU 43")]
