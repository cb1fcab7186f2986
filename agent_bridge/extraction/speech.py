# ruff: noqa: E501  # tables read best with one kind of thing on a line
"""How people speak, in English, Chinese, Spanish and German: small words, and the marks of a question, an errand, a quotation.

In: text as it was typed. Out: yes or no, or spans. Pure tables and patterns; imports the store's door only. A language that
is not here passes these rules: the quote itself must still stand in what the customer said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from memory_portal import store


def word_table(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _signs(text: str) -> frozenset[str]:
    return frozenset("".join(text.split()))


ASSENT = word_table(
    """yes yeah yep yup ya y ok okay k kk sure fine right correct exactly true agreed absolutely definitely indeed great good
    perfect please thanks thank you no nope problem that's that thats this it is the one sounds works for me do go ahead i
    agree want lets let's so cool alright got same too
    ja jawohl genau klar gern gerne stimmt richtig passt danke bitte gut nein doch das ist so einverstanden okey
    sí si vale claro exacto exactamente correcto perfecto gracias por favor de acuerdo bueno eso es ese está bien no"""
) | _signs(
    "好 對 对 是 的 可 以 嗯 行 沒 没 錯 错 謝 谢 您 你 了 啊 呀 喔 哦 吧 就 這 这 樣 样 個 个 那 同 意 當 当 然 不 用 會 会 請 请 麻 煩 烦 哈 恩"
)

# What a value may add to the customer's words to stand alone: nothing here says what, how much, how often at least or never.
LIGHT = word_table(
    """a an the this that these those some any s i i'm i've i'd me my mine myself we our us you your he she they their them its
    it is are am was were be been being has have had do does did to of in on at for with by from as and or so also very
    prefer prefers preferred likes like wants want would use uses using take takes taking wear wears travel travels get gets
    choose chooses go goes usually generally normally typically often regularly tends tend customer customer's when who which
    now currently please
    el la los las un una unos unas de del en con por para y o es son soy está estoy mi mis su sus me se le prefiere prefiero
    suele normalmente usa lleva cliente que a al
    der die das den dem des ein eine einen einem einer und oder ist sind bin hat habe ich mein meine sein seine mit für in im
    am an auf zu zum zur bevorzugt nimmt trägt isst trinkt fährt fliegt kauft meistens normalerweise kunde kundin"""
) | _signs(
    "的 了 是 我 們 们 會 会 有 在 和 與 与 跟 也 就 請 请 您 你 喜 歡 欢 偏 好 習 慣 惯 通 常 使 用 者 客 戶 户 顧 顾 比 較 较 選 选 擇 择 想 之 於 于 及 或 為 为 很"
)

NEGATION = re.compile(
    r"\b(?:no|not|never|none|neither|without|cannot|can't|cant|\w+n't|dont|doesnt|avoid\w*|hate\w*|dislike\w*|detest\w*|refus\w+|stopped|quit)\b"
    r"|(?<=-)free\b|\b(?:in)?allerg\w*|\bintoleran\w*"
    r"|\b(?:nicht|kein\w*|nie|niemals|ohne|vermeid\w*|hass\w*)\b"
    r"|\b(?:nunca|jamás|sin|evit\w+|odi[oa]\w*|tampoco|detest\w*)\b|\balérgic\w*|\balergi\w*"
    r"|(?<!差)不(?![過过但只僅仅錯错管然論论]|好意思)|[沒没](?![錯错]|問題|问题)|[無无](?![論论])|(?<![特分個个性類类級级])[別别](?![人的墅])|未|忌|戒|勿"
    r"|避[免開开]|拒[絕绝]|討厭|讨厌|過敏|过敏"
)
"""On folded text. Saying no, avoiding, and being allergic point the same way."""
CANCELLED = re.compile(
    r"\b(?:no|not|never|\w+n't|cannot|no longer)(?: \w+){0,2}? (?:allerg\w*|intoleran\w*|mind|avoid\w*|hate\w*|dislike\w*)"
    r"|\b(?:nicht|kein\w*) (?:\w+ )?allerg\w*|\bno (?:\w+ ){0,2}(?:alérgic\w*|alergi\w*|odi\w+|evit\w+)"
    r"|[不沒没](?:是|會|会|有)?(?:對|对)?[^，。,.]{0,8}(?:過敏|过敏)|不[討讨]厭"
)

NUMBER_WORDS = {
    word: digits
    for digits, forms in {
        "1": "one eins un uno una 一",
        "2": "two zwei dos 二 兩 两",
        "3": "three drei tres 三",
        "4": "four vier cuatro 四",
        "5": "five fünf cinco 五",
        "6": "six sechs seis 六",
        "7": "seven sieben siete 七",
        "8": "eight acht ocho 八",
        "9": "nine neun nueve 九",
        "10": "ten zehn diez 十",
        "11": "eleven elf once",
        "12": "twelve zwölf doce",
    }.items()
    for word in forms.split()
    if word not in ("un", "una", "once")  # an article, and English for one time
}
UNITS = word_table(
    """eu us uk jp cm mm m km in inch inches ft feet kg g lb lbs oz l ml $ € £ ¥ % ° usd eur gbp twd ntd euro euros dollar dollars
    pounds year years month months week weeks day days hour hours minute minutes am pm people persons"""
) | _signs("號 号 碼 码 元 歲 岁 公 斤 分 吋 寸 人 年 月 日 點 点 折 萬 万")


# --- words -------------------------------------------------------------------------------------------------------------

_WORD = re.compile(
    r"\d+(?:[.,/:^]\d+)*|[$€£¥%°]|[\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
    r"|(?:(?![\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\d_])\w)(?:(?![\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\d_])[\w'\u0300-\u036f\u0900-\u0dff])*"
)


def words(text: str) -> list[str]:
    """Folded words, numbers and signs of units; each Chinese or Japanese character is a word."""
    return [word.rstrip("'") for word in _WORD.findall(store.fold(text))]


CJK = re.compile(r"[\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


def number(word: str) -> str:
    """Eleven and 11 are one number."""
    return NUMBER_WORDS.get(word, word)


class Vocabulary:
    """The words somebody used. A word is in it in any of its forms: seat and seats, allergic and allergy, eleven and 11."""

    def __init__(self, said: Iterable[str]) -> None:
        self._words = set(said)
        self._numbers = {number(word) for word in self._words}
        self._beginnings: dict[str, list[str]] = {}
        for word in self._words:
            self._beginnings.setdefault(word[:3], []).append(word)

    def __contains__(self, word: str) -> bool:
        if word in self._words or number(word) in self._numbers:
            return True
        if CJK.match(word) or word[0].isdigit():
            return False
        if len(word) < 4:
            return any(
                form in self._words for form in (word + "s", word + "es", word.removesuffix("s")) if len(form) > 1
            )
        return any(_akin(word, other) for other in self._beginnings.get(word[:3], ()))


def _akin(one: str, other: str) -> bool:
    """Forms of one word have a common beginning and short, different ends."""
    short, long = sorted((len(one), len(other)))
    common = next((at for at in range(short) if one[at] != other[at]), short)
    return long - short <= 4 and long - common <= 4 and common >= 0.6 * long


# --- what a sentence does ---------------------------------------------------------------------------------------------

_REMEMBER = re.compile(
    r"\b(?:remember|note|keep in mind|memori[sz]e|bear in mind|make a note|write (?:this |that )?down|for (?:the )?(?:future|next time)|save (?:this|that|my))\b"
    r"|[記记](?:住|得|下|著)|\b(?:recuerd\w+|apunt\w+|ten en cuenta|anot\w+)\b|\b(?:merk\w*|denk daran|notier\w*)\b"
)
_QUESTION = re.compile(r"[?？]\s*[\"'”’)」』]*$|(?:嗎|吗|呢)[。.!！?？]*$|^¿")
STANDING = re.compile(
    r"\b(?:always|usually|generally|normally|typically|never|prefer\w*|from now on|going forward|in (?:the )?future|by default|every time|"
    r"each time|whenever|allerg\w*|anymore|any more|no longer|i'm|i am|i've|i have|i don't|i do not|i can't|i only|i hate|i love|i moved|my)\b"
    r"|以[後后]|通常|總是|总是|一向|一律|習慣|习惯|從不|从不|從來|从来|每次|過敏|过敏|固定|偏好|不吃|不喝|不搭|不坐|不要|我的|都"
    r"|\b(?:siempre|nunca|normalmente|prefiero|a partir de ahora|desde ahora|soy|mi|mis|alérgic\w*)\b"
    r"|\b(?:immer|nie|meistens|normalerweise|bevorzuge|ab jetzt|ab sofort|in zukunft|mein\w*|allergisch)\b"
)
_ERRAND = re.compile(
    r"^(?:(?:please|ok|okay|hi|hello|hey|so|and|then|can you|could you|would you|i want you to|just)[, ]+)*"
    r"(?:show|find|search|look (?:up|for|at)|book|order|reorder|add|give|get|send|compare|check|track|cancel|change|recommend|suggest|"
    r"tell|list|buy|return|refund|ship|put|remove|pick|switch|make it|rebook)\b"
    r"|^(?:請|请|麻煩|麻烦|那|幫我|帮我|可以|能不能|我想|我要|再)*(?:幫我|帮我|找|查|訂|订|改|退|買|买|加|推薦|推荐|看|給我|给我|換|换)"
    r"|^(?:por favor,? )?(?:muéstra\w*|busca\w*|búsca\w*|encuentra\w*|reserva\w*|pide|añade|dame|envía\w*|compara|cancela|cambia|dime|pon)\b"
    r"|^(?:bitte )?(?:zeig\w*|such\w*|find\w*|buch\w*|bestell\w*|gib|schick\w*|vergleich\w*|prüf\w*|stornier\w*|änder\w*)\b"
)
_THIS_TIME = re.compile(
    r"\b(?:this time|just (?:this )?once|for this (?:order|trip|one|booking|flight)|on this (?:order|trip|one|booking|flight)|just for (?:today|now|tonight)|"
    r"today only|only today)\b|[這这本][次趟回]|今天|今晚|明天|\besta vez\b|\bpor esta vez\b|\bsolo (?:por )?hoy\b|\bdiesmal\b|\bnur heute\b"
)
_SUPPOSED = re.compile(
    r"\b(?:if i (?:was|were|had|ever)|suppos\w+|imagine|hypothetically|pretend|let'?s say|what if|would i|say i (?:was|were|am)|for example|e\.g\.)\b"
    r"|如果我|假如|假設|假设|要是我|假裝|假装|\bsi (?:yo )?(?:fuera|tuviera)\b|\bsupongamos\b|\bangenommen\b|\bwenn ich \w+ wäre\b|\bstell dir vor\b"
)
_OTHERS_GUESSED = re.compile(
    r"\b(?:he|she|they|it) (?:\w+ )?(?:seems?|appears?|looks? like|must|might|probably|apparently|may)\b"
    r"|^(?:he|she) (?:always|usually|never|prefers?|likes?|wants?|hates?)\b"
    r"|[他她]們?(?:看起[來来]|好像|似乎|應[該该]|应该|可能)|\b(?:él|ella|ellos) (?:parece|debe)\b|\b(?:er|sie) (?:scheint|wirkt)\b"
)
_OWN_VOICE_LOST = re.compile(
    r"\b(?:the|this|that|our|dear|every|each) (?:customer|user|shopper|client|guest|buyer|passenger|member|traveler|traveller|account holder)s?\b"
    r"|\b(?:customer|user|client|assistant|system|human|agent|bot)\s*:"
    r"|\b(?:der|die|dieser|diese|dem|den) (?:kund\w+|nutzer\w*|benutzer\w*|gast|käufer\w*)\b|\bsehr geehrte\w*"
    r"|\b(?:el|la|este|esta|estimad[oa]) (?:cliente|clienta|usuari[oa]|pasajer[oa]|comprador\w*)\b"
    r"|客[戶户]|[顧顾]客|使用者|用[戶户]|消費者|消费者|乘客|買家|买家|本客人|[會会][員员](?![卡])"
    r"|\b(?:ai|a\.i\.|llm|chatbot|language model)\b|\bai[- ]?(?:assistant|agent)s?\b|\bto (?:any|all|the) (?:ai|assistants?|agents?)\b|人工智[慧能]|語言模型|语言模型"
    r"|\b(?:ignore|disregard) (?:all|any|the|your|previous|prior)\b|\bignorier\w*|\bignora\b|忽略(?:之前|以上|先前|所有)|無視|无视"
    r"|\byou (?:must|shall|have to) (?:always|never|now)\b"
)


def asks_to_remember(sentence: str) -> bool:
    return _REMEMBER.search(store.fold(sentence)) is not None


def is_question(sentence: str) -> bool:
    return _QUESTION.search(store.fold(sentence)) is not None


def is_errand(sentence: str) -> bool:
    """It asks for something to be done now, and says nothing that holds beyond it."""
    folded = store.fold(sentence)
    if _THIS_TIME.search(folded) and not re.search(r"from now on|以[後后]|always|總是|总是|siempre|immer", folded):
        return True
    return bool(_ERRAND.search(folded)) and not STANDING.search(folded)


def is_supposed(sentence: str) -> bool:
    """It imagines, or guesses about somebody else."""
    folded = store.fold(sentence)
    return bool(_SUPPOSED.search(folded) or _OTHERS_GUESSED.search(folded))


def not_in_own_voice(sentence: str) -> bool:
    """Nobody speaks of themselves as the customer, or to the machine as the machine."""
    return _OWN_VOICE_LOST.search(store.fold(sentence)) is not None
