"""Alice and Bob of the page tests: customers with a browser of their own, and what they say to an assistant."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from memory_portal import store
from memory_portal.enums import ActorKind, Origin
from memory_portal.models import Customer, MemoryFact

BACKEND = "django.contrib.auth.backends.ModelBackend"
HTMX = {"HX-Request": "true", "HX-Current-URL": "http://testserver/"}


@dataclass
class Person:
    customer: Customer
    client: Client

    @property
    def actor(self) -> store.Actor:
        return store.Actor(ActorKind.CUSTOMER, str(self.customer.pk))

    @property
    def pk(self) -> int:
        return self.customer.pk

    def says(self, key: str, value: str, *, category: str = "preference", **more: Any) -> store.Outcome:
        """An agent heard it and the job hands it in. `ago` days ago, in the conversation `session`."""
        said_at = timezone.now() - timedelta(days=more.pop("ago", 1))
        draft = store.draft(
            key=key,
            value=value,
            category=category,
            origin=more.pop("origin", Origin.EXTRACTION),
            said_at=said_at,
            now=timezone.now(),
            source_quote=more.pop("quote", f"Well, {value}"),
            session_id=more.pop("session", "session-1"),
            agent=more.pop("agent", "shopping assistant"),
        )
        actor = more.pop("actor", store.Actor(ActorKind.JOB, "1", draft.agent))
        return store.submit(self.pk, [draft], actor, now=said_at)[0]

    def fact(self, key: str, value: str = "Aisle", **more: Any) -> store.Fact:
        outcome = self.says(key, value, **more)
        assert outcome.fact, outcome
        return outcome.fact

    def writes(self, key: str, value: str, category: str = "preference") -> store.Fact:
        now = timezone.now()
        draft = store.draft(
            key=key, value=value, category=category, origin=Origin.CUSTOMER, said_at=now, now=now, topics=()
        )
        fact = store.add(self.pk, draft, self.actor, now=now).fact
        assert fact
        return fact

    def agrees(self) -> None:
        store.give_consent(self.pk, self.actor, now=timezone.now(), channel="portal", language="en")

    def is_read_by(self, agent: str) -> None:
        subject = store.Subject(self.customer.subject_id, self.customer.profile)
        store.context(subject, store.Actor(ActorKind.AGENT, "1", agent), now=timezone.now())

    @property
    def held(self) -> dict[str, str]:
        """What is in the table, by key."""
        return dict(MemoryFact.objects.of(self.customer).values_list("key", "value"))

    def proves(self, minutes_ago: float = 0, method: str = "code") -> None:
        """What the sign-in notes in the session when a code was right, so long ago."""
        proves(self.client, self.customer.user, minutes_ago, method)

    def get(self, path: str, *, htmx: bool = False, **more: Any) -> HttpResponse:
        return self.client.get(path, headers=HTMX | more.pop("headers", {}) if htmx else None, **more)

    def post(self, path: str, data: Any = None, *, htmx: bool = False, **more: Any) -> HttpResponse:
        return self.client.post(path, data or {}, headers=HTMX | more.pop("headers", {}) if htmx else None, **more)

    def sees(self, path: str = "/") -> str:
        """The page's text."""
        response = self.get(path)
        assert response.status_code == 200, response.status_code
        return response.content.decode()


def proves(client: Client, user: Any, minutes_ago: float = 0, method: str = "password") -> None:
    """What a sign-in notes in the session of this browser."""
    session = client.session
    session["account_authentication_methods"] = [
        {"method": method, "at": time.time() - 60 * minutes_ago, "reauthenticated": True}
    ]
    session["account_authentication_methods_user"] = str(user.pk)
    session.save()


def person(name: str, *, profile: str = "grocery", email: str = "") -> Person:
    """A customer whom the host gave an address, signed in."""
    store.submit(store.Subject(name, profile), [], store.Actor(ActorKind.SYSTEM), now=timezone.now())
    customer = store.find(store.Subject(name, profile))
    assert customer
    store.attach_email(customer.pk, email or f"{name}@example.org")
    user = store.user_of_customer(customer.pk)
    assert user
    client = Client()
    client.force_login(user, backend=BACKEND)  # type: ignore[arg-type]
    customer.refresh_from_db()
    return Person(customer, client)
