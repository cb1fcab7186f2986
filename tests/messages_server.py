"""A Messages API of the tests' own, on loopback: answers by script, keeps what it was asked, waits without sleeping.

    with MessagesServer() as server:
        server.will(answer([change(...)]), rate_limited(3), hang())
        ... server.url, server.requests, server.asked.wait(), server.release.set()

A script's last entry is given again and again. Nothing here imports the product.
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


def rate_limited(seconds: float) -> Reply:
    return error(429, "rate_limit_error", retry_after=str(seconds))


def raw(body: bytes, **headers: str) -> Reply:
    return Reply(body=body, headers=headers)


def hang() -> Reply:
    return Reply(hang=True)


def cut() -> Reply:
    return Reply(body=message("{}").body[:40], cut=True)


class MessagesServer:
    def __init__(self) -> None:
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

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                shown = self.headers.get("authorization") or f"Bearer {self.headers.get('x-api-key')}"
                if self.path != "/v1/messages":
                    self._send(error(404, "not_found_error"))
                    return
                self._send(outer._take(asked, shown))

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
