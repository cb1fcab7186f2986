"""The ledger of requests by hand: entered with codes, taken on step by step under the law's clock, kept 24 months, then gone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as configured
from django.db.models import CharField, TextField
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memory_portal import store
from memory_portal.enums import Channel, ExtensionReason, Regime, RequestKind, RequestOutcome
from memory_portal.models import PrivacyRequest, StaffAlert
from memory_portal.store import requests
from tests.conftest import NOW
from tests.figures import Figure
from tests.office import OFFICER, browser_of, member
from tests.people import Person

DAY = timedelta(days=1)
CANARY = "zephyrquilt"


def entered(
    kind: RequestKind = RequestKind.ACCESS,
    regime: Regime = Regime.GDPR,
    *,
    at: datetime = NOW,
    who: Person | None = None,
) -> PrivacyRequest:
    return requests.enter(
        kind, regime, Channel.LETTER, received_at=at, staff_id=7, now=at, customer=who.customer if who else None
    )


def again(row: PrivacyRequest) -> PrivacyRequest:
    return PrivacyRequest.objects.get(pk=row.pk)


@pytest.mark.django_db
def test_a_request_is_late_from_the_instant_after_its_day() -> None:
    row = entered(at=datetime(2026, 5, 14, 14, tzinfo=UTC))
    assert requests.days(row, NOW).answer == date(2026, 6, 15), "14 June is a Sunday"
    last = datetime(2026, 6, 16, tzinfo=UTC)
    assert not requests.is_late(row, last - timedelta(microseconds=1))
    assert requests.is_late(row, last)
    requests.answer(row.pk, RequestOutcome.DONE, now=last - timedelta(seconds=1))
    assert not requests.is_late(again(row), last + 300 * DAY), "answered in time stays so"


@pytest.mark.django_db
def test_the_day_is_that_of_the_place_where_the_company_is(settings: Any) -> None:
    settings.TIME_ZONE = "Asia/Tokyo"
    timezone.get_default_timezone.cache_clear()
    try:
        row = entered(at=datetime(2026, 5, 31, 16, tzinfo=UTC))  # 1 June in Tokyo
        assert requests.days(row, NOW).answer == date(2026, 7, 1)
    finally:
        settings.TIME_ZONE = "UTC"
        timezone.get_default_timezone.cache_clear()


@pytest.mark.django_db
def test_holidays_come_out_of_the_policy(settings: Any, tmp_path: Path) -> None:
    row = entered(at=datetime(2026, 11, 25, 9, tzinfo=UTC))
    assert requests.days(row, NOW).answer == date(2026, 12, 25)
    policy = Path(configured.MEMORY_POLICY).read_text("utf-8").replace("gdpr = []", "gdpr = [2026-12-25, 2026-12-28]")
    settings.MEMORY_POLICY = tmp_path / "policy.toml"
    settings.MEMORY_POLICY.write_text(policy, "utf-8")
    assert requests.days(row, NOW).answer == date(2026, 12, 29)


@pytest.mark.django_db
def test_an_extension_is_told_within_the_first_month_and_once() -> None:
    row = entered()
    requests.extend(row.pk, ExtensionReason.COMPLEX, now=NOW + 20 * DAY)
    assert (again(row).extension_reason, requests.days(row, NOW).extended) == ("complex", date(2026, 8, 14))
    assert not requests.is_late(again(row), NOW + 60 * DAY)
    assert requests.is_late(again(row), NOW + 95 * DAY)
    with pytest.raises(store.WrongMoment):
        requests.extend(row.pk, ExtensionReason.COMPLEX, now=NOW + 21 * DAY)
    with pytest.raises(store.WrongMoment):
        requests.extend(entered().pk, ExtensionReason.NUMEROUS, now=NOW + 40 * DAY)
    for kind, regime in ((RequestKind.COMPLAINT, Regime.UK), (RequestKind.OBJECTION, Regime.CCPA)):
        with pytest.raises(store.WrongMoment):
            requests.extend(entered(kind, regime).pk, ExtensionReason.COMPLEX, now=NOW)


@pytest.mark.django_db
def test_in_the_uk_the_clock_stands_still_while_the_person_is_asked() -> None:
    row = entered(regime=Regime.UK)
    requests.ask_back(row.pk, now=NOW + 2 * DAY)
    assert requests.days(again(row), NOW + 12 * DAY).answer == date(2026, 6, 24)
    requests.hear_back(row.pk, now=NOW + 5 * DAY)
    assert (again(row).paused_days, again(row).asked_back_at) == (3, None)
    assert requests.days(again(row), NOW + 90 * DAY).answer == date(2026, 6, 17)
    requests.ask_back(row.pk, now=NOW + 6 * DAY)
    requests.answer(row.pk, RequestOutcome.DONE, now=NOW + 7 * DAY)
    assert again(row).paused_days == 4


WRONG: list[tuple[str, Callable[[int], object]]] = [
    ("gdpr", lambda pk: requests.ask_back(pk, now=NOW)),
    ("ccpa", lambda pk: requests.ask_back(pk, now=NOW)),
    ("uk", lambda pk: requests.hear_back(pk, now=NOW)),
    ("uk", lambda pk: (requests.ask_back(pk, now=NOW), requests.ask_back(pk, now=NOW))),
    ("ccpa", lambda pk: (requests.acknowledge(pk, now=NOW), requests.acknowledge(pk, now=NOW))),
    ("gdpr", lambda pk: (requests.answer(pk, RequestOutcome.DONE, now=NOW), requests.acknowledge(pk, now=NOW))),
    (
        "gdpr",
        lambda pk: (
            requests.answer(pk, RequestOutcome.DONE, now=NOW),
            requests.answer(pk, RequestOutcome.DONE, now=NOW),
        ),
    ),
]


@pytest.mark.django_db
@pytest.mark.parametrize(("regime", "step"), WRONG)
def test_a_step_out_of_turn_is_refused(regime: str, step: Callable[[int], object]) -> None:
    row = entered(regime=Regime(regime))
    with pytest.raises(store.WrongMoment):
        step(row.pk)


@pytest.mark.django_db
def test_what_is_yet_to_come_or_never_was_is_refused() -> None:
    with pytest.raises(store.WrongMoment):
        requests.enter(RequestKind.ACCESS, Regime.GDPR, Channel.MAIL, received_at=NOW + DAY, staff_id=7, now=NOW)
    with pytest.raises(store.NotFound):
        requests.acknowledge(404, now=NOW)


@pytest.mark.django_db
def test_it_is_kept_24_months_after_the_answer_and_an_open_one_as_long_as_it_is_open() -> None:
    row, never = entered(), entered()
    requests.answer(row.pk, RequestOutcome.DONE, now=datetime(2026, 5, 31, 12, tzinfo=UTC))
    StaffAlert.objects.create(staff_id=7, at=datetime(2026, 5, 31, 12, tzinfo=UTC), customers=21)
    end = datetime(2028, 5, 31, tzinfo=UTC)
    assert store.sweep_requests(now=end - timedelta(microseconds=1)) == {"requests": 0, "alarms": 0}
    assert store.sweep_requests(now=end) == {"requests": 1, "alarms": 1}
    assert list(PrivacyRequest.objects.all()) == [never]


def test_the_ledger_has_no_place_for_a_text(figure: Figure, alice: Person) -> None:
    """Every column of letters takes codes out of a fixed list; what is written into the form beside them stands nowhere."""
    words = [field for field in PrivacyRequest._meta.concrete_fields if isinstance(field, CharField | TextField)]
    assert words
    assert all(field.choices for field in words)
    client = browser_of(member(OFFICER))
    told = {"who": "alice", "kind": "access", "regime": "gdpr", "channel": "letter", "received_at": "2026-05-01T09:00"}
    found = 0
    for name in told:
        client.post(reverse("admin:memory_portal_privacyrequest_add"), {**told, name: CANARY})
    for name in ("note", "value", "outcome", "extension_reason"):
        client.post(reverse("admin:memory_portal_privacyrequest_add"), {**told, name: CANARY})
    row = PrivacyRequest.objects.first()
    assert row
    for step, data in (
        ("extend", {"reason": CANARY}),
        ("answer", {"outcome": CANARY}),
        ("answer", {"outcome": "done", "note": CANARY}),
    ):
        client.post(reverse("admin:memory_portal_step", args=[row.pk, step]), data)
    found += str(list(PrivacyRequest.objects.values())).count(CANARY)
    assert found == 0
    figure(
        "R11",
        f"a planted word in {len(told) + 7} places of form and steps: {found} found in the ledger, kept 24 months, then swept",
    )


def test_an_officer_takes_a_request_from_its_letter_to_its_answer(alice: Person) -> None:
    client = browser_of(member(OFFICER))
    told = {
        "who": "alice@example.org",
        "kind": "erasure",
        "regime": "uk",
        "channel": "mail",
        "received_at": _yesterday(),
    }
    page = client.post(reverse("admin:memory_portal_privacyrequest_add"), told, follow=True)
    assert page.status_code == 200
    row = PrivacyRequest.objects.get()
    assert (row.customer, row.kind, row.regime) == (alice.customer, "erasure", "uk")
    here = reverse("admin:memory_portal_privacyrequest_change", args=[row.pk])
    assert "Answer by" in client.get(here).content.decode()
    assert reverse("admin:memory_portal_erase", args=[alice.pk]) in client.get(here).content.decode()
    for step, data in (("acknowledge", {}), ("ask-back", {}), ("hear-back", {}), ("extend", {"reason": "numerous"})):
        assert client.post(reverse("admin:memory_portal_step", args=[row.pk, step]), data).headers["Location"] == here
    client.post(reverse("admin:memory_portal_erase", args=[alice.pk]), {"reason": "customer_asked", "sure": "alice"})
    assert f"{alice.pk}, who is erased" in client.get(here).content.decode()
    client.post(reverse("admin:memory_portal_step", args=[row.pk, "answer"]), {"outcome": "done"})
    row.refresh_from_db()
    assert (row.outcome, row.extension_reason, row.acknowledged_at is not None) == ("done", "numerous", True)
    assert row.customer_id == alice.pk, "a number that stands for nobody any more"
    late = client.post(reverse("admin:memory_portal_step", args=[row.pk, "answer"]), {"outcome": "done"}, follow=True)
    assert "not open now" in late.content.decode()
    assert client.post(reverse("admin:memory_portal_step", args=[row.pk, "no-such-step"])).status_code == 404
    assert (
        client.post(reverse("admin:memory_portal_step", args=[404, "answer"]), {"outcome": "done"}).status_code == 404
    )
    assert client.get(reverse("admin:memory_portal_step", args=[row.pk, "answer"])).status_code == 405


def _yesterday() -> str:
    return (timezone.localtime() - DAY).strftime("%Y-%m-%dT%H:%M")


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("who", "nobody"),
        ("received_at", "2999-01-01T00:00"),
        ("received_at", "soon"),
        ("kind", "other"),
        ("regime", ""),
        ("who", "x\0"),
    ],
)
def test_a_wrong_form_enters_nothing(alice: Person, field: str, said: str) -> None:
    told = {
        "who": "alice",
        "kind": "access",
        "regime": "gdpr",
        "channel": "mail",
        "received_at": _yesterday(),
        field: said,
    }
    answer = browser_of(member(OFFICER)).post(reverse("admin:memory_portal_privacyrequest_add"), told)
    assert answer.status_code == 200
    assert "errorlist" in answer.content.decode()
    assert not PrivacyRequest.objects.exists()


def test_a_request_of_nobody_we_know_is_entered_too(db: None) -> None:
    told = {"who": "", "kind": "access", "regime": "ccpa", "channel": "phone", "received_at": _yesterday()}
    browser_of(member(OFFICER)).post(reverse("admin:memory_portal_privacyrequest_add"), told)
    assert PrivacyRequest.objects.get().customer is None


def test_open_ones_are_listed_the_oldest_first_and_found_by_their_customer(alice: Person, bob: Person) -> None:
    now = timezone.now()
    new, old, done = (entered(at=now - days * DAY, who=alice) for days in (1, 60, 90))
    entered(at=now - 2 * DAY, who=bob)
    requests.answer(done.pk, RequestOutcome.DONE, now=now)
    client = browser_of(member(OFFICER))
    listed = reverse("admin:memory_portal_privacyrequest_changelist")
    shown = client.get(listed, {"q": "alice"})
    assert [row.pk for row in shown.context["cl"].result_list] == [old.pk, new.pk]
    assert shown.content.decode().count("Late") == 1
    assert [row.pk for row in client.get(listed, {"state": "answered"}).context["cl"].result_list] == [done.pk]
    front = client.get("/admin/").content.decode()
    assert front.index(f"Access {old.pk}") < front.index(f"Access {new.pk}")


def test_the_customer_s_page_tells_of_their_requests(alice: Person, client: Client) -> None:
    row = entered(at=timezone.now() - DAY, who=alice)
    page = (
        browser_of(member(OFFICER))
        .get(reverse("admin:memory_portal_customer_change", args=[alice.pk]))
        .content.decode()
    )
    assert reverse("admin:memory_portal_privacyrequest_change", args=[row.pk]) in page
