"""The outermost middleware: gives each request a name, and says at its end which route it took, how it ended and how long it took.

A proxy's X-Request-ID is kept where it is a UUID, and only then: a name out of a caller's mouth may hold anything. Never an
address, a header or a body. Imports logs and metrics only.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from uuid import uuid4

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from memory_portal import logs, metrics

HEADER = "X-Request-ID"
NO_ROUTE = "none"

log = logs.get(__name__)


class Watched:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        began = time.perf_counter()
        name = named(request.META.get("HTTP_X_REQUEST_ID", ""))
        logs.belongs_to_nothing()
        logs.belongs_to(request_id=name)
        try:
            response = self.get_response(request)
            response[HEADER] = name
            told(request, response, time.perf_counter() - began)
            return response
        finally:
            logs.belongs_to_nothing()


def named(offered: str) -> str:
    return offered.lower() if logs.request_name(offered.lower()) else uuid4().hex


def told(request: HttpRequest, response: HttpResponse, seconds: float) -> None:
    if getattr(response, "is_probe", False):
        return
    match = request.resolver_match
    route = (match.view_name if match else "") or NO_ROUTE
    problem = str(getattr(response, "problem", ""))
    metrics.answered(route, request.method or "", response.status_code, seconds, problem)
    if settings.LOG_REQUESTS or response.status_code >= 500:
        level = log.error if response.status_code >= 500 else log.info
        level(
            "request",
            route=route,
            method=request.method if request.method in metrics.METHODS else "OTHER",
            status=response.status_code,
            ms=round(seconds * 1000, 1),
            problem=problem,
            key=getattr(getattr(getattr(request, "auth", None), "key", None), "pk", None),
        )
