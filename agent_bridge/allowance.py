"""What this process may do with a key until it asks again: whom the key is for, and how many more calls are already counted.

In: a question to the database, asked a few times a second while calls go on. Out: the key, with one more call used. Calls are
counted before they are answered, in blocks that shrink towards the limit, so that all processes together never accept more;
what is left of a block goes back with the next question. A key is believed for half a second: once revoked, it is dead
everywhere within a second.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from agent_bridge.models import AgentKey

BELIEVED = 0.5
"""Seconds from the moment the database was asked."""
LARGEST = 500
SHARE = 16
"""A block is at most this part of what is left of the limit: what a silent process holds is missing to the others."""
KEPT = 10_000
"""Keys and sessions remembered at most; those not seen for longest are forgotten first."""


@dataclass(frozen=True, slots=True)
class Counter:
    """A minute's count after a question: how many calls were taken, how many that makes, since when, and how many may be."""

    taken: int
    calls: int
    since: datetime
    limit: int

    @property
    def granted(self) -> int:
        return min(self.taken, max(0, self.limit - (self.calls - self.taken)))

    @property
    def left(self) -> int:
        return max(0, self.limit - self.calls)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the database said: the key as it stands, and the counts of the key's own calls and of everybody's."""

    key: AgentKey
    own: Counter
    whole: Counter

    @property
    def granted(self) -> int:
        return min(self.own.granted, self.whole.granted)


@dataclass(frozen=True, slots=True)
class Question:
    """How many calls to take, and how many of an earlier block to give back if that minute still runs."""

    want: int = 1
    unused: int = 0
    own_since: datetime | None = None
    whole_since: datetime | None = None


Ask = Callable[[Question], Answer]


class Exhausted(Exception):
    """No call is left. `since` is when the minute began that must pass."""

    def __init__(self, since: datetime) -> None:
        super().__init__("no call is left")
        self.since = since


@dataclass(slots=True)
class Allowance:
    """One key's, or one session's, in this process."""

    answer: Answer | None = None
    asked: float = 0.0
    used: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def call(self, ask: Ask, now: datetime) -> AgentKey:
        """The key, for one call. Raises what `ask` raises, and Exhausted."""
        with self.lock:
            if not self.holds(now):
                self.asked, question = time.monotonic(), self.question()
                self.answer = None  # whatever the question comes to, the old answer is over
                self.answer, self.used = ask(question), 0
            answer = self.answer
            assert answer is not None
            if self.used >= answer.granted:
                scarce = answer.own if answer.own.granted <= answer.whole.granted else answer.whole
                raise Exhausted(scarce.since)
            self.used += 1
            return answer.key

    def holds(self, now: datetime) -> bool:
        """Whether what was answered is still good for this call. A refusal is, too: a flood of calls is no flood of questions."""
        answer = self.answer
        if answer is None or time.monotonic() - self.asked >= BELIEVED or answer.key.expires_at <= now:
            return False
        if answer.granted == 0:
            return all(now < counter.since + timedelta(minutes=1) for counter in (answer.own, answer.whole))
        return self.used < answer.granted

    def question(self) -> Question:
        """After a block used up in time one twice as large, after any other one as large as what was used of it."""
        answer = self.answer
        if answer is None:
            return Question()
        spent = self.used >= answer.granted
        want = self.used * 2 if spent and time.monotonic() - self.asked < BELIEVED else self.used
        room = min(answer.own.left, answer.whole.left) // SHARE
        return Question(
            max(1, min(want, room, LARGEST)), answer.own.taken - self.used, answer.own.since, answer.whole.since
        )


class Allowances:
    """All of one process. Keys are named by digest or number, never by themselves."""

    def __init__(self) -> None:
        self._held: OrderedDict[object, Allowance] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, name: object) -> Allowance:
        with self._lock:
            held = self._held.get(name)
            if held is None:
                held = self._held[name] = Allowance()
                if len(self._held) > KEPT:
                    self._held.popitem(last=False)
            else:
                self._held.move_to_end(name)
            return held

    def forget(self, key_id: int | None = None) -> None:
        """Ask anew about this key, or about every one, at the next call."""
        with self._lock:
            for name, held in list(self._held.items()):
                answer = held.answer
                if key_id is None or (answer and answer.key.pk == key_id):
                    del self._held[name]


allowances = Allowances()


def on_saved(sender: object, instance: AgentKey, **kwargs: Any) -> None:
    """Receiver of what was saved or deleted in this process: here it counts at once."""
    allowances.forget(instance.pk)
