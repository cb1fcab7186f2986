"""A bridge of the tests' own, on loopback: answers by script, counts connections, keeps what it was asked, waits without sleeping.

A script's last answer is given again and again. Nothing here imports the product.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: object = field(default_factory=lambda: {"facts": []})
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    cut: bool = False


def problem(status: int, code: str, headers: dict[str, str] | None = None, **more: object) -> Reply:
    return Reply(
        status,
        {"type": "x", "title": "x", "status": status, "detail": "value-canary", "code": code, **more},
        headers or {},
    )


class Quiet(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """A client that hangs up first is what some of these tests are about."""


class Stub:
    """A bridge by script on loopback. Its last answer is given again and again; it counts connections and requests."""

    def __init__(self, *script: Reply) -> None:
        self.script = list(script) or [Reply()]
        self.requests: list[tuple[str, str, dict[str, str], Any]] = []
        self.connections = 0
        self.release = threading.Event()
        self._lock = threading.Lock()
        self._server = Quiet(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/bridge/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                with outer._lock:
                    outer.connections += 1

            def do_GET(self) -> None:
                length = int(self.headers.get("content-length", 0))
                body = json.loads(self.rfile.read(length)) if length else None
                with outer._lock:
                    outer.requests.append((self.command, self.path, dict(self.headers.items()), body))
                    reply = outer.script.pop(0) if len(outer.script) > 1 else outer.script[0]
                if reply.hang:
                    outer.release.wait()
                    self.close_connection = True
                    return
                sent = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                if reply.status != 204:
                    self.send_header("content-length", str(len(sent) + 100 * reply.cut))
                self.end_headers()
                if reply.status != 204:
                    self.wfile.write(sent)
                self.close_connection = self.close_connection or reply.cut

            do_POST = do_PUT = do_DELETE = do_GET

            def log_message(self, *_: object) -> None:
                """The tests read what they need from `requests`."""

        return Handler
