"""Accessibility: axe finds nothing on any page in any state, and what matters most works by keyboard and without a script."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from django.core.cache import cache
from playwright.sync_api import Browser, Page, expect

from tests.figures import Figure
from tests.people import Person
from tests.scenes import FULL, furnish

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
LOOKS = [(width, scheme) for width, scheme in product((320, 1280), ("light", "dark"))]


@pytest.fixture(autouse=True)
def fresh_limits() -> None:
    cache.clear()


def opened(browser: Browser, live_server: Any, who: Person, **options: Any) -> Page:
    context = browser.new_context(base_url=live_server.url, **options)
    cookie = who.client.cookies["sessionid"].value
    context.add_cookies([{"name": "sessionid", "value": cookie, "url": live_server.url}])
    return context.new_page()


def violations(page: Page) -> list[str]:
    page.evaluate(AXE_SCRIPT)
    found = page.evaluate(
        "tags => axe.run(document, {runOnly: tags, resultTypes: ['violations']}).then(result => JSON.stringify("
        "result.violations.map(rule => [rule.id, rule.nodes.slice(0, 3).map(node => node.html.slice(0, 160))])))",
        TAGS,
    )
    return [f"{rule}: {nodes}" for rule, nodes in json.loads(found)]


def walk(browser: Browser, live_server: Any, who: Person, language: str, looks: Any) -> list[str]:
    """Every scene in order, in the looks chosen for it. Returns what axe complains about, with where."""
    furnish(who)
    page = opened(browser, live_server, who, locale=language, reduced_motion="reduce")
    found = []
    for number, (name, scene) in enumerate(FULL.items()):
        scene(page, who)
        for width, scheme in looks(number):
            page.set_viewport_size({"width": width, "height": 800})
            page.emulate_media(color_scheme=scheme)
            found += [f"{name} {language} {width} {scheme}: {problem}" for problem in violations(page)]
    page.context.close()
    return found


@pytest.mark.parametrize("language", ["en", "ar"])
def test_no_page_in_any_state_breaks_a_rule(
    browser: Browser, live_server: Any, alice: Person, language: str, figure: Figure
) -> None:
    """Every pair of width, scheme and direction; all of them together are the deep test below."""

    def looks(number: int) -> list[tuple[int, str]]:
        narrow, wide = (("light", "dark"), ("dark", "light"))[number % 2]
        return [(320, narrow)] if language == "en" else [(1280, wide)]

    assert walk(browser, live_server, alice, language, looks) == []
    figure("O1", f"axe over every page and state in {language}: 0 violations")


@pytest.mark.deep
@pytest.mark.parametrize("language", ["en", "ar", "zh-TW", "de", "es"])
def test_no_page_breaks_a_rule_at_any_width_and_in_any_light(
    browser: Browser, live_server: Any, alice: Person, language: str, figure: Figure
) -> None:
    assert walk(browser, live_server, alice, language, lambda number: LOOKS) == []
    figure("O1", f"axe over every page, state, width and light in {language}: 0 violations")


def press_to(page: Page, name: str) -> None:
    """Tab on until something of this name has the keyboard."""
    for _ in range(80):
        page.keyboard.press("Tab")
        active = page.evaluate("(document.activeElement.labels?.[0] ?? document.activeElement).textContent")
        if name in " ".join(str(active).split()):
            return
    pytest.fail(f"the keyboard never reaches {name}")


def test_taking_it_along_works_by_keyboard_alone(browser: Browser, live_server: Any, alice: Person) -> None:
    alice.fact("coffee", "Dark roast")
    alice.proves()
    page = opened(browser, live_server, alice, accept_downloads=True)
    page.goto("/control/")
    press_to(page, "Take it with you")
    page.keyboard.press("Enter")
    page.wait_for_url("**/take/")
    press_to(page, "For a program")
    page.keyboard.press("ArrowDown")
    press_to(page, "Make the file")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Your file is ready")).to_be_visible()
    press_to(page, "Download")
    with page.expect_download() as file:
        page.keyboard.press("Enter")
    assert file.value.suggested_filename.endswith(".html")
    page.context.close()


def test_taking_it_along_works_without_javascript(
    browser: Browser, live_server: Any, alice: Person, mailoutbox: list[Any]
) -> None:
    alice.fact("coffee", "Dark roast")
    page = opened(browser, live_server, alice, java_script_enabled=False, accept_downloads=True)
    page.goto("/")
    page.get_by_role("link", name="Take it with you").click()
    page.get_by_role("button", name="Send me a code").click()
    page.get_by_label("Six-digit code").fill(str(mailoutbox[-1].subject).split()[0])
    page.get_by_role("button", name="Confirm").click()
    page.get_by_role("button", name="Make the file").click()
    with page.expect_download() as file:
        page.get_by_role("button", name="Download").click()
    assert "Dark roast" in file.value.path().read_text("utf-8")
    page.context.close()


def test_the_check_can_find_something(browser: Browser, live_server: Any, alice: Person) -> None:
    page = opened(browser, live_server, alice)
    page.goto("/")
    page.locator("main").evaluate("main => main.append(document.createElement('img'))")
    assert any(problem.startswith("image-alt") for problem in violations(page))
    page.context.close()
