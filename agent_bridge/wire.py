"""The rim of the bridge: what is checked before any view and said after it. In: a request. Out: an answer, always ours.

A body is read once, up to its limit, and refused before it is parsed where its length or type is wrong. No refusal leaves as
HTML, with a cookie, or with a traceback.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from functools import wraps
from typing import Any
from urllib.parse import unquote_plus

import orjson
from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.core.signals import got_request_exception
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.request import UnreadablePostError
from django.template import loader
from django.views import defaults
from django.views.decorators.csrf import csrf_exempt
from ninja.errors import HttpError, ValidationError
from ninja.parser import Parser

from agent_bridge import problems
from agent_bridge.auth import KEY_LIKE, NotAuthenticated, TooManyCalls
from agent_bridge.problems import Problem
from agent_bridge.schemas import DEPTH_LIMIT
from memory_portal import logs, store

log = logs.get(__name__)

View = Callable[..., HttpResponse]


def guard(view: View, limit: Callable[[], int], query: Collection[str] = ()) -> View:
    """A view of the bridge with its rim. `limit` tells how many bytes a body may have, `query` names the parameters."""

    @csrf_exempt  # keys in a header, never a cookie
    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            check_address(request, query)
            read_body(request, limit())
            response = view(request, *args, **kwargs)
            if response.status_code == 405:
                raise Problem("method_not_allowed", headers={"Allow": response["Allow"]})
        except Exception as error:
            response = problems.answer(problem_of(error) or broken(request, error))
            response._has_been_logged = True  # type: ignore[attr-defined]  # Django would log the path, subject and all
        response.headers.setdefault("Cache-Control", "no-store")
        if response.status_code in (204, 304):
            del response["Content-Type"]
        return response

    return guarded


def problem_of(error: Exception) -> Problem | None:
    """What went wrong in the table's terms; None for what nobody foresaw."""
    match error:
        case Problem():
            return error
        case NotAuthenticated():
            return Problem(error.code)
        case TooManyCalls():
            return Problem("too_many_calls", headers={"Retry-After": str(error.retry_after)})
        case store.MemoryStoreError():
            return problems.of_store(error)
        case ValidationError():
            return problems.of_validation(error.errors)
        case HttpError() if isinstance(error.__cause__, Problem):  # out of the parser
            return error.__cause__
        case Http404():
            return Problem("not_found")
        case UnreadablePostError():
            return Problem("bad_length")
        case SuspiciousOperation():
            return Problem("bad_request")
        case OperationalError() | InterfaceError():
            return Problem("unavailable", headers={"Retry-After": "1"})
    return None


def broken(request: HttpRequest, error: Exception) -> Problem:
    """Log where it broke, by file and line: an exception's own words may hold a value."""
    log.error("bridge_broke", **logs.of_error(error))
    got_request_exception.send(sender=None, request=request)
    return Problem("failed")


AWAY = (OperationalError, InterfaceError)
"""What the database says when it is not there, or not now: nothing is wrong with the request."""
SOON = "5"


def away(error: BaseException | None) -> bool:
    """Whether the database's absence is behind it: Django calls a session that cannot be saved a bad request."""
    while error is not None and not isinstance(error, AWAY):
        error = error.__cause__ or error.__context__
    return error is not None


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The site's handler400: what Django refuses before any view, such as a foreign Host, is a problem under /bridge/."""
    if away(exception):
        return unavailable(request)
    if request.path_info.startswith("/bridge/"):
        return unkept(problems.answer(Problem("bad_request")))
    return defaults.bad_request(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """The site's handler500: what no view caught."""
    if away(sys.exc_info()[1]):
        return unavailable(request)
    if request.path_info.startswith("/bridge/"):
        return unkept(problems.answer(Problem("failed")))
    return unkept(defaults.server_error(request))


def unavailable(request: HttpRequest) -> HttpResponse:
    """A database that is away is a 503 that says when to come again, as a problem or as a page that asks it nothing."""
    if request.path_info.startswith("/bridge/"):
        return unkept(problems.answer(Problem("unavailable", headers={"Retry-After": SOON})))
    page = loader.get_template("503.html").render()
    return unkept(HttpResponse(page, status=503, headers={"Retry-After": SOON}))


def unkept(response: HttpResponse) -> HttpResponse:
    response["Cache-Control"] = "no-store"
    return response


# --- what comes in ----------------------------------------------------------------------------------------------------


def check_address(request: HttpRequest, query: Collection[str]) -> None:
    if settings.SECURE_SSL_REDIRECT and not request.is_secure():
        raise Problem("https_required")  # a redirect would work, and the key go in the open each time
    if not (sent := request.META.get("QUERY_STRING", "")):
        return
    if KEY_LIKE.search(unquote_plus(sent)):
        log.warning("key_in_address")
        raise Problem("key_in_query")
    for name in request.GET:
        if name not in query:
            raise problems.invalid(name[: problems.NAME_LIMIT], "extra_forbidden", problems.WORDS["extra_forbidden"])


def read_body(request: HttpRequest, limit: int) -> None:
    """Read the body once, so that nothing later reads more than `limit` bytes."""
    length = request.META.get("CONTENT_LENGTH") or ""
    if not length:
        if request.META.get("HTTP_TRANSFER_ENCODING"):
            raise Problem("length_required")
        length = "0"
    if not length.isascii() or not length.isdecimal() or len(length) > 18:
        raise Problem("bad_length")
    if int(length) > limit:
        raise Problem("too_large", more={"limit": limit})
    body = request.read(int(length)) if int(length) else b""
    if len(body) != int(length):
        raise Problem("bad_length")
    request._body = body  # Django's own place for it; Django's own limit is one for the whole site


class StrictJSON(Parser):
    """JSON objects only: declared as such, UTF-8, not too deep, no U+0000."""

    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        if request.content_type != "application/json":
            raise Problem("unsupported_media_type", headers={"Accept": "application/json"})
        try:
            parsed = orjson.loads(request.body)
        except orjson.JSONDecodeError:
            raise Problem("bad_json") from None
        if not isinstance(parsed, dict):
            raise problems.invalid("#", "object", "must be an object")
        for pointer, depth, text in walk(parsed):
            if depth > DEPTH_LIMIT:
                raise problems.invalid("#" + pointer, "too_deep", "is nested too deeply", limit=DEPTH_LIMIT)
            if "\0" in text:
                raise problems.invalid("#" + pointer, "null_character", "must not contain U+0000")
        return parsed


def walk(value: object) -> Iterator[tuple[str, int, str]]:
    """Each string of a parsed body, names included, as (pointer, depth, text), and each thing nested too deeply."""
    waiting: list[tuple[str, int, object]] = [("", 0, value)]
    while waiting:
        pointer, depth, here = waiting.pop()
        if isinstance(here, str):
            yield pointer, depth, here
        elif depth > DEPTH_LIMIT:
            yield pointer, depth, ""
        elif isinstance(here, dict):
            for name, inner in here.items():
                yield pointer, depth, name
                waiting.append((f"{pointer}/{name[: problems.NAME_LIMIT]}", depth + 1, inner))
        elif isinstance(here, list):
            waiting.extend((f"{pointer}/{index}", depth + 1, inner) for index, inner in enumerate(here))
