"""What a key, a value or a quote must not contain: texts in, the first reason against them out, or None.
Each is read as it stands, folded, joined ("key value") and with digits spelled out. What cannot be checked is refused.
Pure: imports enums and the store's sanitise and detector rooms only.
"""

from __future__ import annotations

import html
import ipaddress
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from memory_portal.enums import Reason
from memory_portal.store import secrets
from memory_portal.store.digits import spoken_as_digits, unglued
from memory_portal.store.papers import has_identity_number
from memory_portal.store.payment import has_bank_account, has_card
from memory_portal.store.phones import has_phone
from memory_portal.store.sanitise import clean, fold
from memory_portal.store.wording import about_other_person, instruction_shaped, sensitive

__all__ = ["about_other_person", "inspect", "instruction_shaped", "sensitive"]


class Reading(NamedTuple):
    """One way to read a text: `raw` keeps case, `folded` forgets typing, `numbers` has dates and prices masked."""

    raw: str
    folded: str
    numbers: str
    region: str


Detector = Callable[[Reading], bool]


def inspect(
    key: str, value: str, quote: str = "", *, region: str = "", patterns: Sequence[re.Pattern[str]] = ()
) -> Reason | None:
    """The reason why this may not be kept. `region` is the customer's country (two letters), for telephone numbers.

    A detector that fails counts as a refusal: nothing unchecked is kept, and nothing of the text leaves this function.
    """
    try:
        return _first_reason(list(_readings(key, value, quote, region)), patterns)
    except Exception:  # whatever a detector or a third party raises; its message may hold the value, so it is dropped
        return Reason.FILTER_FAILED


def _first_reason(readings: list[Reading], patterns: Sequence[re.Pattern[str]]) -> Reason | None:
    for reason, detector in DETECTORS:
        if any(detector(reading) for reading in readings):
            return reason
    if any(
        pattern.search(text) for pattern in patterns for reading in readings for text in (reading.raw, reading.folded)
    ):
        return Reason.BLOCKED_PATTERN
    return None


def _readings(key: str, value: str, quote: str, region: str) -> Iterator[Reading]:
    """Key and value as one, since a number can hide in both; apart as well where digits of the key may spoil it."""
    words = key.replace("_", " ")
    texts = [f"{words}: {value}"] + ([quote] if quote != value else [])
    if any(map(str.isdigit, key)):
        texts += [value, words]
    for text in dict.fromkeys(map(clean, texts)):
        if text:
            yield from _ways(text, region)


def _ways(text: str, region: str) -> Iterator[Reading]:
    # Full-width letters hide a key that is told by its case, so the raw reading is NFKC, too; it is never stored.
    raw, folded = unicodedata.normalize("NFKC", text), fold(text)
    yield Reading(raw, folded, unglued(folded), region)
    figures = spoken_as_digits(folded)
    if figures != folded:
        yield Reading(figures, figures, unglued(figures), region)


# --- e-mail, links, markup ------------------------------------------------------------------------------------------

_AT = r"(?: ?(?:@|\(at\)|\[at\]|\{at\}|<at>|\(a\)|艾特) ?)"
_DOT = r"(?: ?(?:\.|\(dot\)|\[dot\]|\{dot\}|\(punkt\)) ?| (?:dot|punkt|punto|点|點) |点|點)"
_EMAIL = re.compile(rf"[\w.+%-]{{1,64}}{_AT}[\w-]{{1,63}}(?:{_DOT}[\w-]{{2,63}})")
_TLD = (
    "com|net|org|info|biz|io|co|app|dev|ai|me|tv|xyz|shop|store|online|site|top|club|link|click|edu|gov|mil"
    "|int|test|example|onion|local"
    "|eu|uk|de|at|ch|fr|es|it|nl|be|pl|pt|se|no|dk|fi|ie|ru|ua|tr|cn|tw|hk|jp|kr|sg|my|th|vn|in|au|nz|us|ca"
    "|mx|br|ar|cl|ly|gl|gg|cc|ws|to"
)
_EMAIL_SPOKEN = re.compile(
    rf"[\w.+%-]{{1,64}} (?:at|arroba|klammeraffe) [\w-]{{1,63}}(?: (?:dot|punkt|punto) ?)(?:{_TLD})(?![\w-])"
)
# "Shops at example.com" is a habit; only beside a word for mail is it an address.
_EMAIL_HALF_SPOKEN = re.compile(
    rf"(?:\b(?:e-?mail|mail|write|contact|reach|schreib\w*|erreich\w*|correo|escrib\w*)\b|邮箱|郵箱|信箱)[^.]{{0,30}}"
    rf"[\w.+%-]{{1,64}} (?:at|arroba|klammeraffe) [\w-]{{1,63}}\.(?:{_TLD})(?![\w-])"
)
_AT_SIGNS = ("@", "at", "arroba", "艾特", "(a)", "klammeraffe")


def has_email(reading: Reading) -> bool:
    text = reading.folded
    if not any(sign in text for sign in _AT_SIGNS):
        return False
    return any(form.search(text) for form in (_EMAIL, _EMAIL_SPOKEN, _EMAIL_HALF_SPOKEN))


_LINK = re.compile(
    r"\b[a-z][a-z0-9+.-]{1,20}://\S"
    r"|\bwww\.[\w-]"
    r"|\b(?:mailto|tel|sms|data|javascript|vbscript|file|magnet):(?=[^\s])[^\s]*[/@,;(+\d]"
    rf"|(?<![\w@])[a-z0-9][a-z0-9-]{{0,62}}(?:\.[a-z0-9-]{{1,63}}){{0,4}}\.(?:{_TLD})(?::\d{{2,5}})?[/?#]\S?"
    rf"|\b[a-z0-9-]{{2,63}} ?(?:\(dot\)|\[dot\]|\[\.\]| dot ) ?(?:{_TLD})\b"
    r"|[\w-]{1,63}\.(?:公司|中国|中國|网络|網路|香港|台灣|台湾)(?:/|\b)"
)
_IPV4 = re.compile(r"(?<![\w.])(?<!version )(?<!firmware )\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?(?![\w]|\.\d)")
_IPV6 = re.compile(r"(?<![\w:])(?=[0-9a-f]*:[0-9a-f:]*:)[0-9a-f:]{2,39}(?:(?<=:)\d{1,3}(?:\.\d{1,3}){3})?(?![\w:])")
_MAC = re.compile(
    r"(?<![\w:-])[0-9a-f]{2}([:-])[0-9a-f]{2}(?:\1[0-9a-f]{2}){4}(?![\w:-])|\b[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}\b"
)


def has_link(reading: Reading) -> bool:
    return _LINK.search(reading.folded) is not None


def has_network_address(reading: Reading) -> bool:
    text = reading.folded
    if text.count(".") >= 2 or text.count(":") >= 2 or text.count("-") >= 5:
        addresses = [*_IPV4.finditer(text), *_IPV6.finditer(text)]
        return any(_is_ip(found[0].split("/")[0]) for found in addresses) or _MAC.search(text) is not None
    return False


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


_MARKUP = re.compile(
    r"<[!?/]?[a-z][a-z0-9:-]{0,20}(?:[\s/][^<>]{0,200})?>"
    r"|<(?:script|img|svg|iframe|style|link|meta|object|embed|form|input|a|body|html|video|audio|base)\b"
    r"|<!--|<!\[cdata|<\|[a-z_]{2,30}\|>|<<sys>>|\[/?inst\]"
    r"|!?\[[^\[\]]{0,200}\]\([^()\s]{1,200}"
    r"|\[[^\[\]]{1,80}\]: ?\S{1,20}[/.]\S"
    r"|```|\{\{[^{}]{1,100}\}\}|\{%[^{}]{1,100}%\}|\$\{[^{}]{1,100}\}"
    r"|\bon(?:error|load|click|mouseover|focus) ?= ?\S|\bjavascript:"
    r"|(?:\\x[0-9a-f]{2}|%[0-9a-f]{2}|\\u[0-9a-f]{4}|&#x?[0-9a-f]{1,6};){4,}"
)


def has_markup(reading: Reading) -> bool:
    text = reading.folded
    return _MARKUP.search(text) is not None or ("&" in text and _MARKUP.search(html.unescape(text)) is not None)


DETECTORS: list[tuple[Reason, Detector]] = [
    (Reason.CARD, lambda reading: has_card(reading.numbers)),
    (Reason.IBAN, lambda reading: has_bank_account(reading.folded)),
    (Reason.NATIONAL_ID, lambda reading: has_identity_number(reading.folded)),
    (Reason.SECRET, lambda reading: secrets.has_secret(reading.raw, reading.folded)),
    (Reason.EMAIL, has_email),
    (Reason.PHONE, lambda reading: has_phone(reading.numbers, reading.region)),
    (Reason.LINK, has_link),
    (Reason.LINK, has_network_address),
    (Reason.MARKUP, has_markup),
]
"""Walked in order; the first that answers yes gives the reason."""
