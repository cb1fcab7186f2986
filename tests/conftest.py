"""The small cast every test uses, and the fixed time they live at. Time is an argument: nothing here reads the clock."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

NOW = datetime(2026, 5, 14, 14, 0, tzinfo=UTC)


@pytest.fixture
def now() -> datetime:
    return NOW
