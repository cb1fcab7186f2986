"""The life of a job row: hand over, claim, end, fail, sweep, withdraw. The row is the truth, a message
only a doorbell.

In: a Subject, the agent's key and turns. Out: ExtractionJob rows; reading them is the next room's. Every step is one short
transaction whose condition is in its WHERE clause, so that any process may die between two of them.

Locks are taken in one order, the customer's row before a job's: a customer who clears everything holds the first while
the second is discarded.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from agent_bridge import spend
from agent_bridge.celery import app, lease_seconds
from agent_bridge.extraction import Extraction, ExtractionFailed, Turn
from agent_bridge.models import AgentKey, ExtractionJob, JobState
from memory_portal import logs, store
from memory_portal.enums import ActorKind, Reason

log = logs.get(__name__)

TRIES = 5
BACKOFF = timedelta(seconds=5)
LONGEST_WAIT = timedelta(minutes=15)
"""The longest a job waits for its next try, whatever the provider asks for."""
JITTER = 0.25
RING_AGAIN = timedelta(seconds=min(15.0, lease_seconds()))
"""How long the sweep trusts a doorbell it has rung."""
KEEP_PARKED = timedelta(hours=24)
WINDOWS = 6
"""A chatty session runs after this many debounce windows at the latest."""
TURNS_LIMIT = 200
"""Turns that may join in one job; the next one starts another."""

OPEN = (JobState.QUEUED, JobState.RUNNING)
Clock = Callable[[], datetime]


def lease() -> timedelta:
    """How long a claim holds: longer than the longest run that Celery lets live."""
    return timedelta(seconds=lease_seconds())


# --- handing over -----------------------------------------------------------------------------------------------------


def submit(
    subject: store.Subject,
    key: AgentKey,
    turns: Sequence[Turn],
    *,
    session_id: str,
    now: datetime,
    debounce: timedelta | None = None,
) -> ExtractionJob:
    """Keep the turns in a row that survives everything, and ring the bell once it is committed.

    Turns of one session join the job that still waits. Raises MemoryDisabled, or MemoryWriteRejected when the customer
    does not want this agent or anybody to learn; then nothing is kept.
    """
    if not store.current_policy().memory:
        raise store.MemoryDisabled
    if debounce is None:
        debounce = timedelta(seconds=settings.EXTRACTION_DEBOUNCE)
    tag = store.session_tag(session_id) if session_id else ""
    said = [_packed(turn) for turn in turns]
    with transaction.atomic():
        customer = store.find(subject)
        if customer is None:  # A write of nothing makes the customer, once, whoever else tries.
            store.submit(subject, [], store.Actor(ActorKind.AGENT, str(key.pk), key.name), now=now)
            customer = store.find(subject)
        if customer is None:
            raise store.NotFound
        if reason := unwanted(customer, key.name):
            raise store.MemoryWriteRejected(reason)
        job = _joined(customer.pk, customer.purge_generation, key, tag, said, now, debounce)
        if job is None:
            job = ExtractionJob.objects.create(
                customer=customer,
                key=key,
                agent=key.name,
                profile=subject.profile,
                source_session_id=tag,
                turns=said,
                generation=customer.purge_generation,
                run_after=now + debounce,
                lease_until=None if debounce else now + RING_AGAIN,
                created_at=now,
            )
        if job.run_after <= now:
            transaction.on_commit(partial(ring, job.pk), robust=True)
    log.info("job_queued", job=job.pk, turns=len(said))
    return job


def unwanted(customer: Any, agent: str) -> Reason | None:
    """Why this customer has nothing read, as the switches stand; asked at hand-over and again before reading."""
    if customer.learning_paused_at is not None:
        return Reason.LEARNING_PAUSED
    if agent in customer.no_learn_agents:
        return Reason.AGENT_OFF
    kept = {name for name, category in store.current_policy().categories.items() if category.kept}
    if not kept - set(customer.no_learn_categories):
        return Reason.CATEGORY_OFF
    return None


def _joined(
    customer_id: int,
    generation: int,
    key: AgentKey,
    tag: str,
    said: list[dict[str, str]],
    now: datetime,
    debounce: timedelta,
) -> ExtractionJob | None:
    """The session's job that nobody has begun, with these turns added; None where there is none or it is full."""
    if not tag or not debounce:
        return None
    waiting = ExtractionJob.objects.select_for_update().filter(
        customer=customer_id,
        key=key,
        source_session_id=tag,
        generation=generation,
        state=JobState.QUEUED,
        attempts=0,
        run_after__gt=now,
    )
    job = waiting.order_by("-created_at").first()
    if job is None:
        return None
    turns = [*job.turns, *(turn for turn in said if turn not in job.turns)]
    if len(turns) > TURNS_LIMIT:
        return None
    job.turns = turns
    job.run_after = min(now + debounce, job.created_at + WINDOWS * debounce)
    # Only these: the state belongs to whoever claims.
    job.save(update_fields=["turns", "run_after"])
    return job


def of(key: AgentKey, job_id: UUID | str) -> ExtractionJob | None:
    """The agent's own job; None for another's and for an id that never was."""
    try:
        with store.everyone("a job is asked for by its own id and key"):
            return ExtractionJob.objects.filter(key=key, pk=job_id).first()
    except (ValidationError, ValueError):
        return None


def ring(job_id: UUID) -> None:
    """Tell a worker that this job is due. A broker that is gone costs nothing but time: the sweep rings again."""
    if settings.MESSAGE_BATCHES:
        return  # It is due for the next batch.
    try:
        app.send_task("agent_bridge.run_job", args=[str(job_id)], retry=False, expires=4 * RING_AGAIN.total_seconds())
    except Exception as error:  # every transport has its own
        log.warning("job_no_doorbell", job=job_id, **logs.of_error(error))


def _packed(turn: Turn) -> dict[str, str]:
    """A turn as the row holds it, without the two kinds of character that PostgreSQL's JSON cannot hold."""
    text = turn.text.replace("\x00", "").encode("utf-8", "ignore").decode()
    return {"role": turn.role, "text": text, "said_at": turn.said_at.isoformat()}


def turns_of(job: ExtractionJob) -> tuple[Turn, ...]:
    return tuple(Turn(said["role"], said["text"], datetime.fromisoformat(said["said_at"])) for said in job.turns)


# --- claiming, ending, failing ----------------------------------------------------------------------------------------


def due(now: datetime) -> QuerySet[ExtractionJob]:
    """What could be claimed now, oldest first. A customer's conversations are read one after the other, in their order:
    a request to forget must not overtake the conversation that it is about.
    """
    earlier = ExtractionJob.objects.filter(
        Q(created_at__lt=OuterRef("created_at")) | Q(created_at=OuterRef("created_at"), pk__lt=OuterRef("pk")),
        customer=OuterRef("customer"),
        state__in=OPEN,
    )
    waiting = Q(state=JobState.QUEUED, run_after__lte=now)
    abandoned = Q(state=JobState.RUNNING, lease_until__lte=now)
    return ExtractionJob.objects.filter(waiting | abandoned, ~Exists(earlier), attempts__lt=TRIES).order_by(
        "created_at", "pk"
    )


def left_behind(now: datetime) -> UUID | None:
    """The oldest job that a death or a failure interrupted and that is due again."""
    begun = due(now).filter(state__in=OPEN, attempts__gt=0)
    return begun.values_list("pk", flat=True).first()


def claim(job_id: UUID | str, now: datetime) -> ExtractionJob | None:
    """Take the job for one lease. Of any number of workers that ask, one gets it; its `attempts` is the fence."""
    with transaction.atomic():
        taken = due(now).filter(pk=job_id).order_by()
        fields = {"state": JobState.RUNNING, "lease_until": now + lease(), "batch": "", "reserved_tokens": 0}
        if not taken.update(**fields, attempts=F("attempts") + 1):
            return None
        return ExtractionJob.objects.select_related("customer").get(pk=job_id)


def hand_to_batch(job: ExtractionJob, batch: str, reserved: int, until: datetime) -> bool:
    """Keep the claim until the batch must have answered. It stays the same try, with the same fence."""
    return bool(_mine(job).update(batch=batch, reserved_tokens=reserved, lease_until=until))


def release(job: ExtractionJob) -> bool:
    """Take the job's reservation off it; only one of those who try succeeds, and puts the true spend in its place."""
    return bool(
        _mine(job).filter(reserved_tokens=job.reserved_tokens).exclude(reserved_tokens=0).update(reserved_tokens=0)
    )


def _mine(job: ExtractionJob) -> QuerySet[ExtractionJob]:
    """The row while this try still holds it: a slower worker, whose lease was given to another, finds nothing here."""
    return ExtractionJob.objects.filter(pk=job.pk, state=JobState.RUNNING, attempts=job.attempts)


def state_of(job: ExtractionJob) -> str:
    return ExtractionJob.objects.filter(pk=job.pk).values_list("state", flat=True).first() or JobState.DISCARDED


def _ended(state: JobState, outcome: str, now: datetime) -> dict[str, Any]:
    return {"state": state, "outcome": outcome, "finished_at": now, "lease_until": None, "turns": []}


def bill(job: ExtractionJob, extraction: Extraction) -> dict[str, Any]:
    """Tokens add up over the tries: each of them was paid for."""
    paid = spend.cost(extraction.input_tokens, extraction.output_tokens, batched=bool(job.batch))
    return {
        "cost": job.cost + paid,
        "extractor": extraction.extractor,
        "prompt_version": extraction.prompt_version,
        "input_tokens": job.input_tokens + extraction.input_tokens,
        "output_tokens": job.output_tokens + extraction.output_tokens,
    }


def end(job: ExtractionJob, state: JobState, outcome: str, now: datetime, **fields: Any) -> bool:
    """Close the row, wipe its words; False when another worker or the customer took the job away meanwhile."""
    return bool(_mine(job).update(**_ended(state, outcome, now), **fields))


def fail(
    job: ExtractionJob,
    failure: ExtractionFailed,
    now: datetime,
    dice: random.Random,
    extraction: Extraction | None = None,
) -> str:
    """Send the job back to wait, or park it when there is no use in trying again. The wait is in the row."""
    paid = bill(job, extraction) if extraction else {}
    if not failure.transient or job.attempts >= TRIES:
        parked = {"state": JobState.PARKED, "outcome": failure.code, "finished_at": now, "lease_until": None}
        log.warning("job_parked", job=job.pk, code=failure.code, attempt=job.attempts)
        return JobState.PARKED if _mine(job).update(**parked, **paid) else state_of(job)
    again = now + wait(job.attempts, failure.retry_after, dice)
    queued = {"state": JobState.QUEUED, "outcome": failure.code, "run_after": again, "lease_until": None}
    log.info("job_retried", job=job.pk, code=failure.code, attempt=job.attempts)
    return JobState.QUEUED if _mine(job).update(**queued, **paid) else state_of(job)


def postpone(job: ExtractionJob, code: str, now: datetime) -> str:
    """Let the job wait for the next day's budget, and with it the due ones that would meet the same cap one by one.

    It was no try: `attempts` goes back to what it was. The fence holds, for who holds the number gives it up here.
    """
    held = {"state": JobState.QUEUED, "outcome": code, "run_after": spend.next_day(now), "lease_until": None}
    if not _mine(job).update(**held, attempts=F("attempts") - 1):
        return state_of(job)
    others = ExtractionJob.objects.filter(state=JobState.QUEUED, run_after__lte=now)
    if code == spend.CUSTOMER_SPENT:
        others = others.filter(customer=job.customer_id)
    with transaction.atomic():  # Skipping what is locked: two workers may be at this.
        waiting = list(others.select_for_update(skip_locked=True).values_list("pk", flat=True))
        ExtractionJob.objects.filter(pk__in=waiting).update(**held)
    log.warning("job_postponed", job=job.pk, others=len(waiting), code=code)
    return JobState.QUEUED


def wait(attempts: int, retry_after: float | None, dice: random.Random) -> timedelta:
    """Doubling from BACKOFF, at least what the provider asked for, at most LONGEST_WAIT; the jitter only ever adds."""
    own = BACKOFF * float(2 ** (attempts - 1))
    asked = timedelta(seconds=min(retry_after, LONGEST_WAIT.total_seconds())) if retry_after else timedelta()
    return min(max(own, asked) * (1 + JITTER * dice.random()), LONGEST_WAIT)


# --- sweeping ---------------------------------------------------------------------------------------------------------


def sweep(now: datetime, *, batch: int = 100, ring_bells: bool = True) -> dict[str, int]:
    """Pick up what a death left behind and ring for what is due. Touches no row that somebody else is working on."""
    lost = ExtractionJob.objects.filter(state=JobState.RUNNING, lease_until__lte=now)
    parked = lost.filter(attempts__gte=TRIES).update(
        state=JobState.PARKED, outcome="lease_lost", finished_at=now, lease_until=None
    )
    requeued = lost.update(state=JobState.QUEUED, outcome="lease_lost", run_after=now, lease_until=None)
    wiped = (
        ExtractionJob.objects.filter(state=JobState.PARKED, finished_at__lte=now - KEEP_PARKED)
        .exclude(turns=[])
        .update(turns=[])
    )
    rung = len(_ring_due(now, batch)) if ring_bells else 0
    return {"rung": rung, "requeued": requeued, "parked": parked, "wiped": wiped}


def _ring_due(now: datetime, batch: int) -> list[UUID]:
    """Ring for due rows nobody was told of lately. On a waiting row `lease_until` says until when a ring is trusted."""
    with transaction.atomic():
        quiet = due(now).filter(Q(lease_until=None) | Q(lease_until__lte=now), state=JobState.QUEUED)
        ids = list(quiet.select_for_update(skip_locked=True, of=("self",)).values_list("pk", flat=True)[:batch])
        ExtractionJob.objects.filter(pk__in=ids).update(lease_until=now + RING_AGAIN)
        for job_id in ids:
            transaction.on_commit(partial(ring, job_id), robust=True)
    return ids


# --- what staff do ----------------------------------------------------------------------------------------------------


def retry(job: ExtractionJob, now: datetime) -> bool:
    """Give a parked job another five tries, as long as its words are still there."""
    parked = ExtractionJob.objects.filter(pk=job.pk, state=JobState.PARKED).exclude(turns=[])
    changed = parked.update(state=JobState.QUEUED, attempts=0, run_after=now, finished_at=None, lease_until=None)
    if changed:
        transaction.on_commit(partial(ring, job.pk), robust=True)
    return bool(changed)


def drop(job: ExtractionJob, now: datetime) -> bool:
    """Discard a job that has not ended well, and wipe its words."""
    unfinished = ExtractionJob.objects.filter(pk=job.pk, state__in=(*OPEN, JobState.PARKED))
    return bool(unfinished.update(**_ended(JobState.DISCARDED, "dropped", now)))


# --- what the customer takes back -------------------------------------------------------------------------------------


def on_withdrawn(
    sender: object, *, customer_id: int, what: str, texts: Iterable[str], now: datetime, **kwargs: Any
) -> int:
    """Receiver of the store's `withdrawn`, in the customer's own transaction. Returns how many jobs were discarded."""
    jobs = ExtractionJob.objects.filter(customer=customer_id)
    if what != "forgotten":
        return jobs.filter(state__in=(*OPEN, JobState.PARKED)).update(**_ended(JobState.DISCARDED, what, now))
    said = [text for text in texts if text]
    waiting = list(jobs.exclude(turns=[]).select_for_update()) if said else []
    needles = [_needle(text) for text in said] if waiting else []
    for job in waiting:
        blanked = [turn | {"text": _blanked(turn["text"], needles)} for turn in job.turns]
        if blanked != job.turns:
            job.turns = blanked
            job.save(update_fields=["turns"])
    if needles:
        re.purge()  # `re` keeps the patterns it compiled, and these are the words that were forgotten
    return 0


@dataclass(frozen=True, slots=True)
class _Needle:
    folded: str
    pattern: re.Pattern[str]


def _needle(text: str) -> _Needle:
    """Finds the text whatever spaces and line breaks stood in it, as whole words where its script has words."""
    inner = r"\s+".join(re.escape(word) for word in text.split())
    before = r"(?<!\w)" if re.match(r"[a-zA-Z0-9\u00c0-\u024f]", text) else ""
    after = r"(?!\w)" if re.search(r"[a-zA-Z0-9\u00c0-\u024f]$", text) else ""
    return _Needle(store.fold(text), re.compile(f"{before}{inner}{after}", re.IGNORECASE))


def _blanked(text: str, needles: Iterable[_Needle]) -> str:
    for needle in needles:
        text, found = needle.pattern.subn("…", text)
        if not found and len(needle.folded) > 5 and needle.folded in store.fold(text):
            return "…"  # It stands there in another spelling: the whole turn goes.
    return text
