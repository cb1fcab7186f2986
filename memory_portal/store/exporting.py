"""Everything that is kept about one customer, table by table. In: a customer's id. Out: plain dicts of JSON's own types.

What is left out is named below with its reason, by model or by field; whatever is named nowhere is taken along, so that a
new table or column can only be forgotten by writing down why (tests/test_export_is_complete.py walks the models).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from django.apps import apps
from django.db import transaction
from django.db.models import Model, QuerySet

from memory_portal.enums import Origin
from memory_portal.models import Customer, FactRevision
from memory_portal.store.errors import NotFound

SECTIONS = {
    "facts": "memory_portal.MemoryFact",
    "suggestions": "memory_portal.Proposal",
    "not_learned_again": "memory_portal.Tombstone",
    "consents": "memory_portal.Consent",
    "events": "memory_portal.FactEvent",
    "reads": "memory_portal.FactRead",
    "conversations": "agent_bridge.ExtractionJob",
    "requests": "memory_portal.PrivacyRequest",
}
"""The file's lists and the tables they are. Former versions stand inside their fact; the customer's own row comes first."""

LEFT_OUT_MODELS = {
    "memory_portal.Ticket": "digests of links that work once, for minutes",
    "agent_bridge.ImportLine": "what an agent brings along, for the moments until it is decided and becomes a fact or nothing",
    "agent_bridge.DaySpend": "what reading cost us on a day",
    "auth.User": "the sign-in behind the customer: its address is the customer's, it holds nothing else of theirs",
    "auth.User_groups": "rights of staff; a customer has none",
    "auth.User_user_permissions": "rights of staff; a customer has none",
    "account.EmailAddress": "not used: the address stands on the customer",
    "account.EmailConfirmation": "not used: the address stands on the customer",
    "mfa.Authenticator": "secrets of the second step, which must not leave",
    "socialaccount.SocialAccount": "not used: the customer is found by the host's id",
    "socialaccount.SocialToken": "not used: no token of a provider is kept",
    "admin.LogEntry": "what staff did in their own pages; customers have no entries",
}

LEFT_OUT_FIELDS = {
    "memory_portal.Customer.id": "a number of ours; the host's id is there",
    "memory_portal.Customer.user": "the sign-in behind the customer",
    "memory_portal.Customer.salt": "a secret, from which forgotten values could be guessed",
    "memory_portal.Customer.version": "counts changes for caches",
    "memory_portal.Customer.trail_seq": "counts the events that are there",
    "memory_portal.Customer.trail_mac": "a keyed digest of the last event",
    "memory_portal.Customer.trail_head": "a keyed digest of the last event",
    "memory_portal.Customer.purge_generation": "counts for jobs; when everything was forgotten is there",
    "memory_portal.MemoryFact.customer": "the customer of the file",
    "memory_portal.MemoryFact.vector": "numbers made from the words that are there",
    "memory_portal.FactRevision.id": "a number of ours",
    "memory_portal.FactRevision.fact": "it stands inside its fact",
    "memory_portal.FactEvent.id": "a number of ours",
    "memory_portal.FactEvent.customer": "the customer of the file",
    "memory_portal.FactEvent.actor_id": "a number of ours for a key, a job or a member of staff",
    "memory_portal.FactEvent.xid": "orders events for caches",
    "memory_portal.FactEvent.seq": "counts, so that none can be taken away unseen",
    "memory_portal.FactEvent.prev": "a keyed digest of the event before",
    "memory_portal.FactEvent.mac": "a keyed digest of what is there",
    "memory_portal.Tombstone.id": "a number of ours",
    "memory_portal.Tombstone.customer": "the customer of the file",
    "memory_portal.Tombstone.value_mac": "a keyed digest: nobody can read it, and it would mark the value for guessing",
    "memory_portal.Tombstone.quote_mac": "a keyed digest: nobody can read it, and it would mark the words for guessing",
    "memory_portal.Proposal.id": "a number of ours",
    "memory_portal.Proposal.customer": "the customer of the file",
    "memory_portal.Proposal.value_mac": "a keyed digest of the value that is there",
    "memory_portal.Consent.id": "a number of ours",
    "memory_portal.Consent.customer": "the customer of the file",
    "memory_portal.FactRead.id": "a number of ours",
    "memory_portal.FactRead.customer": "the customer of the file",
    "memory_portal.FactRead.key_id": "a number of ours; the agent's name is there",
    "memory_portal.PrivacyRequest.id": "a number of ours",
    "memory_portal.PrivacyRequest.customer": "the customer of the file",
    "memory_portal.PrivacyRequest.staff_id": "a number of ours for a member of staff",
    "agent_bridge.ExtractionJob.customer": "the customer of the file",
    "agent_bridge.ExtractionJob.key": "a number of ours; the agent's name is there",
    "agent_bridge.ExtractionJob.profile": "stands on the customer",
    "agent_bridge.ExtractionJob.generation": "counts for jobs",
    "agent_bridge.ExtractionJob.lease_until": "says which worker is at it",
    "agent_bridge.ExtractionJob.input_tokens": "what the reading cost us",
    "agent_bridge.ExtractionJob.output_tokens": "what the reading cost us",
}

SOURCES = {
    Origin.EXTRACTION: "stated",
    Origin.CUSTOMER: "written_by_you",
    Origin.STAFF: "noted_by_staff",
    Origin.AGENT: "suggested_by_agent",
}
"""The mark each statement carries beside its origin code."""


def taken_along(model: type[Model]) -> list[str]:
    """The names of the model's columns that are exported."""
    return [
        field.name
        for field in model._meta.concrete_fields
        if f"{model._meta.label}.{field.name}" not in LEFT_OUT_FIELDS
    ]


def everything_kept(customer_id: int) -> dict[str, Any]:
    """One picture of one instant: who writes takes this row's lock first. Raises NotFound."""
    with transaction.atomic():
        customer = Customer.objects.select_for_update().filter(pk=customer_id).first()
        if customer is None:
            raise NotFound
        sections = {name: _section(label, customer_id) for name, label in SECTIONS.items()}
        former = _former(customer_id)
        names = dict(customer.events.exclude(key="").exclude(fact_id=None).values_list("fact_id", "key"))
    for fact in sections["facts"]:
        fact["former_versions"] = former.get(fact["id"], [])
    for read in sections["reads"]:
        read["fact_keys"] = [names.get(fact_id, "") for fact_id in read["fact_ids"]]
    return {"customer": _plain_row(customer), **sections}


def _section(label: str, customer_id: int) -> list[dict[str, Any]]:
    model = apps.get_model(label)
    rows: QuerySet[Model] = model._default_manager.filter(customer=customer_id).order_by("pk")
    return [_plain_row(row) for row in rows.defer(*_unread(model)).iterator(500)]


def _unread(model: type[Model]) -> list[str]:
    kept = taken_along(model)
    return [field.name for field in model._meta.concrete_fields if field.name not in kept and not field.primary_key]


def _former(customer_id: int) -> Mapping[int, list[dict[str, Any]]]:
    versions: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in FactRevision.objects.filter(fact__customer=customer_id).order_by("pk"):
        versions[row.fact_id].append(_plain_row(row))
    return versions


def _plain_row(row: Model) -> dict[str, Any]:
    plain = {name: _plain(getattr(row, row._meta.get_field(name).attname)) for name in taken_along(type(row))}  # type: ignore[union-attr]
    if "origin" in plain:
        plain["source"] = SOURCES[Origin(plain["origin"])]
    return plain


def _plain(value: Any) -> Any:
    """Times in UTC with their zone, ids as text, lists as lists; JSON's own types stay."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if value is None or isinstance(value, bool | int | dict):
        return value
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return str(value)
