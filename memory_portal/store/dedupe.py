"""A draft and the facts held in, a Verdict out: nothing like it, the same, a change, a contradiction. Pure.
A wrong Same or Replaces loses memory, a wrong New only keeps two facts: whatever is not certain is New.
Imports types, enums, sentences and words only.
"""

from __future__ import annotations

from collections.abc import Sequence

from memory_portal.enums import ChangeAction
from memory_portal.store.sentences import NOT, ONCE, Reading, bases, is_measure, key_words, names, opens_statement, read
from memory_portal.store.types import CONSTRAINT, SAFETY, Conflicts, Draft, Fact, New, Replaces, Same, Verdict
from memory_portal.store.vocabulary import SIZES, table
from memory_portal.store.words import CACHED_TEXTS, kept, simplified

__all__ = ["Verdict", "compare", "protection", "same_meaning", "stronger", "weakens"]

Parts = tuple[tuple[str, ...], ...]

PROTECTION = {SAFETY: 2, CONSTRAINT: 1}

# Whom a key may be about beside the customer: the same words under such a key are another fact.
OTHERS = bases(
    """son daughter wife husband spouse partner mother father sister brother child baby toddler girlfriend boyfriend
    fiance friend grandmother grandfather grandma grandpa uncle aunt niece nephew parent family dog cat pet horse
    colleague boss guest gift recipient team sohn tochter frau mann ehemann ehefrau partnerin mutter vater schwester
    bruder kind hund katze freund freundin geschenk hijo hija esposa esposo marido mujer madre padre hermana hermano
    niño niña perro gato amigo amiga regalo"""
)
OTHERS_ZH = table(
    """儿子 女儿 孩子 小孩 宝宝 老婆 太太 妻子 老公 先生 丈夫 妈 爸 父母 爷爷 奶奶 哥 弟 姐 妹 狗 猫 宠物 朋友 同事
    家人 礼物"""
)
# When or for what a key's words hold.
OCCASIONS = bases(
    """breakfast brunch lunch dinner supper snack work office home school gym travel trip flight wedding party
    birthday christmas summer winter autumn weekend weekday morning afternoon evening night holiday sport running
    hiking cycling camping everyday formal casual frühstück mittagessen abendessen arbeit büro reise sommer desayuno
    almuerzo cena trabajo viaje verano invierno"""
)
# What a bare name ("tree nuts") says depends on these: an allergy is no wish.
STANCES = bases(
    """allergy allergic intolerance allergen avoid dislike hate never no not exclude forbidden taboo unwanted like
    love favorite wish wishlist want buy owned allergie unverträglichkeit vermeiden lieblings wunsch alergia
    intolerancia evitar favorito deseo"""
) | frozenset("敏忌厌怕不无爱喜")
# What it belongs to.
PLACES = bases(
    """shirt tshirt top blouse sweater jacket coat trousers pants jeans skirt dress shoe boot sneaker sandal sock hat
    cap glove ring bra belt suit color material fabric brand drink food meal dessert sauce marinade tea coffee wine
    beer milk sugar bread meat hair skin nail eye face car bike bed sofa kitchen bedroom bathroom garden city country
    address name nickname hobby job"""
)
# Words of a key that add nothing to its value.
GENERIC = bases(
    """size fit preference preferred preferences favorite usual current general info note fact detail limit budget
    number value customer user profile setting rule choice größe budget talla preferencia presupuesto maximum max
    minimum"""
) | frozenset("鞋码尺寸偏好预算")
DIRECTIONS = table("from to by for von nach an für desde hasta para")
UNITS = table("eu us uk cm mm inch kg g lb l ml")
# Points in time: two of them are two appointments, not a change of mind.
DATES = bases(
    """monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december day week month year date time clock pm flight order born since montag januar
    tag jahr lunes enero día año"""
) | frozenset("年月日点周")

OPPOSITES = {"without": "with", "hate": "like", "avoid": "like", "less": "more", "after": "before", "厌": "喜"}
NEGATIVE = frozenset((NOT, ONCE, *"不没未无非别", "never", "nie", "nunca"))
# Words that make an addition to a safety fact smaller, unsure or over.
RELIEF = (
    NEGATIVE
    | bases(
        """again anymore except but only unless mild mildly slight slightly rarely sometimes occasionally some little
        trace ok okay fine tolerate tolerates can may outgrown past former previously until if test suspected maybe
        might possibly thought instead aber nur außer wieder leicht manchmal vielleicht pero solo excepto otra vez
        leve quizás"""
    )
    | frozenset("但只除能可又轻少")
)
# Words that make one larger.
SEVERE = bases("severe severely serious seriously strongly highly very extremely deadly schwer stark sehr muy grave")
CAUTION = bases("allergic intolerant sensitive avoid allergisch vermeidet alérgico evita") | frozenset("敏忌")


def compare(draft: Draft, facts: Sequence[Fact]) -> Verdict:
    """The Verdict on `draft` against `facts`, in which the drafts before it in one batch may stand as well.

    Never raises. With Replaces the caller writes under the held fact's key and keeps the stronger of both categories
    (`stronger`), since a weaker category never takes a fact's protection away silently.
    """
    new = read(draft.value)
    for fact in facts:
        if fact.key == draft.key:
            return _same(draft, fact) if _equal(read(fact.value), new) else Replaces(fact)
    known = [(fact, read(fact.value)) for fact in facts]
    if repeats := [fact for fact, old in known if _equal(old, new) and _one_subject(fact, old, draft, new)]:
        return _same(draft, max(repeats, key=lambda fact: protection(fact.category)))
    for fact, old in known:
        if _one_slot(fact.key, old, draft.key, new) or _one_figure_changed(fact.key, old, draft.key, new):
            return Replaces(fact)
    for fact, old in known:
        if _contradicts(old, new) and not _about_others(fact.key, draft.key, new):
            return Conflicts(fact)
    return New()


def same_meaning(a: str, b: str) -> bool:
    """Whether two values differ at most in wording that cannot change what they say."""
    return _equal(read(a), read(b))


def protection(category: str) -> int:
    """How much a category protects: safety 2, constraint 1, any other 0."""
    return PROTECTION.get(category, 0)


def stronger(held: str, drafted: str) -> str:
    """The category that protects more; the drafted one where neither does."""
    return held if protection(held) > protection(drafted) else drafted


def weakens(old: Fact, draft: Draft) -> bool:
    """Whether `draft` takes away from what `old` protects: anything but a restatement or a pure addition does.

    "Allergic to nuts" is restated by "I'm allergic to nuts." and added to by "allergic to nuts and eggs". "No longer
    allergic to nuts", "allergic to raw nuts", "eats nuts again" and a category that protects less weaken it.
    """
    if draft.action is ChangeAction.FORGET:
        return True
    before, after = read(old.value), read(draft.value)
    if _equal(before, after):
        return False
    if not before.said or not after.said:
        return True
    return protection(draft.category) < protection(old.category) or not _adds(before, after)


def _same(draft: Draft, fact: Fact) -> Same:
    return Same(fact, upgrade=protection(draft.category) > protection(fact.category))


def _equal(old: Reading, new: Reading) -> bool:
    if old.said and old.said == new.said:
        return True
    return old.folded == new.folded or (
        len(old.parts) == len(new.parts) > 1 and _arranged(old.parts) == _arranged(new.parts)
    )


@kept(CACHED_TEXTS)
def _arranged(parts: Parts) -> tuple[object, ...]:
    """What is said in whatever order, where order says nothing: "tea and coffee", "likes tea, hates coffee"."""
    if all(opens_statement(part[0]) for part in parts):
        return (frozenset(parts),)
    head, *rest = parts
    size = len(rest[0])
    frame, things = head[:-size], (head[-size:], *rest)
    if (
        size <= 2
        and (not frame or opens_statement(frame[-1]))
        and all(len(thing) == size and all(map(names, thing)) for thing in things)
    ):
        return frame, frozenset(things)
    return parts


def _one_subject(fact: Fact, old: Reading, draft: Draft, new: Reading) -> bool:
    """Whether equal words under two keys are one fact. A short value is not: what it says depends on its key."""
    if key_words(draft.key) and key_words(fact.key) == key_words(draft.key):
        return True
    if not (old.stands and new.stands) or _about_others(fact.key, draft.key, new):
        return False
    if old.sentence or new.sentence:
        return True
    telling = STANCES | PLACES
    return _telling(fact.key, telling, old) == _telling(draft.key, telling, new) and (
        protection(fact.category) == protection(draft.category)
    )


def _about_others(held_key: str, key: str, value: Reading) -> bool:
    """Whether one key names a person, an animal or an occasion which neither the other key nor the value names."""
    telling = OTHERS | OCCASIONS
    return _telling(held_key, telling, value) != _telling(key, telling, value) or _relatives(held_key) != _relatives(
        key
    )


def _telling(key: str, telling: frozenset[str], value: Reading) -> frozenset[str]:
    return (key_words(key) & telling).difference(value.said)


def _relatives(key: str) -> frozenset[str]:
    """Chinese names of relatives in a key, which has no word boundaries."""
    return frozenset() if key.isascii() else frozenset(name for name in OTHERS_ZH if name in simplified(key))


def _one_slot(held_key: str, old: Reading, key: str, new: Reading) -> bool:
    """Whether two keys are one in other words: `shirt_size` and `size_shirt`, `shoe_size` and `shoe_size_eu`."""
    held_words, words = frozenset(held_key.split("_")), frozenset(key.split("_"))
    if held_words - UNITS != words - UNITS or held_words <= UNITS or held_words & DIRECTIONS:
        return False
    held_units, units = UNITS & held_words.union(old.said), UNITS & words.union(new.said)
    return held_units == units or not held_units or not units


def _one_figure_changed(held_key: str, old: Reading, key: str, new: Reading) -> bool:
    """Whether only a measure differs and everything it is a measure of is named: EU 42 in running shoes, now EU 43."""
    if len(old.said) != len(new.said) or not (old.stands and new.stands) or DATES.intersection(new.said):
        return False
    changed = [at for at, pair in enumerate(zip(old.said, new.said, strict=True)) if pair[0] != pair[1]]
    if len(changed) != 1:
        return False
    at = changed[0]
    around = new.said[max(0, at - 2) : at] + new.said[at + 1 : at + 3]
    return (
        _is_figure(old.said[at])
        and _is_figure(new.said[at])
        and any(map(is_measure, around))
        and all(key_words(name) <= GENERIC.union(new.said) for name in (held_key, key))
    )


def _is_figure(word: str) -> bool:
    return word[-1].isdigit() or word in SIZES


def _contradicts(old: Reading, new: Reading) -> bool:
    """Whether one says of the same thing what the other denies."""
    held, denied = _affirmed(old.said)
    said, denies = _affirmed(new.said)
    return held == said and denied != denies and any(map(names, said))


@kept(CACHED_TEXTS)
def _affirmed(said: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """The statement without its negations, and whether these leave it denied."""
    odd = sum(word in NEGATIVE or word in OPPOSITES for word in said) % 2 == 1
    plain = (OPPOSITES.get(word, word) for word in said if word not in NEGATIVE and word not in ("any", "at", "all"))
    return tuple(plain), odd


def _adds(before: Reading, after: Reading) -> bool:
    """Whether `after` lists all that `before` lists, in the same frame, and what more it lists takes nothing back."""
    louder = SEVERE.difference(before.said)
    parts = tuple(tuple(word for word in part if word not in louder) for part in after.parts)
    held, listed = _framed(before.parts, parts)
    return held <= listed and not any(_takes_back(part, before.said) for part in listed - held)


def _takes_back(part: tuple[str, ...], said: tuple[str, ...]) -> bool:
    """Whether an added part says more than what else there is to avoid; it may open as the statement itself does."""
    added = part[_shared(part, said) :]
    return any(word in RELIEF or (opens_statement(word) and word not in CAUTION) for word in added)


def _framed(before: Parts, after: Parts) -> tuple[frozenset[tuple[str, ...]], frozenset[tuple[str, ...]]]:
    """The things listed, without the words both begin with (allergic to ...) and both end with (... allergy)."""
    start = _shared(before[0], after[0])
    before, after = (before[0][start:], *before[1:]), (after[0][start:], *after[1:])
    end = _shared(before[-1][::-1], after[-1][::-1])
    cut = slice(None, -end or None)
    return frozenset((*before[:-1], before[-1][cut])), frozenset((*after[:-1], after[-1][cut]))


def _shared(a: tuple[str, ...], b: tuple[str, ...]) -> int:
    """How many words two phrases share at their start."""
    return next((at for at, (one, other) in enumerate(zip(a, b, strict=False)) if one != other), min(len(a), len(b)))
