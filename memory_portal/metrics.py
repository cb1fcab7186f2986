"""What is counted of requests and tasks, and the page that tells it to Prometheus. Labels are names of routes, codes and states.

Each process counts for itself; with PROMETHEUS_MULTIPROC_DIR the processes of one machine share a directory and any of them tells
the counts of all. What the database knows better (queues, lags, spend) is asked of it when the page is read: see METRICS_FROM.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable, Iterable, Iterator

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.utils.module_loading import import_string
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

REQUESTS = Counter("portal_requests", "Answers, by route, method and status.", ["route", "method", "status"])
SECONDS = Histogram(
    "portal_request_seconds",
    "Time to an answer, by route.",
    ["route"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
PROBLEMS = Counter("portal_bridge_problems", "Refusals to agents, by code and reason.", ["problem"])
TASKS = Counter("portal_tasks", "Tasks of the worker, by name and how they ended.", ["task", "ended"])
TASK_SECONDS = Histogram(
    "portal_task_seconds", "Time of a task, by name.", ["task"], buckets=(0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300)
)

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
LOOPBACK = frozenset({"127.0.0.1", "::1"})

Gauge = tuple[str, str, str, Iterable[tuple[str, float]]]
"""A name, what it says, the name of its one label (or none), and a value for each label."""


def answered(route: str, method: str, status: int, seconds: float, problem: str) -> None:
    REQUESTS.labels(route, method if method in METHODS else "OTHER", status).inc()
    SECONDS.labels(route).observe(seconds)
    if problem:
        PROBLEMS.labels(problem).inc()


def task_ended(task: str, ended: str, seconds: float) -> None:
    TASKS.labels(task, ended).inc()
    TASK_SECONDS.labels(task).observe(seconds)


class FromTheDatabase(Collector):
    """Asked at each reading. A database that is away is told as such, and the counts go out all the same."""

    def collect(self) -> Iterator[Metric]:
        up = 1.0
        for path in settings.METRICS_FROM:
            ask: Callable[[], Iterable[Gauge]] = import_string(path)
            try:
                for name, says, label, values in ask():
                    family = GaugeMetricFamily(name, says, labels=[label] if label else [])
                    for value_of, value in values:
                        family.add_metric([value_of] if label else [], value)
                    yield family
            except DatabaseError:
                up = 0.0
        yield GaugeMetricFamily("portal_database_up", "Whether the database answered just now.", value=up)


def page() -> bytes:
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        counts: CollectorRegistry = CollectorRegistry()
        MultiProcessCollector(counts)  # type: ignore[no-untyped-call]  # registers itself
    else:
        counts = REGISTRY
    now: CollectorRegistry = CollectorRegistry()
    now.register(FromTheDatabase())
    return generate_latest(counts) + generate_latest(now)


def allowed(request: HttpRequest) -> bool:
    """By METRICS_TOKEN. Without one, this machine alone, and only in development: behind a proxy everybody comes from here."""
    if token := settings.METRICS_TOKEN:
        return hmac.compare_digest(request.headers.get("Authorization", "").encode(), f"Bearer {token}".encode())
    return not settings.PRODUCTION and request.META.get("REMOTE_ADDR") in LOOPBACK


def metrics(request: HttpRequest) -> HttpResponse:
    if not allowed(request):
        return HttpResponse(status=404)
    return HttpResponse(page(), content_type=CONTENT_TYPE_LATEST)
