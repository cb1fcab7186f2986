"""Events are written once, hold no value, and there is one for every change and look."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from html import escape
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection, transaction
from django.db.models import BinaryField, CharField, F, JSONField, Model, TextField
from django.db.utils import ProgrammingError
from django.test import Client
from django.utils import timezone

from memory_portal import store
from memory_portal.enums import ActorKind, EventKind, FreezeReason, Origin
from memory_portal.models import AuditSeal, Customer, FactEvent, FactRead, TrailEnd
from memory_portal.store import Actor, Subject, seals
from tests.conftest import NOW
from tests.figures import Figure
from tests.people import Person

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


def alices() -> Customer:
    found = store.find(ALICE)
    assert found is not None
    return found


EVENT, SEAL, END = "memory_portal_factevent", "memory_portal_auditseal", "memory_portal_trailend"
MONTH, DEFAULT = f"{EVENT}_{NOW:%Y_%m}", f"{EVENT}_default"

STATEMENTS = [
    "UPDATE {} SET mac = NULL",
    "UPDATE {} SET mac = mac WHERE true",
    "UPDATE ONLY {} SET mac = NULL",
    "WITH changed AS (UPDATE {} SET mac = NULL RETURNING 1) SELECT count(*) FROM changed",
    "DELETE FROM {}",
    "DELETE FROM {} AS e USING memory_portal_customer AS c WHERE true",
    "MERGE INTO {} AS e USING (SELECT 1) AS s ON true WHEN MATCHED THEN DELETE",
    "TRUNCATE {} CASCADE",
]
"""Each on the events, on the month they lie in, on what no month takes, on the seals and on the ends of trails."""
SQL = [
    statement.format(table)
    for table in (EVENT, MONTH, DEFAULT, SEAL, END)
    for statement in STATEMENTS
    if not (table == EVENT and "ONLY" in statement)  # which looks at no month, so at nothing
] + [
    f"UPDATE {EVENT} SET at = now()",
    f"UPDATE {EVENT} SET actor_id = 'x' WHERE code = ''",
    f"UPDATE {EVENT} SET at = at - interval '3 months'",
    f"INSERT INTO {EVENT} SELECT * FROM {EVENT} ON CONFLICT (id, at) DO UPDATE SET code = 'forged'",
    f"MERGE INTO {EVENT} e USING (SELECT 1) s ON true WHEN MATCHED THEN UPDATE SET code = 'x'",
    f"TRUNCATE {EVENT}, memory_portal_factread",
    f"DO $$ DECLARE e record; BEGIN FOR e IN SELECT * FROM {EVENT} FOR UPDATE LOOP"
    f" DELETE FROM {EVENT} WHERE id = e.id; END LOOP; END $$",
]


def event() -> FactEvent:
    return FactEvent.objects.earliest("pk")


def saved(**changes: object) -> None:
    row = event()
    for name, value in changes.items():
        setattr(row, name, value)
    row.save()


ORM: dict[str, Callable[[], object]] = {
    "update": lambda: FactEvent.objects.update(code="forged"),
    "update by a filter": lambda: FactEvent.objects.filter(key="seat").update(at=NOW),
    "update by an expression": lambda: FactEvent.objects.update(fact_id=F("fact_id") + 1),
    "save": lambda: saved(kind=EventKind.EXPIRED),
    "save of one field": lambda: event().save(update_fields=["code"]),
    "update_or_create": lambda: FactEvent.objects.update_or_create(pk=event().pk, defaults={"code": "forged"}),
    "bulk_update": lambda: FactEvent.objects.bulk_update([event()], ["kind"]),
    "delete": lambda: FactEvent.objects.all().delete(),
    "delete of one": lambda: event().delete(),
    "delete through the customer": lambda: alices().events.all().delete(),
    "change through the customer": lambda: alices().events.update(agent="another"),
    "a seal's change": lambda: AuditSeal.objects.update(events=0),
    "a seal's end": lambda: AuditSeal.objects.all().delete(),
    "a trail's other end": lambda: TrailEnd.objects.update(seq=1),
    "a trail's end taken away": lambda: TrailEnd.objects.all().delete(),
}


def _sql(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def refused(attempt: Callable[[], object]) -> bool:
    try:
        with transaction.atomic():
            attempt()
    except ProgrammingError as error:
        return "append-only" in str(error)
    return False


def everything() -> list[Any]:
    tables = (FactEvent, AuditSeal, TrailEnd)
    return [list(table._default_manager.order_by("pk").values()) for table in tables]  # type: ignore[attr-defined]


def test_nobody_changes_or_removes_an_event_by_any_way(staff: Client, figure: Figure) -> None:
    """By ORM and SQL, with all rights, at all of what the events are kept and sealed in; and in the admin as its first user."""
    learned()
    learned("meal", "vegan", said_at=datetime(1999, 1, 1, tzinfo=UTC))  # in no month
    gone = store.Subject("bob", "grocery")
    store.submit(gone, [], CUSTOMER, now=NOW)
    bob = store.find(gone)
    assert bob
    store.erase(bob.pk, CUSTOMER, now=NOW)
    store.tend_months(NOW)
    _sql(f"ALTER TABLE {EVENT} ENABLE TRIGGER never_emptied")
    before = everything()
    assert all(before)
    done = [statement for statement in SQL if not refused(partial(_sql, statement))]
    done += [name for name, attempt in ORM.items() if not refused(attempt)]
    pages = [
        ("add/", {"kind": "learned", "customer": alices().pk, "actor_kind": "job"}),
        (f"{event().pk}/change/", {"kind": "expired"}),
        (f"{event().pk}/delete/", {"post": "yes"}),
        ("", {"action": "delete_selected", "_selected_action": event().pk, "post": "yes"}),
    ]
    for path, data in pages:
        answer = staff.post(f"/admin/memory_portal/factevent/{path}", data)
        if answer.status_code >= 500 or everything() != before:
            done.append(f"admin {path}")
    assert everything() == before
    assert done == []
    tried = len(SQL) + len(ORM) + len(pages)
    assert tried >= 50
    figure("A1", f"{tried} tries by ORM, admin and SQL at events, their months, seals and ends of trails: 0 changed")


def test_events_reads_and_seals_have_no_room_for_a_value(figure: Figure) -> None:
    """Every text column is a code, a name of a key, an agent or a pseudonym; none is free text, and all are short."""

    def texts(model: type[Model]) -> set[str]:
        kinds = (CharField, TextField, JSONField)
        return {field.name for field in model._meta.concrete_fields if isinstance(field, kinds)}

    assert texts(FactEvent) == {"kind", "key", "category", "code", "actor_kind", "actor_id", "agent"}
    assert texts(FactRead) == {"agent", "source_session_id"}
    assert texts(AuditSeal) == texts(TrailEnd) == set()
    widths = [
        field.max_length
        for model in (FactEvent, FactRead, AuditSeal, TrailEnd)
        for field in model._meta.concrete_fields
        if isinstance(field, CharField | BinaryField)
    ]
    assert max(width or 10**6 for width in widths) == 64
    figure("A3", f"{len(widths)} text and byte columns of four tables: 0 free text, none wider than 64")


def forms(text: str) -> set[bytes]:
    """As it is, in JSON, in an address, in HTML, in base64 (at each place of three), folded."""
    raw = text.encode()
    inside = {base64.b64encode(b"x" * before + raw)[4:-4] for before in range(3)}
    return {raw, json.dumps(text)[1:-1].encode(), quote(text).encode(), escape(text).encode(), raw.lower(), *inside}


def test_no_value_stands_in_them_whatever_is_done(alice: Person, agent: Callable[..., Client], figure: Figure) -> None:
    """The marker is in every value, quote and correction, and passes through page, store, REST and sweep."""
    marker = "Zebra & Großquagga’s"
    alice.agrees()
    heard = alice.fact("seat", f"{marker} aisle", quote=f"I say {marker} aisle")
    alice.writes("tea", f"{marker} green")
    alice.writes("nut_allergy", f"{marker} nuts", category="safety")
    alice.post(
        f"/facts/{heard.id}/correct", {"value": f"{marker} middle", "category": "preference", "version": heard.version}
    )
    alice.says("seat", f"{marker} window", ago=0)
    assert alice.says("tea", f"{marker} black", ago=0).proposal_id
    client = agent(profile="grocery")
    asked = {"message": f"anything on {marker}?"}
    assert client.post("/bridge/v1/subjects/alice/context", asked, content_type="application/json").status_code == 200
    alice.post(f"/facts/{heard.id}/forget")
    store.sweep(now=timezone.now() + timedelta(days=400))
    store.clear(alice.pk, alice.actor, now=timezone.now())
    store.erase(alice.pk, alice.actor, now=timezone.now())
    store.seal(timezone.now())
    with connection.cursor() as cursor:
        found = []
        for table in (EVENT, "memory_portal_factread", SEAL, END):
            cursor.execute(f"SELECT to_jsonb(t)::text FROM {table} AS t")
            found += [row for (row,) in cursor.fetchall()]
    kept = "\n".join(found) + json.dumps([line["mac"].hex() for line in seals.told(seals.path())])
    kinds = set(FactEvent.objects.values_list("kind", flat=True))
    assert {"learned", "added", "corrected", "proposed", "forgotten", "expired", "cleared"} <= kinds
    for form in forms(marker):
        assert form not in kept.encode(), form
    figure("A3", f"a marker in all that {len(found)} events, reads and seals were made of, in 8 forms: 0 found")


def test_staff_do_not_read_of_an_event_that_it_was_about_health(alice: Person, staff: Client) -> None:
    alice.agrees()
    alice.writes("nut_allergy", "peanuts", category="safety")
    row = FactEvent.objects.get(category="safety")
    listed = staff.get("/admin/memory_portal/factevent/").content.decode()
    single = staff.get(f"/admin/memory_portal/factevent/{row.pk}/change/").content.decode()
    assert "nut_allergy" in single
    assert "field-category" not in listed
    assert ">safety<" not in single


def test_every_act_of_the_store_leaves_exactly_its_event() -> None:
    learned()
    customer, later = alices().pk, NOW + timedelta(hours=1)
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
        store.pause(alices().pk, "using", CUSTOMER, now=NOW)
    assert FactEvent.objects.filter(kind=EventKind.USING_PAUSED).count() == 1
