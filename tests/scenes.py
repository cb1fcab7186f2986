"""Every page in every state, for whoever looks at all of them: the accessibility test and the screenshots."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from django.core.cache import cache
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page

from memory_portal import store
from memory_portal.enums import ActorKind, EventKind, Origin
from memory_portal.models import MemoryFact
from tests.people import Person


def furnish(who: Person) -> None:
    """Something of everything: all kinds, origins and states, suggestions, history, choices."""
    who.agrees()
    now = timezone.now()
    for days in (6, 0):
        store.note(who.pk, EventKind.SIGNED_IN, who.actor, now=now - timedelta(days=days))
    more = {"agent": "shopping assistant", "session": "talk-1"}
    who.fact("food_allergy", "My daughter: peanuts and sesame", category="safety", ago=9,
             quote="Careful, my daughter is allergic to peanuts and sesame.", **more)  # fmt: skip
    who.fact("substitutions", "Never swap the baby food for another brand", category="constraint", ago=8,
             quote="Please never swap the baby food for another brand!", **more)  # fmt: skip
    bread = who.fact("bread", "Sourdough, sliced thin", ago=5, quote="We always take the sourdough, sliced thin.",
                     agent="recipe assistant", session="talk-2")  # fmt: skip
    who.fact("contact_time", "After six in the evening", category="context", ago=3,
             quote="I'm only home after six in the evening.", **more)  # fmt: skip
    dog = who.fact("pets", "Has a large dog", category="context", ago=4, quote="The dog eats more than we do.", **more)
    organic = who.fact("vegetables", "Organic where there is a choice", ago=2, quote="Organic, where there is a choice.",
                       agent="recipe assistant", session="talk-2")  # fmt: skip
    who.writes("coffee", "Dark roast, ground for a moka pot")
    staff = store.Actor(ActorKind.STAFF, "7", "Ines")
    who.says("delivery_note", "Ring twice, the bell is quiet", category="context", origin=Origin.STAFF, quote="",
             agent="", session="", actor=staff, ago=1)  # fmt: skip
    MemoryFact.objects.filter(pk=organic.id).update(expires_at=now + timedelta(days=9))
    who.post(reverse("wrong", args=[dog.id]))
    for agent in ("shopping assistant", "recipe assistant"):
        who.is_read_by(agent)
    gone = who.fact("newsletter", "Wants the weekly offers", ago=7, quote="Sure, send me the weekly offers.", **more)
    who.post(reverse("forget", args=[gone.id]))
    data = {"value": "Sourdough, sliced thick", "category": "preference", "version": bread.version}
    who.post(reverse("correct", args=[bread.id]), data)
    who.says(
        "bread", "Toast bread, please", ago=0, quote="Let's have toast bread from now on.", agent="recipe assistant"
    )
    who.says("newsletter", "Wants the weekly offers again", ago=0, quote="Do send me the offers again.", **more)
    store.choose(who.pk, {"never_words": ["lottery", "my ex"]}, who.actor, now=now)
    who.sees()  # what was said of these acts is read


Scene = Callable[[Page, Person], None]


def at(path: str) -> Scene:
    def go(page: Page, who: Person) -> None:
        who.proves()
        page.goto(path)

    return go


def correcting(page: Page, who: Person) -> None:
    page.goto("/")
    page.locator("[data-opens]").first.click()
    page.locator(".editing textarea").wait_for()


def asking(page: Page, who: Person) -> None:
    page.goto("/")
    page.locator('a[href$="/forget"]').first.click()
    page.locator("dialog[open] form").wait_for()


def conflict(page: Page, who: Person) -> None:
    fact = next(fact for fact in store.facts(who.pk, now=timezone.now()) if fact.key == "coffee")
    page.goto(reverse("correct", args=[fact.id]))
    page.locator(".editing textarea").fill("Light roast for filter coffee")
    version = page.locator(".editing input[name=version]")
    version.evaluate("field => field.value = '99'")
    page.locator(".editing button.main").click()
    page.locator(".versions").wait_for()


def wrong_form(page: Page, who: Person) -> None:
    page.goto(reverse("add"))
    page.locator("#add button.main").click()
    page.locator("#add .error").first.wait_for()


def forgotten(page: Page, who: Person) -> None:
    asking(page, who)
    page.locator("dialog[open] .btn.bad").click()
    page.locator(".gone").wait_for()


def menus(page: Page, who: Person) -> None:
    page.goto("/")
    page.locator(".masthead .menu").last.locator("summary").click()


def offline(page: Page, who: Person) -> None:
    page.goto("/")
    page.locator("#trouble-offline").evaluate("note => note.hidden = false")


def code(page: Page, who: Person) -> None:
    cache.clear()
    page.context.clear_cookies(name="sessionid")
    page.goto("/sign-in/")
    page.locator("input[type=email]").fill("nobody@example.org")
    page.locator("main .btn.main").first.click()
    page.locator("input[name=code]").wait_for()


def shops(page: Page, who: Person) -> None:
    elsewhere = store.Subject(f"{who.customer.subject_id}-flies", "airline")
    store.welcome(elsewhere, now=timezone.now(), email=who.customer.email)
    who.proves()
    page.goto("/shops/")
    page.locator("form[action^='/shops/']").wait_for()


def ready(page: Page, who: Person) -> None:
    who.proves()
    page.goto("/take/")
    page.locator("main .btn.main").click()
    page.locator("form .say").wait_for()


def brought(page: Page, who: Person) -> None:
    page.goto("/take/bring")
    lines = b"Seat: on the aisle\nTea: green, no sugar\nCard: 4111 1111 1111 1111\n"
    page.locator("input[type=file]").set_input_files({"name": "mine.txt", "mimeType": "text/plain", "buffer": lines})
    page.locator("main .btn.main").click()
    page.locator(".lines").wait_for()


def receipt(page: Page, who: Person) -> None:
    who.proves()
    page.goto("/control/forget-everything")
    page.locator("#id_sure").fill(str(page.locator("[data-words]").get_attribute("data-words")))
    page.locator("main .btn.bad").click()
    page.locator(".receipt").wait_for()


def paused(page: Page, who: Person) -> None:
    who.post(reverse("pause_using"))
    page.goto("/")
    page.locator(".notice.paused").wait_for()


def keep(page: Page, who: Person) -> None:
    ids = "&".join(f"id={fact.id}" for fact in store.facts(who.pk, now=timezone.now())[:4])
    page.goto(f"{reverse('keep_several')}?{ids}")


def signed_out(page: Page, who: Person) -> None:
    page.context.clear_cookies(name="sessionid")
    page.goto("/sign-in/")


FULL: dict[str, Scene] = {
    "facts": at("/"),
    "select": at("/?select=1"),
    "nothing-fits": at("/?q=zzzz"),
    "menu": menus,
    "correcting": correcting,
    "keep": keep,
    "conflict": conflict,
    "ask": asking,
    "error": wrong_form,
    "offline": offline,
    "suggestions": at("/suggestions/"),
    "activity": at("/activity/"),
    "control": at("/control/"),
    "notice": at("/privacy"),
    "assistant": at("/assistant/"),
    "take": at("/take/"),
    "ready": ready,
    "bring": at("/take/bring"),
    "brought": brought,
    "shops": shops,
    "two-step": at("/two-step/"),
    "two-step-on": at("/two-step/on"),
    "everything": at("/control/forget-everything"),
    "close": at("/control/close-account"),
    "confirm": at("/confirm/?next=/take/"),
    "not-found": at("/no/such/page"),
    "forgotten": forgotten,
    "paused": paused,
    "receipt": receipt,
    "empty": at("/"),
    "suggestions-empty": at("/suggestions/"),
    "code": code,
    "sign-in": signed_out,
}
"""In an order in which each leaves what the next one needs: everything is forgotten near the end, then who looks signs out."""
