"""A Messages API of the tests' own, on loopback: answers by script, keeps what it was asked, waits without sleeping.

    with MessagesServer() as server:
        server.will(answer([change(...)]), rate_limited(3), hang())
        ... server.url, server.requests, server.asked.wait(), server.release.set()

A script's last entry is given again and again. The Message Batches endpoints are there, too: `server.finish(batch)` answers the
requests of a batch by the same script. Nothing here imports the product.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

KEY = "sk-test-loopback"


@dataclass(frozen=True)
class Reply:
    """One HTTP answer; `hang` waits until the server is released, `cut` closes before the body is whole."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    cut: bool = False


def change(quote: str, key: str, value: str = "", **more: Any) -> dict[str, Any]:
    """One item of an answer as the prompt asks for it."""
    return {
        "action": "remember",
        "key": key,
        "value": value,
        "category": "preference",
        "quote": quote,
        "topics": [],
    } | more


def answer(changes: Sequence[object], **more: Any) -> Reply:
    return message(json.dumps({"changes": list(changes)}), **more)


def message(text: str, *, stop: str | None = "end_turn", **more: Any) -> Reply:
    """A whole message whose one text block is `text`; a thinking block may stand before it."""
    content = [{"type": "thinking", "thinking": "…", "signature": "x"}, {"type": "text", "text": text}]
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 900, "output_tokens": 40},
    } | more
    return Reply(body=json.dumps(body).encode())


def error(status: int, kind: str, **headers: str) -> Reply:
    """An error as the API words it; its message holds something that must not be found in any log."""
    body = {"type": "error", "error": {"type": kind, "message": "CANARY-provider-text"}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, json.dumps(body).encode(), named)


def _result(reply: Reply) -> dict[str, Any]:
    """An answer as a batch's result holds it."""
    body = json.loads(reply.body)
    return {"type": "succeeded", "message": body} if reply.status == 200 else {"type": "errored", "error": body}


def rate_limited(seconds: float) -> Reply:
    return error(429, "rate_limit_error", retry_after=str(seconds))


def raw(body: bytes, **headers: str) -> Reply:
    return Reply(body=body, headers=headers)


def hang() -> Reply:
    return Reply(hang=True)


def cut() -> Reply:
    return Reply(body=message("{}").body[:40], cut=True)


Fate = dict[str, Any] | None


@dataclass
class Batch:
    """What was sent, where it stands, and the lines of its results."""

    id: str
    requests: list[dict[str, Any]]
    status: str = "in_progress"
    results: list[dict[str, Any]] = field(default_factory=list)


class MessagesServer:
    def __init__(self) -> None:
        self.batches: dict[str, Batch] = {}
        """What lies at the provider; a deleted batch is gone from here."""
        self.trouble: list[Reply] = []
        """Answers that the next calls about batches get instead of their own."""
        self.calls: list[str] = []
        """Method and path of every call."""
        self.requests: list[dict[str, Any]] = []
        self.authorisations: list[str] = []
        self.asked = threading.Event()
        """Set once a call has arrived."""
        self.release = threading.Event()
        """Lets every hanging call go on."""
        self._script: list[Reply | Callable[[dict[str, Any]], Reply]] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def will(self, *script: Reply | Callable[[dict[str, Any]], Reply]) -> None:
        """What the next calls get, in order. A function is given the request."""
        self._script = list(script)

    def finish(self, batch: str, fate: Callable[[dict[str, Any]], Fate | Reply] | None = None) -> None:
        """End the batch. Its results, in another order than the requests: by script, or as `fate` says; None leaves one out."""
        held = self.batches[batch]
        for asked in reversed(held.requests):
            found = fate(asked) if fate else self._take(asked["params"], "")
            if isinstance(found, Reply):
                found = _result(found)
            if found:
                held.results.append({"custom_id": asked["custom_id"], "result": found})
        held.status = "ended"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _take(self, asked: dict[str, Any], authorisation: str) -> Reply:
        with self._lock:
            self.requests.append(asked)
            self.authorisations.append(authorisation)
            entry = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        self.asked.set()
        return entry(asked) if callable(entry) else entry

    def _batches(self, method: str, path: str, asked: dict[str, Any]) -> Reply:
        if self.trouble:
            return self.trouble.pop(0)
        _, _, rest = path.partition("/v1/messages/batches")
        name, _, verb = rest.strip("/").partition("/")
        if method == "POST" and not name:
            batch = Batch(f"msgbatch_{len(self.calls)}", asked["requests"])
            self.batches[batch.id] = batch
            return self._shown(batch)
        if name not in self.batches:
            return error(404, "not_found_error")
        batch = self.batches[name]
        if verb == "results":
            lines = [json.dumps(line) for line in batch.results]
            return Reply(body="\n".join(lines).encode(), headers={"content-type": "application/x-jsonl"})
        if verb == "cancel" and batch.status == "in_progress":
            batch.status = "canceling"
        if method == "DELETE":
            if batch.status != "ended":
                return error(400, "invalid_request_error")
            del self.batches[name]
            return Reply(body=json.dumps({"id": name, "type": "message_batch_deleted"}).encode())
        return self._shown(batch)

    def _shown(self, batch: Batch) -> Reply:
        ended = batch.status == "ended"
        body = {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": batch.status,
            "results_url": f"{self.url}/v1/messages/batches/{batch.id}/results" if ended else None,
        }
        return Reply(body=json.dumps(body).encode())

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
                shown = self.headers.get("authorization") or f"Bearer {self.headers.get('x-api-key')}"
                outer.calls.append(f"POST {self.path}")
                if self.path.startswith("/v1/messages/batches"):
                    self._send(outer._batches("POST", self.path, asked))
                    return
                if self.path != "/v1/messages":
                    self._send(error(404, "not_found_error"))
                    return
                self._send(outer._take(asked, shown))

            def do_GET(self) -> None:
                outer.calls.append(f"GET {self.path}")
                self._send(outer._batches("GET", self.path, {}))

            def do_DELETE(self) -> None:
                outer.calls.append(f"DELETE {self.path}")
                self._send(outer._batches("DELETE", self.path, {}))

            def _send(self, reply: Reply) -> None:
                if reply.hang:
                    outer.release.wait()
                    self.close_connection = True
                    return
                self.send_response(reply.status)
                for name, value in {"content-type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(reply.body) + 100 * reply.cut))
                self.end_headers()
                self.wfile.write(reply.body)
                self.close_connection = self.close_connection or reply.cut

            def log_message(self, *_: object) -> None:
                """The tests read what they need from `requests`."""

        return Handler
