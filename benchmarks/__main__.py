"""`make bench`: load, run ours and the others in one run, alternating, and write docs/performance.md. `--small` fits a build server.

In: how large. Out: the page, docs/growth.svg, and the figures as JSON under var/bench. What cannot be installed is named as skipped.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import psycopg

from benchmarks import callers, ground, meter, purge, report, spread, web
from benchmarks.callers import Contestant
from benchmarks.report import Target, ratio

OTHERS = str(ground.VAR / "venv" / "bin" / "python")
RAW, OURS, PLAIN, FLOOR = "psycopg by hand", "ours", "ours, without the note", "psycopg by hand, with a note"
PEERS = {
    "LangGraph PostgresStore",
    "LangGraph, one call cut by hand",
    "Django's ORM",
    "one JSON file",
    "mem0 (qdrant, local)",
    "mem0 (faiss)",
}

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
    Contestant("ours, layer 1", "benchmarks.inside:our_context"),
    Contestant("mem0 (faiss)", "benchmarks.others:mem0_search", weight=0.2, python=OTHERS, more={"kept": "faiss"}),
]
WRITES = [
    Contestant(RAW, "benchmarks.inside:raw_upsert"),
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

        growth = grown(connection, settings, customers, rounds, n, pids)
        settings["customers"] = customers
        ground.aside(connection, customers)

        run = {"rounds": rounds, "n": n, "server": pids}
        callers.compare(
            [Contestant("tables", "benchmarks.others:langgraph_tables", python=OTHERS)],
            {**settings, "url": server.url},
            rounds=1,
            n=2,
            server=pids,
        )
        connection.execute("VACUUM (ANALYZE)")
        reads = told("reads", callers.compare(READS, settings, **run))
        several = {
            clients: told(f"reads by {clients}", callers.compare(
                [replace(one, clients=clients, _workers=[]) for one in READS if one.name in (RAW, OURS, PLAIN, "LangGraph PostgresStore")],
                settings, rounds=rounds, n=n * 2, server=pids,
            )) for clients in ((4, 16) if customers >= 1_000_000 else (4,))
        }  # fmt: skip
        searches = told("searches", callers.compare(SEARCHES, settings, **run))
        writes = told("writes", callers.compare(WRITES, settings, **run))
        single = told("single", callers.compare(SINGLE, settings, **run))
        full = told("500 facts", callers.compare(
            [Contestant("20 facts", "benchmarks.inside:our_context"), Contestant("500 facts", "benchmarks.inside:our_context_of_the_fullest")],
            settings, **run,
        ))  # fmt: skip
        sites = web.sites(key, OTHERS)
        served = told(
            "HTTP",
            web.compare(sites, server.url, pids, connections=(1, 16), rounds=rounds, n=n * 3, customers=customers),
        )
        ours_web = told(
            "ours over HTTP",
            web.compare(ground.pages(key), server.url, pids, connections=(4,), rounds=rounds, n=n, customers=customers),
        )
        purged = purge.measured(server, customers, rounds=2)
        spreading = spread.measured(server, customers, rounds, n)
        sizes = ground.sizes(connection)
    write(
        said,
        page,
        growth,
        reads,
        several,
        searches,
        writes,
        single,
        full,
        sites,
        served,
        ours_web,
        purged,
        spreading,
        sizes,
    )


def told(name: str, results: dict) -> dict:  # type: ignore[type-arg]
    print(
        f"{name}: "
        + ", ".join(
            f"{place if isinstance(place, str) else ' '.join(map(str, place))} {one.cpu_us:,.0f} us"
            for place, one in results.items()
        ),
        flush=True,
    )
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


def write(
    said,
    page,
    growth,
    reads,
    several,
    searches,
    writes,
    single,
    full,
    sites,
    served,
    ours_web,
    purged,
    spreading,
    sizes,
) -> None:  # type: ignore[no-untyped-def]
    skipped = {one.name: one.skipped for one in (*READS, *WRITES) if one.skipped}
    http = {f"{name}, {width} connections": one for (name, width), one in served.items()}
    lang, one_call = "LangGraph PostgresStore", "LangGraph, one call cut by hand"
    four = several[4]

    def first(*names: str) -> float:
        return min((ratio(reads.get(OURS), reads.get(name)) for name in names), default=math.nan)

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
        Target("a context without the note", lang, ratio(reads.get(PLAIN), reads.get(lang)), 0.3),
        Target(
            "a context with its note",
            lang,
            ratio(reads.get(OURS), reads.get(lang)),
            0.3,
            "it writes a durable row; theirs writes none",
        ),
        Target("the same, their calls made one", one_call, ratio(reads.get(PLAIN), reads.get(one_call)), 0.5),
        Target("4 callers, without the note", lang, ratio(four.get(PLAIN), four.get(lang)), 0.3),
        Target(
            "p50 of a context without the note",
            lang,
            reads[PLAIN].wait(0.5) / reads[lang].wait(0.5) if lang in reads else math.nan,
            0.3,
        ),
        Target(
            "an upsert through the whole intake", "raw upsert", ratio(writes.get(OURS), writes.get(RAW)), 2.2, UPSERT
        ),
        Target(
            "an upsert through the whole intake",
            "LangGraph put",
            ratio(writes.get(OURS), writes.get(lang)),
            1.2,
            UPSERT,
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
        Target("HTTP, CPU", "FastAPI", ratio(served.get(("ours", 16)), served.get(("FastAPI", 16))), 1.8, HTTP),
        Target(
            "HTTP, CPU", "usual Django", ratio(served.get(("ours", 16)), served.get(("usual Django", 16))), 0.6, HTTP
        ),
        Target(
            "HTTP, p99",
            "bare Django",
            served[("ours", 16)].wait(0.99) / served[("bare", 16)].wait(0.99) if ("bare", 16) in served else math.nan,
            2.0,
            HTTP,
        ),
        Target(
            f"growth, {min(growth) * 20:,} to {max(growth) * 20:,} facts",
            "own CPU",
            ratio(ends[1].get(PLAIN), ends[0].get(PLAIN)),
            1.3,
            "more levels of the index, colder pages",
        ),
        Target(
            "20 to 500 facts of one customer",
            "own CPU",
            ratio(full.get("500 facts"), full.get("20 facts")),
            1.3,
            "all facts of the customer are looked at: the policy's cap of 200 bounds it",
        ),
        *purged.targets,
    ]
    said.section(
        "What was asked, and what it came to",
        report.table(["what", "beside", "asked", "found", ""], [target.row() for target in targets]),
    )
    said.section("A context read, layer 1, by one caller", report.compared(reads, RAW, skipped), CONTEXT)
    for clients, results in several.items():
        said.section(f"The same by {clients} callers at once", report.compared(results, RAW, {}))
    said.section(
        "Search",
        report.compared(searches, RAW, {}),
        "Ours ranks by words, topics, one wrong letter and six languages, and notes the read; the raw one is `ILIKE`.\n",
    )
    said.section("An upsert", report.compared(writes, RAW, {}), UPSERT + "\n")
    said.section("One by one", report.compared(single, "clear, psycopg by hand", {}))
    said.section(
        "Over HTTP",
        report.compared(http, "bare, 16 connections", {site.name: site.skipped for site in sites if site.skipped}),
        HTTP_TEXT,
    )
    said.section(
        "Our other pages and calls, 4 connections",
        report.compared({name: one for (name, _), one in ours_web.items()}, "", {}),
    )
    said.section("Growth", "![CPU of a context read over the number of facts](growth.svg)\n", report.table(
        ["facts", *next(iter(growth.values()))], [(f"{step * 20:,}", *(f"{report.us(one)} µs" for one in found.values())) for step, found in growth.items()]))  # fmt: skip
    said.section("Retention: a tenth of all facts reaches its end", purged.text)
    said.section("Facts spread over partitions by customer", spreading)
    said.section("Tables and indexes", sizes)
    page.write_text(said.text(), encoding="utf-8")
    lines = {
        name: [(step * 20, found[name].cpu_us) for step, found in growth.items() if name in found]
        for name in (RAW, PLAIN, OURS)
    }
    if len(growth) > 1:
        page.with_name("growth.svg").write_text(
            report.plot(lines, across="facts in the database", up="CPU of one read, µs"), encoding="utf-8"
        )
    (ground.VAR / "last.json").write_text(
        json.dumps({name: one.cpu_us for name, one in {**reads, **http}.items()}, indent=1)
    )
    print(f"written: {page}; {sum(target.met for target in targets)} of {len(targets)} targets met", flush=True)


CONTEXT = """`psycopg by hand` is the limit: one prepared statement on a kept connection, twenty rows, cut in Python. With a note it also inserts the
row that tells the customer who read what, in the same statement and commit. Ours decides by the policy, the customer's choices and the
budget, and answers only when its note is on the disk. A JSON file of 1,000 customers and mem0 with a few dozen are far smaller than the
database the others read from; mem0 is given vectors out of a hash, so no model's time is in it.
"""
HTTP_TEXT = """`bare` is one Django view with a raw cursor under the same server, `usual Django` a model and the default middleware under gunicorn, `FastAPI` an
async pool and a pydantic answer. None of them checks a key, counts a call, writes a note or has an ETag: ours does all of that.
"""
UPSERT = (
    "Ours locks the customer, reads all facts, tombstones and consents, filters, decides, and writes fact, former version, event and "
    "customer in one transaction: some fifteen statements beside one, made by Django's ORM. Its compiling of them, their round trips and the reading of 20 facts into words are about equal parts."
)
SEARCH = "words are stemmed and compared in Python, 20 facts by 6 languages"
HTTP = "the durable note is written in the same request; the others write nothing"

if __name__ == "__main__":
    main()
