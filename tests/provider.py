"""An OpenID Connect provider on the loopback: discovery, authorisation, token. It says of a person what the test tells it to."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt

SECRET = "a secret of the provider, long enough to sign"


class Provider:
    def __init__(self) -> None:
        self.claims: dict[str, Any] = {}
        self.token_status = 200
        self.asked: list[dict[str, str]] = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.answer(200, provider.discovery())

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                provider.asked.append({name: values[0] for name, values in parse_qs(body).items()})
                self.answer(provider.token_status, provider.token())

            def answer(self, status: int, body: dict[str, Any]) -> None:
                raw = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"
        self.named = self.issuer
        """Whom its metadata and tokens name: itself, where it is honest."""

    def discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.named,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
        }

    def token(self) -> dict[str, Any]:
        now = int(time.time())
        claims = {"iss": self.named, "aud": "portal", "iat": now, "exp": now + 60, **self.claims}
        return {"access_token": "t", "token_type": "Bearer", "id_token": jwt.encode(claims, SECRET, "HS256")}

    def __enter__(self) -> Provider:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.server.shutdown()
        self.server.server_close()


def proves_the_challenge(asked: dict[str, str], challenge: str) -> bool:
    """Whether the verifier sent for the token is the one whose digest went out with the browser (PKCE)."""
    digest = hashlib.sha256(asked["code_verifier"].encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=") == challenge


def query(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
