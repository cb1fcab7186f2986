"""The pages in a real browser: the walk by mouse and by keyboard, without script, on a phone, when the sign-in runs out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Browser, BrowserContext, Page, expect

from memory_portal import handoff, store
from tests.people import Person

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def fresh_limits() -> None:
    cache.clear()


Open = Callable[..., Page]


@pytest.fixture
def open_as(browser: Browser, live_server: Any) -> Iterator[Open]:
    """A page as somebody, which must run without an error and within its content security policy."""
    contexts: list[BrowserContext] = []
    errors: list[str] = []

    def opened(who: Person | None, path: str = "/", **options: Any) -> Page:
        context = browser.new_context(base_url=live_server.url, **{"locale": "en-GB"} | options)
        contexts.append(context)
        if who:
            cookie = who.client.cookies["sessionid"].value
            context.add_cookies([{"name": "sessionid", "value": cookie, "url": live_server.url}])
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda line: errors.append(line.text) if is_fault(line) else None)
        page.goto(path)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert errors == []


def is_fault(line: Any) -> bool:
    """Not what browsers and htmx note of an answer of 404, 409 or 422, or of a dead line."""
    noted = ("Failed to load resource", "htmx:afterRequest", "htmx:sendError")
    return line.type in ("error", "warning") and not line.text.startswith(noted)


def row(page: Page, value: str) -> Any:
    return page.locator("li.fact", has=page.locator(".val", has_text=value))


def test_a_fact_is_corrected_in_place(alice: Person, open_as: Open) -> None:
    alice.fact("coffee", "Dark roast")
    page = open_as(alice)
    row(page, "Dark roast").get_by_role("link", name="Correct").click()
    box = page.get_by_label("Correct “Coffee”")
    expect(box).to_be_focused()
    box.fill("Light roast")
    expect(page.locator(".editing .counter")).to_have_text("11 / 200")
    page.get_by_role("button", name="Save").click()
    expect(row(page, "Light roast")).to_contain_text("Saved. It counts from now on.")
    assert alice.held == {"coffee": "Light roast"}


def test_cancelling_brings_the_row_back_as_it_was(alice: Person, open_as: Open) -> None:
    alice.fact("coffee", "Dark roast")
    page = open_as(alice)
    row(page, "Dark roast").get_by_role("link", name="Correct").click()
    page.get_by_label("Correct “Coffee”").fill("Light roast")
    page.get_by_role("link", name="Cancel").click()
    expect(row(page, "Dark roast")).to_be_visible()
    assert alice.held == {"coffee": "Dark roast"}


def test_a_hosts_link_goes_on_by_itself_where_script_runs(open_as: Open) -> None:
    page = open_as(None, way_in("carol"))
    page.wait_for_url("**/")
    expect(page.get_by_role("heading", name="What we remember about you")).to_be_visible()
    without = open_as(None, way_in("carol"), java_script_enabled=False)
    without.get_by_role("button", name="Continue as carol").click()
    expect(without.get_by_role("heading", name="What we remember about you")).to_be_visible()


def test_a_hosts_link_asks_first_where_somebody_else_is_signed_in(bob: Person, open_as: Open) -> None:
    page = open_as(bob, way_in("carol"))
    expect(page.get_by_text("Somebody else is signed in here.")).to_be_visible()
    page.get_by_role("button", name="Continue as carol").click()
    page.wait_for_url("**/")


def way_in(name: str) -> str:
    subject, now = store.Subject(name, "grocery"), timezone.now()
    store.welcome(subject, now=now, display_name=name)
    return f"/enter/{handoff.offer(subject, now=now)[0]}"


def test_a_change_meanwhile_shows_both_and_the_customer_chooses(alice: Person, open_as: Open) -> None:
    fact = alice.fact("coffee", "Dark roast")
    page = open_as(alice)
    row(page, "Dark roast").get_by_role("link", name="Correct").click()
    page.get_by_label("Correct “Coffee”").fill("Light roast")
    now = timezone.now()
    draft = store.Draft(
        key="coffee", value="Medium roast", category="preference", origin=fact.origin.CUSTOMER, said_at=now
    )
    store.correct(alice.pk, fact.id, draft, alice.actor, now=now, version=fact.version)
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".version")).to_have_count(2)
    expect(page.locator(".versions")).to_contain_text("Medium roast")
    assert alice.held == {"coffee": "Medium roast"}
    page.get_by_role("button", name="Keep mine").click()
    expect(row(page, "Light roast")).to_contain_text("Saved.")
    assert alice.held == {"coffee": "Light roast"}


def test_forgetting_asks_and_can_be_undone(alice: Person, open_as: Open) -> None:
    alice.fact("coffee", "Dark roast")
    page = open_as(alice)
    row(page, "Dark roast").get_by_role("link", name="Forget").click()
    dialog = page.get_by_role("dialog", name="Forget “Coffee”?")
    expect(dialog.get_by_role("link", name="Keep it")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(row(page, "Dark roast").get_by_role("link", name="Forget")).to_be_focused()
    row(page, "Dark roast").get_by_role("link", name="Forget").click()
    dialog.get_by_role("button", name="Forget it").click()
    expect(page.locator(".gone")).to_contain_text("Forgotten.")
    expect(page.locator("#total")).to_have_text("There is nothing here now.")
    assert alice.held == {}
    page.get_by_role("button", name="Undo").click()
    expect(row(page, "Dark roast")).to_contain_text("Brought back, as written by you.")
    assert alice.held == {"coffee": "Dark roast"}


def test_several_are_forgotten_in_one_act(alice: Person, open_as: Open) -> None:
    for key, value in (("coffee", "Dark roast"), ("tea", "Green tea"), ("milk", "Oat milk")):
        alice.fact(key, value)
    page = open_as(alice)
    page.get_by_role("link", name="Select several").click()
    page.get_by_role("checkbox", name="Coffee").check()
    page.get_by_role("checkbox", name="Tea").check()
    expect(page.locator("[data-picked]")).to_have_text("✓ 2")
    page.get_by_role("button", name="Forget what is ticked").click()
    page.get_by_role("button", name="Forget them").click()
    expect(page.locator(".gone")).to_be_in_viewport()
    assert alice.held == {"milk": "Oat milk"}
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#total")).to_have_text("There are 3, and this is all of them.")


def test_searching_narrows_the_list_and_the_address_brings_it_back(alice: Person, open_as: Open) -> None:
    alice.fact("coffee", "Dark roast")
    alice.fact("tea", "Green tea")
    page = open_as(alice)
    page.get_by_role("searchbox").fill("green")
    expect(page.locator(".val")).to_have_text(["Green tea"])
    page.wait_for_url("**/?q=green")
    page.reload()
    expect(page.locator(".val")).to_have_text(["Green tea"])
    expect(page.get_by_role("searchbox")).to_have_value("green")
    page.get_by_role("link", name="Show everything").click()
    expect(page.locator(".val")).to_have_count(2)


def test_adding_shows_the_new_fact_and_an_empty_form(alice: Person, open_as: Open) -> None:
    alice.fact("coffee", "Dark roast")
    page = open_as(alice)
    page.locator("#add > summary").click()
    page.get_by_label("What is it about?").fill("Delivery time")
    page.get_by_label("What should we remember?").fill("x" * 201)
    page.get_by_role("button", name="Remember this").click()
    expect(page.locator("#add .error")).to_contain_text("at most 200 characters")
    expect(page.get_by_label("What should we remember?")).to_have_value("x" * 201)
    page.get_by_label("What should we remember?").fill("After six")
    page.get_by_role("button", name="Remember this").click()
    expect(row(page, "After six")).to_be_in_viewport()
    page.locator("#add > summary").click()
    expect(page.get_by_label("What should we remember?")).to_have_value("")


def test_a_suggestion_is_kept_and_the_badge_goes(alice: Person, open_as: Open) -> None:
    alice.writes("phone_calls", "Not before ten", "constraint")
    assert alice.says("phone_calls", "Any time after eight", category="constraint", ago=0).proposal_id
    page = open_as(alice, "/suggestions/")
    expect(page.locator("#waiting")).to_contain_text("1")
    page.get_by_role("button", name="Keep Phone calls").click()
    expect(page.get_by_text("Kept. It counts from now on.")).to_be_visible()
    expect(page.locator("#waiting")).to_have_text("")
    assert alice.held == {"phone_calls": "Any time after eight"}


def test_everything_goes_after_a_fresh_code_and_the_receipt_says_so(
    alice: Person, open_as: Open, mailoutbox: list[Any]
) -> None:
    alice.fact("coffee", "Dark roast")
    page = open_as(alice, "/control/")
    page.get_by_role("link", name="Forget everything").click()
    page.get_by_role("button", name="Send me a code").click()
    page.get_by_label("Six-digit code").fill(code_of(mailoutbox))
    page.get_by_role("button", name="Confirm").click()
    page.get_by_role("button", name="Forget everything").click()
    expect(page.locator(".error")).to_contain_text("Nothing has been erased.")
    page.locator("input[name=sure]").fill("forget everything")
    page.get_by_role("button", name="Forget everything").click()
    expect(page.locator(".receipt")).to_contain_text("1 erased")
    assert alice.held == {}


def test_the_whole_walk_works_by_keyboard_alone(alice: Person, open_as: Open) -> None:
    alice.fact("coffee", "Dark roast")
    page = open_as(alice)
    tab_to(page, "Correct Coffee")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Correct “Coffee”")).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("Light roast")
    tab_to(page, "Save")
    page.keyboard.press("Enter")
    expect(row(page, "Light roast")).to_be_visible()
    tab_to(page, "Forget Coffee")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Keep it")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".gone")).to_be_visible()
    tab_to(page, "Undo Coffee")
    page.keyboard.press("Enter")
    expect(row(page, "Light roast")).to_be_visible()


def tab_to(page: Page, name: str) -> None:
    for _ in range(60):
        page.keyboard.press("Tab")
        if " ".join(str(page.evaluate("document.activeElement.textContent")).split()) == name:
            return
    pytest.fail(f"the keyboard never reaches {name}")


def test_the_whole_walk_works_without_javascript(alice: Person, open_as: Open) -> None:
    alice.fact("coffee", "Dark roast")
    page = open_as(alice, java_script_enabled=False)
    row(page, "Dark roast").get_by_role("link", name="Correct").click()
    page.get_by_label("Correct “Coffee”").fill("Light roast")
    page.get_by_role("button", name="Save").click()
    row(page, "Light roast").get_by_role("link", name="Forget").click()
    page.get_by_role("button", name="Forget it").click()
    expect(page.get_by_role("heading", name="Forgotten", exact=True)).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(row(page, "Light roast")).to_be_visible()
    page.get_by_role("searchbox").fill("light")
    page.get_by_role("button", name="Search").click()
    expect(page.locator(".val")).to_have_text(["Light roast"])
    page.goto("/control/")
    page.get_by_role("button", name="Pause using").click()
    expect(page.get_by_text("Using is paused")).to_be_visible()


def test_what_was_typed_when_the_sign_in_ran_out_is_there_on_coming_back(
    alice: Person, open_as: Open, mailoutbox: list[Any]
) -> None:
    alice.fact("coffee", "Dark roast")
    page = open_as(alice, "/?q=roast")
    row(page, "Dark roast").get_by_role("link", name="Correct").click()
    page.get_by_label("Correct “Coffee”").fill("Light roast, ground")
    alice.client.session.flush()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Your text is safe on this device")).to_be_visible()
    page.get_by_label("E-mail address").fill("alice@example.org")
    page.get_by_role("button", name="Send me a code").click()
    page.get_by_label("Six-digit code").fill(code_of(mailoutbox))
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_label("Correct “Coffee”")).to_have_value("Light roast, ground")
    assert page.url.endswith("/?q=roast")
    page.get_by_role("button", name="Save").click()
    expect(row(page, "Light roast, ground")).to_be_visible()
    assert alice.held == {"coffee": "Light roast, ground"}


def code_of(mailoutbox: list[Any]) -> str:
    return str(mailoutbox[-1].subject).split()[0]


def test_somebody_else_at_the_same_screen_never_sees_what_was_typed(
    alice: Person, bob: Person, open_as: Open, mailoutbox: list[Any]
) -> None:
    alice.fact("coffee", "Dark roast")
    bob.fact("coffee", "Decaf")
    page = open_as(alice)
    page.locator("#add > summary").click()
    page.get_by_label("What should we remember?").fill("A secret of Alice")
    page.get_by_label("What is it about?").fill("Secret")
    alice.client.session.flush()
    page.get_by_role("button", name="Remember this").click()
    page.get_by_label("E-mail address").fill("bob@example.org")
    page.get_by_role("button", name="Send me a code").click()
    page.get_by_label("Six-digit code").fill(code_of(mailoutbox))
    page.get_by_role("button", name="Sign in").click()
    expect(row(page, "Decaf")).to_be_visible()
    assert "A secret of Alice" not in page.content()
    assert "A secret of Alice" not in str(page.evaluate("JSON.stringify(sessionStorage)"))


def test_when_the_line_is_dead_the_page_says_so_and_keeps_the_text(alice: Person, open_as: Open) -> None:
    alice.fact("coffee", "Dark roast")
    page = open_as(alice)
    row(page, "Dark roast").get_by_role("link", name="Correct").click()
    page.get_by_label("Correct “Coffee”").fill("Light roast")
    page.context.set_offline(True)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("You seem to be offline.")).to_be_visible()
    expect(page.get_by_label("Correct “Coffee”")).to_have_value("Light roast")
    page.context.set_offline(False)
    page.get_by_role("button", name="Save").click()
    expect(row(page, "Light roast")).to_be_visible()
    expect(page.get_by_text("You seem to be offline.")).to_be_hidden()


PAGES = ["/", "/?select=1", "/suggestions/", "/activity/", "/control/", "/privacy", "/take/", "/take/bring", "/two-step/on",
         "/control/close-account", "/confirm/", "/sign-in/", "/no-such-page"]  # fmt: skip


@pytest.mark.parametrize("language", ["en", "zh-TW", "de", "ar"])
@pytest.mark.parametrize("width", [320, 768, 1280])
def test_no_page_scrolls_sideways_at_any_width(alice: Person, open_as: Open, width: int, language: str) -> None:
    alice.agrees()
    alice.fact("food_allergy", "My daughter: peanuts", category="safety")
    alice.fact("yoghurt", "Erdbeer-Rhabarber-Buttermilchjoghurt-Lebensmittelunverträglichkeitsbescheinigung")
    alice.fact("link", "w" * 200, quote="w" * 200)
    alice.proves()
    page = open_as(alice, viewport={"width": width, "height": 800}, locale=language)
    for path in PAGES:
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path


def test_right_to_left_pages_are_right_to_left(alice: Person, open_as: Open) -> None:
    alice.fact("coffee", "Dark roast")
    page = open_as(alice, locale="ar")
    assert page.locator("html").get_attribute("dir") == "rtl"
    assert page.locator("html").get_attribute("lang") == "ar"
    logo, menu = page.locator(".brand-logo").bounding_box(), page.locator(".masthead .menu").first.bounding_box()
    assert logo
    assert menu
    assert logo["x"] > menu["x"]
    expect(page.locator(".val")).to_have_css("direction", "ltr")


def test_a_person_signs_in_by_code(db: None, open_as: Open, mailoutbox: list[Any], alice: Person) -> None:
    alice.fact("coffee", "Dark roast")
    page = open_as(None, "/")
    page.get_by_label("E-mail address").fill("alice@example.org")
    page.get_by_role("button", name="Send me a code").click()
    page.get_by_label("Six-digit code").fill(code_of(mailoutbox))
    page.get_by_role("button", name="Sign in").click()
    expect(row(page, "Dark roast")).to_be_visible()
    page.get_by_text("Account alice@example.org").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("You are signed out.")).to_be_visible()
    assert Client().get("/").status_code == 302
