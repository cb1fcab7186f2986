"""What would grow without end does not: conversations that ended long ago go, in short batches."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from pytest_django import Settings

from agent_bridge import ended
from agent_bridge.models import ExtractionJob, JobState
from memory_portal.models import Customer
from tests.conftest import NOW

pytestmark = pytest.mark.django_db


def test_ended_conversations_go_with_the_notes_of_their_day_and_no_others(settings: Settings) -> None:
    settings.READ_MONTHS = 13
    customer = Customer.objects.create(profile="airline", subject_id="alice", created_at=NOW)
    old, fresh = NOW - timedelta(days=400), NOW - timedelta(days=390)

    def job(state: JobState, finished: object) -> ExtractionJob:
        return ExtractionJob.objects.create(
            id=uuid4(), customer=customer, agent="a", profile="airline", generation=0, run_after=old, created_at=old, state=state,
            finished_at=finished,
        )  # fmt: skip

    over = [job(state, old) for state in (JobState.DONE, JobState.PARKED, JobState.DISCARDED) for _ in range(3)]
    kept = [job(JobState.DONE, fresh), job(JobState.QUEUED, None), job(JobState.RUNNING, None)]
    assert ended.purge(now=NOW, batch=4) == len(over)
    assert set(ExtractionJob.objects.values_list("pk", flat=True)) == {row.pk for row in kept}
    assert ended.purge(now=NOW) == 0
