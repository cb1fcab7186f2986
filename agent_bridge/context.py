"""The context read, asked on every turn: a plain view. Ninja describes it in the schema and is not in its way.

In: a request of an agent, checked by pydantic. Out: JSON or a fenced block, with an ETag; 304 without a look at a fact; a problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from pydantic import ValidationError

from agent_bridge import problems
from agent_bridge.auth import READ
from agent_bridge.exchange import (
    AgentRequest,
    KeyAuth,
    cacheable,
    end_of,
    etag,
    etags,
    holds_until,
    memory_on,
    session_tag,
    subject_of,
)
from agent_bridge.schemas import ContextQuery, ContextRequest
from agent_bridge.wire import StrictJSON
from memory_portal import store

USUAL = ContextRequest()
"""What a request without parameters asks for."""

authenticate = KeyAuth(READ)
parser = StrictJSON()


def view(request: HttpRequest, subject_id: str) -> HttpResponse:
    read = READERS.get(request.method or "")
    if read is None:
        return HttpResponseNotAllowed(READERS)
    request.auth = authenticate(request)  # type: ignore[attr-defined]  # AgentRequest's
    try:
        asked = read(request)
    except ValidationError as error:
        raise problems.of_validation(located(error, request)) from None
    return answer(request, subject_id, asked)  # type: ignore[arg-type]


def of_query(request: HttpRequest) -> ContextRequest:
    if not request.META.get("QUERY_STRING"):
        return USUAL
    return ContextRequest(**ContextQuery.model_validate(request.GET.dict()).model_dump())


def of_body(request: HttpRequest) -> ContextRequest:
    return ContextRequest.model_validate(parser.parse_body(request))


READERS: Mapping[str, Callable[[HttpRequest], ContextRequest]] = {"GET": of_query, "POST": of_body}


def located(error: ValidationError, request: HttpRequest) -> list[Mapping[str, Any]]:
    """What pydantic found, at the place where it stands in the request."""
    source = ("query",) if request.method == "GET" else ("body", "data")
    found = error.errors(include_url=False, include_input=False)
    return [{**problem, "loc": (*source, *problem["loc"])} for problem in found]


def answer(request: AgentRequest, subject_id: str, asked: ContextRequest) -> HttpResponse:
    memory_on()
    subject, now = subject_of(request, subject_id), request.now
    if offered := request.META.get("HTTP_IF_NONE_MATCH"):
        for known in etags(offered):
            until = holds_until(known)
            if until and now < until and known == etag(request, subject, asked, store.version_of(subject), until):
                return cacheable(HttpResponse(status=304), known)
    recall = store.context(
        subject,
        request.auth.actor,
        now=now,
        message=asked.message,
        session=session_tag(request, asked.session_id),
        hidden=request.auth.hidden,
    )
    if asked.format == "block":
        response = HttpResponse(store.read_out(recall, now=now), content_type="text/plain; charset=utf-8")
    else:
        told = {"always": plain(recall.always), "relevant": plain(recall.relevant), "left_out": recall.dropped}
        response = HttpResponse(orjson.dumps(told), content_type="application/json")
    return cacheable(response, etag(request, subject, asked, recall.version, end_of(recall, now)))


def plain(facts: Iterable[store.Told]) -> list[dict[str, object]]:
    """FactOut, fact by fact."""
    return [
        {
            "key": fact.key,
            "value": fact.value,
            "category": fact.category,
            "origin": fact.origin,
            "version": fact.version,
            "said_at": fact.said_at,
            "updated_at": fact.updated_at,
            "expires_at": fact.expires_at,
            "session": fact.source_session_id,
        }
        for fact in facts
    ]
