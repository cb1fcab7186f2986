"""Payment cards and bank accounts: `unglued` or folded text in, yes or no out. Check digits and issuer ranges decide.
Imports python-stdnum and the store's digits only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from stdnum import ean, iban, luhn

from memory_portal.store.digits import GAP, beside, unglued


class Issuer(NamedTuple):
    """Numbers beginning `first` to `last` with one of `lengths`; `cued` ones count only beside a word for a card."""

    name: str
    first: str
    last: str
    lengths: tuple[int, ...]
    cued: bool = False


_16 = (16,)
_16_19 = (16, 17, 18, 19)
ISSUERS = (
    Issuer("Visa", "4", "4", (16,)),
    Issuer("Visa, other lengths", "4", "4", (13, 19)),
    Issuer("Mastercard", "51", "55", _16),
    Issuer("Mastercard, second series", "2221", "2720", _16),
    Issuer("American Express", "34", "34", (15,)),
    Issuer("American Express", "37", "37", (15,)),
    Issuer("Discover", "6011", "6011", _16_19),
    Issuer("Discover", "644", "659", _16_19),
    Issuer("Diners Club", "300", "305", (14, 16)),
    Issuer("Diners Club", "3095", "3095", (14, 16)),
    Issuer("Diners Club", "36", "36", (14, 16)),
    Issuer("Diners Club", "38", "39", (14, 16)),
    Issuer("JCB", "35", "35", _16),
    Issuer("JCB", "3528", "3589", (17, 18, 19)),
    Issuer("JCB, former 15 digits", "1800", "1800", (15,)),
    Issuer("JCB, former 15 digits", "2131", "2131", (15,)),
    Issuer("UnionPay", "62", "62", _16_19),
    Issuer("UnionPay", "81", "81", _16_19),
    Issuer("Mir", "2200", "2204", _16_19),
    Issuer("RuPay", "60", "60", _16),
    Issuer("RuPay", "82", "82", _16),
    Issuer("RuPay and Elo", "508", "509", _16),
    Issuer("Verve", "506099", "506198", (16, 18, 19)),
    Issuer("Troy", "9792", "9792", _16),
    Issuer("Maestro", "5018", "5038", _16_19),
    Issuer("Maestro", "5893", "5893", _16_19),
    Issuer("Maestro", "6304", "6304", _16_19),
    Issuer("Maestro", "6759", "6763", _16_19),
    Issuer("Maestro, any length", "50", "50", tuple(range(12, 20)), cued=True),
    Issuer("Maestro, any length", "56", "69", tuple(range(12, 20)), cued=True),
    Issuer("UATP", "1", "1", (15,), cued=True),
)
_CARD_CUE = re.compile(
    r"\b(?:card|cards|cc|visa|mastercard|master card|amex|american express|maestro|diners|jcb|discover|debit|credit)\b"
    r"|karte|tarjeta|cr[eé]dito|d[eé]bito|卡|carte"
)
# Where a card is as long as the barcode of a thing (13) or of a parcel (18), the barcode's own check digit excuses it.
_BARCODE_LENGTHS = (13, 18)
_LONG_RUN = re.compile(rf"\d(?:{GAP}\d){{11,}}")
_SCATTERED = re.compile(r"\d+")
_LETTER = re.compile("[a-z]")
_CARD_SHAPE = re.compile(
    rf"(?<![a-z0-9])(?:[2-6]\d{{3}}(?:{GAP}\d{{4}}){{3}}|3[47]\d\d{GAP}\d{{6}}{GAP}\d{{5}})(?![a-z0-9])"
)
_WHOLE_SIZES = {
    (4, 6, 5),
    (4, 6, 4),
    (4, 4, 5),
    (6, 13),
    (4, 4, 4, 3),
    (4, 5, 6),
    (4, 4, 4, 4, 2),
    (4, 4, 4, 4, 3),
    (4, 3, 3, 3),
}


def has_card(text: str) -> bool:
    """A number with a valid check digit in a range that an issuer uses, however it is written. Takes `unglued` text."""
    if sum(map(str.isdigit, text)) < 12:
        return False
    cued = bool(_CARD_CUE.search(text))
    if any(_is_card(number, cued) for run in _LONG_RUN.finditer(text) for number in _windows(run, cued)):
        return True
    if not cued:
        return False
    # Words between the digits ("4000 1234 and then ..."): only where the text speaks of a card and has no other number.
    # A mistyped card is still a card where the text says so.
    return _is_card("".join(_SCATTERED.findall(text)), cued) or beside(_CARD_CUE, _CARD_SHAPE, text)


def _windows(run: re.Match[str], cued: bool) -> Iterator[str]:
    """Neighbouring groups that together have a card's length and its grouping: fours, 4-6-5, none, singles."""
    groups = _SCATTERED.findall(run[0])
    longest = 16 if _LETTER.match(run.string, run.start() - 1) else 19  # parcels have letters and 18 digits
    if max(map(len, groups)) < 3 and sum(map(len, groups)) > longest:
        return  # pairs and singles count only where there is nothing else
    for start in range(len(groups)):
        total = 0
        for end in range(start, len(groups)):
            total += len(groups[end])
            if total > longest:
                break
            if total >= 12 and _grouped_as_card(groups[start : end + 1], len(groups) == end - start + 1, cued):
                yield "".join(groups[start : end + 1])


def _grouped_as_card(window: list[str], whole: bool, cued: bool) -> bool:
    sizes = tuple(map(len, window))
    fours = all(size == 4 for size in sizes[:-1]) and sizes[-1] <= 4
    if len(sizes) == 1 or fours or sizes in _WHOLE_SIZES:
        return True
    # Sizes are listed in pairs, and orders are 3-7-7: other groups need the word, or the common length.
    return whole and (cued or set(sizes) == {1} or (max(sizes) >= 3 and len(sizes) <= 6 and sum(sizes) <= 16))


def _is_card(digits: str, cued: bool) -> bool:
    if not 12 <= len(digits) <= 19 or not _issued(digits, cued):
        return False
    if not cued and len(digits) in _BARCODE_LENGTHS and ean.calc_check_digit(digits[:-1]) == digits[-1]:
        return False
    return luhn.is_valid(digits) and len(set(digits)) > 1


def _issued(digits: str, cued: bool) -> bool:
    return any(
        len(digits) in issuer.lengths
        and issuer.first <= digits[: len(issuer.first)] <= issuer.last
        and (cued or not issuer.cued)
        for issuer in ISSUERS
    )


# --- bank accounts --------------------------------------------------------------------------------------------------

_IBAN_START = re.compile(rf"(?<![a-z0-9])[a-z]{{2}}{GAP}\d{GAP}\d")
_NOT_ALNUM = re.compile(r"[^a-z0-9]")
_ACCOUNT_CUE = re.compile(
    r"\b(?:bank account|account (?:number|no)|routing (?:number|no)|sort code|clabe|aba|bsb)\b|kontonummer"
    r"|bankleitzahl|\bblz\b"
    r"|cuenta (?:bancaria|corriente)|n[uú]mero de cuenta|银行账号|银行帐号|银行账户|銀行帳號|銀行帳戶|銀行賬號|iban"
)
_ACCOUNT_NUMBER = re.compile(r"(?<![a-z0-9])\d(?:[ -]?\d){5,17}(?![a-z0-9])")


def has_bank_account(text: str) -> bool:
    """A valid IBAN in any spacing and case, or a bare account number beside a word that says so. Takes folded text."""
    spaced = text.replace("_", " ")
    if any(_starts_iban(spaced[start.start() :]) for start in _IBAN_START.finditer(spaced)):
        return True
    return beside(_ACCOUNT_CUE, _ACCOUNT_NUMBER, unglued(text))


def _starts_iban(text: str) -> bool:
    letters = _NOT_ALNUM.sub("", text[:90])[:34].upper()
    return any(
        _mod97(letters[:length]) and iban.is_valid(letters[:length], check_country=False)
        for length in range(15, len(letters) + 1)
    )


def _mod97(account: str) -> bool:
    return int("".join(str(int(c, 36)) for c in account[4:] + account[:4])) % 97 == 1
