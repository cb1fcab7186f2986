"""`/healthz`, `/readyz` and `/metrics`: for those who run the site. Answered above sessions, hosts and redirects, without a cookie.

A probe of READY_CHECKS is a function that returns "ok" or a code of what is wrong; that of READY_NEEDS make the answer a 503. The
others are told and change nothing: a site whose worker or broker is away still serves, and taking it out would make it worse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.utils.module_loading import import_string

from memory_portal import logs
from memory_portal.metrics import metrics

log = logs.get(__name__)

OK = "ok"
Answers = Callable[[HttpRequest], HttpResponse]


def alive(request: HttpRequest) -> HttpResponse:
    """The process answers. Asks nobody: a database that is away is no reason to start this process anew."""
    return JsonResponse({"status": "alive"})


def ready(request: HttpRequest) -> HttpResponse:
    found = {name: ask(name, path) for name, path in settings.READY_CHECKS.items()}
    missing = [name for name in settings.READY_NEEDS if found.get(name) != OK]
    status = "unready" if missing else "ready" if set(found.values()) == {OK} else "degraded"
    response = JsonResponse({"status": status, "checks": found}, status=503 if missing else 200)
    if missing:
        response["Retry-After"] = "5"
    return response


def ask(name: str, path: str) -> str:
    check: Callable[[], str] = import_string(path)
    try:
        return check()
    except Exception as error:  # whatever it is, this check has failed and the others are asked
        log.warning("check_failed", check=name, **logs.of_error(error))
        connection.close_if_unusable_or_obsolete()
        return "unreachable" if isinstance(error, DatabaseError | OSError) else "failed"


def database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return OK


def migrations() -> str:
    """Whether this code's tables are there. A database that is ahead of it is fine: old and new code run side by side."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT app, name FROM django_migrations")
        applied = set(cursor.fetchall())
    return OK if own_migrations() <= applied else "pending"


@cache
def own_migrations() -> frozenset[tuple[str, str]]:
    """Those of this code as it was started."""
    return frozenset(MigrationLoader(None).graph.nodes)


PROBES: Mapping[str, Answers] = {"/healthz": alive, "/readyz": ready, "/metrics": metrics}


class Probes:
    """Below what sets headers, above all else: a load balancer names no host, has no session and may speak plain http."""

    def __init__(self, get_response: Answers) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        probe = PROBES.get(request.path_info)
        if probe is None:
            return self.get_response(request)
        response = probe(request) if request.method in ("GET", "HEAD") else HttpResponseNotAllowed(["GET", "HEAD"])
        response["Cache-Control"] = "no-store"
        response.is_probe = True  # type: ignore[attr-defined]  # asked every few seconds: neither counted nor logged
        return response
