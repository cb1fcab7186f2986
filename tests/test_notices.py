"""What is new since the last visit, on the page and by mail: how much, never what. And looks, which are nobody's business."""

from __future__ import annotations

import io
import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.core import mail
from django.core.cache import cache
from django.core.mail import EmailMessage
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memory_portal import post, store
from memory_portal.enums import EventKind
from memory_portal.models import Customer, FactEvent
from tests.people import Person

NEW = "since you were last here"


@pytest.fixture(autouse=True)
def fresh_limits() -> None:
    cache.clear()


def visits(who: Person, *days_ago: float) -> None:
    for days in days_ago:
        store.note(who.pk, EventKind.SIGNED_IN, who.actor, now=timezone.now() - timedelta(days=days))


def test_the_page_says_how_much_is_new_since_the_visit_before(alice: Person) -> None:
    visits(alice, 3, 0)
    alice.fact("old", "Was here before", ago=4)
    alice.fact("coffee", "Dark", ago=2)
    alice.fact("tea", "Green", ago=1)
    page = unescape(alice.sees())
    assert f"We noted 2 new things {NEW}." in page


def test_what_the_customer_wrote_is_no_news_and_a_first_visit_has_none(alice: Person) -> None:
    visits(alice, 0)
    alice.fact("coffee", "Dark")
    assert NEW not in alice.sees()
    visits(alice, 5)
    alice.writes("tea", "Green")
    assert "1 new thing " in unescape(alice.sees())


def test_a_sign_in_by_code_stands_in_the_activity_list(alice: Person) -> None:
    client = Client()
    client.post("/sign-in/", {"email": "alice@example.org"})
    code = re.findall(r"\d{6}", str(mail.outbox[-1].subject))[0]
    client.post("/sign-in/code/", {"code": code})
    assert "You signed in" in alice.sees(reverse("activity"))
    assert FactEvent.objects.get(kind="signed_in").actor_kind == "customer"


def asks_for_mails(who: Person, days_ago: float = 2) -> None:
    who.post(reverse("notices"), {"mail": "on"})
    Customer.objects.filter(pk=who.pk).update(mailed_at=timezone.now() - timedelta(days=days_ago))


def digests() -> int:
    out = io.StringIO()
    call_command("send_digests", stdout=out)
    return int(out.getvalue().split()[0])


def test_who_asked_for_mails_gets_one_a_day_that_says_how_much_and_not_what(alice: Person, bob: Person) -> None:
    asks_for_mails(alice)
    for who in (alice, bob):
        who.fact("coffee", "Verydarkroast")
    alice.writes("tea", "Own words")
    assert digests() == 1
    (message,) = mail.outbox
    assert message.to == ["alice@example.org"]
    assert message.subject == "Fernhill Market noted 1 new thing about you"
    text = f"{message.subject} {message.body}".lower()
    assert "coffee" not in text
    assert "roast" not in text
    alice.fact("cake", "Plum")
    assert digests() == 0, "not twice a day"


def test_two_clocks_at_once_send_one_mail(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    asks_for_mails(alice)
    alice.fact("coffee", "Dark")
    now = timezone.now()
    due = store.to_be_told(now)
    monkeypatch.setattr(store, "to_be_told", lambda now: due, raising=False)
    assert [post.send_digests(now), post.send_digests(now)] == [1, 0]
    assert len(mail.outbox) == 1


def test_the_mail_speaks_the_language_in_which_it_was_asked_for(alice: Person) -> None:
    alice.client.post("/language", {"language": "de", "next": "/"})
    asks_for_mails(alice)
    alice.fact("coffee", "Dark")
    assert digests() == 1
    alice.customer.refresh_from_db()
    assert alice.customer.language == "de"


def test_no_mail_without_news_without_address_or_after_no(alice: Person) -> None:
    asks_for_mails(alice)
    assert digests() == 0, "nothing new"
    alice.fact("coffee", "Dark")
    store.attach_email(alice.pk, "")
    assert digests() == 0
    assert "no e-mail address" in alice.sees(reverse("control"))
    store.attach_email(alice.pk, "alice@example.org")
    alice.post(reverse("notices"))
    Customer.objects.update(mailed_at=timezone.now() - timedelta(days=2))
    assert digests() == 0


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_looks_are_chosen_from_the_account_menu_and_stay(alice: Person, theme: str) -> None:
    answer = alice.post(reverse("theme"), {"theme": theme, "next": "/activity/"})
    assert answer.headers["Location"] == "/activity/"
    assert f'data-theme="{theme}"' in alice.sees()
    alice.post(reverse("theme"), {"theme": "purple"})
    assert f'data-theme="{theme}"' in alice.sees()
    alice.post(reverse("theme"), {"theme": ""})
    assert "data-theme" not in alice.sees()


# --- mail goes out behind the answer ----------------------------------------------------------------------------------


class Box:
    """A mail server of the test's own, which fails as often as it is told to."""

    def __init__(self, failures: int) -> None:
        self.failures, self.sent = failures, 0

    def send_messages(self, messages: list[EmailMessage]) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError("no route to alice@example.org")
        self.sent += len(messages)


@pytest.mark.parametrize(("failures", "sent"), [(0, 1), (2, 1), (3, 0)])
def test_a_mail_is_tried_three_times_and_its_address_is_in_no_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, failures: int, sent: int
) -> None:
    box = Box(failures)
    monkeypatch.setattr(post, "get_connection", lambda backend: box)
    post._send([EmailMessage("s", "b", to=["alice@example.org"])], waits=(0, 0, 0))
    assert box.sent == sent
    assert "alice" not in caplog.text
    assert ("mail_failed" in caplog.text) is (sent == 0)


def test_the_answer_does_not_wait_for_the_mail(monkeypatch: pytest.MonkeyPatch) -> None:
    handed: list[Any] = []
    monkeypatch.setattr(post._sender, "submit", lambda *given: handed.append(given))
    assert post.Later().send_messages([EmailMessage("s", "b", to=["alice@example.org"])]) == 1
    assert len(handed) == 1
