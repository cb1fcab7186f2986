"""The policy: what the deployment allows. In: a TOML file. Out: a frozen Policy and its answers. Imports types and enums only.

Nothing here knows a customer by name; what one customer switched off arrives inside Held.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from memory_portal.enums import ChangeAction, Origin, Reason, Regime
from memory_portal.store.sanitise import fold
from memory_portal.store.types import SAFETY, Actor, Draft, Held

Word = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
Line = Annotated[str, Field(min_length=1, max_length=200)]


class PolicyError(Exception):
    """The policy file cannot be used; the message names the setting and what is wrong with it."""


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Limits(Strict):
    max_new_facts: int = Field(3, ge=0, le=20)
    tier_one_cap: int = Field(8, ge=0, le=100)
    tier_one_chars: int = Field(4000, ge=200, le=40_000)
    prefetch_cap: int = Field(5, ge=0, le=20)
    facts_per_customer: int = Field(200, ge=1, le=500)
    new_facts_per_day: int = Field(50, ge=1, le=500)
    proposal_days: int = Field(30, ge=1, le=365)
    consent_wait_hours: int = Field(24, ge=1, le=24)
    tombstone_days: int = Field(730, ge=30, le=3650)


class Category(Strict):
    kept: bool = True
    layer: int = Field(2, ge=1, le=2)
    retention_days: int | None = Field(None, ge=1, le=36_500)
    review_days: int | None = Field(None, ge=1, le=36_500)
    consent: bool = False


class ConsentRule(Strict):
    text_version: str = Field("1", min_length=1, max_length=16)
    sensitive: bool = True


class KeyRule(Strict):
    refused: tuple[Word, ...] = ()


class Patterns(Strict):
    blocked: tuple[str, ...] = ()

    @field_validator("blocked")
    @classmethod
    def must_compile(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
        return patterns


class Profile(Strict):
    name: Line
    brand: Word | None = None
    keeper: Line = "a company's assistant"
    qualifies: tuple[Line, ...] = ()
    excluded: tuple[Line, ...] = ()
    example_keys: tuple[Word, ...] = ()


class RequestRules(Strict):
    """Of requests made by hand: on which days nobody works, by the law whose clock it is."""

    regime: Regime = Regime.GDPR
    holidays: dict[Regime, tuple[date, ...]] = {}

    def holidays_of(self, regime: Regime) -> frozenset[date]:
        return frozenset(self.holidays.get(regime, ()))


class Policy(Strict):
    memory: bool = True
    tools: Literal["read", "write"] = "read"
    default_profile: Word = "general"
    limits: Limits = Limits()
    consent: ConsentRule = ConsentRule()
    categories: dict[Word, Category]
    keys: KeyRule = KeyRule()
    patterns: Patterns = Patterns()
    requests: RequestRules = RequestRules()
    profiles: dict[Word, Profile]

    @model_validator(mode="after")
    def hang_together(self) -> Policy:
        if self.default_profile not in self.profiles:
            raise ValueError(f"default_profile: there is no [profiles.{self.default_profile}]")
        if not self.categories:
            raise ValueError("categories: at least one is needed")
        if (safety := self.categories.get(SAFETY)) and safety.retention_days is not None:
            raise ValueError("categories.safety.retention_days: safety facts never expire silently; use review_days")
        return self

    @cached_property
    def blocked(self) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(pattern) for pattern in self.patterns.blocked)

    @cached_property
    def fingerprint(self) -> str:
        """Changes with the policy: what rests on an older one shows it."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]

    @cached_property
    def always_in_context(self) -> frozenset[str]:
        """The categories of layer 1."""
        return frozenset(name for name, category in self.categories.items() if category.layer == 1)

    def refusal(self, draft: Draft, held: Held, actor: Actor) -> Reason | None:
        """Why this actor may not keep this draft, or None. No switch stops a forgetting, and none of theirs the customer."""
        if draft.action is ChangeAction.FORGET:
            return None
        if not self.memory:
            return Reason.MEMORY_OFF
        if reason := self._unfit(draft, held):
            return reason
        if actor.is_customer:
            return None
        if held.learning_paused:
            return Reason.LEARNING_PAUSED
        if draft.category in held.off_categories:
            return Reason.CATEGORY_OFF
        if draft.agent and draft.agent in held.off_agents:
            return Reason.AGENT_OFF
        return None

    def _unfit(self, draft: Draft, held: Held) -> Reason | None:
        category = self.categories.get(draft.category)
        if category is None:
            return Reason.UNKNOWN_CATEGORY
        if not category.kept:
            return Reason.CATEGORY_OFF
        if set(draft.key.split("_")) & set(self.keys.refused) or draft.key in self.keys.refused:
            return Reason.KEY_NOT_ALLOWED
        text = fold(f"{draft.key} {draft.value} {draft.source_quote}")
        if any(pattern.search(draft.value) or pattern.search(draft.key) for pattern in self.blocked):
            return Reason.BLOCKED_PATTERN
        if any(contains_word(text, word) for word in held.never_words):
            return Reason.NEVER_WORD
        return None

    def needs_consent(self, category: str, *, sensitive: bool) -> bool:
        rule = self.categories.get(category)
        return bool(rule and rule.consent) or (sensitive and self.consent.sensitive)

    def expiry(self, category: str, since: datetime) -> datetime | None:
        """The instant from which a fact of this category, stated at `since`, is gone; None where there is no end."""
        rule = self.categories.get(category)
        return after(since, timedelta(days=rule.retention_days)) if rule and rule.retention_days else None

    def review(self, category: str, since: datetime) -> datetime | None:
        rule = self.categories.get(category)
        return after(since, timedelta(days=rule.review_days)) if rule and rule.review_days else None

    def proposal_expiry(self, now: datetime, *, unconsented: bool) -> datetime:
        """When a question goes away by itself; sooner where what it asks about needs a consent that is not there."""
        if unconsented:
            return after(now, timedelta(hours=self.limits.consent_wait_hours))
        return after(now, timedelta(days=self.limits.proposal_days))

    def forgotten_until(self, now: datetime) -> datetime:
        """What was forgotten up to this instant may be learned again."""
        return after(now, -timedelta(days=self.limits.tombstone_days))

    def room(self, held: Held, actor: Actor) -> Reason | None:
        """Whether one more fact fits, measured after the write."""
        if len(held.facts) + 1 > self.limits.facts_per_customer:
            return Reason.TOO_MANY_FACTS
        if not actor.is_customer and held.new_today + 1 > self.limits.new_facts_per_day:
            return Reason.TOO_MANY_TODAY
        return None


def contains_word(folded_text: str, word: str) -> bool:
    """Whole words for scripts that put spaces between them, anywhere for those that do not."""
    wanted = fold(word)
    if not wanted:
        return False
    if re.search(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]", wanted):
        return wanted in folded_text
    return re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", folded_text.replace("_", " ")) is not None


def after(moment: datetime, span: timedelta) -> datetime:
    """Counted in UTC: in a local time a day may have 23 or 25 hours."""
    return moment.astimezone(UTC) + span


def outranks(higher: Origin, lower: Origin) -> bool:
    return higher.rank > lower.rank


def read(path: Path) -> Policy:
    """The policy in the file at `path`. Raises PolicyError, which names the setting."""
    try:
        return parse(tomllib.loads(path.read_text("utf-8")))
    except OSError as error:
        raise PolicyError(f"{path.name} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PolicyError(f"{path.name} is not TOML: {error}") from error


def parse(table: dict[str, Any]) -> Policy:
    try:
        return Policy.model_validate(table)
    except ValidationError as error:
        found = (f"{'.'.join(str(part) for part in e['loc']) or 'policy'}: {e['msg']}" for e in error.errors())
        raise PolicyError("; ".join(found)) from error
