"""Webhooks: every change arrives, in order, signed, however often delivery fails; and none of them can reach inside."""

from __future__ import annotations

import base64
import hashlib
import hmac
import io
import json
import logging
import random
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpcore2
import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from agent_bridge import auth, outbound, webhooks
from agent_bridge.models import AgentKey, Webhook
from agent_bridge.outbound import Undelivered
from memory_portal import store
from memory_portal.enums import ActorKind, EventKind, Origin
from memory_portal.models import Customer, FactEvent
from tests.figures import Figure

AGENT, PROFILE = "Clearsky assistant", "airline"
URL = "https://host.example/hooks"
CANARY = "zebra-canary-4711"


# --- nothing inside is reached ----------------------------------------------------------------------------------------

ADDRESSES = re.findall(
    r"\S+",
    """
127.0.0.1 127.8.8.8 0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.254 192.168.0.1 192.168.255.1
169.254.0.1 169.254.169.254 100.64.0.1 100.100.100.200 100.127.255.254 168.63.129.16 192.0.0.1 192.0.0.192 192.0.2.1
198.51.100.7 203.0.113.9 198.18.0.1 198.19.255.254 192.88.99.1 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255
:: ::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:93.184.215.14 ::127.0.0.1 ::10.0.0.1
64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::a00:1 2002:7f00:1:: 2002:a00:1::1 2002:a9fe:a9fe::1 2001:0:4136:e378::1
2001:10::1 2001:20::1 2001:db8::1 3fff::1 fc00::1 fd00:ec2::254 fd12:3456:789a::1 fe80::1 fe80::1%eth0 fec0::1 ff02::1
ff05::2 100::1 5f00::1 2600::5efe:7f00:1 2600::200:5efe:a00:1
""",
)
"""What a name may resolve to in order to reach inside: private, loopback, link-local, metadata, carrier's NAT, multicast, reserved,
mapped, compatible, 6to4, NAT64, Teredo, ISATAP."""

PUBLIC = "93.184.215.14"
SPELLINGS = [
    "https://127.0.0.1/", "https://[::1]/", "https://0/", "https://127.1/", "https://2130706433/", "https://0x7f.1/",
    "https://0177.0.0.1/", "https://localhost/", "https://localhost./", "https://[::ffff:127.0.0.1]/",
    "https://169.254.169.254/latest/meta-data/", "https://[fd00:ec2::254]/",
]  # fmt: skip
"""Written out, and resolved by the system itself."""
FORMS = [
    "http://host.example/",
    "ftp://host.example/", "file:///etc/passwd", "gopher://host.example/", "//host.example/", "host.example",
    "https://", "https:///x", "https://user@host.example/", "https://127.0.0.1@host.example/", "https://host.example:99999/",
    "https://host.example:x/", "https://host.example/#x", "https://host.example\\@127.0.0.1/", "https://host .example/",
    "https://host.example/\r\nX: y", "https://hóst.example/", "https://①②⑦.0.0.1/", "https://[fe80::1%25eth0]/", "https://%31/",
    "https://[::1/", "https://host..example/", "https://" + "a" * 500,
]  # fmt: skip


class Net:
    """The network as the guard sees it: names to addresses, and every connection that was made."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers, self.connected = list(answers), list[str]()

    def resolve(self, host: str, port: int) -> list[Any]:
        addresses = self.answers.pop(0)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    def connect(self, address: str, port: int, seconds: float) -> httpcore2.NetworkStream:
        self.connected.append(address)
        raise httpcore2.ConnectError


def refused(url: str, net: Net, **more: Any) -> str:
    with pytest.raises(Undelivered) as why:
        outbound.post(url, b"{}", {}, resolve=more.pop("resolve", net.resolve), connect=net.connect, **more)
    return why.value.code


def test_sixty_ways_inside_are_refused_without_one_connection() -> None:
    assert len(ADDRESSES) + len(SPELLINGS) + len(FORMS) >= 60
    for address in ADDRESSES:
        net = Net([address])
        assert refused(URL, net) == "address_refused", address
        assert net.connected == [], address
    for url in SPELLINGS:
        net = Net()
        assert refused(url, net, resolve=socket.getaddrinfo) in ("address_refused", "no_such_host"), url
        assert net.connected == [], url
    for url in FORMS:
        net = Net([PUBLIC])
        assert refused(url, net) == "bad_url", url
        assert net.connected == [], url


@pytest.mark.parametrize("address", ADDRESSES)
def test_one_inside_address_among_public_ones_spoils_them_all(address: str) -> None:
    for order in ([PUBLIC, address], [address, PUBLIC]):
        net = Net(order)
        assert refused(URL, net) == "address_refused"
        assert net.connected == []


@pytest.mark.parametrize(
    "address", [PUBLIC, "8.8.8.8", "100.63.255.255", "172.32.0.1", "2606:4700::1111", "2a00:1450::1"]
)
def test_public_addresses_are_called(address: str) -> None:
    net = Net([address])
    assert refused(URL, net) == "no_connection"
    assert net.connected == [address]


def test_a_name_that_answers_differently_the_next_time_gains_nothing() -> None:
    """Rebinding: looked up once, and the connection goes to what was looked at."""
    net = Net([PUBLIC], ["127.0.0.1"])
    assert refused(URL, net) == "no_connection"
    assert net.connected == [PUBLIC]
    assert net.answers == [["127.0.0.1"]]


def test_a_name_nobody_knows_is_a_code() -> None:
    def unknown(host: str, port: int) -> list[Any]:
        raise socket.gaierror

    assert refused(URL, Net(), resolve=unknown) == "no_such_host"


# --- a real receiver on loopback --------------------------------------------------------------------------------------


class Receiver(HTTPServer):
    """A host's door: keeps what comes and answers as told."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Door)
        self.url = f"http://127.0.0.1:{self.server_port}/hooks?x=1"
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        self.answer: tuple[int, dict[str, str], bytes] = (204, {}, b"")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that hangs up early is what some tests are about."""


class Door(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        status, headers, text = self.server.answer
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_loopback_is_reached_only_where_the_setting_allows_it(receiver: Receiver) -> None:
    with pytest.raises(Undelivered, match="bad_url"):
        outbound.post(receiver.url, b"{}", {})
    assert receiver.got == []
    outbound.post(receiver.url, b"{}", {"X-One": "1"}, loopback=True)
    path, headers, body = receiver.got[0]
    assert (path, headers["x-one"], body) == ("/hooks?x=1", "1", b"{}")
    assert headers["host"] == f"127.0.0.1:{receiver.server_port}"


def test_plain_http_goes_nowhere_but_loopback_even_then() -> None:
    net = Net([PUBLIC])
    assert refused("http://host.example/", net, loopback=True) == "address_refused"
    assert net.connected == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_a_failure_and_not_followed(receiver: Receiver, status: int) -> None:
    receiver.answer = (status, {"Location": f"http://127.0.0.1:{receiver.server_port}/inside"}, b"")
    with pytest.raises(Undelivered, match=f"status_{status}"):
        outbound.post(receiver.url, b"{}", {}, loopback=True)
    assert [path for path, *_ in receiver.got] == ["/hooks?x=1"]


def test_an_answer_without_end_is_cut_off(receiver: Receiver) -> None:
    receiver.answer = (200, {"X-Long": "x" * 90_000}, b"")
    with pytest.raises(Undelivered):
        outbound.post(receiver.url, b"{}", {}, loopback=True)
    receiver.answer = (200, {}, b"x" * 5_000_000)
    outbound.post(receiver.url, b"{}", {}, loopback=True)


def test_the_whole_exchange_has_one_deadline_however_slowly_the_answer_drips() -> None:
    class Drip(httpcore2.NetworkStream):
        def __init__(self) -> None:
            self.now, self.reads = 0.0, 0

        def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
            self.now, self.reads = self.now + 2, self.reads + 1
            return b"HTTP/1.1 200 OK\r\n"[self.reads - 1 : self.reads] or b"x"

        def write(self, buffer: bytes, timeout: float | None = None) -> None: ...

        def close(self) -> None: ...

        def get_extra_info(self, info: str) -> Any: ...

    drip = Drip()
    stream = outbound.Bounded(drip, outbound.SECONDS, lambda: drip.now)
    with pytest.raises(httpcore2.ReadTimeout):
        list(iter(lambda: stream.read(100, 5), b""))
    assert drip.reads == 8


def test_an_answer_larger_than_allowed_ends_the_exchange() -> None:
    class Flood(httpcore2.NetworkStream):
        def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
            return b"x" * max_bytes

    stream = outbound.Bounded(Flood(), 1, lambda: 0)
    with pytest.raises(Undelivered, match="answer_too_large"):
        list(iter(lambda: stream.read(4096), b""))


def test_a_certificate_of_another_name_delivers_nothing(receiver: Receiver) -> None:
    """TLS is spoken to the checked address for the name in the URL; this door speaks none at all."""
    url = receiver.url.replace("http:", "https:")
    with pytest.raises(Undelivered, match="no_connection"):
        outbound.post(url, b"{}", {}, loopback=True)
    assert receiver.got == []


def test_a_receivers_wish_to_wait_is_heard(receiver: Receiver) -> None:
    receiver.answer = (503, {"Retry-After": "120"}, b"")
    with pytest.raises(Undelivered) as why:
        outbound.post(receiver.url, b"{}", {}, loopback=True)
    assert (why.value.code, why.value.retry_after) == ("status_503", 120)


# --- deliveries -------------------------------------------------------------------------------------------------------


class Clock:
    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def passes(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class Host:
    """A receiver as the bridge's worker meets it: verifies the signature, keeps each change's first arrival, fails as told."""

    def __init__(self, clock: Clock, secret: str, fails: Callable[[], bool] = lambda: False) -> None:
        self.clock, self.fails = clock, fails
        self.key = base64.b64decode(secret.removeprefix("whsec_"))
        self.tried = self.failed = 0
        self.arrived: dict[int, tuple[datetime, str]] = {}
        self.ids: list[str] = []

    def __call__(self, url: str, body: bytes, headers: Mapping[str, str]) -> None:
        self.tried += 1
        proof = hmac.digest(
            self.key, f"{headers['Webhook-Id']}.{headers['Webhook-Timestamp']}.".encode() + body, hashlib.sha256
        )
        assert headers["Webhook-Signature"] == "v1," + base64.b64encode(proof).decode()
        assert abs(int(headers["Webhook-Timestamp"]) - self.clock().timestamp()) <= 1
        self.ids.append(headers["Webhook-Id"])
        if self.fails():
            self.failed += 1
            raise Undelivered("status_500")
        for change in json.loads(body)["changes"]:
            self.arrived.setdefault(change["id"], (self.clock(), change["subject_id"]))


@pytest.fixture
def key(db: None) -> AgentKey:
    row, _ = auth.issue(AGENT, PROFILE, [auth.READ, auth.READ_SAFETY], now=timezone.now())
    return row


def writes(key: str, value: str = "the aisle", name: str = "alice", category: str = "preference") -> store.Fact:
    now = timezone.now()
    draft = store.draft(key=key, value=value, category=category, origin=Origin.CUSTOMER, said_at=now, now=now)
    fact = store.submit(store.Subject(name, PROFILE), [draft], store.Actor(ActorKind.CUSTOMER, "c"), now=now)[0].fact
    assert fact
    return fact


def made(**more: Any) -> tuple[Webhook, str]:
    return webhooks.create(URL, AGENT, PROFILE, now=timezone.now(), **more)


def run(host: Host, dice: random.Random | None = None) -> int:
    return webhooks.deliver_due(clock=host.clock, send=host, dice=dice or random.Random(7))


@pytest.mark.django_db(transaction=True)
def test_a_thousand_changes_arrive_in_order_though_three_in_ten_deliveries_fail(key: AgentKey, figure: Figure) -> None:
    """R10: 1,000 changes over 100 s of the clock, a tick each 3 s, 30 % of all deliveries failing."""
    dice = random.Random(2026)
    now = timezone.now()
    hook, secret = made()
    clock = Clock(now)
    host = Host(clock, secret, lambda: dice.random() < 0.3)
    customers = [
        Customer.objects.create(profile=PROFILE, subject_id=f"customer-{number}", created_at=now)
        for number in range(20)
    ]
    happened: dict[int, datetime] = {}
    for second in range(100):
        for _ in range(10):
            event = FactEvent.objects.create(
                customer=dice.choice(customers),
                at=clock(),
                kind=dice.choice([EventKind.CORRECTED, EventKind.FORGOTTEN, EventKind.FROZEN]),
                key="seat",
                actor_kind=ActorKind.CUSTOMER,
            )
            happened[event.pk] = clock()
        if second % 3 == 0:
            run(host, dice)
        clock.passes(1)
    while len(host.arrived) < 1_000 and clock() < now + timedelta(minutes=30):
        clock.passes(3)
        run(host, dice)
    assert set(host.arrived) == set(happened)
    for customer in customers:
        mine = [number for number, (_, subject) in host.arrived.items() if subject == customer.subject_id]
        assert mine == sorted(mine)
    waits = sorted((host.arrived[number][0] - at).total_seconds() for number, at in happened.items())
    figure(
        "R10",
        "1,000 changes: 1,000 arrived, in order; "
        f"{host.tried} deliveries, {host.failed} failed; p50 {waits[500]:.0f} s, p99 {waits[990]:.0f} s, max {waits[-1]:.0f} s",
    )
    assert host.failed > 0.2 * host.tried
    assert waits[990] < 60
    hook.refresh_from_db()
    assert (hook.delivered, hook.failures, hook.last_code) == (1_000, 0, "")


@pytest.mark.django_db(transaction=True)
def test_a_delivery_is_a_signed_page_of_the_feed_without_a_value(
    key: AgentKey, receiver: Receiver, settings: Any
) -> None:
    settings.WEBHOOK_LOOPBACK = True
    _, secret = webhooks.create(receiver.url, AGENT, PROFILE, now=timezone.now())
    fact = writes("seat", CANARY)
    assert webhooks.deliver_due() == 1
    _, headers, body = receiver.got[0]
    told = json.loads(body)
    assert [(change["kind"], change["key"]) for change in told["changes"]] == [("added", "seat")]
    assert set(told) == {"changes", "next", "more"}
    assert CANARY not in body.decode()
    assert fact.value == CANARY
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    proof = hmac.digest(base64.b64decode(secret.removeprefix("whsec_")), signed, "sha256")
    assert headers["webhook-signature"] == "v1," + base64.b64encode(proof).decode()
    assert headers["content-type"] == "application/json"
    assert webhooks.deliver_due() == 0
    assert len(receiver.got) == 1


@pytest.mark.django_db(transaction=True)
def test_a_lost_answer_brings_the_same_page_under_the_same_id(key: AgentKey) -> None:
    _, secret = made()
    writes("seat")
    clock = Clock(timezone.now())
    fails = iter([True, False])
    host = Host(clock, secret, lambda: next(fails))
    assert run(host) == 0
    clock.passes(3)
    assert run(host) == 1
    assert len(host.ids) == 2
    assert len(set(host.ids)) == 1


@pytest.mark.django_db(transaction=True)
def test_waits_double_in_the_row_and_a_receiver_that_stays_away_is_given_up_and_resumed(key: AgentKey) -> None:
    hook, secret = made()
    writes("seat")
    clock = Clock(timezone.now())
    host = Host(clock, secret, lambda: True)
    waits: list[float] = []
    while Webhook.objects.filter(parked_at=None).exists():
        run(host)
        hook.refresh_from_db()
        waits.append((hook.next_at - clock()).total_seconds())
        clock.now = hook.next_at
    assert all(1 <= first <= 1.25 for first in waits[:3])
    assert 2 <= waits[3] <= 2.5
    assert 4 <= waits[4] <= 5
    assert max(waits) <= 15 * 60
    assert timedelta(days=3) <= clock() - hook.created_at < timedelta(days=3, hours=1)
    assert run(host) == 0
    host.fails = lambda: False
    webhooks.resume(hook, clock())
    assert run(host) == 1


@pytest.mark.django_db(transaction=True)
def test_a_receiver_that_says_gone_is_told_no_more(key: AgentKey) -> None:
    made()
    writes("seat")

    def gone(url: str, body: bytes, headers: Mapping[str, str]) -> None:
        raise Undelivered("status_410")

    webhooks.deliver_due(send=gone)
    assert Webhook.objects.get().parked_at is not None


@pytest.mark.django_db(transaction=True)
def test_of_two_workers_one_delivers(key: AgentKey) -> None:
    hook, secret = made()
    writes("seat")
    clock = Clock(timezone.now())
    host = Host(clock, secret)
    inner: list[int] = []

    def meanwhile(url: str, body: bytes, headers: Mapping[str, str]) -> None:
        inner.append(webhooks.deliver(hook.pk, clock=clock, send=host))
        host(url, body, headers)

    assert webhooks.deliver(hook.pk, clock=clock, send=meanwhile) == 1
    assert inner == [0]
    assert host.tried == 1


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_dies_in_mid_delivery_is_followed_by_another(key: AgentKey) -> None:
    hook, secret = made()
    writes("seat")
    clock = Clock(timezone.now())

    def killed(url: str, body: bytes, headers: Mapping[str, str]) -> None:
        raise SystemExit

    with pytest.raises(SystemExit):
        webhooks.deliver(hook.pk, clock=clock, send=killed)
    host = Host(clock, secret)
    assert run(host) == 0
    clock.passes(webhooks.LEASE.total_seconds())
    assert run(host) == 1


@pytest.mark.django_db(transaction=True)
def test_it_is_told_what_its_agents_live_keys_may_read(key: AgentKey) -> None:
    _, secret = made()
    clock = Clock(timezone.now())
    host = Host(clock, secret)
    customer = store.find(store.Subject("alice", PROFILE))
    assert customer is None
    writes("seat")
    customer = store.find(store.Subject("alice", PROFILE))
    assert customer
    actor = store.Actor(ActorKind.CUSTOMER, "c")
    store.give_consent(customer.pk, actor, now=timezone.now(), channel="portal", language="en")
    _, successor = auth.rotate(key, now=timezone.now())
    auth.revoke(key, now=timezone.now())
    assert run(host) == 1
    AgentKey.objects.filter(revoked_at=None).update(scopes=[auth.READ])
    writes("nut_allergy", "peanuts", category="safety")
    assert run(host) == 0
    for live in AgentKey.objects.filter(revoked_at=None):
        auth.revoke(live, now=timezone.now())
    writes("meal", "fish")
    assert run(host) == 0
    assert Webhook.objects.get().last_code == "no_live_key"
    assert host.tried == 1
    assert successor


@pytest.mark.django_db(transaction=True)
def test_only_the_kinds_it_wants_are_sent(key: AgentKey) -> None:
    _, secret = made(events=["forgotten"])
    fact = writes("seat")
    customer = store.find(store.Subject("alice", PROFILE))
    assert customer
    store.forget(customer.pk, [fact.id], store.Actor(ActorKind.CUSTOMER, "c"), now=timezone.now())
    host = Host(Clock(timezone.now()), secret)
    assert run(host) == 1
    assert run(host) == 0


@pytest.mark.django_db(transaction=True)
def test_a_paused_webhook_goes_on_where_it_was(key: AgentKey) -> None:
    hook, secret = made()
    writes("seat")
    host = Host(Clock(timezone.now()), secret)
    webhooks.pause(hook)
    assert run(host) == 0
    webhooks.resume(hook, host.clock())
    assert run(host) == 1


@pytest.mark.django_db(transaction=True)
def test_the_tick_rings_for_those_that_have_something_to_be_told(key: AgentKey) -> None:
    made()
    assert webhooks.ring_due(timezone.now()) == 0
    writes("seat")
    assert webhooks.ring_due(timezone.now()) == 1


@pytest.mark.django_db(transaction=True)
def test_on_another_database_server_it_hears_all_again_rather_than_nothing(key: AgentKey) -> None:
    writes("meal", "fish")
    hook, secret = made()
    writes("seat")
    raw = base64.urlsafe_b64decode(hook.cursor)
    Webhook.objects.update(cursor=base64.urlsafe_b64encode(raw[:1] + bytes(4) + raw[5:]).decode())
    assert webhooks.ring_due(timezone.now()) == 1
    host = Host(Clock(timezone.now()), secret)
    assert run(host) == 2
    assert run(host) == 0


@pytest.mark.django_db(transaction=True)
def test_a_secret_whose_pepper_is_gone_delivers_nothing_and_says_so(key: AgentKey, settings: Any) -> None:
    hook, secret = made()
    writes("seat")
    old = settings.AGENT_KEY_PEPPER
    settings.AGENT_KEY_PEPPER = "2:another pepper of thirty-two characters"
    host = Host(Clock(timezone.now()), secret)
    assert run(host) == 0
    hook.refresh_from_db()
    assert (hook.last_code, host.tried) == ("secret_gone", 0)
    settings.AGENT_KEY_PEPPER = f"2:another pepper of thirty-two characters,1:{old}"
    webhooks.resume(hook, host.clock())
    assert run(host) == 1


@pytest.mark.django_db(transaction=True)
def test_an_address_inside_is_refused_when_it_is_called(key: AgentKey) -> None:
    hook, _ = webhooks.create("https://localhost/hooks", AGENT, PROFILE, now=timezone.now())
    writes("seat")
    assert webhooks.deliver(hook.pk) == 0
    hook.refresh_from_db()
    assert hook.last_code == "address_refused"


# --- making them ------------------------------------------------------------------------------------------------------


def test_the_secret_stands_in_no_table_and_no_log(key: AgentKey, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    hook, secret = made()
    assert secret.startswith("whsec_")
    assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 32
    assert secret == webhooks.secret(Webhook.objects.get(pk=hook.pk))
    assert secret not in repr(list(Webhook.objects.values()))
    assert secret not in caplog.text


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"url": "http://host.example/"}, "https"),
        ({"agent": "nobody"}, "agent"),
        ({"profile": "grocery"}, "agent"),
        ({"events": ["renewed"]}, "events"),
    ],
)
def test_what_cannot_work_is_refused_by_name(key: AgentKey, wrong: dict[str, Any], says: str) -> None:
    told: dict[str, Any] = {"url": URL, "agent": AGENT, "profile": PROFILE} | wrong
    with pytest.raises(ValueError, match=says):
        webhooks.create(**told, now=timezone.now())
    assert not Webhook.objects.exists()


def test_the_command_makes_lists_resumes_and_removes(key: AgentKey) -> None:
    out = io.StringIO()
    call_command("webhook", "create", URL, "--agent", AGENT, "--profile", PROFILE, "--events", "cleared", stdout=out)
    hook = Webhook.objects.get()
    assert webhooks.secret(hook) in out.getvalue()
    Webhook.objects.update(parked_at=datetime(2026, 5, 1, tzinfo=UTC), failures=9, last_code="timeout")
    listed = io.StringIO()
    call_command("webhook", "list", stdout=listed)
    assert "given up" in listed.getvalue()
    assert "timeout" in listed.getvalue()
    assert webhooks.secret(hook) not in listed.getvalue()
    call_command("webhook", "resume", str(hook.pk), stdout=out)
    assert Webhook.objects.get().parked_at is None
    call_command("webhook", "remove", str(hook.pk), stdout=out)
    assert not Webhook.objects.exists()
    for gone in (str(hook.pk), "x"):
        with pytest.raises(CommandError, match="no webhook"):
            call_command("webhook", "remove", gone)
    with pytest.raises(CommandError, match="https"):
        call_command("webhook", "create", "http://x/", "--agent", AGENT, "--profile", PROFILE)


def test_staff_make_pause_and_resume_one_and_see_its_secret_once(staff: Client, key: AgentKey) -> None:
    told = {"url": URL, "agent": AGENT, "profile": PROFILE, "events": ["forgotten"]}
    page = staff.post(reverse("admin:agent_bridge_webhook_add"), told, follow=True)
    hook = Webhook.objects.get()
    assert webhooks.secret(hook) in page.content.decode().replace("&#x3D;", "=")
    assert hook.events == ["forgotten"]
    change = reverse("admin:agent_bridge_webhook_change", args=[hook.pk])
    assert webhooks.secret(hook) not in staff.get(change).content.decode()
    listed = reverse("admin:agent_bridge_webhook_changelist")
    for action, active in (("pause", False), ("resume", True)):
        staff.post(listed, {"action": action, "_selected_action": [str(hook.pk)]})
        assert Webhook.objects.get().active is active
    page = staff.post(reverse("admin:agent_bridge_webhook_add"), told | {"url": "http://127.0.0.1/"})
    assert b"https://" in page.content
    assert Webhook.objects.count() == 1
