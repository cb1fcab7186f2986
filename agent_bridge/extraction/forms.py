# ruff: noqa: E501  # one form on a line
"""The sentence forms that the offline extractor reads, as a table. Data only.

In a form, `value` is what is kept and `about` what it is about, which names the fact where the form has
no key of its own.
Two forms never read the same stretch of a sentence: the earlier in the table wins.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

SAFETY, PREFERENCE, CONSTRAINT, CONTEXT = "safety", "preference", "constraint", "context"


@dataclass(frozen=True, slots=True)
class Form:
    pattern: re.Pattern[str]
    category: str
    key: str = ""
    prefix: str = ""


def _form(pattern: str, category: str, key: str = "", prefix: str = "") -> Form:
    return Form(re.compile(pattern, re.IGNORECASE), category, key, prefix)


# Where a thing is known, it has one name whatever the sentence calls it.
TOPICS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(words, re.IGNORECASE), key)
    for words, key in (
        (r"\bred[- ]?eyes?\b|\bovernight (?:flights?|trains?)|\bnight flights?\b|紅眼|红眼|夜航|\bvuelos? nocturnos?\b", "overnight_flight"),
        (r"\baisles?\b|\bwindow\b|\bmiddle seats?|\bbulkhead|\bseats?\b|走道|靠窗|窗[邊边]|座位|坐位|\bpasillo\b|\bventanilla\b|\basientos?\b", "seat_preference"),
        (r"\bmeals?\b|餐點|餐点|飛機餐|飞机餐|機上餐|机上餐", "meal_preference"),
        (r"\b(?:business|economy|first) class\b|商[務务][艙舱]|[經经][濟济][艙舱]|\bclase (?:turista|ejecutiva)\b", "cabin_preference"),
        (r"\bdiet\b|\bvegetarian\b|\bvegan\b|吃素|素食|\bvegetarian[ao]\b|\bvegan[ao]\b", "diet"),
        (r"\ballerg\w*|過敏|过敏|\balergias?\b", "dietary_restriction"),
        (r"\bshoes? size\b|\bshoe\b|鞋|\bzapatos?\b|\bcalzado\b", "shoe_size"),
        (r"\bsubstitut\w+|\breplacements?\b|替代品|代替品|\bsustitu\w+", "substitutions"),
        (r"\bbags?\b|塑[膠胶料]袋|[紙纸]袋|\bbolsas?\b", "bags"),
        (r"\b(?:stores?|branch)\b|[門门]市|分店|\btienda\b|\bsucursal\b", "default_store"),
        (r"\bpick(?:s|ed)?[ -]?up\b|\bdeliver\w*|\bdoor(?:step)?\b|外送|配送|送[貨货]|宅配|取[貨货]|\bentreg\w+\b", "delivery_note"),
        (r"\btravel (?:party|companions?)\b|旅伴|同行", "travel_party"),
        (r"\bdining table\b|餐桌", "dining_table"),
    )
)  # fmt: skip

# Deictic, interrogative or a thing of today: names nothing that holds.
NOT_A_THING = re.compile(
    r"^(?:this|that|these|those|it|one|ones|them|you|your|to (?:know|see|check|ask|change|cancel|return|pay|go|be|do|get)|everything|anything|nothing|something|"
    r"what|which|how|where|why|who|enough|sure|time|the time|money|order|orders?|booking|password|pin|help|him|her|me|myself|here|there|now|later|again)\b"
    r"|^(?:an? |the )?(?:\d+|one|two|three|four|five|few|couple|some|other|others)\b|\bones?$"
    r"|\b(?:today|tomorrow|tonight|yesterday|right now|this (?:one|time|week|month|order|trip|flight)|your|you)\b"
    r"|^(?:這|这|那|什麼|什么|哪|你|您|他|她|它)|[這这][次個个趟]|今天|明天|昨天|現在|现在|什麼|什么|嗎|吗"
    r"|^(?:esto|eso|este|esta|ese|esa|lo que|que)\b|\b(?:hoy|mañana|ayer|ahora mismo)\b",
    re.IGNORECASE,
)
# It tells of one time in the past, not of how things are.
PAST_ONCE = re.compile(
    r"上次|那次|昨天|以前|\blast (?:time|week|month|year)\b|\bused to\b|\bla última vez\b|\bantes\b", re.IGNORECASE
)

_END = r"(?=\s*(?:[,.;:!?)]|$|–|—|\s-\s|\b(?:but|so|because|though|and (?:i|please|never|no|don't|always)|or i|if|unless|thanks|please)\b))"
_THING = r"[^,.;:!?\n]{2,90}?"
_CAPS = r"(?-i:[A-ZÁÉÍÓÚÑ][\w'’-]+(?: [A-ZÁÉÍÓÚÑ][\w'’-]+){0,2})"
_SHOP = r"(?:store|branch|shop|location)"
_SIZE = r"(?:(?:eu|us|uk|size) )*\d{1,2}(?:[.,]5|½)?(?: (?:eu|us|uk))?"
_HABITS = (
    r"(?:sit|take|fly|book|choose|pick|go|wear|buy|use|shop|drink|eat|cook|order|sleep|collect|get|prefer|drive|stay|want|"
    r"have|do)"
)
_SHUNNED = r"(?:eat|drink|like|fly|take|wear|use|buy|do|sit|touch|tolerate)"
_NOT = r"(?:don['’]?t|do not|can['’]?t|cannot)"

ENGLISH = (
    _form(r"\b(?P<value>no (?P<about>[a-z][\w -]{1,40}?)) for me\s*[,;–—-]+\s*(?:as |because |since )?i(?:['’]| a)m (?:\w+ )?allergic\b", SAFETY, "dietary_restriction"),
    _form(rf"\bi(?:['’]| a)m (?P<value>(?:\w+ly )?allergic to (?P<about>{_THING})){_END}", SAFETY, "dietary_restriction"),
    _form(r"\bi have (?P<value>an? (?:\w+ )?(?P<about>[\w-]{3,20}) allergy)\b", SAFETY, "dietary_restriction"),
    _form(rf"\bmy (?P<about>shoe) size is (?:an? )?(?P<value>{_SIZE})", PREFERENCE, "shoe_size"),
    _form(rf"\bi (?:always |usually )?(?:wear|take) (?:an? )?(?P<value>{_SIZE} (?:in |for )?(?P<about>(?:running |walking |hiking )?(?:shoes?|boots|sneakers|trainers)))\b", PREFERENCE, "shoe_size"),
    _form(rf"\buse the (?P<value>(?P<about>{_CAPS}) {_SHOP}) (?:now\b|from now on|going forward|in (?:the )?future|by default|every time)", PREFERENCE, "default_store"),
    _form(rf"\b(?:from now on|going forward),? (?:please )?(?:always )?use the (?P<value>(?P<about>{_CAPS}) {_SHOP})\b", PREFERENCE, "default_store"),
    _form(rf"\bi (?:always|usually|normally) (?:shop at|collect from|pick up (?:from|at)|use) the (?P<value>(?P<about>{_CAPS}) {_SHOP})\b", PREFERENCE, "default_store"),
    _form(rf"\bthe (?P<about>[a-z][\w -]{{2,30}}?) i (?:bought|got|ordered)(?: \w+){{0,3}}? (?:was|is) (?P<value>for (?:the|my|our) {_THING}){_END}", CONTEXT),
    _form(rf"\bi (?P<value>(?:always |usually |generally |normally |mostly )travel with (?P<about>(?:my|our) {_THING})){_END}", CONTEXT, "travel_party"),
    _form(rf"\b(?:i|we) (?P<value>never {_HABITS} (?P<about>{_THING})){_END}", CONSTRAINT),
    _form(rf"\b(?:i|we) (?P<value>{_NOT} (?:ever )?{_SHUNNED} (?P<about>{_THING})){_END}", CONSTRAINT),
    _form(rf"\bi (?P<value>(?:hate|avoid|can['’]?t stand) (?P<about>{_THING})){_END}", CONSTRAINT),
    _form(rf"\bi (?:really |much )?(?P<value>(?:always |usually )?prefer (?P<about>{_THING})){_END}", PREFERENCE),
    _form(rf"\b(?:i|we) (?P<value>(?:(?:always|usually|generally|normally|typically|mostly) {_HABITS}|only (?:eat|drink|buy|wear|use|fly|shop|cook)) (?P<about>{_THING})){_END}", PREFERENCE),
    _form(rf"\bi(?:['’]| a)m (?P<value>(?:a |an )?(?P<about>vegetarian|vegan|pescatarian)){_END}", CONSTRAINT, "diet"),
    _form(rf"\balways (?P<value>(?:leave|deliver|bring) (?P<about>{_THING})){_END}", PREFERENCE, "delivery_note"),
)  # fmt: skip

# The pronoun may be left out, so each form asks for a habit or a rule instead.
_ZH = r"[^，。；！？,.!?、\s]"
_WO = r"我[們们]?(?:真的|其實|其实|自己|一直)?"
_HABIT = r"(?:通常|一向|[總总]是|[習习][慣惯]|固定|一律|都|偏好|喜[歡欢]|只)"
_RED_EYE = r"(?:紅眼|红眼|夜航)(?:班機|班机|航班)?"

CHINESE = (
    _form(rf"{_WO}(?P<value>[對对](?P<about>{_ZH}{{1,12}}?)(?:[嚴严]重)?(?<!不)[過过]敏)", SAFETY, "dietary_restriction"),
    _form(rf"(?P<value>(?:不要|不想要|不搭乘|[從从]不搭|[絕绝]不搭|[絕绝]不坐|不搭|不坐|不[飛飞]|避[開开])(?:任何)?(?P<about>{_RED_EYE}))", CONSTRAINT, "overnight_flight"),
    _form(rf"{_WO}(?P<value>{_ZH}{{0,8}}?{_HABIT}{_ZH}{{0,4}}?(?P<about>走道|靠窗|窗[邊边]){_ZH}{{0,3}})", PREFERENCE, "seat_preference"),
    _form(rf"(?P<value>以[後后]{_ZH}{{0,12}}?(?P<about>走道|靠窗|窗[邊边]){_ZH}{{0,3}})", PREFERENCE, "seat_preference"),
    _form(rf"{_WO}(?P<value>{_HABIT}(?:和|跟|[與与])(?P<about>{_ZH}{{1,8}}?)(?:一起|一同)?(?:旅行|旅[遊游]|出[遊游]|搭[機机]|出[國国]))", CONTEXT, "travel_party"),
    _form(rf"(?:以[後后]|[從从][現现]在起)(?:都|[請请]|就|[幫帮]我)*(?:改?用|改?去|改?到)(?P<value>(?P<about>{_ZH}{{2,8}}?)(?:[門门]市|分店|店))", PREFERENCE, "default_store"),
    _form(r"我的?(?P<about>鞋)子?的?(?:尺寸|尺[碼码]|[碼码])?(?:是|穿|要)?\s?(?P<value>(?:EU|US|UK|[歐欧][碼码]|美[碼码])?\s?\d{1,2}(?:\.5)?\s?(?:[號号]半?|[碼码])?)", PREFERENCE, "shoe_size"),
    _form(r"我(?:都|通常|一向)?穿\s?(?P<value>(?:EU|US|UK|[歐欧][碼码]|美[碼码])?\s?\d{1,2}(?:\.5)?\s?(?:[號号]半?|[碼码])的?(?P<about>鞋))", PREFERENCE, "shoe_size"),
    _form(rf"{_WO}(?P<value>(?:[從从][來来]|向[來来]|都)?不(?:吃|喝)(?P<about>{_ZH}{{1,10}}))", CONSTRAINT, prefix="diet_"),
    _form(rf"{_WO}(?:是|都|[長长]期)?(?P<value>(?P<about>吃素|茹素|吃全素|吃[純纯]素))", CONSTRAINT, "diet"),
    _form(rf"{_WO}(?P<value>(?:[從从]不|[絕绝]不|[從从][來来]不|不喜[歡欢]|[討讨][厭厌])(?P<about>{_ZH}{{2,14}}))", CONSTRAINT),
    _form(rf"{_WO}(?P<value>(?:比[較较])?(?:偏好|[習习][慣惯]|通常|一向|[總总]是|只(?:買|买|穿|喝|吃|用))(?P<about>{_ZH}{{2,16}}))", PREFERENCE),
    _form(rf"(?P<about>餐桌|沙發|沙发|床|書桌|书桌|燈|灯|地毯)是(?P<value>[買买]?[給给為为]{_ZH}{{2,12}}?(?:[買买]的|用的))", CONTEXT),
)  # fmt: skip

_COSA = r"[^,.;:!?\n]{2,80}?"
_FIN = r"(?=\s*(?:[,.;:!?)]|$|\b(?:pero|porque|así que|y (?:no|nunca|siempre)|gracias|por favor)\b))"

SPANISH = (
    _form(rf"(?<!\bno )\b(?:soy|tengo) (?P<value>alérgic[oa] (?:a|al) (?P<about>{_COSA})){_FIN}", SAFETY, "dietary_restriction"),
    _form(rf"(?<!\bno )\btengo (?P<value>alergia (?:a|al) (?P<about>{_COSA})){_FIN}", SAFETY, "dietary_restriction"),
    _form(rf"\b(?:desde ahora|a partir de ahora),? (?:usa|use|usen|usad) (?:la|el) (?P<value>(?:tienda|sucursal) (?:de|del) (?P<about>{_CAPS}))", PREFERENCE, "default_store"),
    _form(rf"\b(?:usa|use|usen) (?:la|el) (?P<value>(?:tienda|sucursal) (?:de|del) (?P<about>{_CAPS})) (?:desde ahora|a partir de ahora|siempre)", PREFERENCE, "default_store"),
    _form(r"\b(?:calzo|uso) (?:un |una |el )?(?P<value>(?:talla |número )?\d{2}(?:[.,]5)?(?P<about> de (?:zapatos?|calzado|zapatillas))?)", PREFERENCE, "shoe_size"),
    _form(rf"\b(?P<value>(?:siempre |normalmente )?viajo (?:siempre |normalmente )?con (?P<about>mis? {_COSA})){_FIN}", CONTEXT, "travel_party"),
    _form(rf"\b(?P<value>no (?:como|bebo|tomo|uso|compro|vuelo) (?P<about>{_COSA})){_FIN}", CONSTRAINT),
    _form(rf"\b(?P<value>nunca (?:como|bebo|tomo|uso|compro|vuelo|viajo|llevo) (?P<about>{_COSA})){_FIN}", CONSTRAINT),
    _form(rf"\b(?P<value>(?:siempre |normalmente )?prefiero (?P<about>{_COSA})){_FIN}", PREFERENCE),
    _form(rf"\b(?P<value>(?:siempre|normalmente|solo|sólo) (?:como|bebo|tomo|uso|compro|viajo|llevo|pido|elijo) (?P<about>{_COSA})){_FIN}", PREFERENCE),
    _form(rf"\bsoy (?P<value>(?P<about>vegetarian[oa]|vegan[oa])){_FIN}", CONSTRAINT, "diet"),
    _form(rf"\bla (?P<about>mesa|silla|cama|lámpara|alfombra)(?: \w+)* que compré (?:era|es|fue) (?P<value>para (?:la|el|mi|nuestra) {_COSA}){_FIN}", CONTEXT),
)  # fmt: skip

FORMS = (*ENGLISH, *CHINESE, *SPANISH)

FORGET = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:forget|delete|remove|erase|stop remembering|don['’]t remember)(?: about)? (?:that i |my |our )(?P<about>{_THING}){_END}",
        rf"[忘][記记掉了](?:掉)?我?的?(?P<about>{_ZH}{{1,16}})",
        rf"(?:[刪删][除掉]|不要再?[記记]|不用再?[記记])(?:得|住)?(?:有關|有关)?我的(?P<about>{_ZH}{{1,16}})",
        rf"\b(?:olvida|olvide|borra|borre|elimina|elimine) (?:mi|mis|que) (?P<about>{_COSA}){_FIN}",
    )
)
