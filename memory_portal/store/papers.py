"""Identity numbers: folded text in, yes or no out. A form of its own with check digits, or a word for such a paper.
Bare national numbers look like item numbers; they count only beside such a word.
Imports python-stdnum and the store's digits only.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

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

from memory_portal.store.digits import beside, unglued

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
    return beside(_PAPER_CUE, _PAPER_NUMBER, unglued(folded))


def _found(paper: Paper, text: str) -> bool:
    return any(paper.check(_compact(match[0])) for match in paper.shape.finditer(text))


def _compact(number: str) -> str:
    """Separators out, except the signs that carry a century."""
    return re.sub(r"[ ().]", "", number).replace("-", "") if "(" in number or " " in number else number
