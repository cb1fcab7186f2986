"""What we remember about you: every fact with its proof, corrected, forgotten, brought back, added; htmx or not."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import django_htmx
import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from memory_portal import store
from memory_portal.enums import FactState, FreezeReason, Origin
from memory_portal.models import FactEvent, MemoryFact, Proposal, Tombstone
from tests.people import HTMX, Person, person

QUERIES = 8
"""Session, user, customer; facts, who read them, which are frozen; how many suggestions wait."""


def text(response: Any) -> str:
    return unescape(response.content.decode())


def is_fragment(response: Any) -> bool:
    return b"<html" not in response.content


# --- the list ---------------------------------------------------------------------------------------------------------


def test_every_fact_is_shown_with_its_proof_its_source_and_who_used_it(alice: Person) -> None:
    alice.fact("seat_preference", "Aisle", quote="I always sit on the aisle", agent="booking assistant", ago=3)
    alice.is_read_by("delivery assistant")
    page = unescape(alice.sees())
    said_at = timezone.localtime(timezone.now() - timedelta(days=3))
    for shown in (
        "Seat preference",
        "Aisle",
        "What you like",
        "You said it",
        "I always sit on the aisle",
        "Booking assistant",
        "Where this came from",
        f"{said_at.day}\u00a0{said_at:%B}\u00a0{said_at.year}",
        "Who used it: Delivery assistant, today",
        "Kept until",
        "There is 1, and this is all of it.",
    ):
        assert shown in page, shown
    assert "seat_preference" not in re.sub(r'value="[^"]*"', "", page), "codes never appear"


def test_facts_stand_under_their_kind_with_safety_first(alice: Person) -> None:
    alice.agrees()
    alice.fact("household", "Two adults", category="context")
    alice.fact("coffee", "Dark roast")
    alice.fact("substitutions", "Never swap baby food", category="constraint")
    alice.fact("food_allergy", "Peanuts", category="safety")
    heads = re.findall(r'<section class="group (\w+)"', alice.sees())
    assert heads == ["safety", "constraint", "preference", "context"]


def test_nothing_of_another_customer_is_ever_on_the_page(alice: Person, bob: Person) -> None:
    bob.fact("coffee", "Decaf only, says Bob")
    bob.is_read_by("snooping assistant")
    alice.fact("coffee", "Dark roast")
    page = alice.sees()
    assert "Bob" not in page
    assert "nooping" not in page
    assert "There is 1" in page


@pytest.mark.parametrize("facts", [1, 3])
def test_the_list_makes_the_same_queries_for_any_number_of_facts(
    alice: Person, facts: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for n in range(facts):
        alice.fact(f"thing_{n}", ["Dark roast", "Oat milk", "Rye bread"][n])
    alice.is_read_by("shopping assistant")
    with django_assert_num_queries(QUERIES):
        alice.sees()


def test_a_page_holds_fifty_and_the_rest_is_one_page_on(alice: Person) -> None:
    many(alice, 51)
    first, second = alice.sees(), alice.sees("/?page=2")
    assert first.count('<li class="fact') == 50
    assert second.count('<li class="fact') == 1
    assert "There are 51, and this is all of them." in first
    assert alice.sees("/?page=99").count('<li class="fact') == 1, "past the end is the last page"


def many(alice: Person, count: int) -> None:
    now = timezone.now()
    MemoryFact.objects.bulk_create(
        MemoryFact(
            customer=alice.customer,
            key=f"thing_{n}",
            value=f"Likes kind {n} better than every other kind in the shop",
            category=["preference", "constraint", "context"][n % 3],
            source_quote=f"I like kind {n} better than every other kind in the shop",
            source_session_id="abcdefabcdef",
            agent="shopping assistant",
            said_at=now - timedelta(hours=n),
            origin=Origin.EXTRACTION,
            created_at=now - timedelta(hours=n),
            updated_at=now - timedelta(hours=n),
            expires_at=now + timedelta(days=300),
        )
        for n in range(count)
    )


def test_a_full_page_with_htmx_weighs_less_than_a_hundred_kilobytes(alice: Person) -> None:
    many(alice, 200)
    page = alice.client.get("/", headers={"accept-encoding": "gzip"})
    assert page.headers["Content-Encoding"] == "gzip"
    script = Path(django_htmx.__file__).parent / "static" / "django_htmx" / "htmx-2.min.js"
    assert len(page.content) + script.stat().st_size < 100_000


@pytest.mark.parametrize(
    ("value", "query"),
    [
        ("Dark roast, whole beans", "ROAST"),
        ("Café crème", "creme"),
        ("我長途航班通常坐走道", "走道"),
        ("قهوة داكنة", "قهوة"),
        ("ไม่ใส่ผักชี", "ผักชี"),
        ("Straße ohne Treppe", "strasse"),
        ("Ｏａｔ milk", "oat"),
    ],
)
def test_search_finds_words_in_every_script(alice: Person, value: str, query: str) -> None:
    alice.fact("thing", value, quote=value)
    alice.fact("other", "Something else entirely")
    page = alice.get("/", htmx=True, data={"q": query})
    assert value in text(page)
    assert "Something else" not in text(page)


def test_filters_narrow_the_list_and_stand_in_the_address(alice: Person) -> None:
    alice.fact("coffee", "Dark roast")
    alice.is_read_by("recipe assistant")
    alice.writes("bread", "Rye only")
    by_me, used, never = (
        alice.sees(f"/?{query}") for query in ("from=customer", "used=recipe assistant", "used=never")
    )
    assert "Rye only" in by_me
    assert "Dark roast" not in by_me
    assert "Dark roast" in used
    assert "Rye only" not in used
    assert "Rye only" in never
    assert '<option value="customer" selected>' in by_me, "the address reproduces the view"
    assert "1 of 2 fits" in by_me


def test_an_empty_page_says_what_will_happen_and_opens_the_form(alice: Person) -> None:
    page = unescape(alice.sees())
    assert "Nothing yet." in page
    assert re.search(r'<details class="sheet add" id="add"\s+open>', page)


def test_an_unknown_kind_stands_under_its_own_name(alice: Person) -> None:
    alice.fact("coffee", "Dark roast")
    MemoryFact.objects.update(category="loyalty_tier")
    assert "Loyalty tier" in alice.sees()


def test_a_pause_is_said_on_the_page_and_is_not_deletion(alice: Person) -> None:
    alice.fact("coffee", "Dark roast")
    store.pause(alice.pk, "using", alice.actor, now=timezone.now())
    page = unescape(alice.sees())
    assert "Paused is not deleted" in page
    assert "Dark roast" in page
    alice.post(reverse("resume_using"), {"from": "facts"})
    assert "Paused is not deleted" not in alice.sees()


def test_signed_in_pages_are_kept_by_no_cache_and_run_no_foreign_script(alice: Person) -> None:
    response = alice.get("/")
    policy = response.headers["Content-Security-Policy"]
    assert response.headers["Cache-Control"] == "no-store"
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<script(?![^>]*\bsrc=)|\sstyle=|\son\w+=", response.content.decode()), "nothing inline"


def test_what_a_customer_wrote_is_never_markup(alice: Person) -> None:
    alice.writes("coffee", "Dark & bold")
    MemoryFact.objects.update(value="<img src=x onerror=alert(1)>", source_quote="</blockquote><script>1</script>")
    for path in ("/", f"/facts/{MemoryFact.objects.get().pk}/correct", f"/facts/{MemoryFact.objects.get().pk}/forget"):
        page = alice.sees(path)
        assert "<img" not in page
        assert "<script>1" not in page


# --- correct ----------------------------------------------------------------------------------------------------------


def test_a_correction_swaps_the_row_and_counts_at_once(alice: Person) -> None:
    fact = alice.fact("coffee", "Dark roast")
    form = alice.get(reverse("correct", args=[fact.id]), htmx=True)
    assert is_fragment(form)
    assert "Dark roast" in text(form)
    saved = correction(alice, fact, "Light roast", htmx=True)
    assert saved.status_code == 200
    assert is_fragment(saved)
    assert text(saved).count("<li") > 0
    assert "Light roast" in text(saved)
    assert "You wrote it" in text(saved)
    assert alice.held == {"coffee": "Light roast"}


def correction(who: Person, fact: store.Fact, value: str, *, htmx: bool = False, **more: Any) -> Any:
    data = {"value": value, "category": fact.category, "version": fact.version} | more
    return who.post(reverse("correct", args=[fact.id]), data, htmx=htmx)


def test_a_correction_works_without_javascript(alice: Person) -> None:
    fact = alice.fact("coffee", "Dark roast")
    assert "<html" in alice.sees(reverse("correct", args=[fact.id]))
    saved = correction(alice, fact, "Light roast")
    assert saved.status_code == 302
    assert saved.headers["Location"] == f"/#fact-{fact.id}"
    page = alice.sees()
    assert "Saved. It counts from now on." in page
    assert "Light roast" in page


def test_a_correction_may_move_a_fact_to_another_kind(alice: Person) -> None:
    fact = alice.fact("coffee", "Dark roast")
    correction(alice, fact, "Dark roast", category="constraint")
    assert MemoryFact.objects.get().category == "constraint"


@pytest.mark.parametrize("htmx", [True, False])
def test_a_correction_against_an_older_version_shows_both_and_saves_nothing(alice: Person, htmx: bool) -> None:
    fact = alice.fact("coffee", "Dark roast")
    correction(alice, fact, "Medium roast")
    late = correction(alice, fact, "Light roast", htmx=htmx)
    assert late.status_code == 409
    assert is_fragment(late) is htmx
    assert "Light roast" in text(late)
    assert "Medium roast" in text(late)
    assert alice.held == {"coffee": "Medium roast"}
    correction(alice, fact, "Light roast", htmx=htmx, version=fact.version + 1)
    assert alice.held == {"coffee": "Light roast"}


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("x" * 201, "at most 200 characters"),
        ("", "Please write something here."),
        ("\u200b\u200b", "Please write something here."),
        ("nul\0", "Null characters are not allowed."),
        ("x" * 5000, "at most 200 characters"),
        ("4111 1111 1111 1111", "It looks like a payment card number."),
    ],
)
def test_what_cannot_be_kept_is_said_beside_the_field_and_nothing_is_cut(alice: Person, value: str, says: str) -> None:
    fact = alice.fact("coffee", "Dark roast")
    answer = correction(alice, fact, value, htmx=True)
    assert answer.status_code == 422
    assert is_fragment(answer)
    assert says in text(answer)
    assert alice.held == {"coffee": "Dark roast"}
    if value.strip("\0").isalnum():
        assert value.strip("\0") in text(answer), "the text stays in the field"


def test_a_body_too_large_is_refused_plainly(alice: Person) -> None:
    fact = alice.fact("coffee", "Dark roast")
    answer = correction(alice, fact, "x" * 300_000)
    assert answer.status_code == 400
    assert "could not read" in text(answer)


def test_correcting_towards_health_asks_for_consent_in_the_same_step(alice: Person) -> None:
    fact = alice.fact("food", "Likes soup")
    asked = correction(alice, fact, "Allergic to celery", category="safety", htmx=True)
    assert asked.status_code == 422
    assert "Agree and save" in text(asked)
    assert store.consent(alice.pk) is None
    correction(alice, fact, "Allergic to celery", category="safety", consent="on", htmx=True)
    assert alice.held == {"food": "Allergic to celery"}
    assert store.consent(alice.pk)


# --- forget and undo --------------------------------------------------------------------------------------------------


def test_forgetting_asks_first_and_says_what_will_happen(alice: Person) -> None:
    alice.agrees()
    fact = alice.fact("food_allergy", "Peanuts", category="safety")
    question = alice.get(reverse("forget", args=[fact.id]), htmx=True)
    assert is_fragment(question)
    for said in ("Forget “Food allergy”?", "won’t look out for", "erased at once", "won’t be learned again"):
        assert said in text(question)
    assert alice.held == {"food_allergy": "Peanuts"}, "asking erases nothing"
    assert "<html" in alice.sees(reverse("forget", args=[fact.id]))


def test_forgetting_leaves_a_row_that_can_bring_it_back(alice: Person) -> None:
    fact = alice.fact("coffee", "Dark roast")
    gone = alice.post(reverse("forget", args=[fact.id]), htmx=True)
    assert is_fragment(gone)
    assert "Forgotten." in text(gone)
    assert "There is nothing here now." in text(gone)
    assert alice.held == {}
    back = alice.post(reverse("undo"), hidden(gone), htmx=True)
    assert is_fragment(back)
    assert "Dark roast" in text(back)
    assert alice.held == {"coffee": "Dark roast"}
    assert MemoryFact.objects.get().origin == Origin.CUSTOMER
    assert not Tombstone.objects.exists()


def hidden(response: Any) -> dict[str, list[str]]:
    fields: dict[str, list[str]] = {}
    for name, value in re.findall(r'<input type="hidden" name="(key|category|value)" value="([^"]*)"', text(response)):
        fields.setdefault(name, []).append(value)
    return fields


def test_forgetting_and_undoing_work_without_javascript(alice: Person) -> None:
    fact = alice.fact("coffee", "Dark roast")
    page = alice.post(reverse("forget", args=[fact.id]))
    assert "<html" in text(page)
    assert "Forgotten." in text(page)
    assert alice.held == {}
    assert alice.post(reverse("undo"), hidden(page)).status_code == 302
    assert alice.held == {"coffee": "Dark roast"}


def test_the_server_keeps_nothing_to_undo_from(alice: Person) -> None:
    fact = alice.fact("coffee", "Verydarkroast")
    alice.post(reverse("forget", args=[fact.id]))
    assert "Verydarkroast" not in alice.sees()
    assert "Verydarkroast" not in alice.sees(reverse("activity"))
    assert "Verydarkroast" not in str(list(FactEvent.objects.values()))
    assert "Verydarkroast" not in str(dict(alice.client.session))


def test_several_go_in_one_act_and_come_back_in_one(alice: Person) -> None:
    facts = [alice.fact(key, value) for key, value in (("coffee", "Dark"), ("tea", "Green"), ("milk", "Oat"))]
    ids = [fact.id for fact in facts[:2]]
    assert 'type="checkbox"' in alice.sees("/?select=1")
    question = alice.get(reverse("forget_several"), htmx=True, data={"id": ids})
    assert "Forget these 2 things?" in text(question)
    twice = [*ids, ids[0]]
    assert "Forget these 2 things?" in text(alice.get(reverse("forget_several"), htmx=True, data={"id": twice}))
    gone = alice.post(reverse("forget_several"), {"id": twice}, htmx=True)
    assert is_fragment(gone)
    assert 'id="list"' in text(gone)
    assert alice.held == {"milk": "Oat"}
    alice.post(reverse("undo"), hidden(gone), htmx=True)
    assert alice.held == {"milk": "Oat", "coffee": "Dark", "tea": "Green"}


def test_choosing_nothing_to_forget_says_so(alice: Person) -> None:
    alice.fact("coffee", "Dark")
    assert alice.get(reverse("forget_several")).headers["Location"] == "/?select=1"
    assert "HX-Redirect" in alice.get(reverse("forget_several"), htmx=True).headers
    assert "Choose at least one" in alice.sees()


def test_several_with_one_that_is_not_there_erases_none(alice: Person, bob: Person) -> None:
    mine, theirs = alice.fact("coffee", "Dark"), bob.fact("coffee", "Decaf")
    assert alice.post(reverse("forget_several"), {"id": [mine.id, theirs.id]}).status_code == 404
    assert alice.held == {"coffee": "Dark"}
    assert bob.held == {"coffee": "Decaf"}


def test_all_from_one_conversation_go_together_but_not_what_was_rewritten(alice: Person) -> None:
    one = alice.fact("coffee", "Dark", session="a")
    alice.fact("tea", "Green", session="a")
    kept = alice.fact("milk", "Oat", session="a")
    alice.fact("bread", "Rye", session="b")
    correction(alice, kept, "Soy")
    question = alice.get(reverse("forget_conversation", args=[one.id]), htmx=True)
    assert "Forget these 2 things?" in text(question)
    alice.post(reverse("forget_conversation", args=[one.id]), htmx=True)
    assert alice.held == {"milk": "Soy", "bread": "Rye"}


# --- freeze, keep, check ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "why"), [("wrong", FreezeReason.WRONG), ("not_me", FreezeReason.NOT_ME)])
def test_a_contested_fact_is_frozen_and_can_be_right_after_all(alice: Person, name: str, why: FreezeReason) -> None:
    fact = alice.fact("pets", "Has a dog")
    row = alice.post(reverse(name, args=[fact.id]), htmx=True)
    assert is_fragment(row)
    assert "Frozen." in text(row)
    assert "No assistant sees it." in text(row)
    assert MemoryFact.objects.get().freeze_reason == why
    row = alice.post(reverse("thaw", args=[fact.id]), htmx=True)
    assert "In use again" in text(row)
    assert MemoryFact.objects.get().state == FactState.ACTIVE
    assert alice.post(reverse(name, args=[fact.id])).status_code == 302, "and without JavaScript"


@pytest.mark.parametrize(
    ("how", "days"), [("week", 7), ("month", 30), ("year", 365), ("years", 1095), ("always", None)]
)
def test_a_fact_is_kept_longer_or_let_go_sooner(alice: Person, how: str, days: int | None) -> None:
    fact = alice.fact("coffee", "Dark")
    assert "Keep it" in text(alice.get(reverse("keep", args=[fact.id]), htmx=True))
    alice.post(reverse("keep", args=[fact.id]), {"how": how}, htmx=True)
    until = MemoryFact.objects.get().expires_at
    assert (until is None) is (days is None)
    if until and days:
        assert abs(until - timezone.now() - timedelta(days=days)) < timedelta(minutes=1)


def test_keeping_without_a_choice_is_a_form_error(alice: Person) -> None:
    fact = alice.fact("coffee", "Dark")
    assert alice.post(reverse("keep", args=[fact.id]), htmx=True).status_code == 422


def test_a_fact_near_its_end_offers_to_be_kept(alice: Person) -> None:
    fact = alice.fact("coffee", "Dark")
    MemoryFact.objects.update(expires_at=timezone.now() + timedelta(days=18))
    page = alice.sees()
    assert "18 days from now" in page
    assert f'href="{reverse("keep", args=[fact.id])}"' in page


def test_a_safety_fact_is_not_given_an_end_but_asks_to_be_checked(alice: Person) -> None:
    alice.agrees()
    fact = alice.fact("food_allergy", "Peanuts", category="safety")
    assert "Doesn’t run out." in alice.sees()
    assert alice.get(reverse("keep", args=[fact.id])).status_code == 404
    MemoryFact.objects.update(review_at=timezone.now() - timedelta(days=1))
    assert "does this still hold?" in alice.sees()
    assert "Noted that it still holds" in text(alice.post(reverse("reviewed", args=[fact.id]), htmx=True))


# --- add --------------------------------------------------------------------------------------------------------------


def test_adding_puts_the_fact_in_its_place_as_written_by_the_customer(alice: Person) -> None:
    data = {"key": "Coffee", "category": "preference", "value": "Dark roast"}
    assert alice.post(reverse("add"), data, htmx=True).headers["HX-Redirect"].startswith("/#fact-"), "a first one"
    data = {"key": "Delivery time", "category": "constraint", "value": "After six"}
    added = alice.post(reverse("add"), data, htmx=True)
    assert is_fragment(added)
    assert 'id="list"' in text(added)
    assert "Remembered. It counts from now on." in text(added)
    assert alice.held == {"coffee": "Dark roast", "delivery_time": "After six"}
    again = alice.post(reverse("add"), data | {"value": "After seven"})
    assert again.status_code == 302
    assert alice.held["delivery_time"] == "After seven"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"value": "x" * 201}, "at most 200 characters"),
        ({"key": "k" * 65}, "at most 64 characters"),
        ({"key": "!!!"}, "Please write something here."),
        ({"key": "refund_limit"}, "Facts of this name are not kept."),
        ({"value": "my password is hunter2horse"}, "password"),
        ({"category": "no_such_kind"}, "not one of the available choices"),
        ({"value": "nul\0"}, "Null characters"),
        ({"key": "\0"}, "Null characters"),
    ],
)
def test_adding_what_cannot_be_kept_names_the_field_and_the_limit(
    alice: Person, change: dict[str, str], says: str
) -> None:
    data = {"key": "Delivery time", "category": "constraint", "value": "After six"} | change
    answer = alice.post(reverse("add"), data, htmx=True)
    assert answer.status_code == 422
    assert answer.headers["HX-Retarget"] == "#add"
    assert says in text(answer)
    assert alice.held == {}
    assert alice.post(reverse("add"), data).status_code == 422


def test_adding_something_about_safety_asks_for_consent_in_the_same_step(alice: Person) -> None:
    data = {"key": "Allergy", "category": "safety", "value": "Allergic to celery"}
    asked = alice.post(reverse("add"), data, htmx=True)
    assert asked.status_code == 422
    assert "Agree and remember this" in text(asked)
    assert alice.held == {}
    alice.post(reverse("add"), data | {"consent": "on"}, htmx=True)
    assert alice.held == {"allergy": "Allergic to celery"}
    assert not Proposal.objects.exists(), "the question is answered"


def test_with_memory_off_the_page_says_so_and_adds_nothing(alice: Person, settings: Any, tmp_path: Path) -> None:
    alice.fact("coffee", "Dark")
    settings.MEMORY_POLICY = switched_off(settings.MEMORY_POLICY, tmp_path)
    assert "Memory is switched off here." in alice.sees()
    data = {"key": "Delivery time", "category": "constraint", "value": "After six"}
    answer = alice.post(reverse("add"), data, htmx=True)
    assert answer.status_code == 422
    assert "Memory is switched off here." in text(answer)
    assert correction(alice, store.facts(alice.pk, now=timezone.now())[0], "Light", htmx=True).status_code == 422
    alice.post(reverse("forget", args=[MemoryFact.objects.get().pk]))
    assert alice.held == {}, "forgetting works on"


def switched_off(policy: Path, folder: Path) -> Path:
    off = folder / "off.toml"
    off.write_text(Path(policy).read_text("utf-8").replace("\nmemory = true", "\nmemory = false"), "utf-8")
    return off


# --- who may, and how -------------------------------------------------------------------------------------------------

BY_ID = {
    "fact": "get",
    "correct": "get post",
    "forget": "get post",
    "forget_conversation": "get post",
    "wrong": "post",
    "not_me": "post",
    "thaw": "post",
    "keep": "get post",
    "reviewed": "post",
}


@pytest.mark.parametrize("htmx", [True, False])
@pytest.mark.parametrize("name", BY_ID)
def test_another_customers_fact_answers_exactly_as_one_that_never_was(
    alice: Person, bob: Person, name: str, htmx: bool
) -> None:
    theirs = bob.fact("coffee", "Decaf only")
    for method in BY_ID[name].split():
        data = {"value": "Mine now", "category": "preference", "version": 1, "how": "week"}
        call = alice.get if method == "get" else alice.post
        not_mine = call(reverse(name, args=[theirs.id]), data=data, htmx=htmx)
        never = call(reverse(name, args=[theirs.id + 1000]), data=data, htmx=htmx)
        assert not_mine.status_code == never.status_code == 404
        assert shape(not_mine) == shape(never)
        assert not_mine.headers["Cache-Control"] == "no-store"
    assert bob.held == {"coffee": "Decaf only"}


def shape(response: Any) -> str:
    """The page but for the token and the address, which differ on every page."""
    return re.sub(r'(name="(csrfmiddlewaretoken|next)" value=")[^"]*', r"\1", response.content.decode())


@pytest.mark.parametrize("name", [name for name, methods in BY_ID.items() if methods == "post"])
def test_what_changes_something_is_no_link(alice: Person, name: str) -> None:
    fact = alice.fact("coffee", "Dark")
    assert alice.get(reverse(name, args=[fact.id])).status_code == 405
    assert alice.client.put(reverse("facts")).status_code == 405
    assert alice.get(reverse("undo")).status_code == 405


def test_without_signing_in_every_page_leads_to_the_sign_in_and_back(db: None) -> None:
    client = Client()
    page = client.get("/?q=coffee")
    assert page.status_code == 302
    assert page.headers["Location"] == "/sign-in/?next=%2F%3Fq%3Dcoffee"
    action = client.post("/facts/1/forget", headers=HTMX)
    assert action.status_code == 200
    assert action.headers["HX-Redirect"] == "/sign-in/?next=%2F"
    assert client.post("/facts/1/forget").headers["Location"] == "/sign-in/?next=%2F"


def test_a_forged_form_is_refused(alice: Person) -> None:
    fact = alice.fact("coffee", "Dark")
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = alice.client.cookies
    answer = strict.post(reverse("forget", args=[fact.id]))
    assert answer.status_code == 403
    assert "open for too long" in answer.content.decode()
    assert alice.held == {"coffee": "Dark"}


def test_an_expired_fact_is_invisible_from_its_instant_on(alice: Person) -> None:
    fact = alice.fact("coffee", "Dark roast")
    MemoryFact.objects.update(expires_at=timezone.now())
    assert "Dark roast" not in alice.sees()
    assert alice.get(reverse("correct", args=[fact.id])).status_code == 404


def test_the_page_wears_the_brand_of_the_customers_profile(db: None) -> None:
    page = person("dana", profile="airline").sees()
    assert "Clearsky Air" in page
    assert "brands/clearsky.css" in page


@pytest.mark.parametrize(("how", "days"), [("week", 7), ("years", 1095), ("always", None), ("", 365)])
def test_a_correction_may_say_how_long_it_is_kept(alice: Person, how: str, days: int | None) -> None:
    fact = alice.fact("coffee", "Dark roast")
    data = {"value": "Light roast", "category": "preference", "version": fact.version, "how": how}
    alice.post(reverse("correct", args=[fact.id]), data)
    ends = MemoryFact.objects.get(pk=fact.id).expires_at
    assert (ends and round((ends - timezone.now()) / timedelta(days=1))) == days


@pytest.mark.parametrize("htmx", [True, False])
def test_several_are_kept_longer_in_one_act_but_for_what_has_no_end(alice: Person, htmx: bool) -> None:
    alice.agrees()
    coffee, tea = alice.fact("coffee", "Dark roast"), alice.fact("tea", "Green tea")
    safety = alice.fact("food_allergy", "Peanuts", category="safety")
    ids = [coffee.id, tea.id, safety.id]
    page = alice.get(reverse("keep_several"), data={"id": ids}, htmx=htmx).content.decode()
    assert "Dark roast" in page
    assert "Peanuts" not in page
    answer = alice.post(reverse("keep_several"), {"id": ids, "how": "years"}, htmx=htmx)
    assert (answer.headers.get("HX-Redirect") or answer.headers["Location"]) == "/"
    ends = dict(MemoryFact.objects.values_list("key", "expires_at"))
    assert ends["food_allergy"] is None
    assert all((ends[key] - timezone.now()).days == 1094 for key in ("coffee", "tea"))  # type: ignore[operator]


def test_keeping_nothing_or_what_is_not_ones_own_changes_nothing(alice: Person, bob: Person) -> None:
    fact = bob.fact("coffee", "Dark roast")
    assert alice.get(reverse("keep_several")).headers["Location"] == "/?select=1"
    assert alice.post(reverse("keep_several"), {"id": [fact.id], "how": "week"}).status_code == 404
    mine = alice.fact("tea", "Green")
    assert alice.post(reverse("keep_several"), {"id": [mine.id]}).status_code == 422
