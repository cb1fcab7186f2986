"""Every way the bridge says no. In: a code, an error of the store or what pydantic found. Out: problem+json (RFC 9457).

One table holds each code's status, title and meaning. A problem names fields, limits and reason codes; it never repeats a
value, a quote, a subject or a path. Imports the store's door only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.http import HttpResponse

from memory_portal import store
from memory_portal.enums import Reason

TYPES = "/bridge/v1/docs#"
MEDIA_TYPE = "application/problem+json"
NAME_LIMIT = 64


class Kind(NamedTuple):
    status: int
    title: str
    detail: str


KINDS: Mapping[str, Kind] = {
    # 400: it cannot be read at all
    "bad_json": Kind(400, "The body is not JSON.", "Send one JSON object, encoded as UTF-8."),
    "bad_length": Kind(
        400, "The length of the body is wrong.", "Content-Length must be the number of bytes that follow."
    ),
    "bad_request": Kind(400, "The request cannot be read.", "Its address or its headers are not as they should be."),
    "key_in_query": Kind(
        400,
        "A key stands in the address.",
        "Addresses end up in logs. Send the key in the Authorization header, and replace the one you sent.",
    ),
    "https_required": Kind(
        400,
        "This wants https.",
        "The key you sent crossed the network in the open: replace it, and call the https address.",
    ),
    # 401, 403: who asks
    "key_missing": Kind(401, "A key is needed.", "Send `Authorization: Bearer` and your agent key."),
    "key_malformed": Kind(401, "That is not a whole key.", "Its checksum is wrong: a sign is missing or mistyped."),
    "key_unknown": Kind(401, "Nobody knows this key.", "It is well formed, and was not issued here."),
    "key_revoked": Kind(401, "This key was revoked.", "Ask for a new one."),
    "key_expired": Kind(401, "This key has expired.", "Ask for a new one, and rotate it before its end."),
    "session_expired": Kind(401, "This session token has expired.", "Open a new session with your key."),
    "scope_missing": Kind(
        403, "This key may not do that.", "`scopes` lists what would allow it; any one of them does."
    ),
    "subject_bound": Kind(403, "This session token is for one customer.", "Open another session for another customer."),
    "session_needed": Kind(
        403,
        "This takes a session token.",
        "A key names no customer. Open a session for one customer with `POST sessions` and send its token.",
    ),
    "key_needed": Kind(403, "This takes a key.", "A session token is for one customer."),
    # 404, 405, 410: what is asked for
    "not_found": Kind(404, "There is no such thing here.", "It never was, it is gone, or it is not yours."),
    "method_not_allowed": Kind(405, "This address takes other methods.", "The Allow header lists them."),
    "cursor_lost": Kind(
        410,
        "The place in the feed is lost.",
        "The database was moved to another server. Read anew what you hold, and follow the feed from `now`.",
    ),
    "gone": Kind(410, "It was done, and what it made is gone since.", "Nothing was written again."),
    # 409, 412, 428: what stands in the way now
    "refused": Kind(409, "It cannot be remembered as things stand.", "`reason` says why. Nothing was written."),
    "email_taken": Kind(409, "This e-mail address cannot be used.", "It is another customer's. Nothing was changed."),
    "idempotency_in_flight": Kind(409, "The same request is being worked on.", "Send it again in a second."),
    "changed_meanwhile": Kind(412, "The fact is not at that version.", "Read it again, then decide again."),
    "precondition_required": Kind(
        428, "A fact of that name exists.", "Send If-Match with the version you read, so that nobody's change is lost."
    ),
    # 411, 413, 415: how it is sent
    "length_required": Kind(411, "The length of the body is needed.", "Send Content-Length."),
    "too_large": Kind(413, "The body is too large.", "`limit` is the most it may have, in bytes."),
    "unsupported_media_type": Kind(415, "The body is not declared as JSON.", "Send Content-Type: application/json."),
    # 422: what it says
    "invalid": Kind(
        422, "Something in the request cannot be used.", "`errors` names each field and the limit it broke."
    ),
    "rejected": Kind(422, "This is never remembered.", "`reason` says why. Nothing was written."),
    "idempotency_mismatch": Kind(
        422, "This Idempotency-Key was used for another request.", "Use a new key for a new request."
    ),
    # 429, 500, 503: not now
    "too_many_calls": Kind(429, "Too many calls.", "Retry-After says when to go on, in seconds."),
    "failed": Kind(
        500, "Something broke on our side.", "Nothing was half written. Try again, and tell us if it stays."
    ),
    "memory_disabled": Kind(
        503, "Memory is switched off here.", "Nothing is read and nothing is stored. Answer the customer without it."
    ),
    "unavailable": Kind(503, "The memory cannot be reached right now.", "Answer without it and try again later."),
}

NEVER_KEPT = frozenset(
    {
        Reason.EMPTY, Reason.TOO_LONG, Reason.BAD_KEY, Reason.UNKNOWN_CATEGORY, Reason.KEY_NOT_ALLOWED,
        Reason.BLOCKED_PATTERN, Reason.NEVER_WORD, Reason.CARD, Reason.IBAN, Reason.NATIONAL_ID, Reason.PHONE,
        Reason.EMAIL, Reason.SECRET, Reason.LINK, Reason.MARKUP, Reason.FILTER_FAILED,
    }
)  # fmt: skip
"""Reasons that lie in the words themselves: the same request never passes. All others lie in what holds right now."""


@dataclass
class Problem(Exception):
    """Raised anywhere under the bridge, answered as problem+json. `more` are members beside the standard ones."""

    code: str
    errors: Sequence[Mapping[str, object]] = ()
    more: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.code


class ProblemResponse(HttpResponse):
    """Knows its code and reason, for who counts refusals."""

    problem = ""


def answer(problem: Problem) -> HttpResponse:
    kind = KINDS[problem.code]
    body: dict[str, object] = {
        "type": TYPES + problem.code,
        "title": kind.title,
        "status": kind.status,
        "detail": kind.detail,
        "code": problem.code,
        **problem.more,
    }
    if problem.errors:
        body["errors"] = list(problem.errors)
    response = ProblemResponse(json.dumps(body, ensure_ascii=False), status=kind.status, content_type=MEDIA_TYPE)
    response.problem = "/".join(filter(None, (problem.code, str(problem.more.get("reason", "")))))
    if kind.status == 401:
        response["WWW-Authenticate"] = 'Bearer realm="memory"'
        if problem.code != "key_missing":
            response["WWW-Authenticate"] += ', error="invalid_token"'
    for name, value in problem.headers.items():
        response[name] = value
    return response


def invalid(pointer: str, code: str, detail: str, **limits: object) -> Problem:
    """One unusable field. `pointer` is a JSON pointer into the body (`#/value`), or the parameter's name."""
    return Problem("invalid", errors=[{"pointer": pointer, "code": code, "detail": detail, **limits}])


def of_reason(reason: Reason) -> Problem:
    """A refusal by the rules."""
    if reason is Reason.MEMORY_OFF:
        return Problem("memory_disabled")
    return Problem("rejected" if reason in NEVER_KEPT else "refused", more={"reason": str(reason)})


def of_store(error: store.MemoryStoreError) -> Problem:
    match error:
        case store.InvalidDraft():
            limit = {"limit": error.limit} if error.limit is not None else {}
            pointer = error.field if error.field in ("subject_id", "key") else f"#/{error.field}"
            return invalid(pointer, str(error.reason), str(error), **limit)
        case store.MemoryWriteRejected():
            return of_reason(error.reason)
        case store.Conflict():
            return Problem("changed_meanwhile")
        case store.BadCursor():
            return invalid("after", "cursor", "takes `next` of an earlier page, `now`, or nothing")
        case store.LostCursor():
            return Problem("cursor_lost")
        case store.NotFound():
            return Problem("not_found")
        case store.MemoryDisabled():
            return Problem("memory_disabled")
        case store.EmailTaken():
            return Problem("email_taken")
    return Problem("failed")


def spoken(problem: Problem) -> str:
    """The same for a model to read, in a tool's answer."""
    kind = KINDS[problem.code]
    if not problem.errors:
        return f"{kind.title} {kind.detail}"
    found = (
        f"{str(error['pointer'])[:NAME_LIMIT]} {error['detail']}"
        + (f" (limit {error['limit']})" if "limit" in error else "")
        for error in problem.errors
    )
    return f"Invalid arguments: {'; '.join(found)}."


# --- pydantic ---------------------------------------------------------------------------------------------------------

# Our own words for pydantic's error types: its messages may repeat what was sent.
WORDS: Mapping[str, str] = {
    "missing": "is required",
    "extra_forbidden": "is not a field of this request",
    "literal_error": "takes {expected}",
    "string_too_long": "is too long",
    "string_too_short": "is too short",
    "too_long": "has too many items",
    "too_short": "has too few items",
    "string_type": "must be a string",
    "list_type": "must be a list",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "uuid_parsing": "must be a UUID",
    "greater_than_equal": "is too small",
    "less_than_equal": "is too large",
    "timezone_aware": "needs a time zone",
    "model_type": "must be an object",
    "dict_type": "must be an object",
}
LIMITS = ("max_length", "min_length", "ge", "le", "limit")


def of_validation(errors: Sequence[Mapping[str, Any]], *, root: str = "body") -> Problem:
    """What pydantic found, each as a pointer, a code, our words and the limit. What lies below `root` is a JSON pointer."""
    return Problem("invalid", errors=[_told(error, root) for error in errors[:20]])


def _told(error: Mapping[str, Any], root: str) -> dict[str, object]:
    kind, context = error["type"], error.get("ctx", {})
    ours = kind.startswith("bridge_")  # raised by schemas.py with words of its own
    told: dict[str, object] = {
        "pointer": pointer(error["loc"], root),
        "code": kind.removeprefix("bridge_"),
        "detail": error["msg"] if ours else WORDS.get(kind, "cannot be used").format_map(context),
    }
    limit = next((context[name] for name in LIMITS if name in context), None)
    return told | ({"limit": limit} if isinstance(limit, int) else {})


def pointer(location: Sequence[str | int], root: str) -> str:
    """RFC 6901 in a URI fragment for the body; the bare name for what stands in path, query or headers.

    A name that the caller made up is cut: it is there to be found again, not to be carried.
    """
    source, *parts = location
    steps = [str(part)[:NAME_LIMIT] for part in parts if not str(part).startswith("union:")]
    if source != root:
        return ".".join(steps[-1:]) or str(source)
    return "#" + "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in steps[1:])
