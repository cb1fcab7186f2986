"""Two-step sign-in: offered to customers, asked of staff; a code opens once; nothing of the admin before it."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value, yield_hotp_counters_from_time
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.core import mail
from django.core.cache import cache
from django.core.cache.backends.db import DatabaseCache
from django.test import Client
from django.urls import reverse

from tests.people import Person

PASSWORD = "a long password of staff"


@pytest.fixture(autouse=True)
def fresh_limits() -> None:
    cache.clear()


def code_for(secret: str, later: int = 0) -> str:
    """What the app shows `later` times thirty seconds from now."""
    counters = sorted(yield_hotp_counters_from_time())
    return format_hotp_value(hotp_value(secret, counters[len(counters) // 2] + later))


def secret_on(page: str) -> str:
    found = re.search(r'<code class="secret" dir="ltr">(\w+)</code>', page)
    assert found, page
    return found[1]


def switched_on(who: Person) -> str:
    who.proves()
    secret = secret_on(who.sees(reverse("mfa_activate_totp")))
    answer = who.post(reverse("mfa_activate_totp"), {"code": code_for(secret)})
    assert answer.headers["Location"] == reverse("mfa_view_recovery_codes")
    return secret


def signs_in(who: Person) -> tuple[Client, Any]:
    client = Client()
    client.post("/sign-in/", {"email": who.customer.email})
    code = re.findall(r"\d{6}", str(mail.outbox[-1].subject))[0]
    return client, client.post("/sign-in/code/", {"code": code})


def test_a_customer_switches_it_on_and_is_asked_at_the_next_sign_in(alice: Person) -> None:
    assert "It is off" in alice.sees(reverse("mfa_index"))
    secret = switched_on(alice)
    assert "It is on" in alice.sees(reverse("mfa_index"))
    client, answer = signs_in(alice)
    assert answer.headers["Location"] == reverse("mfa_authenticate")
    assert client.get("/").status_code == 302, "the code by mail alone is not enough"
    wrong = client.post(reverse("mfa_authenticate"), {"code": "000000"})
    assert "That code is not right" in wrong.content.decode()
    assert client.post(reverse("mfa_authenticate"), {"code": code_for(secret, 1)}).headers["Location"] == "/"
    assert client.get("/").status_code == 200


def test_a_code_opens_once_and_the_one_that_switched_it_on_opens_nothing(alice: Person) -> None:
    secret = switched_on(alice)
    used, fresh = code_for(secret), code_for(secret, 1)
    client, _ = signs_in(alice)
    assert client.post(reverse("mfa_authenticate"), {"code": used}).status_code == 200
    assert client.post(reverse("mfa_authenticate"), {"code": fresh}).status_code == 302
    other, _ = signs_in(alice)
    assert other.post(reverse("mfa_authenticate"), {"code": fresh}).status_code == 200
    assert other.get("/").status_code == 302


def test_a_spare_code_opens_once(alice: Person) -> None:
    switched_on(alice)
    spare = re.findall(r"<li><code>(\w+)</code>", alice.sees(reverse("mfa_view_recovery_codes")))
    assert len(spare) == 10
    client, _ = signs_in(alice)
    assert client.post(reverse("mfa_authenticate"), {"code": spare[0]}).status_code == 302
    other, _ = signs_in(alice)
    assert other.post(reverse("mfa_authenticate"), {"code": spare[0]}).status_code == 200
    assert "9 are left" in alice.sees(reverse("mfa_index"))


def test_with_it_on_a_code_by_mail_is_no_fresh_proof_any_more(alice: Person) -> None:
    secret = switched_on(alice)
    alice.proves(method="code")
    there = alice.get("/take/").headers["Location"]
    assert alice.get(there).headers["Location"] == "/confirm/second-step/?next=%2Ftake%2F"
    alice.post("/confirm/", {"next": "/take/"})
    assert mail.outbox == []
    assert "The second step" in alice.sees("/confirm/second-step/?next=/take/")
    before = alice.client.session.session_key
    answer = alice.post("/confirm/second-step/?next=/take/", {"code": code_for(secret, 1)})
    assert answer.headers["Location"] == "/take/"
    assert alice.client.session.session_key != before
    assert alice.get("/take/").status_code == 200


STEP_UP = ["mfa_activate_totp", "mfa_deactivate_totp", "mfa_view_recovery_codes", "mfa_generate_recovery_codes"]


@pytest.mark.parametrize("name", STEP_UP)
def test_changing_it_needs_a_fresh_proof(alice: Person, name: str) -> None:
    switched_on(alice)
    alice.proves(minutes_ago=6, method="mfa")
    for answer in (alice.get(reverse(name)), alice.post(reverse(name))):
        assert answer.headers["Location"].startswith("/confirm/?next=")
    assert Client().get(reverse(name)).headers["Location"].startswith("/sign-in/")


def test_switching_it_off_ends_the_spare_codes_too(alice: Person) -> None:
    switched_on(alice)
    alice.proves(method="mfa")
    assert "Leave it on" in alice.sees(reverse("mfa_deactivate_totp"))
    alice.post(reverse("mfa_deactivate_totp"))
    assert not Authenticator.objects.exists()
    _, answer = signs_in(alice)
    assert answer.headers["Location"] == "/"


def test_new_spare_codes_end_the_old_ones(alice: Person) -> None:
    switched_on(alice)
    alice.proves(method="mfa")
    old = alice.sees(reverse("mfa_view_recovery_codes"))
    assert "The old ones end at once." in unescape(alice.sees(reverse("mfa_generate_recovery_codes")))
    alice.post(reverse("mfa_generate_recovery_codes"))
    new = alice.sees(reverse("mfa_view_recovery_codes"))
    assert set(re.findall(r"<code>(\w+)</code>", old)).isdisjoint(re.findall(r"<code>(\w+)</code>", new))


def test_the_secret_is_kept_encrypted(alice: Person) -> None:
    secret = switched_on(alice)
    assert secret not in str(list(Authenticator.objects.values()))


# --- staff ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def asked(settings: Any) -> None:
    settings.STAFF_MFA = True


@pytest.fixture
def boss(db: None) -> Client:
    """A member of staff who has given the password, and nothing else."""
    get_user_model().objects.create_superuser("boss", "boss@example.org", PASSWORD)
    client = Client()
    client.post("/admin/login/?next=/admin/", {"username": "boss", "password": PASSWORD})
    return client


def admin_pages() -> list[str]:
    pages = [reverse("admin:index"), reverse("admin:password_change"), reverse("admin:jsi18n")]
    pages += [reverse("admin:app_list", args=[label]) for label in ("memory_portal", "agent_bridge", "auth")]
    for model in admin.site._registry:
        meta = model._meta
        pages += [reverse(f"admin:{meta.app_label}_{meta.model_name}_{page}") for page in ("changelist", "add")]
    return pages


def test_no_page_of_the_admin_opens_without_the_second_step(asked: None, boss: Client) -> None:
    for page in admin_pages():
        answer = boss.get(page)
        assert answer.status_code == 302, page
        assert answer.headers["Location"].startswith("/admin/login/?next="), page
    assert boss.get("/admin/login/?next=/admin/").headers["Location"] == "/admin/second-step/?next=%2Fadmin%2F"


def test_staff_set_it_up_at_the_first_sign_in_and_are_asked_from_then_on(asked: None, boss: Client) -> None:
    step = "/admin/second-step/?next=/admin/"
    secret = secret_on(boss.get(step).content.decode())
    assert boss.post(step, {"code": "000000"}).status_code == 200
    assert boss.get("/admin/").status_code == 302
    done = boss.post(step, {"code": code_for(secret), "next": "/admin/"}).content.decode()
    assert len(re.findall(r"<li><code>", done)) == 10
    assert boss.get("/admin/").status_code == 200
    again = Client()
    again.post("/admin/login/", {"username": "boss", "password": PASSWORD})
    assert again.get("/admin/").status_code == 302
    page = again.get(step).content.decode()
    assert secret not in page
    assert again.post(step, {"code": code_for(secret)}).status_code == 200, "the code of the other browser is used up"
    assert again.post(step, {"code": code_for(secret, 1), "next": "//evil.example"}).headers["Location"] == "/admin/"
    assert again.get("/admin/").status_code == 200


def test_in_development_the_password_is_enough(boss: Client) -> None:
    assert boss.get("/admin/").status_code == 200


def test_customers_and_strangers_find_no_second_step_of_staff(asked: None, alice: Person) -> None:
    assert alice.get("/admin/second-step/").status_code == 404
    assert Client().get("/admin/second-step/").status_code == 404
    assert alice.get("/admin/").status_code == 302


def test_passwords_of_staff_are_not_guessed(db: None) -> None:
    get_user_model().objects.create_superuser("boss", "boss@example.org", PASSWORD)
    for _ in range(10):
        assert Client().post("/admin/login/", {"username": "boss", "password": "wrong"}).status_code == 200
    assert Client().post("/admin/login/", {"username": "boss", "password": PASSWORD}).status_code == 429


def test_used_codes_are_known_to_every_process_of_the_site(db: None) -> None:
    shared = [DatabaseCache("memory_portal_cache", {}) for _ in range(2)]
    assert shared[0].add("code", "y", 90)
    assert not shared[1].add("code", "y", 90)
