"""Every address of the site as it can be asked for, filled with things that are there. One whose blanks nobody can fill fails.

`furnished` makes one row of everything an address may name; `addresses` walks the resolver, so that a new route is in the list
by itself; `production` puts the settings of production over those of the tests.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from django.apps import apps
from django.contrib.contenttypes.models import ContentType
from django.test import override_settings
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from memory_portal import handoff, settings, store
from memory_portal.models import MemoryFact, Proposal
from tests.people import Person
from tests.test_settings import SAFE

HOST = SAFE["ALLOWED_HOSTS"]
OF_A_ROW = r"<(?:\w+:)?(?:object_id|pk|id)>"


@dataclass(frozen=True)
class Address:
    name: str
    path: str
    csrf_exempt: bool

    @property
    def of_bridge(self) -> bool:
        return self.path.startswith("/bridge/")

    @property
    def of_staff(self) -> bool:
        return self.path.startswith("/admin/")

    @property
    def mainly_for(self) -> str:
        return "agent" if self.of_bridge else "staff" if self.of_staff else "customer"


def patterns(within: Any = None, before: str = "") -> Iterator[tuple[str, URLPattern]]:
    for pattern in within or get_resolver().url_patterns:
        route = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from patterns(pattern.url_patterns, route)
        else:
            yield route, pattern


def addresses(who: Person) -> list[Address]:
    blanks = blanks_of(who)
    return [
        Address(str(pattern.name), "/" + filled(route, blanks), getattr(pattern.callback, "csrf_exempt", False))
        for route, pattern in patterns()
    ]


def filled(route: str, blanks: dict[str, str]) -> str:
    """The route with a thing that is there in each blank. Fails for a blank that `blanks_of` does not know."""
    table = re.match(r"admin/(\w+)/(\w+)/", route)
    if table and re.search(OF_A_ROW, route):
        first = apps.get_model(table[1], table[2])._base_manager.order_by("pk").first()
        route = re.sub(OF_A_ROW, str(first.pk if first else 1), route)
    route = re.sub(r"\^?\(\?P<(\w+)>[^)]*\)\$?", r"<\1>", route)
    if route.startswith("enter/"):
        route = route.replace("<str:token>", "<door>")
    return re.sub(r"<(?:\w+:)?(\w+)>", lambda blank: blanks[blank[1]], route)


def blanks_of(who: Person) -> dict[str, str]:
    now = timezone.now()
    nothing = "0c9a9f0e-5f0b-4a52-9a6a-d1d6f1f6f0aa"
    subject = store.Subject(who.customer.subject_id, who.customer.profile)
    return {
        "fact_id": str(MemoryFact.objects.of(who.customer).latest("pk").pk),
        "proposal_id": str(Proposal.objects.filter(customer=who.customer).latest("pk").pk),
        "token": store.issue_ticket(who.pk, "export", now=now, detail="json"),
        "door": handoff.offer(subject, now=now)[0],
        "customer_id": str(who.pk),
        "provider_id": "company",
        "object_id": str(who.pk),
        "content_type_id": str(ContentType.objects.latest("pk").pk),
        "app_label": "auth",
        "step": "acknowledge",
        "url": "no/such/page",
        "subject_id": who.customer.subject_id,
        "key": "coffee",
        "job_id": nothing,
        "import_id": nothing,
    }


def furnished(who: Person) -> Person:
    """A fact, a suggestion, a stone, a consent, a read: something behind every address."""
    who.agrees()
    who.fact("tea", "Green tea")
    who.post(f"/facts/{who.fact('bread', 'Sourdough').id}/forget")
    who.writes("coffee", "Dark roast")
    assert who.says("coffee", "Light roast", ago=0).proposal_id
    who.is_read_by("shopping assistant")
    who.client.get("/")
    return who


@contextmanager
def production() -> Iterator[str]:
    """What the settings file says in production, for all but database, cache, files and secrets. Gives the site's host."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SAFE.items():
            patch.setenv(name, value)
        spec = importlib.util.spec_from_file_location("settings_of_production", settings.__file__)
        assert spec
        assert spec.loader
        there = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(there)
    kept = {"DATABASES", "CACHES", "STORAGES", "STATIC_ROOT", "TEMPLATES", "EMAIL_BACKEND", "VAR", "LOGGING"} | {
        name for name in SAFE if name.endswith(("_KEY", "_PEPPER"))
    }
    said = {
        name: getattr(there, name)
        for name in dir(there)
        if name.isupper() and name not in kept and getattr(there, name) != getattr(settings, name, None)
    }
    with override_settings(**said):
        yield HOST
