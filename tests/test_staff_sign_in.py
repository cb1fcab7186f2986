"""How staff come in: a second factor before any page, a code once, strong passwords, and a fresh proof before what counts."""

from __future__ import annotations

from typing import Any

import pytest
from allauth.mfa.totp.internal.auth import TOTP
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import CommonPasswordValidator, validate_password
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.test import Client
from django.urls import reverse

from agent_bridge.models import AgentKey, Webhook
from memory_portal.models import Customer, FactEvent
from tests.figures import Figure
from tests.office import OFFICER, OPERATOR, PASSWORD, browser_of, member
from tests.people import Person, proves
from tests.test_second_step import code_for
from tests.test_staff_roles import addresses, one_of_each, path_of


@pytest.fixture(autouse=True)
def fresh_limits() -> None:
    cache.clear()


@pytest.fixture
def rows(alice: Person) -> dict[str, list[Any]]:
    return one_of_each(alice)


LONG_AND_COMMON = sorted(word for word in CommonPasswordValidator().passwords if len(word) >= 12)[:3]


def with_an_app(user: User) -> str:
    """The secret of the app this user has from now on."""
    secret = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
    TOTP.activate(user, secret)
    return secret


def test_without_the_second_factor_no_address_of_the_admin_shows_a_page(
    rows: dict[str, list[Any]],
    settings: Any,
    figure: Figure,
) -> None:
    settings.STAFF_MFA = True
    boss = get_user_model().objects.create_superuser("boss", "boss@example.org", PASSWORD)
    client = browser_of(boss)
    names = [name for name in dict.fromkeys(addresses()) if name not in ("login", "logout")]
    for name in names:
        for answer in (client.get(path_of(name, rows)), client.post(path_of(name, rows), {"purpose": "complaint"})):
            assert answer.status_code == 302, name
            assert answer.headers["Location"].startswith("/admin/login/?next="), name
    assert client.get("/admin/login/").headers["Location"].startswith("/admin/second-step/")
    assert not FactEvent.objects.filter(actor_kind="staff").exists()
    figure("W11", f"{len(names)} addresses of the admin, GET and POST, with a password and no second factor: 0 pages")


def test_a_code_of_the_app_is_taken_once(db: None, settings: Any, figure: Figure) -> None:
    settings.STAFF_MFA = True
    user = member(OFFICER)
    secret = with_an_app(user)
    code = code_for(secret)
    first = browser_of(user, fresh=False)
    assert first.post("/admin/second-step/", {"code": code}).status_code == 302
    again = 0
    for _ in range(50):
        for place in ("/admin/second-step/", reverse("admin:confirm")):
            client = first if place == reverse("admin:confirm") else browser_of(user, fresh=False)
            answer = client.post(place, {"code": code, "secret": code})
            again += answer.status_code == 302 and "/login/" not in answer.headers["Location"]
    assert again == 0
    assert first.post(reverse("admin:confirm"), {"secret": code_for(secret, 1)}).status_code in (302, 429)
    figure("W11", f"a used code tried 100 times at the sign-in and the fresh proof: {again} taken")


@pytest.mark.parametrize(
    ("password", "why"),
    [
        ("elevenchars", "too short"),
        ("x9" * 65, "longer than 128"),
        *((common, "on the list of common ones") for common in LONG_AND_COMMON),
        ("officer-officer", "like the name"),
    ],
)
def test_weak_passwords_are_refused(password: str, why: str) -> None:
    with pytest.raises(ValidationError):
        validate_password(password, User(username="officer-officer"))


def test_passwords_of_twelve_to_128_characters_are_taken_and_kept_with_argon2id(db: None, figure: Figure) -> None:
    refused = 0
    for length in range(1, 140):
        try:
            validate_password(("tR7-" * 40)[:length])
        except ValidationError:
            refused += 1
    assert refused == 11 + 11
    assert len(LONG_AND_COMMON) == 3
    user = get_user_model().objects.create_user("long", password="ü" * 128)
    assert user.password.startswith("argon2$argon2id$")
    assert user.check_password("ü" * 128)
    assert not user.check_password("ü" * 127)
    figure(
        "W11",
        "passwords of 12 to 128 characters taken, 1 to 11 and 129 and more refused, common ones too; kept with Argon2id",
    )


# --- a fresh proof ----------------------------------------------------------------------------------------------------

STEP_UP = {
    OFFICER: ["memory_portal_reveal", "memory_portal_correct", "memory_portal_forget", "memory_portal_erase"],
    OPERATOR: ["agent_bridge_agentkey_add", "agent_bridge_webhook_add"],
}
DATA = {
    "memory_portal_reveal": {"purpose": "complaint"},
    "memory_portal_correct": {"purpose": "complaint", "value": "Light", "version": 1},
    "memory_portal_forget": {"purpose": "complaint"},
    "memory_portal_erase": {"reason": "customer_asked", "sure": "alice"},
    "agent_bridge_agentkey_add": {"name": "new", "profile": "grocery", "scopes": ["facts:read"], "days": 30},
    "agent_bridge_webhook_add": {"url": "https://example.org/", "agent": "helper", "profile": "grocery"},
}


def test_what_counts_asks_for_a_proof_of_the_last_five_minutes(
    rows: dict[str, list[Any]],
    alice: Person,
    figure: Figure,
) -> None:
    before = (
        alice.held,
        AgentKey.objects.count(),
        Webhook.objects.count(),
        FactEvent.objects.count(),
        Customer.objects.count(),
    )
    passed = tried = 0
    for role, names in STEP_UP.items():
        user = member(role)
        for name in names:
            path = path_of(name, rows)
            for minutes, method in ((5.1, "password"), (60, "password"), (0, "code"), (0, "mfa")):
                client = browser_of(user, fresh=False)
                proves(client, user, minutes, method)
                for answer in (client.get(path), client.post(path, DATA[name])):
                    tried += 1
                    passed += answer.headers.get("Location") != f"/admin/confirm/?next={path.replace('/', '%2F')}"
    assert passed == 0
    assert before == (
        alice.held,
        AgentKey.objects.count(),
        Webhook.objects.count(),
        FactEvent.objects.count(),
        Customer.objects.count(),
    )
    figure(
        "W12",
        f"admin: {sum(map(len, STEP_UP.values()))} routes (look, correct, forget, erase, new key, new webhook), {tried} calls:"
        f" {passed} pass",
    )


def test_the_proof_is_the_password_where_there_is_no_app_and_leads_back(alice: Person) -> None:
    fact = alice.fact("coffee", "Dark")
    there = reverse("admin:memory_portal_reveal", args=[alice.pk, fact.id])
    user = member(OFFICER)
    client = browser_of(user, fresh=False)
    confirm = client.get(there).headers["Location"]
    assert "Password" in client.get(confirm).content.decode()
    assert client.post(confirm, {"secret": "wrong", "next": there}).status_code == 422
    before = client.session.session_key
    assert client.post(confirm, {"secret": PASSWORD, "next": there}).headers["Location"] == there
    assert client.session.session_key != before, "a session copied before is worth nothing"
    assert client.get(there).status_code == 200
    assert (
        client.post(reverse("admin:confirm"), {"secret": PASSWORD, "next": "//evil.example"}).headers["Location"]
        == "/admin/"
    )


def test_whoever_has_an_app_proves_it_by_the_app(alice: Person) -> None:
    user = member(OFFICER)
    secret = with_an_app(user)
    client = browser_of(user)
    there = reverse("admin:memory_portal_erase", args=[alice.pk])
    assert client.get(there).status_code == 302, "a password is not enough any more"
    assert client.post(reverse("admin:confirm"), {"secret": PASSWORD}).status_code == 422
    assert (
        client.post(reverse("admin:confirm"), {"secret": code_for(secret), "next": there}).headers["Location"] == there
    )
    assert client.get(there).status_code == 200


def test_where_a_second_step_is_asked_of_staff_no_password_stands_in_for_it(db: None, settings: Any) -> None:
    from memory_portal.staff.proof import proves as shown

    user = member(OFFICER)
    assert shown(user, PASSWORD)
    settings.STAFF_MFA = True
    assert not shown(user, PASSWORD)


def test_proofs_are_not_guessed(db: None, settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    client = browser_of(member(OFFICER), fresh=False)
    for _ in range(10):
        assert client.post(reverse("admin:confirm"), {"secret": "wrong"}).status_code == 422
    assert client.post(reverse("admin:confirm"), {"secret": PASSWORD}).status_code == 429


def test_a_sign_in_by_password_counts_as_a_proof_for_its_first_minutes(alice: Person) -> None:
    member(OFFICER, "officer")
    client = Client()
    assert client.post("/admin/login/?next=/admin/", {"username": "officer", "password": PASSWORD}).status_code == 302
    assert client.get(reverse("admin:memory_portal_erase", args=[alice.pk])).status_code == 200
