"""Every secret can be replaced while the site runs: old and new processes side by side, and nobody notices.

As docs/operations.md has it: first all processes learn to recognise the new secret, then they use it, then they forget the old one.
Two processes are two sets of settings here, asked in turn. ROTATION_REQUESTS sets how many requests each rotation gets.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from itertools import cycle
from typing import Any

import orjson
import pytest
from allauth.mfa.adapter import get_adapter
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, hotp_value, validate_totp_code, yield_hotp_counters_from_time
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client, override_settings
from django.utils import timezone

from agent_bridge import auth, webhooks
from memory_portal import signing, store
from memory_portal.enums import ActorKind
from memory_portal.models import Proposal, Tombstone
from tests.figures import Figure
from tests.mcp_caller import token_of
from tests.people import Person, person

pytestmark = pytest.mark.django_db

REQUESTS = int(os.environ.get("ROTATION_REQUESTS", "60"))
MANY = [REQUESTS, pytest.param(1_000, marks=pytest.mark.deep)]
OLD, NEW = "an old secret of more than thirty-two letters", "a new secret of more than thirty-two letters"

Process = dict[str, Any]
STEPS = ("recognise", "use", "forget")


def with_fallbacks(name: str) -> list[tuple[Process, Process]]:
    """The pairs of processes that run side by side, step by step."""
    first, knows, uses, last = (
        {name: now, f"{name}_FALLBACKS": also} for now, also in [(OLD, []), (OLD, [NEW]), (NEW, [OLD]), (NEW, [])]
    )
    return [(first, knows), (knows, uses), (uses, last)]


@contextmanager
def running(process: Process) -> Iterator[None]:
    with override_settings(**process):
        yield


@pytest.fixture
def plenty(settings: Any) -> None:
    settings.BRIDGE_CALLS_PER_KEY = settings.BRIDGE_CALLS = 10**7
    settings.BRIDGE_WAITS = 0


def ask(many: int, pair: tuple[Process, Process], requests: list[Callable[[int], int]]) -> int:
    """How many of `many` requests, to both processes in turn, were not answered with success."""
    failed, processes = 0, cycle(pair)
    for number in range(many):
        with running(next(processes)):
            failed += requests[number % len(requests)](number) >= 400
    return failed


@pytest.mark.parametrize("many", MANY)
def test_the_secret_key_changes_and_sessions_tokens_links_and_repetitions_live_on(
    many: int, agent: Any, settings: Any, plenty: None, figure: Figure
) -> None:
    failed = 0
    steps = with_fallbacks("SECRET_KEY")
    settings.SECRET_KEY = OLD
    key, alice = agent(), person("alice")
    bearer = Client(headers={"Authorization": f"Bearer {token_of(key, 'alice')}"})
    written = {"value": "aisle"}
    once = {"Idempotency-Key": "made-before"}
    assert key.put("/bridge/v1/subjects/x/facts/seat", written, "application/json", headers=once).status_code == 201
    requests = [
        lambda n: alice.client.get("/").status_code,
        lambda n: bearer.get("/bridge/v1/subjects/alice/context").status_code,
        lambda n: key.put("/bridge/v1/subjects/x/facts/seat", written, "application/json", headers=once).status_code,
        lambda n: entered(key, f"guest-{n}"),
        lambda n: alice.post("/control/theme", {"theme": "dark"}).status_code,
    ]
    for pair in steps[:2]:
        failed += ask(many // 3, pair, requests)
    # Before the old one is forgotten, what it sealed is sealed anew; sessions and tokens have run out by then.
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, []
    alice = person("alice")
    bearer = Client(headers={"Authorization": f"Bearer {token_of(key, 'alice')}"})
    failed += ask(many - 2 * (many // 3), steps[2], [requests[0], requests[1], requests[3], requests[4]])
    assert failed == 0
    figure(
        "O6",
        f"SECRET_KEY: 0 failed of {many} requests (pages, forms, session tokens, links, repetitions) in {len(steps)} steps",
    )


def entered(key: Client, subject: str) -> int:
    """A link made by whoever answers first, used at whoever answers next."""
    url = key.post("/bridge/v1/portal-links", {"subject_id": subject}, "application/json").json()["url"]
    way = url.partition("//")[2].partition("/")[2]
    return Client().post(f"/{way}").status_code


def test_a_page_of_the_old_process_is_read_by_the_new_one(agent: Any, settings: Any) -> None:
    """A link signed by a process that uses the new key already, opened at one that only recognises it, and the other way round."""
    _, (knows, uses), _ = with_fallbacks("SECRET_KEY")
    for makes, opens in ((knows, uses), (uses, knows)):
        key = agent(auth.LINKS)
        with running(makes):
            url = key.post("/bridge/v1/portal-links", {"subject_id": "guest"}, "application/json").json()["url"]
        with running(opens):
            assert Client().post("/" + url.partition("//")[2].partition("/")[2]).status_code == 302


def test_second_steps_outlive_the_key_that_sealed_them(settings: Any) -> None:
    settings.SECRET_KEY = OLD
    user = get_user_model().objects.create_user("staff")
    secret = "JBSWY3DPEHPK3PXP"
    TOTP.activate(user, secret)
    codes = RecoveryCodes.activate(user).get_unused_codes()
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, [OLD]
    said = StringIO()
    call_command("rotate_secrets", stdout=said)
    assert "2 second steps sealed" in said.getvalue()
    settings.SECRET_KEY_FALLBACKS = []
    step = Authenticator.objects.get(user=user, type=Authenticator.Type.TOTP)
    assert get_adapter().decrypt(step.data["secret"]) == secret
    counter = next(iter(yield_hotp_counters_from_time()))
    assert validate_totp_code(secret, str(hotp_value(secret, counter)).zfill(6)) is not False
    assert step.wrap().instance == step
    again = Authenticator.objects.get(user=user, type=Authenticator.Type.RECOVERY_CODES)
    assert again.wrap().get_unused_codes() == codes


def guest(name: str) -> Person:
    """A customer who never signed in."""
    subject = store.Subject(name, "grocery")
    store.submit(subject, [], store.Actor(ActorKind.SYSTEM), now=timezone.now())
    customer = store.find(subject)
    assert customer
    return Person(customer, Client())


@pytest.mark.parametrize("many", MANY)
def test_the_tombstone_key_changes_and_old_stones_are_still_known(
    many: int, settings: Any, alice: Person, figure: Figure
) -> None:
    settings.TOMBSTONE_KEY = OLD
    stones = failed = 0
    who, (first, second, _) = alice, with_fallbacks("TOMBSTONE_KEY")
    for pair in (first, second, (second[1], second[1])):
        processes = cycle(pair)
        for _ in range(-(-many // 3)):
            stones += 1
            value = f"brand {stones} of oat milk"
            with running(next(processes)):
                store.forget(who.pk, [who.fact("milk", value, ago=2).id], who.actor, now=timezone.now())
            with running(next(processes)):
                failed += who.says("drink", value, ago=1).decision != "refused"
            failed += "drink" in who.held
            who = guest(f"p{stones}")  # one stone each, so that they do not speak for each other
    with running({"TOMBSTONE_KEY": NEW, "TOMBSTONE_KEY_FALLBACKS": [OLD]}):
        assert alice.says("drink", "brand 1 of oat milk", ago=1).decision == "refused"
        alice.writes("drink", "brand 1 of oat milk")
    assert not Tombstone.objects.filter(customer=alice.pk).exists(), "and the customer's own word lifts it"
    assert failed == 0
    figure("O6", f"TOMBSTONE_KEY: 0 of {stones} forgotten facts came back, whichever process forgot or was asked")


def test_a_suggestion_made_under_the_old_tombstone_key_is_not_made_twice(settings: Any, alice: Person) -> None:
    settings.TOMBSTONE_KEY = OLD
    alice.writes("seat", "Aisle")
    alice.says("seat", "Window", ago=0)
    settings.TOMBSTONE_KEY, settings.TOMBSTONE_KEY_FALLBACKS = NEW, [OLD]
    alice.says("seat", "Window", ago=0)
    assert Proposal.objects.count() == 1
    alice.writes("seat", "Window")
    assert Proposal.objects.count() == 0


@pytest.mark.parametrize("many", MANY)
def test_the_pepper_changes_and_keys_and_webhooks_live_on(
    many: int, settings: Any, plenty: None, figure: Figure
) -> None:
    old, both = {"AGENT_KEY_PEPPER": OLD}, {"AGENT_KEY_PEPPER": f"2:{NEW},1:{OLD}"}
    settings.AGENT_KEY_PEPPER = OLD
    now = timezone.now()
    row, key = auth.issue("agent", "airline", auth.SCOPES, now=now)
    hook, secret = webhooks.create("https://host.example.com/hook", "agent", "airline", now=now)
    client = Client(headers={"Authorization": f"Bearer {key}"})
    requests = [lambda n: client.get("/bridge/v1/subjects/alice/context").status_code]
    failed = ask(many // 2, (old, both), requests)
    with running(both):
        assert webhooks.secret(hook) == secret
        successor, new = auth.rotate(row, now=now)
        hook2, _ = webhooks.create("https://host.example.com/other", "agent", "airline", now=now)
        assert (successor.pepper_version, hook2.pepper_version) == (2, 2)
        said = StringIO()
        call_command("rotate_secrets", stdout=said)
        assert "1 agent keys under version 1" in said.getvalue()
        assert "1 webhooks under version 2" in said.getvalue()
    client = Client(headers={"Authorization": f"Bearer {new}"})
    failed += ask(many - many // 2, (both, {"AGENT_KEY_PEPPER": f"2:{NEW}"}), requests)
    assert failed == 0
    figure("O6", f"AGENT_KEY_PEPPER: 0 failed of {many} calls; webhooks keep their secret")


@pytest.mark.parametrize("many", MANY)
def test_the_signing_key_changes_and_old_exports_are_still_genuine(many: int, figure: Figure, client: Client) -> None:
    memory = {"facts": [{"key": "seat", "value": "aisle"}]}
    failed = 0
    steps = with_fallbacks("EXPORT_SIGNING_KEY")
    for pair in steps[1:2]:
        makers, readers = cycle(pair), cycle(reversed(pair))
        for _ in range(many):
            with running(next(makers)):
                file = orjson.loads(orjson.dumps(signing.signed(memory)))
            with running(next(readers)):
                failed += signing.checked(file) is not signing.Verdict.GENUINE
    with running(steps[0][0]):
        file, public = signing.signed(memory), signing.public_key()
    with running(steps[1][1]):
        assert signing.checked(file) is signing.Verdict.GENUINE
        assert signing.checked(file | {"memory": {"facts": []}}) is signing.Verdict.CHANGED
        told = client.get("/.well-known/memory-portal-key").json()
        assert told["key_id"] != public.id
        assert told["former"] == [{"key_id": public.id, "public_key": public.text}]
    with running(steps[2][1]):
        assert signing.checked(file) is signing.Verdict.FOREIGN
    assert failed == 0
    figure("O6", f"EXPORT_SIGNING_KEY: 0 of {many} exports not recognised, whichever process signed or read")
