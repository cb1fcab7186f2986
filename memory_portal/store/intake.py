"""The whole pipe on one screen: a Draft and what is held in, a Decision out. Pure: no database, no clock.

Every writer comes through here: customer form, staff, REST, MCP, import, jobs. Imports the other pure rooms only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from memory_portal.enums import ActorKind, ChangeAction, FactState, Origin, Reason
from memory_portal.store import dedupe, write_filter
from memory_portal.store.policy import Policy, outranks
from memory_portal.store.sentences import key_words
from memory_portal.store.types import (
    CONSTRAINT,
    SAFETY,
    Actor,
    Buried,
    Decision,
    Draft,
    Fact,
    Forget,
    Held,
    New,
    Propose,
    Refuse,
    Remember,
    Renew,
    Replaces,
    Same,
    Update,
)

Macs = Callable[[str], Sequence[str]]
"""The customer's keyed digests of a text, as one of them stands in a tombstone: under the key of today, and under former ones."""


def admit(draft: Draft, held: Held, policy: Policy, actor: Actor, macs: Macs, *, across_keys: bool = True) -> Decision:
    """What this draft comes to for this customer. The order of the questions is the order of the promises.

    `across_keys=False` is for writers whose key is an address (the commerce-agents contract): only the fact of that very key
    is compared, so that two keys may say the same.
    """
    draft = as_claimed(draft, actor)
    if reason := policy.refusal(draft, held, actor):
        return Refuse(reason)
    if reason := filtered(draft, held, policy):
        return Refuse(reason)
    if draft.action is ChangeAction.FORGET:
        return forget(draft, held, actor)
    rivals = held.facts if across_keys else [fact for fact in held.facts if fact.key == draft.key]
    verdict = dedupe.compare(draft, rivals)
    if not actor.is_customer:
        if decision := remembered_deletion(draft, verdict, held, macs):
            return decision
        if reason := suspicion(draft):
            return known(verdict) or Propose(draft, reason, touched(verdict))
    elif draft.suspicion is Reason.IMPORTED:  # a file is not the customer's word until they say so, line by line
        return known(verdict) or Propose(draft, Reason.IMPORTED, touched(verdict))
    if missing_consent(draft, held, policy):
        return Propose(draft, Reason.NEEDS_CONSENT, touched(verdict))
    return weigh(draft, verdict, held, policy, actor)


CLAIMS = {
    ActorKind.CUSTOMER: Origin.CUSTOMER,
    ActorKind.STAFF: Origin.STAFF,
    ActorKind.JOB: Origin.EXTRACTION,
    ActorKind.AGENT: Origin.AGENT,
    ActorKind.SYSTEM: Origin.AGENT,
}
"""The highest origin each writer may give a fact, whatever its draft says."""


def as_claimed(draft: Draft, actor: Actor) -> Draft:
    """The draft under the origin its writer can stand for: nobody borrows another's rank, and no job without a quote."""
    claim = min(draft.origin, CLAIMS[actor.kind], key=lambda origin: origin.rank)
    if claim is Origin.EXTRACTION and not draft.source_quote:
        claim = Origin.AGENT
    return draft if claim is draft.origin else replace(draft, origin=claim)


def proven(draft: Draft) -> bool:
    """Whether it carries the customer's own words, found in what they said. A quote from an agent is none."""
    return draft.origin is Origin.EXTRACTION and bool(draft.source_quote)


def filtered(draft: Draft, held: Held, policy: Policy) -> Reason | None:
    return write_filter.inspect(draft.key, draft.value, draft.source_quote, region=held.region, patterns=policy.blocked)


def forget(draft: Draft, held: Held, actor: Actor) -> Decision:
    """Deleting on request. A safety fact, and without the customer's own words what a person wrote, only after asking them."""
    fact = next((fact for fact in held.facts if fact.key == draft.key), None)
    if fact is None:
        return Refuse(Reason.UNKNOWN_KEY)
    if actor.is_customer:
        return Forget(draft, fact)
    wish = replace(draft, category=fact.category)
    if fact.category == SAFETY:
        return Propose(wish, Reason.WEAKENS_SAFETY, fact)
    if draft.said_at < fact.said_at:
        return Refuse(Reason.STALE)
    by_a_person = fact.locked or outranks(fact.origin, Origin.EXTRACTION)
    if draft.suspicion or (by_a_person and not proven(draft)):
        return Propose(wish, draft.suspicion or Reason.LOWER_RANK, fact)
    return Forget(draft, fact)


def remembered_deletion(draft: Draft, verdict: dedupe.Verdict, held: Held, macs: Macs) -> Decision | None:
    """Deleted stays deleted: refuse what was said before the deletion, ask about what was said after it."""
    if held.cleared_at and draft.said_at <= held.cleared_at:
        return Refuse(Reason.FORGOTTEN_BEFORE)
    stands = isinstance(verdict, Same)  # by a right of its own, whatever was forgotten beside it
    if isinstance(verdict, Same) and not verdict.upgrade:
        return None
    value, quote = macs(draft.value), macs(draft.source_quote) if draft.source_quote else ()
    ask = False
    for stone in held.buried:  # All of them: one that refuses outweighs any that would ask.
        same_words = stone.value_mac in value or stone.quote_mac in quote
        if stone.dismissed:
            if same_words:
                return Refuse(Reason.DISMISSED_BEFORE)
        elif stands:
            continue
        elif same_words or same_name(draft, stone):
            if draft.said_at <= stone.watermark:
                return Refuse(Reason.FORGOTTEN_BEFORE)
            ask = True
        elif from_its_conversation(draft, stone):
            ask = True
    return Propose(draft, Reason.AFTER_FORGETTING, touched(verdict)) if ask else None


def same_name(draft: Draft, stone: Buried) -> bool:
    """A key of the same words in another order or form is the same name: `seat_preference`, `preferred_seat`."""
    if draft.key == stone.key:
        return True
    words = key_words(draft.key)
    return bool(words) and words == key_words(stone.key)


def from_its_conversation(draft: Draft, stone: Buried) -> bool:
    return bool(stone.session) and draft.source_session_id == stone.session and draft.said_at <= stone.watermark


def suspicion(draft: Draft) -> Reason | None:
    if draft.suspicion:
        return draft.suspicion
    if any(found(write_filter.instruction_shaped, text) for text in (draft.value, draft.key.replace("_", " "))):
        return Reason.INSTRUCTION_SHAPED
    if draft.category == SAFETY and draft.origin is Origin.AGENT:
        return Reason.AGENT_SUGGESTION
    return None


def missing_consent(draft: Draft, held: Held, policy: Policy) -> bool:
    if SAFETY in held.consents:
        return False
    texts = (f"{draft.key.replace('_', ' ')}: {draft.value}", draft.source_quote)
    return policy.needs_consent(draft.category, sensitive=any(found(write_filter.sensitive, text) for text in texts))


def found(detector: Callable[[str], bool], text: str) -> bool:
    """What the detector says of a text; yes where it fails, so that nothing unchecked is taken for harmless."""
    try:
        return detector(text)
    except Exception:  # whatever a detector raises; its message may hold the text, so it is dropped
        return True


def weigh(draft: Draft, verdict: dedupe.Verdict, held: Held, policy: Policy, actor: Actor) -> Decision:
    """Who may change what, once it is clear what the draft says about the facts held."""
    match verdict:
        case New():
            return fit(draft, held, policy, actor)
        case Same(fact, upgrade):
            return restated(draft, fact, upgrade, actor)
        case Replaces(fact):
            return changed(draft, fact, actor)
    if not actor.is_customer and (verdict.fact.locked or verdict.fact.category == SAFETY):  # It Conflicts.
        return Propose(draft, Reason.CONFLICTS, verdict.fact)
    return fit(draft, held, policy, actor)


def fit(draft: Draft, held: Held, policy: Policy, actor: Actor) -> Decision:
    if reason := policy.room(held, actor):
        return Refuse(reason)
    return Remember(draft)


def restated(draft: Draft, fact: Fact, upgrade: bool, actor: Actor) -> Decision:
    """The same said again: it renews the fact, and whoever has the right makes it a stronger kind or its own."""
    if fact.state is FactState.FROZEN:
        return Refuse(Reason.FROZEN)
    higher = outranks(draft.origin, fact.origin)
    settled = replace(
        draft,
        key=fact.key,
        value=draft.value if higher else fact.value,
        category=dedupe.stronger(fact.category, draft.category),
        said_at=max(draft.said_at, fact.said_at),
    )
    if not actor.is_customer and fact.locked:
        return Propose(settled, Reason.DIFFERS_FROM_CORRECTION, fact) if upgrade else Renew(draft, fact)
    if upgrade and outranks(fact.origin, draft.origin):
        return Propose(settled, Reason.LOWER_RANK, fact)
    return Update(settled, fact) if upgrade or higher else Renew(draft, fact)


def changed(draft: Draft, fact: Fact, actor: Actor) -> Decision:
    settled = replace(draft, key=fact.key, category=dedupe.stronger(fact.category, draft.category))
    if actor.is_customer:
        return Update(replace(draft, key=fact.key), fact)
    if fact.state is FactState.FROZEN:
        return Refuse(Reason.FROZEN)
    if draft.said_at < fact.said_at:
        return Refuse(Reason.STALE)
    if fact.category == SAFETY and (dedupe.weakens(fact, draft) or not proven(draft)):
        return Propose(settled, Reason.WEAKENS_SAFETY, fact)
    if fact.locked:
        return Propose(settled, Reason.DIFFERS_FROM_CORRECTION, fact)
    if outranks(fact.origin, draft.origin):
        return Propose(settled, Reason.LOWER_RANK, fact)
    return Update(settled, fact)


def known(verdict: dedupe.Verdict) -> Decision | None:
    """Nothing to ask about what is held already."""
    return Refuse(Reason.ALREADY_KNOWN) if isinstance(verdict, Same) and not verdict.upgrade else None


def touched(verdict: dedupe.Verdict) -> Fact | None:
    return None if isinstance(verdict, New) else verdict.fact


def safety_first(drafts: Iterable[Draft]) -> list[Draft]:
    """The order in which drafts compete for the few places of one conversation: safety, rules, the rest; stable."""
    order = {SAFETY: 0, CONSTRAINT: 1}
    return sorted(drafts, key=lambda draft: order.get(draft.category, 2))


def over_the_cap(decision: Decision, already: int, policy: Policy, actor: Actor) -> Decision:
    """One conversation adds at most `max_new_facts`; updates and repeats do not count."""
    many = actor.kind is ActorKind.JOB and already >= policy.limits.max_new_facts
    return Refuse(Reason.TOO_MANY_IN_JOB) if many and isinstance(decision, Remember) else decision
