"""Coming in, staying in and getting out: a session is new at each proof, dies everywhere it should and ends by itself; what is
hard to undo asks for a fresh proof."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.core import mail
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from agent_bridge import tasks
from memory_portal import handoff, store
from tests.addresses import addresses, furnished
from tests.figures import Figure
from tests.people import Person
from tests.test_second_step import PASSWORD, switched_on

pytestmark = pytest.mark.django_db

Agent = Callable[..., Client]


@pytest.fixture(autouse=True)
def fresh_limits() -> None:
    cache.clear()


def key(client: Client) -> str:
    return str(client.session.session_key)


def browser(session: str, **more: Any) -> Client:
    """Another browser that holds this session's cookie: a thief's, or the one it was planted in."""
    client = Client(**more)
    client.cookies["sessionid"] = session
    return client


def signed_in(session: str) -> bool:
    return browser(session).get("/").status_code == 200


def code_in_mail() -> str:
    return re.findall(r"\d{6}", str(mail.outbox[-1].subject))[0]


# --- W5: a new id at each proof, and the end of old ones ----------------------------------------------------------------


def by_code(who: Person, client: Client) -> None:
    client.post("/sign-in/", {"email": who.customer.email})
    client.post("/sign-in/code/", {"code": code_in_mail()})


def by_link(who: Person, client: Client) -> None:
    subject = store.Subject(who.customer.subject_id, who.customer.profile)
    client.post(f"/enter/{handoff.offer(subject, now=timezone.now())[0]}")


def by_password(who: Person, client: Client) -> None:
    get_user_model().objects.get_or_create(username="boss", defaults={"is_staff": True, "is_superuser": True})
    boss = get_user_model().objects.get(username="boss")
    boss.set_password(PASSWORD)
    boss.save()
    assert client.post("/admin/login/?next=/admin/", {"username": "boss", "password": PASSWORD}).status_code == 302


def by_fresh_proof(who: Person, client: Client) -> None:
    by_code(who, client)
    client.post("/confirm/", {"next": "/take/"})
    client.post("/confirm/code/?next=/take/", {"code": code_in_mail()})


PROOFS = {by_code: 15, by_link: 15, by_password: 5, by_fresh_proof: 5}


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.__name__)
def test_a_session_planted_before_a_proof_is_worth_nothing_after_it(
    alice: Person, proof: Callable[[Person, Client], None], figure: Figure
) -> None:
    worked = 0
    for _ in range(PROOFS[proof]):
        cache.clear()
        planted = Client()
        planted.get("/sign-in/")
        session = planted.session
        session["planted"] = "yes"
        session.save()
        victim = browser(key(planted))
        proof(alice, victim)
        assert key(victim) != key(planted)
        assert victim.get("/admin/" if proof is by_password else "/").status_code == 200
        worked += signed_in(session.session_key or "") + (
            browser(session.session_key or "").get("/admin/").status_code == 200
        )
    assert worked == 0
    figure("W5", f"{PROOFS[proof]} sessions planted before {proof.__name__.replace('_', ' ')}: 0 work after it")


def test_a_copied_session_dies_at_sign_out_and_at_the_next_proof(alice: Person, figure: Figure) -> None:
    after: list[bool] = []
    for _ in range(85):
        client = Client()
        by_link(alice, client)
        copied = key(client)
        client.post(reverse("account_logout"))
        after.append(signed_in(copied))
    for _ in range(15):
        cache.clear()
        client = Client()
        by_link(alice, client)
        copied = key(client)
        client.post("/confirm/", {"next": "/take/"})
        client.post("/confirm/code/?next=/take/", {"code": code_in_mail()})
        after.append(signed_in(copied))
    assert after == [False] * 100
    figure("W5", "100 copied cookies after sign-out or a fresh proof: 0 work")


def others(who: Person, count: int) -> list[Client]:
    clients = [Client() for _ in range(count)]
    for client in clients:
        by_link(who, client)
    return clients


def test_the_sessions_of_other_browsers_end_when_asked_and_with_each_change_of_the_second_step(
    alice: Person, bob: Person, figure: Figure
) -> None:
    before = others(alice, 34)
    alice.post(reverse("end_elsewhere"))
    assert "Signed out everywhere else." in alice.sees(reverse("mfa_index"))
    between = others(alice, 33)
    switched_on(alice)
    after = []
    for client in others(alice, 33):
        client.get("/")
        after.append(client)
    alice.proves(method="mfa")
    alice.post(reverse("mfa_deactivate_totp"))
    assert [client.get("/").status_code for client in [*before, *between, *after]] == [302] * 100
    assert alice.get("/").status_code == 200, "this browser stays"
    assert bob.get("/").status_code == 200, "and so do other people"
    figure("W5", "100 sessions on other devices, ended by hand or by a change of the second step: 0 work")


def test_a_new_password_of_staff_ends_their_other_sessions(alice: Person) -> None:
    here, there = Client(), Client()
    by_password(alice, here)
    there.post("/admin/login/?next=/admin/", {"username": "boss", "password": PASSWORD})
    new = "another long password of staff"
    here.post("/admin/password_change/", {"old_password": PASSWORD, "new_password1": new, "new_password2": new})
    assert here.get("/admin/").status_code == 200
    assert there.get("/admin/").status_code == 302


def test_who_is_switched_off_or_erased_is_out_at_once(alice: Person, bob: Person) -> None:
    get_user_model().objects.filter(pk=alice.customer.user_id).update(is_active=False)
    assert alice.get("/").status_code == 302
    store.erase(bob.pk, bob.actor, now=timezone.now())
    assert bob.get("/").status_code in (302, 403)


@pytest.mark.parametrize("who", ["customer", "staff"])
@pytest.mark.parametrize("bound", ["seen", "began"])
def test_a_sign_in_ends_unused_and_at_last_in_any_case(
    alice: Person, staff: Client, who: str, bound: str, figure: Figure
) -> None:
    client, page = {"customer": (alice.client, "/"), "staff": (staff, "/admin/")}[who]
    idle, whole = settings.SESSION_LIMITS[who]
    limit = idle if bound == "seen" else whole

    def shifted(seconds: float) -> int:
        session = client.session
        session["seen"] = session["began"] = time.time()
        session[bound] = time.time() - limit.total_seconds() + seconds
        session.save()
        return int(client.get(page).status_code)

    assert shifted(60) == 200
    copied = key(client)
    assert shifted(-1) == 302
    assert browser(copied).get(page).status_code == 302, "and not only here"
    figure("W5", f"{who}: out after {idle} unused, after {whole} in any case")


def test_using_it_keeps_it_and_is_noted_now_and_then_only(alice: Person) -> None:
    idle, _ = settings.SESSION_LIMITS["customer"]
    session = alice.client.session
    session["seen"] = time.time() - idle.total_seconds() / 2
    session.save()
    alice.get("/")
    noted = alice.client.session["seen"]
    assert time.time() - noted < 60
    alice.get("/")
    assert alice.client.session["seen"] == noted


def test_a_session_id_has_the_bits_it_needs(alice: Person) -> None:
    found = {key(client) for client in others(alice, 20)}
    assert len(found) == 20
    assert all(re.fullmatch(r"[a-z0-9]{32}", session) for session in found), "165 bits"


# --- W12: a fresh proof -------------------------------------------------------------------------------------------------

FRESH = {"take", "clear", "close", "mfa_activate_totp", "mfa_deactivate_totp", "mfa_view_recovery_codes",
         "mfa_generate_recovery_codes"}  # fmt: skip
"""What customers do that takes everything along or away, or changes how they come in."""


def stale_ways(who: Person) -> dict[str, Callable[[], None]]:
    return {
        "never": lambda: who.proves(minutes_ago=1e6),
        "six minutes ago": lambda: who.proves(minutes_ago=6),
        "by the host's link": lambda: who.proves(method="handoff"),
        "by the company": lambda: who.proves(method="socialaccount"),
        "another's": lambda: another(who),
    }


def another(who: Person) -> None:
    who.proves()
    session = who.client.session
    session["account_authentication_methods_user"] = "0"
    session.save()


def test_what_is_hard_to_undo_asks_again(alice: Person, figure: Figure) -> None:
    alice.fact("coffee", "Dark roast")
    tried = 0
    for why, make in stale_ways(alice).items():
        for name in sorted(FRESH):
            for method in ("GET", "POST"):
                make()
                data = {"sure": "forget everything", "form": "json"} if method == "POST" else {}
                answer = (
                    alice.client.generic(method, reverse(name)) if method == "GET" else alice.post(reverse(name), data)
                )
                assert answer.status_code == 302, (why, name, method)
                assert answer.headers["Location"].startswith("/confirm/?next="), (why, name, method)
                tried += 1
    assert alice.held == {"coffee": "Dark roast"}
    alice.proves()
    for name in sorted(FRESH - {"mfa_deactivate_totp", "mfa_view_recovery_codes", "mfa_generate_recovery_codes"}):
        assert alice.get(reverse(name)).status_code == 200, name
    figure("W12", f"{tried} tries of {2 * len(FRESH)} routes with a stale or foreign proof: 0 pass")


STAFF_FRESH = {"memory_portal_reveal", "memory_portal_correct", "memory_portal_forget", "memory_portal_erase",
               "agent_bridge_agentkey_add", "agent_bridge_webhook_add"}  # fmt: skip
"""What staff do that shows a value, makes a secret or cannot be taken back."""


def test_staff_are_asked_again_too(alice: Person, staff: Client, figure: Figure) -> None:
    there = {a.name: a.path for a in addresses(furnished(alice)) if a.name in STAFF_FRESH}
    assert set(there) == STAFF_FRESH
    held, tried = alice.held, 0
    for minutes in (6, 600):
        for name, path in there.items():
            for method in ("GET", "POST"):
                session = staff.session
                session["account_authentication_methods"] = [
                    {"method": how, "at": time.time() - 60 * minutes} for how in ("password", "mfa")
                ]
                session.save()
                answer = staff.generic(method, path)
                assert answer.status_code == 302, (name, method)
                assert answer.headers["Location"].startswith("/admin/confirm/?next="), (name, method)
                tried += 1
    assert alice.held == held
    figure("W12", f"{tried} tries of {2 * len(STAFF_FRESH)} routes of staff with a stale proof: 0 pass")


def test_sessions_that_are_over_leave_no_row(alice: Person, bob: Person) -> None:
    ended = bob.client.session
    ended["left"] = "here"
    ended.set_expiry(timezone.now() - timedelta(seconds=1))
    ended.save()
    tasks.retention()
    assert not Session.objects.filter(pk=ended.session_key).exists()
    assert alice.get("/").status_code == 200


def test_an_operator_signs_one_person_or_everybody_out(alice: Person, bob: Person, staff: Client) -> None:
    call_command("end_sessions", customer="alice", profile="grocery", stdout=StringIO())
    assert [client.get("/").status_code for client in (alice.client, bob.client)] == [302, 200]
    call_command("end_sessions", staff="staff", stdout=StringIO())
    assert staff.get("/admin/").status_code == 302
    call_command("end_sessions", all=True, stdout=StringIO())
    assert bob.get("/").status_code == 302
    for nobody in ({"customer": "nobody"}, {"staff": "alice"}):
        with pytest.raises(CommandError):
            call_command("end_sessions", **nobody)


def test_each_sign_in_and_each_refusal_leaves_a_line_without_a_name(alice: Person, caplog: Any) -> None:
    client = Client()
    by_code(alice, client)
    client.post(reverse("account_logout"))
    cache.clear()
    client.post("/sign-in/", {"email": "alice@example.org"})
    client.post("/sign-in/code/", {"code": "abcdef"})
    Client().post("/admin/login/", {"username": "alice", "password": "wrong"})
    said = [record.getMessage() for record in caplog.records if record.name == "memory_portal.sessions"]
    for event in ("signed_in", "proof_given", "mailed_code", "password"):
        assert any(event in line for line in said), (event, said)
    assert "alice" not in "".join(said)
