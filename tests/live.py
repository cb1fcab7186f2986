"""Starts the product as its user does and talks to it from outside: its own processes, real HTTP, a real browser."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from playwright.sync_api import Error as PlaywrightError

ROOT = Path(__file__).resolve().parent.parent
CHROMIUM = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
T = TypeVar("T")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(found: Callable[[], T | None], what: str, seconds: float = 60) -> T:
    """Ask again until there is an answer; fails naming what was waited for."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if (answer := found()) is not None:
            return answer
        time.sleep(0.05)
    pytest.fail(f"waited {seconds:.0f} s in vain for {what}")


class Demo:
    """`manage.py demo`, running. What it prints goes to a file, where the sign-in codes arrive, too."""

    def __init__(self, var: Path, **environment: str) -> None:
        self.port = free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.log = var.parent / f"{var.name}.log"
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC", "DJANGO", "CELERY"))
        }
        kept.pop("DATABASE_URL", None)
        self.environment = {**kept, "VAR_DIR": str(var), "EXTRACTION_DEBOUNCE": "0.2", **environment}
        self.start()

    def start(self, *arguments: str) -> None:
        before = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "demo", "--port", str(self.port), *arguments],
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=log,
            )
        self.key = until(lambda: self._key(before), "the demo's banner", 120)

    def _key(self, before: int) -> str | None:
        if self.process.poll() is not None:
            pytest.fail(f"the demo stopped:\n{self.printed[-3000:]}")
        keys = re.findall(rb"^KEY=(\S+)$", self.log.read_bytes()[before:], re.MULTILINE)
        return keys[0].decode() if keys else None

    @property
    def printed(self) -> str:
        return self.log.read_text("utf-8", "replace")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(30)

    def code(self, already: int) -> str | None:
        """The newest sign-in code, once there are more of them than `already`."""
        codes = re.findall(r"^\s*([0-9A-Z]{3}-?[0-9A-Z]{3})\s*$", self.printed, re.MULTILINE)
        return codes[-1] if len(codes) > already else None

    def codes(self) -> int:
        return len(re.findall(r"^\s*([0-9A-Z]{3}-?[0-9A-Z]{3})\s*$", self.printed, re.MULTILINE))


class Bridge:
    """An agent: HTTP with its key."""

    def __init__(self, demo: Demo, key: str | None = None) -> None:
        self.http = httpx2.Client(
            base_url=f"{demo.base}/bridge/v1", headers={"Authorization": f"Bearer {key or demo.key}"}, timeout=30
        )

    def __enter__(self) -> Bridge:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def context(self, subject: str, **params: str) -> dict[str, Any]:
        answer = self.http.get(f"/subjects/{subject}/context", params=params)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def hand_over(self, subject: str, conversation: dict[str, Any], key: str) -> str:
        answer = self.http.post(f"/subjects/{subject}/turns", json=conversation, headers={"Idempotency-Key": key})
        assert answer.status_code == 202, answer.text
        job: str = answer.json()["job_id"]
        return job

    def finished(self, job: str) -> dict[str, Any]:
        def done() -> dict[str, Any] | None:
            found: dict[str, Any] = self.http.get(f"/jobs/{job}").json()
            return found if found["state"] not in ("queued", "running") else None

        return until(done, f"job {job} to end")


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    """The system's Redis on a port and in a folder of its own; a test without it says how to get one."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("no Redis here: apt-get install redis-server")
    folder.mkdir()
    port = free_port()
    where = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", "", "--daemonize", "no"]
    process = subprocess.Popen([program, *where], stdout=subprocess.DEVNULL)
    try:
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.kill()
        process.wait()


@contextmanager
def chromium() -> Iterator[Browser]:
    """The system's Chromium, or Playwright's own; a test without either says how to get one."""
    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=QUIET)
        except PlaywrightError:
            pytest.skip("no browser here: apt-get install chromium, or .venv/bin/playwright install chromium")
        yield browser
        browser.close()


def sign_in(page: Page, demo: Demo, email: str) -> None:
    before = demo.codes()
    page.goto(f"{demo.base}/sign-in/")
    page.locator("input[type=email]").fill(email)
    page.locator("main button.main").first.click()
    code = until(lambda: demo.code(before), "the sign-in code")
    page.locator("input[name=code]").fill(code)
    page.locator("main button.main").first.click()
    page.wait_for_url(f"{demo.base}/")
