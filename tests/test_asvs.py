"""docs/asvs.md answers every line of the standard, once, and what it names as proof exists. Below: lines no other test holds."""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.test import Client
from django.urls import reverse

from tests.figures import Figure
from tests.people import Person

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs" / "asvs.md"

SECTIONS = """
1.1.1-2 1.2.1-9 1.3.1-11 1.4.1-3 1.5.1-2 2.1.1-3 2.2.1-3 2.3.1-4 2.4.1 3.2.1-2 3.3.1-4 3.4.1-6 3.5.1-5 3.7.1-2
4.1.1-3 4.2.1 4.3.1-2 4.4.1-4 5.1.1 5.2.1-3 5.3.1-2 5.4.1-3 6.1.1-3 6.2.1-12 6.3.1-4 6.4.1-4 6.5.1-5 6.6.1-3 6.8.1-4
7.1.1-3 7.2.1-4 7.3.1-2 7.4.1-5 7.5.1-2 7.6.1-2 8.1.1-2 8.2.1-3 8.3.1 8.4.1 9.1.1-3 9.2.1-4 10.1.1-2 10.2.1-2
10.3.1-4 10.4.1-11 10.5.1-5 10.6.1-2 10.7.1-3 11.1.1-2 11.2.1-3 11.3.1-3 11.4.1-4 11.5.1 11.6.1 12.1.1-3 12.2.1-2
12.3.1-4 13.1.1 13.2.1-5 13.3.1-2 13.4.1-5 14.1.1-2 14.2.1-4 14.3.1-3 15.1.1-3 15.2.1-3 15.3.1-7 16.1.1 16.2.1-5
16.3.1-4 16.4.1-3 16.5.1-3 17.1.1 17.2.1-4 17.3.1-2
"""
"""Levels 1 and 2 of version 5.0.0, section by section."""
FIRST = """
1.2.1-5 1.3.1-2 1.5.1 2.1.1 2.2.1-2 2.3.1 3.2.1-2 3.3.1 3.4.1-2 3.5.1-3 4.1.1 4.4.1 5.2.1-2 5.3.1-2 6.1.1 6.2.1-8 6.3.1-2
6.4.1-2 7.2.1-4 7.4.1-2 8.1.1 8.2.1-2 8.3.1 9.1.1-3 9.2.1 10.4.1-5 11.3.1-2 11.4.1 12.1.1 12.2.1-2 13.4.1 14.2.1 14.3.1
15.1.1 15.2.1 15.3.1
"""
"""Those of them that are of level 1."""
AIMED_AT = "3.4.7-8 7.5.3 14.2.6-7 15.4.2 16.5.4"
"""Of level 3."""


def numbers(text: str) -> list[str]:
    found = []
    for span in text.split():
        section, _, range_ = span.rpartition(".")
        first, _, last = range_.partition("-")
        found += [f"{section}.{number}" for number in range(int(first), int(last or first) + 1)]
    return found


@dataclass(frozen=True)
class Line:
    number: str
    level: str
    about: str
    answer: str
    why: str
    proof: str


@cache
def lines() -> list[Line]:
    rows = re.findall(r"^\| (\d+\.\d+\.\d+ .*) \|$", FILE.read_text("utf-8"), re.MULTILINE)
    return [Line(*(cell.strip() for cell in row.split(" | "))) for row in rows]


@cache
def named_in(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def anchors(file: str) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", (ROOT / file).read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}


def exists(proof: str) -> bool:
    if "::" in proof:
        file, _, name = proof.partition("::")
        return (ROOT / file).is_file() and name in named_in(file)
    file, _, anchor = proof.partition("#")
    return (ROOT / file).is_file() and anchor in anchors(file)


def test_every_line_of_levels_one_and_two_is_answered_once() -> None:
    asked = numbers(SECTIONS)
    assert len(asked) == 253
    assert len(numbers(FIRST)) == 70
    answered = [line.number for line in lines()]
    assert sorted(answered) == sorted(asked + numbers(AIMED_AT))
    for line in lines():
        level = "3" if line.number in numbers(AIMED_AT) else "1" if line.number in numbers(FIRST) else "2"
        assert line.level == level, line


def test_every_answer_has_its_proof_or_its_reason(figure: Figure) -> None:
    for line in lines():
        assert line.answer in ("yes", "operator", "n/a", "not yet"), line
        assert line.about, line
        assert line.why, line
        proofs = re.findall(r"`([^`]+)`", line.proof)
        assert bool(proofs) == (line.answer == "yes"), line
        for proof in proofs:
            assert exists(proof), (line.number, proof)
        if line.answer == "not yet":
            assert re.search(r"[Tt]ake", line.why) or "See" in line.why, (line, "says what it would take")
    count = Counter(line.answer for line in lines())
    first_two = [line for line in lines() if line.level != "3"]
    open_ones = [line.number for line in lines() if line.answer == "not yet"]
    figure(
        "O4",
        f"{len(first_two)} lines of levels 1 and 2 and {len(lines()) - len(first_two)} of level 3: {count['yes']} yes by test"
        f" or section, {count['operator']} the operator's, {count['n/a']} do not apply, {len(open_ones)} not yet"
        f" ({', '.join(open_ones)})",
    )


def test_a_proof_that_does_not_exist_is_noticed() -> None:
    assert not exists("tests/test_asvs.py::test_no_such_thing")
    assert not exists("tests/no_such_file.py::test_x")
    assert not exists("docs/asvs.md#no-such-section")
    assert exists("docs/asvs.md#the-lines")


# --- lines no other test holds ------------------------------------------------------------------------------------------


def test_passwords_are_typed_behind_dots_and_no_script_stands_in_their_way(db: None, staff: Client) -> None:
    for page in (Client().get("/admin/login/"), staff.get("/admin/password_change/")):
        fields = re.findall(r"<input[^>]*name=\"[^\"]*password[^>]*>", page.content.decode())
        assert fields
        assert all('type="password"' in field and "maxlength" not in field for field in fields)
    for script in (ROOT / "static").glob("*.js"):
        assert "onpaste" not in script.read_text("utf-8")
        assert '"paste"' not in script.read_text("utf-8")


@pytest.mark.parametrize(
    "password", ["memory-portal-2026", "Clearsky.Air.Staff1", "AdminAdminAdmin", "fernhill market!"]
)
def test_passwords_do_not_rest_on_names_of_here(password: str) -> None:
    with pytest.raises(ValidationError, match="rests on names of this place"):
        validate_password(password)
    validate_password(f"{password} and a whole sentence of one's own")


def test_no_password_runs_out() -> None:
    rules = [rule["NAME"] for rule in settings.AUTH_PASSWORD_VALIDATORS]
    assert not [rule for rule in rules if "expir" in rule.lower() or "history" in rule.lower()]
    assert not [name for name in settings.MIDDLEWARE if "password" in name.lower()]


def test_a_new_database_has_no_account(db: None) -> None:
    assert not get_user_model().objects.exists()


def test_every_page_shows_the_way_out(alice: Person, staff: Client) -> None:
    for name in ("facts", "suggestions", "activity", "assistant", "control", "bring", "mfa_index", "notice"):
        assert f'action="{reverse("account_logout")}"' in alice.sees(reverse(name)), name
    assert 'action="/admin/logout/"' in staff.get("/admin/").content.decode()


@pytest.mark.parametrize(
    "path",
    ["/.git/config", "/.env", "/manage.py", "/static/", "/static/../manage.py", "/static/%2e%2e/manage.py", "/var/"],
)
def test_nothing_of_the_tree_is_served_and_nothing_listed(db: None, path: str) -> None:
    assert Client().get(path).status_code == 404
