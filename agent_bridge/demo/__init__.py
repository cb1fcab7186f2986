"""The demo's people and what they said, and a function that hands it over as an agent would.
The rest is the real pipeline.

In: the time. Out: customers, agents' keys and waiting jobs; no fact is written here. Again keeps what is there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from agent_bridge import auth, jobs
from agent_bridge.extraction import Turn
from agent_bridge.models import AgentKey, ExtractionJob
from agent_bridge.schemas import TurnsIn
from memory_portal import store
from memory_portal.enums import ActorKind

FILE = Path(__file__).with_name("conversations.json")

AGENTS = {"airline": "Clearsky Concierge", "grocery": "Fernhill Helper", "retail": "Noor Stylist"}
GROCERY_AGENT = AGENTS["grocery"]
BETWEEN_MESSAGES = timedelta(minutes=1)
TIME_OF_DAY = timedelta(hours=2)
"""How long before now, on its day, a conversation ended."""


@cache
def _data() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    return data


def people() -> list[dict[str, Any]]:
    return list(_data()["customers"])


CUSTOMER_SUBJECT = people()[0]["subject_id"]
CUSTOMER_EMAIL = people()[0]["email"]
OTHER_EMAILS = [person["email"] for person in people()[1:]]


def load(now: datetime) -> dict[str, str]:
    """Make what is missing. Returns the keys made now, by profile: they are shown once and kept nowhere."""
    made: dict[str, str] = {}
    keys: dict[str, AgentKey] = {}
    for profile, name in AGENTS.items():
        row = AgentKey.objects.filter(name=name, profile=profile, revoked_at=None, expires_at__gt=now).first()
        if row is None:
            row, made[profile] = auth.issue(name, profile, auth.SCOPES, now=now)
        keys[profile] = row
    for person in people():
        _introduce(person, now)
    told = list(conversations(now))
    for number, (person, session, turns) in enumerate(told, start=1 - len(told)):
        # One after the other, as they were held: the pipeline reads a customer's conversations in that order.
        _hand_over(person, keys[person["profile"]], session, turns, now + number * timedelta(milliseconds=1))
    return made


def unread() -> bool:
    """Whether any conversation waits or is being read."""
    return ExtractionJob.objects.filter(state__in=jobs.OPEN).exists()


def _introduce(person: dict[str, Any], now: datetime) -> None:
    subject = store.Subject(person["subject_id"], person["profile"])
    if store.find(subject) is not None:
        return
    store.submit(subject, [], store.Actor(ActorKind.SYSTEM), now=now)
    customer = store.find(subject)
    if customer is None:
        raise store.NotFound
    customer.display_name = person["name"]
    customer.email = person["email"]
    customer.region = person["region"]
    customer.save(update_fields=["display_name", "email", "region"])
    if person["consent"]:
        themselves = store.Actor(ActorKind.CUSTOMER, str(customer.pk))
        store.give_consent(customer.pk, themselves, now=now, channel="demo", language=person["language"])


def conversations(now: datetime) -> Iterator[tuple[dict[str, Any], str, list[Turn]]]:
    """Whose it was, the session, and the turns, read as the bridge reads them: tool blocks are gone. Oldest first."""
    by_id = {person["subject_id"]: person for person in people()}
    for told in sorted(_data()["conversations"], key=lambda told: -told["days_ago"]):
        ended = now - timedelta(days=told["days_ago"]) - TIME_OF_DAY
        start = ended - BETWEEN_MESSAGES * len(told["messages"])
        messages = [
            {**message, "said_at": (start + BETWEEN_MESSAGES * number).isoformat()}
            for number, message in enumerate(told["messages"])
        ]
        body = TurnsIn.model_validate({"session_id": told["session_id"], "messages": messages})
        turns = [Turn(role, text, said_at) for role, text, said_at in body.said(now)]
        yield by_id[told["subject_id"]], told["session_id"], turns


def _hand_over(person: dict[str, Any], key: AgentKey, session: str, turns: list[Turn], now: datetime) -> None:
    """Once: a second start finds the job of the first, and does not undo what the customer did since."""
    subject = store.Subject(person["subject_id"], person["profile"])
    customer = store.find(subject)
    if ExtractionJob.objects.filter(customer=customer, source_session_id=store.session_tag(session)).exists():
        return
    try:
        jobs.submit(subject, key, turns, session_id=session, now=now, debounce=timedelta())
    except (store.MemoryDisabled, store.MemoryWriteRejected):
        return  # The policy or this customer has learning off: nothing is handed over then, as for any agent.
