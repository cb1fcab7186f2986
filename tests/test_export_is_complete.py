"""An export forgets nothing: every table and column that leads to a customer is in it, or on a list with the reason why not."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.apps import apps
from django.contrib.auth import get_user_model
from django.db.models import Model
from django.utils import timezone

from memory_portal import store, takeout
from memory_portal.models import (
    Consent,
    Customer,
    FactEvent,
    FactRead,
    FactRevision,
    MemoryFact,
    PrivacyRequest,
    Proposal,
    Tombstone,
)
from memory_portal.store.exporting import LEFT_OUT_FIELDS, LEFT_OUT_MODELS, SECTIONS, taken_along
from tests.figures import Figure
from tests.people import Person

EXPORTED = {Customer, FactRevision, *(apps.get_model(label) for label in SECTIONS.values())}


def personal() -> set[type[Model]]:
    """Every table that names a customer by the host's id, or from which foreign keys lead to one or to their sign-in."""
    named = {model for model in apps.get_models() if any(f.name == "subject_id" for f in model._meta.concrete_fields)}
    found: set[type[Model]] = {Customer, get_user_model(), *named}
    while True:
        more = {
            model
            for model in apps.get_models(include_auto_created=True)
            if any(field.related_model in found for field in model._meta.concrete_fields if field.is_relation)
        }
        if more <= found:
            return found
        found |= more


def test_every_table_about_a_customer_is_exported_or_left_out_for_a_reason() -> None:
    unknown = {model._meta.label for model in personal() - EXPORTED} - set(LEFT_OUT_MODELS)
    assert unknown == set(), "export them, or write down why not, in store/exporting.py"
    assert all(reason for reason in LEFT_OUT_MODELS.values())
    for label in LEFT_OUT_MODELS:
        assert apps.get_model(label) not in EXPORTED


def test_no_reason_is_given_for_what_does_not_exist() -> None:
    columns = {f"{model._meta.label}.{field.name}" for model in EXPORTED for field in model._meta.concrete_fields}
    assert set(LEFT_OUT_FIELDS) <= columns
    assert set(LEFT_OUT_MODELS) <= {model._meta.label for model in apps.get_models(include_auto_created=True)}


def test_no_secret_column_is_taken_along() -> None:
    taken = {name for model in EXPORTED for name in taken_along(model)}
    assert not [name for name in taken if name in ("salt", "vector", "digest") or name.endswith("_mac")]


def planted(who: Person) -> dict[str, str]:
    """A word of its own in every column that holds one, so that finding the word means finding the column."""
    now = timezone.now()
    words: dict[str, str] = {}

    def word(model: type[Model], name: str) -> str:
        return words.setdefault(f"{model.__name__}.{name}", f"canary{len(words):03d}")

    Customer.objects.filter(pk=who.pk).update(
        display_name=word(Customer, "display_name"),
        never_words=[word(Customer, "never_words")],
        no_use_agents=[word(Customer, "no_use_agents")],
        no_learn_agents=[word(Customer, "no_learn_agents")],
        no_use_categories=[word(Customer, "no_use_categories")],
        no_learn_categories=[word(Customer, "no_learn_categories")],
    )
    fact = who.fact("coffee", "Dark")
    MemoryFact.objects.filter(pk=fact.id).update(
        **{name: word(MemoryFact, name) for name in ("key", "value", "category", "source_quote", "agent", "extractor")},
        topics=[word(MemoryFact, "topics")],
    )
    FactRevision.objects.create(
        fact_id=fact.id,
        version=1,
        value=word(FactRevision, "value"),
        category=word(FactRevision, "category"),
        source_quote=word(FactRevision, "source_quote"),
        origin="extraction",
        said_at=now,
        replaced_at=now,
    )
    Proposal.objects.create(
        customer=who.customer,
        **{name: word(Proposal, name) for name in ("key", "value", "category", "source_quote", "agent", "extractor")},
        topics=[word(Proposal, "topics")],
        reason="imported",
        value_mac="0",
        origin="customer",
        said_at=now,
        created_at=now,
        expires_at=now,
    )
    Tombstone.objects.create(customer=who.customer, key=word(Tombstone, "key"), value_mac="0", watermark=now)
    Consent.objects.create(
        customer=who.customer,
        purpose=word(Consent, "purpose"),
        text_version=word(Consent, "text_version"),
        channel=word(Consent, "channel"),
        language=word(Consent, "language"),
        given_at=now,
    )
    FactEvent.objects.create(
        customer=who.customer,
        at=now,
        kind="learned",
        key=word(FactEvent, "key"),
        category=word(FactEvent, "category"),
        code=word(FactEvent, "code"),
        actor_kind="job",
        agent=word(FactEvent, "agent"),
    )
    FactRead.objects.create(customer=who.customer, at=now, agent=word(FactRead, "agent"), layer=1, fact_ids=[fact.id])
    PrivacyRequest.objects.create(
        customer=who.customer,
        kind=word(PrivacyRequest, "kind"),
        regime="gdpr",
        channel=word(PrivacyRequest, "channel"),
        outcome=word(PrivacyRequest, "outcome"),
        received_at=now,
        staff_id=7,
    )
    job = apps.get_model("agent_bridge.ExtractionJob")
    job._default_manager.create(
        customer=who.customer,
        agent=word(job, "agent"),
        profile="grocery",
        generation=0,
        run_after=now,
        created_at=now,
        turns=[{"role": "user", "text": word(job, "turns")}],
    )
    return words


def test_a_word_planted_in_every_table_is_found_in_the_file(alice: Person, bob: Person, figure: Figure) -> None:
    words = planted(alice)
    bob.fact("tea", "Anothersvalue")
    kept = store.everything_kept(alice.pk)
    file = takeout.as_json(kept, timezone.now()).decode()
    assert [where for where, word in words.items() if word not in file] == []
    assert "Anothersvalue" not in file
    assert "bob" not in file
    assert {where.split(".")[0] for where in words} == {model.__name__ for model in EXPORTED}
    figure(
        "R7", f"a canary in {len(words)} columns of {len(EXPORTED)} tables: all found in the file, none of another's"
    )


def test_expired_and_frozen_facts_are_in_it_as_long_as_they_are_kept(alice: Person) -> None:
    fact = alice.fact("coffee", "Dark")
    MemoryFact.objects.filter(pk=fact.id).update(expires_at=timezone.now() - timedelta(days=1), state="frozen")
    assert [row["state"] for row in store.everything_kept(alice.pk)["facts"]] == ["frozen"]


def test_of_nobody_there_is_nothing(db: None) -> None:
    with pytest.raises(store.NotFound):
        store.everything_kept(404)


def test_five_thousand_facts_are_exported_within_a_minute(alice: Person, figure: Figure) -> None:
    now = timezone.now()
    MemoryFact.objects.bulk_create(
        (
            MemoryFact(
                customer=alice.customer,
                key=f"key_{n}",
                value=f"value {n}",
                category="preference",
                source_quote=f"I said value {n}",
                said_at=now,
                created_at=now,
                origin="extraction",
            )
            for n in range(5000)
        ),
        batch_size=500,
    )
    ids = list(MemoryFact.objects.values_list("pk", flat=True))
    FactRevision.objects.bulk_create(
        (
            FactRevision(fact_id=pk, version=1, value="v", category="c", origin="agent", said_at=now, replaced_at=now)
            for pk in ids
        ),
        batch_size=500,
    )
    FactEvent.objects.bulk_create(
        (
            FactEvent(customer=alice.customer, at=now, kind="learned", fact_id=pk, key="k", actor_kind="job")
            for pk in ids
        ),
        batch_size=500,
    )
    FactRead.objects.bulk_create(
        (FactRead(customer=alice.customer, at=now, agent="helper", layer=1, fact_ids=ids[:8]) for _ in range(5000)),
        batch_size=500,
    )
    began = time.perf_counter()
    file = takeout.as_json(store.everything_kept(alice.pk), now)
    seconds = time.perf_counter() - began
    assert file.count(b'"former_versions"') == 5000
    assert seconds < 60
    figure("R7", f"5,000 facts, 20,000 rows: {seconds:.1f} s, {len(file) / 1e6:.1f} MB")
