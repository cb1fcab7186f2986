"""What agents are given: layer 1, layer 2 for a message, layer 3 on asking, single facts and pages.

In: a Subject, the agent as an Actor, the time. Out: frozen values; each read that reaches an agent is noted for the customer.
Imports desk, shelf and the pure rooms.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.conf import settings

from memory_portal.models import (
    Customer,
    MemoryFact,
)
from memory_portal.store import lexicon, recall, semantic
from memory_portal.store import shelf as shelves
from memory_portal.store.desk import (
    current_policy,
    find,
)
from memory_portal.store.errors import NotFound
from memory_portal.store.holdings import snapshot
from memory_portal.store.types import (
    Actor,
    Fact,
    Recall,
    Subject,
    Told,
)


def facts(customer: Customer | int, *, now: datetime) -> list[Fact]:
    """Every fact of the customer that has not expired, frozen ones too, in the order they were first written."""
    return [snapshot(row) for row in MemoryFact.objects.of(customer).live(now).defer("vector").order_by("pk")]


def version_of(subject: Subject) -> int:
    """Moves with every change to this customer's facts, choices and consents; 0 for one nobody knows."""
    return shelves.version(subject)


def _shelf(subject: Subject, now: datetime, text: str = "") -> shelves.Shelf | None:
    """None for an unknown customer, and for everybody while memory is off: both read as empty and leave no note."""
    vectors = settings.SEMANTIC and bool(text)
    return shelves.shelf(subject, now=now, vectors=vectors) if current_policy().memory else None


def context(
    subject: Subject,
    actor: Actor,
    *,
    now: datetime,
    message: str = "",
    session: str = "",
    hidden: Collection[str] = (),
) -> Recall:
    """Layer 1, and with a message layer 2. `hidden` are the categories the agent's key may not read. Notes the read."""
    if not message:
        layer = _layer(subject, actor.name, now=now, hidden=hidden, reader=actor, session=session)
        if layer is not None:
            return layer
    shelf = _shelf(subject, now, message)
    if shelf is None:
        return Recall(())
    told = _told(shelf, actor.name, message, now=now, hidden=hidden)
    shelves.note(shelf, actor, (*told.always, *told.relevant), layer=2 if message else 1, session=session, now=now)
    return told


def preview(subject: Subject, agent: str, message: str, *, now: datetime, hidden: Collection[str] = ()) -> Recall:
    """What `context` would tell this agent. For the customer's own eyes: no agent reads, so no read is noted."""
    if not message:
        layer = _layer(subject, agent, now=now, hidden=hidden)
        if layer is not None:
            return layer
    shelf = _shelf(subject, now, message)
    return _told(shelf, agent, message, now=now, hidden=hidden) if shelf else Recall(())


def _layer(
    subject: Subject,
    agent: str,
    *,
    now: datetime,
    hidden: Collection[str],
    reader: Actor | None = None,
    session: str = "",
) -> Recall | None:
    """Layer 1 in one round trip with its note, where that can be: in all but the fullest shelves. Else None, and nothing noted."""
    policy = current_policy()
    if not policy.memory:
        return Recall(())
    done, layer = shelves.layer(
        subject,
        agent,
        now=now,
        hidden=hidden,
        layer_one=policy.always_in_context,
        cap=policy.limits.tier_one_cap,
        budget=policy.limits.tier_one_chars,
        reader=reader,
        session=session,
    )
    if not done:
        return None
    if layer is None:
        return Recall(())
    until = min((fact.expires_at for fact in layer.told if fact.expires_at), default=None)
    return Recall(layer.told, version=layer.version, until=until)


def _told(shelf: shelves.Shelf, agent: str, message: str, *, now: datetime, hidden: Collection[str]) -> Recall:
    held = shelf.served(agent, hidden)
    limits = current_policy().limits
    always, dropped = recall.always(
        held,
        cap=limits.tier_one_cap,
        budget_chars=limits.tier_one_chars,
        now=now,
        layer_one=current_policy().always_in_context,
    )
    relevant = (
        recall.relevant(
            held,
            message,
            k=limits.prefetch_cap,
            exclude={fact.id for fact in always},
            now=now,
            near=semantic.closeness(shelf.vectors, message),
        )
        if message
        else []
    )
    until = min((fact.expires_at for fact in held if fact.expires_at), default=None)
    first, second = (tuple(map(Told.of, facts)) for facts in (always, relevant))
    return Recall(first, second, dropped, version=shelf.version, until=until)


def lookup(
    subject: Subject,
    topic: str,
    actor: Actor,
    *,
    now: datetime,
    session: str = "",
    hidden: Collection[str] = (),
    limit: int | None = None,
) -> list[Fact]:
    """Layer 3: facts about a topic, best first; every fact for an empty topic."""
    shelf = _shelf(subject, now, topic)
    if shelf is None:
        return []
    near = semantic.closeness(shelf.vectors, topic)
    most = recall.LOOKUP_CAP if limit is None else limit
    found = recall.lookup(shelf.served(actor.name, hidden), topic, k=most, now=now, near=near)[:limit]
    shelves.note(shelf, actor, found, layer=3, session=session, now=now)
    return found


def page(
    subject: Subject, actor: Actor, *, now: datetime, after: str = "", limit: int = 100, hidden: Collection[str] = ()
) -> tuple[list[Fact], bool]:
    """At most `limit` facts by key, those behind the key `after`, and whether more follow."""
    shelf = _shelf(subject, now)
    if shelf is None:
        return [], False
    rest = sorted(shelf.served(actor.name, hidden), key=lambda fact: fact.key)
    rest = [fact for fact in rest if fact.key > after]
    shelves.note(shelf, actor, rest[:limit], layer=3, session="", now=now)
    return rest[:limit], len(rest) > limit


def look(subject: Subject, key: str, actor: Actor, *, now: datetime, hidden: Collection[str] = ()) -> Fact:
    """The one fact of that key, if this agent may be given it. Raises NotFound, the same for every reason why not."""
    shelf = _shelf(subject, now)
    facts = shelf.served(actor.name, hidden) if shelf else []
    fact = next((fact for fact in facts if fact.key == key), None)
    if shelf is None or fact is None:
        raise NotFound
    shelves.note(shelf, actor, [fact], layer=3, session="", now=now)
    return fact


def everything(subject: Subject, actor: Actor, *, now: datetime) -> list[Fact]:
    """All facts this agent may be given, in the order they were first written."""
    return lookup(subject, "", actor, now=now)


def warm() -> None:
    """Load what the first read of this process would else wait for: policy, lexicon, and the model where it is on."""
    current_policy()
    lexicon.topics_for("warm")
    lexicon.light()
    semantic.warm()


def purge_generation(subject: Subject) -> int:
    customer = find(subject)
    return customer.purge_generation if customer else 0
