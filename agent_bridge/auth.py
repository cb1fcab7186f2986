"""Who is calling. In: the key or session token an agent shows. Out: a Grant, the same for REST and MCP, or NotAuthenticated.

A key is `mp_live_` or `mp_test_`, 43 signs of base62 for 32 random bytes, and 6 for their checksum, so that a typo is told
from a wrong key without asking the database. Kept of it: a look-up prefix and an HMAC under a versioned pepper. A session token
is signed, says for which one customer it is good and until when, and lives no longer than its key.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from math import ceil
from types import MappingProxyType
from typing import Any

from django.conf import settings
from django.core.signing import BadSignature, Signer
from django.db import transaction

from agent_bridge.allowance import Answer, Counter, Exhausted, Question, allowances
from agent_bridge.models import AgentKey
from memory_portal import logs, store
from memory_portal.enums import ActorKind

log = logs.get(__name__)

READ = "facts:read"
READ_SAFETY = "facts:read:safety"
PROPOSE = "facts:propose"
WRITE = "facts:write"
DELETE = "facts:delete"
TURNS = "turns:write"
LINKS = "links:create"
SCOPES = (READ, READ_SAFETY, PROPOSE, WRITE, DELETE, TURNS, LINKS)

LIFE = timedelta(days=90)
LONGEST_LIFE = timedelta(days=365)
OVERLAP = timedelta(hours=24)

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
BODY, CHECK, SHOWN = 43, 6, 8
KEY = re.compile(rf"(mp_(?:live|test)_)([0-9A-Za-z]{{{BODY}}})([0-9A-Za-z]{{{CHECK}}})")
KEY_LIKE = re.compile(r"mp_(?:live|test)_[0-9A-Za-z]{8,}|mps_[0-9A-Za-z_-]{8,}")
"""The published pattern: what a secret scanner looks for, and what may stand in no address."""

SESSION = "mps_"


class NotAuthenticated(Exception):
    """`code`: key_missing, key_malformed, key_unknown, key_revoked, key_expired, session_expired; the problems' own codes."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class TooManyCalls(Exception):
    """The key, or all keys together, had this minute's calls. `retry_after` is in whole seconds, at least 1."""

    def __init__(self, retry_after: int) -> None:
        super().__init__("too many calls")
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Grant:
    """What a caller may do: under which key, for which profile's customers, and for which one where that is bound."""

    key: AgentKey
    profile: str
    agent: str
    scopes: frozenset[str]
    subject: store.Subject | None = None
    session: str = ""
    """The session's tag, where a token binds one."""

    def allows(self, *any_of: str) -> bool:
        return not self.scopes.isdisjoint(any_of)

    @property
    def actor(self) -> store.Actor:
        return store.Actor(ActorKind.AGENT, str(self.key.pk), self.agent)

    @property
    def hidden(self) -> frozenset[str]:
        """The categories this caller is never shown."""
        return frozenset() if READ_SAFETY in self.scopes else frozenset({store.SAFETY})


# --- the text of a key ------------------------------------------------------------------------------------------------


def base62(number: int, length: int) -> str:
    signs = []
    for _ in range(length):
        number, sign = divmod(number, 62)
        signs.append(DIGITS[sign])
    return "".join(reversed(signs))


def checksum(text: str) -> str:
    return base62(zlib.crc32(text.encode()), CHECK)


def new_key(*, test: bool = False) -> str:
    body = ("mp_test_" if test else "mp_live_") + base62(int.from_bytes(secrets.token_bytes(32)), BODY)
    return body + checksum(body)


def well_formed(key: str) -> bool:
    """Whether it can be a key of ours at all. False for a key with a typo; asks nobody."""
    found = KEY.fullmatch(key)
    return found is not None and hmac.compare_digest(checksum(found[1] + found[2]), found[3])


def prefix(key: str) -> str:
    return key[: len("mp_live_") + SHOWN]


@lru_cache(maxsize=4)
def peppers(setting: str) -> dict[int, bytes]:
    """`AGENT_KEY_PEPPER` is one secret, version 1, or several as `2:new,1:old`: the highest makes, all recognise."""
    parts = [re.fullmatch(r"(\d{1,4}):(.+)", part.strip()) for part in setting.split(",")]
    if all(parts):
        return {int(part[1]): part[2].encode() for part in parts if part}
    return {1: setting.encode()}


def digest(key: str, pepper: bytes) -> str:
    return hmac.new(pepper, key.encode(), hashlib.sha256).hexdigest()


# --- the life of a key ------------------------------------------------------------------------------------------------


def issue(
    name: str, profile: str, scopes: Iterable[str], *, now: datetime, life: timedelta = LIFE, test: bool = False
) -> tuple[AgentKey, str]:
    """A new key's row, and the key itself, which exists nowhere else. Raises ValueError naming what is wrong."""
    wanted = [scope for scope in SCOPES if scope in set(scopes)]
    if unknown := sorted(set(scopes) - set(SCOPES)):
        raise ValueError(f"scopes: there is no {unknown[0]}; the scopes are {', '.join(SCOPES)}")
    if not wanted:
        raise ValueError("scopes: at least one is needed")
    if profile not in store.current_policy().profiles:
        raise ValueError(
            f"profile: the policy has none of this name; it has {', '.join(store.current_policy().profiles)}"
        )
    if not timedelta(0) < life <= LONGEST_LIFE:
        raise ValueError(f"life: at most {LONGEST_LIFE.days} days")
    name = store.clean(name)
    if not 0 < len(name) <= 64:
        raise ValueError("name: 1 to 64 characters")
    key = new_key(test=test)
    version, pepper = max(peppers(settings.AGENT_KEY_PEPPER).items())
    row = AgentKey.objects.create(
        name=name,
        profile=profile,
        prefix=prefix(key),
        digest=digest(key, pepper),
        pepper_version=version,
        scopes=wanted,
        created_at=now,
        expires_at=now + life,
    )
    return row, key


def rotate(
    old: AgentKey, *, now: datetime, overlap: timedelta = OVERLAP, life: timedelta = LIFE
) -> tuple[AgentKey, str]:
    """A successor with the same rights. The old key works until `overlap` is over, so that no call fails meanwhile."""
    with transaction.atomic():
        row, key = issue(old.name, old.profile, old.scopes, now=now, life=life, test=old.prefix.startswith("mp_test_"))
        old.expires_at = min(old.expires_at, now + overlap)
        old.save(update_fields=["expires_at"])
    return row, key


def revoke(key: AgentKey, *, now: datetime) -> None:
    """Dead for this process at once, for every other within a second: so long a key is believed without asking."""
    if key.revoked_at is None:
        log.info("key_revoked", key=key.pk)
        key.revoked_at = now
        key.save(update_fields=["revoked_at"])


# --- a call -----------------------------------------------------------------------------------------------------------

# One round trip: find the key, count calls for it and for all, touch the time of last use once a minute. Only a live key
# counts. Everybody takes their own key's row before the common one, so no two of them wait for each other in a circle.
CALL = """
WITH held AS (
    SELECT * FROM agent_bridge_agentkey WHERE {which}
), live AS (
    SELECT id FROM held WHERE revoked_at IS NULL AND expires_at > %(now)s
), used AS (
    UPDATE agent_bridge_agentkey AS k SET last_used_at = %(now)s FROM live
    WHERE k.id = live.id AND (k.last_used_at IS NULL OR k.last_used_at <= %(minute_ago)s)
), counted AS (
    INSERT INTO agent_bridge_callwindow AS w (name, started_at, calls)
    SELECT 'key:' || id, %(now)s, %(want)s::integer FROM live UNION ALL SELECT 'whole', %(now)s, %(want)s::integer FROM live
    ON CONFLICT (name) DO UPDATE SET
        calls = excluded.calls + CASE
            WHEN w.started_at <= %(minute_ago)s THEN 0
            WHEN w.started_at = CASE w.name WHEN 'whole' THEN %(whole_since)s ELSE %(own_since)s END::timestamptz
                THEN greatest(0, w.calls - %(unused)s::integer)
            ELSE w.calls END,
        started_at = CASE WHEN w.started_at <= %(minute_ago)s THEN excluded.started_at ELSE w.started_at END
    RETURNING name, started_at, calls
)
SELECT held.*, own.calls AS own_calls, own.started_at AS own_since,
    whole.calls AS all_calls, whole.started_at AS all_since
FROM held
LEFT JOIN counted AS own ON own.name <> 'whole'
LEFT JOIN counted AS whole ON whole.name = 'whole'
"""
BY_KEY = CALL.format(which="prefix = %(prefix)s AND digest = ANY(%(digests)s)")
BY_ID = CALL.format(which="id = %(id)s")
MINUTE = timedelta(minutes=1)


def grant(authorization: str, *, now: datetime) -> Grant:
    """What the Authorization header entitles to, counted as one call. Raises NotAuthenticated or TooManyCalls."""
    scheme, _, shown = authorization.partition(" ")
    shown = shown.strip()
    if scheme.lower() != "bearer" or not shown:
        raise NotAuthenticated("key_missing")
    if shown.startswith(SESSION):
        return _of_token(shown, now)
    if not well_formed(shown):
        raise NotAuthenticated("key_malformed")
    digests = [digest(shown, pepper) for pepper in peppers(settings.AGENT_KEY_PEPPER).values()]
    key = _counted(tuple(digests), BY_KEY, now, prefix=prefix(shown), digests=digests)
    return Grant(key, key.profile, key.name, frozenset(key.scopes))


def _of_token(token: str, now: datetime) -> Grant:
    try:
        told = _unsigned(token, settings.SECRET_KEY)
    except BadSignature:
        raise NotAuthenticated("key_unknown") from None
    if told["until"] <= now.timestamp():
        raise NotAuthenticated("session_expired")
    key = _counted(told["key"], BY_ID, now, id=told["key"])
    scopes = frozenset(told["scopes"]).intersection(key.scopes)
    return Grant(key, key.profile, key.name, scopes, store.Subject(told["subject"], key.profile), told["session"])


@lru_cache(maxsize=1024)
def _unsigned(token: str, secret: str) -> Mapping[str, Any]:
    told: dict[str, Any] = Signer(key=secret, salt="agent_bridge.session").unsign_object(token.removeprefix(SESSION))
    return MappingProxyType(told)


def _counted(name: object, sql: str, now: datetime, **which: Any) -> AgentKey:
    """The live key that `which` names, with one call of its allowance used. Who it is was asked half a second ago at most."""

    def ask(question: Question) -> Answer:
        asked = {"now": now, "minute_ago": now - MINUTE, **asdict(question)}
        key = next(iter(AgentKey.objects.raw(sql, which | asked)), None)
        if key is None:
            raise NotAuthenticated("key_unknown")
        if key.revoked_at is not None:
            raise NotAuthenticated("key_revoked")
        if key.expires_at <= now:
            raise NotAuthenticated("key_expired")
        counted = vars(key)
        return Answer(
            key,
            Counter(question.want, counted["own_calls"], counted["own_since"], settings.BRIDGE_CALLS_PER_KEY),
            Counter(question.want, counted["all_calls"], counted["all_since"], settings.BRIDGE_CALLS),
        )

    try:
        return allowances.of(name).call(ask, now)
    except Exhausted as error:
        raise TooManyCalls(max(1, ceil((error.since + MINUTE - now).total_seconds()))) from None


def session_token(
    key: AgentKey, subject: store.Subject, session: str, scopes: Iterable[str], *, until: datetime
) -> str:
    """A token for one customer and one session (its tag) with these of the key's scopes. Revoking the key ends it."""
    told = {
        "key": key.pk,
        "subject": subject.subject_id,
        "session": session,
        "scopes": sorted(scopes),
        "until": int(until.timestamp()),
    }
    return SESSION + Signer(salt="agent_bridge.session").sign_object(told)
