"""`GET changes`: what happened to the facts, as ids, keys, codes and times. In: a cursor. Out: a page and the next cursor.

A call may wait for the next change. Waiting takes a thread of the web server, which has few: no more than BRIDGE_WAITS of a process
wait at once, the others are answered at once with an empty page. Between two looks no database work is open.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from django.conf import settings
from django.http import HttpResponse
from ninja import Query, Router

from agent_bridge.auth import READ, NotAuthenticated
from agent_bridge.exchange import AgentRequest, KeyAuth, said, statuses
from agent_bridge.problems import Problem
from agent_bridge.schemas import ChangesOut, ChangesQuery
from memory_portal import store

router = Router()

LOOK_EVERY = 1.0
"""Seconds between two looks of a call that waits: the index is read, and usually nothing found."""


@router.get(
    "/changes",
    auth=KeyAuth(READ),
    response={200: ChangesOut, **statuses(410)},
    summary="Hear of changes",
)
def list_changes(request: AgentRequest, query: Query[ChangesQuery]) -> HttpResponse:
    """What happened to this profile's facts behind the cursor `after`: left out, from the start; `now`, from now on."""
    grant = request.auth
    if grant.subject:
        raise Problem("key_needed")

    def read(after: str) -> store.Changes:
        return store.changes(grant.profile, grant.agent, after, limit=query.limit, hidden=grant.hidden)

    def check() -> None:
        grant.key.refresh_from_db(fields=["revoked_at"])
        if grant.key.revoked_at:
            raise NotAuthenticated("key_revoked")

    return said(ChangesOut.of(wait_for(read, query.after, query.wait, check=check)))


class Seats:
    """How many wait in this process. Nobody queues for a seat."""

    def __init__(self) -> None:
        self._lock, self._taken = Lock(), 0

    @contextmanager
    def one_of(self, all_of_them: int) -> Iterator[bool]:
        with self._lock:
            seated = self._taken < all_of_them
            self._taken += seated
        try:
            yield seated
        finally:
            with self._lock:
                self._taken -= seated


SEATS = Seats()


def wait_for(
    read: Callable[[str], store.Changes],
    after: str,
    seconds: float,
    *,
    check: Callable[[], None] = lambda: None,
    pause: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> store.Changes:
    """The first page that has something in it; the empty one after `seconds`, or at once where too many wait already.

    `check` raises when the caller may not wait any longer.
    """
    until = clock() + seconds
    page = read(after)
    if not seconds:
        return page
    with SEATS.one_of(settings.BRIDGE_WAITS) as seated:
        while seated and not page.changes:
            left = until - clock()
            if left <= 0:
                break
            if not page.more:
                pause(min(LOOK_EVERY, left))
                check()
            page = read(page.next)
    return page
