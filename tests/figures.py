"""Each requirement has a test that says its figure; `make check` gathers them in docs/results.md.

A test takes the fixture `figure` and calls `figure("R2", "1,000 agent writes: 0 overwrote")`. The row must stand in ROWS. Where
RESULTS names a file, the figures of the tests that passed are written there, and a row without one fails a whole run.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

ROWS = {
    "R1": "The page shows every fact with all of its fields",
    "R2": "A correction wins and stays",
    "R3": "Forgotten means gone at once, everywhere",
    "R4": "Forgetting wins against a write in flight",
    "R5": "Paused memory is neither read nor written",
    "R6": "A contested fact is frozen and served to nobody",
    "R7": "The export is complete",
    "R8": "The export is guarded",
    "R9": "The list of readers is true",
    "R10": "Agents are told of corrections, deletions and freezes",
    "R11": "Requests by hand have a legal clock and a ledger",
    "R12": "Nothing about health or safety stays without consent",
    "R13": "Notice and record of processing come from one inventory",
    "E1": "Forgetting a fact leaves no copy",
    "E2": "Erasing an account leaves no trace but the ledger's pseudonym",
    "E3": "A tombstone reveals nothing",
    "E4": "There is no way back for what was forgotten",
    "E5": "Retention is exact and resumes after a crash",
    "E6": "Disk pages and write-ahead log are cleaned",
    "E7": "A restored copy serves nothing that was erased",
    "E8": "The model's provider gets one kind of call and no identity",
    "M1": "Writer, source and trust are set by the server",
    "M2": "Only the customer's own turns are evidence",
    "M3": "A value stands in the words it cites",
    "M4": "Only allowed keys, kinds and lengths",
    "M6": "A lower rank never overwrites a higher one",
    "M7": "Nobody but the customer weakens a safety fact",
    "W1": "Nobody reaches another customer",
    "W2": "Not yours is the same answer as not there",
    "W3": "Row-level security in PostgreSQL is a second wall",
    "W4": "Unsafe routes need a token, safe ones change nothing",
    "W5": "Sessions renew at sign-in and die at sign-out",
    "W6": "Cookies and headers are strict on every answer",
    "W7": "The content security policy allows nothing inline",
    "W8": "Django's deployment check has no warning",
    "W9": "Nothing stored runs as script or formula",
    "W10": "Guessing is slowed and reveals nothing",
    "W11": "Staff need a second factor; passwords are strong",
    "W12": "What is hard to undo asks to sign in again",
    "W13": "Mail links are single use and keep to the fixed host",
    "K1": "Keys are unique, checkable offline and kept as digests",
    "K4": "A revoked key is dead within a second everywhere",
    "K6": "The API keeps to its schema",
    "K7": "An idempotency key has one effect",
    "K8": "Limits on calls hold across processes",
    "K10": "No update is lost",
    "J1": "A killed worker loses and doubles nothing",
    "J2": "A lost broker loses nothing",
    "J4": "A provider's faults lose nothing and teach nothing false",
    "J5": "Poison is parked and slows nobody",
    "J6": "A crash of PostgreSQL loses no acknowledged write",
    "J8": "Old and new code run together while migrating",
    "J11": "A backup comes back whole, in time",
    "J9": "A model and the store never differ",
    "A1": "Events can be added and read, nothing else",
    "A2": "Tampering with the events is found and named",
    "A3": "Events have no place for a value",
    "A4": "Every read and change of personal data leaves one event",
    "A5": "Staff see masks; a look is the customer's to see",
    "A6": "Staff cannot export, search values or impersonate",
    "P1": "Cards, accounts, identity numbers and secrets are refused",
    "P2": "Health and other protected content is recognised",
    "P3": "Facts about other people are recognised",
    "P4": "The filter stands at every way in and fails closed",
    "P5": "The filter is fast on any text",
    "P6": "Logs hold codes and ids only",
    "O1": "The pages are for everyone",
    "O2": "The supply chain is pinned and scanned",
    "O4": "The ASVS file answers every line",
    "O5": "Who was touched can be told after a breach",
    "O6": "Secrets rotate without a stop",
}
"""What each row of the requirements promises, in a line. The rows whose issue is done or under way; more are added with it."""

Figure = Callable[[str, str], None]


@pytest.fixture
def figure(record_property: Callable[[str, object], None]) -> Figure:
    def say(row: str, text: str) -> None:
        assert row in ROWS, f"{row} is not a row of tests/figures.py"
        print(f"\n{row} {text}")
        record_property(row, text)

    return say


class Results:
    """What the tests that passed said, gathered where they end: in the process that started the run."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.said: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        self.skipped = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.skipped |= report.skipped
        if report.when == "call" and report.passed:
            for row, text in report.user_properties:
                if row in ROWS and text not in self.said[row][self._name(report.nodeid)]:
                    self.said[row][self._name(report.nodeid)].append(str(text))

    @staticmethod
    def _name(nodeid: str) -> str:
        """Without the parameters: a table of one test is one entry."""
        return nodeid.partition("[")[0].removeprefix("tests/")

    @property
    def silent(self) -> list[str]:
        return [row for row in ROWS if not self.said[row]]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        lines = [
            "# What each requirement's test measured",
            "",
            "Written by `make check`; not by hand. `make check-deep` runs the same tests at their full figures.",
            "",
            "| row | promise | figure | test |",
            "|---|---|---|---|",
        ]
        for row, promise in ROWS.items():
            for test, texts in self.said[row].items() or {"": ["no figure in this run"]}.items():
                told = "; ".join(texts).replace("|", "\\|")
                lines.append(f"| {row} | {promise} | {told} | {f'`{test}`' if test else ''} |")
        self.file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        # Where a browser or Redis is missing, their tests say so; a row of theirs has no figure then.
        if self.silent and not self.skipped and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.silent:
            terminalreporter.write_line(f"rows without a figure: {' '.join(self.silent)}")


def pytest_configure(config: pytest.Config) -> None:
    file = os.environ.get("RESULTS")
    if file and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Results(Path(file)))
