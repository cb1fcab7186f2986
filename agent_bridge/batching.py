"""Reading by batches (MESSAGE_BATCHES=1): waiting jobs go to the provider together, and are settled when it has answered.

In: the time. Out: rows, as `reading` leaves them. A job in a batch keeps its claim: `running`, a long lease, `attempts` as the
fence. The row of a batch stays until the provider holds nothing of it any more.
"""

from __future__ import annotations

import random
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from agent_bridge import jobs, reading, spend
from agent_bridge.extraction import Extraction, ExtractionFailed
from agent_bridge.extraction.batches import LOST, Batches
from agent_bridge.extraction.claude import Claude
from agent_bridge.models import ExtractionJob, JobState, MessageBatch
from agent_bridge.reading import Clock
from memory_portal import logs

log = logs.get(__name__)

LEASE = timedelta(hours=25)
"""A batch has expired after 24 hours; whoever has not heard of its jobs by then sends them again."""
AT_ONCE = 200
"""Conversations in one batch: all are claimed before it is sent, and the first claim must still hold by then."""


def name_of(job: ExtractionJob) -> str:
    """What the provider is told instead of a customer: the job and the try, so that an old answer fits no later try."""
    return f"{job.pk.hex}-{job.attempts}"


def send(*, clock: Clock = timezone.now, batches: Batches | None = None, dice: random.Random | None = None) -> int:
    """Claim what is due and hand it over as one batch. Returns how many conversations that were.

    Killed between the provider's answer and our commit, the jobs are sent again when their lease is over, and the batch nobody
    knows of expires at the provider.
    """
    batches, dice = batches or Batches(Claude.from_settings()), dice or random.Random()  # noqa: S311  # jitter
    taken: dict[str, tuple[ExtractionJob, reading.Prepared]] = {}
    for job_id in list(jobs.due(clock()).values_list("pk", flat=True)[:AT_ONCE]):
        if job := jobs.claim(job_id, clock()):
            _prepare(job, taken, batches, clock, dice)
    if not taken:
        return 0
    sent = batches.send({name: asked.request for name, (_, asked) in taken.items()})
    if isinstance(sent, ExtractionFailed):
        for job, asked in taken.values():
            spend.settle(job.customer_id, asked.reserved, 0, spend.day_of(asked.request.now))
            # Whatever is wrong with the whole, no single job is to blame.
            jobs.fail(job, ExtractionFailed(sent.code, sent.retry_after), clock(), dice)
        return 0
    with transaction.atomic():
        MessageBatch.objects.create(pk=sent, created_at=clock())
        for job, asked in taken.values():
            jobs.hand_to_batch(job, sent, asked.reserved, clock() + LEASE)
    log.info("batch_sent", batch=sent, conversations=len(taken))
    return len(taken)


def _prepare(
    job: ExtractionJob,
    taken: dict[str, tuple[ExtractionJob, reading.Prepared]],
    batches: Batches,
    clock: Clock,
    dice: random.Random,
) -> None:
    def step() -> str:
        asked = reading.prepare(job, batches.claude, clock())
        if isinstance(asked, str):
            return asked
        taken[name_of(job)] = job, asked
        return JobState.RUNNING

    reading.safely(job, clock, dice, step)


def collect(*, clock: Clock = timezone.now, batches: Batches | None = None, dice: random.Random | None = None) -> int:
    """Settle the jobs of every batch that has ended, and have the provider drop it. Returns how many jobs were settled."""
    held = list(MessageBatch.objects.order_by("created_at"))
    if not held:
        return 0
    batches, dice = batches or Batches(Claude.from_settings()), dice or random.Random()  # noqa: S311  # jitter
    return sum(_collect(batch, batches, clock, dice) for batch in held)


def _collect(batch: MessageBatch, batches: Batches, clock: Clock, dice: random.Random) -> int:
    waiting = ExtractionJob.objects.select_related("customer").filter(batch=batch.pk, state=JobState.RUNNING)
    results = batches.results(batch.pk)
    if results is None:
        if not waiting.exists():  # Taken back by the customers, or given to another batch.
            batches.cancel(batch.pk)
        return 0
    if isinstance(results, ExtractionFailed):
        if results.code != "unknown_model":  # how a missing thing reads
            log.warning("batch_unreachable", batch=batch.pk, code=results.code)
            if waiting.exists() or clock() < batch.created_at + LEASE:
                return 0
        results = {}
    settled = 0
    for job in waiting:
        extraction = results.get(name_of(job)) or Extraction(batches.claude.model, failure=LOST)
        _settle(job, extraction, batch, clock, dice)
        settled += 1
    if left := batches.delete(batch.pk):
        log.warning("batch_not_deleted", batch=batch.pk, code=left.code)
    else:
        batch.delete()
    log.info("batch_settled", batch=batch.pk, conversations=settled)
    return settled


def _settle(job: ExtractionJob, extraction: Extraction, batch: MessageBatch, clock: Clock, dice: random.Random) -> None:
    with transaction.atomic():
        if jobs.release(job):
            tokens = reading.spent(extraction, job.reserved_tokens)
            spend.settle(job.customer_id, job.reserved_tokens, tokens, spend.day_of(batch.created_at))
    reading.safely(job, clock, dice, lambda: reading.conclude(job, extraction, clock(), dice))
