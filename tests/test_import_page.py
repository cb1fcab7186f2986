"""Bring a file from elsewhere: each line a question, nothing remembered before the answer, nothing kept of what is refused."""

from __future__ import annotations

import json
from html import unescape
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils import timezone

from memory_portal import bringing, store, takeout
from memory_portal.enums import Origin
from memory_portal.models import FactEvent, MemoryFact, Proposal
from tests.people import Person

BRING = "/take/bring"


def bring(who: Person, text: str | bytes, name: str = "file.txt") -> Any:
    raw = text if isinstance(text, bytes) else text.encode()
    return who.client.post(BRING, {"file": SimpleUploadedFile(name, raw)})


def page(answer: Any) -> str:
    assert answer.status_code == 200, answer.content.decode()
    return unescape(answer.content.decode())


def asked() -> list[tuple[str, str, str]]:
    return list(Proposal.objects.order_by("pk").values_list("key", "value", "reason"))


def keep_all(who: Person) -> None:
    for pk in Proposal.objects.filter(customer=who.pk).order_by("pk").values_list("pk", flat=True):
        who.post(reverse("keep_suggestion", args=[pk]), {"consent": "on"})


def test_each_line_becomes_a_suggestion_and_nothing_is_remembered_yet(alice: Person) -> None:
    said = page(bring(alice, "Seat: on the aisle\n\n- Coffee: dark roast\nI never eat meat on Fridays\n"))
    assert "3 lines wait for your answer." in said
    assert asked() == [
        ("seat", "on the aisle", "imported"),
        ("coffee", "dark roast", "imported"),
        ("i_never_eat_meat", "I never eat meat on Fridays", "imported"),
    ]
    assert alice.held == {}
    assert "It comes from a file that you brought." in said
    assert FactEvent.objects.filter(kind="imported").count() == 1


def test_a_line_that_is_kept_counts_as_written_by_the_customer(alice: Person) -> None:
    bring(alice, "Coffee: dark roast")
    keep_all(alice)
    fact = MemoryFact.objects.get()
    assert (fact.value, fact.origin, fact.locked) == ("dark roast", Origin.CUSTOMER, True)


def test_refused_lines_are_shown_with_their_reason_and_stored_nowhere(alice: Person) -> None:
    store.choose(alice.pk, {"never_words": ["lottery"]}, alice.actor, now=timezone.now())
    alice.writes("tea", "Green tea")
    lines = {
        "Card: 4111 1111 1111 1111": "It looks like a payment card number.",
        "Hobby: plays the lottery": "It contains one of your words never to remember.",
        f"Long: {'w' * 201}": "Too long",
        "Pin: it is 1234": "",
        "Tea: Green tea": "It is known already.",
    }
    said = page(bring(alice, "\n".join(lines)))
    assert "5 lines we don’t take" in said
    for why in lines.values():
        assert why in said
    assert asked() == []
    rows = str([list(model.objects.values()) for model in (MemoryFact, Proposal, FactEvent)])
    assert "4111" not in rows
    assert "lottery" not in rows


def test_health_waits_for_consent_and_is_gone_after_a_day_without(alice: Person) -> None:
    said = page(bring(alice, "key,value,category\nfood_allergy,Peanuts,safety\n"))
    assert "1 line waits for your answer." in said
    waiting = Proposal.objects.get()
    assert (waiting.expires_at - waiting.created_at).days == 1
    assert alice.post(reverse("keep_suggestion", args=[waiting.pk])).status_code == 422
    keep_all(alice)
    assert alice.held == {"food_allergy": "Peanuts"}


def test_what_contradicts_the_customers_own_word_only_asks(alice: Person) -> None:
    alice.writes("seat", "Window")
    bring(alice, "Seat: aisle")
    assert alice.held == {"seat": "Window"}
    assert len(asked()) == 1


@pytest.mark.parametrize("form", ["json", "csv"])
def test_out_and_in_again_keeps_key_value_and_category(alice: Person, bob: Person, form: str) -> None:
    alice.agrees()
    for key, value, category in (
        ("coffee", "Dark roast, no sugar", "preference"),
        ("formula", "=1+1", "context"),
        ("座位", "靠走道，不要中間", "preference"),
        ("quote", 'She said "hi", twice', "context"),
        ("food_allergy", "Peanuts", "safety"),
    ):
        alice.writes(key, value, category)

    def exported(who: Person) -> Any:
        kept = store.everything_kept(who.pk)
        return kept, (takeout.as_json(kept, timezone.now()) if form == "json" else takeout.as_csv(kept).encode())

    before, file = exported(alice)
    page(bring(bob, file, f"memory.{form}"))
    keep_all(bob)
    after, _file = exported(bob)

    def told(kept: Any) -> list[tuple[str, str, str]]:
        return sorted((fact["key"], fact["value"], fact["category"]) for fact in kept["facts"])

    assert told(after) == told(before)
    assert len(told(after)) == 5


def envelope(alice: Person) -> dict[str, Any]:
    alice.writes("coffee", "Dark")
    found: dict[str, Any] = json.loads(takeout.as_json(store.everything_kept(alice.pk), timezone.now()))
    return found


def test_the_page_says_what_the_signature_says(alice: Person, bob: Person) -> None:
    file = envelope(alice)
    assert "signed by us and unchanged" in page(bring(bob, json.dumps(file)))
    file["memory"]["facts"][0]["value"] = "Light"
    assert "was changed after we signed it" in page(bring(bob, json.dumps(file)))
    file["signature"]["key_id"] = "0" * 16
    assert "signed by somebody else" in page(bring(bob, json.dumps(file)))
    del file["signature"]
    assert "is not signed" in page(bring(bob, json.dumps(file)))


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "There is nothing in this file."),
        (b"\n \n- \n", "There is nothing in this file."),
        (b"\xff\xfe\x00", "not a text file"),
        (b"a\0b", "not a text file"),
        (b"{", "not a JSON file from here"),
        (b"[1, 2]", "not a JSON file from here"),
        (b'{"memory": {"facts": [{"key": 1}]}}', "not a JSON file from here"),
        (b'{"memory": {"facts": []}}', "There is nothing in this file."),
        (b"[" * 100_000, "not a JSON file from here"),
        (b"x\n" * 201, "more than 200 lines"),
        (b'key,value\na,"' + b"x" * 200_000, "not a text file"),
    ],
)
def test_a_file_that_cannot_be_used_is_said_to_be_so(alice: Person, raw: bytes, says: str) -> None:
    answer = bring(alice, raw)
    assert answer.status_code == 422
    assert says in unescape(answer.content.decode())
    assert asked() == []


def test_a_file_over_two_megabytes_is_not_even_read(alice: Person) -> None:
    answer = bring(alice, b"x" * (2 * 1024 * 1024 + 1))
    assert answer.status_code == 422
    assert "at most 2 MB" in answer.content.decode()
    assert alice.post(BRING).status_code == 422


def test_where_memory_is_off_nothing_is_brought(
    alice: Person, settings: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(settings.MEMORY_POLICY.read_text().replace("memory = true", "memory = false"))
    settings.MEMORY_POLICY = policy
    answer = bring(alice, "Seat: aisle")
    assert answer.status_code == 422
    assert "Memory is switched off here." in answer.content.decode()


def test_only_what_is_in_use_comes_in_from_a_spreadsheet() -> None:
    text = (
        "State,Key,Value\nactive,a,one\nformer_version,a,zero\nsuggestion,b,two\nfrozen,c,three\n,d,four\n"
        "active,,five words of no name\n"
    )
    found = bringing.read(text.encode(), default_category="context")
    assert [(line.key, line.value) for line in found.lines] == [
        ("a", "one"),
        ("c", "three"),
        ("d", "four"),
        ("five words of no", "five words of no name"),
    ]
    assert {line.category for line in found.lines} == {"context"}


def test_text_runs_nowhere_on_the_page(alice: Person) -> None:
    answer = bring(alice, "Note: <img src=x onerror=alert(1)>\n<script>alert(1)</script>\n")
    assert b"<script>alert" not in answer.content
    assert b"<img src=x" not in answer.content
