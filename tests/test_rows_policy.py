"""The content security policy in a browser: every page of every caller is walked, and no browser has anything to complain about; no
other site can frame one."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from playwright.sync_api import Browser, Page

from tests.addresses import addresses, furnished
from tests.figures import Figure
from tests.people import Person

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

LISTEN = """
window.violations = [];
document.addEventListener("securitypolicyviolation", event => window.violations.push(
  `${event.effectiveDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`));
"""


@pytest.fixture(autouse=True)
def fresh_limits() -> None:
    cache.clear()


def pages_for(client: Client, paths: list[str]) -> list[str]:
    """Those that answer with a page of their own."""
    found = []
    for path in dict.fromkeys(paths):
        answer = client.get(path)
        if answer.status_code == 200 and answer["Content-Type"].startswith("text/html"):
            found.append(path)
    return found


def opened(browser: Browser, base: str, client: Client) -> Page:
    context = browser.new_context(base_url=base)
    context.add_init_script(LISTEN)
    if "sessionid" in client.cookies:
        context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": base}])
    return context.new_page()


def test_a_browser_finds_no_violation_on_any_page(
    browser: Browser, live_server: Any, alice: Person, staff: Client, figure: Figure
) -> None:
    there = addresses(furnished(alice))
    alice.proves()
    callers = {"nobody": Client(), "customer": alice.client, "staff": staff}
    walked: dict[str, int] = {}
    found: list[str] = []
    for caller, client in callers.items():
        page = opened(browser, live_server.url, client)
        for path in pages_for(client, [a.path for a in there if caller == "nobody" or a.mainly_for == caller]):
            page.goto(path)
            found += [f"{caller} {path}: {said}" for said in page.evaluate("window.violations")]
            walked[caller] = walked.get(caller, 0) + 1
        page.context.close()
    assert found == []
    assert walked["customer"] > 15
    assert walked["staff"] > 30
    figure("W7", f"pages walked in Chromium {walked}: 0 violations")


def test_the_walk_hears_a_violation(browser: Browser, live_server: Any, alice: Person) -> None:
    page = opened(browser, live_server.url, alice.client)
    page.goto("/")
    page.evaluate("document.body.append(Object.assign(document.createElement('img'), {src: 'https://evil.example/x'}))")
    page.wait_for_function("window.violations.length")
    page.context.close()


def test_no_other_site_frames_a_page(browser: Browser, live_server: Any, alice: Person, figure: Figure) -> None:
    alice.fact("coffee", "Dark roast")
    page = opened(browser, live_server.url, alice.client)
    page.route("http://other.example/", lambda route: route.fulfill(
        content_type="text/html", body=f'<iframe src="{live_server.url}/"></iframe>'))  # fmt: skip
    page.goto("http://other.example/")
    page.wait_for_load_state("networkidle")
    framed = page.frames[-1]
    assert framed.url.startswith("chrome-error:")
    assert "Dark roast" not in framed.content()
    page.context.close()
    figure("W7", "framed by another site: refused by the browser")
