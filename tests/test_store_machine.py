"""Every store operation in any order against a plain-Python model, and after each step: no erased value anywhere in the database.

Keys and values are invented words without meaning, so that the model needs no opinion about language: another key is
another fact, the same key with another word is a change.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest
from django.db import connection
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from memory_portal import store
from memory_portal.enums import ActorKind, FreezeReason, Origin, Reason
from memory_portal.store import Actor, Subject
from tests.conftest import NOW

RUNS = int(os.environ.get("MACHINE_RUNS", "200"))
KEYS = ["seat", "drink", "style", "allergy"]
CATEGORY = {"seat": "preference", "drink": "constraint", "style": "context", "allergy": "safety"}
LIFE = {"preference": timedelta(days=365), "constraint": timedelta(days=730), "context": timedelta(days=365)}
CUSTOMER = Actor(ActorKind.CUSTOMER)
JOB = Actor(ActorKind.JOB, "job-1", "Assistant")

Question = tuple[str, str, Reason]


@dataclass
class Held:
    value: str
    origin: Origin
    said: datetime
    locked: bool = False
    frozen: bool = False
    former: list[str] = field(default_factory=list)


@dataclass
class Model:
    """What the store promises, said once more in the plainest words."""

    facts: dict[str, Held] = field(default_factory=dict)
    questions: dict[tuple[str, str], Reason] = field(default_factory=dict)
    buried: dict[tuple[str, str], tuple[datetime, bool]] = field(default_factory=dict)
    generation: int = 0
    cleared: datetime | None = None
    paused: bool = False
    consent: bool = False

    def learn(self, key: str, value: str, said: datetime, generation: int, origin: Origin, quoted: bool) -> str:
        held = self.facts.get(key)
        if generation != self.generation or self.paused:
            return "refused"
        if self.cleared and said <= self.cleared:
            return "refused"
        same = held is not None and held.value == value
        if not same:
            for (stone, word), (since, dismissed) in self.buried.items():
                if dismissed and word == value:
                    return "refused"
                if not dismissed and (word == value or stone == key):
                    return "refused" if said <= since else self.ask(key, value, Reason.AFTER_FORGETTING)
        if CATEGORY[key] == "safety" and not quoted:
            return "refused" if same else self.ask(key, value, Reason.AGENT_SUGGESTION)
        if CATEGORY[key] == "safety" and not self.consent:
            return self.ask(key, value, Reason.NEEDS_CONSENT)
        if held is None:
            self.write(key, value, said, origin)
            return "learned"
        if held.frozen:
            return "refused"
        if same and origin.rank <= held.origin.rank:
            held.said = max(held.said, said)
            return "renewed"
        if not same:
            if said < held.said:
                return "refused"
            if CATEGORY[key] == "safety":  # Meaningless words: the store cannot be sure that this does not weaken it.
                return self.ask(key, value, Reason.WEAKENS_SAFETY)
            if held.locked:
                return self.ask(key, value, Reason.DIFFERS_FROM_CORRECTION)
            if held.origin.rank > origin.rank:
                return self.ask(key, value, Reason.LOWER_RANK)
        self.write(key, value, said, origin)
        return "updated"

    def ask(self, key: str, value: str, reason: Reason) -> str:
        self.questions.setdefault((key, value), reason)
        return "proposed"

    def write(self, key: str, value: str, said: datetime, origin: Origin, *, locked: bool = False) -> None:
        held = self.facts.get(key)
        former = [*held.former, held.value] if held else []
        frozen = held.frozen if held else False
        self.facts[key] = Held(value, origin, said, locked, frozen, former)
        for asked in [q for q in self.questions if q[0] == key and (locked or q[1] == value)]:
            del self.questions[asked]

    def forget(self, key: str, now: datetime) -> None:
        self.buried[key, self.facts.pop(key).value] = (now, False)
        self.questions = {q: why for q, why in self.questions.items() if q[0] != key}

    def unbury(self, key: str, value: str) -> None:
        self.buried = {s: since for s, since in self.buried.items() if s[0] != key and s[1] != value}

    def alive(self) -> set[str]:
        kept = {word for held in self.facts.values() for word in [held.value, *held.former]}
        return kept | {value for _, value in self.questions}


def word(serial: int) -> str:
    """An invented word, different for each number and like no other by its letters."""
    consonants, vowels = "bdfgklmnprtvz", "aeiou"
    text = "x"
    for _ in range(4):
        serial, c = divmod(serial, len(consonants))
        serial, v = divmod(serial, len(vowels))
        text += consonants[c] + vowels[v]
    return text + "q"


class Machine(RuleBasedStateMachine):
    runs = 0

    def __init__(self) -> None:
        super().__init__()
        Machine.runs += 1
        self.subject = Subject(f"machine-{Machine.runs}")
        self.now = NOW
        self.model = Model()
        self.serial = Machine.runs * 1_000
        self.spoken: list[str] = []
        store.pause(self.created(), "learning", CUSTOMER, now=NOW)
        store.resume(self.customer, "learning", CUSTOMER, now=NOW)

    def created(self) -> int:
        store.submit(self.subject, [], JOB, now=NOW)
        found = store.find(self.subject)
        assert found is not None
        self.customer = found.pk
        return self.customer

    def tick(self, step: timedelta = timedelta(minutes=1)) -> datetime:
        self.now += step
        return self.now

    def say(self, again: int | None) -> str:
        """A new word, or one that was said before."""
        if again is not None and self.spoken:
            return self.spoken[again % len(self.spoken)]
        self.serial += 1
        self.spoken.append(word(self.serial))
        return self.spoken[-1]

    def held(self, key: str) -> store.Fact:
        return next(fact for fact in store.facts(self.customer, now=self.now) if fact.key == key)

    key = st.sampled_from(KEYS)
    again = st.none() | st.integers(0, 50)
    ago = st.integers(0, 30).map(lambda minutes: timedelta(minutes=minutes))

    @rule(key=key, again=again, ago=ago, behind=st.booleans(), quoted=st.booleans())
    def somebody_learns(self, key: str, again: int | None, ago: timedelta, behind: bool, quoted: bool) -> None:
        value, now = self.say(again), self.tick()
        origin = Origin.EXTRACTION if quoted else Origin.AGENT
        generation = self.model.generation - (1 if behind and self.model.generation else 0)
        draft = store.draft(
            key=key,
            value=value,
            category=CATEGORY[key],
            origin=origin,
            said_at=now - ago,
            now=now,
            source_quote=value if quoted else "",
        )
        (outcome,) = store.submit(self.customer, [draft], JOB, now=now, generation=generation)
        assert outcome.decision == self.model.learn(key, value, now - ago, generation, origin, quoted), outcome

    @rule(key=key, again=again)
    def the_customer_adds(self, key: str, again: int | None) -> None:
        value, now, model = self.say(again), self.tick(), self.model
        draft = store.draft(key=key, value=value, category=CATEGORY[key], origin=Origin.CUSTOMER, said_at=now, now=now)
        (outcome,) = store.submit(self.customer, [draft], CUSTOMER, now=now)
        held = model.facts.get(key)
        if CATEGORY[key] == "safety" and not model.consent:
            assert outcome.decision == model.ask(key, value, Reason.NEEDS_CONSENT)
        elif held and held.value == value and held.frozen:
            assert outcome.reason is Reason.FROZEN
        elif held and held.value == value and held.origin is Origin.CUSTOMER:
            assert outcome.decision == "renewed"
            held.said = now
        else:
            if held is None:
                model.unbury(key, value)
            model.write(key, value, now, Origin.CUSTOMER, locked=True)

    @precondition(lambda self: self.model.facts)
    @rule(pick=st.integers(0, 9), again=again, stale=st.booleans())
    def the_customer_corrects(self, pick: int, again: int | None, stale: bool) -> None:
        key = sorted(self.model.facts)[pick % len(self.model.facts)]
        value, now, fact = self.say(again), self.tick(), self.held(key)
        draft = store.draft(key=key, value=value, category=CATEGORY[key], origin=Origin.CUSTOMER, said_at=now, now=now)
        correct: Callable[[int], store.Fact] = lambda version: store.correct(  # noqa: E731
            self.customer, fact.id, draft, CUSTOMER, now=now, version=version
        )
        if stale:
            with pytest.raises(store.Conflict):
                correct(fact.version + 1)
        else:
            correct(fact.version)
            self.model.write(key, value, now, Origin.CUSTOMER, locked=True)

    @precondition(lambda self: self.model.facts)
    @rule(pick=st.integers(0, 9))
    def the_customer_forgets(self, pick: int) -> None:
        key, now = sorted(self.model.facts)[pick % len(self.model.facts)], self.tick()
        store.forget(self.customer, [self.held(key).id], CUSTOMER, now=now)
        self.model.forget(key, now)

    @rule()
    def the_customer_forgets_everything(self) -> None:
        now, model = self.tick(), self.model
        store.clear(self.customer, CUSTOMER, now=now)
        for key in list(model.facts):
            model.forget(key, now)
        self.model = replace(model, questions={}, generation=model.generation + 1, cleared=now)

    @precondition(lambda self: self.model.facts)
    @rule(pick=st.integers(0, 9), frozen=st.booleans())
    def the_customer_freezes_or_thaws(self, pick: int, frozen: bool) -> None:
        key, now = sorted(self.model.facts)[pick % len(self.model.facts)], self.tick()
        if frozen:
            store.freeze(self.customer, self.held(key).id, FreezeReason.WRONG, CUSTOMER, now=now)
        else:
            store.thaw(self.customer, self.held(key).id, CUSTOMER, now=now)
        self.model.facts[key].frozen = frozen

    @rule(paused=st.booleans())
    def the_customer_pauses_or_resumes(self, paused: bool) -> None:
        act = store.pause if paused else store.resume
        act(self.customer, "learning", CUSTOMER, now=self.tick())
        self.model.paused = paused

    @rule(given=st.booleans())
    def the_customer_consents_or_withdraws(self, given: bool) -> None:
        now, model = self.tick(), self.model
        if given:
            store.give_consent(self.customer, CUSTOMER, now=now, channel="portal", language="en")
        else:
            store.withdraw_consent(self.customer, CUSTOMER, now=now)
            if held := model.facts.pop("allergy", None):
                model.questions = {q: why for q, why in model.questions.items() if q[0] != "allergy"}
                model.ask("allergy", held.value, Reason.NEEDS_CONSENT)
        model.consent = given

    @precondition(lambda self: self.model.questions)
    @rule(pick=st.integers(0, 9), keep=st.booleans())
    def the_customer_answers(self, pick: int, keep: bool) -> None:
        asked = sorted(self.model.questions)[pick % len(self.model.questions)]
        row = next(q for q in store.suggestions(self.customer, now=self.now) if (q.key, q.value) == asked)
        now, (key, value), model = self.tick(), asked, self.model
        if not keep:
            store.dismiss(self.customer, row.id, CUSTOMER, now=now)
            del model.questions[asked]
            model.buried[asked] = (now, True)
        elif CATEGORY[key] == "safety" and not model.consent:
            with pytest.raises(store.MemoryWriteRejected):
                store.accept(self.customer, row.id, CUSTOMER, now=now)
        else:
            store.accept(self.customer, row.id, CUSTOMER, now=now)
            if key not in model.facts:
                model.unbury(key, value)
            model.write(key, value, row.said_at, row.origin, locked=True)

    @precondition(lambda self: self.model.buried)
    @rule(pick=st.integers(0, 9))
    def the_customer_lifts(self, pick: int) -> None:
        key = sorted(self.model.buried)[pick % len(self.model.buried)][0]
        store.lift(self.customer, key, CUSTOMER, now=self.tick())
        self.model.buried = {stone: since for stone, since in self.model.buried.items() if stone[0] != key}

    @rule(days=st.sampled_from([1, 31, 200, 366]))
    def time_passes_and_the_sweeper_runs(self, days: int) -> None:
        now, model = self.tick(timedelta(days=days)), self.model
        expected = set(self.live(now))
        assert {fact.key for fact in store.facts(self.customer, now=now)} == expected, (
            "invisible from the instant itself"
        )
        store.sweep(now=now)
        for key in set(model.facts) - expected:
            del model.facts[key]
            model.questions = {q: why for q, why in model.questions.items() if q[0] != key}
        model.buried = {s: v for s, v in model.buried.items() if v[0] >= now - timedelta(days=730)}
        shown = {(q.key, q.value) for q in store.suggestions(self.customer, now=now)}
        assert shown <= set(model.questions)
        model.questions = {q: why for q, why in model.questions.items() if q in shown}

    def live(self, now: datetime) -> list[str]:
        return [k for k, h in self.model.facts.items() if CATEGORY[k] not in LIFE or now < h.said + LIFE[CATEGORY[k]]]

    @invariant()
    def the_store_is_what_the_model_says(self) -> None:
        found = {
            f.key: (f.value, f.origin, f.locked, f.state == "frozen") for f in store.facts(self.customer, now=self.now)
        }
        assert found == {k: (h.value, h.origin, h.locked, h.frozen) for k, h in self.model.facts.items()}
        asked = {(q.key, q.value): Reason(q.reason) for q in store.suggestions(self.customer, now=self.now)}
        assert asked == self.model.questions
        assert store.purge_generation(self.subject) == self.model.generation

    @invariant()
    def no_erased_word_is_readable_anywhere_in_the_database(self) -> None:
        erased = set(self.spoken) - self.model.alive()
        assert readable(erased) == []


def readable(erased: set[str]) -> list[str]:
    """Tables in which any of the words still stands, in any column of any type, whatever its case."""
    if not erased:
        return []
    pattern = "|".join(sorted(erased))
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        search = " UNION ALL ".join(f"SELECT '{table}' FROM \"{table}\" t WHERE t::text ~* %s" for table in tables)
        cursor.execute(search, [pattern] * len(tables))
        return [row[0] for row in cursor.fetchall()]


def explore(runs: int) -> None:
    Machine.runs = 0
    chosen = settings(
        max_examples=runs,
        stateful_step_count=50,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Machine, settings=chosen)
    print(f"\n{Machine.runs} runs of at most 50 steps: 0 differences, 0 erased words readable")


@pytest.mark.django_db
def test_the_store_does_what_the_model_says_in_any_order() -> None:
    explore(RUNS)


@pytest.mark.django_db
def test_the_search_for_erased_words_finds_what_is_still_there() -> None:
    """The invariant above must be able to fail: a word in any kind of column is found."""
    found = store.submit(
        Subject("machine-x"),
        [
            store.draft(
                key="seat", value="xbadaq", category="preference", origin=Origin.EXTRACTION, said_at=NOW, now=NOW
            )
        ],
        JOB,
        now=NOW,
    )
    assert found[0].decision == "learned"
    assert readable({"xbadaq"}) == ["memory_portal_memoryfact"]
    assert readable({"xnever"}) == []
