"""What may not be remembered is refused however it is written, and what shops are full of is not mistaken for it."""

from __future__ import annotations

import logging
import random
import re
import sys
import time
from collections.abc import Callable
from itertools import chain

import pytest

from memory_portal.enums import Reason
from memory_portal.store import write_filter
from memory_portal.store.types import QUOTE_LIMIT
from memory_portal.store.write_filter import about_other_person, inspect, instruction_shaped, sensitive
from tests import filter_corpus
from tests.figures import Figure

SEED = 20260301
CARD = "4012 8888 8888 1881"
CARD_DIGITS = CARD.replace(" ", "")

REFUSED = {
    "card": (CARD, Reason.CARD),
    "card without spaces": (CARD_DIGITS, Reason.CARD),
    "card with slashes": (CARD.replace(" ", "/"), Reason.CARD),
    "card with underscores": (CARD.replace(" ", "_"), Reason.CARD),
    "card with dots": (CARD.replace(" ", "."), Reason.CARD),
    "card with en dashes": (CARD.replace(" ", "–"), Reason.CARD),
    "card with thin spaces": (CARD.replace(" ", "\u2009"), Reason.CARD),
    "card with wide gaps": (CARD.replace(" ", "   "), Reason.CARD),
    "card with hidden characters": ("\u200b".join(CARD_DIGITS), Reason.CARD),
    "card with expiry": (f"{CARD} 12/27 123", Reason.CARD),
    "card with words between": ("my card is 4012 8888 and then 8888 1881", Reason.CARD),
    "card in odd groups": ("40128 88888 881881", Reason.CARD),
    "card digit by digit": (" ".join(CARD_DIGITS), Reason.CARD),
    "card with a wrong check digit, said to be one": ("debit card 4012 8888 8888 1880", Reason.CARD),
    "long Maestro, said to be one": ("maestro card 676174000015", Reason.CARD),
    "thirteen digits of Visa": ("4222222222222", Reason.CARD),
    "american express": ("3782 822463 10005", Reason.CARD),
    "IBAN": ("DE89 3704 0044 0532 0130 00", Reason.IBAN),
    "IBAN in lower case": ("refund to gb82west12345698765432 please", Reason.IBAN),
    "bank account": ("bank account 12345678 at the Sparkasse", Reason.IBAN),
    "social security number": ("219-09-4321", Reason.NATIONAL_ID),
    "passport": ("passport number X1234567", Reason.NATIONAL_ID),
    "passport, number first": ("X1234567 is my passport", Reason.NATIONAL_ID),
    "german identity card": ("Personalausweis L01X00T47", Reason.NATIONAL_ID),
    "taiwanese identity card": ("A123456789", Reason.NATIONAL_ID),
    "hong kong identity card": ("A123456(3)", Reason.NATIONAL_ID),
    "chinese identity card": ("11010519491231002X", Reason.NATIONAL_ID),
    "spanish DNI": ("12345678Z", Reason.NATIONAL_ID),
    "spanish NIE": ("X1234567L", Reason.NATIONAL_ID),
    "national insurance number": ("AB 12 34 56 C", Reason.NATIONAL_ID),
    "singaporean identity card": ("S1234567D", Reason.NATIONAL_ID),
    "indian PAN": ("ABCPD1234E", Reason.NATIONAL_ID),
    "passport, machine-readable": ("P<UTOERIKSSON<<ANNA<MARIA<<<<<<", Reason.NATIONAL_ID),
    "chinese word for a passport": ("護照 123456789", Reason.NATIONAL_ID),
    "international phone": ("+65 9123 4567", Reason.PHONE),
    "international phone with zeros": ("0049 30 1234567", Reason.PHONE),
    "phone with an area code": ("(415) 502-8336", Reason.PHONE),
    "german phone": ("030 / 1234567", Reason.PHONE),
    "bare digits beside a word": ("call 91234567", Reason.PHONE),
    "bare digits before the word": ("91234567 is my mobile", Reason.PHONE),
    "chinese word for a phone": ("电话13812345678", Reason.PHONE),
    "spelled-out phone": ("call nine one two three four five six seven", Reason.PHONE),
    "spelled-out phone with a double": ("call double nine one two three four five", Reason.PHONE),
    "phone without a country": ("phone +0 91234567", Reason.PHONE),
    "e-mail": ("write to avery@example.test", Reason.EMAIL),
    "e-mail in words": ("avery at example dot test", Reason.EMAIL),
    "e-mail in brackets": ("avery [at] example [dot] test", Reason.EMAIL),
    "e-mail in chinese": ("用户@例子.公司", Reason.EMAIL),
    "password": ("password is hunter2", Reason.SECRET),
    "password without a digit": ("my password for the shop is swordfish", Reason.SECRET),
    "password without a verb": ("use password hunter22", Reason.SECRET),
    "password told backwards": ("hunter2 is my password", Reason.SECRET),
    "german password": ("Passwort: geheim99", Reason.SECRET),
    "spanish password": ("mi contraseña es gato123", Reason.SECRET),
    "chinese password": ("密碼是abc123", Reason.SECRET),
    "password of letters": ("password: swordfish", Reason.SECRET),
    "session of a website": ("session=Kq7Zp2LxV9tR", Reason.SECRET),
    "UUID beside a name": ("heating api key: 3f2b8c1e-1c1d-4a5e-9f00-aabbccddeeff", Reason.SECRET),
    "token in parts": ("keep q7Zp2LxV9-tR4mW-c8Ky1nB3 safe", Reason.SECRET),
    "PIN": ("my PIN is 4821", Reason.SECRET),
    "code without a verb": ("door code 4417", Reason.SECRET),
    "named key": ("api_key = 5f2c9d0e71b84c6fa3d1e9", Reason.SECRET),
    "token nobody named": ("keep q7Zp2LxV9tR4mWc8Ky1nB3 safe", Reason.SECRET),
    "credentials in an address": ("redis://shop:s3cr3t9@cache.example.test", Reason.SECRET),
    "e-mail half in words": ("write to avery at example.com", Reason.EMAIL),
    "link": ("see https://example.test/offer", Reason.LINK),
    "bare domain with a path": ("see example.com/offer", Reason.LINK),
    "domain in words": ("example dot com", Reason.LINK),
    "IPv4 address": ("my router is 192.168.0.17", Reason.LINK),
    "IPv6 address": ("my router is fe80::1ff:fe23:4567:890a", Reason.LINK),
    "MAC address": ("TV at 00:1b:44:11:3a:b7", Reason.LINK),
    "HTML": ("<b>likes</b> tea", Reason.MARKUP),
    "script": ("<script>x", Reason.MARKUP),
    "escaped HTML": ("&lt;img src=x onerror=y&gt;", Reason.MARKUP),
    "markdown link": ("[tea](shop)", Reason.MARKUP),
    "chat markers": ("<|im_start|>", Reason.MARKUP),
    "encoded text": ("\\x69\\x67\\x6e\\x6f\\x72\\x65", Reason.MARKUP),
}  # fmt: skip

KEPT = [
    "deliver 2026-09-12 10:30", "EU sizes 38 39 40 41 42", "shelf is 200 180 160 cm", "barcode 4006381333931",
    "4006381333931",
    "4006381030090",
    "lucky numbers 4 8 15 16 23 42 4 8 15 16 23 42",
    "MacBook model AB12CDEFGHIJKLM", "order 302-1234567-1234567", "Mon-Fri 09:00-17:30", "tracking 1Z999AA10123456784",
    "Artikel 102.635.48", "password reset mails annoy me", "finds passwords too long", "my pin board is full",
    "budget 1,200.50 to 2,000",
    "desk 120 x 60 x 75 cm", "wears size 10½", "invoice 2026-000123", "never call before 10:30",
    "call me after 2026-05-01",
    "uses a password manager", "works at St. Mary", "5 < 6 & 7 > 2", "<3 tea", "and/or", "iPhone15ProMax256GBBlue case",
    "sin gluten 12345678", "nie vor 10:30 anrufen", "lamp item 4417820911 product 8830217745 219.05 white",
    "不吃辣，也不喝酒。（严重）",
    "password: ****",
    "cookie: chocolatechips",
    "license: Photoshop2026Family",
    "password: forgot it",
    "pin: enamel",
    "secret: musicals",
    "clave: paciencia",
    "the PIN is awkward",
    "call +++ only",
    "订单 4006381333931", "一二三四五", "the one, two or three seater", "shops at example.com", "likes C++ and R&D",
    "12 000 steps a day",
    "order id 3f2b8c1e-1c1d-4a5e-9f00-aabbccddeeff", "firmware v1.2.3.4", "meets at home dot",
]  # fmt: skip


@pytest.mark.parametrize(("value", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_may_not_be_kept_is_refused_with_its_reason(value: str, reason: Reason) -> None:
    assert inspect("note", value) is reason


@pytest.mark.parametrize("value", KEPT)
def test_what_shops_and_tastes_are_made_of_is_kept(value: str) -> None:
    assert inspect("note", value) is None


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("card_4012_8888_8888_1881", "main card", Reason.CARD),
        ("card 4000 1234 5678 9010", "main card", Reason.CARD),
        ("card_4012_8888", "8888 1881", Reason.CARD),
        ("gb82west12345698765432", "for refunds", Reason.IBAN),
        ("phone", "91234567", Reason.PHONE),
        ("wifi_password", "swordfish", Reason.SECRET),
        ("pin", "4821", Reason.SECRET),
        ("passport_number", "X1234567", Reason.NATIONAL_ID),
    ],
)
def test_a_key_hides_nothing(key: str, value: str, reason: Reason) -> None:
    assert inspect(key, value) is reason


def test_a_digit_in_the_key_does_not_spoil_a_number_in_the_value() -> None:
    assert inspect("card_2", CARD_DIGITS) is Reason.CARD


def test_a_quote_is_inspected_as_the_value_is() -> None:
    assert inspect("drink", "tea", f"tea, and my card is {CARD}") is Reason.CARD


def test_a_national_number_counts_where_the_customer_lives() -> None:
    assert (inspect("note", "9123 4567", region="SG"), inspect("note", "9123 4567")) == (Reason.PHONE, None)


def test_a_pattern_of_the_policy_refuses() -> None:
    assert inspect("note", "likes Ｐroject Aurora", patterns=[re.compile("project aurora")]) is Reason.BLOCKED_PATTERN


def test_a_text_full_of_phone_shapes_is_refused_unchecked() -> None:
    assert inspect("note", "12 345 678, " * 60) is Reason.PHONE


@pytest.mark.parametrize("at", range(len(write_filter.DETECTORS)))
def test_a_detector_that_fails_refuses(
    at: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(reading: write_filter.Reading) -> bool:
        raise RuntimeError(reading.raw)

    detectors = list(write_filter.DETECTORS)
    detectors[at] = (detectors[at][0], broken)
    monkeypatch.setattr(write_filter, "DETECTORS", detectors)
    with caplog.at_level(logging.DEBUG):
        assert inspect("note", "likes oat milk") is Reason.FILTER_FAILED
    assert "oat" not in caplog.text + "".join(capsys.readouterr())


def test_the_invented_set_meets_its_marks(figure: Figure) -> None:
    rng = random.Random(SEED)
    plain, disguised = list(filter_corpus.plain(rng, 770)), list(filter_corpus.disguised(rng, 640))
    innocent = list(filter_corpus.innocent(rng, 960))
    found_plain, found_disguised, in_vain = (
        sum(inspect(key, value) is not None for _, key, value in rows) for rows in (plain, disguised, innocent)
    )
    precision = (found_plain + found_disguised) / (found_plain + found_disguised + in_vain)
    recalls = found_plain / len(plain), found_disguised / len(disguised)
    figure("P1", f"recall plain {recalls[0]:.3f}, disguised {recalls[1]:.3f}, precision {precision:.3f}")
    assert len(plain) + len(disguised) + len(innocent) >= 2_000
    assert recalls[0] >= 0.99
    assert recalls[1] >= 0.95
    assert precision >= 0.97


PIECES = [
    *"a1 -.@+([<{_:=½é不你一", "a@", "1 ", "my ", "password ", "is ", "4", "0 ", "::", "http://", "a.", "www.",
    "one ", "%41", "eyJ",
    "AKIA", "sk-", "a-", "A1", "Aa1", "key=", "女儿", "👩\u200d👩\u200d👧", "\u0301", "(at) ", " at ", " dot ",
    "+1 ", "DE89", "ignore all ",
    "you must ", "daughter ", "has a ", "my big ", "-----BEGIN ", "Bearer ", "a:b@", "//", "1.1.1.", "2026-01-",
    "passport ", "card ",
    "call ", "-u a:", "<a/", "user:",
]  # fmt: skip


def hostile(limit: int) -> list[str]:
    """Two hundred strings and more made to trip a matcher: one piece repeated, several repeated in turn, all mixed."""
    rng = random.Random(SEED)
    repeated = [
        "".join(piece * rng.randint(1, 30) for piece in rng.choices(PIECES, k=rng.randint(2, 4))) for _ in range(120)
    ]
    mixed = ["".join(rng.choices(PIECES, k=limit // 3)) for _ in range(40)]
    return [(text * limit)[:limit] for text in chain(PIECES, repeated, mixed)]


def milliseconds(call: Callable[[str], object], text: str) -> float:
    """How long one call takes outside of any tracer; the best of four, since a machine does other things, too."""
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        took = []
        for _ in range(4):
            start = time.perf_counter()
            call(text)
            took.append((time.perf_counter() - start) * 1_000)
        return min(took)
    finally:
        sys.settrace(tracer)


def test_hostile_strings_are_judged_within_fifty_milliseconds() -> None:
    took = [milliseconds(lambda text: inspect("note", text), text) for text in hostile(2_000)]
    print(f"{len(took)} hostile strings, slowest {max(took):.1f} ms")
    assert len(took) >= 200
    assert max(took) < 50


@pytest.mark.parametrize("rule", [instruction_shaped, sensitive, about_other_person])
def test_hostile_quotes_are_worded_within_fifty_milliseconds(rule: Callable[[str], bool]) -> None:
    assert max(milliseconds(rule, text) for text in hostile(QUOTE_LIMIT)) < 50


def test_two_hundred_characters_take_less_than_three_milliseconds() -> None:
    rng = random.Random(SEED)
    rows = [value for _, _, value in chain(filter_corpus.innocent(rng, 400), filter_corpus.plain(rng, 200))]
    texts = [" ".join(rng.choices(rows, k=6))[:200] for _ in range(300)]
    took = sorted(milliseconds(lambda text: inspect("note", text), text) for text in texts)
    p99 = took[int(len(took) * 0.99)]
    print(f"200 characters: p50 {took[len(took) // 2]:.2f} ms, p99 {p99:.2f} ms")
    assert p99 < 3
