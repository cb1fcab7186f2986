"""Writes docs/screenshots/ (`make screenshots`). Not collected by the suite; it needs the same server and browser."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from playwright.sync_api import Browser, Page

from tests.office import OFFICER, OPERATOR, browser_of, member
from tests.people import Person, person
from tests.scenes import FULL, furnish
from tests.test_staff_look import full

pytestmark = pytest.mark.django_db(transaction=True)

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "screenshots"
DESKTOP, TABLET, PHONE = (1280, 800), (834, 1000), (390, 844)
LIMIT = 60_000

SHOTS = [
    ("facts-desktop-light", "facts", DESKTOP, "light", "en-GB"),
    ("facts-desktop-dark", "facts", DESKTOP, "dark", "en-GB"),
    ("facts-phone", "facts", PHONE, "light", "en-GB"),
    ("facts-tablet-zh", "facts", TABLET, "light", "zh-TW"),
    ("facts-desktop-ar", "facts", DESKTOP, "light", "ar"),
    ("correcting", "correcting", DESKTOP, "light", "en-GB"),
    ("forget", "ask", DESKTOP, "light", "en-GB"),
    ("conflict", "conflict", DESKTOP, "light", "en-GB"),
    ("suggestions", "suggestions", DESKTOP, "light", "en-GB"),
    ("activity", "activity", DESKTOP, "light", "en-GB"),
    ("control", "control", DESKTOP, "light", "en-GB"),
    ("assistant", "assistant", DESKTOP, "light", "en-GB"),
    ("take", "take", DESKTOP, "light", "en-GB"),
    ("brought", "brought", DESKTOP, "light", "en-GB"),
    ("two-step", "two-step-on", DESKTOP, "light", "en-GB"),
    ("confirm", "confirm", PHONE, "light", "en-GB"),
    ("paused-phone", "paused", PHONE, "dark", "en-GB"),
    ("receipt", "receipt", DESKTOP, "light", "en-GB"),
    ("empty", "empty", DESKTOP, "light", "en-GB"),
    ("code", "code", PHONE, "light", "en-GB"),
    ("sign-in", "sign-in", PHONE, "light", "en-GB"),
]
"""File, scene, size, light, language; in the order of the scenes, since each leaves what the next one needs."""

PALETTE = """async ([png, most]) => {
  const image = await createImageBitmap(await (await fetch('data:image/png;base64,' + png)).blob());
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext('2d');
  context.drawImage(image, 0, 0);
  const data = context.getImageData(0, 0, image.width, image.height).data;
  const counts = new Map();
  for (let i = 0; i < data.length; i += 4) {
    const colour = (data[i] << 16) | (data[i + 1] << 8) | data[i + 2];
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const palette = [...counts].sort((a, b) => b[1] - a[1]).slice(0, most).map(([colour]) => colour);
  const nearest = new Map(palette.map((colour, index) => [colour, index]));
  const find = (colour) => {
    let best = 0, least = Infinity;
    palette.forEach((other, index) => {
      const [r, g, b] = [16, 8, 0].map((shift) => ((colour >> shift) & 255) - ((other >> shift) & 255));
      const distance = r * r + g * g + b * b;
      if (distance < least) [least, best] = [distance, index];
    });
    nearest.set(colour, best);
    return best;
  };
  const pixels = new Uint8Array(data.length / 4);
  for (let i = 0; i < pixels.length; i++) {
    const colour = (data[4 * i] << 16) | (data[4 * i + 1] << 8) | data[4 * i + 2];
    pixels[i] = nearest.get(colour) ?? find(colour);
  }
  let text = '';
  for (let i = 0; i < pixels.length; i += 32768) text += String.fromCharCode(...pixels.subarray(i, i + 32768));
  return [image.width, image.height, palette, btoa(text)];
}"""


def small(png: bytes, blank: Page) -> bytes:
    """With as many of its colours as fit into the limit."""
    for most in (250, 160, 96, 64):
        made = in_colours(png, blank, most)
        if len(made) < LIMIT:
            break
    return made


def in_colours(png: bytes, blank: Page, most: int) -> bytes:
    """The same picture with its most frequent colours, one byte a pixel."""
    width, height, palette, text = blank.evaluate(PALETTE, [base64.b64encode(png).decode(), most])
    pixels = base64.b64decode(text)
    rows = b"".join(b"\0" + pixels[row * width : (row + 1) * width] for row in range(height))
    colours = b"".join(struct.pack(">I", colour)[1:] for colour in palette)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = (
        chunk(b"IHDR", header),
        chunk(b"PLTE", colours),
        chunk(b"IDAT", zlib.compress(rows, 9)),
        chunk(b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def in_chinese(who: Person) -> None:
    who.agrees()
    told = {"agent": "shopping assistant", "session": "talk-1"}
    who.fact("food_allergy", "女兒對花生過敏", category="safety", ago=9, quote="小心，我女兒對花生過敏。", **told)
    who.fact("substitutions", "嬰兒食品不要換成別的牌子", category="constraint", ago=8,
             quote="請千萬不要把嬰兒食品換成別的牌子！", **told)  # fmt: skip
    who.fact("coffee", "深焙，磨成摩卡壺用的粗細", ago=5, quote="咖啡我都喝深焙的，請磨成摩卡壺用的粗細。", **told)
    who.fact("contact_time", "晚上六點以後", category="context", ago=3, quote="我六點以後才在家。", **told)
    who.is_read_by("recipe assistant")


def in_arabic(who: Person) -> None:
    who.agrees()
    told = {"agent": "shopping assistant", "session": "talk-1"}
    who.fact("food_allergy", "ابنتي لديها حساسية من الفول السوداني", category="safety", ago=9,
             quote="انتبهوا، ابنتي لديها حساسية من الفول السوداني.", **told)  # fmt: skip
    who.fact("substitutions", "لا تستبدلوا طعام الرضيع بعلامة أخرى", category="constraint", ago=8,
             quote="من فضلكم لا تستبدلوا طعام الرضيع أبدًا.", **told)  # fmt: skip
    who.fact("coffee", "تحميص داكن، مطحون لإبريق الموكا", ago=5, quote="أشرب القهوة بتحميص داكن دائمًا.", **told)
    who.is_read_by("recipe assistant")


def test_every_page_is_drawn_small(browser: Browser, live_server: Any) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    people = {"en-GB": person("ruth"), "zh-TW": person("mei"), "ar": person("noor")}
    furnish(people["en-GB"])
    in_chinese(people["zh-TW"])
    in_arabic(people["ar"])
    blank = browser.new_page()
    sizes = {}
    for file, scene, (width, height), scheme, language in SHOTS:
        cache.clear()
        who = people[language]
        context = browser.new_context(
            base_url=live_server.url,
            viewport={"width": width, "height": height},
            color_scheme=scheme,  # type: ignore[arg-type]
            locale=language,
            reduced_motion="reduce",
        )
        cookie = who.client.cookies["sessionid"].value
        context.add_cookies([{"name": "sessionid", "value": cookie, "url": live_server.url}])
        page = context.new_page()
        FULL[scene](page, who)
        page.wait_for_load_state("networkidle")
        made = small(page.screenshot(), blank)
        (FOLDER / f"{file}.png").write_bytes(made)
        sizes[file] = len(made)
        context.close()
    print("\n".join(f"{size:7,} {file}" for file, size in sizes.items()))
    assert [file for file, size in sizes.items() if size >= LIMIT] == []


STAFF_SHOTS = [
    ("staff-front", OFFICER, "/admin/", DESKTOP, "light"),
    ("staff-customer", OFFICER, r"/customer/\d+/change/", DESKTOP, "light"),
    ("staff-look-phone", OFFICER, "/reveal/", PHONE, "dark"),
    ("staff-request", OFFICER, r"/privacyrequest/\d+/change/", DESKTOP, "light"),
    ("staff-quality", OPERATOR, "/quality/", DESKTOP, "light"),
]
"""File, role, what its address is known by, size, light."""


def test_the_pages_of_staff_are_drawn_small(browser: Browser, live_server: Any) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    pages = full(person("ruth"))
    users = {role: member(role, name) for role, name in ((OFFICER, "ines"), (OPERATOR, "otto"))}
    blank = browser.new_page()
    for file, role, known_by, (width, height), scheme in STAFF_SHOTS:
        path = next(path for path in pages[role] if re.search(known_by, path))
        context = browser.new_context(
            base_url=live_server.url,
            viewport={"width": width, "height": height},
            color_scheme=scheme,  # type: ignore[arg-type]
            reduced_motion="reduce",
        )
        cookie = browser_of(users[role]).cookies["sessionid"].value
        context.add_cookies([{"name": "sessionid", "value": cookie, "url": live_server.url}])
        page = context.new_page()
        page.goto(path)
        page.wait_for_load_state("networkidle")
        made = small(page.screenshot(), blank)
        (FOLDER / f"{file}.png").write_bytes(made)
        assert len(made) < LIMIT, file
        context.close()
