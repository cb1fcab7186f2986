"""Numbers that name a person or their money: text readings in, yes or no out. Cards, accounts, identity papers, telephones.
A checksum or a word beside the number decides, because shops are full of innocent numbers: orders, barcodes, sizes, prices.
Imports phonenumbers, python-stdnum and the store's sanitise only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import phonenumbers
from stdnum import iban as stdnum_iban
from stdnum import luhn
from stdnum.be import nn
from stdnum.br import cpf
from stdnum.ch import ssn as ahv
from stdnum.cl import rut
from stdnum.cn import ric
from stdnum.es import dni, nie
from stdnum.fi import hetu
from stdnum.fr import nir
from stdnum.it import codicefiscale
from stdnum.kr import rrn
from stdnum.mx import curp
from stdnum.my import nric
from stdnum.se import personnummer
from stdnum.us import ssn

GAP = r"[ _.,:;/|*~^'()\[\]-]{0,3}"
"""What people put between the digits of one number."""

# What looks like digits in a row and is not: a date, a time, a decimal price. Masked, it cannot be glued to its neighbours.
_INNOCENT = re.compile(
    r"""
    (?<![\d/.-])(?:19|20)\d\d([-/.])(?:0?[1-9]|1[0-2])\1(?:0?[1-9]|[12]\d|3[01])(?![\d/.-]?\d)      # 2026-09-12
    | (?<![\d/.-])(?:0?[1-9]|[12]\d|3[01])([-/.])(?:0?[1-9]|[12]\d|3[01])\2(?:19|20)?\d\d(?![\d/.-]?\d)  # 12.09.2026
    | (?<![\d:])(?:[01]?\d|2[0-4]):[0-5]\d(?::[0-5]\d)?(?![\d:])                                     # 10:30
    | (?<![\d.,])\d{1,7}[.,]\d{1,2}(?![\d.,]?\d)                                                      # 217.06
    | (?<![\d.,])\d{1,3}(?:,\d{3})+(?:\.\d{1,2})?(?![\d.,]?\d)                                        # 1,234,567
    """,
    re.VERBOSE,
)
MASK = "\u00a4"


def unglued(folded: str) -> str:
    """Folded text ready for number hunting: dates, times and prices masked, underscores as spaces."""
    return _INNOCENT.sub(MASK, folded.replace("_", " "))


# --- spelled-out digits -------------------------------------------------------------------------------------------------

_DIGIT_WORDS = {
    word: digit
    for digit, words in {
        "0": "zero oh null cero 零 〇 ゼロ",
        "1": "one eins ein uno una 一 壹 幺",
        "2": "two zwei zwo dos 二 貳 贰 两 兩",
        "3": "three drei tres 三 參 叁",
        "4": "four vier cuatro 四 肆",
        "5": "five fünf fuenf cinco 五 伍",
        "6": "six sechs seis 六 陸 陆",
        "7": "seven sieben siete 七 柒",
        "8": "eight acht ocho 八 捌",
        "9": "nine neun nueve 九 玖",
    }.items()
    for word in words.split()
}
_REPEATS = {"double": 2, "triple": 3, "doppel": 2, "doble": 2}
_DIGIT_WORD = "|".join([*sorted((w for w in _DIGIT_WORDS if w.isalpha()), key=len, reverse=True), *_REPEATS])
# Seven in a row: nobody counts that far in a preference, and no telephone is shorter.
_SPOKEN = re.compile(rf"(?<![a-zäöüß])(?:(?:(?:{_DIGIT_WORD})(?![a-zäöüß])|\d)[ ,./-]{{0,3}}){{7,}}")
_SPOKEN_PART = re.compile(rf"{_DIGIT_WORD}|\d")
SPOKEN_WORDS = 4
"""So many digits of the run must be words; figures alone are read as they stand."""


def spoken_as_digits(folded: str) -> str:
    """The text with every run of seven or more spelled-out digits written in figures; the same object when there is none."""
    return _SPOKEN.sub(_figures, folded) if _SPOKEN.search(folded) else folded


def _figures(run: re.Match[str]) -> str:
    digits, times = [], 1
    parts = _SPOKEN_PART.findall(run[0])
    if sum(not part.isascii() or not part.isdigit() for part in parts) < SPOKEN_WORDS:
        return run[0]
    for part in parts:
        if part in _REPEATS:
            times = _REPEATS[part]
            continue
        digits.append(_DIGIT_WORDS.get(part, part) * times)
        times = 1
    return "".join(digits) + " "


# --- payment cards ------------------------------------------------------------------------------------------------------


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
    Issuer("Visa, 18 and 19 digits", "4", "4", (18, 19), cued=True),
    Issuer("Visa, withdrawn 13 digits", "4", "4", (13,), cued=True),
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
    Issuer("JCB", "3528", "3589", _16_19),
    Issuer("JCB, former 15 digits", "1800", "1800", (15,), cued=True),
    Issuer("JCB, former 15 digits", "2131", "2131", (15,), cued=True),
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
_LONG_RUN = re.compile(rf"\d(?:{GAP}\d){{11,}}")
_SCATTERED = re.compile(r"\d+")
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
    runs = [_SCATTERED.findall(run[0]) for run in _LONG_RUN.finditer(text)]
    if any(_is_card(number, cued) for groups in runs for number in _windows(groups, cued)):
        return True
    if not cued:
        return False
    # Words between the digits ("4000 1234 and then ..."): only where the text speaks of a card and has no other number.
    # A mistyped card is still a card where the text says so.
    return _is_card("".join(_SCATTERED.findall(text)), cued) or _beside(_CARD_CUE, _CARD_SHAPE, text)


def _windows(groups: list[str], cued: bool) -> Iterator[str]:
    """Neighbouring groups that together are as long as a card and are grouped as cards are: fours, 4-6-5, no groups, singles."""
    for start in range(len(groups)):
        total = 0
        for end in range(start, len(groups)):
            total += len(groups[end])
            if total > 19:
                break
            if total >= 12 and _grouped_as_card(groups[start : end + 1], len(groups) == end - start + 1, cued):
                yield "".join(groups[start : end + 1])


def _grouped_as_card(window: list[str], whole: bool, cued: bool) -> bool:
    sizes = tuple(map(len, window))
    fours = all(size == 4 for size in sizes[:-1]) and sizes[-1] <= 4
    if len(sizes) == 1 or fours or sizes in _WHOLE_SIZES:
        return True
    # Pairs and singles are also how sizes are listed, so pairs need the word.
    return whole and (cued or set(sizes) == {1} or (max(sizes) >= 3 and len(sizes) <= 6))


def _is_card(digits: str, cued: bool) -> bool:
    if not 12 <= len(digits) <= 19 or not _issued(digits, cued):
        return False
    return bool(luhn.is_valid(digits)) and len(set(digits)) > 1


def _issued(digits: str, cued: bool) -> bool:
    return any(
        len(digits) in issuer.lengths
        and issuer.first <= digits[: len(issuer.first)] <= issuer.last
        and (cued or not issuer.cued)
        for issuer in ISSUERS
    )


# --- bank accounts ------------------------------------------------------------------------------------------------------

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
    return _beside(_ACCOUNT_CUE, _ACCOUNT_NUMBER, unglued(text))


def _starts_iban(text: str) -> bool:
    letters = _NOT_ALNUM.sub("", text[:90])[:34].upper()
    return any(
        _mod97(letters[:length]) and stdnum_iban.is_valid(letters[:length], check_country=False)
        for length in range(15, len(letters) + 1)
    )


def _mod97(account: str) -> bool:
    return int("".join(str(int(c, 36)) for c in account[4:] + account[:4])) % 97 == 1


# --- identity papers ----------------------------------------------------------------------------------------------------

Check = Callable[[str], bool]


class Paper(NamedTuple):
    """An identity number whose written form is its own: found by shape, confirmed by `check`."""

    name: str
    shape: re.Pattern[str]
    check: Check


def _nino(text: str) -> bool:
    prefix = text[:2]
    return prefix not in {"BG", "GB", "KN", "NK", "NT", "TN", "ZZ"}


_LETTER_VALUES = {letter: 10 + "ABCDEFGHJKLMNPQRSTUVXYWZIO".index(letter) for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def _taiwan(text: str) -> bool:
    area = _LETTER_VALUES[text[0]]
    digits = [area // 10, area % 10, *map(int, text[1:])]
    return sum(d * w for d, w in zip(digits, (1, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1), strict=True)) % 10 == 0


def _hong_kong(text: str) -> bool:
    body, check = text[:-1].rjust(8), text[-1]
    values = [36 if c == " " else int(c, 36) for c in body]
    total = sum(v * w for v, w in zip(values, range(9, 1, -1), strict=True))
    return (total + (10 if check == "A" else int(check))) % 11 == 0


def _singapore(text: str) -> bool:
    total = sum(int(d) * w for d, w in zip(text[1:8], (2, 7, 6, 5, 4, 3, 2), strict=True))
    total += {"T": 4, "G": 4, "M": 3}.get(text[0], 0)
    table = {"S": "JZIHGFEDCBA", "T": "JZIHGFEDCBA", "F": "XWUTRQPNMLK", "G": "XWUTRQPNMLK", "M": "KLJNPQRTUWX"}[
        text[0]
    ]
    return table[total % 11] == text[8]


def _any(text: str) -> bool:
    return True


def _paper(name: str, shape: str, check: Check = _any) -> Paper:
    return Paper(name, re.compile(rf"(?<![A-Z0-9]){shape}(?![A-Z0-9])"), check)


PAPERS = (
    _paper("US social security number", r"\d{3}-\d{2}-\d{4}", ssn.is_valid),
    _paper("UK national insurance number", r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D]", _nino),
    _paper("Spanish DNI", r"\d{8}[ -]?[A-Z]", dni.is_valid),
    _paper("Spanish NIE", r"[XYZ][ -]?\d{7}[ -]?[A-Z]", nie.is_valid),
    _paper("Italian tax code", r"[A-Z]{6} ?\d\d[A-Z]\d\d ?[A-Z]\d{3}[A-Z]", codicefiscale.is_valid),
    _paper("French social security number", r"[12] \d\d \d\d (?:\d\d|2[AB]) \d{3} \d{3}(?: \d\d)", nir.is_valid),
    _paper("Chinese resident identity card", r"\d{6}[ -]?\d{8}[ -]?\d{3}[\dX]", ric.is_valid),
    _paper("Taiwanese identity card", r"[A-Z][1289]\d{8}", _taiwan),
    _paper("Hong Kong identity card", r"[A-Z]{1,2}\d{6} ?\([\dA]\)", _hong_kong),
    _paper("Singaporean identity card", r"[STFGM]\d{7}[A-Z]", _singapore),
    _paper("Malaysian identity card", r"\d{6}-\d{2}-\d{4}", nric.is_valid),
    _paper("Korean resident registration", r"\d{6}-[1-8]\d{6}", rrn.is_valid),
    _paper("Brazilian CPF", r"\d{3}\.\d{3}\.\d{3}-\d{2}", cpf.is_valid),
    _paper("Chilean RUT", r"\d{1,2}\.\d{3}\.\d{3}-[\dK]", rut.is_valid),
    _paper("Mexican CURP", r"[A-Z]{4}\d{6}[HM][A-Z]{5}[A-Z\d]\d", curp.is_valid),
    _paper("Belgian national number", r"\d{2}\.\d{2}\.\d{2}-\d{3}\.\d{2}", nn.is_valid),
    _paper("Swiss AHV number", r"756\.\d{4}\.\d{4}\.\d{2}", ahv.is_valid),
    _paper("Finnish personal identity code", r"\d{6}[-+A]\d{3}[0-9A-Y]", hetu.is_valid),
    _paper("Swedish personal number", r"(?:19|20)?\d{6}[-+]\d{4}", personnummer.is_valid),
    _paper("Indian PAN of a person", r"[A-Z]{3}P[A-Z]\d{4}[A-Z]"),
    _paper("Passport, machine-readable line", r"[PIACV][A-Z<][A-Z]{3}[A-Z]+<[A-Z<]{5,}"),
)
_PAPER_CUE = re.compile(
    r"\b(?:ssn|nhs (?:number|no)|social security|social insurance|national insurance|national id(?:entity)?"
    r"|identity (?:card|number|document)"
    r"|id (?:card|number|no)|passport|driv(?:er'?s|ing) licen[cs]e|tax (?:id|number|code|file)|taxpayer"
    r"|medicare|medicaid|aadhaar|pan (?:card|number)"
    r"|dni|nif|curp|rfc|cpf|rut|pesel|bsn|cedula|amka|nric|green card|visa (?:number|no)|residence permit)\b"
    r"|personalausweis|\bausweis|reisepass|\bpass(?:nummer|-nr)|steuer-?(?:id|nummer|identifikation)"
    r"|sozialversicherung|rentenversicherung"
    r"|versichertennummer|krankenversichert|führerschein|aufenthaltstitel|personenkennziffer|personnummer"
    r"|pasaporte|documento de identidad|c[eé]dula|seguridad social|carn[eé] de conducir|licencia de conducir"
    r"|身分證|身份证|身份證|護照|护照|社保|駕照|驾照|驾驶证|居留證|居留证|健保卡|通行證|通行证"
)
_PAPER_NUMBER = re.compile(r"(?<![a-z0-9])(?=(?:[a-z./ -]{0,4}\d){5})[a-z]{0,3}(?:[ ./-]?[a-z0-9]){5,19}(?![a-z0-9])")


def has_identity_number(folded: str) -> bool:
    """An identity number of a form of its own, or any number of five digits and more beside a word for such a paper."""
    upper = folded.upper()
    if any(_found(paper, upper) for paper in PAPERS):
        return True
    return _beside(_PAPER_CUE, _PAPER_NUMBER, unglued(folded))


def _found(paper: Paper, text: str) -> bool:
    return any(paper.check(_compact(match[0])) for match in paper.shape.finditer(text))


def _compact(number: str) -> str:
    """Separators out, except the signs that carry a century."""
    return re.sub(r"[ ().]", "", number).replace("-", "") if "(" in number or " " in number else number


# --- telephones ---------------------------------------------------------------------------------------------------------

REGIONS = ("GB", "DE", "FR", "IT", "AU", "CN", "TW", "JP", "IN", "ES")
"""Tried for a number with its trunk zero when the customer's region is unknown."""
TOO_MANY = 40
"""A text with more phone-shaped numbers than this is no fact; it is refused rather than checked one by one."""

_PHONE = re.compile(
    r"(?<![a-z0-9.+])(?:\+ ?)?\(?\d(?:(?:[ .-]|\)|\(| ?[-/] ?|\) ?|\) ?-| ?\(){0,1}\d){6,16}(?![a-z0-9]|[.,]\d)"
)
_LABEL = re.compile(
    r"(?P<phone>\b(?:phone|telephone|tel|tele|mobile|mob|cell|cellphone|landline|fax|call|calling|called|ring"
    r"|dial|text|sms|whats ?app"
    r"|telegram|signal|viber|hotline|extension|reach (?:me|him|her|them|us)|contact\w*|messages? (?:to|on)"
    r"|answer\w* (?:at|on)|number (?:is|for)|my number)\b"
    r"|telefon|\bhandy|mobil|rufnummer|\banruf|durchwahl|tel[eé]fono|\bm[oó]vil\b|celular|\bll[aá]m|电话|電話|手机"
    r"|手機|联系|聯絡|致电|來電|来电|号码|號碼|微信)"
    r"|(?P<item>\b(?:order|item|product|sku|model|article|part|tracking|track|parcel|package|shipment|invoice"
    r"|receipt|ref|reference|case|ticket|rma"
    r"|return|barcode|ean|upc|gtin|isbn|asin|serial|batch|lot|booking|reservation|confirmation|customer|member"
    r"|loyalty|policy|size|sizes"
    r"|version|build|price|total|zip|postcode|code)\b|bestell|artikel|sendung|paket|rechnung|auftrag|serien"
    r"|chargen|kundennummer|größe|groesse"
    r"|pedido|art[ií]culo|seguimiento|factura|referencia|talla|订单|訂單|商品|货号|貨號|快递|快遞|运单|物流"
    r"|条码|條碼|尺码|尺碼|型号|型號)"
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
_SEPARATOR = re.compile(r"[ ./()-]")


def has_phone(text: str, region: str) -> bool:
    """A telephone number: with a leading +, in the groups of a numbering plan, or beside a word for it. Takes `unglued` text.

    Bare digits are never a telephone: they are orders and barcodes.
    """
    for count, number in enumerate(_PHONE.finditer(text)):
        if count >= TOO_MANY or _is_phone(number, region):
            return True
    return False


def _is_phone(number: re.Match[str], region: str) -> bool:
    written = number[0].strip()
    digits = re.sub(r"\D", "", written)
    if written.startswith("+"):
        return _possible(written)
    label = _label_before(number)
    if label == "phone" or (not label and _LABEL_AFTER.match(number.string, number.end())):
        return 7 <= len(digits) <= 15
    if label == "item" or not _SEPARATOR.search(written) or _UNIT_AFTER.match(number.string, number.end()):
        return False
    if digits.startswith("00") and _possible("+" + digits[2:]):
        return True
    return _fits_a_plan(written, digits, region)


def _label_before(number: re.Match[str]) -> str:
    """What the nearest label within some words before the number makes of it: phone, item, or nothing."""
    label = ""
    for label_match in _LABEL.finditer(number.string, max(0, number.start() - 40), number.start()):
        label = label_match.lastgroup or ""
    return label


def _fits_a_plan(written: str, digits: str, region: str) -> bool:
    if region:
        return _valid(written, region) and (
            _TRUNK_OR_AREA.match(written) is not None or _grouped_as_printed(written, region)
        )
    if _NORTH_AMERICA.fullmatch(written):
        # Three numbers with spaces between may be a width, a depth and a height.
        return _valid(written, "US") and bool(re.search(r"[-().]", written))
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


def _valid(written: str, region: str) -> bool:
    number = _parsed(written, region.upper())
    return number is not None and phonenumbers.is_valid_number(number)


def _grouped_as_printed(written: str, region: str) -> bool:
    number = _parsed(written, region.upper())
    if number is None:
        return False
    printed = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.NATIONAL)
    return _SCATTERED.findall(written) == _SCATTERED.findall(printed)


# --- a word beside a number ---------------------------------------------------------------------------------------------


def _beside(cue: re.Pattern[str], number: re.Pattern[str], text: str) -> bool:
    """The number stands within some words after the cue, or shortly before it, with no label of another thing between."""
    for found in cue.finditer(text):
        after = number.search(text, found.end(), found.end() + 40)
        if after and not _of_an_item(text[found.end() : after.start()]):
            return True
        before = text[max(0, found.start() - 40) : found.start()]
        if number.search(before) and not _LABEL.search(before):
            return True
    return False


def _of_an_item(between: str) -> bool:
    return any(label.lastgroup == "item" for label in _LABEL.finditer(between))
