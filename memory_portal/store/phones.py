"""Telephone numbers: `unglued` text and the customer's country in, yes or no out. Never bare digits: those are orders.
Imports phonenumbers and the store's digits only.
"""

from __future__ import annotations

import re

import phonenumbers

from memory_portal.store.digits import label_before

REGIONS = ("GB", "DE", "FR", "IT", "AU", "CN", "TW", "JP", "IN", "ES")
"""Tried for a number with its trunk zero when the customer's region is unknown."""
TOO_MANY = 40
"""A text with more phone-shaped numbers than this is no fact; it is refused rather than checked one by one."""

_PHONE = re.compile(
    r"(?<![a-z0-9.+])(?:\+ ?)?\(?\d(?:(?:[ .-]|\)|\(| ?[-/] ?|\) ?|\) ?-| ?\(){0,1}\d){6,16}(?![a-z0-9]|[.,]\d)"
)
_LABEL_AFTER = re.compile(
    r"[ ,]{0,2}(?:is|are|=|-|ist|es|是)?\s{0,2}(?:my|his|her|our|the|a|mein\w*|mi|我的?|的)?\s{0,2}(?:new "
    r"|home |work )?"
    r"(?:phone|telephone|mobile|cell|number|telefon|handy|tel[eé]fono|m[oó]vil|电话|電話|手机|手機)"
)
_UNIT_AFTER = re.compile(
    r" ?(?:cm|mm|m|km|kg|g|ml|l|x|in|inch(?:es)?|ft|eur|usd|gbp|euros?|dollars?|%|°|€|\$|£|¥|元|公分|毫米"
    r"|厘米)(?![a-z])"
)
_TRUNK_OR_AREA = re.compile(r"0\d{1,4}[ ./()-]|\(0?\d{2,5}\)|1[ .-]")
_NORTH_AMERICA = re.compile(r"\(?[2-9]\d{2}(?:\) ?|[-. ])[2-9]\d{2}[-. ]\d{4}")
_GROUPS = re.compile(r"\d+")
_SEPARATOR = re.compile(r"[ ./()-]")


def has_phone(text: str, region: str) -> bool:
    """A telephone number: with a leading +, grouped as its numbering plan has it, or beside a word for it.

    Bare digits are never a telephone: they are orders and barcodes.
    """
    return any(count >= TOO_MANY or _is_phone(number, region) for count, number in enumerate(_PHONE.finditer(text)))


def _is_phone(number: re.Match[str], region: str) -> bool:
    written = number[0].strip()
    digits = re.sub(r"\D", "", written)
    if written.startswith("+") and _possible(written):
        return True
    label = label_before(number)
    if label == "phone" or (not label and _LABEL_AFTER.match(number.string, number.end())):
        return 7 <= len(digits) <= 15
    if label == "item" or not _SEPARATOR.search(written) or _UNIT_AFTER.match(number.string, number.end()):
        return False
    if digits.startswith("00") and _possible("+" + digits[2:]):
        return True
    return _fits_a_plan(written, digits, region)


def _fits_a_plan(written: str, digits: str, region: str) -> bool:
    if region:
        number = _valid(written, region)
        return number is not None and (bool(_TRUNK_OR_AREA.match(written)) or _grouped_as_printed(written, number))
    if _NORTH_AMERICA.fullmatch(written):
        # Three numbers with spaces between may be a width, a depth and a height.
        return _valid(written, "US") is not None and bool(re.search(r"[-().]", written))
    if not _TRUNK_OR_AREA.match(written) or len(digits) < 10:
        return False
    return any(_valid(written, plan) for plan in (("US",) if written[0] == "1" else REGIONS))


def _parsed(written: str, region: str | None) -> phonenumbers.PhoneNumber | None:
    try:
        return phonenumbers.parse(written, region)
    except phonenumbers.NumberParseException:
        return None


def _possible(written: str) -> bool:
    number = _parsed(written, None)
    return number is not None and phonenumbers.is_possible_number(number)


def _valid(written: str, region: str) -> phonenumbers.PhoneNumber | None:
    number = _parsed(written, region.upper())
    return number if number is not None and phonenumbers.is_valid_number(number) else None


def _grouped_as_printed(written: str, number: phonenumbers.PhoneNumber) -> bool:
    printed = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.NATIONAL)
    return _GROUPS.findall(written) == _GROUPS.findall(printed)
