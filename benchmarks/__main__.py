"""`make bench`: load, run ours and the others in one run, alternating, and write docs/performance.md. `--small` fits a build server.

In: how large. Out: the page, docs/growth.svg, and the figures as JSON under var/bench. What cannot be installed is named as skipped.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg

from benchmarks import callers, ground, meter, purge, report, spread, web
from benchmarks.callers import Contestant
from benchmarks.report import Target, ratio

OTHERS = str(ground.VAR / "venv" / "bin" / "python")
LANGGRAPH = "LangGraph PostgresStore"
RAW, OURS, PLAIN, FLOOR = "psycopg by hand", "ours", "ours, without the note", "psycopg by hand, with a note"
TRAIL = "psycopg by hand, with lock, version and event"
READS = [
    Contestant(RAW, "benchmarks.inside:raw_read"),
    Contestant(FLOOR, "benchmarks.inside:raw_read_and_note"),
    Contestant(OURS, "benchmarks.inside:our_context"),
    Contestant(PLAIN, "benchmarks.inside:our_context_without_note"),
    Contestant("ours, for a message (layers 1 and 2)", "benchmarks.inside:our_context_for_a_message", weight=0.5),
    Contestant("Django's ORM", "benchmarks.inside:orm_read"),
    Contestant("LangGraph PostgresStore", "benchmarks.others:langgraph_read", python=OTHERS),
    Contestant("LangGraph, one call cut by hand", "benchmarks.others:langgraph_read_in_one", python=OTHERS),
    Contestant("one JSON file", "benchmarks.others:json_read", weight=0.02),
    Contestant(
        "mem0 (qdrant, local)", "benchmarks.others:mem0_read", weight=0.03, python=OTHERS, more={"kept": "qdrant"}
    ),
    Contestant("mem0 (faiss)", "benchmarks.others:mem0_read", weight=0.2, python=OTHERS, more={"kept": "faiss"}),
]
SEARCHES = [
    Contestant(RAW, "benchmarks.inside:raw_search"),
    Contestant(OURS, "benchmarks.inside:our_search"),
    Contestant("ours, of fifty customers again and again", "benchmarks.inside:our_search_again"),
    Contestant("ours, layer 1", "benchmarks.inside:our_context"),
    Contestant("mem0 (faiss)", "benchmarks.others:mem0_search", weight=0.2, python=OTHERS, more={"kept": "faiss"}),
]
WRITES = [
    Contestant(RAW, "benchmarks.inside:raw_upsert"),
    Contestant(TRAIL, "benchmarks.inside:raw_upsert_with_its_trail"),
    Contestant(OURS, "benchmarks.inside:our_upsert"),
    Contestant("LangGraph PostgresStore", "benchmarks.others:langgraph_put", python=OTHERS),
    Contestant("one JSON file", "benchmarks.others:json_upsert", weight=0.02),
    Contestant(
        "mem0 (qdrant, local)", "benchmarks.others:mem0_add", weight=0.05, python=OTHERS, more={"kept": "qdrant"}
    ),
]
SINGLE = [
    Contestant("clear, psycopg by hand", "benchmarks.inside:raw_clear"),
    Contestant("clear, ours", "benchmarks.inside:our_clear", weight=0.5),
    Contestant("a conversation, from its row to its facts", "benchmarks.inside:our_job", weight=0.3),
    Contestant("export of a customer with 500 facts", "benchmarks.inside:our_export", weight=0.1),
]


def install() -> None:
    """The others' environment, once. Without it they are named as skipped."""
    wanted = ground.ROOT / "benchmarks" / "requirements.txt"
    mark = ground.VAR / "venv" / "installed"
    if mark.exists() and mark.read_text() == wanted.read_text():
        return
    print("installing the others under var/bench ...", flush=True)
    subprocess.run([sys.executable, "-m", "venv", ground.VAR / "venv"], check=False)
    pip = [OTHERS, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--require-hashes", "-r", wanted]
    if subprocess.run(pip, check=False, stderr=subprocess.DEVNULL).returncode == 0:
        mark.write_text(wanted.read_text())


def machine(settings: Mapping[str, object]) -> str:
    model = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        "",
    )
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = os.getloadavg()[1]
    return (
        f"This run: {time.strftime('%d %B %Y')}, {os.cpu_count()} cores ({model}), {gigabytes:.0f} GB, Python {platform.python_version()}, "
        f"PostgreSQL {settings['server']} on loopback with fsync on; {settings['customers']:,} customers with {settings['each']} facts. "
        f"The machine's load was {load:.1f} of {os.cpu_count()} at the start: "
        + ("others worked on it as well, which lengthens every wait." if load > 1 else "it did little else.")
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("--small", action="store_true", help="10,000 customers, a few minutes")
    parser.add_argument("--huge", action="store_true", help="1,000,000 customers")
    parser.add_argument("--customers", type=int)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--n", type=int, help="operations a round")
    parser.add_argument("--page", type=Path, default=ground.ROOT / "docs" / "performance.md")
    asked = parser.parse_args()
    customers = asked.customers or (10_000 if asked.small else 1_000_000 if asked.huge else 100_000)
    n = asked.n or (100 if asked.small else 300)
    ground.VAR.mkdir(parents=True, exist_ok=True)
    install()
    with ground.Server(f"postgres-{customers}") as server:
        measured(server, customers, asked.rounds, n, asked.small, asked.page)


def measured(server: ground.Server, customers: int, rounds: int, n: int, small: bool, page: Path) -> None:
    os.environ.update(
        DATABASE_URL=server.url,
        DJANGO_SETTINGS_MODULE="memory_portal.settings",
        LOG_LEVEL="ERROR",
        VAR_DIR=str(ground.VAR.parent),
    )
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    key = ground.key_for_all()
    with psycopg.connect(server.url, autocommit=True) as connection:
        version = connection.execute("SHOW server_version").fetchone()
        settings = {
            "url": server.url, "profile": ground.PROFILE, "customers": 0, "each": ground.FACTS_EACH, "json_customers": 1_000,
            "mem0_customers": 25, "server": version[0] if version else "",
        }  # fmt: skip
        said = report.Page(report.HEAD.format(rounds=rounds, machine=machine({**settings, "customers": customers})))
        pids = [server.pid]

        found = Found(growth=grown(connection, settings, customers, rounds, n, pids))
        settings["customers"] = customers
        ground.aside(connection, customers)
        run = {"rounds": rounds, "n": n, "server": pids}
        tables = [Contestant("tables", "benchmarks.others:langgraph_tables", python=OTHERS)]
        few, many = (
            [replace(one, clients=width, _workers=[]) for one in READS if one.name in (RAW, OURS, PLAIN, LANGGRAPH)]
            for width in (4, 16)
        )
        fullest = [
            Contestant("20 facts", "benchmarks.inside:our_context"),
            Contestant("200 facts", "benchmarks.inside:our_context_of_the_fullest", more={"who": "cap1"}),
            Contestant("500 facts", "benchmarks.inside:our_context_of_the_fullest", more={"who": "full1"}),
        ]
        stages = {
            "tables": lambda: callers.compare(tables, settings, rounds=1, n=2, server=pids),
            "reads": lambda: callers.compare(READS, settings, **run),
            "reads_by_4": lambda: callers.compare(few, settings, rounds=rounds, n=n * 2, server=pids),
            "reads_by_16": lambda: callers.compare(many, settings, rounds=rounds, n=n * 4, server=pids),
            "searches": lambda: callers.compare(SEARCHES, settings, **run),
            "writes": lambda: callers.compare(WRITES, settings, **run),
            "single": lambda: callers.compare(SINGLE, settings, **run),
            "full": lambda: callers.compare(fullest, settings, **run),
            "served": lambda: web.compare(
                web.sites(key, OTHERS),
                server.url,
                pids,
                connections=(1, 16),
                rounds=rounds,
                n=n * 3,
                customers=customers,
            ),
            "pages": lambda: web.compare(
                ground.pages(key), server.url, pids, connections=(4,), rounds=rounds, n=n, customers=customers
            ),
            "purged": lambda: purge.measured(server, customers, rounds=2),
            "spread": lambda: spread.measured(server, customers, rounds, n),
            "sizes": lambda: ground.sizes(connection),
        }
        for name, stage in stages.items():
            try:
                connection.execute("VACUUM (ANALYZE)")
                setattr(found, name, stage())
            except Exception as error:  # the rest is worth having, and the page says what is missing
                print(f"{name} was not measured: {type(error).__name__}: {error}", flush=True)
            told(name, getattr(found, name, None))
            write(said, page, found)


@dataclass
class Found:
    """What was measured so far; what is empty was not."""

    growth: dict[int, dict[str, meter.Result]] = field(default_factory=dict)
    tables: dict[str, meter.Result] = field(default_factory=dict)
    reads: dict[str, meter.Result] = field(default_factory=dict)
    reads_by_4: dict[str, meter.Result] = field(default_factory=dict)
    reads_by_16: dict[str, meter.Result] = field(default_factory=dict)
    searches: dict[str, meter.Result] = field(default_factory=dict)
    writes: dict[str, meter.Result] = field(default_factory=dict)
    single: dict[str, meter.Result] = field(default_factory=dict)
    full: dict[str, meter.Result] = field(default_factory=dict)
    served: dict[tuple[str, int], meter.Result] = field(default_factory=dict)
    pages: dict[tuple[str, int], meter.Result] = field(default_factory=dict)
    purged: purge.Purged = field(default_factory=lambda: purge.Purged([], ""))
    spread: str = ""
    sizes: str = ""


def told(name: str, results: object) -> Any:
    if isinstance(results, dict):
        each = (
            f"{place if isinstance(place, str) else ' '.join(map(str, place))} {one.cpu_us:,.0f} us"
            for place, one in results.items()
        )
        print(f"{name}: " + ", ".join(each), flush=True)
    return results


def grown(
    connection: psycopg.Connection, settings: dict, customers: int, rounds: int, n: int, pids: list[int]
) -> dict[int, dict[str, meter.Result]]:  # type: ignore[type-arg]
    """Filled step by step, and measured at each."""
    found = {}
    steps = [step for step in (50, 500, 5_000, 10_000, 50_000, 100_000, 1_000_000) if step < customers] + [customers]
    held = ground.held(connection)
    for step in steps:
        if step < held:
            continue
        seconds = ground.fill(connection, step)
        print(f"{step:,} customers filled in {seconds:.0f} s", flush=True)
        three = [one for one in READS if one.name in (RAW, OURS, PLAIN)]
        found[step] = told(
            f"{step * ground.FACTS_EACH:,} facts",
            callers.compare(three, {**settings, "customers": step}, rounds=rounds, n=n, server=pids),
        )
    return found


def write(said: report.Page, page: Path, found: Found) -> None:
    """The page, as far as the run has come."""
    said = report.Page(said.head)
    growth, reads, four, searches, writes = found.growth, found.reads, found.reads_by_4, found.searches, found.writes
    single, full, served, sixteen = found.single, found.full, found.served, found.reads_by_16
    skipped = {one.name: one.skipped for one in (*READS, *WRITES) if one.skipped}
    http = {f"{name}, {width} connections": one for (name, width), one in served.items()}
    lang, one_call = LANGGRAPH, "LangGraph, one call cut by hand"
    by_hand = math.nan
    if reads and ("bare", 16) in served:  # what the bare view would cost if it noted the read by hand
        by_hand = served[("ours", 16)].cpu_us / (served[("bare", 16)].cpu_us + reads[FLOOR].cpu_us - reads[RAW].cpu_us)

    commit = (
        f"{report.us(reads.get(FLOOR))} µs is what the same read and note cost by hand: a durable commit is most of it"
    )
    ends = (growth[min(growth)], growth[max(growth)]) if len(growth) > 1 else ({}, {})
    targets = [
        Target("a context with its note", "raw read", ratio(reads.get(OURS), reads.get(RAW)), 3.5, commit),
        Target(
            "a context without the note",
            "raw read",
            ratio(reads.get(PLAIN), reads.get(RAW)),
            2.2,
            "the rule in SQL, and Django's cursor",
        ),
        Target(
            "a context with its note",
            "the same by hand",
            ratio(reads.get(OURS), reads.get(FLOOR)),
            2.2,
            "the rule in SQL, and Django's cursor",
        ),
        Target("a context without the note", lang, ratio(reads.get(PLAIN), reads.get(lang)), 0.3, COLD),
        Target(
            "a context with its note",
            lang,
            ratio(reads.get(OURS), reads.get(lang)),
            0.3,
            "it writes a durable row; theirs writes none",
        ),
        Target("the same, their calls made one", one_call, ratio(reads.get(PLAIN), reads.get(one_call)), 0.5, COLD),
        Target("4 callers, without the note", lang, ratio(four.get(PLAIN), four.get(lang)), 0.3, COLD),
        Target("16 callers, without the note", lang, ratio(sixteen.get(PLAIN), sixteen.get(lang)), 0.3, COLD),
        Target(
            "p50 of a context without the note",
            lang,
            over(reads.get(PLAIN), reads.get(lang), 0.5),
            0.3,
            COLD,
        ),
        Target(
            "an upsert through the whole intake", "raw upsert", ratio(writes.get(OURS), writes.get(RAW)), 2.2, INTAKE
        ),
        Target(
            "an upsert through the whole intake",
            "LangGraph put",
            ratio(writes.get(OURS), writes.get(lang)),
            1.2,
            INTAKE,
        ),
        Target(
            "an upsert through the whole intake",
            "its four statements by hand",
            ratio(writes.get(OURS), writes.get(TRAIL)),
            2.2,
            "the decision itself: filters, comparison, policy",
        ),
        Target(
            "search of a customer's own facts",
            "own layer 1",
            ratio(searches.get(OURS), searches.get("ours, layer 1")),
            1.3,
            SEARCH,
        ),
        Target(
            "HTTP, key and scope checked, noted",
            "bare Django",
            ratio(served.get(("ours", 16)), served.get(("bare", 16))),
            1.5,
            HTTP,
        ),
        Target("HTTP, key and scope checked, noted", "bare Django, with a note by hand", by_hand, 1.5, HTTP),
        Target("HTTP, CPU", "FastAPI", ratio(served.get(("ours", 16)), served.get(("FastAPI", 16))), 1.8, HTTP),
        Target(
            "HTTP, CPU", "usual Django", ratio(served.get(("ours", 16)), served.get(("usual Django", 16))), 0.6, HTTP
        ),
        Target(
            "HTTP, p99",
            "bare Django",
            over(served.get(("ours", 16)), served.get(("bare", 16)), 0.99),
            2.0,
            HTTP,
        ),
        Target(
            f"growth, {min(growth) * 20:,} to {max(growth) * 20:,} facts",
            "own CPU",
            ratio(ends[1].get(PLAIN), ends[0].get(PLAIN)),
            1.3,
            "steps are minutes apart and the machine's own pace changes; the next line takes that out",
        ),
        Target(
            f"growth, {min(growth) * 20:,} to {max(growth) * 20:,} facts",
            "the limit's own growth",
            ratio(ends[1].get(PLAIN), ends[0].get(PLAIN)) / ratio(ends[1].get(RAW), ends[0].get(RAW)),
            1.3,
            "more levels of the index, colder pages",
        ),
        Target(
            "20 to 200 facts of one customer, the policy's cap",
            "own CPU",
            ratio(full.get("200 facts"), full.get("20 facts")),
            1.3,
            "all facts of the customer are looked at",
        ),
        *found.purged.targets,
    ]
    said.section(
        "What was asked, and what it came to",
        report.table(["what", "beside", "asked", "found", ""], [target.row() for target in targets]),
    )
    said.section("A context read, layer 1, by one caller", report.compared(reads, RAW, skipped), CONTEXT)
    said.section("The same by 4 callers at once", report.compared(four, RAW, {}))
    said.section("The same by 16 callers at once", report.compared(sixteen, RAW, {}))
    said.section(
        "Search",
        report.compared(searches, RAW, {}),
        "Ours ranks by words, topics, one wrong letter and six languages, and notes the read; the raw one is `ILIKE`.\n",
    )
    said.section("An upsert", report.compared(writes, RAW, {}), UPSERT)
    said.section("One by one", report.compared(single, "clear, psycopg by hand", {}))
    said.section(
        "Over HTTP",
        report.compared(http, "bare, 16 connections", {}),
        HTTP_TEXT,
    )
    said.section(
        "Our other pages and calls, 4 connections",
        report.compared({name: one for (name, _), one in found.pages.items()}, "", {}),
    )
    said.section("A customer with many facts", report.compared(full, "20 facts", {}), "The policy allows 200.\n")
    said.section("Growth", "![CPU of a context read over the number of facts](growth.svg)\n", report.table(
        ["facts", *next(iter(growth.values()))], [(f"{step * 20:,}", *(f"{report.us(one)} µs" for one in step_found.values())) for step, step_found in growth.items()]))  # fmt: skip
    said.section("Retention: a tenth of all facts reaches its end", found.purged.text or NOT_HERE)
    said.section("Facts spread over partitions by customer", found.spread or NOT_HERE)
    said.section("Tables and indexes", found.sizes or NOT_HERE)
    page.write_text(said.text(), encoding="utf-8")
    lines = {
        name: [(step * 20, there[name].cpu_us) for step, there in growth.items() if name in there]
        for name in (RAW, PLAIN, OURS)
    }
    if len(growth) > 1:
        page.with_name("growth.svg").write_text(
            report.plot(lines, across="facts in the database", up="CPU of one read, µs"), encoding="utf-8"
        )
    print(f"written: {page}; {sum(target.met for target in targets)} of {len(targets)} targets met", flush=True)


def over(one: meter.Result | None, other: meter.Result | None, part: float) -> float:
    return one.wait(part) / other.wait(part) if one and other else math.nan


NOT_HERE = "Not measured in this run.\n"
CONTEXT = """`psycopg by hand` is the limit: one prepared statement on a kept connection, twenty rows, cut in Python. With a note it also inserts the
row that tells the customer who read what, in the same statement and commit. Ours decides by the policy, the customer's choices and the
budget, and answers only when its note is on the disk. A JSON file of 1,000 customers and mem0 with a few dozen are far smaller than the
database the others read from; mem0 is given vectors out of a hash, so no model's time is in it.
"""
HTTP_TEXT = """`bare` is one Django view with a raw cursor under the same server, `usual Django` a model and the default middleware under gunicorn, `FastAPI` an
async pool and a pydantic answer. None of them checks a key, counts a call, writes a note or has an ETag: ours does all of that.
"""
UPSERT = """`with lock, version and event` is what ours reads and writes, as four prepared statements by hand and no decision: the customer's row
locked, all facts, the former version and the new one, the event and where the trail ends. Ours decides between them: it cleans the
text, looks for cards, identity papers, secrets and addresses in it, compares it with what is held and what was forgotten, asks the policy, and chains
the event. Of its processor time in Python a quarter goes to those filters, a quarter to reading what is held, the rest to four statements.
"""
INTAKE = "four statements and a decision stand beside one statement; the next line but one takes the statements out"
COLD = "on a busy machine every turn starts with cold caches, which costs more code more"
SEARCH = "twenty facts nobody searched before are read into words, in four languages and with their topics; the second time they are known"
HTTP = "the durable note is written in the same request; the others write nothing"

if __name__ == "__main__":
    main()
