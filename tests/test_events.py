"""Events are written once, hold no value, and there is one for every change and look."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.db.models import CharField, Field, TextField
from django.db.utils import ProgrammingError

from memory_portal import store
from memory_portal.enums import ActorKind, EventKind, FreezeReason, Origin
from memory_portal.models import Customer, FactEvent, FactRead
from memory_portal.store import Actor, Subject
from tests.conftest import NOW

pytestmark = pytest.mark.django_db

ALICE = Subject("alice", "grocery")
CUSTOMER = Actor(ActorKind.CUSTOMER, "alice")
JOB = Actor(ActorKind.JOB, "job-1", "Helper")


def learned(key: str = "seat", value: str = "aisle seats", **kwargs: object) -> None:
    said = kwargs.pop("said_at", NOW)
    assert hasattr(said, "tzinfo")
    made = store.draft(
        key=key,
        value=value,
        category="preference",
        origin=Origin.EXTRACTION,
        said_at=said,
        now=said,
        source_quote=value,
    )
    store.submit(ALICE, [made], JOB, now=said)


def alice() -> Customer:
    found = store.find(ALICE)
    assert found is not None
    return found


ATTEMPTS = {
    "ORM update": lambda: FactEvent.objects.update(code="forged"),
    "ORM save": lambda: _save(FactEvent.objects.first()),
    "ORM delete": lambda: FactEvent.objects.all().delete(),
    "ORM bulk update": lambda: FactEvent.objects.bulk_update([_forged(FactEvent.objects.first())], ["kind"]),
    "SQL update": lambda: _sql("UPDATE memory_portal_factevent SET at = now()"),
    "SQL update of one column": lambda: _sql("UPDATE memory_portal_factevent SET actor_id = 'x' WHERE true"),
    "SQL delete": lambda: _sql("DELETE FROM memory_portal_factevent"),
    "SQL merge": lambda: _sql(
        "MERGE INTO memory_portal_factevent e USING (SELECT 1) s ON true WHEN MATCHED THEN UPDATE SET code = 'x'"
    ),
    "SQL upsert": lambda: _sql(
        "INSERT INTO memory_portal_factevent SELECT * FROM memory_portal_factevent"
        " ON CONFLICT (id, at) DO UPDATE SET code = 'forged'"
    ),
    "SQL truncate": lambda: _sql("TRUNCATE memory_portal_factevent"),
}


def _save(event: FactEvent | None) -> None:
    assert event is not None
    _forged(event).save()


def _forged(event: FactEvent | None) -> FactEvent:
    assert event is not None
    event.kind = EventKind.EXPIRED
    return event


def _sql(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_nobody_changes_or_removes_an_event(attempt: str) -> None:
    learned()
    _sql("ALTER TABLE memory_portal_factevent ENABLE TRIGGER never_emptied")
    before = list(FactEvent.objects.values())
    with pytest.raises(ProgrammingError, match="append-only"), transaction.atomic():
        ATTEMPTS[attempt]()
    assert list(FactEvent.objects.values()) == before


def test_events_and_reads_have_no_room_for_a_value() -> None:
    """Every text column is a code, a name of a key, an agent or a pseudonym; none is free text."""

    def texts(fields: list[Field]) -> set[str]:  # type: ignore[type-arg]  # the stubs want what the class does not take
        return {field.name for field in fields if isinstance(field, CharField | TextField)}

    assert texts(list(FactEvent._meta.concrete_fields)) == {
        "kind",
        "key",
        "category",
        "code",
        "actor_kind",
        "actor_id",
        "agent",
    }
    assert texts(list(FactRead._meta.concrete_fields)) == {"agent", "source_session_id"}


def test_every_act_of_the_store_leaves_exactly_its_event() -> None:
    learned()
    customer, later = alice().pk, NOW + timedelta(hours=1)
    fact = store.facts(customer, now=NOW)[0]
    own = store.draft(
        key="seat", value="window", category="preference", origin=Origin.CUSTOMER, said_at=later, now=later
    )
    acts = [
        (lambda: store.correct(customer, fact.id, own, CUSTOMER, now=later, version=1), EventKind.CORRECTED),
        (lambda: store.freeze(customer, fact.id, FreezeReason.WRONG, CUSTOMER, now=later), EventKind.FROZEN),
        (lambda: store.thaw(customer, fact.id, CUSTOMER, now=later), EventKind.THAWED),
        (lambda: store.keep_until(customer, fact.id, None, CUSTOMER, now=later), EventKind.KEPT_LONGER),
        (lambda: store.reviewed(customer, fact.id, CUSTOMER, now=later), EventKind.REVIEWED),
        (lambda: store.forget(customer, [fact.id], CUSTOMER, now=later), EventKind.FORGOTTEN),
        (lambda: store.lift(customer, "seat", CUSTOMER, now=later), EventKind.LIFTED),
        (lambda: store.pause(customer, "learning", CUSTOMER, now=later), EventKind.LEARNING_PAUSED),
        (lambda: store.resume(customer, "learning", CUSTOMER, now=later), EventKind.LEARNING_RESUMED),
        (lambda: store.pause(customer, "using", CUSTOMER, now=later), EventKind.USING_PAUSED),
        (lambda: store.resume(customer, "using", CUSTOMER, now=later), EventKind.USING_RESUMED),
        (lambda: store.choose(customer, {"never_words": ["wine"]}, CUSTOMER, now=later), EventKind.CHOICES_CHANGED),
        (
            lambda: store.give_consent(customer, CUSTOMER, now=later, channel="portal", language="en"),
            EventKind.CONSENT_GIVEN,
        ),
        (lambda: store.withdraw_consent(customer, CUSTOMER, now=later), EventKind.CONSENT_WITHDRAWN),
        (lambda: store.clear(ALICE, CUSTOMER, now=later), EventKind.CLEARED),
    ]
    for act, kind in acts:
        before = FactEvent.objects.count()
        act()
        assert [event.kind for event in FactEvent.objects.order_by("pk")[before:]] == [kind]


def test_an_event_names_who_did_it_and_when() -> None:
    learned()
    event = FactEvent.objects.get()
    assert (event.actor_kind, event.actor_id, event.agent, event.at) == ("job", "job-1", "Helper", NOW)


def test_two_pauses_are_one() -> None:
    learned()
    for _ in range(2):
        store.pause(alice().pk, "using", CUSTOMER, now=NOW)
    assert FactEvent.objects.filter(kind=EventKind.USING_PAUSED).count() == 1
