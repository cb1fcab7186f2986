"""The one way out to an address that somebody typed in. In: a URL and a body. Out: a status, or Undelivered with a code.

Nothing inside can be reached through it: https only, every address of the name must be a public one, and the connection goes to
the very address that was looked at, so that a name that answers differently the next time gains nothing. No redirect is followed,
no proxy of the environment asked, nothing of the answer's body read; the whole exchange has one deadline.

httpcore2 (beneath httpx2, which comes with anthropic) rather than the standard library: its network backend is the place where a
connection is made, after which it does TLS for the name and HTTP itself. http.client would have both written here by hand; httpx2
would add redirects, proxies and cookies, to be switched off again. Imports nothing of this project.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpcore2

URL_LIMIT = 500
ANSWER_LIMIT = 64 * 1024
SECONDS = 15.0
"""For everything after the name is resolved: connecting, TLS, sending, and the head of the answer."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Iterable[Any]]
Connect = Callable[[str, int, float], httpcore2.NetworkStream]

INSIDE_V4 = tuple(
    ipaddress.IPv4Network(net)
    for net in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16", "172.16.0.0/12",
        "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
        "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
    )
)  # fmt: skip
"""Not the internet: this network, private, carrier's NAT, loopback, link-local (and clouds' metadata, one of which has a public
number), protocol and documentation, 6to4 relays, benchmarks, multicast, reserved, broadcast. IANA's special-purpose registry."""
OUTSIDE_V6 = ipaddress.IPv6Network("2000::/3")
"""All that is handed out. Loopback, mapped and compatible IPv4, NAT64, local and multicast lie elsewhere."""
INSIDE_V6 = tuple(
    ipaddress.IPv6Network(net)
    for net in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")  # Teredo and the like, documentation, 6to4
)
ISATAP = (0x0000_5EFE, 0x0200_5EFE)


class Undelivered(Exception):
    """`code` is safe to keep and to show; `retry_after` are the seconds the receiver asked for."""

    def __init__(self, code: str, retry_after: float | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Target:
    scheme: str
    host: str
    port: int
    path: str
    shown_host: str
    """As the Host header has it."""


def target(url: str, *, loopback: bool = False) -> Target:
    """The parts of a URL that may be called at all. Raises ValueError saying what is wrong with its form."""
    if len(url) > URL_LIMIT or not re.fullmatch(r"[\x21-\x7e]+", url) or re.search(r"[\\#\"<>^`{|}]", url):
        raise ValueError(f"url: at most {URL_LIMIT} ASCII signs, without spaces or a fragment")
    parts = urlsplit(url)
    if parts.scheme != "https" and not (loopback and parts.scheme == "http"):
        raise ValueError("url: must start with https://")
    if "@" in parts.netloc or "%" in parts.netloc:
        raise ValueError("url: takes neither a user nor a zone")
    host = parts.hostname or ""
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        if ":" in host:
            ipaddress.IPv6Address(host)
        elif not re.fullmatch(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?", host) or len(host) > 253:
            raise ValueError
    except ValueError:
        raise ValueError("url: has no host that could be called; write international names as xn--") from None
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, host, port, path, parts.netloc)


def outside(address: Address) -> bool:
    """Whether this is an address of the public internet and of nothing else in disguise."""
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in net for net in INSIDE_V4)
    if address not in OUTSIDE_V6 or any(address in net for net in INSIDE_V6):
        return False
    return (int(address) >> 32) & 0xFFFF_FFFF not in ISATAP


def plain_connect(address: str, port: int, seconds: float) -> httpcore2.NetworkStream:
    return httpcore2.SyncBackend().connect_tcp(address, port, seconds, None, [])


class Guard(httpcore2.NetworkBackend):
    """Makes connections to public addresses only. One of them per exchange; `until` is its end on `clock`."""

    def __init__(
        self,
        *,
        loopback: bool = False,
        only_loopback: bool = False,
        resolve: Resolve = socket.getaddrinfo,
        connect: Connect = plain_connect,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._loopback, self._only_loopback = loopback, only_loopback
        self._resolve, self._connect, self._clock = resolve, connect, clock

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: object = None,
    ) -> httpcore2.NetworkStream:
        addresses = self.addresses(host, port)
        until = self._clock() + SECONDS
        refused: Exception = Undelivered("connect")
        for address in addresses:
            try:
                stream = self._connect(str(address), port, min(timeout or SECONDS, max(until - self._clock(), 0.01)))
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                refused = error
            else:
                return Bounded(stream, until, self._clock)
        raise refused

    def addresses(self, host: str, port: int) -> list[Address]:
        """All addresses of the name, each of them looked at. Raises Undelivered where one is not outside."""
        try:
            found = self._resolve(host, port)
        except (OSError, UnicodeError):
            raise Undelivered("no_such_host") from None
        addresses: list[Address] = []
        for *_, place in found:
            try:
                address = ipaddress.ip_address(place[0])
            except ValueError:  # with a zone: link-local
                raise Undelivered("address_refused") from None
            if not self._may(address):
                raise Undelivered("address_refused")
            if address not in addresses:
                addresses.append(address)
        if not addresses:
            raise Undelivered("no_such_host")
        return addresses

    def _may(self, address: Address) -> bool:
        here = self._loopback and str(address) in ("127.0.0.1", "::1")
        return here if self._only_loopback else here or outside(address)

    def connect_unix_socket(self, path: str, timeout: float | None = None, socket_options: object = None) -> Any:
        raise Undelivered("address_refused")


class Bounded(httpcore2.NetworkStream):
    """A stream with an end in time and in size, however slowly or however much the other side sends."""

    def __init__(self, stream: httpcore2.NetworkStream, until: float, clock: Callable[[], float]) -> None:
        self._stream, self._until, self._clock, self._read = stream, until, clock, 0

    def _left(self, timeout: float | None) -> float:
        left = self._until - self._clock()
        if left <= 0:
            raise httpcore2.ReadTimeout
        return min(left, timeout or left)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = self._stream.read(max_bytes, self._left(timeout))
        self._read += len(data)
        if self._read > ANSWER_LIMIT:
            raise Undelivered("answer_too_large")
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._left(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        stream = self._stream.start_tls(ssl_context, server_hostname, self._left(timeout))
        return Bounded(stream, self._until, self._clock)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    loopback: bool = False,
    resolve: Resolve = socket.getaddrinfo,
    connect: Connect = plain_connect,
    ssl_context: Any = None,
) -> None:
    """Deliver, or raise Undelivered. Any answer but 2xx is none: a redirect, too."""
    try:
        to = target(url, loopback=loopback)
    except ValueError:
        raise Undelivered("bad_url") from None
    guard = Guard(loopback=loopback, only_loopback=to.scheme == "http", resolve=resolve, connect=connect)
    ours = {"Host": to.shown_host, "Content-Length": str(len(body)), "Connection": "close"}
    sent: list[tuple[bytes | str, bytes | str]] = [*ours.items(), *headers.items()]
    where = httpcore2.URL(scheme=to.scheme, host=to.host, port=to.port, target=to.path)
    timeouts = dict.fromkeys(("connect", "read", "write", "pool"), SECONDS)
    try:
        with (
            httpcore2.ConnectionPool(ssl_context=ssl_context, network_backend=guard, retries=0) as pool,
            pool.stream("POST", where, headers=sent, content=body, extensions={"timeout": timeouts}) as answer,
        ):
            status = answer.status
            retry_after = {name.lower(): value for name, value in answer.headers}.get(b"retry-after", b"")
    except Undelivered:
        raise
    except httpcore2.TimeoutException:
        raise Undelivered("timeout") from None
    except (httpcore2.ProtocolError, httpcore2.ReadError, httpcore2.WriteError):
        raise Undelivered("no_answer") from None
    except (httpcore2.ConnectError, OSError):  # TLS too: the name in the certificate is not the one that was called
        raise Undelivered("no_connection") from None
    if not 200 <= status < 300:
        asked = float(retry_after) if re.fullmatch(rb"\d{1,6}", retry_after) else None
        raise Undelivered(f"status_{status}", asked)
