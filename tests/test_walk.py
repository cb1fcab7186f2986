"""The main job from outside, in five steps: an agent hands over, a worker learns, the customer rules, the agent reads, a replay
changes nothing. In English and Chinese, with each extractor, on the product as `make demo` starts it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from agent_bridge.demo import CUSTOMER_SUBJECT
from tests.live import Bridge, Demo, sign_in
from tests.messages_server import MessagesServer, Reply, answer, change

pytestmark = [pytest.mark.live, pytest.mark.browser]

TOOL_TALK = [
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "search", "input": {"q": "jackets"}}]},
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "Trail jacket, waterproof to 10,000mm"}],
    },
]

ENGLISH = {
    "language": "en",
    "customer": ("fern-1003", "ruth@example.org"),
    "said": [
        "I always want oat milk instead of cow milk.",
        "I never take delivery before ten in the morning.",
    ],
    "changes": [
        {"key": "milk", "value": "wants oat milk instead of cow milk", "category": "preference"},
        {"key": "delivery_time", "value": "never take delivery before ten in the morning", "category": "constraint"},
    ],
    "quote": "I always want oat milk instead of cow milk",
    "find": ["oat milk", "before ten in the morning"],
    "corrected": "Oat milk, the barista kind",
    "own": ("Ice cream", "Pistachio, in a tub"),
}
CHINESE = {
    "language": "zh-hant",
    "customer": ("fern-1002", "tom@example.org"),
    "said": ["我通常買燕麥奶，不買牛奶。", "我從不買塑膠袋。"],
    "changes": [
        {"key": "milk", "value": "通常買燕麥奶", "category": "preference"},
        {"key": "bags", "value": "從不買塑膠袋", "category": "constraint"},
    ],
    "quote": "我通常買燕麥奶",
    "find": ["燕麥奶", "塑膠袋"],
    "corrected": "燕麥奶，咖啡師款",
    "own": ("冰淇淋", "開心果口味，桶裝"),
}


def conversation(words: dict[str, Any]) -> dict[str, Any]:
    """In Anthropic message format, with what a tool said in the middle of it."""
    first, second = words["said"]
    messages = [
        {"role": "user", "content": first},
        *TOOL_TALK,
        {"role": "assistant", "content": [{"type": "text", "text": "Noted. Anything else?"}]},
        {"role": "user", "content": [{"type": "text", "text": second}]},
    ]
    return {"session_id": f"walk-{words['language']}", "messages": messages}


def as_claude_would(request: dict[str, Any]) -> Reply:
    """Claude's answer to a conversation of this walk: what was said in it, with its quotes."""
    asked = json.dumps(request, ensure_ascii=False)
    pairs = [pair for words in (ENGLISH, CHINESE) for pair in zip(words["said"], words["changes"], strict=True)]
    return answer([change(quote, **said) for quote, said in pairs if quote in asked])


@pytest.fixture(scope="module", params=["explicit", "claude"])
def demo(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    var = tmp_path_factory.mktemp(request.param) / "var"
    if request.param == "explicit":
        running = Demo(var)
        yield running
        running.stop()
        return
    with MessagesServer() as server:
        server.will(as_claude_would)
        running = Demo(var, ANTHROPIC_API_KEY="test-key", ANTHROPIC_BASE_URL=server.url)
        yield running
        running.stop()


@pytest.fixture
def agent(demo: Demo) -> Iterator[Bridge]:
    with Bridge(demo) as bridge:
        yield bridge


@pytest.fixture
def page(browser: Browser, words: dict[str, Any]) -> Iterator[Page]:
    locale = "zh-TW" if words["language"] == "zh-hant" else "en-GB"
    context = browser.new_context(locale=locale, viewport={"width": 1280, "height": 900})
    errors: list[str] = []
    page = context.new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("response", lambda answer: errors.append(answer.url) if answer.status >= 400 else None)
    yield page
    context.close()
    assert errors == [], "the pages ran without an error and within their content security policy"


@pytest.mark.parametrize("words", [ENGLISH, CHINESE], ids=["english", "chinese"])
def test_a_fact_travels_the_whole_way(demo: Demo, agent: Bridge, page: Page, words: dict[str, Any]) -> None:
    subject, email = words["customer"]
    talk = conversation(words)
    oat, morning = words["find"]

    # 1 and 2: handed over, durable, learned by the worker; what the tool said is not.
    job = agent.hand_over(subject, talk, f"{subject}-1")
    assert agent.finished(job)["state"] == "done"
    values = [fact["value"] for fact in agent.context(subject)["always"]]
    assert any(oat in value for value in values), values
    assert any(morning in value for value in values), values
    assert not any("10,000" in value for value in values)

    # 3: the customer sees it with its proof, corrects, forgets, adds.
    sign_in(page, demo, email)
    fact = page.locator("li.fact", has=page.locator(".val", has_text=oat))
    expect(fact.locator("blockquote")).to_contain_text(words["quote"])
    expect(fact.locator("time").first).to_be_visible()
    fact.locator("a.btn:not(.plain)").first.click()
    page.locator(".fact.editing textarea").fill(words["corrected"])
    page.locator(".fact.editing button.main").click()
    expect(page.locator(".val", has_text=words["corrected"])).to_be_visible()

    other = page.locator("li.fact", has=page.locator(".val", has_text=morning))
    other.locator("a[href$='/forget']").click()
    page.locator("#ask button.bad").click()
    expect(page.locator(".val", has_text=morning)).to_have_count(0)

    page.locator("#add > summary").click()
    key, value = words["own"]
    page.locator("#add input[name=key]").fill(key)
    page.locator("#add textarea[name=value]").fill(value)
    page.locator("#add button.main").click()
    expect(page.locator(".val", has_text=value)).to_be_visible()

    # 4: the agent reads the truth at once.
    values = [fact["value"] for fact in agent.context(subject)["always"]]
    assert words["corrected"] in values
    assert value in values
    assert not any(morning in held for held in values)

    # 5: the same conversation again, with the same key and with a new one.
    assert agent.hand_over(subject, talk, f"{subject}-1") == job
    agent.finished(agent.hand_over(subject, talk, f"{subject}-2"))
    after = [fact["value"] for fact in agent.context(subject)["always"]]
    assert sorted(after) == sorted(values)

    # and in the end the customer forgets everything.
    page.goto(f"{demo.base}/control/forget-everything")
    phrase = re.search("[“「](.+)[”」]", page.locator("label[for=id_sure]").inner_text())
    assert phrase
    page.locator("input[name=sure]").fill(phrase[1])
    page.locator("button.bad").click()
    expect(page.locator(".receipt")).to_be_visible()
    assert agent.context(subject)["always"] == []
    agent.finished(agent.hand_over(subject, talk, f"{subject}-3"))
    assert agent.context(subject)["always"] == []


def test_the_demo_stops_and_starts_again_with_its_data(demo: Demo, agent: Bridge) -> None:
    agent.finished(agent.hand_over(CUSTOMER_SUBJECT, conversation(ENGLISH), "before-the-stop"))
    before = agent.context(CUSTOMER_SUBJECT)
    assert before["always"]
    demo.stop()
    demo.start()
    assert agent.context(CUSTOMER_SUBJECT)["always"] == before["always"]
