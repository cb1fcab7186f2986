"""Each way to read or change what is remembered leaves its one note: every page, every route of the bridge, every tool, every
act of staff. The lists are walked from the resolver, the schema and the tool list, so that what is new fails until it stands here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from agent_bridge.rest import api
from memory_portal import handoff, store
from memory_portal.enums import EventKind, FreezeReason, Purpose
from memory_portal.models import FactEvent, FactRead, MemoryFact, Proposal
from tests.addresses import addresses, furnished
from tests.figures import Figure
from tests.mcp_caller import Caller, token_of
from tests.office import PASSWORD, browser_of
from tests.people import Person

pytestmark = pytest.mark.django_db

NO_FACT = "about the sign-in, mails or looks: nothing remembered is read or changed"
OWN_LOOK = "the customer looks at what is their own; that they signed in is noted"
ELSEWHERE = "the other end of it is noted: with the sign-in that it leads to"


@dataclass
class Act:
    """What is sent, and the kinds of events it leaves."""

    leaves: list[str]
    data: dict[str, Any] = field(default_factory=dict)
    before: Callable[[Person], object] = lambda who: None
    path: Callable[[Person], str] | None = None


def fact(key: str) -> MemoryFact:
    return MemoryFact.objects.get(key=key)


def at(name: str, key: str = "tea") -> Callable[[Person], str]:
    return lambda who: reverse(name, args=[fact(key).pk])


def now() -> Any:
    return timezone.now()


def frozen(who: Person) -> None:
    store.freeze(who.pk, fact("tea").pk, FreezeReason.WRONG, who.actor, now=now())


def paused(what: str) -> Callable[[Person], None]:
    return lambda who: store.pause(who.pk, what, who.actor, now=now())


POSTS: dict[str, Act | str] = {
    "facts": OWN_LOOK,
    "add": Act(["added"], {"key": "milk", "category": "preference", "value": "Oat milk"}),
    "forget_several": Act(["forgotten"], {"id": ["tea"]}),
    "keep_several": Act(["kept_longer"], {"id": ["tea"], "how": "years"}),
    "undo": Act(["added"], {"key": "bread", "category": "preference", "value": "Sourdough"}),
    "fact": OWN_LOOK,
    "correct": Act(
        ["corrected"], {"value": "Black tea", "category": "preference", "version": 1}, path=at("correct")
    ),
    "forget": Act(["forgotten"], path=at("forget")),
    "forget_conversation": Act(["dismissed", "forgotten"], path=at("forget_conversation")),
    "wrong": Act(["frozen"], path=at("wrong")),
    "not_me": Act(["frozen"], path=at("not_me")),
    "thaw": Act(["thawed"], before=frozen, path=at("thaw")),
    "keep": Act(["kept_longer"], {"how": "week"}, path=at("keep")),
    "reviewed": Act(["reviewed"], path=at("reviewed")),
    "suggestions": OWN_LOOK,
    "suggestion": OWN_LOOK,
    "keep_suggestion": Act(["accepted"], {"value": "Light roast"}),
    "dismiss_suggestion": Act(["dismissed"]),
    "activity": OWN_LOOK,
    "assistant": OWN_LOOK,
    "notice": NO_FACT,
    "control": OWN_LOOK,
    "pause_learning": Act(["learning_paused"]),
    "pause_using": Act(["using_paused"]),
    "resume_learning": Act(["learning_resumed"], before=paused("learning")),
    "resume_using": Act(["using_resumed"], before=paused("using")),
    "choices": Act(["choices_changed"]),
    "give_consent": Act(
        ["consent_given"], before=lambda who: store.withdraw_consent(who.pk, who.actor, now=now())
    ),
    "withdraw_consent": Act(["consent_withdrawn"]),
    "allow_again": Act(["lifted"], {"key": "bread"}),
    "notices": NO_FACT,
    "theme": NO_FACT,
    "add_word": Act(["choices_changed"], {"word": "wine"}),
    "remove_word": Act(
        ["choices_changed"],
        {"word": "wine"},
        before=lambda who: store.choose(who.pk, {"never_words": ["wine"]}, who.actor, now=now()),
    ),
    "clear": Act(["cleared"], {"sure": "forget everything"}),
    "receipt": NO_FACT,
    "close": Act(["cleared"], {"sure": "close my account"}),
    "closed": NO_FACT,
    "take": "a link is made; what leaves by it is noted when it does",
    "take_file": Act(["exported"]),
    "bring": Act(["proposed", "imported"]),
    "public_key": NO_FACT,
    "enter": Act(["signed_in"]),
    "shops": ELSEWHERE,
    "go_to_shop": Act(["signed_in"]),
    "account_request_login_code": ELSEWHERE,
    "account_login": ELSEWHERE,
    "account_confirm_login_code": "tests/test_entry.py: a right code is noted as signed_in",
    "openid_connect_login": ELSEWHERE,
    "openid_connect_callback": "tests/test_company_sign_in.py: who comes back signed in is noted",
    **dict.fromkeys(
        [
            "account_request_reauthentication_code", "account_confirm_reauthentication_code", "account_logout", "set_language",
            "mfa_index", "mfa_activate_totp", "mfa_deactivate_totp", "end_elsewhere", "mfa_view_recovery_codes",
            "mfa_generate_recovery_codes", "socialaccount_login_cancelled", "mfa_authenticate", "mfa_reauthenticate",
        ],
        NO_FACT,
    ),
}  # fmt: skip
"""Every page by its name: what sending to it leaves, or why that is nothing."""

STAFF: dict[str, Act] = {
    "memory_portal_reveal": Act(["revealed"], {"purpose": Purpose.ASKED}),
    "memory_portal_correct": Act(["corrected"], {"purpose": Purpose.ASKED, "value": "Black tea", "version": 1}),
    "memory_portal_forget": Act(["forgotten"], {"purpose": Purpose.ASKED}),
    "memory_portal_erase": Act(["cleared"], {"reason": "customer_asked", "sure": "alice"}),
}
"""Acts of staff at a customer. All their other pages show masks (A5) and change no fact (A6)."""

SUBJECT = "/v1/subjects/{subject_id}"
FACT = {"value": "Oat milk", "category": "preference", "said_at": "2026-05-01T00:00:00Z"}
BRIDGE: dict[tuple[str, str], tuple[list[str], int] | str] = {
    ("get", f"{SUBJECT}/context"): ([], 1),
    ("post", f"{SUBJECT}/context"): ([], 1),
    ("get", f"{SUBJECT}/facts"): ([], 1),
    ("post", f"{SUBJECT}/facts:search"): ([], 1),
    ("get", f"{SUBJECT}/facts/{{key}}"): ([], 1),
    ("get", f"{SUBJECT}/purge_generation"): "a number that counts, of nothing remembered",
    ("put", f"{SUBJECT}/facts/{{key}}"): (["proposed"], 0),
    ("post", f"{SUBJECT}/facts:upsert"): (["learned"], 0),
    ("delete", f"{SUBJECT}/facts/{{key}}"): (["proposed"], 0),
    ("delete", f"{SUBJECT}/facts"): (["cleared"], 0),
    ("post", f"{SUBJECT}/turns"): "what is learned from it is noted when it is",
    ("get", "/v1/jobs/{job_id}"): "how far a conversation is: counts",
    ("post", "/v1/sessions"): "a token for a customer's tools, each of which is noted",
    ("delete", "/v1/key"): "ends the key itself",
    ("get", "/v1/health"): "nothing about anybody",
    ("get", "/v1/changes"): "the events themselves, as ids and codes",
    ("post", "/v1/portal-links"): ELSEWHERE,
    ("post", "/v1/import"): "each line is noted when the job decides it (tests/test_import.py)",
    ("get", "/v1/imports/{import_id}"): "how far it is: counts",
    ("get", "/v1/imports/{import_id}/report"): "what became of each line, by number and code",
}
TOOLS: dict[str, tuple[dict[str, str], list[str], int]] = {
    "get_preferences": ({}, [], 1),
    "recall_memories": ({"topic": "tea"}, [], 1),
    "save_memory": ({"key": "milk", "value": "Oat milk"}, ["learned"], 0),
    "forget_memory": ({"key": "tea"}, ["forgotten"], 0),
}


@contextmanager
def noted() -> Iterator[list[Any]]:
    """Everything that is done in it is undone; what it left is told: kinds of events, number of reads."""
    told: list[Any] = []
    with transaction.atomic():
        last = FactEvent.objects.order_by("pk").values_list("pk", flat=True).last() or 0
        reads = FactRead.objects.count()
        yield told
        told += list(FactEvent.objects.filter(pk__gt=last).order_by("pk").values_list("kind", flat=True))
        told.append(FactRead.objects.count() - reads)
        transaction.set_rollback(True)


@pytest.fixture
def who(alice: Person) -> Person:
    return furnished(alice)


def again(browser: Client) -> Client:
    """One with the same cookies: whatever signs this one out leaves that one signed in, as its session is put back."""
    copy = Client()
    copy.cookies = deepcopy(browser.cookies)
    return copy


def sent(who: Person, name: str, act: Act, path: str) -> Any:
    data = {
        field: [str(fact(one).pk) for one in value] if field == "id" else value for field, value in act.data.items()
    }
    if name == "bring":
        rows = b"key,category,value\nmilk,preference,Oat milk\n"
        data = {"file": SimpleUploadedFile("memory.csv", rows, "text/csv")}
    if name == "take_file":
        path = reverse(name, args=[store.issue_ticket(who.pk, "export", now=now(), detail="json")])
    if name == "enter":
        path = f"/enter/{handoff.offer(store.Subject(who.customer.subject_id, who.customer.profile), now=now())[0]}"
    return who.post(act.path(who) if act.path else path, data)


def test_every_page_leaves_its_note_and_looking_leaves_none(who: Person, figure: Figure) -> None:
    pages = [one for one in addresses(who) if one.mainly_for == "customer"]
    who.proves()
    assert {one.name for one in pages} - POSTS.keys() == set(), "say here what it leaves, or why nothing"
    assert POSTS.keys() - {one.name for one in pages} == set()
    wrong = {}
    for page in pages:
        act = POSTS[page.name]
        with noted() as told:
            again(who.client).get(page.path)
        if told != [0]:
            wrong[f"GET {page.name}"] = told
        with noted() as told:
            browser = Person(who.customer, again(who.client))
            if isinstance(act, Act):
                act.before(browser)
                began = FactEvent.objects.latest("pk").pk
                answer = sent(browser, page.name, act, page.path)
                assert answer.status_code in (200, 302), (page.name, answer.status_code, answer.content[:2000])
                left = list(FactEvent.objects.filter(pk__gt=began).order_by("pk").values_list("kind", flat=True))
            else:
                browser.post(page.path)
        if isinstance(act, str):
            left = told[:-1]
        if left != (act.leaves if isinstance(act, Act) else []) or told[-1] > 0:
            wrong[f"POST {page.name}"] = told
    assert wrong == {}
    acts = sum(isinstance(act, Act) for act in POSTS.values())
    figure(
        "A4", f"{len(pages)} pages: {acts} acts leave their event, {2 * len(pages) - acts} looks and others leave none"
    )


def test_every_act_of_staff_is_noted_and_what_they_see_is_masked(who: Person, figure: Figure) -> None:
    pages = [one for one in addresses(who) if one.of_staff]
    assert STAFF.keys() <= {one.name for one in pages}
    root = browser_of(get_user_model().objects.create_superuser("root", "root@example.org", PASSWORD))
    wrong = {}
    for page in pages:
        act = STAFF.get(page.name)
        path = page.path
        if act and "facts" in path:
            path = reverse(f"admin:{page.name}", args=[who.pk, fact("tea").pk])
        with noted() as told:
            again(root).get(path)
        if told != [0]:
            wrong[f"GET {page.name}"] = told
        if act:
            with noted() as told:
                answer = again(root).post(path, act.data)
                assert answer.status_code in (200, 302), (page.name, answer.status_code, answer.content[:3000])
            if told[:-1] != act.leaves or told[-1] > 0:
                wrong[f"POST {page.name}"] = told
    assert wrong == {}
    figure(
        "A4",
        f"{len(pages)} addresses of staff: {len(STAFF)} acts leave their event, looking at pages leaves none",
    )


def test_every_route_of_the_bridge_is_noted(who: Person, agent: Callable[..., Client], figure: Figure) -> None:
    schema = api.get_openapi_schema(path_prefix="/v1")
    routes = {(method, path) for path, methods in schema["paths"].items() for method in methods}
    assert routes == BRIDGE.keys()
    client = agent(profile="grocery")
    bodies: dict[str, Any] = {
        f"post {SUBJECT}/context": {"message": "tea?"},
        f"post {SUBJECT}/facts:search": {"topic": "tea"},
        f"put {SUBJECT}/facts/{{key}}": {"value": "Black coffee only", "category": "preference"},
        f"post {SUBJECT}/facts:upsert": {"facts": [{"key": "milk", "value": "Oat milk", "category": "preference"}]},
    }
    wrong = {}
    for (method, path), expected in BRIDGE.items():
        if isinstance(expected, str):
            continue
        address = f"/bridge{path}".format(subject_id="alice", key="coffee")
        with noted():
            seen = client.get("/bridge/v1/subjects/alice/facts/coffee").headers["ETag"]
        with noted() as told:
            body = bodies.get(f"{method} {path}")
            headers = {"If-Match": seen} if path.endswith("{key}") else {}
            answer = getattr(client, method)(address, body, content_type="application/json", headers=headers)
            assert answer.status_code < 300, (method, path, answer.status_code, answer.content)
        kinds, reads = expected
        if told != [*kinds, reads]:
            wrong[f"{method} {path}"] = told
    assert wrong == {}
    figure("A4", f"{len(routes)} routes of the bridge: each read and change leaves one note")


def test_every_tool_is_noted(
    who: Person, agent: Callable[..., Client], settings: Settings, tmp_path: Path, figure: Figure
) -> None:
    text = Path(settings.MEMORY_POLICY).read_text("utf-8").replace('tools = "read"', 'tools = "write"')
    settings.MEMORY_POLICY = tmp_path / "writing.toml"
    settings.MEMORY_POLICY.write_text(text, "utf-8")
    caller = Caller(token_of(agent(profile="grocery"), "alice"))
    assert set(caller.tools()) == TOOLS.keys()
    wrong = {}
    for tool, (arguments, kinds, reads) in TOOLS.items():
        with noted() as told:
            said, worked = caller.call(tool, **arguments)
            assert worked, said
        if told != [*kinds, reads]:
            wrong[tool] = told
    assert wrong == {}
    figure("A4", f"{len(TOOLS)} tools: each leaves one note")


def test_whatever_the_clock_does_is_noted(who: Person) -> None:
    end = now() + timedelta(days=1)
    store.keep_until(who.pk, fact("tea").pk, end, who.actor, now=now())
    Proposal.objects.update(expires_at=end)
    with noted() as told:
        store.sweep(now=end)
    assert sorted(told[:-1]) == ["expired", "proposal_expired"]


def test_no_kind_of_event_is_there_that_nothing_leaves() -> None:
    acts = [act for act in (*POSTS.values(), *STAFF.values()) if isinstance(act, Act)]
    left = {kind for act in acts for kind in act.leaves}
    left |= {kind for expected in BRIDGE.values() if not isinstance(expected, str) for kind in expected[0]}
    left |= {"expired", "proposal_expired"}  # the clock's, above
    left |= {"updated", "renewed"}  # a conversation's: tests/test_store_rules.py
    left |= {"refused"}  # counted with its job, of no fact
    assert left == set(EventKind.values)
