"""`make demo`: the whole product on one machine. Prepares the data, starts web, worker and scheduler, says where to look."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.utils import timezone

from agent_bridge import auth, demo
from agent_bridge.models import AgentKey

STAFF = "staff"
STOP_SECONDS = 15
START_SECONDS = 60
READ_SECONDS = 20


class Command(BaseCommand):
    help = "Start the whole product with demo customers; Ctrl-C stops all of it."
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--reset", action="store_true", help="start afresh: everything in the demo's database goes")

    def handle(self, *args: Any, port: int, reset: bool, **options: Any) -> None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        signal.signal(
            signal.SIGINT, signal.default_int_handler
        )  # a shell that starts it in the background has it ignored
        must_be_free(port)
        if reset:
            start_afresh()
        call_command("migrate", verbosity=0)
        now = timezone.now()
        key = self.agent_key(demo.load(now))
        password = staff_password()
        processes: dict[str, subprocess.Popen[bytes]] = {}
        try:
            processes |= start(port)
            wait_until_up(port, processes)
            wait_until_read(processes)
            self.stdout.write(banner(f"http://127.0.0.1:{port}", password, key))
            self.stdout.flush()
            watch(processes)
        except KeyboardInterrupt:
            self.stdout.write("\nStopping.")
        finally:
            stop(processes)

    def agent_key(self, keys: dict[str, str]) -> str:
        """The grocery agent's key: shown when it is made, kept in a private file for the next start."""
        kept = settings.VAR / "secrets" / "demo_agent_key"
        if "grocery" in keys:
            write_private(kept, keys["grocery"])
        if not kept.exists():
            old = AgentKey.objects.filter(name=demo.GROCERY_AGENT, revoked_at=None).latest("created_at")
            write_private(kept, auth.rotate(old, now=timezone.now())[1])
        return kept.read_text()


def must_be_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise CommandError(
                f"Port {port} is taken. Choose another one: make demo ARGS='--port {port + 1}'"
            ) from error


def start_afresh() -> None:
    """Empty the embedded database and the mailbox of the broker. A database of the operator's own is not ours to empty."""
    if os.environ.get("DATABASE_URL"):
        raise CommandError("--reset only empties the embedded database; unset DATABASE_URL or empty yours by hand")
    with connection.cursor() as cursor:
        cursor.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    settings.ERASURE_LEDGER.unlink(missing_ok=True)  # of the database that is no more
    empty_mailbox(settings.VAR / "broker")
    (settings.VAR / "secrets" / "demo_agent_key").unlink(missing_ok=True)


def empty_mailbox(broker: Path) -> None:
    """The folders stay: they were made when this process began, and nobody makes them again."""
    for message in broker.glob("*/*"):
        message.unlink(missing_ok=True)


def staff_password() -> str:
    kept = settings.VAR / "secrets" / "demo_staff_password"
    if not kept.exists():
        write_private(kept, secrets.token_urlsafe(12))
    password = kept.read_text()
    staff, new = User.objects.get_or_create(username=STAFF, defaults={"is_staff": True, "is_superuser": True})
    if new or not staff.check_password(password):
        staff.set_password(password)
        staff.save()
    return password


def write_private(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(text)


def start(port: int) -> dict[str, subprocess.Popen[bytes]]:
    """Web, worker and scheduler, each its own process group, so that a Ctrl-C reaches them through us and in order."""
    env = {
        "LOG_LEVEL": "WARNING",
        "EXTRACTION_DEBOUNCE": "2",  # whoever tries the product should not wait as long as a busy shop does
        "PYTHONWARNINGS": "ignore",  # this terminal is for the person who tries it
        "PYTHONUNBUFFERED": "1",
        **os.environ,
        "DATABASE_URL": settings.DATABASE_URL,
    }
    web = ["granian", "--interface", "wsgi", "--workers", "2", "--blocking-threads", "2", "--log-level", "warning"]
    celery = ["celery", "--quiet", "-A", "agent_bridge"]
    quiet = ["--loglevel", "WARNING"]
    commands = {
        "web": [*web, "--host", "127.0.0.1", "--port", str(port), "memory_portal.wsgi:application"],
        "worker": [*celery, "worker", *quiet, "--concurrency", "2"],
        "scheduler": [*celery, "beat", *quiet, "--schedule", str(settings.VAR / "scheduler")],
    }
    return {
        name: subprocess.Popen([sys.executable, "-m", *command], env=env, cwd=settings.BASE_DIR, start_new_session=True)  # noqa: S603
        for name, command in commands.items()
    }


def wait_until_up(port: int, processes: dict[str, subprocess.Popen[bytes]]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        must_run(processes)
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2) as answer:  # nosec B310  # our own
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.1)
    raise CommandError(f"The site did not answer within {START_SECONDS} seconds; what it printed stands above.")


def wait_until_read(processes: dict[str, subprocess.Popen[bytes]]) -> None:
    """What the demo's people said, so that whoever opens their page finds something there; not for long, where Claude reads it."""
    deadline = time.monotonic() + READ_SECONDS
    while demo.unread() and time.monotonic() < deadline:
        must_run(processes)
        time.sleep(0.2)


def must_run(processes: dict[str, subprocess.Popen[bytes]]) -> None:
    for name, process in processes.items():
        if process.poll() is not None:
            raise CommandError(f"The {name} stopped by itself; what it printed stands above.")


def watch(processes: dict[str, subprocess.Popen[bytes]]) -> None:
    while True:
        must_run(processes)
        time.sleep(0.5)


def stop(processes: dict[str, subprocess.Popen[bytes]]) -> None:
    for process in processes.values():
        if process.poll() is None:
            process.terminate()
    deadline = time.monotonic() + STOP_SECONDS
    for process in processes.values():
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def banner(address: str, password: str, key: str) -> str:
    customer, subject = demo.CUSTOMER_EMAIL, demo.CUSTOMER_SUBJECT
    bridge = f"{address}/bridge/v1"
    says = '{"session_id":"try-1","messages":[{"role":"user","content":"I never eat mushrooms."}]}'
    headers = '-H "Authorization: Bearer $KEY" -H "Content-Type: application/json"'
    job_id = """sed -n 's/.*"job_id": *"\\([^"]*\\)".*/\\1/p'"""
    engine = "Claude" if settings.EXTRACTOR == "claude" else "the offline extractor (set ANTHROPIC_API_KEY for Claude)"
    return f"""
  What we remember about you   {address}/
      sign in as               {customer}   (the code is printed here)
      more customers           {", ".join(demo.OTHER_EMAILS)}
  For staff                    {address}/admin/
      sign in as               {STAFF}   password {password}
  Facts are found by           {engine}

  An agent reads, hands over a turn, and watches the job:

KEY={key}
curl -s -H "Authorization: Bearer $KEY" {bridge}/subjects/{subject}/context
JOB=$(curl -s {headers} -d '{says}' {bridge}/subjects/{subject}/turns | {job_id})
curl -s -H "Authorization: Bearer $KEY" {bridge}/jobs/$JOB

  Ctrl-C stops all of it and keeps the data; make demo ARGS=--reset starts afresh.
"""
