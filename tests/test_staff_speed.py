"""The staff's lists and pages find their rows by an index, however many there are."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import pytest
from django.contrib import admin
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from agent_bridge.models import ExtractionJob
from memory_portal.models import Consent, Customer, FactEvent, FactRead, MemoryFact, PrivacyRequest, Proposal, Tombstone
from tests.figures import Figure

LARGE = (Customer, MemoryFact, Proposal, Tombstone, Consent, FactEvent, FactRead, ExtractionJob)

FILL = """
INSERT INTO memory_portal_customer (id, profile, subject_id, display_name, email, region, purge_generation, version, salt,
    no_learn_categories, no_use_categories, no_learn_agents, no_use_agents, never_words, created_at)
    SELECT 10000000 + n, (ARRAY['grocery', 'airline', 'retail'])[1 + n %% 3], 'c' || n, '',
    CASE n %% 4 WHEN 0 THEN '' ELSE n || '@example.org' END,
    '', 0, 0, '\\x00', '{}', '{}', '{}', '{}', '{}', %(now)s FROM generate_series(1, %(rows)s) n;
INSERT INTO memory_portal_memoryfact (customer_id, key, value, category, topics, source_quote, source_session_id, agent, extractor,
    said_at, origin, state, freeze_reason, locked, created_at, version)
    SELECT 10000000 + n, 'coffee', 'dark', 'preference', '{}', '', '', 'helper', '', %(now)s, 'extraction', 'active', '',
    false, %(now)s, 1
    FROM generate_series(1, %(rows)s) n;
INSERT INTO memory_portal_proposal (customer_id, key, value, category, topics, source_quote, source_session_id, agent, extractor,
    said_at, origin, action, reason, value_mac, created_at, expires_at)
    SELECT 10000000 + n, 'tea', 'green', 'preference', '{}', '', '', 'helper', '', %(now)s, 'extraction',
    'remember', 'imported', '', %(now)s,
    %(now)s + interval '1 day' FROM generate_series(1, %(rows)s) n;
INSERT INTO memory_portal_tombstone (customer_id, key, value_mac, quote_mac, source_session_id, watermark, reason)
    SELECT 10000000 + n, 'milk', '', '', '', %(now)s, 'forgotten' FROM generate_series(1, %(rows)s) n;
INSERT INTO memory_portal_consent (customer_id, purpose, text_version, channel, language, given_at)
    SELECT 10000000 + n, 'safety', '1', 'portal', 'en', %(now)s FROM generate_series(1, %(rows)s) n;
INSERT INTO memory_portal_factevent (customer_id, at, kind, key, code, actor_kind, actor_id, agent)
    SELECT 10000000 + n, %(now)s - n * interval '1 second', CASE n %% 50 WHEN 0 THEN 'revealed' ELSE 'learned' END, 'coffee', '',
    CASE n %% 50 WHEN 0 THEN 'staff' ELSE 'job' END, (n %% 30)::text, '' FROM generate_series(1, %(rows)s) n;
INSERT INTO memory_portal_factread (customer_id, at, agent, layer, source_session_id, fact_ids)
    SELECT 10000000 + n, %(now)s - n * interval '1 second', 'helper', 1, '', '{}' FROM generate_series(1, %(rows)s) n;
INSERT INTO agent_bridge_extractionjob (id, customer_id, agent, profile, source_session_id, turns, generation, state, attempts,
    run_after,
    created_at, finished_at, outcome, counts, extractor, prompt_version, input_tokens, output_tokens, cost, batch, reserved_tokens)
    SELECT gen_random_uuid(), 10000000 + n, 'helper', 'grocery', '', '[]', 0,
    CASE n %% 1000 WHEN 0 THEN 'parked' WHEN 1 THEN 'queued' ELSE 'done' END,
    1, %(now)s, %(now)s - n * interval '1 second', CASE n %% 1000 WHEN 1 THEN NULL ELSE %(now)s END,
    CASE n %% 1000 WHEN 0 THEN 'garbage' ELSE '' END, '{}', 'x', 'y', 0, 0, 0, '', 0
    FROM generate_series(1, %(rows)s) n;
"""


def fill(rows: int) -> None:
    with connection.cursor() as cursor:
        for statement in FILL.split(";\n")[:-1]:
            cursor.execute(statement, {"now": timezone.now(), "rows": rows})
        for model in LARGE:
            cursor.execute(f"ANALYZE {model._meta.db_table}")


def pages(some: int) -> dict[str, str]:
    found: dict[str, str] = {
        "the front page": reverse("admin:index"),
        "the customer": reverse("admin:memory_portal_customer_change", args=[some]),
    }
    for model in LARGE:
        meta = model._meta
        path = reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist")
        found[f"{meta.model_name}, the newest"] = path
        found[f"{meta.model_name}, page 20"] = f"{path}?p=20"
        if admin.site.get_model_admin(model).get_search_fields(None):  # type: ignore[arg-type]
            for term in ("c77", "78@example.org", "nobody"):
                found[f"{meta.model_name} of {term}"] = f"{path}?q={term}"
        if model not in (Customer, ExtractionJob):
            found[f"{meta.model_name} by customer"] = f"{path}?customer={some}"
    jobs = reverse("admin:agent_bridge_extractionjob_changelist")
    for query in ("state=open", "state=parked", "state=parked&outcome=garbage"):
        found[f"jobs, {query}"] = f"{jobs}?{query}"
    find = reverse("admin:memory_portal_find")
    return found | {"found by id": f"{find}?q=c77", "found by address": f"{find}?q=78@example.org"}


def large_ones() -> set[str]:
    """Tables, or months of one, that are worth an index: not the months to come."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relkind = 'r' AND reltuples > 1000")
        return {name for (name,) in cursor.fetchall()}


def scans(client: Client, path: str) -> list[str]:
    """Statements of the page that go through a whole large table, as PostgreSQL plans them."""
    with CaptureQueriesContext(connection) as asked:
        answer = client.get(path)
        assert answer.status_code in (200, 302), path
    large, found = large_ones(), []
    for query in asked:
        if query["sql"].startswith("SELECT"):
            with connection.cursor() as cursor:
                cursor.execute("EXPLAIN (FORMAT JSON) " + query["sql"])
                ((plan,),) = cursor.fetchall()
            if large & set(whole(plan[0]["Plan"])):
                found.append(query["sql"])
    return found


def whole(plan: dict[str, Any]) -> list[str]:
    """What is read from end to end. The first rows of a table, for want of an order, are not that."""
    below = plan.get("Plans", [])
    if plan["Node Type"] == "Limit" and below[0]["Node Type"] == "Seq Scan" and "Filter" not in below[0]:
        return []
    here = [plan["Relation Name"]] if plan["Node Type"] == "Seq Scan" else []
    return here + [name for child in below for name in whole(child)]


def test_no_page_of_staff_reads_a_large_table_through(staff: Client, figure: Figure) -> None:
    rows = int(os.environ.get("STAFF_ROWS", "20000"))
    fill(rows)
    found = pages(10_000_077)
    bad = {name: sql for name, path in found.items() if (sql := scans(staff, path))}
    assert bad == {}, json.dumps(bad, indent=1)
    figure("A6", f"{len(found)} pages and searches over {rows:,} rows a table: 0 plans read one through")


def test_the_check_sees_a_scan(db: None) -> None:
    fill(5_000)
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (FORMAT JSON) SELECT count(*) FROM memory_portal_memoryfact WHERE value LIKE 'd%'")
        ((plan,),) = cursor.fetchall()
    assert whole(plan[0]["Plan"]) == ["memory_portal_memoryfact"]


def test_only_what_stays_small_is_left_out_of_it() -> None:
    small = {
        "agent_bridge.AgentKey",
        "agent_bridge.Webhook",
        "agent_bridge.Import",
        "memory_portal.StaffAlert",
        PrivacyRequest._meta.label,
    }
    ours: set[type[Model]] = {
        model for model in admin.site._registry if model._meta.app_label in ("memory_portal", "agent_bridge")
    }
    assert {model._meta.label for model in ours - set(LARGE)} == small


@pytest.mark.deep
def test_with_a_million_customers_every_page_of_staff_is_fast(staff: Client, figure: Figure) -> None:
    rows = int(os.environ.get("STAFF_ROWS", "1000000"))
    fill(rows)
    found = pages(10_000_077)
    took: dict[str, float] = {}
    for name, path in found.items():
        staff.get(path)
        began = time.perf_counter()
        assert staff.get(path).status_code in (200, 302)
        took[name] = time.perf_counter() - began
    slowest = max(took, key=lambda name: took[name])
    print({name: round(1000 * seconds) for name, seconds in took.items()})
    assert took[slowest] < 0.5
    bad = {name: sql for name, path in found.items() if (sql := scans(staff, path))}
    assert bad == {}
    figure(
        "A6",
        f"{rows:,} customers: {len(found)} pages of staff, the slowest ({slowest}) in {1000 * took[slowest]:.0f} ms",
    )
