"""Take it with you: a fresh proof, a link that works once, three forms of the file, its signature, and a mail without a value."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from django.core import mail
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memory_portal import signing, takeout
from memory_portal.models import FactEvent, Ticket
from tests.figures import Figure
from tests.people import Person

ROOT = Path(__file__).resolve().parent.parent
TAKE, CONFIRM = "/take/", "/confirm/?next=/take/"


@pytest.fixture(autouse=True)
def fresh_limits() -> None:
    cache.clear()


def link(who: Person, form: str = "json") -> str:
    answer = who.post(TAKE, {"form": form})
    assert answer.status_code == 302, answer.content.decode()
    return answer.headers["Location"]


def taken(who: Person, form: str = "json") -> Any:
    who.proves()
    answer = who.post(link(who, form))
    assert answer.status_code == 200
    return answer


def sent_code() -> str:
    return re.findall(r"^\s+(\d{6})$", str(mail.outbox[-1].body), re.MULTILINE)[0]


def test_a_code_by_mail_opens_the_way_to_the_file(alice: Person) -> None:
    fact = alice.fact("coffee", "Verydarkroast")
    assert alice.get(TAKE).headers["Location"] == "/confirm/?next=%2Ftake%2F"
    assert "alice@example.org" in alice.sees(CONFIRM)
    before = alice.client.session.session_key
    assert alice.post(CONFIRM).headers["Location"] == "/confirm/code/?next=%2Ftake%2F"
    assert mail.outbox[-1].to == ["alice@example.org"]
    answer = alice.post("/confirm/code/?next=/take/", {"code": sent_code()})
    assert answer.headers["Location"] == TAKE
    assert alice.client.session.session_key != before, "a session copied before the proof is worth nothing"
    assert "Make the file" in alice.sees(TAKE)
    found = json.loads(alice.post(link(alice)).content)
    assert found["memory"]["facts"][0]["id"] == fact.id
    assert found["memory"]["facts"][0]["value"] == "Verydarkroast"


def test_a_wrong_code_opens_nothing(alice: Person) -> None:
    alice.post(CONFIRM)
    wrong = "000000" if sent_code() != "000000" else "111111"
    assert "That is not the code we sent." in alice.post("/confirm/code/", {"code": wrong}).content.decode()
    assert alice.get(TAKE).status_code == 302


@pytest.mark.parametrize("there", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_the_way_back_leads_nowhere_else(alice: Person, there: str) -> None:
    answer = alice.client.post("/confirm/", {"next": there})
    assert answer.headers["Location"] == "/confirm/code/?next=%2Fcontrol%2F"


STEP_UP = [("take", ()), ("clear", ()), ("close", ())]


@pytest.mark.parametrize(("name", "args"), STEP_UP)
@pytest.mark.parametrize("state", ["never", "six minutes ago", "another's", "by the company"])
def test_a_stale_session_takes_nothing_along_or_away(
    alice: Person, bob: Person, name: str, args: tuple[str, ...], state: str
) -> None:
    alice.fact("coffee", "Dark")
    if state == "six minutes ago":
        alice.proves(minutes_ago=6)
    elif state == "by the company":
        alice.proves(method="socialaccount")
    elif state == "another's":
        alice.proves()
        session = alice.client.session
        session["account_authentication_methods_user"] = str(bob.customer.user_id)
        session.save()
    data = {"form": "json", "sure": "forget everything"}
    for answer in (alice.get(reverse(name)), alice.post(reverse(name), data)):
        assert answer.headers["Location"].startswith("/confirm/?next=")
    assert alice.held == {"coffee": "Dark"}
    assert not Ticket.objects.exists()


def test_without_an_address_the_page_says_what_to_do(alice: Person) -> None:
    alice.customer.email = ""
    alice.customer.save(update_fields=["email"])
    page = unescape(alice.sees(CONFIRM))
    assert "We have no e-mail address of yours." in page
    assert alice.post(CONFIRM).status_code == 200
    assert mail.outbox == []
    alice.proves(method="socialaccount")
    assert alice.get(TAKE).status_code == 200, "who just came from the company is taken at its word"


def test_a_form_that_is_none_is_refused(alice: Person) -> None:
    alice.proves()
    assert alice.post(TAKE, {"form": "exe"}).status_code == 422
    assert alice.post(TAKE).status_code == 422


def test_looking_at_the_link_uses_nothing_up(alice: Person) -> None:
    alice.proves()
    there = link(alice)
    for _ in range(3):
        assert "Your file is ready" in alice.sees(there)
    assert alice.post(there).status_code == 200


def test_the_link_works_once_and_a_hundred_more_tries_are_not_found(alice: Person, figure: Figure) -> None:
    alice.proves()
    there = link(alice)
    assert alice.post(there).status_code == 200
    for _ in range(100):
        assert alice.post(there).status_code == 404
    assert FactEvent.objects.filter(kind="exported").count() == 1
    figure("R8", "100 reuses of a link: 0 worked")


def test_a_hundred_tries_by_another_customer_are_not_found_and_spoil_nothing(
    alice: Person, bob: Person, figure: Figure
) -> None:
    alice.proves()
    bob.proves()
    there = link(alice)
    for _ in range(50):
        assert bob.get(there).status_code == 404
        assert bob.post(there).status_code == 404
    assert Client().post(there).status_code == 302
    assert alice.post(there).status_code == 200
    figure("R8", "100 tries by another customer: 0 worked")


def test_the_link_ends_after_fifteen_minutes_and_with_the_next_one(alice: Person) -> None:
    alice.proves()
    first, second = link(alice), link(alice)
    assert alice.post(first).status_code == 404
    Ticket.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert alice.post(second).status_code == 404
    third = link(alice)
    assert Ticket.objects.count() == 1, "those that are over are removed"
    row = Ticket.objects.get()
    assert row.expires_at - row.created_at == timedelta(minutes=15)
    assert third.split("/")[-2] not in str(Ticket.objects.values())


def test_no_link_that_never_was_is_found(alice: Person) -> None:
    for token in ("nonsense", "%00", "x" * 500):
        assert alice.post(f"/take/{token}/").status_code == 404


def test_a_mail_says_that_a_file_was_made_and_nothing_that_is_in_it(alice: Person) -> None:
    alice.fact("coffee", "Verydarkroast")
    taken(alice)
    (message,) = mail.outbox
    assert message.to == ["alice@example.org"]
    assert message.subject == "Your memory was exported"
    text = f"{message.subject} {message.body}".lower()
    assert "coffee" not in text
    assert "verydarkroast" not in text


def test_a_mail_server_that_fails_spoils_no_export(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **kwargs: Any) -> int:
        raise OSError("no route to alice@example.org")

    monkeypatch.setattr("django.core.mail.backends.locmem.EmailBackend.send_messages", broken)
    taken(alice)


def test_the_customer_sees_in_activity_that_it_was_taken(alice: Person) -> None:
    taken(alice)
    assert "You took your memory with you" in alice.sees(reverse("activity"))


def test_the_answer_is_a_file_that_no_cache_keeps(alice: Person) -> None:
    answer = taken(alice)
    assert answer.headers["Content-Disposition"].startswith('attachment; filename="my-memory-')
    assert answer.headers["Cache-Control"] == "no-store"


# --- the JSON file ----------------------------------------------------------------------------------------------------


def full(who: Person) -> None:
    """Something in every list of the file."""
    who.agrees()
    fact = who.fact("coffee", "Dark roast", quote="I drink dark roast")
    who.post(reverse("correct", args=[fact.id]), {"value": "Light", "category": "preference", "version": fact.version})
    who.says("coffee", "Medium roast", ago=0)
    who.fact("food_allergy", "Peanuts", category="safety")
    gone = who.fact("tea", "Green tea")
    who.post(reverse("forget", args=[gone.id]))
    who.is_read_by("helper")


def test_the_file_keeps_to_its_published_schema(alice: Person) -> None:
    full(alice)
    schema = json.loads((ROOT / "static" / "export.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    found = json.loads(taken(alice).content)
    jsonschema.Draft202012Validator(schema).validate(found)
    sections = ("facts", "suggestions", "not_learned_again", "consents", "events", "reads")
    assert all(found["memory"][name] for name in sections)


def test_every_statement_says_whose_it_is(alice: Person) -> None:
    full(alice)
    found = json.loads(taken(alice).content)["memory"]
    sources = {fact["key"]: fact["source"] for fact in found["facts"]}
    assert sources == {"coffee": "written_by_you", "food_allergy": "stated"}
    (coffee,) = (fact for fact in found["facts"] if fact["key"] == "coffee")
    assert [(former["value"], former["source"]) for former in coffee["former_versions"]] == [("Dark roast", "stated")]
    assert found["suggestions"][0]["reason"] == "differs_from_correction"
    assert found["reads"][0]["agent"] == "helper"
    assert set(found["reads"][0]["fact_keys"]) == {"coffee", "food_allergy"}


def test_the_signature_holds_and_one_changed_letter_breaks_it(alice: Person, tmp_path: Path) -> None:
    full(alice)
    raw = taken(alice).content
    file = tmp_path / "memory.json"
    file.write_bytes(raw)
    out = io.StringIO()
    call_command("verify_export", str(file), stdout=out)
    assert "genuine" in out.getvalue()
    file.write_bytes(raw.replace(b'"Light"', b'"Lighu"'))
    with pytest.raises(CommandError, match="changed"):
        call_command("verify_export", str(file))
    published = Client().get("/.well-known/memory-portal-key").json()
    file.write_bytes(raw)
    call_command("verify_export", str(file), "--key", published["public_key"], stdout=out)
    foreign = signing.PublicKey(b"\1" * 32).text
    with pytest.raises(CommandError, match="another key"):
        call_command("verify_export", str(file), "--key", foreign)


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '"x"', '{"memory": {}}', "\xff"])
def test_what_is_no_signed_file_is_said_to_be_none(text: str, tmp_path: Path) -> None:
    file = tmp_path / "memory.json"
    file.write_text(text, "latin-1")
    with pytest.raises(CommandError):
        call_command("verify_export", str(file))
    with pytest.raises(CommandError):
        call_command("verify_export", str(tmp_path / "nowhere.json"))


@pytest.mark.parametrize("value", ["", "A", "!!!!", None, 5, "AAAA"])
def test_a_broken_signature_is_a_changed_file(value: Any) -> None:
    envelope = signing.signed({"facts": []})
    envelope["signature"]["value"] = value
    assert signing.checked(envelope) is signing.Verdict.CHANGED


def test_a_public_key_has_32_bytes() -> None:
    with pytest.raises(ValueError, match="32"):
        signing.PublicKey.of("AAAA")


# --- the others -------------------------------------------------------------------------------------------------------

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "'=1+1", "''=x"]


@pytest.mark.parametrize("cell", FORMULAS)
def test_no_cell_begins_like_a_formula_and_nothing_is_lost(cell: str) -> None:
    assert not takeout.tame(cell).startswith(takeout.FORMULA)
    assert takeout.untamed(takeout.tame(cell)) == cell


@pytest.mark.parametrize("cell", ["", "plain", "it's", "'quoted'", "a=b"])
def test_other_cells_stay_as_they_are(cell: str) -> None:
    assert takeout.tame(cell) == cell
    assert takeout.untamed(cell) == cell


def test_the_spreadsheet_has_a_line_for_every_statement(alice: Person) -> None:
    full(alice)
    alice.writes("sum", "=HYPERLINK(1)")
    text = taken(alice, "csv").content.decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["state"] for row in rows] == ["active", "former_version", "active", "active", "suggestion"]
    assert rows[0]["value"] == "Light"
    assert rows[1]["quote"] == "I drink dark roast"
    assert "'=HYPERLINK(1)" in [row["value"] for row in rows]


def test_the_page_to_print_holds_everything_and_runs_nothing(alice: Person) -> None:
    full(alice)
    alice.writes("html", "5 < 6 & more")
    page = taken(alice, "html").content.decode()
    for said in (
        "Light",
        "Dark roast",
        "Medium roast",
        "Peanuts",
        "I drink dark roast",
        "Helper",
        "5 &lt; 6 &amp; more",
    ):
        assert said in page, said
    assert "<script" not in page
    assert "default-src 'none'" in page
