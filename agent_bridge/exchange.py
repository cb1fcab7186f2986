"""What every operation starts from and ends with: the caller, the names in the path, versions and tags, the answer.

In: requests that passed the guard. Out: Grants, Subjects and keys, or problems; JSON answers and their caching headers.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja.security.base import AuthBase
from pydantic import BaseModel

from agent_bridge import problems
from agent_bridge.auth import READ, Grant, grant
from agent_bridge.idempotency import Written
from agent_bridge.problems import Problem
from agent_bridge.schemas import ContextRequest, DecisionOut, FactOut, ProblemOut
from memory_portal import store

ROUTE_WORDS = frozenset({"context", "facts", "facts:search", "facts:upsert", "purge_generation", "turns"})


class AgentRequest(HttpRequest):
    """A request whose key was accepted. `now` is the one instant at which it happens."""

    auth: Grant
    now: datetime


class KeyAuth(AuthBase):
    """An agent key in the Authorization header, with at least one of these scopes."""

    openapi_type = "http"
    openapi_scheme = "bearer"

    def __init__(self, *any_of: str) -> None:
        self.any_of = any_of
        super().__init__()

    def __call__(self, request: HttpRequest) -> Grant:
        now = timezone.now()
        allowed = grant(request.META.get("HTTP_AUTHORIZATION", ""), now=now)
        if not allowed.allows(*self.any_of):
            raise Problem("scope_missing", more={"scopes": list(self.any_of)})
        request.now = now  # type: ignore[attr-defined]  # AgentRequest's, beside ninja's own `auth`
        return allowed


def statuses(*more: int) -> dict[int, type[BaseModel]]:
    """The problems that any operation may answer, and `more`, for the schema."""
    return dict.fromkeys((400, 401, 403, 411, 413, 422, 429, 500, 503, *more), ProblemOut)


# --- the names in a path ----------------------------------------------------------------------------------------------


def subject_of(request: AgentRequest, segment: str) -> store.Subject:
    """The customer the path names, within the key's own profile: another profile's is one that does not exist."""
    named = store.Subject(meant(segment, "subject_id"), request.auth.profile)
    if request.auth.subject not in (None, named):
        raise Problem("subject_bound")
    return named


def key_of(segment: str) -> str:
    """The fact's key, normalised. A route's own word is refused: as servers decode %2F, it may end a customer's id."""
    if segment in ROUTE_WORDS:
        detail = "send this name, or a customer id with a slash, as ~ and its base64url"
        raise problems.invalid("key", "ambiguous", detail)
    return store.normalise_key(meant(segment, "key"))


def meant(segment: str, name: str) -> str:
    """What a path segment stands for: itself, or behind a `~` the base64url of any text, slashes and dots included."""
    if not segment.startswith("~"):
        return segment
    try:
        padded = segment[1:] + "=" * (-(len(segment) - 1) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise problems.invalid(name, "encoding", "after ~ comes base64url of UTF-8, without padding") from None


def session_tag(request: AgentRequest, session_id: str | None) -> str:
    """The tag of the session named in the request, or else of the one its token is bound to."""
    return store.session_tag(session_id) if session_id else request.auth.session


def memory_on() -> None:
    if not store.current_policy().memory:
        raise store.MemoryDisabled


def version_seen(request: AgentRequest) -> int | None:
    """The version the caller read, from If-Match; None when it has seen no such fact."""
    named = request.META.get("HTTP_IF_MATCH")
    if named is None:
        return None
    version = next(iter(etags(named)), "").strip('"') if "," not in named else ""
    if not version.isascii() or not version.isdecimal() or len(version) > 9:
        raise problems.invalid("If-Match", "version", 'takes one version in quotes, as the ETag gave it: "3"')
    return int(version)


# --- answers ----------------------------------------------------------------------------------------------------------


def said(model: BaseModel, status: int = 200, *, version: int | None = None) -> HttpResponse:
    response = HttpResponse(orjson.dumps(model.model_dump()), status=status, content_type="application/json")
    if version is not None:
        response["ETag"] = f'"{version}"'
    return response


def cacheable(response: HttpResponse, etag: str) -> HttpResponse:
    response["ETag"] = etag
    response["Cache-Control"] = "private, max-age=0, must-revalidate"
    response["Vary"] = "Authorization"
    return response


def etag(request: AgentRequest, subject: store.Subject, asked: ContextRequest, version: int, until: datetime) -> str:
    """Equal for equal answers, and says until when: a 304 needs no fact, and no expired fact outlives its end."""
    parts = (
        store.current_policy().fingerprint,
        subject.profile,
        subject.subject_id,
        request.auth.agent,
        *sorted(request.auth.hidden),
        asked.format,
        asked.message,
        version,
    )
    end = f"{int(until.timestamp()):x}"
    return f'"{hmac.digest(_etag_key(settings.SECRET_KEY), repr((parts, end)).encode(), "sha256").hex()[:32]}-{end}"'


@lru_cache(maxsize=2)
def _etag_key(secret: str) -> bytes:
    return hmac.digest(secret.encode(), b"agent_bridge.etag", "sha256")


def etags(header: str) -> list[str]:
    """The tags of a conditional header. What compresses on the way marks them as weak; ours mean the same either way."""
    return [tag.strip().removeprefix("W/") for tag in header.split(",")][:10]


def holds_until(etag: str) -> datetime | None:
    """The end that an ETag of ours names; None for any other. A caller who changes it only misses its own 304."""
    try:
        return datetime.fromtimestamp(int(etag.strip('"').split("-")[1], 16), tz=UTC)
    except (IndexError, ValueError, OverflowError, OSError):
        return None


def end_of(recall: store.Recall, now: datetime) -> datetime:
    """Until when an answer stays true by itself: the next midnight, as ages are told in days, or a fact's own end."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    return min(midnight, recall.until or midnight)


# --- what a write came to ---------------------------------------------------------------------------------------------


def decided(request: AgentRequest, subject: store.Subject, outcome: store.Outcome) -> Written:
    """What the store decided, as an answer. Raises the problem for a refusal."""
    reason, fact = outcome.reason, outcome.fact
    if outcome.decision == "refused" and reason:
        raise problems.of_reason(reason)
    if outcome.decision == "proposed" and reason:
        return Written(said(DecisionOut(decision="proposed", reason=str(reason)), 202), str(reason))
    if fact is None:  # forgotten
        return Written(HttpResponse(status=204))
    told = DecisionOut(decision=outcome.decision, fact=readable(request, subject, fact.key))
    status = 201 if outcome.decision == "learned" else 200
    return Written(said(told, status, version=fact.version), f"fact:{fact.id}")


def readable(request: AgentRequest, subject: store.Subject, key: str) -> FactOut | None:
    """Writing is not reading: what stands there now is told only to a key that may read it, and noted as a read."""
    if not request.auth.allows(READ):
        return None
    try:
        return FactOut.of(store.look(subject, key, request.auth.actor, now=request.now, hidden=request.auth.hidden))
    except store.NotFound:
        return None
