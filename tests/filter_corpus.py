"""A labelled set for the write filter, invented from a seed: what must stay out, plain and disguised; what must pass.

In: a seed. Out: (kind, key, value) rows. English and German. The negatives are the numbers that shops are full of.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterator
from datetime import date, timedelta

Row = tuple[str, str, str]

FRAMES = (
    "{}", "my {noun} is {}", "please keep {noun} {} on file", "{noun}: {}", "{} is the {noun} to use",
    "meine {noun} ist {}", "{noun} lautet {}", "bitte {noun} {} merken", "always use {noun} {} for me",
)  # fmt: skip
NOUNS = {
    "card": ("credit card", "card number", "Visa", "Kreditkarte", "Kartennummer"),
    "iban": ("IBAN", "bank account", "Kontonummer", "account"),
    "paper": (
        "passport number",
        "SSN",
        "Ausweisnummer",
        "Personalausweis",
        "Reisepass Nr",
        "driver's license",
        "Steuer-ID",
    ),
    "password": ("password", "wifi password", "Passwort", "passcode", "Kennwort"),
}
CARD_PREFIXES = (
    ("4", 16), ("51", 16), ("55", 16), ("2221", 16), ("2655", 16), ("34", 15), ("37", 15), ("6011", 16), ("3528",
    16), ("62", 16), ("36", 14),
)  # fmt: skip
WORDS_EN = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
WORDS_DE = ("null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun")
SEPARATORS = (" ", "-", ".", "/", "_", " – ", "\u2009", "   ", "\u00a0", "·", "\u200b", " - ", "|")


def digits(rng: random.Random, count: int) -> str:
    return "".join(rng.choices(string.digits, k=count))


def letters(rng: random.Random, count: int, alphabet: str = string.ascii_uppercase) -> str:
    return "".join(rng.choices(alphabet, k=count))


def luhn_digit(body: str) -> str:
    doubled = [int(d) * (2 if at % 2 == 0 else 1) for at, d in enumerate(reversed(body))]
    return str(-sum(d - 9 if d > 9 else d for d in doubled) % 10)


def ean(rng: random.Random, start: str = "") -> str:
    start = start or rng.choice(("400", "426", "439", "501", "690", "871"))
    body = start + digits(rng, 12 - len(start))
    total = sum(int(d) * (3 if at % 2 == 0 else 1) for at, d in enumerate(reversed(body)))
    return f"{body}{-total % 10}"


def isbn(rng: random.Random) -> str:
    number = ean(rng, "978316")
    return f"{number[:3]}-{number[3]}-{number[4:6]}-{number[6:12]}-{number[12]}"


def card(rng: random.Random) -> str:
    prefix, length = rng.choice(CARD_PREFIXES)
    body = prefix + digits(rng, length - len(prefix) - 1)
    return body + luhn_digit(body)


def iban(rng: random.Random) -> str:
    country, bban = rng.choice(
        (("DE", digits(rng, 18)), ("AT", digits(rng, 16)), ("GB", letters(rng, 4) + digits(rng, 14)), ("ES",
        digits(rng, 20)),
         ("NL", letters(rng, 4) + digits(rng, 10)), ("CH", digits(rng, 17)), ("IE", letters(rng, 4) + digits(rng, 14)))
    )  # fmt: skip
    number = int("".join(str(int(c, 36)) for c in f"{bban}{country}00"))
    return f"{country}{98 - number % 97:02d}{bban}"


def paper(rng: random.Random) -> str:
    return rng.choice(
        (f"{rng.randint(100, 665)}-{rng.randint(10, 99)}-{rng.randint(1000, 9999)}",
        f"L{digits(rng, 2)}X{digits(rng, 2)}T{digits(rng, 2)}",
         f"C{digits(rng, 2)}FG{digits(rng, 4)}",
         f"{digits(rng, 2)} {digits(rng, 3)} {digits(rng, 3)} {digits(rng, 3)}", f"X{digits(rng, 8)}")
    )  # fmt: skip


def spanish_dni(rng: random.Random) -> str:
    number = rng.randint(10_000_000, 99_999_999)
    return f"{number}{'TRWAGMYFPDXBNJZSQVHLCKE'[number % 23]}"


def nino(rng: random.Random) -> str:
    return f"{rng.choice(('AB', 'CE', 'JK', 'PW'))}{digits(rng, 6)}{rng.choice('ABCD')}"


def password(rng: random.Random) -> str:
    word = rng.choice(("hunter", "Sonnen", "dragon", "Blume", "qwerty", "Kater", "winter"))
    return word + rng.choice((digits(rng, 2), f"!{digits(rng, 3)}", f"_{digits(rng, 4)}", "#" + letters(rng, 3)))


def token(rng: random.Random) -> str:
    base62 = string.ascii_letters + string.digits
    return rng.choice(
        (
            "AKIA" + letters(rng, 16, string.ascii_uppercase + "234567"),
            "ghp_" + letters(rng, 36, base62),
            "xoxb-" + digits(rng, 12) + "-" + letters(rng, 24, base62),
            "sk_live_" + letters(rng, 24, base62),
            "AIza" + letters(rng, 35, base62),
            "npm_" + letters(rng, 36, base62),
            "glpat-" + letters(rng, 20, base62),
            "SG." + letters(rng, 22, base62) + "." + letters(rng, 43, base62),
            "eyJ" + letters(rng, 20, base62) + ".eyJ" + letters(rng, 30, base62) + "." + letters(rng, 43, base62),
            f"postgres://shop:{letters(rng, 12, base62)}@db.example.test/shop",
            "-----BEGIN RSA PRIVATE KEY-----",
            "api_key = " + letters(rng, 32, "0123456789abcdef"),
            "secret: " + letters(rng, 20, base62),
        )
    )


def framed(rng: random.Random, kind: str, text: str) -> str:
    frame = rng.choice(FRAMES[1:] if kind in ("paper", "password") else FRAMES)
    return frame.format(text, noun=rng.choice(NOUNS[kind]))


def grouped(text: str, separator: str, size: int = 4) -> str:
    return separator.join(text[at : at + size] for at in range(0, len(text), size))


def full_width(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


def spoken(rng: random.Random, number: str) -> str:
    words = rng.choice((WORDS_EN, WORDS_DE))
    return rng.choice((" ", ", ", "-")).join(words[int(d)] for d in number)


def plain(rng: random.Random, count: int) -> Iterator[Row]:
    made: tuple[tuple[str, Callable[[random.Random], str]], ...] = (
        ("card", lambda r: framed(r, "card", card(r))),
        ("card", lambda r: framed(r, "card", grouped(card(r), " "))),
        ("iban", lambda r: framed(r, "iban", iban(r))),
        ("iban", lambda r: framed(r, "iban", grouped(iban(r), " "))),
        ("paper", lambda r: framed(r, "paper", paper(r))),
        ("paper", lambda r: r.choice(("{}", "id {}", "mein DNI: {}")).format(spanish_dni(r))),
        ("paper", lambda r: r.choice(("{}", "NI number {}", "insured under {}")).format(nino(r))),
        ("password", lambda r: framed(r, "password", password(r))),
        (
            "password",
            lambda r: r.choice(("my PIN is {}", "PIN: {}", "Meine PIN lautet {}", "cvv {}")).format(digits(r, 4)),
        ),
        ("token", token),
        ("token", lambda r: f"use {token(r)} for the shop"),
    )
    for number in range(count):
        kind, make = made[number % len(made)]
        yield kind, "note", make(rng)


def disguised(rng: random.Random, count: int) -> Iterator[Row]:
    def hidden_in_key(r: random.Random) -> tuple[str, str]:
        return f"card_{grouped(card(r), '_')}", "main card"

    def split_over_both(r: random.Random) -> tuple[str, str]:
        number = card(r)
        return f"card_{number[:8]}", number[8:]

    made: tuple[tuple[str, Callable[[random.Random], tuple[str, str]]], ...] = (
        ("card", lambda r: ("note", framed(r, "card", grouped(card(r), r.choice(SEPARATORS))))),
        ("card", lambda r: ("note", full_width(card(r)))),
        ("card", lambda r: ("note", "card " + spoken(r, card(r)))),
        ("card", hidden_in_key),
        ("card", split_over_both),
        (
            "card",
            lambda r: ("note", "my card {} then {} and {} {}".format(*grouped(card(r).ljust(16), "|").split("|"))),
        ),
        ("iban", lambda r: ("note", framed(r, "iban", grouped(iban(r).lower(), r.choice(SEPARATORS))))),
        ("iban", lambda r: (iban(r).lower(), "for refunds")),
        ("iban", lambda r: ("note", full_width(iban(r)))),
        ("paper", lambda r: ("passport_number", f"X{digits(r, 7)}")),
        ("paper", lambda r: ("note", "SSN " + full_width(paper(r)))),
        ("password", lambda r: ("wifi_password", password(r))),
        ("password", lambda r: ("note", "\u200b".join("my password is ") + password(r))),
        ("password", lambda r: ("pin", digits(r, 4))),
        ("token", lambda r: ("note", "\u2060".join(grouped(token(r), "\n").split("\n")))),
        ("token", lambda r: ("note", full_width("ghp_" + letters(r, 36, string.ascii_letters + string.digits)))),
    )
    for number in range(count):
        kind, make = made[number % len(made)]
        yield kind, *make(rng)


def innocent(rng: random.Random, count: int) -> Iterator[Row]:
    def some_day(r: random.Random) -> date:
        return date(2024, 1, 1) + timedelta(days=r.randrange(1200))

    made: tuple[Callable[[random.Random], str], ...] = (
        lambda r: f"order {digits(r, 3)}-{digits(r, 7)}-{digits(r, 7)} arrived late",
        lambda r: f"Bestellnummer {digits(r, 10)} bitte erst freitags liefern",
        lambda r: f"order #W{digits(r, 7)}",
        lambda r: f"EAN {ean(r)}",
        lambda r: f"barcode {ean(r)} on the box",
        lambda r: ean(r),
        lambda r: f"UPC {digits(r, 12)}",
        lambda r: f"ISBN {isbn(r)}",
        lambda r: f"tracking 1Z{letters(r, 3)}{digits(r, 2)}{digits(r, 8)}",
        lambda r: f"Sendungsnummer 0034043{digits(r, 13)}",
        lambda r: f"FedEx {digits(r, 12)}",
        lambda r: f"parcel JJD{digits(r, 18)}",
        lambda r: f"GLS Paket {digits(r, 11)} beim Nachbarn abgeben",
        lambda r: f"wears EU sizes {' '.join(str(38 + n) for n in range(r.randint(3, 8)))}",
        lambda r: f"Größe {r.randint(34, 48)} oder {r.randint(34, 48)}, Schuhe {r.randint(36, 47)}",
        lambda r: f"shelf is {r.randint(60, 300)} {r.randint(60, 300)} {r.randint(60, 300)} cm",
        lambda r: f"desk {r.randint(60, 300)} x {r.randint(60, 300)} x {r.randint(60, 300)} mm",
        lambda r: f"deliver {some_day(r)} {r.randint(8, 20)}:{r.choice(('00', '15', '30'))}",
        lambda r: f"Termin am {some_day(r):%d.%m.%Y} um {r.randint(8, 20)}:30 Uhr",
        lambda r: f"open {r.randint(7, 10):02d}:00-{r.randint(17, 21)}:30, Sa {r.randint(9, 11)}.00-14.00",
        lambda r: f"budget {r.randint(1, 9)},{digits(r, 3)}.50 to {r.randint(10, 20)},{digits(r, 3)}.00",
        lambda r: f"Lamp item {digits(r, 10)} product {digits(r, 10)} {r.randint(10, 900)}.{digits(r, 2)} color white",
        lambda r: f"Artikel {digits(r, 3)}.{digits(r, 3)}.{digits(r, 2)} in Eiche",
        lambda r: f"MacBook model {letters(r, 2)}{digits(r, 2)}{letters(r, 10)}",
        lambda r: f"serial {letters(r, 4)}{digits(r, 8)}",
        lambda r: f"IMEI 35{digits(r, 13)}",
        lambda r: f"Rechnung {r.randint(2023, 2026)}-{digits(r, 6)}",
        lambda r: f"customer since {some_day(r)}, {r.randint(2, 90)} orders",
        lambda r: f"ZIP {digits(r, 5)}-{digits(r, 4)}",
        lambda r: f"Kundennummer {digits(r, 8)}, Filiale {digits(r, 3)}",
        lambda r: f"size {r.randint(6, 13)}{r.choice(('½', '.5', ''))} {r.choice(('wide', 'schmal', 'D'))}",
        lambda r: r.choice(
            ("forgets her password often", "will kein Passwort", "pays by card", "no passport yet")
        ),
    )  # fmt: skip
    for number in range(count):
        yield "", "note", made[number % len(made)](rng)
