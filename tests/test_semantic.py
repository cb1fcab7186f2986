"""Recall by meaning, the optional extra: with it, without it, and what becomes of the vectors."""

from __future__ import annotations

import logging
import shutil
import statistics
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from memory_portal import checks, store
from memory_portal.enums import ActorKind, Origin
from memory_portal.models import MemoryFact
from memory_portal.store import recall, semantic, words
from tests.conftest import NOW
from tests.people import Person
from tests.test_recall import HOUSEHOLD

ROOT = Path(__file__).resolve().parent.parent
ABSENT = [name for name in (*semantic.LIBRARIES, semantic.PACKAGE) if find_spec(name) is None]
needs_model = pytest.mark.skipif(bool(ABSENT), reason=f"memory-portal[semantic] is not installed: {', '.join(ABSENT)}")

SHELLFISH = ("dinner", "Never serves prawns or lobster to guests")
REQUEST = "Suggest seafood dishes for my party"
AGENT = store.Actor(ActorKind.AGENT, "1", "helper")


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    semantic._loaded.cache_clear()
    yield
    semantic._loaded.cache_clear()


@pytest.fixture
def on(settings: Settings) -> Settings:
    settings.SEMANTIC = True
    return settings


def kept(pk: int) -> bytes | None:
    vector = MemoryFact.objects.values_list("vector", flat=True).get(pk=pk)
    return None if vector is None else bytes(vector)


def near(held: dict[int, str], text: str) -> dict[int, float]:
    vectors = {number: semantic.vector(f"fact_{number}", value) or b"" for number, value in held.items()}
    return semantic.closeness(vectors, text)


# --- without it -------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_switched_off_nothing_is_loaded_written_or_missed(alice: Person) -> None:
    fact = alice.fact(*SHELLFISH)
    assert kept(fact.id) is None
    assert semantic.closeness({1: b"x" * 392}, "fish") == {}
    assert not semantic.warm()
    assert checks.semantic_model(None) == []


def test_the_store_never_loads_the_libraries_by_being_imported() -> None:
    code = "import sys, memory_portal.store.semantic; print({'numpy', 'onnxruntime', 'tokenizers'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.django_db
def test_switched_on_without_the_model_words_go_on_alone_and_the_log_says_so_once(
    alice: Person, on: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    on.SEMANTIC_MODEL_DIR = str(tmp_path)
    with caplog.at_level(logging.ERROR):
        fact = alice.fact(*SHELLFISH)
        alice.fact("coffee", "Dark roast")
    assert kept(fact.id) is None
    subject = store.Subject("alice", "grocery")
    assert [one.id for one in store.lookup(subject, "prawns", AGENT, now=timezone.now())] == [fact.id]
    (line,) = [record.getMessage() for record in caplog.records if record.name == semantic.__name__]
    assert "semantic_off" in line
    assert "prawns" not in line


@pytest.mark.parametrize(
    ("content", "named"), [(None, "No such file"), (b"another model", "SHA-256")], ids=["no file", "another file"]
)
def test_the_check_at_start_names_what_is_missing(
    on: Settings, tmp_path: Path, content: bytes | None, named: str
) -> None:
    if ABSENT:
        named = ABSENT[0]
    on.SEMANTIC_MODEL_DIR = str(tmp_path)
    if content:
        (tmp_path / semantic.MODEL).write_bytes(content)
    (error,) = checks.semantic_model(None)
    assert error.id == "memory_portal.E002"
    assert named in error.msg
    assert "memory-portal[semantic]" in str(error.hint)


@pytest.mark.parametrize("absent", [*semantic.LIBRARIES, semantic.PACKAGE])
def test_a_missing_package_is_named(on: Settings, monkeypatch: pytest.MonkeyPatch, absent: str) -> None:
    monkeypatch.setattr(
        semantic, "find_spec", lambda name: None if name == absent else find_spec("json" if ABSENT else name)
    )
    assert absent.replace("_", "-") in semantic.missing().replace("_", "-")


def test_the_command_refuses_while_it_is_off() -> None:
    with pytest.raises(CommandError):
        call_command("embed_facts")


# --- with it ----------------------------------------------------------------------------------------------------------


@needs_model
def test_the_installed_model_is_the_one_in_the_code(on: Settings, tmp_path: Path) -> None:
    assert semantic.missing() == ""
    assert checks.semantic_model(None) == []
    shutil.copy(semantic._place(), tmp_path / semantic.MODEL)
    on.SEMANTIC_MODEL_DIR = str(tmp_path)
    assert semantic.missing() == ""
    assert semantic.warm()


@needs_model
def test_meaning_finds_what_no_word_finds(on: Settings) -> None:
    held = {1: "Never serves prawns or lobster to guests", 2: "Wears EU 43", 3: "Collects stamps of Iceland"}
    found = near(held, REQUEST)
    assert max(found, key=found.__getitem__) == 1
    assert all(-1 <= closeness <= 1 for closeness in found.values())


@needs_model
def test_a_vector_takes_384_bytes_behind_its_models_mark_and_is_the_same_every_time(on: Settings) -> None:
    first, second = semantic.vector(*SHELLFISH), semantic.vector(*SHELLFISH)
    assert first == second
    assert first
    assert len(first) == len(semantic.TAG) + 384
    assert semantic.is_current(first)
    assert not semantic.is_current(b"12345678" + first[8:])
    assert not semantic.is_current(None)
    assert semantic.vector(*SHELLFISH, ["party", "food"]) != first


@needs_model
def test_a_vector_of_another_model_counts_for_nothing(on: Settings) -> None:
    assert semantic.closeness({1: b"12345678" + bytes(384), 2: b"", 3: semantic.TAG}, "fish") == {}


@needs_model
@pytest.mark.parametrize(
    "text", ["我喜歡喝咖啡", "Ich mag keinen Fisch", "No me gusta el pescado", "1234567", "", "???", "\ud800"]
)
def test_what_this_model_cannot_read_is_left_to_the_words(on: Settings, text: str) -> None:
    assert semantic.vector("preference", text) == semantic.TAG or not any(map(str.isalpha, text))
    assert semantic.vector("42", text) == semantic.TAG
    assert semantic.closeness({1: semantic.vector(*SHELLFISH) or b""}, text) == {}


@needs_model
@needs_model
def test_of_a_number_the_key_says_what_it_is(on: Settings) -> None:
    assert len(semantic.vector("shoe_size", "43") or b"") > len(semantic.TAG)


@needs_model
def test_a_very_long_text_is_read_from_its_start(on: Settings) -> None:
    assert semantic.closeness({1: semantic.vector(*SHELLFISH) or b""}, "fish soup " * 2_000)[1] > 0


def test_a_key_that_says_more_than_the_value_is_read_with_it() -> None:
    assert semantic.text_of("seat_preference", "aisle", ["flight"]) == "seat preference: aisle; flight"
    assert semantic.text_of("likes_jazz", "Likes jazz") == "Likes jazz"


# --- how it joins the words: pure, so it runs without the model ---------------------------------------------------------


def test_closeness_brings_up_a_fact_that_shares_no_word_and_silence_stays_the_rule() -> None:
    assert recall.relevant(HOUSEHOLD, "something unrelated", now=NOW, near={1: 0.2, 2: 0.3}) == []
    (found,) = recall.relevant(HOUSEHOLD, "something unrelated", now=NOW, near={1: 0.2, 2: 0.7})
    assert found.id == 2


def test_in_a_look_up_the_nearest_lead_and_the_far_stay_out() -> None:
    found = recall.lookup(HOUSEHOLD, "xyzzy", near={1: 0.5, 2: 0.3, 3: 0.1, 4: -0.2})
    assert [one.id for one in found] == [1, 2]
    assert recall.lookup(HOUSEHOLD, "xyzzy", near={1: 0.25, 2: 0.2}) == []


def test_a_fact_whose_meaning_is_unknown_counts_by_its_words() -> None:
    assert recall.lookup(HOUSEHOLD, "hazelnuts", near={1: 0.4, 2: 0.1})[0].id == 3


@needs_model
@pytest.mark.parametrize("message", ["", "hello", "thanks!", "ok", "where is my order 48213?", "tell me more", "谢谢"])
def test_small_talk_still_brings_up_nothing(on: Settings, message: str) -> None:
    vectors = {one.id: semantic.vector(one.key, one.value, one.topics) or b"" for one in HOUSEHOLD}
    found = semantic.closeness(vectors, message)
    assert recall.relevant(HOUSEHOLD, message, now=NOW, near=found) == []


# --- the vector lives and dies with the value ---------------------------------------------------------------------------


@needs_model
@pytest.mark.django_db
def test_an_agents_read_goes_by_meaning(alice: Person, on: Settings) -> None:
    wanted = alice.fact(*SHELLFISH)
    for number in range(12):
        alice.fact(f"stamp_{number}", f"Collects stamps of series {number}")
    subject = store.Subject("alice", "grocery")
    assert store.lookup(subject, "allergic to crustaceans", AGENT, now=timezone.now())[0].id == wanted.id
    assert store.preview(subject, "helper", REQUEST, now=timezone.now()) == store.context(
        subject, AGENT, now=timezone.now(), message=REQUEST
    )


@needs_model
@pytest.mark.django_db
def test_a_changed_value_has_a_new_vector_and_a_renewed_one_keeps_its_own(alice: Person, on: Settings) -> None:
    fact = alice.fact(*SHELLFISH)
    first = kept(fact.id)
    assert first
    alice.says(*SHELLFISH, ago=0)
    assert kept(fact.id) == first
    now = timezone.now()
    draft = store.draft(
        key="dinner", value="Loves sushi", category="preference", origin=Origin.CUSTOMER, said_at=now, now=now
    )
    changed = store.correct(alice.pk, fact.id, draft, alice.actor, now=now, version=fact.version)
    assert kept(fact.id) == semantic.vector("dinner", "Loves sushi")
    on.SEMANTIC = False
    draft = store.draft(
        key="dinner", value="Loves pizza", category="preference", origin=Origin.CUSTOMER, said_at=now, now=now
    )
    store.correct(alice.pk, fact.id, draft, alice.actor, now=now, version=changed.version)
    assert kept(fact.id) is None, "no vector of a value that is gone"


@needs_model
@pytest.mark.django_db
def test_no_vector_outlives_its_fact(alice: Person, on: Settings) -> None:
    vectors = [kept(alice.fact(*SHELLFISH).id), kept(alice.fact("coffee", "Dark roast").id)]
    assert all(vectors)
    store.forget(alice.pk, [fact.id for fact in store.facts(alice.pk, now=timezone.now())][:1], alice.actor, now=NOW)
    store.clear(alice.pk, alice.actor, now=timezone.now())
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE table_schema = 'public' AND data_type = 'bytea'"
        )
        for table, column in cursor.fetchall():
            cursor.execute(f'SELECT count(*) FROM "{table}" WHERE "{column}" = ANY(%s)', [vectors])
            assert cursor.fetchone() == (0,), table


@pytest.mark.django_db
def test_no_fact_carries_a_vector_out_of_the_store() -> None:
    assert "vector" not in store.Fact.__dataclass_fields__
    assert not MemoryFact._meta.get_field("vector").editable


@needs_model
@pytest.mark.django_db
def test_facts_of_before_get_their_vectors_by_one_command(alice: Person, on: Settings, capsys: Any) -> None:
    on.SEMANTIC = False
    old = alice.fact(*SHELLFISH)
    chinese = alice.fact("drink", "喜歡喝茶")
    version = store.find(store.Subject("alice", "grocery"))
    on.SEMANTIC = True
    MemoryFact.objects.filter(pk=alice.fact("coffee", "Dark roast").id).update(vector=b"12345678" + bytes(384))
    call_command("embed_facts")
    assert "3 vectors written" in capsys.readouterr().out
    assert kept(old.id) == semantic.vector(*SHELLFISH)
    assert kept(chinese.id) == semantic.TAG
    assert version
    call_command("embed_facts")
    assert "0 vectors written" in capsys.readouterr().out


@pytest.mark.django_db
def test_an_erasure_empties_the_caches_of_texts(alice: Person, django_capture_on_commit_callbacks: Any) -> None:
    fact = alice.fact("drink", "Drinks zzyzx water")
    store.lookup(store.Subject("alice", "grocery"), "zzyzx", AGENT, now=timezone.now())
    assert words.tokens.cache_info().currsize
    with django_capture_on_commit_callbacks(execute=True):
        store.forget(alice.pk, [fact.id], alice.actor, now=timezone.now())
    assert sum(cached.cache_info().currsize for cached in words._of_texts) == 0


# --- time and packaging -------------------------------------------------------------------------------------------------


@needs_model
def test_reading_a_request_and_two_hundred_vectors_takes_milliseconds(on: Settings) -> None:
    vectors = {number: semantic.vector("room", f"Wants a green sofa for room {number}") or b"" for number in range(200)}
    took, compared = [], []
    for number in range(100):
        start = time.thread_time()
        semantic.vector("", f"Can you recommend a sturdy kettle for our holiday flat number {number}?")
        took.append((time.thread_time() - start) * 1000)
        start = time.thread_time()
        semantic._encoder().cosines(vectors.values(), vectors[0][8:])  # type: ignore[union-attr]
        compared.append((time.thread_time() - start) * 1000)
    p95, rest = statistics.quantiles(took, n=20)[-1], statistics.quantiles(compared, n=20)[-1]
    print(f"\nreading p50 {statistics.median(took):.2f} ms, p95 {p95:.2f} ms; 200 vectors p95 {rest:.2f} ms")
    assert p95 < 25
    assert rest < 5


def test_a_built_package_holds_every_file_its_code_reads() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["package-data"]
    for package, patterns in config.items():
        packed = {path for pattern in patterns for path in (ROOT / package).glob(pattern)}
        there = {path for path in (ROOT / package).rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
        assert there == packed
