"""Every store operation in any order against a plain-Python model, and after each step: no erased value anywhere in the database.

Keys and values are invented words without meaning, so that the model needs no opinion about language: another key is
another fact, the same key with another word is a change.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from memory_portal import store
from memory_portal.enums import ActorKind, ChangeAction, FreezeReason, Origin, Reason
from memory_portal.store import Actor, Draft, Subject
from memory_portal.store.contract import MemoryFact
from tests.conftest import NOW
from tests.figures import Figure

RUNS = int(os.environ.get("MACHINE_RUNS", "50"))
KEYS = ["seat", "drink", "style", "allergy"]
CATEGORY = {"seat": "preference", "drink": "constraint", "style": "context", "allergy": "safety"}
LIFE = {"preference": timedelta(days=365), "constraint": timedelta(days=730), "context": timedelta(days=365)}
CUSTOMER = Actor(ActorKind.CUSTOMER)
STAFF = Actor(ActorKind.STAFF, "7")
JOB = Actor(ActorKind.JOB, "job-1", "Assistant")
FORGET = ""
"""What a question about forgetting has in the place of words."""


@dataclass
class Held:
    value: str
    origin: Origin
    said: datetime
    ends: datetime | None
    locked: bool
    session: str = ""
    frozen: bool = False
    former: list[str] = field(default_factory=list)


@dataclass
class Model:
    """What the store promises, said once more in the plainest words."""

    facts: dict[str, Held] = field(default_factory=dict)
    questions: dict[tuple[str, str], tuple[Reason, str]] = field(default_factory=dict)
    buried: dict[tuple[str, str, bool], tuple[datetime, str]] = field(default_factory=dict)
    generation: int = 0
    cleared: datetime | None = None
    paused: bool = False
    consent: bool = False
    never: str | None = None
    off: list[str] = field(default_factory=list)

    def learn(self, key: str, value: str, said: datetime, generation: int, origin: Origin, session: str) -> str:
        """An agent's own note (origin AGENT), or what a job found in the customer's words."""
        held = self.facts.get(key)
        same = held is not None and held.value == value
        if generation != self.generation or self.paused or CATEGORY[key] in self.off or value == self.never:
            return "refused"
        if self.cleared and said <= self.cleared:
            return "refused"
        if not same and (stones := [self.remembers(stone, key, value, said, session) for stone in self.buried]):
            if "refused" in stones:
                return "refused"
            if "proposed" in stones:
                return self.ask(key, value, Reason.AFTER_FORGETTING, session)
        if CATEGORY[key] == "safety" and origin is Origin.AGENT:
            return "refused" if same else self.ask(key, value, Reason.AGENT_SUGGESTION, session)
        if CATEGORY[key] == "safety" and not self.consent:
            return self.ask(key, value, Reason.NEEDS_CONSENT, session)
        if held is None:
            self.write(key, value, said, origin, session=session)
            return "learned"
        if held.frozen:
            return "refused"
        if same and (held.locked or origin.rank <= held.origin.rank):
            return self.renew(key, said)
        if not same:
            if said < held.said:
                return "refused"
            if CATEGORY[key] == "safety":  # Meaningless words: the store cannot be sure that this does not weaken it.
                return self.ask(key, value, Reason.WEAKENS_SAFETY, session)
            if held.locked:
                return self.ask(key, value, Reason.DIFFERS_FROM_CORRECTION, session)
            if held.origin.rank > origin.rank:
                return self.ask(key, value, Reason.LOWER_RANK, session)
        self.write(key, value, max(said, held.said), origin, session=session)
        return "updated"

    def remembers(self, stone: tuple[str, str, bool], key: str, value: str, said: datetime, session: str) -> str:
        (buried_key, word, dismissed), (since, from_session) = stone, self.buried[stone]
        if dismissed:
            return "refused" if word == value else ""
        if word == value or buried_key == key:
            return "refused" if said <= since else "proposed"
        return "proposed" if session and session == from_session and said <= since else ""

    def wish_to_forget(self, key: str, said: datetime, generation: int, proven: bool, now: datetime) -> str:
        """A job or an agent says that the customer wants it forgotten."""
        held = self.facts.get(key)
        if generation != self.generation or held is None:
            return "refused"
        if CATEGORY[key] == "safety":
            return self.ask(key, FORGET, Reason.WEAKENS_SAFETY)
        if said < held.said:
            return "refused"
        if held.locked and not proven:
            return self.ask(key, FORGET, Reason.LOWER_RANK)
        self.forget(key, now)
        return "forgotten"

    def ask(self, key: str, value: str, reason: Reason, session: str = "") -> str:
        self.questions.setdefault((key, value), (reason, session))
        return "proposed"

    def write(
        self,
        key: str,
        value: str,
        said: datetime,
        origin: Origin,
        *,
        by: Actor = JOB,
        session: str = "",
        **more: datetime,
    ) -> None:
        held, since = self.facts.get(key), more.get("since", said)
        former = [*held.former, held.value] if held else []
        frozen = held.frozen if held else False
        ends = since + LIFE[CATEGORY[key]] if CATEGORY[key] in LIFE else None
        self.facts[key] = Held(value, origin, said, ends, by is not JOB, session, frozen, former)
        self.answered(key, None if by is CUSTOMER else value)
        if held is None and by is CUSTOMER:
            self.buried = {s: when for s, when in self.buried.items() if s[0] != key and s[1] != value}

    def renew(self, key: str, said: datetime) -> str:
        held = self.facts[key]
        held.said = max(held.said, said)
        if held.ends:
            held.ends = max(held.ends, said + LIFE[CATEGORY[key]])
        return "renewed"

    def answered(self, key: str, value: str | None = None) -> None:
        self.questions = {q: why for q, why in self.questions.items() if q[0] != key or value not in (None, q[1])}

    def forget(self, key: str, now: datetime) -> None:
        held = self.facts.pop(key)
        self.buried[key, held.value, False] = (now, held.session)
        self.answered(key)

    def dismiss(self, asked: tuple[str, str], now: datetime) -> None:
        _, session = self.questions.pop(asked)
        if asked[1] != FORGET:
            self.buried[*asked, True] = (now, session)

    def time_passes(self, now: datetime) -> None:
        for key in [key for key, held in self.facts.items() if held.ends and held.ends <= now]:
            del self.facts[key]
            self.answered(key)

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
        self.before = transaction.savepoint()
        self.subject = Subject(f"machine-{Machine.runs}")
        self.now = NOW
        self.model = Model()
        self.spoken: list[str] = []
        store.submit(self.subject, [], JOB, now=NOW)
        found = store.find(self.subject)
        assert found is not None
        self.customer = found.pk
        self.contract = store.DjangoMemoryStore(agent=JOB.name, clock=lambda: self.now)

    def teardown(self) -> None:
        transaction.savepoint_rollback(self.before)

    def tick(self, step: timedelta = timedelta(minutes=1)) -> datetime:
        self.now += step
        self.model.time_passes(self.now)
        return self.now

    def say(self, again: int | None) -> str:
        """A new word, or one that was said before."""
        if again is not None and self.spoken:
            return self.spoken[again % len(self.spoken)]
        self.spoken.append(word(len(self.spoken) + 1))
        return self.spoken[-1]

    def draft(self, key: str, value: str, said: datetime, origin: Origin, **more: str) -> Draft:
        return store.draft(
            key=key, value=value, category=CATEGORY[key], origin=origin, said_at=said, now=self.now, **more
        )

    def held(self, key: str) -> store.Fact:
        return next(fact for fact in store.facts(self.customer, now=self.now) if fact.key == key)

    def pick(self, number: int) -> str | None:
        """One of the keys held. Where none is left nothing will be done, so that the sweeper has to come by."""
        keys = sorted(self.model.facts)
        if not keys:
            store.sweep(now=self.now)
        return keys[number % len(keys)] if keys else None

    def earlier(self, behind: bool) -> int:
        return self.model.generation - (1 if behind and self.model.generation else 0)

    @contextmanager
    def refused(self, error: type[Exception]) -> Iterator[None]:
        """A refusal rolls its transaction back, and with it the erasing of what had just ended."""
        store.sweep(now=self.now)
        with pytest.raises(error):
            yield

    key = st.sampled_from(KEYS)
    again = st.none() | st.integers(0, 50)
    number = st.integers(0, 9)
    ago = st.integers(0, 30).map(lambda minutes: timedelta(minutes=minutes))
    session = st.sampled_from(["", "party", "office"])

    @rule(key=key, again=again, ago=ago, behind=st.booleans(), quoted=st.booleans(), session=session)
    def somebody_learns(
        self, key: str, again: int | None, ago: timedelta, behind: bool, quoted: bool, session: str
    ) -> None:
        value, now = self.say(again), self.tick()
        origin = Origin.EXTRACTION if quoted else Origin.AGENT
        draft = self.draft(key, value, now - ago, origin, source_quote=value if quoted else "", session_id=session)
        generation = self.earlier(behind)
        (outcome,) = store.submit(self.customer, [draft], JOB, now=now, generation=generation)
        assert outcome.decision == self.model.learn(key, value, now - ago, generation, origin, session), outcome

    @rule(key=st.sampled_from(KEYS[:3]), again=again)
    def a_host_upserts_through_the_contract(self, key: str, again: int | None) -> None:
        value, now = self.say(again), self.tick()
        expected = self.model.learn(key, value, now, self.model.generation, Origin.AGENT, "")
        try:
            self.contract._upsert(self.subject.subject_id, [MemoryFact(key=key, value=value, category=CATEGORY[key])])
        except store.MemoryWriteRejected:
            assert expected == "refused"

    @rule(key=key, ago=ago, behind=st.booleans(), proven=st.booleans())
    def somebody_says_that_it_should_be_forgotten(self, key: str, ago: timedelta, behind: bool, proven: bool) -> None:
        now, origin = self.tick(), Origin.EXTRACTION if proven else Origin.AGENT
        words = {"source_quote": "please forget that", "action": ChangeAction.FORGET} if proven else {}
        draft = self.draft(key, "", now - ago, origin, **{"action": ChangeAction.FORGET, **words})
        generation = self.earlier(behind)
        (outcome,) = store.submit(self.customer, [draft], JOB, now=now, generation=generation)
        assert outcome.decision == self.model.wish_to_forget(key, now - ago, generation, proven, now), outcome

    @rule(key=key, again=again)
    def the_customer_adds(self, key: str, again: int | None) -> None:
        value, now, model = self.say(again), self.tick(), self.model
        draft = self.draft(key, value, now, Origin.CUSTOMER)
        (outcome,) = store.submit(self.customer, [draft], CUSTOMER, now=now)
        held = model.facts.get(key)
        if value == model.never:
            assert outcome.reason is Reason.NEVER_WORD
        elif CATEGORY[key] == "safety" and not model.consent:
            assert outcome.decision == model.ask(key, value, Reason.NEEDS_CONSENT)
        elif held and held.value == value and held.frozen:
            assert outcome.reason is Reason.FROZEN
        elif held and held.value == value and held.origin is Origin.CUSTOMER:
            assert outcome.decision == model.renew(key, now)
        else:
            model.write(key, value, now, Origin.CUSTOMER, by=CUSTOMER)

    @rule(number=number, again=again, stale=st.booleans(), actor=st.sampled_from([CUSTOMER, STAFF]))
    def the_customer_or_staff_correct(self, number: int, again: int | None, stale: bool, actor: Actor) -> None:
        value, now, model = self.say(again), self.tick(), self.model
        if (key := self.pick(number)) is None:
            return
        fact, held = self.held(key), model.facts[key]
        origin = Origin.CUSTOMER if actor is CUSTOMER else Origin.STAFF
        correct: Callable[[int], store.Fact] = lambda version: store.correct(  # noqa: E731
            self.customer, fact.id, self.draft(key, value, now, origin), actor, now=now, version=version
        )
        theirs = CATEGORY[key] == "safety" or (held.locked and held.origin is not Origin.STAFF)
        switched_off = model.paused or CATEGORY[key] in model.off
        if stale:
            with self.refused(store.Conflict):
                correct(fact.version + 1)
        elif value == model.never or (actor is STAFF and (theirs or switched_off)):
            with self.refused(store.MemoryWriteRejected):
                correct(fact.version)
        else:
            correct(fact.version)
            model.write(key, value, now, origin, by=actor)

    @rule(number=number)
    def the_customer_forgets(self, number: int) -> None:
        now = self.tick()
        if key := self.pick(number):
            store.forget(self.customer, [self.held(key).id], CUSTOMER, now=now)
            self.model.forget(key, now)

    @rule(session=st.sampled_from(["party", "office"]))
    def the_customer_forgets_a_conversation(self, session: str) -> None:
        now, model, tag = self.tick(), self.model, store.session_tag(session)
        keys = [key for key, held in model.facts.items() if held.session == session and not held.locked]
        asked = [question for question, (_, heard) in model.questions.items() if heard == session]
        if keys or asked:
            store.forget_session(self.customer, tag, CUSTOMER, now=now)
            for question in asked:
                model.dismiss(question, now)
            for key in keys:
                model.forget(key, now)
        else:
            with self.refused(store.NotFound):
                store.forget_session(self.customer, tag, CUSTOMER, now=now)

    @rule()
    def the_customer_forgets_everything(self) -> None:
        now, model = self.tick(), self.model
        store.clear(self.customer, CUSTOMER, now=now)
        for key in list(model.facts):
            model.forget(key, now)
        model.questions, model.generation, model.cleared = {}, model.generation + 1, now

    @rule(number=number, frozen=st.booleans())
    def the_customer_freezes_or_thaws(self, number: int, frozen: bool) -> None:
        now = self.tick()
        if key := self.pick(number):
            if frozen:
                store.freeze(self.customer, self.held(key).id, FreezeReason.WRONG, CUSTOMER, now=now)
            else:
                store.thaw(self.customer, self.held(key).id, CUSTOMER, now=now)
            self.model.facts[key].frozen = frozen

    @rule(number=number, minutes=st.none() | st.integers(1, 5))
    def the_customer_moves_an_end(self, number: int, minutes: int | None) -> None:
        now = self.tick()
        if (key := self.pick(number)) is None:
            return
        until = now + timedelta(minutes=minutes) if minutes else None
        if CATEGORY[key] == "safety" and until:
            with self.refused(store.MemoryWriteRejected):
                store.keep_until(self.customer, self.held(key).id, until, CUSTOMER, now=now)
        else:
            store.keep_until(self.customer, self.held(key).id, until, CUSTOMER, now=now)
            self.model.facts[key].ends = until

    @rule(paused=st.booleans())
    def the_customer_pauses_or_resumes(self, paused: bool) -> None:
        act = store.pause if paused else store.resume
        act(self.customer, "learning", CUSTOMER, now=self.tick())
        self.model.paused = paused

    @rule(again=again, never=st.booleans(), off=st.lists(st.sampled_from(list(CATEGORY.values())), max_size=1))
    def the_customer_chooses(self, again: int | None, never: bool, off: list[str]) -> None:
        # A word that is held already stays: it is in the way of what comes, and named in the customer's own list.
        heard = sorted(set(self.spoken) - self.model.alive())
        self.model.never = heard[(again or 0) % len(heard)] if never and heard else None
        self.model.off = off
        words = [self.model.never] if self.model.never else []
        store.choose(self.customer, {"never_words": words, "no_learn_categories": off}, CUSTOMER, now=self.tick())

    @rule(given=st.booleans())
    def the_customer_consents_or_withdraws(self, given: bool) -> None:
        now, model = self.tick(), self.model
        if given:
            store.give_consent(self.customer, CUSTOMER, now=now, channel="portal", language="en")
        else:
            store.withdraw_consent(self.customer, CUSTOMER, now=now)
            if held := model.facts.pop("allergy", None):
                model.answered("allergy")
                model.ask("allergy", held.value, Reason.NEEDS_CONSENT, held.session)
        model.consent = given

    @rule(number=number, keep=st.booleans(), own=st.booleans())
    def the_customer_answers(self, number: int, keep: bool, own: bool) -> None:
        now, model = self.tick(), self.model
        if not model.questions:
            store.sweep(now=now)
            return
        asked = sorted(model.questions)[number % len(model.questions)]
        row = next(q for q in store.suggestions(self.customer, now=now) if (q.key, q.value) == asked)
        (key, value), (_, session) = asked, model.questions[asked]
        if not keep:
            store.dismiss(self.customer, row.id, CUSTOMER, now=now)
            model.dismiss(asked, now)
        elif value == FORGET:
            assert store.accept(self.customer, row.id, CUSTOMER, now=now) is None
            model.forget(key, now)
        else:
            words = self.say(None) if own else None
            if (words or value) == model.never or (CATEGORY[key] == "safety" and not model.consent):
                with self.refused(store.MemoryWriteRejected):
                    store.accept(self.customer, row.id, CUSTOMER, now=now, value=words)
            else:
                store.accept(self.customer, row.id, CUSTOMER, now=now, value=words)
                origin, session = (Origin.CUSTOMER, "") if words else (row.origin, session)
                model.write(key, words or value, row.said_at, origin, by=CUSTOMER, session=session, since=now)

    @precondition(lambda self: self.model.buried)
    @rule(number=number)
    def the_customer_lifts(self, number: int) -> None:
        key = sorted(self.model.buried)[number % len(self.model.buried)][0]
        store.lift(self.customer, key, CUSTOMER, now=self.tick())
        self.model.buried = {stone: since for stone, since in self.model.buried.items() if stone[0] != key}

    @rule(days=st.sampled_from([1, 31, 200, 366]))
    def time_passes_and_the_sweeper_runs(self, days: int) -> None:
        now, model = self.tick(timedelta(days=days)), self.model
        shown = {fact.key for fact in store.facts(self.customer, now=now)}
        assert shown == set(model.facts), "invisible from the instant itself"
        store.sweep(now=now)
        model.buried = {s: v for s, v in model.buried.items() if v[0] > now - timedelta(days=730)}
        waiting = {(q.key, q.value) for q in store.suggestions(self.customer, now=now)}
        assert waiting <= set(model.questions)
        model.questions = {q: why for q, why in model.questions.items() if q in waiting}

    @invariant()
    def the_store_is_what_the_model_says(self) -> None:
        found = {
            f.key: (f.value, f.origin, f.locked, f.state == "frozen", f.expires_at)
            for f in store.facts(self.customer, now=self.now)
        }
        assert found == {k: (h.value, h.origin, h.locked, h.frozen, h.ends) for k, h in self.model.facts.items()}
        asked = {(q.key, q.value): Reason(q.reason) for q in store.suggestions(self.customer, now=self.now)}
        assert asked == {question: reason for question, (reason, _) in self.model.questions.items()}
        assert store.purge_generation(self.subject) == self.model.generation

    @invariant()
    def no_erased_word_is_readable_anywhere_in_the_database(self) -> None:
        erased = set(self.spoken) - self.model.alive() - {self.model.never}
        assert readable(erased) == []


def readable(erased: set[str]) -> list[str]:
    """Tables in which any of the words still stands, in any column of any type, whatever its case."""
    if not erased:
        return []
    pattern = "|".join(sorted(erased))
    with connection.cursor() as cursor:
        search = " UNION ALL ".join(f"SELECT '{table}' FROM \"{table}\" t WHERE t::text ~* %s" for table in tables())
        cursor.execute(search, [pattern] * len(tables()))
        return [row[0] for row in cursor.fetchall()]


@cache
def tables() -> list[str]:
    with connection.cursor() as cursor:
        return connection.introspection.table_names(cursor)


def explore(runs: int) -> str:
    Machine.runs = 0
    chosen = settings(
        max_examples=runs,
        stateful_step_count=50,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Machine, settings=chosen)
    return f"{Machine.runs} runs of at most 50 steps: 0 differences, 0 erased words readable"


@pytest.mark.django_db
@pytest.mark.parametrize("runs", [RUNS, pytest.param(2_000, marks=pytest.mark.deep)])
def test_the_store_does_what_the_model_says_in_any_order(runs: int, figure: Figure) -> None:
    figure("J9", explore(runs))


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
