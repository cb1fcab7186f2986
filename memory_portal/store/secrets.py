"""Passwords and keys: text in, yes or no out. Told by their form, by the name beside a value, by sentence, by chance.
The forms are those their issuers publish; lengths are loose, because a shortened key is still nothing to remember.
Imports nothing of the project.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Form(NamedTuple):
    """How the tokens of one issuer begin and what follows."""

    issuer: str
    pattern: str


FORMS = (
    Form("AWS access key id", r"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z2-7]{12,}"),
    Form("AWS Bedrock", r"ABSK[A-Za-z0-9+/]{30,}|bedrock-api-key-[A-Za-z0-9+/=]{10,}"),
    Form("GitHub", r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"),
    Form(
        "GitLab",
        r"gl(?:pat|dt|rt|soat|cbt|ptt|ft|imt|agent|oas|ffct)-[\w.-]{16,}|GR1348941[\w-]{16,}"
        r"|_gitlab_session=[0-9a-z]{16,}",
    ),
    Form(
        "Slack",
        r"xox[abeoprs](?:\.xox[bp])?-[\w-]{10,}|xapp-\d-[A-Z0-9]+-\d+-\w+|hooks\.slack\.com/(?:services|workflows"
        r"|triggers)/\S{16,}",
    ),
    Form(
        "Stripe and its kin",
        r"(?:sk|rk|pk|whsec)_(?:(?:live|test|prod)_)?[A-Za-z0-9]{10,}|sq0[a-z]{3}-[\w-]{20,}|EAAA[\w-]{50,}",
    ),
    Form(
        "Google",
        r"AIza[\w-]{30,}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}|1//0[\w-]{30,}"
        r"|\d{6,}-[a-z0-9]{20,}\.apps\.googleusercontent\.com",
    ),
    Form("OpenAI, Anthropic and others", r"sk-(?:ant|proj|svcacct|admin|or|lf)?-?[\w-]*[A-Za-z0-9][\w-]{18,}"),
    Form("JSON Web Token", r"ey[JI][\w-]{8,}\.(?:ey)?[\w-]{8,}(?:\.[\w-]*)?"),
    Form("JSON in base64", r"(?:ey[JI]|ZXlK)[A-Za-z0-9+/=_-]{24,}"),
    Form("private key", r"-----BEGIN[ A-Z0-9_-]{0,40}PRIVATE KEY|PuTTY-User-Key-File|AGE-SECRET-KEY-1[0-9A-Z]{20,}"),
    Form("SendGrid", r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    Form("Twilio", r"(?:AC|SK)[0-9a-f]{32}"),
    Form(
        "npm, PyPI, RubyGems, crates", r"npm_[A-Za-z0-9]{20,}|pypi-[\w-]{20,}|rubygems_[0-9a-f]{20,}|cio[A-Za-z0-9]{32}"
    ),
    Form(
        "Azure and Entra",
        r"[A-Za-z0-9_~.-]{3}\dQ~[\w~.-]{20,}|AccountKey=[A-Za-z0-9+/=]{20,}|SharedAccess(?:Key"
        r"|Signature)\S{0,8}[=:]\S{12,}",
    ),
    Form("Shopify", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{16,}"),
    Form(
        "Hugging Face, Replicate, Groq and others",
        r"(?:hf|api_org|r8|gsk|pplx|xai|fw|csk|nvapi|jina|tvly|lin_api|fo1)[_-][A-Za-z0-9]{20,}",
    ),
    Form("DigitalOcean, Linode, Fly", r"do[opr]_v1_[0-9a-f]{20,}|FlyV1 \S{20,}|fm[12][ar]?_[A-Za-z0-9+/=]{30,}"),
    Form("HashiCorp", r"hv[sbr]\.[\w-]{16,}|[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{20,}|\b[sb]\.[A-Za-z0-9]{24,}"),
    Form(
        "Databricks, Doppler, Dynatrace",
        r"dapi[0-9a-f]{20,}|dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{20,}|dt0[a-z]\d\d\.[A-Z0-9]{12,}\.\w{20,}",
    ),
    Form(
        "Grafana, Sentry, New Relic",
        r"gl(?:c|sa)_[A-Za-z0-9+/=_]{20,}|sntry[su]_[A-Za-z0-9+/=_]{20,}|NR(?:AK|JS|II|AA)-[A-Za-z0-9]{16,}",
    ),
    Form("Facebook and Instagram", r"EAA[A-Za-z0-9]{30,}|IG[A-Z]{1,3}[A-Za-z0-9]{60,}|\d{13,17}\|[\w-]{20,}"),
    Form("Telegram and Discord bots", r"\d{8,10}:AA[\w-]{30,}|[MNO][A-Za-z\d_-]{22,27}\.[\w-]{6}\.[\w-]{25,}"),
    Form("Mail services", r"key-[0-9a-f]{24,}|[0-9a-f]{32}-us\d{1,2}|xkeysib-[0-9a-f]{20,}|re_[A-Za-z0-9_]{20,}"),
    Form("Atlassian", r"ATATT3[\w=-]{20,}|ATCTT3[\w=-]{20,}|ATBB[A-Za-z0-9]{20,}"),
    Form("1Password", r"ops_eyJ\S{20,}|A3-[A-Z0-9]{6}-(?:[A-Z0-9]{5,11}-){2,4}[A-Z0-9]{5}"),
    Form("named kinds", r"(?:[a-z][a-z0-9]{1,12}[-_]){1,3}(?=[A-Za-z0-9]*\d)(?=[A-Za-z0-9]*[A-Za-z])[A-Za-z0-9]{24,}"),
    Form("credentials in an address", r"[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{0,80}:[^\s/@]{1,120}@"),
    Form("connection string", r"(?i:(?:password|pwd|accountkey)=[^;\s]{3,};|;\s?(?:password|pwd)=[^;\s]{3,})"),
    Form(
        "sign-in header",
        r"(?i:\b(?:authorization|x-api-key|x-auth-token)\b['\"]?\s{0,3}[:=]\s{0,3}['\"]?(?:(?:basic|bearer|token"
        r"|apikey)\s)?[\w+/=.~-]{12,})",
    ),
    Form("bearer token", r"(?i:\bbearer\s[\w+/=.~-]{16,})"),
    Form("command-line sign-in", r"(?:-u|--user|--proxy-user)[ =]{1,2}['\"]?[\w.@\\-]{2,40}:['\"]?[^\s'\"$:{(]{3,}"),
    Form("Sidekiq", r"(?i:contribsys\w{0,12}\W{1,6}[0-9a-f]{8}:[0-9a-f]{8})"),
)
# Tokens stand at the start of a word: behind a letter or digit it is the middle of something else.
_FORMS = re.compile("|".join(rf"(?:(?<![A-Za-z0-9])(?:{form.pattern}))" for form in FORMS))

# --- a name beside a value ------------------------------------------------------------------------------------------

_WORD_NAME = r"pass(?:word|wd|wort|phrase|code)s?|pwd|passwd|kennwort|contrase[nñ]a|密碼|密码|口令|パスワード"
_STRONG_NAME = (
    r"secret|token|api[ _.-]?key|apikey|access[ _.-]?key|private[ _.-]?key|auth[ _.-]?key|client[ _.-]?secret"
    r"|app[ _.-]?secret|credentials?|license[ _.-]?key|clave"
)
_WEAK_NAME = r"key|auth|login|sid|signature|session|cookie|licen[cs]e|(?:secret|access|client|app)[ _.-]?id|webhook"
_ASSIGNS = r"[\w\])]{0,20}['\"`]?\s{0,3}(?:=>|[:?]{0,3}={1,2}|:|：)\s{0,3}['\"`(\[]{0,2}"
_NAMED_STRONGLY = re.compile(
    rf"(?:(?P<password>{_WORD_NAME})|{_STRONG_NAME}){_ASSIGNS}(?P<value>[^\s'\"`,;)\]]{{4,}})", re.IGNORECASE
)
_NAMED_WEAKLY = re.compile(rf"(?:{_WEAK_NAME}){_ASSIGNS}(?P<value>[^\s'\"`,;)\]]{{12,}})", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"[$%<{(\[]|x{4,}|\*{3,}|\.{3}|null|none|true|false|undefined", re.IGNORECASE)

# --- a sentence -----------------------------------------------------------------------------------------------------

# What may be a plain word, and what is always a number or has one in it.
_WORD_NOUN = (
    r"pass ?word|pass ?code|pass ?phrase|secret word|mother'?s maiden name|passwort|kennwort|contrase[nñ]a"
    r"|clave secreta"
)
_CODE_NOUN = (
    r"pin(?: code| number)?|cvv2?|cvc2?|(?:security|door|gate|alarm|access|unlock|verification|recovery) code"
    r"|safe combination|one[- ]time code|otp|geheimzahl|zugangscode|t[uü]rcode|sicherheitscode|pr[uü]fziffer|clave"
    r"|c[oó]digo (?:de seguridad|secreto|de acceso)"
)
_NOUN = rf"(?:(?P<word>{_WORD_NOUN})|{_CODE_NOUN})"
_SENTENCE = re.compile(
    rf"\b{_NOUN}(?: (?:for|to|of|on|at|in|f[uü]r|zum|zur|von|vom|para|de|del|a)\b[^.:;=]{{1,40}}?)?"
    r"(?: is| was| are| ist| lautet| war| es| era| ?=| ?:| ?->) ?(?:now |still |currently |jetzt |noch |ahora )?"
    r"[\"'(]?(?P<value>[^\s\"',;]{3,40}?)(?P<end>[.!?]?[\"')]?(?:[.!,;]|$))?(?=[\s\"',;)]|$)"
)
_SENTENCE_BARE = re.compile(
    rf"\b{_NOUN} (?P<value>\d{{3,8}})\b(?! ?(?:times|years|days|minutes|characters|digits|zeichen|stellen))"
)
# "use password hunter2": no verb between, so the value has to look like one.
_SENTENCE_PLAIN = re.compile(
    r"\b(?:pass ?(?:word|code|phrase)|passwort|kennwort|contrase[nñ]a|clave) [\"'(]?"
    r"(?=[^\s-]{0,39}[a-z])(?=[^\s-]{0,39}(?:\d|[#$%&*_@!]\w))[^\s-]{6,40}(?![\w-])"
)
_SENTENCE_CJK = re.compile(
    r"(?:密碼|密码|口令|驗證碼|验证码|安全碼|安全码|パスワード|暗証番号)(?:就)?(?:是|为|為|:|は|=|改成|設為"
    r"|设为)? ?(?P<value>[!-~]{3,40})"
)
_SENTENCE_BACKWARDS = re.compile(
    rf"(?P<value>[^\s\"',;]{{4,40}})[\"']? (?:is|was|ist|es) (?:my|our|the|mein|unser|das|mi|la"
    rf"|nuestra)\w* [^.]{{0,20}}?{_NOUN}(?P<end>)\b"
)
# What is said about a password rather than being one.
_TALK = """
    about above again all already also always an annoying any anything as awful bad been being best better
    broken called changed compromised confidential different difficult easy enough every everything expired
    expiring fine forgot forgotten generally given good great hard hidden important in incorrect insecure kept known
    leaked like long lost managed managers manager missing more much needed never new no not nothing often old
    on one only outdated okay private protected random reset required resets safe saved secret secure sent set
    short simple so something stolen stored strong stuck that the them there this to too tricky unique unknown
    used usually very weak what when which wrong your for from with without where how because whatever written
    abgelaufen das der die ein eine einfach falsch geheim gut immer kein lang leicht nicht neu nie schwer sehr
    sicher unsicher unwichtig vergessen verloren wichtig zu kurz demasiado difícil fácil importante incorrecta
    larga la el muy nueva nunca olvidada perdida segura siempre una un corta
"""
_TALK_WORDS = frozenset(_TALK.split())

# --- chance ---------------------------------------------------------------------------------------------------------

_OPAQUE = re.compile(r"[A-Za-z0-9+/=_~.%-]{20,}")
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_PART = re.compile(r"[A-Za-z0-9]+")
_RUN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
OPAQUE_LENGTH = 20
OPAQUE_RUN = 3.0
TIGHT_RUN = 2.2
"""Mean length of a run of one kind of character. Random letters and digits change kind about every two, words and
numbers do not. With few runs of digits the tighter figure holds, because product names strung together come close."""


def has_secret(raw: str, folded: str) -> bool:
    """A key, a password or a PIN. `raw` keeps its case, because keys are told from words by it."""
    return (
        _FORMS.search(raw) is not None
        or any(map(_is_assigned, _NAMED_STRONGLY.finditer(raw)))
        or any(_is_key_value(match["value"]) for match in _NAMED_WEAKLY.finditer(raw))
        or _is_said(folded)
        or any(_looks_random(match[0]) for match in _OPAQUE.finditer(raw))
    )


def _looks_random(text: str) -> bool:
    """Letters and digits change places too often for words and numbers: in one part, or in all long parts together.

    A UUID does not count: orders have them. Beside the name of a secret it does.
    """
    if _UUID.fullmatch(text):
        return False
    parts = _PART.findall(text)
    if any(len(part) >= OPAQUE_LENGTH and _is_mixed(part) for part in parts):
        return True
    joined = "".join(part for part in parts if len(part) >= 5)
    return len(joined) >= OPAQUE_LENGTH and _is_mixed(joined) and any(map(_is_mixed, parts))


def _is_mixed(part: str) -> bool:
    digits = sum(map(str.isdigit, part))
    if digits < 2 or digits > len(part) - 2:
        return False
    digit_runs = sum(run.isdigit() for run in _RUN.findall(part))
    return _mean_run(part) <= (OPAQUE_RUN if digit_runs >= 4 else TIGHT_RUN) and len(set(part)) >= 8


def _is_key_value(value: str) -> bool:
    """Beside a name that may be harmless the value has to look made by a machine; how much, depends on its length."""
    return not _PLACEHOLDER.match(value) and any(map(_looks_made, _PART.findall(value)))


def _looks_made(part: str) -> bool:
    if len(part) < 12 or part.isdigit() or part.isalpha():
        return False
    return len(part) >= 24 or _mean_run(part) <= OPAQUE_RUN


def _mean_run(part: str) -> float:
    return len(part) / len(_RUN.findall(part))


def _is_assigned(named: re.Match[str]) -> bool:
    value = named["value"]
    if _PLACEHOLDER.match(value):
        return False
    if not value.isalpha():
        return True
    return named["password"] is not None and len(value) >= 6 and value.casefold() not in _TALK_WORDS


def _is_said(folded: str) -> bool:
    if any(match["value"] for match in _SENTENCE_CJK.finditer(folded)) or _SENTENCE_BARE.search(folded):
        return True
    if _SENTENCE_PLAIN.search(folded):
        return True
    sentences = (_SENTENCE, _SENTENCE_BACKWARDS)
    return any(_is_told(match) for sentence in sentences for match in sentence.finditer(folded))


def _is_told(match: re.Match[str]) -> bool:
    """A value with a digit, or a word that ends the clause and is not just talk about passwords."""
    value = match["value"].strip(".!?")
    if any(map(str.isdigit, value)):
        return True
    if match["word"] is None or match["end"] is None:
        return False
    return value.isascii() and sum(map(str.isalpha, value)) >= 4 and value not in _TALK_WORDS
