"""What a short text says. In: a text as it was said. Out: a Reading, its words in one form, to compare by; nothing of it is stored.
May be imported by dedupe and intake; imports words and vocabulary.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from memory_portal.store.sanitise import fold
from memory_portal.store.vocabulary import (
    AMOUNTS,
    ARTICLES,
    ATTRIBUTES,
    COPULA,
    COUNTRIES,
    HEDGES,
    IRREGULAR,
    IRREGULAR_PAST,
    MEASURES,
    NEGATIONS,
    NEGATIVE_ZH,
    OWNING,
    PAST,
    POINTERS,
    PREDICATES,
    PREDICATES_ZH,
    RELATIVE,
    SELF,
    SIZES,
    SMALL,
    SPELLINGS,
    STOP,
    SUBJECTS,
    UNSAID,
    WHOLE,
    ZH_SPELLINGS,
    ZH_UNSAID,
    ZH_WHOLE,
)
from memory_portal.store.words import CACHED_TEXTS, CACHED_WORDS, LETTERS, RUNS, kept, language_of, simplified, stem

NOT = "¬"
ONCE = "«once»"
"""Marks what was so: who used to live in a town may live elsewhere by now."""
DONE = "«done»"
"""Marks a past form: lived is not lives, though smoked may say how fish is liked."""


def _token(letters: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<run>[{RUNS}])|(?P<number>(?:(?<!\S)-)?\d+(?:[.,:/^-]\d+)*)|(?P<word>{letters})"
        r"|(?P<tail>(?<=\w)'[a-z]{1,2}\b)|(?P<stop>[,;.:()!?\n])|(?P<sign>[^\w\s])"
    )


_TOKEN, _ASCII_TOKEN = _token(LETTERS), _token("[a-z]+")
SIGNS = "%‰#@&"
"""Punctuation that carries meaning in a short value; money, degrees, plus and emoji do so by their class."""
GESTURES = "~|"
"""Mathematical by class, in chat a mere gesture."""
BREAK = ","
PARTING = frozenset((BREAK, "and", "plus", "und", "sowie", "y", "和", "跟", "与", "及"))
_HYPHENED = re.compile(r"\b(e|t|x|wi)[- ](mail|shirt|ray|fi)")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_HAN = re.compile("[\u3400-\u9fff]")
_ZH_GAP = re.compile("(?<=[\u3400-\u9fff])\\s+(?=[\u3400-\u9fff])")
_ZH_SUBJECT = re.compile("(?:(?<=^)|(?<=[\\s,.;!?]))我(?!们)")
_ZH_ALLERGY = re.compile("对([^,.;!?]{1,12}?)过敏")
_ZH = re.compile("|".join(sorted({*ZH_WHOLE, *ZH_UNSAID, *ZH_SPELLINGS}, key=len, reverse=True)))
_ZH_REWRITE = ZH_SPELLINGS | dict.fromkeys(ZH_UNSAID, "")


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text says, as far as words can tell."""

    folded: str
    said: tuple[str, ...]
    """Words in order, with NOT and ONCE, numbers and signs; grammatical person, articles and punctuation are gone."""
    parts: tuple[tuple[str, ...], ...]
    """`said`, cut at commas, full stops and words for "and"."""
    sentence: bool
    """It has a verb or a subject."""
    stands: bool
    """It names what it is about, so that it says the same under any key."""


@kept(CACHED_TEXTS)
def read(text: str) -> Reading:
    """`text` as a Reading. Never raises; a text without a word says `()`."""
    folded = fold(text)
    joined = _HYPHENED.sub(r"\1\2", folded)
    pieces = _pieces(_chinese(joined) if _HAN.search(joined) else joined)
    language = language_of(pieces)
    words = _inflected(pieces, language)
    said = tuple(word for word in words if word != BREAK)
    sentence = (
        not SUBJECTS.isdisjoint(pieces)
        or any(word in _PREDICATES or word in NEGATIVE_ZH for word in said)
        or bool(_ZH_SENTENCE.search(folded))
    )
    stands = _stands(said, sentence=sentence, self_said=not SELF.isdisjoint(pieces))
    return Reading(folded, said, _parts(words), sentence, stands)


@kept(CACHED_TEXTS)
def key_words(key: str) -> frozenset[str]:
    """The words of a key, in any order."""
    return frozenset(read(key.replace("_", " ")).said)


def opens_statement(word: str) -> bool:
    """Whether a part that begins so needs no subject from the part before it."""
    return word == NOT or word in _PREDICATES or word in NEGATIVE_ZH


def names(word: str) -> bool:
    """Whether a word of a Reading names something: it is no verb of taste, measure, size, look or small word."""
    return _weight(word) > 0


def _chinese(folded: str) -> str:
    """Chinese in simplified characters, without the particles, the subject and the modal verbs that may stay unsaid."""
    text = _ZH_GAP.sub("", simplified(folded))
    text = _ZH_SUBJECT.sub("", text)
    text = _ZH.sub(lambda found: _ZH_REWRITE.get(found[0], found[0]), text)
    return _ZH_ALLERGY.sub(r"\1过敏", text)


def _pieces(folded: str) -> list[str]:
    """Words, single characters of scripts without spaces, numbers, telling signs; BREAK for punctuation that parts."""
    found: list[str] = []
    for match in (_ASCII_TOKEN if folded.isascii() else _TOKEN).finditer(folded):
        piece = match[0]
        if match.lastgroup == "stop":
            found.append(BREAK)
        elif match.lastgroup == "number":
            found.append(piece.replace(",", "") if _THOUSANDS.fullmatch(piece) else piece)
        elif match.lastgroup != "sign" or _tells(piece):
            found.append(piece)
    return found


@kept(CACHED_WORDS)
def _tells(sign: str) -> bool:
    """Money, degrees, plus, emoji: signs without which a short value means something else."""
    return sign in SIGNS or (unicodedata.category(sign) in ("Sc", "Sm", "So") and sign not in GESTURES)


def _inflected(pieces: list[str], language: str) -> list[str]:
    """One form for each word: negation and past pulled out, spelling and inflection folded, the unsaid left out."""
    negations, english = NEGATIONS[language], language == "english"
    words: list[str] = []
    for before, piece, after in zip(["", *pieces], pieces, [*pieces[1:], ""], strict=False):
        if piece in negations:
            words += ["can", NOT] if piece in ("cannot", "cant") else [NOT]
        elif piece in PAST[language] or (piece == "used" and after == "to" and before not in COPULA):
            words += [ONCE, _IS]
        elif piece in ARTICLES and before in OWNING:
            words.append("1")
        elif english and piece in COPULA:
            words.append(_IS)
        elif english and piece in RELATIVE:
            words.append(_WHICH)
        elif not (_is_unsaid(piece, before, after, language) or _ends_negation(piece, before, after, language, words)):
            words += _word(piece, language)
    if _IS in words or _WHICH in words:
        words = _straight(words)
    return _allergic(words) if "allergy" in words else words


def _is_unsaid(piece: str, before: str, after: str, language: str) -> bool:
    if piece in ("do", "does"):
        return after == "not"
    if piece in ("don", "doesn"):
        return after == "'t"
    if piece == "got":
        return before in OWNING
    kept = (piece in HEDGES and before in NEGATIONS[language]) or after in AMOUNTS
    return piece in UNSAID[language] and not kept


def _ends_negation(piece: str, before: str, after: str, language: str, words: list[str]) -> bool:
    """No *longer*, not *any more*, kein Leder *mehr*, *ya* no: that it was so once adds nothing to its not being so."""
    if piece not in ("longer", "more", "any", "anymore", "mehr", "ya") or after in ("than", "als", "que"):
        return False
    if piece == "ya":
        return after in NEGATIONS[language]
    if piece in ("longer", "more") and before in NEGATIONS[language]:
        return True
    pair = (before, piece) == ("any", "more") or (piece, after) == ("any", "more")
    return NOT in words and (pair or piece in ("anymore", "mehr"))


_IS, _WHICH = "«is»", "«which»"


def _straight(words: list[str]) -> list[str]:
    """Passive and relative clauses turned: bothered by noise, noise bothers; fish that is raw, raw fish."""
    for at in range(len(words) - 3, 0, -1):
        ends = words[at + 3] if at + 3 < len(words) else BREAK
        if (
            words[at : at + 2] == [_WHICH, _IS]
            and _is_plain(words[at - 1])
            and _is_plain(words[at + 2])
            and ends in (BREAK, _IS)
        ):
            words = [*words[: at - 1], words[at + 2], words[at - 1], *words[at + 3 :]]
    for at in range(3, len(words)):
        if words[at] == "by" and words[at - 2] == DONE:
            words = _active(words, at)
            break
    return [word for word in words if word not in (_IS, _WHICH)]


def _is_plain(word: str) -> bool:
    return word not in (BREAK, NOT, ONCE, DONE, _IS, _WHICH)


def _active(words: list[str], by: int) -> list[str]:
    """The clause around `by` with its doer first; as it was when this is no passive."""
    start = max((at + 1 for at in range(by) if words[at] == BREAK), default=0)
    end = next((at for at in range(by, len(words)) if words[at] == BREAK), len(words))
    middle = by - 2
    while middle > start and words[middle - 1] in (_IS, NOT, ONCE):
        middle -= 1
    marks, doer = words[middle : by - 2], words[by + 1 : end]
    if _IS not in marks or not doer:
        return words
    tense = [DONE] if ONCE in marks else []
    negation = [NOT] if NOT in marks else []
    return [*words[:start], *doer, *tense, *negation, words[by - 1], *words[start:middle], *words[end:]]


def _allergic(words: list[str]) -> list[str]:
    """A nut allergy, and an allergy to nuts, as being allergic to nuts."""
    at = words.index("allergy")
    start = max((place + 1 for place in range(at) if words[place] == BREAK), default=0)
    denied = [word for word in words[start:at] if word == NOT]
    what = [word for word in words[start:at] if word not in (NOT, "have", "1")]
    return [*words[:start], *denied, "allergic", *what, *words[at + 1 :]]


@kept(CACHED_WORDS)
def _word(piece: str, language: str) -> tuple[str, ...]:
    """A word's base form; DONE before a past form, NOT inside a denying one."""
    if piece == "'ve":
        return ("have",)
    if len(piece) == 1 or not piece[0].isalpha():
        return (_SPELLINGS[language].get(piece, piece),)
    if language != "english":
        base = _base(piece, language)
        return (_SPELLINGS[language].get(base, base),)
    if past := IRREGULAR_PAST.get(piece):
        return (DONE, past)
    base = inflection(IRREGULAR.get(piece, piece))
    when, base = ((DONE,), base[:-1]) if base.endswith("+") else ((), base)
    base = _SPELLINGS[language].get(base, base)
    return (*when, NOT, "like") if base == "dislik" else (*when, base)


def _base(word: str, language: str) -> str:
    """The form that number and person leave alone."""
    if language == "english":
        return inflection(word)
    bare = stem(word, language)
    return _GERMAN_PERSON.sub("", bare) if language == "german" else bare


_GERMAN_PERSON = re.compile("(?<=...)e?t$")


def inflection(word: str) -> str:
    """An English word without plural, -s, -ing or -ed; a past form ends in "+".

    A search stem folds too much to compare by: late and lately, custom and customer, organ and organic stay apart.
    """
    if word in WHOLE or not word.isascii():
        return word
    if word.endswith("s") and len(word) > 3 and not word.endswith(("ss", "us", "is")):
        return _settled(_singular(word))
    if word.endswith("ing") and len(word) > 5 and _VOWEL.search(word[:-3]):
        return _settled(_verb(word[:-3]))
    if word.endswith("ied") and len(word) > 4:
        return word[:-3] + "y+"
    if word.endswith("ed") and len(word) > 4 and not word.endswith("eed") and _VOWEL.search(word[:-2]):
        return _settled(_verb(word[:-2])) + "+"
    return _settled(word)


_VOWEL = re.compile("[aeiouy]")
_SHORT = re.compile("[^aeiou]*[aeiouy][^aeiouywx]")
"""One syllable with a short vowel, as in hop or lik: hoping has lost its e."""


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("xes", "ches", "shes", "sses", "zzes")) and len(word) > 4:
        return word[:-2]
    return word[:-1]


def _verb(trunk: str) -> str:
    if len(trunk) > 3 and trunk[-1] == trunk[-2] and trunk[-1] not in "lsz":
        return trunk[:-1]
    return trunk + "e" if _SHORT.fullmatch(trunk) else trunk


def _settled(word: str) -> str:
    """Endings that inflection blurs: dance and danc(ing), movie and mov(ies), travel and travell(ing)."""
    if word.endswith("ie") and len(word) > 4:
        return word[:-2] + "y"
    if word.endswith("ll") and len(word) > 4:
        return word[:-1]
    if word.endswith("e") and len(word) > 4 and not _SHORT.fullmatch(word[:-1]):
        return word[:-1]
    return word


def _parts(words: list[str]) -> tuple[tuple[str, ...], ...]:
    parts: list[tuple[str, ...]] = []
    part: list[str] = []
    for word in [*words, BREAK]:
        if word not in PARTING:
            part.append(word)
        elif part:
            parts.append(tuple(part))
            part = []
    return tuple(parts)


def _stands(said: tuple[str, ...], *, sentence: bool, self_said: bool) -> bool:
    """Whether enough is named: an object beside the verb, or two words; after a pointer to nothing ("it") more."""
    least, weight = 1 if sentence else 4, 0
    measured = any(word[0].isdigit() for word in said)
    for word, after in zip(said, (*said[1:], ""), strict=False):
        if word in POINTERS and not weight and not (word == "one" and after and after not in _SMALL):
            least = 4
        elif (self_said and word in _ATTRIBUTES) or (not measured and word in COUNTRIES):
            weight += 2
        else:
            weight += _weight(word)
    return weight >= least


@kept(CACHED_WORDS)
def _weight(word: str) -> int:
    """2 for a word that names something, 1 for a Chinese character that does."""
    if word in _WEIGHTLESS or word in _PREDICATES or word in NEGATIVE_ZH or word[0].isdigit():
        return 0
    return 1 if _HAN.match(word) else 2 if len(word) > 1 else 0


def _in_base_form(spellings: dict[str, str], language: str) -> dict[str, str]:
    """The table as looked up: plurals and verb forms of either spelling are found as well."""
    kept = {other: _base(word, language) for other, word in spellings.items()}
    return kept | {_base(other, language): word for other, word in kept.items()}


_SPELLINGS = {language: _in_base_form(rows, language) for language, rows in SPELLINGS.items()}


def bases(words: str) -> frozenset[str]:
    """The base forms of a table's words, in every language the table may be in."""
    return frozenset(form for word in words.split() for language in STOP for form in (word, _word(word, language)[-1]))


_ZH_SENTENCE = re.compile("[我是有你]")
_PREDICATES = PREDICATES_ZH.union(*(bases(table) for table in PREDICATES.values()))
_MEASURES = bases(MEASURES)
_SMALL = bases(SMALL)
_ATTRIBUTES = bases(ATTRIBUTES)
_WEIGHTLESS = _SMALL | _ATTRIBUTES | _MEASURES | SIZES | {NOT, ONCE, DONE, BREAK}


def is_measure(word: str) -> bool:
    return word in _MEASURES
