"""A host's link: it signs one customer in, once, within a minute, and nobody else in any way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

import pytest
from django.contrib.auth import get_user_model
from django.core.signing import Signer
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from agent_bridge import auth
from memory_portal import handoff, store
from memory_portal.models import Customer, Ticket
from tests.mcp_caller import token_of
from tests.people import Person, person

pytestmark = pytest.mark.django_db

Agent = Callable[..., Client]
LINKS = "/bridge/v1/portal-links"
LIFE = timedelta(minutes=1)
USED = "This link has been used or is too old"


def made(client: Client, subject: str = "alice", **more: Any) -> Any:
    return client.post(LINKS, {"subject_id": subject, **more}, "application/json")


def path(answer: Any) -> str:
    assert answer.status_code == 201, answer.content
    return urlsplit(answer.json()["url"]).path


def code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def dead(answer: Any) -> bool:
    return answer.status_code == 410 and USED in answer.content.decode() and "/sign-in/" in answer.content.decode()


# --- the way in -------------------------------------------------------------------------------------------------------


def test_a_new_customer_comes_in_and_is_made_once(agent: Agent) -> None:
    client, browser = agent(auth.LINKS), Client()
    way = path(made(client, display_name="Alice", email="Alice@Example.org"))
    page = browser.get(way)
    assert page.status_code == 200
    assert "Continue as Alice" in page.content.decode()
    assert browser.post(way).headers["Location"] == "/"
    assert "What we remember about you" in browser.get("/").content.decode()
    assert "by a link that the shop sent you" in browser.get("/activity/").content.decode()
    browser.post(path(made(client)))
    customer = Customer.objects.get()
    assert (customer.subject_id, customer.profile, customer.display_name) == ("alice", "airline", "Alice")
    assert customer.email == "alice@example.org"
    assert get_user_model().objects.count() == 1


def test_looking_at_the_link_signs_nobody_in_and_uses_nothing(agent: Agent) -> None:
    way, browser = path(made(agent())), Client()
    for _ in range(3):
        assert browser.get(way).status_code == 200
    assert browser.get("/").status_code == 302
    assert browser.head(way).status_code == 405
    assert browser.post(way).status_code == 302


def test_it_leads_where_the_host_said_and_in_its_language(agent: Agent) -> None:
    way, browser = path(made(agent(), next="/suggestions/?show=all", language="de-AT")), Client()
    assert '<html lang="de"' in browser.get(way).content.decode()
    answer = browser.post(way)
    assert answer.headers["Location"] == "/suggestions/?show=all"
    assert answer.cookies["django_language"].value == "de"
    assert '<html lang="de"' in browser.get("/suggestions/").content.decode()


def test_a_language_the_site_does_not_speak_is_left_to_the_browser(agent: Agent) -> None:
    way, browser = path(made(agent(), language="tlh")), Client(headers={"accept-language": "es"})
    assert '<html lang="es"' in browser.get(way).content.decode()
    assert "django_language" not in browser.post(way).cookies


def test_the_page_shows_the_shop_the_customer_comes_from(agent: Agent) -> None:
    page = Client().get(path(made(agent(profile="grocery")))).content.decode()
    assert "Fernhill Market" in page
    assert "Clearsky" not in page


def test_the_button_needs_the_pages_own_token(agent: Agent) -> None:
    way, browser = path(made(agent())), Client(enforce_csrf_checks=True)
    assert browser.post(way).status_code == 403
    browser.get(way)
    token = browser.cookies["csrftoken"].value
    assert browser.post(way, {"csrfmiddlewaretoken": token}).status_code == 302


def test_a_fresh_session_begins(agent: Agent) -> None:
    browser = Client()
    session = browser.session
    session["planted"] = "by somebody else"
    session.save()
    browser.cookies["sessionid"] = session.session_key or ""
    way = path(made(agent()))
    browser.get(way)
    browser.post(way)
    assert browser.session.session_key != session.session_key
    assert "planted" not in browser.session


def test_whoever_was_signed_in_is_asked_first_and_then_signed_out(agent: Agent, bob: Person) -> None:
    way = path(made(agent(), "carol"))
    page = bob.sees(way)
    assert "Somebody else is signed in here." in page
    assert "data-goes-on" not in page, "no script goes on by itself"
    assert bob.get("/").status_code == 200
    bob.post(way)
    user = get_user_model().objects.get(pk=bob.client.session["_auth_user_id"])
    assert user.customer.subject_id == "carol"


def test_nothing_of_the_page_is_kept_by_a_cache(agent: Agent) -> None:
    way, browser = path(made(agent())), Client()
    for answer in (browser.get(way), browser.post(way), browser.get(way)):
        assert answer["Cache-Control"] == "no-store"


# --- once, soon, unchanged --------------------------------------------------------------------------------------------


def test_a_used_link_is_dead_for_everybody(agent: Agent) -> None:
    way = path(made(agent()))
    assert Client().post(way).status_code == 302
    other = Client()
    assert dead(other.get(way))
    assert dead(other.post(way))
    assert other.get("/").status_code == 302


def test_a_minute_later_it_is_dead(agent: Agent) -> None:
    way = path(made(agent()))
    with mock.patch.object(timezone, "now", return_value=timezone.now() + LIFE):
        assert dead(Client().get(way))
        assert dead(Client().post(way))
    assert Client().get(way).status_code == 200


def test_the_end_is_told_to_the_host(agent: Agent) -> None:
    before = timezone.now()
    until = made(agent()).json()["expires_at"]
    assert before + LIFE <= Ticket.objects.get().expires_at <= timezone.now() + LIFE
    assert until.startswith(f"{Ticket.objects.get().expires_at:%Y-%m-%dT%H:%M:%S}")


@pytest.mark.parametrize(
    "changed",
    [
        lambda a, b: a[:-1] + ("A" if a[-1] != "A" else "B"),
        lambda a, b: a.split(".")[0] + "." + b.split(".")[1],
        lambda a, b: a.split(".")[0],
        lambda a, b: "x" * 3_000,
        lambda a, b: "/enter/%00.x",
        lambda a, b: "/enter/é",
    ],
)
def test_a_changed_link_is_as_dead_as_a_used_one(agent: Agent, changed: Callable[[str, str], str]) -> None:
    one, other = path(made(agent())), path(made(agent(), "bob"))
    used = Client().get(f"{one}x").content
    way = changed(one, other)
    way = way if way.startswith("/enter/") else f"/enter/{way}"
    for answer in (Client().get(way), Client().post(way)):
        assert dead(answer)
    assert strip(Client().get(way).content) == strip(used), "the same page, whatever was wrong"
    assert Ticket.objects.count() == 2


def strip(page: bytes) -> str:
    """Without what differs by request: the masked token and the page's own address in the language menu."""
    return "\n".join(
        line for line in page.decode().splitlines() if "csrfmiddlewaretoken" not in line and 'name="next"' not in line
    )


@pytest.mark.django_db(transaction=True)
def test_of_many_who_press_at_once_one_comes_in(agent: Agent) -> None:
    way, answers, gate = path(made(agent())), [], threading.Barrier(8)

    def press() -> None:
        browser = Client()
        gate.wait()
        answers.append(browser.post(way).status_code)
        connection.close()

    threads = [threading.Thread(target=press) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [302] + [410] * 7
    assert get_user_model().objects.count() == 1


def test_the_database_holds_no_link_that_works(agent: Agent) -> None:
    token = path(made(agent())).removeprefix("/enter/")
    with connection.cursor() as cursor:
        cursor.execute("SELECT t::text FROM memory_portal_ticket t")
        ((row,),) = cursor.fetchall()
    ticket, _, _ = Signer(salt="memory_portal.handoff", sep=".").unsign_object(token)
    assert ticket not in row
    assert token not in row


def test_a_ticket_for_another_door_does_not_open_this_one(agent: Agent) -> None:
    way = path(made(agent()))
    Ticket.objects.update(purpose="export")
    assert dead(Client().get(way))
    assert dead(Client().post(way))


def test_a_newer_link_of_the_same_customer_ends_the_older(agent: Agent) -> None:
    old, new = path(made(agent())), path(made(agent()))
    assert dead(Client().post(old))
    assert Client().post(new).status_code == 302


def test_no_link_opens_a_staff_account(agent: Agent) -> None:
    boss = get_user_model().objects.create_superuser("boss", "boss@example.org", "a long password of staff")
    client = agent()
    made(client)
    Customer.objects.update(user=boss)
    browser = Client()
    assert dead(browser.post(path(made(client))))
    assert browser.get("/admin/").status_code == 302


def test_a_person_who_was_switched_off_stays_out(agent: Agent, bob: Person) -> None:
    get_user_model().objects.update(is_active=False)
    assert dead(Client().post(path(made(agent(profile="grocery"), "bob"))))


# --- the host's side --------------------------------------------------------------------------------------------------


def test_the_links_host_is_the_portals_own(agent: Agent, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    client = agent()
    assert made(client).json()["url"].startswith("http://testserver/enter/")
    settings.PORTAL_URL = "https://memory.example.com"
    for host in ("evil.example", "memory.example.com.evil.example", "testserver:1"):
        answer = client.post(
            LINKS, {"subject_id": "alice"}, "application/json", headers={"Host": host, "X-Forwarded-Host": host}
        )
        assert answer.json()["url"].startswith("https://memory.example.com/enter/")


ELSEWHERE = ["https://evil.example/", "//evil.example", "/\\evil.example", "\\\\evil.example", "javascript:alert(1)"]
NO_PATHS = ["evil", "/a\nb", "/ü", "/a b", "/" + "x" * handoff.NEXT_LIMIT]


@pytest.mark.parametrize("there", ELSEWHERE + NO_PATHS)
def test_the_way_on_stays_on_this_site(agent: Agent, there: str) -> None:
    answer = made(agent(), next=there)
    assert code(answer) == (422, "invalid")
    assert answer.json()["errors"][0]["pointer"] == "#/next"
    assert not Customer.objects.exists()


@pytest.mark.parametrize("email", ["x", "a@b", "a b@example.org", "a@example.org\n", "x" * 250 + "@example.org"])
def test_an_address_that_is_none_is_refused(agent: Agent, email: str) -> None:
    answer = made(agent(), email=email)
    assert code(answer) == (422, "invalid")
    assert answer.json()["errors"][0]["pointer"] == "#/email"


def test_another_customers_address_is_not_given_away(agent: Agent) -> None:
    client = agent()
    made(client, "bob", email="shared@example.org")
    answer = made(client, "alice", email=" Shared@example.org".strip(), display_name="Alice")
    assert code(answer) == (409, "email_taken")
    assert "bob" not in answer.content.decode()
    assert not Customer.objects.filter(subject_id="alice").exists(), "nothing was half done"
    assert made(client, "bob", email="SHARED@example.org").status_code == 201, "their own they may have again"
    assert made(agent(profile="grocery"), "alice", email="shared@example.org").status_code == 201, "another shop"


@pytest.mark.django_db(transaction=True)
def test_of_two_who_take_an_address_at_once_one_gets_it(agent: Agent) -> None:
    client, answers, gate = agent(), [], threading.Barrier(6)

    def take(name: str) -> None:
        gate.wait()
        answers.append(made(Client(**client.defaults), name, email="shared@example.org").status_code)
        connection.close()

    threads = [threading.Thread(target=take, args=[f"c{number}"]) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [201] + [409] * 5
    assert Customer.objects.filter(email="shared@example.org").count() == 1


def test_what_the_host_does_not_say_stays_and_what_it_empties_goes(agent: Agent) -> None:
    client = agent()
    made(client, email="alice@example.org", display_name="Alice")
    made(client)
    assert Customer.objects.get().email == "alice@example.org"
    made(client, email="", display_name="")
    assert (Customer.objects.get().email, Customer.objects.get().display_name) == ("", "")


def test_a_tokens_holder_sends_its_own_customer_and_names_no_address(agent: Agent) -> None:
    holder = Client(headers={"Authorization": f"Bearer {token_of(agent(), 'alice')}"})
    assert Client().post(path(made(holder))).status_code == 302
    assert code(made(holder, "bob")) == (403, "subject_bound")
    assert code(made(holder, email="agent@example.org")) == (403, "key_needed")
    assert code(made(holder, display_name="Somebody")) == (403, "key_needed")
    assert not Customer.objects.exclude(email="").exists()


def test_one_subject_of_two_shops_is_two_people(agent: Agent) -> None:
    for profile in ("airline", "grocery"):
        browser = Client()
        browser.post(path(made(agent(profile=profile))))
        user = get_user_model().objects.get(pk=browser.session["_auth_user_id"])
        assert user.customer.profile == profile
    assert Customer.objects.count() == 2


def test_a_known_customer_keeps_their_facts_and_their_user(agent: Agent) -> None:
    carol = person("carol", profile="airline")
    carol.fact("seat", "Aisle")
    browser = Client()
    browser.post(path(made(agent(), "carol")))
    assert "Aisle" in browser.get("/").content.decode()
    assert get_user_model().objects.count() == 1
    assert store.find(store.Subject("carol", "airline"))
