"""Staff look at a value, correct and forget on a customer's behalf: with a reason, a fresh proof, and in the customer's sight."""

from __future__ import annotations

import io
import re
import threading
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.core import mail
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from memory_portal import store
from memory_portal.enums import ActorKind, EventKind, Purpose
from memory_portal.models import Customer, FactEvent, FactRevision, MemoryFact, Proposal, StaffAlert, Tombstone
from memory_portal.staff.looking import acting, look
from memory_portal.store.looks import MANY
from tests.figures import Figure
from tests.office import OFFICER, OPERATOR, PASSWORD, SUPPORT, browser_of, member
from tests.people import Person, person

ASKED = {"purpose": "customer_asked"}


@pytest.fixture(autouse=True)
def fresh_limits(settings: Any) -> None:
    cache.clear()
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.MD5PasswordHasher"
    ]  # a command takes a password each time


def act(name: str, who: Person, fact: store.Fact) -> str:
    return reverse(f"admin:memory_portal_{name}", args=[who.pk, fact.id])


def lines(who: Person) -> list[str]:
    """What stands under "Looked at by staff", all pages of it."""
    found, query = [], "?show=looked"
    while query:
        page = unescape(who.sees(reverse("activity") + query))
        found += [
            " ".join(re.sub(r"<[^>]+>", " ", line).split())
            for line in re.findall(r'<li class="looked">(.*?)</li>', page, re.DOTALL)
        ]
        step = re.search(r'href="/activity/(\?[^"]*before=[^"]*)">', page)
        query = step[1] if step else ""
    return found


def by_command(user: Any, who: Person, monkeypatch: pytest.MonkeyPatch, *, secret: str = PASSWORD, **more: str) -> str:
    said = io.StringIO()
    monkeypatch.setattr("sys.stdin", io.StringIO(secret + "\n"))
    call_command(
        "reveal",
        more.get("key", "coffee"),
        staff=user.username,
        reason="complaint",
        profile="grocery",
        subject=more.get("subject", who.customer.subject_id),
        stdout=said,
    )
    return said.getvalue()


@pytest.mark.parametrize("each", [25, pytest.param(100, marks=pytest.mark.deep)])
def test_every_look_by_page_and_command_is_in_the_customers_sight(
    alice: Person, monkeypatch: pytest.MonkeyPatch, figure: Figure, each: int
) -> None:
    fact = alice.fact("coffee", "Verydarkroast", quote="I like Verydarkroast")
    user = member(SUPPORT)
    client = browser_of(user)
    began = timezone.now()
    for _ in range(each):
        assert b"Verydarkroast" in client.post(act("reveal", alice, fact), ASKED).content
        assert by_command(user, alice, monkeypatch) == "Verydarkroast\n"
    seen = lines(alice)
    took = timezone.now() - began
    assert len(seen) == 2 * each
    assert (
        sum("looked at Coffee" in line and "customer support · because you asked us" in line for line in seen) == each
    )
    assert (
        sum("looked at Coffee" in line and "customer support · because of your complaint" in line for line in seen)
        == each
    )
    assert not any(user.username in line for line in (line.replace("customer support", "") for line in seen))
    assert took < timedelta(seconds=60)
    figure(
        "A5",
        f"{2 * each} looks, {each} by page and {each} by command: {len(seen)} in their view within {took.total_seconds():.0f} s",
    )


def test_the_value_stands_on_that_one_page_and_in_no_cache(alice: Person) -> None:
    fact = alice.fact("coffee", "Verydarkroast", quote="I like Verydarkroast")
    client = browser_of(member(SUPPORT))
    asked = client.get(act("reveal", alice, fact))
    assert b"Verydarkroast" not in asked.content
    shown = client.post(act("reveal", alice, fact), ASKED)
    assert shown.content.count(b"Verydarkroast") == 2, "the value and the words it rests on"
    assert "no-store" in shown.headers["Cache-Control"]
    page = client.get(reverse("admin:memory_portal_customer_change", args=[alice.pk])).content
    assert b"Verydarkroast" not in page
    assert "•••••" in page.decode()


def test_a_look_is_written_down_before_it_is_shown(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the event cannot be kept, nothing is seen."""
    fact = alice.fact("coffee", "Verydarkroast")
    client = browser_of(member(SUPPORT))
    client.raise_request_exception = False
    with connection.cursor() as cursor:
        cursor.execute(
            """CREATE FUNCTION pg_temp.no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$"""
        )
        cursor.execute(
            "CREATE TRIGGER no BEFORE INSERT ON memory_portal_factevent FOR EACH ROW"
            " WHEN (NEW.kind = 'revealed') EXECUTE FUNCTION pg_temp.no()"
        )
    answer = client.post(act("reveal", alice, fact), ASKED)
    assert answer.status_code == 500
    assert b"Verydarkroast" not in answer.content


@pytest.mark.parametrize("purpose", ["", "curiosity", "customer_asked and more"])
def test_without_a_reason_of_the_list_nothing_is_shown(alice: Person, purpose: str) -> None:
    fact = alice.fact("coffee", "Verydarkroast")
    client = browser_of(member(SUPPORT))
    for name, more in (("reveal", {}), ("correct", {"value": "Light", "version": 1}), ("forget", {})):
        answer = client.post(act(name, alice, fact), {"purpose": purpose, **more})
        assert answer.status_code == 422
        assert b"Verydarkroast" not in answer.content
    assert alice.held == {"coffee": "Verydarkroast"}
    assert not FactEvent.objects.filter(actor_kind="staff").exists()
    with pytest.raises(ValueError, match="not a valid"):
        acting(member(SUPPORT, "other"), purpose)


@pytest.mark.parametrize("kind", [ActorKind.AGENT, ActorKind.JOB, ActorKind.SYSTEM, ActorKind.STAFF])
def test_the_store_shows_a_value_to_staff_with_a_purpose_only(alice: Person, kind: ActorKind) -> None:
    fact = alice.fact("coffee", "Verydarkroast")
    purpose = "" if kind is ActorKind.STAFF else "customer_asked"
    with pytest.raises(store.MemoryWriteRejected):
        store.reveal(alice.pk, fact.id, store.Actor(kind, "1", purpose=purpose), now=timezone.now())


def test_a_fact_of_somebody_else_is_none_of_this_customer_s(alice: Person, bob: Person) -> None:
    his = bob.fact("coffee", "Decaf")
    client = browser_of(member(SUPPORT))
    for name in ("reveal", "correct", "forget"):
        wrong = reverse(f"admin:memory_portal_{name}", args=[alice.pk, his.id])
        assert client.get(wrong).status_code == client.post(wrong, ASKED).status_code == 404
    with pytest.raises(store.NotFound):
        store.reveal(alice.pk, his.id, acting(member(OFFICER), "complaint"), now=timezone.now())


def test_what_has_ended_is_not_shown_any_more(alice: Person) -> None:
    fact = alice.fact("coffee", "Verydarkroast")
    MemoryFact.objects.filter(pk=fact.id).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert browser_of(member(SUPPORT)).post(act("reveal", alice, fact), ASKED).status_code == 404


def test_a_look_changes_nothing_for_the_agents(alice: Person) -> None:
    fact = alice.fact("coffee", "Dark")
    subject = store.Subject("alice", "grocery")
    before = store.version_of(subject)
    end = store.changes("grocery", "helper", "").next
    browser_of(member(SUPPORT)).post(act("reveal", alice, fact), ASKED)
    assert store.version_of(subject) == before
    assert store.changes("grocery", "helper", end).changes == ()


# --- correct and forget -----------------------------------------------------------------------------------------------


def test_staff_correct_for_the_customer_who_reads_by_whom_and_why(alice: Person) -> None:
    fact = alice.fact("coffee", "Verydarkroast")
    client = browser_of(member(SUPPORT))
    form = client.get(act("correct", alice, fact)).content
    assert b"Verydarkroast" not in form
    assert (
        client.post(act("correct", alice, fact), {**ASKED, "value": "Light roast", "version": fact.version}).status_code
        == 302
    )
    assert alice.held == {"coffee": "Light roast"}
    page = unescape(alice.sees(reverse("activity")))
    assert "Our staff corrected <strong>Coffee</strong>" in page
    assert "customer support · because you asked us" in page


@pytest.mark.django_db(transaction=True)  # agents hear of what is committed
def test_why_staff_did_it_is_told_to_the_customer_and_not_to_agents() -> None:
    alice = person("alice")
    fact = alice.fact("coffee", "Dark")
    browser_of(member(SUPPORT)).post(
        act("correct", alice, fact), {"purpose": "fraud_check", "value": "Light", "version": 1}
    )
    agents = store.changes("grocery", "helper", "").changes
    assert [(change.kind, change.code) for change in agents] == [("learned", ""), ("corrected", "")]
    assert "to check for fraud" in unescape(alice.sees(reverse("activity")))


def test_a_correction_of_what_changed_meanwhile_is_not_written(alice: Person) -> None:
    fact = alice.fact("coffee", "Dark")
    answer = browser_of(member(SUPPORT)).post(act("correct", alice, fact), {**ASKED, "value": "Light", "version": 7})
    assert answer.status_code == 422
    assert "changed meanwhile" in answer.content.decode()
    assert alice.held == {"coffee": "Dark"}


@pytest.mark.parametrize("value", ["4111 1111 1111 1111", "​", "x" * 201])
def test_staff_write_under_the_same_rules_as_everybody(alice: Person, value: str) -> None:
    fact = alice.fact("coffee", "Dark")
    answer = browser_of(member(SUPPORT)).post(act("correct", alice, fact), {**ASKED, "value": value, "version": 1})
    assert answer.status_code == 422
    assert alice.held == {"coffee": "Dark"}


def test_staff_forget_for_the_customer_and_it_stays_forgotten(alice: Person) -> None:
    fact = alice.fact("coffee", "Dark")
    browser_of(member(SUPPORT)).post(act("forget", alice, fact), {"purpose": "legal_request"})
    assert alice.held == {}
    assert Tombstone.objects.get().key == "coffee"
    assert alice.says("coffee", "Dark", ago=2).decision == "refused"
    assert "to answer your request under privacy law" in unescape(alice.sees(reverse("activity")))


def test_what_concerns_safety_and_what_the_customer_wrote_is_only_suggested(alice: Person) -> None:
    alice.agrees()
    allergy = alice.fact("food_allergy", "Peanuts", category="safety")
    own = alice.writes("coffee", "Dark")
    client = browser_of(member(OFFICER))
    for fact, value in ((allergy, "No allergy at all"), (own, "Light")):
        assert "suggestion" in client.get(act("correct", alice, fact)).content.decode()
        client.post(act("correct", alice, fact), {**ASKED, "value": value, "version": fact.version})
    client.post(act("forget", alice, allergy), ASKED)
    assert alice.held == {"food_allergy": "Peanuts", "coffee": "Dark"}
    assert not FactRevision.objects.exists()
    asked = Proposal.objects.values_list("key", "action", "reason")
    assert set(asked) == {
        ("food_allergy", "remember", "weakens_safety"),
        ("food_allergy", "forget", "weakens_safety"),
        ("coffee", "remember", "differs_from_correction"),
    }


def test_saying_what_is_held_already_asks_nobody(alice: Person) -> None:
    own = alice.writes("coffee", "Dark")
    answer = browser_of(member(SUPPORT)).post(
        act("correct", alice, own), {**ASKED, "value": "Dark", "version": own.version}
    )
    assert answer.status_code == 422
    assert not Proposal.objects.exists()


def test_a_privacy_officer_erases_a_customer_whose_id_is_typed(alice: Person, bob: Person) -> None:
    alice.fact("coffee", "Dark")
    bob.fact("coffee", "Decaf")
    client = browser_of(member(OFFICER))
    path = reverse("admin:memory_portal_erase", args=[alice.pk])
    assert client.post(path, {"reason": "customer_asked", "sure": "bob"}).status_code == 422
    assert client.post(path, {"reason": "because", "sure": "alice"}).status_code == 422
    assert Customer.objects.count() == 2
    assert client.post(path, {"reason": "customer_asked", "sure": "alice"}).status_code == 302
    assert [row.subject_id for row in Customer.objects.all()] == ["bob"]
    assert client.post(path, {"reason": "customer_asked", "sure": "alice"}).status_code == 404
    assert not LogEntry.objects.exists()


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_takes_no_wrong_proof_person_or_place(
    alice: Person, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    alice.fact("coffee", "Verydarkroast")
    user, operator = member(SUPPORT), member(OPERATOR)
    with pytest.raises(CommandError, match="not right"):
        by_command(user, alice, monkeypatch, secret="wrong")
    with pytest.raises(CommandError, match="may not look"):
        by_command(operator, alice, monkeypatch)
    for more in ({"key": "tea"}, {"subject": "nobody"}, {"subject": "\x07"}):
        with pytest.raises(CommandError, match="no such fact"):
            by_command(user, alice, monkeypatch, **more)
    settings.STAFF_MFA = True
    with pytest.raises(CommandError, match="not right"):
        by_command(user, alice, monkeypatch)
    user.is_active = False
    user.save()
    settings.STAFF_MFA = False
    with pytest.raises(CommandError, match="not right"):
        by_command(user, alice, monkeypatch)
    assert lines(alice) == []


# --- many customers ---------------------------------------------------------------------------------------------------


def crowd(number: int) -> list[tuple[int, int]]:
    """Customers with one fact each."""
    now = timezone.now()
    Customer.objects.bulk_create(Customer(profile="grocery", subject_id=f"c{n}", created_at=now) for n in range(number))
    rows = Customer.objects.filter(subject_id__startswith="c").order_by("pk")
    MemoryFact.objects.bulk_create(
        MemoryFact(
            customer=row,
            key="coffee",
            value="Dark",
            category="preference",
            said_at=now,
            created_at=now,
            origin="extraction",
        )
        for row in rows
    )
    return list(MemoryFact.objects.filter(customer__in=rows).order_by("pk").values_list("customer", "pk"))


def test_one_person_looking_at_more_than_twenty_customers_in_an_hour_raises_one_alarm(
    db: None, settings: Any, figure: Figure, capfd: pytest.CaptureFixture[str]
) -> None:
    settings.PRIVACY_EMAIL = ["privacy@example.org"]
    user, other = member(SUPPORT), member(SUPPORT, "other")
    people, now = crowd(30), timezone.now()
    for customer, fact in people[:MANY]:
        for _ in range(2):  # twice at one customer is one customer
            look(user, customer, fact, "complaint", now=now)
    look(other, *people[25], "complaint", now=now)
    assert not StaffAlert.objects.exists()
    look(user, *people[MANY], "complaint", now=now + timedelta(minutes=59))
    alarm = StaffAlert.objects.get()
    assert (alarm.staff_id, alarm.customers, alarm.at) == (user.pk, MANY + 1, now + timedelta(minutes=59))
    for customer, fact in people[MANY + 1 :]:
        look(user, customer, fact, "complaint", now=now + timedelta(minutes=59))
    assert StaffAlert.objects.count() == len(mail.outbox) == 1, "one for the hour"
    assert mail.outbox[0].to == ["privacy@example.org"]
    assert "21 customers" in mail.outbox[0].body
    assert user.username not in mail.outbox[0].body
    front = {
        role: browser_of(member(role, f"front {role}")).get("/admin/").content.decode() for role in (OFFICER, SUPPORT)
    }
    assert "One person, many customers" in front[OFFICER]
    assert "One person, many customers" not in front[SUPPORT]
    figure(
        "A6",
        f"{MANY} customers in an hour: 0 alarms; {MANY + 1}: 1 alarm, kept, logged, mailed and on the privacy officer's front page",
    )


def test_an_hour_later_the_count_starts_anew(db: None) -> None:
    user, people, now = member(SUPPORT), crowd(21), timezone.now()
    for customer, fact in people[:MANY]:
        look(user, customer, fact, "complaint", now=now)
    look(user, *people[MANY], "complaint", now=now + timedelta(hours=1))
    assert not StaffAlert.objects.exists()


def test_corrections_count_like_looks(db: None) -> None:
    user, people, now = member(SUPPORT), crowd(21), timezone.now()
    for customer, fact in people[:MANY]:
        store.forget(customer, [fact], acting(user, "customer_asked"), now=now)
    look(user, *people[MANY], "complaint", now=now)
    assert StaffAlert.objects.get().customers == 21


def test_an_alarm_noted_as_seen_leaves_the_front_page(db: None) -> None:
    alarm = StaffAlert.objects.create(staff_id=404, at=timezone.now(), customers=21)
    officer = member(OFFICER)
    client = browser_of(officer)
    assert "404 looked at or changed 21" in client.get("/admin/").content.decode()
    client.post(
        reverse("admin:memory_portal_staffalert_changelist"), {"action": "seen", "_selected_action": [alarm.pk]}
    )
    alarm.refresh_from_db()
    assert (alarm.seen_by, alarm.seen_at is not None) == (officer.pk, True)
    assert "404 looked at" not in client.get("/admin/").content.decode()


def test_a_mail_that_fails_hides_no_value_and_no_alarm(db: None, settings: Any) -> None:
    settings.PRIVACY_EMAIL, settings.EMAIL_BACKEND = ["privacy@example.org"], "no.such.Backend"
    user, people, now = member(SUPPORT), crowd(21), timezone.now()
    said = [look(user, customer, fact, "complaint", now=now).value for customer, fact in people]
    assert said == ["Dark"] * 21
    assert StaffAlert.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_looks_at_once_do_not_slip_through_uncounted() -> None:
    """Two last looks at the same instant: whichever comes second sees the first."""
    for round_ in range(5):
        StaffAlert.objects.all().delete()
        user = member(SUPPORT, f"quick {round_}")
        people, now = crowd(21), timezone.now()
        for customer, fact in people[: MANY - 1]:
            look(user, customer, fact, "complaint", now=now)
        gate = threading.Barrier(2)

        def last(one: tuple[int, int], user: Any = user, gate: threading.Barrier = gate, now: Any = now) -> None:
            gate.wait()
            look(user, *one, "complaint", now=now)
            connection.close()

        threads = [threading.Thread(target=last, args=(one,)) for one in people[MANY - 1 :]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert StaffAlert.objects.get().customers == 21
        Customer.objects.all().delete()


# --- what is left of it, and finding ---------------------------------------------------------------------------------


def test_the_event_says_what_was_looked_at_and_never_what_it_said(alice: Person) -> None:
    fact = alice.fact("coffee", "Verydarkroast")
    user = member(OFFICER)
    browser_of(user).post(act("reveal", alice, fact), {"purpose": "fraud_check"})
    event = FactEvent.objects.get(kind=EventKind.REVEALED)
    assert (event.actor_kind, event.actor_id, event.agent, event.code) == (
        "staff",
        str(user.pk),
        "privacy_officer",
        Purpose.FRAUD_CHECK,
    )
    assert (event.fact_id, event.key, event.customer_id) == (fact.id, "coffee", alice.pk)
    assert "Verydarkroast" not in str(FactEvent.objects.values())


def test_a_name_of_one_customer_leads_to_them_at_once_and_others_to_the_list(alice: Person, bob: Person) -> None:
    person("alice", profile="airline", email="alice.flies@example.org")
    client = browser_of(member(SUPPORT))
    find = reverse("admin:memory_portal_find")
    assert client.get(find, {"q": "bob"}).headers["Location"] == reverse(
        "admin:memory_portal_customer_change", args=[bob.pk]
    )
    assert client.get(find, {"q": "bob@example.org "}).headers["Location"].endswith(f"/{bob.pk}/change/")
    for term, found in (
        ("alice", "2 customers"),
        ("nobody", "0 customers"),
        ("", "3 customers"),
    ):
        assert found in client.get(find, {"q": term}, follow=True).content.decode(), term
