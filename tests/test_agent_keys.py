"""Agents' keys: made once, told from typos offline, dead when they should be, and kept nowhere."""

from __future__ import annotations

import io
import logging
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from agent_bridge import auth
from agent_bridge.models import AgentKey
from tests.figures import Figure

CONTEXT = "/bridge/v1/subjects/alice/context"


def status(key: str, **headers: str) -> tuple[int, str | None]:
    answer = Client(headers={"Authorization": f"Bearer {key}"} | headers).get(CONTEXT)
    return answer.status_code, answer.json().get("code")


def made(**more: object) -> tuple[AgentKey, str]:
    now = more.pop("now", None) or timezone.now()
    return auth.issue("Clearsky assistant", "airline", [auth.READ], now=now, **more)  # type: ignore[arg-type]


# --- the text of a key ------------------------------------------------------------------------------------------------


def test_keys_have_one_form_and_never_repeat(figure: Figure) -> None:
    keys = {auth.new_key() for _ in range(20_000)}
    assert len(keys) == 20_000
    assert all(auth.well_formed(key) and key.startswith("mp_live_") and len(key) == 57 for key in keys)
    assert auth.new_key(test=True).startswith("mp_test_")
    figure("K1", "20,000 keys: 0 equal")


def test_every_key_of_one_wrong_letter_is_told_offline(figure: Figure) -> None:
    key = auth.new_key()
    for at in range(len("mp_live_"), len(key)):
        for sign in auth.DIGITS:
            if sign != key[at]:
                assert not auth.well_formed(key[:at] + sign + key[at + 1 :])
    figure("K1", "every one-letter error of a key: told offline")


def test_two_letters_swapped_one_lost_one_doubled_are_told_offline() -> None:
    key = auth.new_key()
    for at in range(len("mp_live_"), len(key) - 1):
        swapped = key[:at] + key[at + 1] + key[at] + key[at + 2 :]
        assert swapped == key or not auth.well_formed(swapped)
        assert not auth.well_formed(key[:at] + key[at + 1 :])
        assert not auth.well_formed(key[:at] + key[at] + key[at:])


# --- what a key opens -------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_key_opens_until_it_expires() -> None:
    row, key = made()
    assert row.expires_at - row.created_at == timedelta(days=90)
    assert status(key) == (200, None)
    row.expires_at = timezone.now()
    row.save(update_fields=["expires_at"])
    assert status(key) == (401, "key_expired")


@pytest.mark.django_db
def test_a_revoked_key_is_dead_at_the_next_call() -> None:
    row, key = made()
    auth.revoke(row, now=timezone.now())
    assert status(key) == (401, "key_revoked")


@pytest.mark.django_db
def test_a_typo_and_a_wrong_key_are_told_apart() -> None:
    row, key = made()
    assert status(key[:-1] + ("0" if key[-1] != "0" else "1")) == (401, "key_malformed")
    assert status(auth.new_key()) == (401, "key_unknown")
    body = row.prefix + auth.new_key()[len(row.prefix) : -auth.CHECK]  # the right look-up prefix, another secret
    assert status(body + auth.checksum(body)) == (401, "key_unknown")


@pytest.mark.django_db
@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic YTpi", "mp_live_x", "Bearer\tx", "Token x"])
def test_anything_but_a_bearer_key_is_unauthenticated(header: str) -> None:
    answer = Client(headers={"Authorization": header}).get(CONTEXT)
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer")
    assert answer["Content-Type"] == "application/problem+json"


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["key", "access_token", "x"])
def test_a_key_in_the_address_is_refused_even_with_a_good_header(name: str, caplog: pytest.LogCaptureFixture) -> None:
    _, key = made()
    answer = Client(headers={"Authorization": f"Bearer {key}"}).get(f"{CONTEXT}?{name}={key}")
    assert (answer.status_code, answer.json()["code"]) == (400, "key_in_query")
    assert key not in caplog.text + answer.content.decode()
    assert "key_in_address" in caplog.text


@pytest.mark.django_db
def test_the_database_and_the_logs_hold_no_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    row, key = made()
    status(key)
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM agent_bridge_agentkey")
        dump = repr(cursor.fetchall())
    secret = key[len(row.prefix) :]
    logs = "\n".join(record.getMessage() for record in caplog.records if record.name != "django.db.backends")
    for text in (dump, logs, repr(row), str(row)):
        assert secret not in text
        assert key not in text


@pytest.mark.django_db
def test_last_use_is_touched_once_a_minute() -> None:
    row, key = made()
    assert row.last_used_at is None
    status(key)
    row.refresh_from_db()
    first = row.last_used_at
    assert first is not None
    status(key)
    row.refresh_from_db()
    assert row.last_used_at == first
    row.last_used_at = first - timedelta(seconds=61)
    row.save(update_fields=["last_used_at"])
    status(key)
    row.refresh_from_db()
    assert row.last_used_at > first


@pytest.mark.django_db
def test_a_new_pepper_makes_new_keys_and_knows_old_ones(settings: Settings) -> None:
    settings.AGENT_KEY_PEPPER = "the-first-pepper"
    old_row, old = made()
    settings.AGENT_KEY_PEPPER = "2:the-second-pepper,1:the-first-pepper"
    new_row, new = made()
    assert (old_row.pepper_version, new_row.pepper_version) == (1, 2)
    assert status(old) == status(new) == (200, None)
    settings.AGENT_KEY_PEPPER = "2:the-second-pepper"
    assert status(old) == (401, "key_unknown")
    assert status(new) == (200, None)


@pytest.mark.django_db
def test_whoever_finds_a_key_can_end_it() -> None:
    _, found = made()
    _, other = made()
    holder = Client(headers={"Authorization": f"Bearer {found}"})
    assert holder.delete("/bridge/v1/key").status_code == 204
    assert status(found) == (401, "key_revoked")
    assert status(other) == (200, None)


# --- issuing, rotating ------------------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"scopes": ["facts:everything"]}, "scopes"),
        ({"scopes": []}, "scopes"),
        ({"profile": "spaceline"}, "profile"),
        ({"life": timedelta(days=366)}, "life"),
        ({"life": timedelta(0)}, "life"),
        ({"name": "\u200b"}, "name"),
        ({"name": "x" * 65}, "name"),
    ],
)
def test_a_wrong_wish_is_named(wrong: dict[str, object], named: str) -> None:
    wish: dict[str, object] = {"name": "Helper", "profile": "airline", "scopes": [auth.READ], "now": timezone.now()}
    with pytest.raises(ValueError, match=f"^{named}:"):
        auth.issue(**(wish | wrong))  # type: ignore[arg-type]
    assert not AgentKey.objects.exists()


@pytest.mark.django_db
def test_rotating_leaves_no_moment_without_a_key() -> None:
    old_row, old = made()
    new_row, new = auth.rotate(old_row, now=timezone.now(), overlap=timedelta(hours=1))
    assert status(old) == status(new) == (200, None)
    assert new_row.scopes == old_row.scopes
    old_row.refresh_from_db()
    assert old_row.expires_at - timezone.now() <= timedelta(hours=1)


@pytest.mark.django_db
def test_rotating_never_lengthens_the_old_key() -> None:
    now = timezone.now()
    row, _ = made(life=timedelta(minutes=5), now=now)
    auth.rotate(row, now=now, overlap=timedelta(days=7))
    assert row.expires_at == now + timedelta(minutes=5)


# --- manage.py agent_key ----------------------------------------------------------------------------------------------


def command(*args: str) -> str:
    out = io.StringIO()
    call_command("agent_key", *args, stdout=out)
    return out.getvalue()


@pytest.mark.django_db
def test_the_command_makes_lists_rotates_and_revokes() -> None:
    told = command("create", "Fernhill helper", "--profile", "grocery", "--scopes", "facts:read,turns:write")
    key = told.split()[-1]
    assert status(key) == (200, None)
    row = AgentKey.objects.get()
    listed = command("list")
    assert row.prefix in listed
    assert "Fernhill helper" in listed
    assert key not in listed
    successor = next(word for word in command("rotate", row.prefix).split() if auth.well_formed(word))
    assert status(key) == status(successor) == (200, None)
    command("revoke", row.prefix)
    assert status(key) == (401, "key_revoked")
    assert "revoked" in command("list")


@pytest.mark.django_db
def test_the_command_prints_the_key_alone_when_asked() -> None:
    assert auth.well_formed(command("create", "Helper", "--quiet").strip())


@pytest.mark.django_db
@pytest.mark.parametrize(
    "args",
    [("create", "Helper", "--scopes", "all"), ("create", "Helper", "--days", "400"), ("revoke", "mp_live_nothing0")],
)
def test_the_command_says_what_is_wrong(args: tuple[str, ...]) -> None:
    with pytest.raises(CommandError):
        command(*args)
