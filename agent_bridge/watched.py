"""What is told of tasks: their name, their id, the request that rang for them, how they ended and how long they took.

Receivers of Celery's signals; a task's arguments, result and error text go nowhere. Imports logs and metrics only.
"""

from __future__ import annotations

import time
from typing import Any

from celery import signals

from memory_portal import logs, metrics

log = logs.get(__name__)

REQUEST = "request_id"
_began: dict[str, float] = {}


@signals.setup_logging.connect(weak=False)  # type: ignore[untyped-decorator]  # celery has no types
def leave_logging_alone(**kwargs: Any) -> None:
    """Having a receiver at all is what keeps Celery from adding handlers of its own."""


@signals.before_task_publish.connect(weak=False)  # type: ignore[untyped-decorator]
def carry_the_request(headers: dict[str, Any], **kwargs: Any) -> None:
    if name := logs.belonging().get(REQUEST):
        headers[REQUEST] = name


@signals.task_prerun.connect(weak=False)  # type: ignore[untyped-decorator]
def begin(task_id: str, task: Any, **kwargs: Any) -> None:
    logs.belongs_to_nothing()
    rang = getattr(task.request, REQUEST, None) or (task.request.headers or {}).get(REQUEST)  # by wire, or at once
    logs.belongs_to(task=task.name, task_id=task_id, request_id=rang)
    _began[task_id] = time.perf_counter()


@signals.task_failure.connect(weak=False)  # type: ignore[untyped-decorator]
def fail(task_id: str, exception: BaseException, **kwargs: Any) -> None:
    log.error("task_failed", seconds=taken(task_id), **logs.of_error(exception))


@signals.task_postrun.connect(weak=False)  # type: ignore[untyped-decorator]
def end(task_id: str, task: Any, state: str, **kwargs: Any) -> None:
    seconds = taken(task_id)
    _began.pop(task_id, None)
    metrics.task_ended(task.name, state.lower(), seconds)
    log.debug("task_ended", seconds=seconds)
    logs.belongs_to_nothing()


def taken(task_id: str) -> float:
    now = time.perf_counter()
    return round(now - _began.get(task_id, now), 3)
