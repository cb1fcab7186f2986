"""The same call for many conversations at once, at half the price and within a day: the Message Batches API.

In: requests by a name each. Out: the batch's id, later an Extraction by name, or a failure code. Leans on the room `claude`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agent_bridge.extraction import Extraction, ExtractionFailed, ExtractionRequest
from agent_bridge.extraction.claude import Claude, NoAnswer, codes_only, windows

LOST = ExtractionFailed("batch_lost")
_FATES = {"canceled": ExtractionFailed("batch_canceled"), "expired": ExtractionFailed("batch_expired")}
_ERRORS = {
    "api_error": ExtractionFailed("provider_error"),
    "overloaded_error": ExtractionFailed("overloaded"),
    "rate_limit_error": ExtractionFailed("rate_limited"),
    "timeout_error": ExtractionFailed("timeout"),
    "authentication_error": ExtractionFailed("not_authorised"),
    "permission_error": ExtractionFailed("not_authorised"),
    "billing_error": ExtractionFailed("not_paid"),
    "not_found_error": ExtractionFailed("unknown_model"),
    "request_too_large": ExtractionFailed("too_large", transient=False),
    "invalid_request_error": ExtractionFailed("bad_request", transient=False),
}
_CUSTOM_ID = re.compile(r"(\w+-\d+)-(\d+)-(\d+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Batches:
    claude: Claude

    @property
    def _api(self) -> Any:
        return self.claude.client.messages.batches

    def send(self, requests: Mapping[str, ExtractionRequest]) -> str | ExtractionFailed:
        """One batch of everything; its id. A conversation in several windows is several requests of it."""
        asked = [
            {"custom_id": f"{name}-{at}-{len(read)}", "params": self.claude.params(request, window)}
            for name, request in requests.items()
            for read in [windows(request.turns)]
            for at, window in enumerate(read)
        ]
        try:
            with codes_only():
                batch = self._api.create(requests=asked)
        except NoAnswer as error:
            return error.failed
        return batch.id if isinstance(batch.id, str) and 0 < len(batch.id) <= 64 else ExtractionFailed("garbage")

    def results(self, batch: str) -> dict[str, Extraction] | ExtractionFailed | None:
        """What became of each name once all has ended; None before. A name that is missing has no whole answer."""
        try:
            with codes_only():
                if getattr(self._api.retrieve(batch), "processing_status", None) != "ended":
                    return None
                lines = list(self._api.results(batch))
        except NoAnswer as error:
            return error.failed
        replies: defaultdict[str, dict[int, object]] = defaultdict(dict)
        parts: dict[str, int] = {}
        for line in lines:
            if found := _CUSTOM_ID.fullmatch(str(getattr(line, "custom_id", ""))):
                name, at, parts[found[1]] = found[1], int(found[2]), int(found[3])
                replies[name][at] = getattr(line, "result", None)
        return {
            name: self.claude.read(_opened(said[at] for at in sorted(said)))
            for name, said in replies.items()
            if len(said) == parts[name]
        }

    def cancel(self, batch: str) -> ExtractionFailed | None:
        return self._told(self._api.cancel, batch)

    def delete(self, batch: str) -> ExtractionFailed | None:
        """Have the provider drop requests and results; None once nothing of it is left there."""
        gone = self._told(self._api.delete, batch)
        return None if gone and gone.code == "unknown_model" else gone

    def _told(self, call: Any, batch: str) -> ExtractionFailed | None:
        try:
            with codes_only():
                call(batch)
        except NoAnswer as error:
            return error.failed
        return None


def _opened(results: Iterator[object]) -> Iterator[object]:
    """The messages in the results; raises NoAnswer at the first that holds none."""
    for result in results:
        kind = getattr(result, "type", None)
        if kind == "succeeded":
            yield getattr(result, "message", None)
        elif kind == "errored":
            inner = getattr(getattr(getattr(result, "error", None), "error", None), "type", "")
            raise NoAnswer(_ERRORS.get(str(inner), ExtractionFailed("provider_error")))
        else:
            raise NoAnswer(_FATES.get(str(kind), ExtractionFailed("garbage")))
