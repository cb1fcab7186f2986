"""What a text is about, by its words: an order to the assistant, what GDPR Art. 9 protects, another person.
English, Chinese (both scripts), German, Spanish. A hit never refuses: it makes a question or asks for consent.
Pure: imports the store's sanitise only.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from memory_portal.store.kinship import OTHER_PEOPLE
from memory_portal.store.protected import PROTECTED
from memory_portal.store.sanitise import fold


class Rule(NamedTuple):
    """One way of saying it. Patterns meet folded text."""

    name: str
    pattern: str


def instruction_shaped(text: str) -> bool:
    """It addresses the assistant or the system instead of stating something about the customer.

    "Always give me an aisle seat" is a wish about oneself and passes; "always recommend brand X" is not and does not.
    """
    return _INSTRUCTION.search(fold(text)) is not None


def sensitive(text: str) -> bool:
    """It touches what GDPR Art. 9 protects: health, faith, origin, orientation, politics, union, biometrics."""
    return _SENSITIVE.search(fold(text)) is not None


def about_other_person(text: str) -> bool:
    """It says something about somebody else: a relative, a friend, a colleague."""
    return _OTHER_PERSON.search(fold(text)) is not None


# --- orders to the assistant ----------------------------------------------------------------------------------------

_WHO = r"(?:the |this |every |each |any |all )?(?:user|customer|client|shopper|visitor|buyer)s?"
_ORDERS = (
    r"instructions?|rules?|prompts?|guidelines?|polic(?:y|ies)|directions?|directives?|commands?|restrictions?"
    r"|safeguards?|messages?"
)
_TELL = (
    r"tell|reply|respond|answer|recommend|suggest|say|act|ignore|offer|reveal|follow|promote|inform|mention"
    r"|output|treat|obey|comply|apply|approve|grant|refund|write|pretend|call|use|execute|run|never|always|not"
    r"|do|only"
)
_MACHINE = (
    r"(?:\b(?:assistant|ai|chat ?bot|bot|llm|language model)"
    r"|(?:^|[.!?:;,] ?|\bthe |\bthis |\bany |\byour |\bevery )(?:agent|system|model))"
)

INSTRUCTIONS = (
    Rule(
        "put rules aside",
        rf"\b(?:ignore|disregard|forget|override|overrule|bypass|skip|drop)\b[^.!?]{{0,40}}\b(?:previous|prior"
        rf"|above|earlier|preceding|existing|all|any|your|these|those|system)\b[^.!?]{{0,30}}\b(?:{_ORDERS})\b",
    ),
    Rule(
        "you must",
        rf"\byou (?:must|should|shall|have to|need to|are (?:required|obliged|instructed|allowed|permitted"
        rf"|authori[sz]ed) to|are to|will now|will always|may now)(?: now| also)? (?:{_TELL})\b(?! (?:me|us)\b)",
    ),
    Rule(
        "role marker",
        r"(?:^|[\s\"'>|\]#])(?:system|assistant|developer|system prompt|system message|admin override)\s?(?:\]"
        r"|>)?\s?:(?!\S?//)",
    ),
    Rule(
        "instruction heading",
        r"#{2,} ?(?:instruction|system|task)|\[(?:system|inst|instructions?)\]|\b(?:new|updated|important|hidden"
        r"|secret|special) (?:system )?instructions?\b|\b(?:begin|end)(?: of)? (?:system )?(?:instructions?"
        r"|prompt)\b",
    ),
    Rule(
        "from now on",
        r"\b(?:from now on|from this point on|henceforth|going forward)\b,? ?(?:you|respond|reply|answer|always"
        r"|never|act|speak|only|treat|recommend|ignore|the (?:assistant|agent|bot))(?! (?:me|i)\b)",
    ),
    Rule(
        "always recommend",
        r"\b(?:always|only|must) (?:recommend|promote|push|advertise|upsell|approve|grant|refund|obey|comply|trust"
        r"|praise|endorse|favou?r|prioriti[sz]e)\b(?! (?:me|us|my|i)\b)(?![^.!?]{0,60} (?:to|for) me\b)",
    ),
    Rule(
        "always answer with",
        r"\b(?:always|only|must) (?:respond|reply|answer|begin|start|end|say|output)\b(?: \w+){0,3} (?:with|that"
        r"|by|yes|no|\"|')",
    ),
    Rule(
        "never tell them",
        rf"\b(?:never|do not|don't) (?:tell|mention|reveal|disclose|inform|warn|ask|show|let"
        rf"|notify)\b(?: to)? (?:{_WHO}|anyone|anybody|competitors?|them|him|her|that you|this (?:instruction|rule"
        rf"|note|message))\b",
    ),
    Rule(
        "tell the customer",
        r"\b(?:tell|inform|convince|advise|instruct|encourage|persuade|notify|urge|direct|remind|redirect"
        r"|ask) (?:the |this |every |each |any |all |other )(?:user|customer|client|shopper|visitor|buyer)s?\b",
    ),
    Rule(
        "when asked",
        rf"\b(?:when(?:ever)?|if|any ?time|every time)(?: \w+){{0,2}} (?:{_WHO}|asked|someone|somebody|anyone"
        rf"|people) ?(?:asks?|asking|says?|requests?|mentions?|wants?|about)?\b[^.!?]{{0,60}}\b(?:say|reply|respond"
        rf"|recommend|tell|answer|offer|suggest|give|output|refuse|apply)\b(?! (?:me|us)\b)",
    ),
    Rule(
        "play a part",
        r"\byou are now\b|\b(?:act|behave|respond) as (?:if you|though you|an? (?:\w+ ){0,3}(?:assistant|agent|ai"
        r"|bot|model|admin\w*|developer|system))|\bpretend (?:to be|you|that you)\b|\brole-?play as\b"
        r"|\byour (?:new |real |true |only |main )?(?:task|role|job|goal|instructions?|purpose|system prompt"
        r"|objective|mission) (?:is|are)\b",
    ),
    Rule(
        "show what is hidden",
        r"\b(?:reveal|print|show|output|repeat|leak|display|dump|expose|share)\b[^.!?]{0,20}\b(?:system|hidden"
        r"|initial|original|your|secret|internal) (?:prompts?|instructions?|rules|configuration|message|memory"
        r"|data)\b",
    ),
    Rule(
        "the assistant must",
        rf"{_MACHINE} (?:must|should|shall|has to|needs to|will (?:now|always|never)|may (?:now|not)"
        rf"|is (?:allowed|authori[sz]ed|instructed|required|permitted|now|to)|can now|always|never)\b",
    ),
    Rule(
        "favours",
        r"\b(?:give|grant|issue|apply|approve|offer|provide|assign)\b(?: \w+){0,2} (?:this|the|every|all"
        r"|any) (?:customer|user|client|account|shopper)s?\b|\b(?:this|the) (?:customer|user|account) (?:is"
        r"|has been|was|must be|should be)(?: an?)?(?: \w+)? (?:entitled|eligible|authori[sz]ed|approved|verified"
        r"|granted|admin\w*|exempt|whitelisted)\b",
    ),
    Rule(
        "carry away",
        r"\b(?:send|forward|e-?mail|post|upload|transfer|exfiltrate|copy|transmit)\b[^.!?]{0,40}\b(?:conversation"
        r"|chat history|credentials|passwords?|personal data|customer data|user data|history|api keys?"
        r"|transcripts?)\b",
    ),
    Rule(
        "call a tool",
        r"\b(?:call|invoke|execute|run|trigger|use)\b (?:the |your |an? )?[\w.-]{1,40} (?:tool|function|api"
        r"|endpoint|command|script|plugin)\b|\b(?:call|invoke|execute) \w{1,40}\(",
    ),
    Rule(
        "jailbreak",
        r"\bjail ?break\w*|\b(?:dan|developer|debug|god|admin|unrestricted|maintenance) mode\b|\bdo anything now\b"
        r"|\bprompt injection\b|\bwithout (?:telling|asking|informing|notifying"
        r"|confirmation from) (?:the )?(?:user|customer|them)\b",
    ),
    # German
    Rule(
        "Regeln beiseite",
        r"\b(?:ignorier\w*|missacht\w*|vergiss|vergesst|vergessen sie|übergeh\w*"
        r"|umgeh\w*)\b[^.!?]{0,40}\b(?:anweisung\w*|regel\w*|vorgabe\w*|instruktion\w*|richtlinie\w*|befehl\w*"
        r"|systemprompt|prompts?)\b",
    ),
    Rule(
        "du musst",
        r"\b(?:du|sie|ihr) (?:musst|müssen|müsst|sollst|sollen|sollt|darfst|dürfen) (?:\w+ ){0,5}(?:sagen"
        r"|antworten|empfehlen|vorschlagen|behaupten|ignorieren|verraten|erwähnen|anbieten|gewähren|genehmigen"
        r"|befolgen|ausgeben|mitteilen|raten)\b",
    ),
    Rule(
        "ab jetzt",
        r"\b(?:ab jetzt|ab sofort|von nun an|künftig|ab heute)\b,? (?:\w+ )?(?:antworte|antworten sie|empfiehl"
        r"|empfehlen sie|sag|sage|sagen sie|bist du|sind sie|musst|reagier\w*|verhalte|handle|ignorier\w*)\b",
    ),
    Rule(
        "empfiehl immer",
        r"\b(?:empfiehl|empfehle|bewirb|genehmige|gewähre|bevorzuge|erwähne|antworte|sage?"
        r"|behaupte)\b (?:\w+ ){0,2}(?:immer|stets|ausschließlich|nur|niemals|nie)\b(?! mir\b)|\b(?:immer|stets"
        r"|ausschliesslich|ausschließlich|nur|niemals)(?: \w+){1,4} (?:empfehlen|bewerben|genehmigen|gewähren"
        r"|bevorzugen)\b",
    ),
    Rule(
        "sag dem Kunden",
        r"\b(?:sage?|sagen sie|teile?|teilen sie|rate|raten sie|überzeuge|überrede|informiere|erzähle?|erinnere"
        r"|fordere|frage)\b (?:dem|den|der|allen|jedem|jeder) (?:kund\w+|nutzer\w*|benutzer\w*|anwender\w*"
        r"|käufer\w*|besucher\w*)",
    ),
    Rule(
        "der Assistent soll",
        r"\b(?:der|die|das|dieser|dein|ihr|jeder) (?:assistent\w*|agent\w*|ki|bot|chatbot|modell|system"
        r"|sprachmodell) (?:muss|soll|sollte|darf|hat (?:immer|stets)|ist (?:verpflichtet|angewiesen"
        r"|berechtigt))\b|\b(?:du bist|sie sind) (?:jetzt|nun|ab sofort)\b|\b(?:deine|ihre) (?:neue )?(?:aufgabe"
        r"|rolle|anweisung\w*) (?:ist|sind|lautet\w*)\b|\bgib dich als\b|\btu so,? als\b",
    ),
    Rule(
        "zeige den Prompt",
        r"\b(?:zeige?|verrate?|gib|nenne|offenbare|drucke)\b[^.!?]{0,30}\b(?:systemprompt|system-prompt"
        r"|systemanweisung\w*|anweisungen|interne\w* \w+)\b|\b(?:neue|wichtige|geheime) (?:system)?anweisung\w*"
        r"|\b(?:kunde|kundin|nutzer|konto)\w* (?:ist|gilt als) (?:berechtigt|freigegeben|verifiziert"
        r"|administrator)|\b(?:gib|gewähre|erstatte|genehmige) (?:diesem|dieser|dem|allen|jedem) (?:kund"
        r"|nutzer)\w*",
    ),
    # Spanish
    Rule(
        "reglas aparte",
        r"\b(?:ignora\w*|olvida\w*|desobedece\w*|omite\w*|haz caso omiso|no hagas caso|salta\w*"
        r"|descarta\w*)\b[^.!?]{0,40}\b(?:instruccion(?:es)?|instrucción|reglas?|normas?|indicaciones|órdenes"
        r"|directrices|prompts?|mensajes? anterior(?:es)?)\b",
    ),
    Rule(
        "debes",
        r"\b(?:debes|debe usted|tienes que|tiene que|has de|deberás|deberías)\b (?:\w+ ){0,3}(?:decir\w*|responder"
        r"|contestar|recomendar\w*|sugerir\w*|ignorar|mencionar|ofrecer\w*|aprobar|conceder|revelar|obedecer"
        r"|informar\w*|promocionar|actuar)\b(?<!decirme)(?<!recomendarme)(?<!ofrecerme)",
    ),
    Rule(
        "a partir de ahora",
        r"\b(?:a partir de ahora|desde ahora|de ahora en adelante|en adelante"
        r"|a partir de hoy)\b,? (?:\w+ )?(?:responde\w*|contesta\w*|recomienda\w*|eres|actúa\w*|di|debes|solo|sólo"
        r"|siempre|nunca|ignora\w*|habla\w*)\b",
    ),
    Rule(
        "recomienda siempre",
        r"\b(?:recomienda|promociona|aprueba|concede|prioriza|favorece|menciona|di"
        r"|responde)\b (?:\w+ ){0,1}(?:siempre|sólo|solo|únicamente|nunca)\b|\b(?:siempre|nunca|únicamente|solo"
        r"|sólo) (?:recomienda|promociona|aprueba|concede|prioriza|favorece|responde (?:con|que)|di que|menciones"
        r"|reveles)\b",
    ),
    Rule(
        "dile al cliente",
        r"\b(?:dile|diles|informa|convence|persuade|aconseja|recuérdale|recuerda|pide|pídele|indica"
        r"|avisa)\b (?:a )?(?:al|a la|a los|a las|los|cada|todos los|cualquier) (?:client\w+|usuari\w+"
        r"|comprador\w*|visitante\w*)",
    ),
    Rule(
        "el asistente debe",
        r"\b(?:el|la|este|esta|tu|su) (?:asistente|agente|ia|bot|chatbot|modelo|sistema) (?:debe|deberá|tiene que"
        r"|ha de|puede ahora|está (?:autorizad|obligad)\w+)\b|\b(?:ahora eres|eres ahora|finge (?:ser|que)"
        r"|actúa como)\b|\btu (?:nueva )?(?:tarea|función|misión|rol|instrucción) (?:es|será)\b",
    ),
    Rule(
        "muestra lo oculto",
        r"\b(?:muestra|revela|imprime|repite|enseña|filtra)\w*\b[^.!?]{0,30}\b(?:prompt|instrucciones"
        r"|mensaje del sistema|reglas internas|configuración)\b|\b(?:nuevas|importantes) instrucciones\b|\b(?:da"
        r"|dale|concede|aplica|aprueba|otorga)\w* (?:a )?(?:este|esta|al|a todos los|cada) (?:cliente|usuari\w)\b"
        r"|\b(?:el|este) (?:cliente|usuario) (?:está|es|queda) (?:autorizad|verificad|aprobad|exent"
        r"|administrador)\w*|\bsistema ?:|\bmodo (?:desarrollador|administrador|dios)\b",
    ),
    # Chinese
    Rule(
        "忽略规则",
        r"(?:忽略|無視|无视|忘记|忘記|忘掉|跳过|跳過|绕过|繞過|不要理会|不要理會|不用管)[^。.!?]{0,16}(?:指令|指示"
        r"|规则|規則|提示|命令|限制|要求|设定|設定)",
    ),
    Rule(
        "你必须",
        r"(?:你|您)(?:必须|必須|应该|應該|应当|應當|要|得|只能|只需|不得|不能|务必|務必)(?:始终|始終|总是|總是"
        r"|一直|马上|馬上|立刻|直接|向|对|對|把|将"
        r"|將)?[^。.,!?]{0,12}(?:告诉|告訴|回答|回复|回覆|推荐|推薦|建议|建議|说|說|透露|执行|執行|同意|批准|拒绝"
        r"|拒絕|遵守|假装|假裝|扮演|提供|忽略|无视)(?!我)",
    ),
    Rule(
        "从现在起",
        r"(?:从现在起|从现在开始|從現在起|從現在開始|今后|今後|从此|從此|以后|以後)[,，]?(?:你|请|請)?(?:都|就|只"
        r"|要|必须|必須|一律|始终|始終|总是|總是)?(?:是|用|以|回答"
        r"|回复|回覆|推荐|推薦|扮演|忽略|无视|听从|聽從|作为|作為)(?!我)",
    ),
    Rule(
        "总是推荐",
        r"(?:总是|總是|始终|始終|一律|务必|務必|永远|永遠|只|一定要|每次都)(?:要)?(?:推荐|推薦|推销|推銷|宣传|宣傳"
        r"|批准|同意|优先推|優先推|回答说|回答說|回复说|回覆說)(?!我|给我"
        r"|給我)",
    ),
    Rule(
        "告诉客户",
        r"(?:告诉|告訴|通知|说服|說服|劝|勸|引导|引導|要求|提醒|建议|建議|转告|轉告|向|对|對|给|給)(?:所有|每个"
        r"|每個|每位|这位|這位|该|該|任何|其他)?(?:用户|用戶|客户|客戶"
        r"|顾客|顧客|买家|買家|使用者)",
    ),
    Rule(
        "助手应",
        r"(?:助手|助理|客服机器人|客服機器人|机器人|機器人|系统|系統|模型|代理|ai|智能体|智能體)(?:必须|必須|应该"
        r"|應該|应当|應當|需要|要|不得|只能|可以直接|有权|有權|被授权|被授權)",
    ),
    Rule(
        "扮演与泄露",
        r"(?:扮演|假装你|假裝你|你现在是|你現在是|你的(?:新)?(?:任务|任務|角色|职责|職責)是)|(?:显示|顯示|输出"
        r"|輸出|透露|泄露|洩露|打印|列出|重复"
        r"|重複)[^。.!?]{0,10}(?:系统提示|系統提示|提示词|提示詞|内部指令|內部指令|系统指令|系統指令)|(?:系统|系統"
        r"|助手|管理员|管理員) ?:|(?:开发者|開發者|管理员|管理員|越狱"
        r"|越獄)模式|新(?:的)?(?:指令|指示) ?:|(?:用户|客户|客戶|顾客|顧客)(?:已被?|已经|已經)?(?:授权|授權|获批"
        r"|獲批|验证|驗證)",
    ),
)


def _ways(pattern: str) -> list[str]:
    """The pattern's alternatives, parted at every bar outside of brackets."""
    parts, depth = [""], 0
    for piece in re.findall(r"\\.|\[[^\]]*\]|.", pattern):
        depth += {"(": 1, ")": -1}.get(piece, 0)
        if piece == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += piece
    return parts


def _by_first_letter(ways: list[str]) -> str:
    """The same alternatives, sorted so that a word is tried only against those of its letter: five times as fast."""
    lettered: dict[str, list[str]] = {}
    for way in ways:
        letter = re.match(r"\\b([a-z])(?![?*+{])", way)
        lettered.setdefault(letter[1] if letter else "", []).append(way[3:] if letter else way)
    rest = lettered.pop("", [])
    words = [f"{letter}(?:{'|'.join(tails)})" for letter, tails in lettered.items()]
    return "|".join([rf"\b(?:{'|'.join(words)})", *rest])


_INSTRUCTION = re.compile("|".join(f"(?:{rule.pattern})" for rule in INSTRUCTIONS))
_SENSITIVE = re.compile(_by_first_letter([way for words in PROTECTED.values() for way in _ways(words)]))
_OTHER_PERSON = re.compile("|".join(f"(?:{words})" for words in OTHER_PEOPLE.values()))
