"""Coming in: a code to an address that the host put on the customer, and to no other; going out; pages around it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core import mail
from django.core.cache import cache
from django.test import Client
from django.urls import NoReverseMatch, reverse
from django.utils import timezone

from memory_portal import store
from memory_portal.enums import ActorKind
from memory_portal.models import Customer
from memory_portal.store import people
from tests.people import Person

SIGN_IN = "/sign-in/"
CODE = "/sign-in/code/"


@pytest.fixture(autouse=True)
def fresh_limits() -> None:
    cache.clear()


@pytest.fixture
def customer(db: None) -> Customer:
    """Known to the host under an address, and never here before."""
    subject = store.Subject("dana", "grocery")
    store.submit(subject, [], store.Actor(ActorKind.SYSTEM), now=timezone.now())
    store.attach_email(subject, "Dana@Example.org ")
    return Customer.objects.get()


def ask(client: Client, email: str, path: str = SIGN_IN) -> Any:
    return client.post(path, {"email": email})


def sent_code() -> str:
    return re.findall(r"^\s+(\d{6})$", str(mail.outbox[-1].body), re.MULTILINE)[0]


def test_a_person_signs_in_with_the_code_from_the_mail(customer: Customer) -> None:
    client = Client()
    assert ask(client, "dana@example.org").headers["Location"] == CODE
    assert "If we know" in client.get(CODE).content.decode()
    answer = client.post(CODE, {"code": sent_code()})
    assert answer.headers["Location"] == "/"
    page = client.get("/")
    assert page.status_code == 200
    assert "What we remember about you" in page.content.decode()
    customer.refresh_from_db()
    assert customer.user
    assert customer.user.email == "dana@example.org"
    assert not customer.user.has_usable_password()


def test_the_mail_carries_the_code_and_nothing_remembered(customer: Customer) -> None:
    person = Person(customer, Client())
    person.fact("coffee", "Verydarkroast")
    ask(Client(), "dana@example.org")
    (message,) = mail.outbox
    assert message.to == ["dana@example.org"]
    assert sent_code() in message.subject
    assert "coffee" not in str(message.body).lower()
    assert "Verydarkroast" not in str(message.body)


def test_signing_in_twice_makes_one_user_and_no_second_customer(customer: Customer) -> None:
    for _ in range(2):
        client = Client()
        ask(client, "DANA@example.org")
        client.post(CODE, {"code": sent_code()})
        assert client.get("/").status_code == 200
    assert Customer.objects.count() == 1
    assert get_user_model().objects.count() == 1


def test_an_unknown_address_gets_the_same_answer_and_no_mail(customer: Customer) -> None:
    known, unknown = Client(), Client()
    first, second = ask(known, "dana@example.org"), ask(unknown, "nobody@example.org")
    assert (first.status_code, first.headers["Location"]) == (second.status_code, second.headers["Location"])
    pages = [client.get(CODE).content.decode() for client in (known, unknown)]
    same = [re.sub(r'value="[^"]*"|\w+@example\.org', "", page) for page in pages]
    assert same[0] == same[1]
    assert len(mail.outbox) == 1
    assert unknown.post(CODE, {"code": "000000"}).status_code == 200, "and no code opens it"
    assert unknown.get("/").status_code == 302
    assert not get_user_model().objects.filter(email="nobody@example.org").exists()


def test_nobody_claims_another_customer_by_typing(customer: Customer) -> None:
    person = Person(customer, Client())
    person.fact("coffee", "Verydarkroast")
    stranger = Client()
    ask(stranger, "stranger@example.org")
    stranger.post(CODE, {"code": "123456"})
    ask(Client(), "dana@example.org")
    code = sent_code()
    other = Client()
    ask(other, "stranger@example.org")
    assert other.post(CODE, {"code": code}).status_code == 200, "the code belongs to the browser that asked for it"
    assert other.get("/").status_code == 302


def test_three_wrong_codes_end_the_attempt(customer: Customer) -> None:
    client = Client()
    ask(client, "dana@example.org")
    code = sent_code()
    wrong = "000000" if code != "000000" else "111111"
    assert "That is not the code we sent." in client.post(CODE, {"code": wrong}).content.decode()
    client.post(CODE, {"code": wrong})
    assert client.post(CODE, {"code": wrong}).headers["Location"] == SIGN_IN
    assert client.post(CODE, {"code": code}).headers["Location"] == SIGN_IN, "the right one comes too late"
    assert "Too many tries" in client.get(SIGN_IN).content.decode()


def test_codes_for_one_address_are_rationed(customer: Customer) -> None:
    for _ in range(3):
        ask(Client(), "dana@example.org")
    answer = ask(Client(), "dana@example.org")
    assert "Too many tries" in answer.content.decode()
    assert len(mail.outbox) == 3


def test_a_new_code_can_be_sent_and_the_old_one_ends(customer: Customer) -> None:
    client = Client()
    ask(client, "dana@example.org")
    old = sent_code()
    client.post(CODE, {"action": "resend"})
    new = sent_code()
    assert len(mail.outbox) == 2
    if new != old:
        assert client.post(CODE, {"code": old}).status_code == 200
    assert client.post(CODE, {"code": new}).headers["Location"] == "/"


def test_another_address_can_be_used_from_the_code_page(customer: Customer) -> None:
    client = Client()
    ask(client, "dana@example.org")
    assert client.get(SIGN_IN).headers["Location"] == CODE
    client.post(reverse("account_logout"), {"next": SIGN_IN})
    assert client.get(SIGN_IN).status_code == 200


def test_the_way_back_is_kept_and_leads_nowhere_else(customer: Customer) -> None:
    for given, reached in (("/control/", "/control/"), ("https://evil.example/", "/"), ("//evil.example", "/")):
        client = Client()
        cache.clear()
        step = ask(client, "dana@example.org", f"{SIGN_IN}?next={given}")
        answer = client.post(step.headers["Location"], {"code": sent_code()})
        assert answer.headers["Location"] == reached


@pytest.mark.parametrize("email", ["", "not an address", "a\0@example.org", "x" * 400 + "@example.org"])
def test_an_unusable_address_is_a_form_error(db: None, email: str) -> None:
    answer = ask(Client(), email)
    assert answer.status_code == 200
    assert 'class="error"' in answer.content.decode()
    assert mail.outbox == []


def test_an_address_never_opens_a_staff_account(db: None, customer: Customer) -> None:
    user = get_user_model().objects.create_superuser("boss", "dana@example.org", "a long password of staff")
    client = Client()
    ask(client, "dana@example.org")
    client.post(CODE, {"code": sent_code()})
    assert client.get("/admin/").status_code == 302, "the customer came in, not the staff member of the same address"
    Customer.objects.update(user=user)
    cache.clear()
    mail.outbox.clear()
    ask(Client(), "dana@example.org")
    assert mail.outbox == []


def test_an_address_taken_off_the_customer_opens_nothing(customer: Customer) -> None:
    store.attach_email(customer.pk, "")
    ask(Client(), "dana@example.org")
    ask(Client(), "")
    assert mail.outbox == []


def test_putting_an_address_on_nobody_is_not_found(db: None) -> None:
    with pytest.raises(store.NotFound):
        store.attach_email(store.Subject("nobody"), "a@example.org")


def test_signing_out_ends_the_session(alice: Person) -> None:
    old = alice.client.cookies["sessionid"].value
    alice.post(reverse("account_logout"))
    assert alice.get("/").status_code == 302
    assert "You are signed out." in alice.get(SIGN_IN).content.decode()
    alice.client.cookies["sessionid"] = old
    assert alice.get("/").status_code == 302, "the old cookie is dead"


def test_signing_out_by_a_link_asks_first(alice: Person) -> None:
    assert "Sign out?" in alice.sees(reverse("account_logout"))
    assert alice.get("/").status_code == 200


def test_staff_without_a_memory_of_their_own_are_told_so(staff: Client) -> None:
    for path in ("/", "/control/", "/suggestions/"):
        answer = staff.get(path)
        assert answer.status_code == 403
        assert "No memory belongs to this sign-in" in answer.content.decode()
        assert answer.headers["Cache-Control"] == "no-store"


def test_only_the_routes_that_are_needed_exist() -> None:
    for name in (
        "account_signup",
        "account_change_password",
        "account_set_password",
        "account_reset_password",
        "account_email",
    ):
        with pytest.raises(NoReverseMatch):
            reverse(name)


def test_signed_in_already_the_sign_in_page_leads_to_the_memory(alice: Person) -> None:
    assert alice.get(SIGN_IN).headers["Location"] == "/"


@pytest.mark.parametrize(
    ("language", "says"),
    [("en", "Send me a code"), ("zh-hant", "寄驗證碼給我"), ("zh-TW", "寄驗證碼給我"), ("xx", "Send me a code")],
)
def test_the_page_speaks_the_browsers_language(db: None, language: str, says: str) -> None:
    page = Client().get(SIGN_IN, headers={"accept-language": language}).content.decode()
    assert says in page


def test_the_language_menu_is_a_choice_that_stays(db: None) -> None:
    client = Client()
    answer = client.post("/language", {"language": "zh-hant", "next": SIGN_IN})
    assert answer.headers["Location"] == SIGN_IN
    page = client.get(SIGN_IN).content.decode()
    assert '<html lang="zh-Hant" dir="ltr">' in page
    assert "寄驗證碼給我" in page


def test_pages_that_are_not_there_look_like_the_site(db: None) -> None:
    answer = Client().get("/no/such/page")
    assert answer.status_code == 404
    assert "There is nothing at this address" in answer.content.decode()


def test_an_error_page_needs_nothing_to_work(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(request: Any) -> dict[str, Any]:
        raise RuntimeError("the frame is broken")

    from django.template import engines

    processors: tuple[Callable[..., Any], ...] = engines["django"].engine.template_context_processors  # type: ignore[attr-defined]
    monkeypatch.setattr(engines["django"].engine, "template_context_processors", (*processors, broken))  # type: ignore[attr-defined]
    answer = Client(raise_request_exception=False).get(SIGN_IN)
    assert answer.status_code == 500
    assert "Something went wrong on our side" in answer.content.decode()


@pytest.mark.django_db
def test_two_first_sign_ins_at_once_make_one_user() -> None:
    """Both saw no user before either had the row's lock; the second one finds the first one's."""
    newcomer = store.Subject("newcomer", "grocery")
    store.submit(newcomer, [], store.Actor(ActorKind.SYSTEM), now=timezone.now())
    customer = store.find(newcomer)
    assert customer is not None
    assert people._make_user(customer.pk) == people._make_user(customer.pk)
