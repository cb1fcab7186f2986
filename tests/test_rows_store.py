"""The rows of the requirements that the store answers for alone: rights (R), integrity (M), filter and speed (P).

Each test prints its row and its figure. The rows about erasing are in test_rows_erasure.py.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from agent_bridge import jobs, reading
from agent_bridge.auth import SCOPES, issue
from agent_bridge.extraction import Extraction, ExtractionRequest, Turn
from agent_bridge.models import ExtractionJob
from agent_bridge.schemas import FactIn
from memory_portal import store
from memory_portal.enums import ActorKind, ChangeAction, FactState, FreezeReason, Origin, Reason
from memory_portal.models import MemoryFact, Proposal
from memory_portal.store import Actor, Draft, Fact, Outcome, Subject, intake, write_filter
from memory_portal.store import contract as agreed
from memory_portal.store.contract import MemoryFact as ContractFact
from memory_portal.store.policy import outranks
from memory_portal.store.types import Decision, Held, Refuse, Remember, Renew, Update
from tests.conftest import NOW
from tests.figures import Figure

ALICE = Subject("alice", "grocery")
CUSTOMER = Actor(ActorKind.CUSTOMER, "alice")
STAFF = Actor(ActorKind.STAFF, "7")
JOB = Actor(ActorKind.JOB, "job-1", "Shopping assistant")
AGENT = Actor(ActorKind.AGENT, "3", "Shopping assistant")
LATER = NOW + timedelta(hours=1)


def said(key: str, value: str, category: str = "preference", origin: Origin = Origin.EXTRACTION, **more: Any) -> Draft:
    at = more.pop("said_at", NOW)
    if origin is Origin.EXTRACTION:
        more.setdefault("source_quote", value)
    return store.draft(key=key, value=value, category=category, origin=origin, said_at=at, now=at, **more)


def submit(*drafts: Draft, actor: Actor = JOB, now: datetime = NOW, **more: Any) -> list[Outcome]:
    return store.submit(ALICE, list(drafts), actor, now=now, **more)


def alice() -> int:
    found = store.find(ALICE)
    assert found is not None
    return found.pk


def held() -> dict[str, str]:
    return dict(MemoryFact.objects.values_list("key", "value"))


def corrected(value: str = "use the Oakland store") -> Fact:
    fact = submit(said("default_store", "use the Alameda store"))[0].fact
    assert fact is not None
    own = said("default_store", value, origin=Origin.CUSTOMER, said_at=LATER)
    return store.correct(alice(), fact.id, own, CUSTOMER, now=LATER, version=fact.version)


def consent() -> None:
    submit()
    store.give_consent(alice(), CUSTOMER, now=NOW, channel="portal", language="en")


def upserted(key: str, value: str, category: str = "preference", *, now: datetime) -> Outcome:
    fact = ContractFact.model_construct(key=key, value=value, category=category)
    return agreed.upsert(ALICE, [fact], AGENT, now=now)[key]


# --- R: the customer's rights -----------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_thousand_agent_writes_after_a_correction_overwrite_nothing_and_become_questions(figure: Figure) -> None:
    fact = corrected()
    stores, dice = ["Alameda", "Berkeley", "Fremont"], random.Random(2)
    for n in range(1_000):
        value = f"use the {dice.choice(stores)} store"
        category = dice.choice(["preference", "constraint"])
        now = LATER + timedelta(minutes=n)
        if n % 2:
            upserted("default_store", value, category, now=now)
        else:
            submit(said("default_store", value, category, Origin.AGENT, said_at=now), actor=AGENT, now=now)
    (after,) = store.facts(alice(), now=LATER)
    assert after == fact
    assert {row.value for row in Proposal.objects.all()} == {f"use the {name} store" for name in stores}
    figure("R2", "1,000 agent writes, through the contract and by key: 0 overwrote, 3 different ones wait as questions")


READERS: dict[str, Callable[[datetime], object]] = {
    "context": lambda now: store.context(ALICE, AGENT, now=now),
    "context for a message": lambda now: store.context(ALICE, AGENT, now=now, message="a seat by the aisle"),
    "lookup": lambda now: store.lookup(ALICE, "aisle seat", AGENT, now=now),
    "lookup of everything": lambda now: store.lookup(ALICE, "", AGENT, now=now),
    "page": lambda now: store.page(ALICE, AGENT, now=now),
    "the customer's list": lambda now: store.facts(alice(), now=now),
    "suggestions": lambda now: store.suggestions(alice(), now=now),
    "contract get_facts": lambda now: store.DjangoMemoryStore("grocery", clock=lambda: now)._read("alice", ""),
    "contract search_facts": lambda now: store.DjangoMemoryStore("grocery", clock=lambda: now)._read("alice", "aisle"),
}


@pytest.mark.django_db
def test_a_forgotten_fact_is_in_no_read_from_the_very_next_one(figure: Figure) -> None:
    reads = 0
    for turn in range(20):
        now = NOW + timedelta(minutes=turn)
        (outcome,) = submit(said(f"seat_{turn}", f"aisle seats, wish {turn}", "constraint", said_at=now), now=now)
        assert outcome.fact is not None
        word = f"wish {turn}"
        assert all(word in repr(READERS[name](now)) for name in READERS if name != "suggestions"), (
            "it must be there first"
        )
        store.forget(alice(), [outcome.fact.id], CUSTOMER, now=now)
        for name, read in [*READERS.items()] * 6:
            assert word not in repr(read(now)), name
            reads += 1
        with pytest.raises(store.NotFound):
            store.look(ALICE, f"seat_{turn}", AGENT, now=now)
    assert reads >= 1_000
    figure("R3", f"{reads:,} reads by {len(READERS)} readers after forgetting: 0 returned it")


class Heard:
    """An extractor that finds the first customer turn word for word."""

    def extract(self, request: ExtractionRequest) -> Extraction:
        text = next(turn.text for turn in request.turns if turn.role == "user")
        found = store.Candidate(ChangeAction.REMEMBER, f"note_{len(text)}", text, quote=text)
        return Extraction("heard", candidates=(found,))

    def tokens_at_most(self, request: ExtractionRequest) -> int:
        return 0


@pytest.mark.django_db
def test_after_pausing_learning_nothing_is_accepted_and_waiting_conversations_teach_nothing(figure: Figure) -> None:
    submit(said("seat", "aisle"))
    key, _ = issue("Shopping assistant", "grocery", SCOPES, now=NOW)
    for n in range(20):
        turns = [Turn("user", "I always sit by the window" + " please" * n, NOW)]
        jobs.submit(ALICE, key, turns, session_id=f"session-{n}", now=NOW, debounce=timedelta())
    first = ExtractionJob.objects.order_by("created_at", "pk")[0]
    running = jobs.claim(first.pk, NOW)
    assert running is not None, "one of them is being read already"
    store.pause(alice(), "learning", CUSTOMER, now=NOW)
    turns_read = jobs.turns_of(running)
    reading.settle(running, Heard().extract(reading.request_for(running, turns_read, LATER)), turns_read, LATER)
    reading.drain(clock=lambda: LATER, extractor=Heard())
    assert held() == {"seat": "aisle"}
    accepted = 0
    for n in range(1_000):
        writer = (JOB, AGENT, STAFF)[n % 3]
        at = LATER + timedelta(seconds=n)
        if n % 4:
            outcome = submit(said(f"note_{n % 50}", f"likes it {n}", said_at=at), actor=writer, now=at)[0]
        else:
            outcome = upserted(f"note_{n % 50}", f"likes it {n}", now=at)
        accepted += outcome.decision != "refused"
    assert accepted == 0
    assert held() == {"seat": "aisle"}
    assert not Proposal.objects.exists()
    figure("R5", "1,000 calls after pausing learning: 0 accepted; 20 conversations handed over before: 0 facts")


@pytest.mark.django_db
def test_after_pausing_using_agents_are_told_nothing(figure: Figure) -> None:
    submit(said("seat", "aisle", "constraint"))
    store.pause(alice(), "using", CUSTOMER, now=NOW)
    readers = {name: read for name, read in READERS.items() if name not in ("the customer's list", "suggestions")}
    told = [name for name, read in [*readers.items()] * 143 if "aisle" in repr(read(LATER))]
    assert told == []
    figure("R5", f"{143 * len(readers):,} agent reads after pausing using: 0 were told anything")


GONE = None
ACTIVE, FROZEN = FactState.ACTIVE, FactState.FROZEN
TRANSITIONS = {
    (ACTIVE, "freeze"): FROZEN,
    (ACTIVE, "thaw"): ACTIVE,
    (ACTIVE, "correct"): ACTIVE,
    (ACTIVE, "forget"): GONE,
    (FROZEN, "freeze"): FROZEN,
    (FROZEN, "thaw"): ACTIVE,
    (FROZEN, "correct"): FROZEN,  # Correcting it does not say that it may be used again.
    (FROZEN, "forget"): GONE,
    (GONE, "freeze"): store.NotFound,
    (GONE, "thaw"): store.NotFound,
    (GONE, "correct"): store.NotFound,
    (GONE, "forget"): store.NotFound,
}


@pytest.mark.django_db
@pytest.mark.parametrize(("before", "act"), TRANSITIONS)
def test_a_contested_fact_goes_from_state_to_state_by_this_table(
    before: FactState | None, act: str, figure: Figure
) -> None:
    fact = submit(said("pet", "has a dog", "constraint"))[0].fact
    assert fact is not None
    if before is FROZEN:
        store.freeze(alice(), fact.id, FreezeReason.NOT_ME, CUSTOMER, now=NOW)
    if before is GONE:
        store.forget(alice(), [fact.id], CUSTOMER, now=NOW)
    version = MemoryFact.objects.values_list("version", flat=True).first() or 1
    own = said("pet", "has a cat", "constraint", Origin.CUSTOMER, said_at=LATER)
    acts: dict[str, Callable[[], object]] = {
        "freeze": lambda: store.freeze(alice(), fact.id, FreezeReason.NOT_ME, CUSTOMER, now=LATER),
        "thaw": lambda: store.thaw(alice(), fact.id, CUSTOMER, now=LATER),
        "correct": lambda: store.correct(alice(), fact.id, own, CUSTOMER, now=LATER, version=version),
        "forget": lambda: store.forget(alice(), [fact.id], CUSTOMER, now=LATER),
    }
    expected = TRANSITIONS[before, act]
    if expected is store.NotFound:
        with pytest.raises(store.NotFound):
            acts[act]()
        expected = GONE
    else:
        acts[act]()
    row = MemoryFact.objects.first()
    assert (row.state if row else GONE) == expected
    served = any("has a" in repr(read(LATER)) for name, read in READERS.items() if name != "the customer's list")
    assert served is (expected is ACTIVE)
    figure("R6", f"{before} + {act} -> {expected}; read while frozen: 0")


@pytest.mark.django_db
def test_freezing_twice_or_thawing_what_is_in_use_is_no_event() -> None:
    fact = submit(said("pet", "has a dog"))[0].fact
    assert fact is not None
    first = store.freeze(alice(), fact.id, FreezeReason.WRONG, CUSTOMER, now=NOW)
    assert store.freeze(alice(), fact.id, FreezeReason.WRONG, CUSTOMER, now=LATER) == first
    other = store.freeze(alice(), fact.id, FreezeReason.NOT_ME, CUSTOMER, now=LATER)
    assert other.version == first.version + 1, "another reason is news"
    thawed = store.thaw(alice(), fact.id, CUSTOMER, now=LATER)
    assert store.thaw(alice(), fact.id, CUSTOMER, now=LATER) == thawed


# --- M: whose word counts ---------------------------------------------------------------------------------------------

FORGED = {
    "origin": "customer",
    "locked": True,
    "version": 99,
    "id": 1,
    "customer": 1,
    "customer_id": 1,
    "state": "active",
    "agent": "somebody else",
    "extractor": "claude",
    "source_quote": "I said so",
    "created_at": "2020-01-01T00:00:00Z",
    "updated_at": "2020-01-01T00:00:00Z",
    "expires_at": None,
    "review_at": None,
    "frozen_at": None,
    "verified": True,
    "trust": "high",
    "suspicion": None,
}


@pytest.mark.django_db
def test_no_writer_sets_origin_lock_version_or_proof_of_a_fact(figure: Figure) -> None:
    dice = random.Random(1)
    for _ in range(500):
        names = dice.sample(sorted(FORGED), dice.randint(1, 4))
        with pytest.raises(ValidationError):
            FactIn.model_validate({"value": "aisle", **{name: FORGED[name] for name in names}})
    writers = {AGENT: Origin.AGENT, JOB: Origin.EXTRACTION, STAFF: Origin.STAFF, Actor(ActorKind.SYSTEM): Origin.AGENT}
    for n in range(500):
        actor, most = dice.choice(list(writers.items()))
        claimed = dice.choice([Origin.CUSTOMER, Origin.STAFF, Origin.EXTRACTION])
        draft = said(f"wish_{n}", f"wish {n}", origin=claimed, source_quote=dice.choice(["", f"wish {n}"]))
        decision = decide(draft, Held(), actor)
        assert isinstance(decision, Remember)
        assert decision.draft.origin.rank <= most.rank, "nobody borrows a rank"
        assert decision.draft.origin is not Origin.EXTRACTION or draft.source_quote, "nor a proof"
        if n < 40:
            fact = submit(draft, actor=actor)[0].fact
            assert fact is not None
            assert (fact.origin, fact.locked, fact.version) == (decision.draft.origin, False, 1)
    figure("M1", "1,000 tries to set origin, lock, version or proof, on the wire and behind it: 0 worked")


@pytest.mark.django_db
def test_every_written_row_says_who_wrote_it_and_from_where() -> None:
    tag = store.session_tag("session-1")
    submit(said("seat", "aisle", session_id="session-1", agent=JOB.name, extractor="claude"))
    upserted("drink", "green tea", now=NOW)
    rows = {row.key: (row.origin, row.agent, row.extractor, row.source_session_id) for row in MemoryFact.objects.all()}
    assert rows == {
        "seat": ("extraction", JOB.name, "claude", tag),
        "drink": ("agent", AGENT.name, "", ""),
    }


KEY_PARTS = [
    "seat",
    "Rôle",
    "ｒｏｌｅ",
    "user role",
    "ADMIN",
    "discount",
    "refund-rate",
    "café",
    "座位",
    "is_admin",
    "tea",
    "⸮",
    "",
    "System Prompt",
]
KINDS = ["preference", "preference", "constraint", "context", "safety", "gossip", "", "PREFERENCE", "safety "]


def test_fuzzed_writes_leave_nothing_outside_the_allowed_keys_kinds_and_lengths(figure: Figure) -> None:
    policy, dice = store.current_policy(), random.Random(4)
    kept = {name for name, rule in policy.categories.items() if rule.kept}
    seen = {"kept": 0, "refused": 0}
    for _ in range(5_000):
        key = dice.choice([" ", "_", "-", ""]).join(dice.choices(KEY_PARTS, k=dice.choice([1, 1, 2, 3, 30])))
        value = dice.choice(["aisle", "x" * dice.randint(150, 260), "4111 1111 1111 1111", "\u200b", "喜歡綠茶"])
        actor, origin = dice.choice([(JOB, Origin.EXTRACTION), (AGENT, Origin.AGENT), (CUSTOMER, Origin.CUSTOMER)])
        try:
            draft = said(key, value, dice.choice(KINDS), origin)
        except store.InvalidDraft:
            seen["refused"] += 1
            continue
        decision = decide(draft, Held(consents=frozenset({"safety"})), actor)
        if isinstance(decision, Refuse):
            seen["refused"] += 1
            continue
        seen["kept"] += 1
        assert draft.category in kept
        assert not set(draft.key.split("_")) & set(policy.keys.refused)
        assert 0 < len(draft.key) <= store.KEY_LIMIT
        assert 0 < len(draft.value) <= store.VALUE_LIMIT
        assert "4111" not in draft.value
    assert min(seen.values()) > 300, seen
    figure("M4", f"5,000 fuzzed writes: 0 outside the allowed keys, kinds and lengths {seen}")


def decide(draft: Draft, held: Held, actor: Actor) -> Decision:
    return intake.admit(draft, held, store.current_policy(), actor, macs=lambda text: [text])


def written(decision: Decision, fact: Fact, actor: Actor) -> Fact:
    """What the shell would make of the decision."""
    match decision:
        case Update(draft, _):
            return replace(
                fact,
                value=draft.value,
                category=draft.category,
                origin=draft.origin,
                said_at=draft.said_at,
                source_quote=draft.source_quote,
                locked=actor.is_customer,
            )
        case Renew(draft, _):
            return replace(fact, said_at=max(fact.said_at, draft.said_at))
    return fact


def start(origin: Origin, *, locked: bool = False, category: str = "preference") -> Fact:
    return Fact(1, "seat", "aisle", category, origin, ACTIVE, 1, NOW, NOW, NOW, locked=locked)


def test_a_lower_rank_never_overwrites_a_higher_one(figure: Figure) -> None:
    dice, steps = random.Random(6), 10_000
    writers = [(CUSTOMER, Origin.CUSTOMER), (STAFF, Origin.STAFF), (JOB, Origin.EXTRACTION), (AGENT, Origin.AGENT)]
    fact, changes = start(Origin.AGENT), 0
    for step in range(steps):
        if step % 25 == 0:
            origin = dice.choice(list(Origin))
            fact = start(origin, locked=origin is Origin.CUSTOMER or dice.random() < 0.3)
        actor, origin = dice.choice(writers)
        value = dice.choice(["aisle", "window", "exit row", "Aisle."])
        category = dice.choice(["preference", "constraint"])
        at = NOW + timedelta(minutes=dice.randint(0, 60))
        decision = decide(said("seat", value, category, origin, said_at=at), Held(facts=(fact,)), actor)
        after = written(decision, fact, actor)
        if after.value != fact.value or after.origin is not fact.origin or after.category != fact.category:
            changes += 1
            assert not outranks(fact.origin, after.origin), (fact, decision)
            assert actor.is_customer or not fact.locked, (fact, decision)
        assert after.said_at >= min(fact.said_at, at), "time never runs backwards"
        assert actor.is_customer or after.said_at >= fact.said_at
        fact = after
    assert changes > 500
    figure(
        "M6",
        f"{steps:,} random writes of four ranks, {changes:,} changes: 0 by a lower rank, 0 over the customer's word",
    )


@pytest.mark.django_db
def test_a_restatement_under_a_stronger_kind_takes_no_lock_away() -> None:
    """The way round a correction: repeat the customer's own words as a rule, then change them."""
    fact = corrected()
    outcome = upserted("default_store", "use the Oakland store", "constraint", now=LATER)
    assert (outcome.decision, outcome.reason) == ("proposed", Reason.DIFFERS_FROM_CORRECTION)
    upserted("default_store", "use the Berkeley store", "constraint", now=LATER)
    assert store.facts(alice(), now=LATER) == [fact]
    assert outcome.proposal_id is not None
    store.dismiss(alice(), outcome.proposal_id, CUSTOMER, now=LATER)
    again = upserted("default_store", "use the Oakland store", "constraint", now=LATER)
    assert again.reason is Reason.DISMISSED_BEFORE, "and it is asked once"


def test_an_agents_stronger_kind_for_what_the_customer_said_is_a_question() -> None:
    fact = start(Origin.EXTRACTION)
    decision = decide(said("seat", "aisle", "constraint", Origin.AGENT), Held(facts=(fact,)), AGENT)
    assert getattr(decision, "reason", None) is Reason.LOWER_RANK


def test_staff_restating_what_the_customer_confirmed_renews_it_and_no_more() -> None:
    fact = start(Origin.EXTRACTION, locked=True)
    decision = decide(said("seat", "aisle", origin=Origin.STAFF), Held(facts=(fact,)), STAFF)
    assert isinstance(decision, Renew)


@pytest.mark.django_db
def test_staff_correct_their_own_corrections_but_never_the_customers() -> None:
    fact = submit(said("default_store", "use the Alameda store"))[0].fact
    assert fact is not None
    for value in ("use the Berkeley store", "use the Fremont store"):
        by_staff = said("default_store", value, origin=Origin.STAFF, said_at=LATER)
        fact = store.correct(alice(), fact.id, by_staff, STAFF, now=LATER, version=fact.version)
    own = said("default_store", "use the Oakland store", origin=Origin.CUSTOMER, said_at=LATER)
    fact = store.correct(alice(), fact.id, own, CUSTOMER, now=LATER, version=fact.version)
    with pytest.raises(store.MemoryWriteRejected):
        store.correct(alice(), fact.id, replace(own, value="use any store"), STAFF, now=LATER, version=fact.version)
    assert held() == {"default_store": "use the Oakland store"}


def attempts_on_safety(fact: Fact, dice: random.Random, now: datetime) -> Iterator[Callable[[], object]]:
    """Every way in which somebody else might remove or weaken it."""
    value = dice.choice(["no longer allergic to shellfish", "eats everything", "allergic to raw shellfish", "fine now"])
    category = dice.choice(["preference", "constraint", "context", "safety"])
    origin, actor = dice.choice([(Origin.EXTRACTION, JOB), (Origin.AGENT, AGENT), (Origin.STAFF, STAFF)])
    draft = said("allergy", value, category, origin, said_at=now, session_id="session-1")
    wish = said("allergy", "", origin=origin, action=ChangeAction.FORGET, source_quote="forget my allergy", said_at=now)
    yield lambda: submit(draft, actor=actor, now=now)
    yield lambda: submit(wish, actor=actor, now=now)
    yield lambda: upserted("allergy", value, dice.choice(["preference", "constraint"]), now=now)
    yield lambda: upserted("allergy", fact.value, "preference", now=now)
    yield lambda: store.DjangoMemoryStore("grocery", clock=lambda: now)._delete("alice", "allergy")
    yield lambda: store.correct(alice(), fact.id, draft, STAFF, now=now, version=fact.version)
    yield lambda: store.forget(alice(), [fact.id], dice.choice([STAFF, AGENT, JOB]), now=now)
    yield lambda: store.forget_session(alice(), store.session_tag("session-1"), STAFF, now=now)
    yield lambda: store.freeze(alice(), fact.id, FreezeReason.WRONG, dice.choice([STAFF, AGENT]), now=now)
    yield lambda: store.keep_until(alice(), fact.id, now, STAFF, now=now)


@pytest.mark.django_db
def test_nobody_but_the_customer_removes_or_weakens_a_safety_fact_and_each_try_is_asked_about(figure: Figure) -> None:
    consent()
    fact = submit(said("allergy", "allergic to shellfish", "safety", session_id="session-1"))[0].fact
    assert fact is not None
    dice, tries = random.Random(7), 0
    while tries < 1_000:
        now = LATER + timedelta(minutes=tries)
        for attempt in attempts_on_safety(fact, dice, now):
            tries += 1
            try:
                attempt()
            except store.MemoryWriteRejected as refused:
                assert refused.reason is Reason.NOT_ALLOWED
            (told,) = store.context(ALICE, AGENT, now=now).always
            assert (told.value, told.category) == (fact.value, "safety")
            assert [held.locked for held in store.facts(alice(), now=now)] == [False]
    questions = store.suggestions(alice(), now=LATER)
    assert {question.reason for question in questions} <= {Reason.WEAKENS_SAFETY, Reason.AGENT_SUGGESTION}
    assert {question.action for question in questions} == {ChangeAction.REMEMBER, ChangeAction.FORGET}
    figure(
        "M7",
        f"{tries:,} tries to remove or weaken a safety fact: 0 worked, {len(questions)} questions reached the customer",
    )


# --- P: the filter ----------------------------------------------------------------------------------------------------

WAYS_IN = {
    "REST": (AGENT, Origin.AGENT),
    "MCP": (AGENT, Origin.AGENT),
    "extraction": (JOB, Origin.EXTRACTION),
    "import": (Actor(ActorKind.SYSTEM), Origin.EXTRACTION),
    "customer": (CUSTOMER, Origin.CUSTOMER),
}


def broken(*_: object) -> bool:
    raise RuntimeError("green tea")


@pytest.mark.django_db
def test_a_detector_that_fails_lets_nothing_in_on_any_way(monkeypatch: pytest.MonkeyPatch, figure: Figure) -> None:
    fact = submit(said("seat", "aisle"))[0].fact
    assert fact is not None
    own = said("seat", "window", origin=Origin.CUSTOMER)
    detectors = list(write_filter.DETECTORS)
    for fault in range(100):
        way = [*WAYS_IN][fault % len(WAYS_IN)]
        actor, origin = WAYS_IN[way]
        at = fault // len(WAYS_IN) % len(detectors)
        failing = [(reason, broken if n == at else works) for n, (reason, works) in enumerate(detectors)]
        with monkeypatch.context() as patch:
            patch.setattr(write_filter, "DETECTORS", failing)
            (outcome,) = submit(said("drink", "green tea", origin=origin), actor=actor)
            assert outcome.reason is Reason.FILTER_FAILED, way
            with pytest.raises(store.MemoryWriteRejected, match="filter_failed"):
                store.correct(alice(), fact.id, own, CUSTOMER, now=NOW, version=fact.version)
    assert held() == {"seat": "aisle"}
    assert not Proposal.objects.exists()
    figure("P4", f"100 detector faults on {len(WAYS_IN)} ways in, and as many corrections: 0 stored")


@pytest.mark.django_db
@pytest.mark.parametrize("detector", ["sensitive", "instruction_shaped"])
def test_where_content_cannot_be_judged_the_customer_is_asked(detector: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_filter, detector, broken)
    for actor, origin in list(WAYS_IN.values())[:4]:
        assert submit(said("drink", "green tea", origin=origin), actor=actor)[0].decision == "proposed"
    assert held() == {}


# --- speed: pure, no database -----------------------------------------------------------------------------------------

NOUNS = ["wool", "linen", "silk", "tea", "coffee", "bread", "fish", "cheese", "boots", "lamps", "chairs", "towels"]
PLACES = ["kitchen", "bedroom", "office", "winter", "summer", "mornings", "evenings", "weekends", "parties"]


def two_hundred_facts() -> tuple[Fact, ...]:
    values = [
        f"prefers {NOUNS[n % 12]} over {NOUNS[(n * 7 + 3) % 12]} number {n} in the {PLACES[n % 9]}" for n in range(200)
    ]
    return tuple(replace(start(Origin.EXTRACTION), id=n, key=f"topic_{n}", value=v) for n, v in enumerate(values))


def milliseconds(draft: Draft, everything: Held, actor: Actor) -> float:
    began = time.thread_time()
    decide(draft, everything, actor)
    return (time.thread_time() - began) * 1_000


def long_statement(n: int) -> str:
    opening = f"likes {NOUNS[n % 12]} in the {PLACES[n % 9]} and would rather have {NOUNS[n % 7]} number {n}, but not "
    return (
        opening + "the very heavy kind that needs ironing every other week and fades when it hangs in the sun " * 2
    )[:200]


def test_two_hundred_characters_against_two_hundred_facts_are_judged_in_five_milliseconds(figure: Figure) -> None:
    everything = Held(facts=two_hundred_facts(), never_words=("wine", "casino"))
    decision = decide(said("warm", long_statement(999)), everything, JOB)
    assert decision == Refuse(Reason.TOO_MANY_FACTS), "the last question of all"
    assert {len(long_statement(n)) for n in range(300)} == {200}
    took = sorted(milliseconds(said(f"thing_{n}", long_statement(n)), everything, JOB) for n in range(300))
    figure("P5", f"200 characters, 200 facts: p50 {took[150]:.2f} ms, p99 {took[297]:.2f} ms")
    # Tracing for coverage costs this pure code about its own time once more.
    assert took[297] < (5 if sys.gettrace() is None and not sys.modules.get("coverage") else 15)


PIECES = [
    "a" * 9,
    "not ",
    "'t",
    ",",
    "by was ",
    "對",
    "我 ",
    "9,",
    "<a ",
    "((",
    "\\",
    "%41",
    "1 2 3 ",
    "at dot ",
    "ⅷ",
    "e\u0301",
    "👩‍👩‍👧",
]


def test_two_hundred_hostile_strings_are_judged_in_fifty_milliseconds_each(figure: Figure) -> None:
    dice, slowest = random.Random(5), 0.0
    everything = Held(facts=two_hundred_facts())
    for n in range(200):
        pieces = dice.choices(PIECES, k=dice.randint(1, 3))
        value = ("".join(pieces) * 200)[:200].strip()
        draft = store.draft(
            key=f"k{n}",
            value=value,
            category="preference",
            origin=Origin.EXTRACTION,
            said_at=NOW,
            now=NOW,
            source_quote=(value * 5)[:1000],
        )
        slowest = max(slowest, min(milliseconds(draft, everything, JOB) for _ in range(2)))
    figure("P5", f"200 hostile strings: the slowest took {slowest:.1f} ms")
    assert slowest < 50
