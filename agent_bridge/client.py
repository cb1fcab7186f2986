"""A MemoryStore of the commerce-agents contract over HTTP: what a host imports, or copies, to plug into the bridge.

In: the bridge's address and an agent key. Out: the contract's six methods, the context of a turn, turns handed over, jobs.
Imports httpx2 and the standard library: nothing of Django, nothing of this project, and all in one file, so that a host can copy
it. httpx2 rather than another, as it comes with anthropic 2.x, which an agent's host has anyway; it keeps connections, and a test
can give it a transport.

Every call may safely be sent again: reads change nothing, writes carry an Idempotency-Key. So a call that failed on the way, or
that the bridge could not answer now, is repeated within limits (`Retries`), and one that was answered is not.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import random
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, Protocol, Self, TypeVar, overload

import httpx2

log = logging.getLogger(__name__)

T = TypeVar("T")

TRAVELS_AS = {"preference": "preference", "constraint": "constraint", "context": "context", "safety": "constraint"}
"""The contract knows three categories; what it does not know travels as context."""

FACTS_AT_ONCE = 200
ROUTE_WORDS = frozenset({"context", "facts", "turns", "purge_generation"})
CODE = re.compile(r"[a-z_]{1,40}")
POINTER = re.compile(r"[#/\w.-]{1,80}")


# --- what goes wrong --------------------------------------------------------------------------------------------------


class BridgeError(Exception):
    """Root of everything this client raises. `code` is the problem's, `status` the answer's, 0 where there was none.

    No error carries a value, a subject or an address: code, reason code, field and limit are all there is.
    """

    def __init__(self, code: str, status: int = 0, reason: str = "") -> None:
        super().__init__(f"{code}: {reason}" if reason else code)
        self.code = code
        self.status = status
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Field:
    """One unusable field: where it stands (a JSON pointer into the body, or a name), why, and the limit it broke."""

    pointer: str
    code: str
    limit: int | None = None


class InvalidRequest(BridgeError, ValueError):
    """The request itself is wrong (400, 411, 413, 415, 422); `errors` names each field. The same request never works."""

    def __init__(self, code: str, status: int = 0, reason: str = "", errors: Sequence[Field] = ()) -> None:
        super().__init__(code, status, reason or ", ".join(f"{error.pointer} {error.code}" for error in errors))
        self.errors = tuple(errors)


class NotAuthenticated(BridgeError):
    """401: `code` tells a typo (`key_malformed`) from an unknown, revoked or expired key."""


class NotAllowed(BridgeError):
    """403: the key lacks the scope, or the session token is for another customer."""


class NotFound(BridgeError):
    """404: it never was, it is gone, or it is not yours to see."""


class Gone(BridgeError):
    """410: done before, and what it made was deleted since; or, as `cursor_lost`, the place in the feed of changes is."""


class Conflict(BridgeError):
    """412, 428: the fact is not at the version that was named."""


class MemoryWriteRejected(BridgeError, ValueError):
    """The rules refuse this write; `reason` says why (`card`, `learning_paused` ...). Do not retry."""


class RateLimited(BridgeError):
    """429, and the wait is longer than this client waits by itself. `retry_after` is in seconds."""

    def __init__(self, code: str, status: int = 429, reason: str = "", retry_after: float = 1.0) -> None:
        super().__init__(code, status, reason)
        self.retry_after = retry_after


class MemoryDisabled(BridgeError):
    """Memory is switched off for the whole deployment: go on without it."""


class Unavailable(BridgeError):
    """No usable answer now: `unreachable`, `timed_out`, `unreadable`, or the bridge's own trouble. Go on without memory."""


KINDS: Mapping[int, type[BridgeError]] = {
    400: InvalidRequest,
    401: NotAuthenticated,
    403: NotAllowed,
    404: NotFound,
    410: Gone,
    411: InvalidRequest,
    412: Conflict,
    413: InvalidRequest,
    415: InvalidRequest,
    422: InvalidRequest,
    428: Conflict,
}
BY_CODE: Mapping[str, type[BridgeError]] = {
    "rejected": MemoryWriteRejected,
    "refused": MemoryWriteRejected,
    "memory_disabled": MemoryDisabled,
    "idempotency_in_flight": Unavailable,
    "email_taken": Conflict,
}


def error_of(response: httpx2.Response) -> BridgeError:
    """A refusal as an error. Of the body only codes, pointers and limits are taken: a proxy's page may hold anything."""
    try:
        told = response.json()
    except ValueError:
        told = None
    problem: Mapping[str, Any] = told if isinstance(told, dict) else {}
    status, code, reason = response.status_code, _code(problem.get("code")), _code(problem.get("reason"))
    if status == 429:
        return RateLimited(code or "too_many_calls", status, retry_after=retry_after(response) or 1.0)
    kind = BY_CODE.get(code) or KINDS.get(status) or (Unavailable if status >= 500 else BridgeError)
    if kind is InvalidRequest:
        return InvalidRequest(code or f"http_{status}", status, errors=list(_fields(problem.get("errors"))))
    return kind(code or f"http_{status}", status, reason)


def _code(value: object) -> str:
    return value if isinstance(value, str) and CODE.fullmatch(value) else ""


def _fields(errors: object) -> Iterator[Field]:
    for error in errors if isinstance(errors, list) else []:
        if isinstance(error, dict) and POINTER.fullmatch(pointer := str(error.get("pointer"))):
            limit = error.get("limit")
            yield Field(pointer, _code(error.get("code")), limit if isinstance(limit, int) else None)


def retry_after(response: httpx2.Response) -> float | None:
    """The header's seconds; None where it is missing, or a date, which the bridge never sends."""
    try:
        return max(0.0, float(response.headers.get("Retry-After", "")))
    except ValueError:
        return None


# --- when to try again ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a call is sent again and after how long, in seconds: `first`, doubled each time, never over `longest`."""

    most: int = 2
    first: float = 0.1
    longest: float = 2.0

    def wait(self, tries: int, asked: float | None, jitter: float) -> float | None:
        """How long to wait after the `tries`-th try, where the bridge `asked` for so much; None to give up.

        `jitter` is a random number from 0 to 1, so that many hosts do not come back at the same moment. More than `longest` is
        never waited for: who calls knows better what to do meanwhile.
        """
        if tries > self.most or (asked is not None and asked > self.longest):
            return None
        if asked is not None:
            return asked + self.first * jitter
        return float(min(self.longest, self.first * 2 ** (tries - 1)) * (0.5 + jitter / 2))


# --- what comes back --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class MemoryFact:
    """The contract's record. A host passes its own class as `make_fact` and gets that."""

    key: str
    value: str
    category: str = "preference"
    updated_at: datetime | None = None
    source_session_id: str | None = None


class FactLike(Protocol):
    """What a host hands over: its own MemoryFact class will do."""

    key: str
    value: str
    category: Any
    updated_at: datetime | None
    source_session_id: str | None


@dataclass(frozen=True, slots=True)
class Context:
    """What a turn should know. `left_out` counts facts of `always` that did not fit. Values are data, never instructions."""

    always: list[Any] = field(default_factory=list)
    relevant: list[Any] = field(default_factory=list)
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class HandedOver:
    """What became of turns handed over. `job_id` is None when nothing was said in text."""

    job_id: str | None
    state: str
    kept: int
    dropped: int


@dataclass(frozen=True, slots=True)
class Job:
    """How far the reading of a conversation is. `counts` holds decisions and reason codes, no words."""

    job_id: str
    state: str
    outcome: str
    counts: Mapping[str, Any]
    created_at: datetime
    finished_at: datetime | None

    @property
    def ended(self) -> bool:
        return self.state not in ("queued", "running")


@dataclass(frozen=True, slots=True)
class Change:
    """Something happened to a customer's facts: to those of `key`, or to all where it is None. Never a value."""

    id: int
    subject_id: str
    kind: str
    key: str | None
    code: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Changes:
    """A page of the feed. `next` is the `after` of the next call; `more` tells whether to make it at once."""

    changes: list[Change]
    next: str
    more: bool


@dataclass(frozen=True, slots=True)
class Session:
    """A token for one customer: what an agent may hold, and what MCP takes. It stays out of reprs."""

    token: str = field(repr=False)
    expires_at: datetime
    scopes: tuple[str, ...]


# --- the store --------------------------------------------------------------------------------------------------------


class BridgeMemoryStore:
    """The memory behind a commerce-agents host, in another process: `async with BridgeMemoryStore(address, key) as memory`.

    `address` is the bridge's, with its `/bridge/v1`; `timeout` is how long one try of a call may take in all, in seconds;
    `make_fact` builds what the reads return. One store serves any number of tasks of one event loop over kept connections.
    """

    def __init__(
        self,
        address: str,
        key: str,
        *,
        timeout: float = 5.0,
        retries: Retries = Retries(),
        make_fact: Callable[..., Any] = MemoryFact,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._http = httpx2.AsyncClient(
            base_url=address,
            headers={"Authorization": f"Bearer {key}"},
            timeout=None,  # one limit for the whole try, below
            limits=httpx2.Limits(max_connections=20, keepalive_expiry=30),
            transport=transport,
        )
        self._timeout = timeout
        self._retries = retries
        self._make_fact = make_fact

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections that were kept."""
        await self._http.aclose()

    # The contract's six.

    async def get_facts(self, subject_id: str) -> list[Any]:
        """Every fact this key may read, in the order they were first written; [] for an unknown subject."""
        response = await self._call("GET", subject_path(subject_id, "facts"), params={"order": "written"})
        return _read(lambda: self._facts(response.json()["facts"]))

    async def search_facts(self, subject_id: str, query: str) -> list[Any]:
        """Facts in which any word of the query is part of "key value category"; every fact for an empty query.

        The contract's own plain search. `recall` and `context` find better.
        """
        terms = query.lower().split()
        facts = await self.get_facts(subject_id)
        told = [f"{fact.key} {fact.value} {_plain(fact.category)}".lower() for fact in facts]
        return [fact for fact, text in zip(facts, told, strict=True) if not terms or any(t in text for t in terms)]

    async def upsert_facts(self, subject_id: str, facts: Sequence[FactLike]) -> None:
        """Write by key, the last of a key winning; `updated_at` is stored as given. 200 facts make one transaction.

        Raises MemoryWriteRejected where the rules refuse a fact for its own sake, after the others are stored. What the
        customer's own will stands against is kept from being written without a word, as the contract has none for it.
        """
        rejected = ""
        body = [_written(fact) for fact in facts]
        for start in range(0, len(body), FACTS_AT_ONCE):
            response = await self._call(
                "POST",
                subject_path(subject_id, "facts:upsert"),
                body={"facts": body[start : start + FACTS_AT_ONCE]},
                once=_new_name(),
            )
            rejected = rejected or _code(_read(lambda: response.json()["rejected"]))  # noqa: B023  # called at once
        if rejected:
            raise MemoryWriteRejected("rejected", 200, rejected)

    async def delete_fact(self, subject_id: str, key: str) -> bool:
        """True when a fact was removed. A safety fact stays and the customer is asked."""
        try:
            response = await self._call("DELETE", subject_path(subject_id, "facts", key), once=_new_name())
        except NotFound:
            return False
        return response.status_code == 204

    async def clear(self, subject_id: str) -> None:
        """Remove all facts of the subject and add one to its purge generation."""
        await self._call("DELETE", subject_path(subject_id, "facts"), once=_new_name())

    async def purge_generation(self, subject_id: str) -> int:
        """How often the subject was cleared; 0 for one never seen."""
        response = await self._call("GET", subject_path(subject_id, "purge_generation"))
        return _read(lambda: int(response.json()["purge_generation"]))

    # Beyond the contract.

    @overload
    async def context(
        self, subject_id: str, message: str | None = ..., *, format: Literal["json"] = ..., session_id: str | None = ...
    ) -> Context: ...
    @overload
    async def context(
        self, subject_id: str, message: str | None = ..., *, format: Literal["block"], session_id: str | None = ...
    ) -> str: ...
    async def context(
        self,
        subject_id: str,
        message: str | None = None,
        *,
        format: Literal["json", "block"] = "json",
        session_id: str | None = None,
    ) -> Context | str:
        """What every turn should know, and with a `message` what fits it. `block` is fenced text, ready for a prompt."""
        asked = {"format": format, "message": message, "session_id": session_id}
        body = {name: value for name, value in asked.items() if value}
        response = await self._call("POST", subject_path(subject_id, "context"), body=body)
        if format == "block":
            return response.text
        return _read(lambda: self._context(response.json()))

    @overload
    async def context_or_empty(
        self,
        subject_id: str,
        message: str | None = ...,
        *,
        format: Literal["json"],
        session_id: str | None = ...,
        within: float = ...,
    ) -> Context: ...
    @overload
    async def context_or_empty(
        self,
        subject_id: str,
        message: str | None = ...,
        *,
        format: Literal["block"] = ...,
        session_id: str | None = ...,
        within: float = ...,
    ) -> str: ...
    async def context_or_empty(
        self,
        subject_id: str,
        message: str | None = None,
        *,
        format: Literal["json", "block"] = "block",
        session_id: str | None = None,
        within: float = 0.5,
    ) -> Context | str:
        """`context`, but never an error and never later than `within` seconds: then "" or an empty Context.

        For the path of a customer's turn, which must not break on memory. Why it came back empty is logged, as a code.
        """
        try:
            async with asyncio.timeout(within):
                return await self.context(subject_id, message, format=format, session_id=session_id)
        except TimeoutError:
            log.warning("a turn goes on without memory: timed_out")
        except BridgeError as error:
            log.warning("a turn goes on without memory: %s", error.code)
        except Exception as error:  # whatever it is, the customer's turn is worth more
            log.warning("a turn goes on without memory: %s", type(error).__name__)
        return "" if format == "block" else Context()

    async def recall(self, subject_id: str, topic: str, *, limit: int = 20, session_id: str | None = None) -> list[Any]:
        """Facts about a topic, the best first; often none. What a `recall_memories` tool answers with."""
        body: dict[str, Any] = {"topic": topic, "limit": limit}
        if session_id:
            body["session_id"] = session_id
        response = await self._call("POST", subject_path(subject_id, "facts:search"), body=body)
        return _read(lambda: self._facts(response.json()["facts"]))

    async def submit_turns(
        self,
        subject_id: str,
        session_id: str,
        messages: Iterable[Mapping[str, Any]],
        *,
        said_at: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> HandedOver:
        """Hand over what was said, for learning later; once this returns it cannot be lost. Not for the path of a turn.

        `messages` are the Messages API's own, content blocks as dicts or as the SDK's objects: of every block that is not text
        only its type leaves this process. Give a turn's own name as `idempotency_key`, so that a host which starts anew may
        send it again.
        """
        body: dict[str, Any] = {"session_id": session_id, "messages": [_said(message) for message in messages]}
        if said_at:
            body["said_at"] = _aware(said_at).isoformat()
        path = subject_path(subject_id, "turns")
        response = await self._call("POST", path, body=body, once=idempotency_key or _new_name())
        return _read(lambda: HandedOver(**{name: response.json()[name] for name in HandedOver.__slots__}))

    async def job(self, job_id: str) -> Job:
        """How far the job of turns handed over is. Raises NotFound for another key's."""
        response = await self._call("GET", f"jobs/{segment(job_id)}")
        return _read(lambda: _job(response.json()))

    async def changes(self, after: str = "", *, limit: int = 100, wait: int = 0) -> Changes:
        """What happened behind the cursor `after`: from the start, from `next` of an earlier page, or from "now" on.

        The bridge holds an empty answer back for up to `wait` seconds, 25 at most. Raises Gone where the cursor is lost.
        """
        params = {"after": after, "limit": str(limit), "wait": str(wait)}
        response = await self._call("GET", "changes", params=params, longer=wait)
        return _read(lambda: _changes(response.json()))

    async def open_session(
        self, subject_id: str, session_id: str, *, scopes: Sequence[str] | None = None, minutes: int = 60
    ) -> Session:
        """A token for this customer only, with these of the key's scopes: give it to an agent, and keep the key."""
        body: dict[str, Any] = {"subject_id": subject_id, "session_id": session_id, "minutes": minutes}
        if scopes is not None:
            body["scopes"] = list(scopes)
        response = await self._call("POST", "sessions", body=body)
        return _read(lambda: _session(response.json()))

    # One call.

    async def _call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        once: str | None = None,
        longer: float = 0,
    ) -> httpx2.Response:
        headers = {"Idempotency-Key": once} if once else {}
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = _json(body)
        tries = 0
        while True:
            tries += 1
            answer = await self._try(method, path, params, content, headers, self._timeout + longer)
            if isinstance(answer, httpx2.Response):
                if answer.is_success:
                    return answer
                error, asked = error_of(answer), retry_after(answer)
            else:
                error, asked = answer, None
            again = isinstance(error, Unavailable | RateLimited)
            wait = self._retries.wait(tries, asked, random.random()) if again else None  # noqa: S311  # no secret
            if wait is None:
                raise error
            await asyncio.sleep(wait)

    async def _try(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        content: bytes | None,
        headers: Mapping[str, str],
        seconds: float,
    ) -> httpx2.Response | BridgeError:
        """The answer, or why there is none; returned rather than raised, so that no error drags httpx2's and the address along."""
        try:
            async with asyncio.timeout(seconds):
                return await self._http.request(method, path, params=params, content=content, headers=headers)
        except TimeoutError:
            return Unavailable("timed_out")
        except httpx2.TransportError:
            return Unavailable("unreachable")
        except httpx2.HTTPError:
            return Unavailable("unreadable")

    def _facts(self, facts: Iterable[Mapping[str, Any]]) -> list[Any]:
        return [
            self._make_fact(
                key=fact["key"],
                value=fact["value"],
                category=TRAVELS_AS.get(fact["category"], "context"),
                updated_at=_time(fact["updated_at"]) if fact["updated_at"] else None,
                source_session_id=fact["session"] or None,
            )
            for fact in facts
        ]

    def _context(self, told: Mapping[str, Any]) -> Context:
        return Context(self._facts(told["always"]), self._facts(told["relevant"]), int(told["left_out"]))


# --- between here and the wire ----------------------------------------------------------------------------------------


def subject_path(subject_id: str, *rest: str) -> str:
    """A path below a customer. Of `rest` the last may be a fact's key, any text; what stands before are the routes' own."""
    route, *key = rest
    return "/".join(["subjects", segment(subject_id), route, *map(segment, key)])


def segment(text: str) -> str:
    """Any text as one path segment that no server or proxy reads differently: plain, or `~` and its base64url."""
    if re.fullmatch(r"[0-9A-Za-z][0-9A-Za-z_-]*", text) and text not in ROUTE_WORDS:
        return text
    encoded = text.encode("utf-8", "surrogatepass")  # half a surrogate pair is the bridge's to refuse
    return "~" + base64.urlsafe_b64encode(encoded).decode().rstrip("=")


def _written(fact: FactLike) -> dict[str, Any]:
    stamp = fact.updated_at
    return {
        "key": fact.key,
        "value": fact.value,
        "category": _plain(fact.category),
        "updated_at": _aware(stamp).isoformat() if stamp else None,
        "source_session_id": fact.source_session_id,
    }


def _said(message: Mapping[str, Any]) -> dict[str, Any]:
    told = {name: message[name] for name in ("role", "text", "content", "said_at") if message.get(name) is not None}
    if isinstance(told.get("said_at"), datetime):
        told["said_at"] = _aware(told["said_at"]).isoformat()
    if isinstance(content := told.get("content"), Iterable) and not isinstance(content, str):
        told["content"] = [_block(block) for block in content]
    return told


def _block(block: object) -> dict[str, Any]:
    """A content block, a dict or an object of the SDK: whole if it is text, or else its type alone."""
    kind, text = (
        block.get(name) if isinstance(block, Mapping) else getattr(block, name, None) for name in ("type", "text")
    )
    return {"type": kind, "text": text} if kind == "text" else {"type": kind}


def _plain(category: object) -> str:
    """A host's category may be an enum."""
    return str(getattr(category, "value", category))


def _aware(moment: datetime) -> datetime:
    """A time without a zone is UTC, as the contract has it."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _changes(told: Mapping[str, Any]) -> Changes:
    found = [
        Change(one["id"], one["subject_id"], one["kind"], one["key"], one["code"], _time(one["at"]))
        for one in told["changes"]
    ]
    return Changes(found, told["next"], told["more"])


def _session(told: Mapping[str, Any]) -> Session:
    return Session(told["token"], _time(told["expires_at"]), tuple(told["scopes"]))


def _job(told: Mapping[str, Any]) -> Job:
    finished = told["finished_at"]
    return Job(
        told["job_id"],
        told["state"],
        told["outcome"],
        told["counts"],
        _time(told["created_at"]),
        _time(finished) if finished else None,
    )


def _json(body: Mapping[str, Any]) -> bytes:
    """Raises InvalidRequest for text that is no Unicode: half a surrogate pair has no bytes."""
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    except (UnicodeEncodeError, TypeError):
        error = InvalidRequest("bad_json")
    raise error


def _read(parse: Callable[[], T]) -> T:
    """What an answer says; Unavailable where it is not what the bridge answers, without what it was."""
    try:
        return parse()
    except (ValueError, TypeError, KeyError, AttributeError):
        error = Unavailable("unreadable")
    raise error


def _new_name() -> str:
    return uuid.uuid4().hex
