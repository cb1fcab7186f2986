"""The policy file: a wrong one is named by its setting, another one changes the rules without a line of code."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.core.checks import Error
from pytest_django import Settings

from memory_portal.checks import policy_file
from memory_portal.enums import ActorKind, Origin, Reason
from memory_portal.store import policy as rules
from memory_portal.store.types import Actor, Draft, Held
from tests.conftest import NOW

SHIPPED = Path(__file__).resolve().parent.parent / "memory_policy.toml"
JOB, CUSTOMER = Actor(ActorKind.JOB, name="Helper"), Actor(ActorKind.CUSTOMER)


@pytest.fixture
def table() -> dict[str, Any]:
    return tomllib.loads(SHIPPED.read_text("utf-8"))


def draft(key: str = "seat", value: str = "aisle", category: str = "preference", **kwargs: Any) -> Draft:
    return Draft(
        key=key, value=value, category=category, origin=Origin.EXTRACTION, said_at=NOW, agent="Helper", **kwargs
    )


def test_the_shipped_policy_is_usable_and_says_what_the_design_says(table: dict[str, Any]) -> None:
    policy = rules.read(SHIPPED)
    assert set(policy.categories) == {"preference", "constraint", "context", "safety"}
    assert (policy.limits.max_new_facts, policy.limits.tier_one_cap, policy.limits.facts_per_customer) == (3, 8, 200)
    assert policy.categories["safety"].consent
    assert not any(policy.categories[name].consent for name in ("preference", "constraint", "context"))
    assert {"general", "airline", "grocery", "retail"} <= set(policy.profiles)


@pytest.mark.parametrize(
    ("where", "value", "named"),
    [
        (("memory",), "perhaps", "memory"),
        (("limits", "tier_one_cap"), -1, "limits.tier_one_cap"),
        (("limits", "colour"), 1, "limits.colour"),
        (("categories", "preference", "retention_days"), 0, "categories.preference.retention_days"),
        (("categories", "safety", "retention_days"), 30, "categories.safety.retention_days"),
        (("categories", "preference", "layer"), 3, "categories.preference.layer"),
        (("patterns", "blocked"), ["("], "patterns.blocked"),
        (("default_profile",), "nowhere", "default_profile"),
        (("profiles", "airline", "name"), "", "profiles.airline.name"),
        (("unknown",), 1, "unknown"),
    ],
)
def test_a_mistake_is_named_by_its_setting(
    table: dict[str, Any], where: tuple[str, ...], value: object, named: str
) -> None:
    target = table
    for step in where[:-1]:
        target = target[step]
    target[where[-1]] = value
    with pytest.raises(rules.PolicyError, match=named.replace(".", r"\.")):
        rules.parse(table)


@pytest.mark.parametrize(("text", "said"), [("memory = ", "not TOML"), ("memory = true", "categories")])
def test_a_wrong_file_is_a_system_check_that_names_it(settings: Settings, tmp_path: Path, text: str, said: str) -> None:
    settings.MEMORY_POLICY = tmp_path / "policy.toml"
    settings.MEMORY_POLICY.write_text(text)
    (error,) = policy_file(None)
    assert isinstance(error, Error)
    assert error.id == "memory_portal.E001"
    assert said in error.msg


def test_a_missing_file_is_a_system_check_too(settings: Settings, tmp_path: Path) -> None:
    settings.MEMORY_POLICY = tmp_path / "none.toml"
    assert [error.id for error in policy_file(None)] == ["memory_portal.E001"]


@pytest.mark.parametrize(
    "key", ["role", "user_role", "discount_rate", "system_prompt", "refund", "price_override", "is_admin"]
)
def test_a_fact_may_not_decide_on_money_rights_or_the_assistants_rules(key: str) -> None:
    assert rules.read(SHIPPED).refusal(draft(key), Held(), CUSTOMER) is Reason.KEY_NOT_ALLOWED


@pytest.mark.parametrize("key", ["seat", "skincare_routine", "payments_in_cash_only", "controller"])
def test_an_ordinary_name_that_only_resembles_a_refused_one_is_fine(key: str) -> None:
    assert rules.read(SHIPPED).refusal(draft(key), Held(), JOB) is None


def test_another_policy_runs_the_same_code(table: dict[str, Any]) -> None:
    table["categories"]["context"]["kept"] = False
    table["categories"]["safety"]["consent"] = False
    table["consent"]["sensitive"] = False
    policy = rules.parse(table)
    assert policy.refusal(draft(category="context"), Held(), CUSTOMER) is Reason.CATEGORY_OFF
    assert not policy.needs_consent("safety", sensitive=True)


def test_an_unknown_category_is_refused() -> None:
    assert rules.read(SHIPPED).refusal(draft(category="gossip"), Held(), JOB) is Reason.UNKNOWN_CATEGORY


def test_memory_off_refuses_even_the_customer(table: dict[str, Any]) -> None:
    policy = rules.parse(table | {"memory": False})
    assert policy.refusal(draft(), Held(), CUSTOMER) is Reason.MEMORY_OFF


@pytest.mark.parametrize(
    ("held", "reason"),
    [
        (Held(learning_paused=True), Reason.LEARNING_PAUSED),
        (Held(off_categories=frozenset({"preference"})), Reason.CATEGORY_OFF),
        (Held(off_agents=frozenset({"Helper"})), Reason.AGENT_OFF),
    ],
)
def test_the_customers_switches_stop_agents_and_jobs_but_not_the_customer(held: Held, reason: Reason) -> None:
    policy = rules.read(SHIPPED)
    assert policy.refusal(draft(), held, JOB) is reason
    assert policy.refusal(draft(), held, CUSTOMER) is None


@pytest.mark.parametrize(
    ("word", "value", "blocked"),
    [
        ("wine", "red WINE on Fridays", True),
        ("wine", "twines and strings", False),
        ("教會", "週日去教會", True),
        ("ｌｏｔｔｅｒｙ", "plays the lottery", True),
        ("café", "likes the café", True),
    ],
)
def test_a_word_never_to_remember_stops_everybody(word: str, value: str, blocked: bool) -> None:
    reason = rules.read(SHIPPED).refusal(draft(value=value), Held(never_words=(word,)), CUSTOMER)
    assert (reason is Reason.NEVER_WORD) is blocked


def test_a_word_never_to_remember_is_found_in_the_name_and_in_the_quote() -> None:
    policy, held = rules.read(SHIPPED), Held(never_words=("wine",))
    assert policy.refusal(draft(key="favourite_wine", value="red"), held, JOB) is Reason.NEVER_WORD
    assert policy.refusal(draft(value="red", source_quote="the red wine"), held, JOB) is Reason.NEVER_WORD


def test_a_pattern_of_the_companys_own_is_refused(table: dict[str, Any]) -> None:
    table["patterns"]["blocked"] = [r"\bEMP-\d{6}\b"]
    assert rules.parse(table).refusal(draft(value="badge EMP-123456"), Held(), JOB) is Reason.BLOCKED_PATTERN


def test_retention_is_exact_and_safety_has_a_review_instead() -> None:
    policy = rules.read(SHIPPED)
    assert policy.expiry("preference", NOW) == NOW + timedelta(days=365)
    assert policy.expiry("safety", NOW) is None
    assert policy.review("safety", NOW) == NOW + timedelta(days=365)
    assert policy.proposal_expiry(NOW, unconsented=True) == NOW + timedelta(hours=24)
    assert policy.proposal_expiry(NOW, unconsented=False) == NOW + timedelta(days=30)


def test_a_day_has_twenty_four_hours_when_the_clocks_change() -> None:
    policy, before = rules.read(SHIPPED), datetime(2026, 3, 28, 12, 0, tzinfo=ZoneInfo("Europe/Berlin"))
    assert policy.proposal_expiry(before, unconsented=True) - before.astimezone(UTC) == timedelta(hours=24)
    assert policy.proposal_expiry(before, unconsented=False) - before.astimezone(UTC) == timedelta(days=30)
    assert before.astimezone(UTC) - policy.forgotten_until(before) == timedelta(days=730)
