"""Numbers in running text: text in, text out. Which digits may belong together; what words beside them make of them.
Shops are full of innocent numbers (orders, barcodes, sizes, prices): a checksum or a word decides, never digits alone.
Imports nothing of the project.
"""

from __future__ import annotations

import re

GAP = r"[ _.,:;/|*~^'()\[\]-]{0,3}"
"""What people put between the digits of one number."""

# What looks like digits in a row and is not: a date, a time, a price. Masked, it cannot be glued to its neighbours.
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


# --- spelled-out digits ---------------------------------------------------------------------------------------------

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
    """The text with every run of seven or more spelled-out digits in figures; the same object when there is none."""
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


# --- words beside a number ------------------------------------------------------------------------------------------

LABEL = re.compile(
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


def label_before(number: re.Match[str]) -> str:
    """What the nearest label within some words before the number makes of it: phone, item, or nothing."""
    label = ""
    for label_match in LABEL.finditer(number.string, max(0, number.start() - 40), number.start()):
        label = label_match.lastgroup or ""
    return label


def beside(cue: re.Pattern[str], number: re.Pattern[str], text: str) -> bool:
    """The number stands some words after the cue, or shortly before it, with no label of another thing between."""
    for found in cue.finditer(text):
        after = number.search(text, found.end(), found.end() + 40)
        if after and not _of_an_item(text[found.end() : after.start()]):
            return True
        before = text[max(0, found.start() - 40) : found.start()]
        if number.search(before) and not LABEL.search(before):
            return True
    return False


def _of_an_item(between: str) -> bool:
    return any(label.lastgroup == "item" for label in LABEL.finditer(between))
