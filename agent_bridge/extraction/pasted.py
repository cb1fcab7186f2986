# ruff: noqa: E501  # tables read best with one kind of thing on a line
"""What a customer's turn holds that is not the customer's own: quoted, pasted, reported. In: a text. Out: spans of it.

Errs on the side of "not their own": such words still make a suggestion, which the customer answers. Every repetition in a
pattern has a bound, so that no text makes it slow. Pure patterns; imports nothing of this project.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Span = tuple[int, int]

_MARKED = re.compile(
    r"“[^“”]{12,}”|(?<!\w)\"[^\"]{12,2000}\"|\"[^\"\n]{12,}\"|„[^„“”]{12,}[“”]|«[^«»]{12,}»|「[^「」]{6,}」|『[^『』]{6,}』|(?<!\w)‘[^‘’\n]{12,}’(?!\w)"
    r"|```[^`]{1,4000}(?:```|\Z)|`[^`\n]{12,}`|^[ \t]{0,8}[>|].*$",
    re.MULTILINE,
)

# Somebody else's text begins with this line.
_HEADS = re.compile(
    r"^[ \t]{0,8}(?:-{1,12} ?(?:original|forwarded|ursprüngliche|mensaje)\b|begin forwarded message|(?:from|von|de|subject|betreff|asunto): "
    r"|寄件者[:：]|發件人[:：]|主旨[:：]|on [^\n]{4,80} wrote:|am [^\n]{4,80} schrieb|dear |sehr geehrte|liebe[rs]? (?:kund\w{1,8}|frau|herr)\b|estimad[oa]|親愛的|尊敬的"
    r"|(?:user|assistant|customer|system|human|agent|ai|tool|(?:admin\w{0,11}|operator|developer|system) [^\n:：]{1,30}|admin\w{0,11}|operator|developer|note to [^\n:：]{1,40}|客戶|客服|用戶|系統|助理|管理員|系統指令|管理員指令|(?:anweisung|hinweis|nachricht) (?:des|der|vom) [^\n:：]{1,30})[ \t]{0,3}[:：]"
    r"|<[a-z_/!?][^>\n]{0,80}>|\[/?[a-z_ ]{3,20}\]|\*\*\*|={3}|-{3}|\#{1,6} )",
    re.IGNORECASE | re.MULTILINE,
)
# Somebody else's text follows this: "Here is what the page says:", or "What do you think of this?" and an empty line.
_DOCUMENTS = r"review\w{0,3}|e-?mails?|mails?|message|page|site|website|web ?page|listing|description|article|post|comment|letter|label|leaflet|flyer|advert|ad|blog|tag|manual|guide|forum|app"
_INTRODUCTIONS = re.compile(
    rf"(?:\b(?:{_DOCUMENTS}|text|chat|reply|answer|document|file|receipt|says|said|reads|wrote|writes|states|told me"
    r"|bewertung|seite|nachricht|artikel|schreibt|sagt|steht|beschreibung|reseña|página|correo|mensaje|anuncio|dice|decía)\b"
    r"|評論|评论|評價|评价|網頁|网页|網站|网站|頁面|页面|信|郵件|邮件|訊息|讯息|文章|說明|说明|介紹|介绍|寫著|写着|寫道|說|说|內容|内容)"
    r"[^\n.!?。！？:：]{0,60}[:：]",
    re.IGNORECASE,
)
_POINTS_BELOW = re.compile(
    r"\b(?:this|the following|below|here is|here's|attached)\b|以下|下面|底下|[這这][段則则封篇個个頁页]|\b(?:folgende\w{0,3}|das hier|dies\w{0,2}|unten|esto|este|esta|siguiente|abajo)\b",
    re.IGNORECASE,
)
_EMPTY_LINE = re.compile(r"\n[ \t]{0,40}\n")
# A document that is reported on: where its words end, nobody can tell.
_DOCUMENT_SAYS = re.compile(
    rf"\b(?:the|this|that|your|their|its|a|an|one|another|some) (?:\w{{1,30}} ){{0,2}}(?:{_DOCUMENTS})\b[^.!?\n]{{0,30}}? "
    r"(?:says?|said|claims?|claimed|states?|stated|reads?|wrote|writes|recommends?|recommended)\b"
    r"|\b(?:auf der (?:seite|webseite|verpackung)|in der (?:e-?mail|mail|bewertung|beschreibung|nachricht)|im (?:text|artikel|forum)|auf dem etikett)[^.!?\n]{0,20} (?:steht|stand)\b"
    r"|\b(?:die|eine|der|ein|das) (?:\w{1,30} )?(?:bewertung|seite|beschreibung|artikel|text|e-?mail|mail) (?:sagt\w{0,2}|schreibt|schrieb|meint\w{0,2}|behauptet\w{0,2})\b"
    r"|\b(?:la|una|el|un|esta|este) (?:\w{1,30} )?(?:reseña|página|web|descripción|correo|anuncio|artículo|etiqueta) (?:dice|decía|afirma|pone)\b"
    r"|(?:網頁|网页|網站|网站|頁面|页面|評論|评论|評價|评价|信件|信裡|信里|信上|郵件|邮件|訊息|文章|說明|说明|介紹|介绍|商品|標籤|标签)[^。！？，,\n]{0,8}(?:說|说|寫|写|表示|提到|建議|建议|推薦|推荐)",
    re.IGNORECASE,
)
# A person who is reported on: to the end of the sentence.
_PERSON_SAYS = re.compile(
    r"\b(?:the|this|that|your|their|a|an|one|another|some) (?:\w{1,30} ){0,2}(?:people|person|guy|woman|man|salesman|saleswoman|clerk|agent|assistant)\b[^.!?\n]{0,30}? "
    r"(?:says?|said|claims?|claimed|told|recommends?|recommended)\b"
    r"|\b(?:it|he|she|they|someone|somebody|everyone|everybody|people) (?:\w{1,30} )?(?:says?|said|claims?|claimed|wrote|told me)\b|\baccording to\b"
    r"|\bmy (?!doctor)(?:\w{1,30} )?(?:friend|brother|sister|boss|colleague|neighbou?r|mother|father|mom|mum|dad|husband|wife|partner|son|daughter)s? (?:says?|said|claims?|thinks?|told)\b"
    r"|\b(?:die|eine|der|ein|das) (?:\w{1,30} )?(?:verkäufer\w{0,3}|freund\w{0,3}) (?:sagt\w{0,2}|schreibt|schrieb|meint\w{0,2}|behauptet\w{0,2})\b"
    r"|\b(?:laut|gemäß|man sagt|según)\b|\b(?:el|la|un|una) vendedor\w{0,2} (?:dice|decía|afirma)\b"
    r"|(?:店員|店员|客服|訪客|访客|客人|朋友|同事|有人|別人|别人|網友|网友|他|她|他們|他们)[^。！？，,\n]{0,8}(?:說|说|寫|写|表示|提到|建議|建议|推薦|推荐)|根據|根据|據說|据说|聽說|听说",
    re.IGNORECASE,
)
# "..., says every expert": the sentence before it, too.
_SAYS_WHO = re.compile(
    r" (?:says|said|claims|claimed|writes|wrote) (?:(?:every|all|the|a|an|one|some|his|her|their|your|my)\b|(?-i:[A-Z]))",
    re.IGNORECASE,
)
_STOPS = re.compile(r"[.!?。！？\n]")

_LONG = 2_000
"""Longer quotations are looked for without a pattern, by their first mark and the last."""

_FENCE = re.compile(
    r"<\s{0,3}/?\s{0,3}customer_memory\s{0,3}>.*?(?:<\s{0,3}/\s{0,3}customer_memory\s{0,3}>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_RECORD = re.compile(
    r"\{[^{}\n]{0,40}[\"“”']key[\"“”']\s{0,3}:[^{}]{0,800}\}?|^.*\b(?:key|value)[\"']?\s{0,3}[:=]\s{0,3}[\"'].*$",
    re.MULTILINE,
)


def pasted(text: str) -> list[Span]:
    """Spans that are quoted, pasted or reported: quotation marks, block quotes, mails, "the page says"."""
    spans = [found.span() for found in _MARKED.finditer(text)]
    spans += _nested(text)
    spans += [(start, len(text)) for start in _beginnings(text)]
    for found in _PERSON_SAYS.finditer(text):
        stop = _STOPS.search(text, found.end())
        spans.append((found.start(), stop.start() if stop else len(text)))
    for found in _SAYS_WHO.finditer(text):
        before = max((stop.end() for stop in _STOPS.finditer(text, 0, found.start())), default=0)
        spans.append((before, found.end()))
    return [*spans, *echoes(text)]


def _nested(text: str) -> Iterator[Span]:
    """Marks inside marks: a quotation that holds quotations ends with the last of them. What is said between two is lost."""
    for mark, most in ('"', 2), ("```", 1):
        first, last = text.find(mark), text.rfind(mark)
        if text.count(mark) > most or last - first > _LONG:
            yield first, last + len(mark)
    if (start := text.find("<!--")) >= 0:
        stop = text.rfind("-->")
        yield start, stop + 3 if stop > start else len(text)


def _beginnings(text: str) -> Iterator[int]:
    """Where somebody else's text begins that goes on to the end of the turn."""
    if found := _HEADS.search(text):
        yield found.start()
    if found := _INTRODUCTIONS.search(text):
        yield found.end()
    if found := _DOCUMENT_SAYS.search(text):
        yield found.start()
    gap = _EMPTY_LINE.search(text)
    if gap and _POINTS_BELOW.search(text, 0, gap.start()):
        yield gap.end()


def echoes(text: str) -> list[Span]:
    """Spans that come out of our own memory block, or are made to look like it."""
    return [found.span() for pattern in (_FENCE, _RECORD) for found in pattern.finditer(text)]
