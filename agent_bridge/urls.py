"""Addresses under /bridge/. Every one of them is guarded, those that lead nowhere too."""

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.urls import URLPattern, include, path, re_path
from pydantic import BaseModel

from agent_bridge import context, mcp_server, openapi
from agent_bridge.rest import api
from agent_bridge.schemas import BODY_LIMIT, ChangesQuery, ContextQuery, PageQuery, ReportQuery
from agent_bridge.wire import guard

QUERIES: dict[str, type[BaseModel]] = {
    "read_context": ContextQuery,
    "list_facts": PageQuery,
    "list_changes": ChangesQuery,
    "read_report": ReportQuery,
}
LIMITS = {
    "hand_over_turns": "BRIDGE_TURNS_BYTES",
    "upsert_facts": "BRIDGE_TURNS_BYTES",
    "import_facts": "BRIDGE_IMPORT_BYTES",
}
"""How many bytes a body may have where it is more than BODY_LIMIT: the setting that says so."""


PLAIN = {"read_context": context.view}
"""Views without ninja, which only describes them."""


def nowhere(request: HttpRequest) -> HttpResponse:
    raise Http404


def guarded(pattern: URLPattern) -> URLPattern:
    """Ninja's pattern, its view behind the guard. A path is named after its first operation in rest.py."""
    limit = LIMITS.get(str(pattern.name))
    query = QUERIES[pattern.name].model_fields if pattern.name in QUERIES else ()
    view = PLAIN.get(str(pattern.name), pattern.callback)
    pattern.callback = guard(view, lambda: getattr(settings, limit) if limit else BODY_LIMIT, query)
    return pattern


def docs(request: HttpRequest) -> HttpResponse:
    if request.method != "GET":
        return HttpResponseNotAllowed(["GET"])
    return HttpResponse(openapi.page(api))


urlpatterns = [
    path("mcp", guard(mcp_server.view, lambda: BODY_LIMIT), name="bridge_mcp"),
    path("v1/docs", guard(docs, lambda: BODY_LIMIT), name="bridge_docs"),
    path("v1/", include(([guarded(pattern) for pattern in api.urls[0] if isinstance(pattern, URLPattern)], "bridge"))),
    re_path("", guard(nowhere, lambda: BODY_LIMIT)),
]
