"""Nothing that was written runs anywhere: page, admin, mail, spreadsheet, printed page. 200 texts in every field.

They are planted in the tables themselves: the write filter refuses most of them, and the pages must not rely on that.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from django.core import mail
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Browser

from memory_portal import post, store, takeout
from memory_portal.models import Customer, FactEvent, FactRead, FactRevision, MemoryFact, Proposal, Tombstone
from tests.figures import Figure
from tests.payloads import payloads
from tests.people import Person

TEXTS = payloads()
MARKUP = [text for text in TEXTS if "<" in text or '"' in text]


@pytest.fixture(autouse=True)
def fresh_limits() -> None:
    cache.clear()


@pytest.fixture
def planted(alice: Person) -> Person:
    """One row of each table for each text, with the text in every field that takes one."""
    now = timezone.now()
    said = {"said_at": now, "category": "preference", "source_session_id": "0" * 12}

    def words(n: int, text: str) -> dict[str, Any]:
        short = text[:60].replace("\0", "")
        return {
            "key": f"{short[:56]}{n}",
            "value": text,
            "source_quote": text,
            "agent": short,
            "extractor": short,
            "topics": [text[:40]],
        }

    MemoryFact.objects.bulk_create(
        (
            MemoryFact(customer=alice.customer, created_at=now, origin="extraction", **words(n, text), **said)
            for n, text in enumerate(TEXTS)
        ),
        batch_size=100,
    )
    facts = dict(MemoryFact.objects.values_list("value", "pk"))
    FactRevision.objects.bulk_create(
        FactRevision(
            fact_id=pk,
            version=1,
            value=text,
            category=text[:32],
            source_quote=text,
            origin="agent",
            said_at=now,
            replaced_at=now,
        )
        for text, pk in facts.items()
    )
    Proposal.objects.bulk_create(
        (
            Proposal(
                customer=alice.customer, reason="imported", value_mac=str(n), origin="agent", created_at=now,
                expires_at=now.replace(year=now.year + 1), **words(n, text), **said,
            )
            for n, text in enumerate(TEXTS)
        ),
        batch_size=100,
    )  # fmt: skip
    Tombstone.objects.bulk_create(
        Tombstone(customer=alice.customer, key=f"{text[:56]}{n}", value_mac=str(n), watermark=now, reason="forgotten")
        for n, text in enumerate(TEXTS)
    )
    FactEvent.objects.bulk_create(
        FactEvent(customer=alice.customer, at=now, kind="learned", key=text[:64], agent=text[:64], actor_kind="job")
        for text in TEXTS
    )
    FactRead.objects.bulk_create(
        FactRead(customer=alice.customer, at=now, agent=text[:64], layer=1, fact_ids=list(facts.values())[:3])
        for text in TEXTS[:50]
    )
    Customer.objects.update(
        display_name=MARKUP[0][:80], never_words=[text[:64] for text in TEXTS[:50]], no_use_agents=[MARKUP[1][:64]]
    )
    return alice


PAGES = [
    "/",
    "/?page=2",
    "/?page=3",
    "/?page=4",
    "/?select=1",
    "/suggestions/",
    "/activity/",
    "/control/",
    "/assistant/",
]


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_nothing_runs_on_any_page_nor_on_the_printed_one(
    browser: Browser, live_server: Any, planted: Person, tmp_path: Path, figure: Figure
) -> None:
    planted.proves()
    there = planted.post("/take/", {"form": "html"}).headers["Location"]
    printed = tmp_path / "memory.html"
    printed.write_bytes(planted.post(there).content)
    context = browser.new_context(base_url=live_server.url)
    cookie = planted.client.cookies["sessionid"].value
    context.add_cookies([{"name": "sessionid", "value": cookie, "url": live_server.url}])
    page = context.new_page()
    foreign: list[str] = []
    page.on("request", lambda asked: foreign.append(asked.url) if "evil.example" in asked.url else None)
    page.on("dialog", lambda dialog: foreign.append(dialog.message))
    for path in [*PAGES, printed.as_uri()]:
        page.goto(path)
        assert page.evaluate("window.ran") is None, path
        assert page.locator("main img, main iframe, main object, main base, article img").count() == 0, path
    context.close()
    assert foreign == []
    figure("W9", f"{len(TEXTS)} payloads in every field, {len(PAGES) + 1} pages in a browser: 0 ran")


def test_no_markup_stands_unescaped_in_any_page_or_admin_table(planted: Person, staff: Client, figure: Figure) -> None:
    pages = {path: planted.get(path).content.decode() for path in PAGES}
    for model in (Customer, MemoryFact, Proposal, FactEvent, FactRead, Tombstone):
        name = f"admin:memory_portal_{model._meta.model_name}"
        pages[name] = staff.get(reverse(f"{name}_changelist")).content.decode()
        first = model._base_manager.earliest("pk")
        pages[f"{name} page"] = staff.get(reverse(f"{name}_change", args=[first.pk])).content.decode()
    for where, page in pages.items():
        for text in MARKUP:
            assert text not in page or "<" not in text, (where, text)
    assert "SECRET_KEY }}" in pages["/"] + pages["/?page=2"] + pages["/?page=3"] + pages["/?page=4"], (
        "shown as it stands"
    )
    figure("W9", f"{len(MARKUP)} of them with markup, {len(pages)} pages and admin tables: 0 unescaped")


def test_no_cell_of_the_spreadsheet_is_a_formula_and_every_text_is_in_it(planted: Person, figure: Figure) -> None:
    text = takeout.as_csv(store.everything_kept(planted.pk)).removeprefix("\ufeff")
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert len(rows) == 1 + 3 * len(TEXTS)
    cells = [cell for row in rows for cell in row]
    assert [cell for cell in cells if cell.startswith(takeout.FORMULA)] == []
    assert {takeout.untamed(row[2]) for row in rows[1:]} >= set(TEXTS)
    figure("W9", f"{len(cells):,} cells of the spreadsheet: 0 formulas")


def test_no_mail_carries_any_of_it(planted: Person, figure: Figure) -> None:
    post.notify(planted.customer, "exported", when=timezone.now())
    post.notify(planted.customer, "digest", count=3)
    Client().post("/sign-in/", {"email": "alice@example.org"})
    sent = [f"{message.subject}\n{message.body}" for message in mail.outbox]
    assert len(sent) == 3
    for message in sent:
        assert [text for text in MARKUP if text in message] == []
        assert "\r" not in message.partition("\n")[0]
    figure("W9", f"{len(sent)} kinds of mail: 0 payloads")
