"""A request begins as nobody's: no row of any customer is seen until the store has found whose it is."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from memory_portal.store import wall

EVERYONES = ("/admin/", "/metrics", "/readyz")
"""The staff's own pages, each of whose looks is recorded, and what is counted over all."""


class Walled:
    """Outermost, so that whatever answers is behind the wall."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        over_all = request.path_info.startswith(EVERYONES)
        with wall.everyone("staff, and counts") if over_all else wall.nobody():
            return self.get_response(request)
