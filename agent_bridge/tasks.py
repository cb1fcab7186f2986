"""The tasks: each takes an id or nothing, calls one function and has its name written out. No result is kept."""

from __future__ import annotations

from django.utils import timezone

from agent_bridge import batching, ended, idempotency, imports, jobs, reading, spend, vitals, webhooks
from agent_bridge.celery import app
from memory_portal import post, sessions, store
from memory_portal.scrub import scrub


@app.task(name="agent_bridge.run_job", max_retries=2, default_retry_delay=1)  # type: ignore[untyped-decorator]  # celery has no types
def run_job(job_id: str) -> None:
    reading.answer_bell(job_id)


@app.task(name="agent_bridge.sweep")  # type: ignore[untyped-decorator]
def sweep() -> None:
    now = timezone.now()
    jobs.sweep(now)
    imports.sweep(now)
    vitals.beat(vitals.SWEEP, now)


@app.task(name="agent_bridge.batches")  # type: ignore[untyped-decorator]
def batches() -> None:
    batching.collect()
    batching.send()


@app.task(name="agent_bridge.retention")  # type: ignore[untyped-decorator]
def retention() -> None:
    now = timezone.now()
    store.sweep(now=now)
    store.reconcile(now)
    idempotency.purge(now=now)
    ended.purge(now=now)
    imports.purge(now=now)
    spend.purge(now)
    store.sweep_requests(now=now)
    sessions.forget_ended(now)
    store.tend_months(now)
    vitals.beat(vitals.RETENTION, now)


@app.task(name="agent_bridge.scrub")  # type: ignore[untyped-decorator]
def clean_files() -> None:
    scrub()


@app.task(name="agent_bridge.seal")  # type: ignore[untyped-decorator]
def seal() -> None:
    store.seal(timezone.now())


@app.task(name="agent_bridge.digests")  # type: ignore[untyped-decorator]
def digests() -> None:
    post.send_digests(timezone.now())


@app.task(name="agent_bridge.deliver")  # type: ignore[untyped-decorator]
def deliver() -> None:
    webhooks.ring_due(timezone.now())


@app.task(name="agent_bridge.deliver_webhook")  # type: ignore[untyped-decorator]
def deliver_webhook(hook_id: str) -> None:
    webhooks.deliver(hook_id)


@app.task(name="agent_bridge.run_import")  # type: ignore[untyped-decorator]
def run_import(import_id: str) -> None:
    imports.run(import_id)
