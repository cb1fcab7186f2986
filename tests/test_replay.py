"""A prompt can be judged by reading: recorded conversations beside what each claim would come to, with nothing written."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from agent_bridge import demo, reading
from agent_bridge.extraction import claude
from memory_portal.models import MemoryFact
from memory_portal.store.policy import read
from tests.messages_server import KEY, MessagesServer, answer, change


def replay(file: Path, **options: Any) -> str:
    out = StringIO()
    call_command("replay_extraction", file, stdout=out, **options)
    return out.getvalue()


@pytest.mark.django_db
def test_the_demo_s_conversations_can_be_replayed_and_nothing_is_written() -> None:
    shown = replay(demo.FILE)
    assert "grounded                     remember dietary_restriction = 'no shellfish' [safety]" in shown
    assert "sky-yijun-1  (airline, 4 turns)" in shown
    assert not MemoryFact.objects.exists()


def test_a_model_s_claims_stand_beside_the_reasons_against_them(tmp_path: Path, settings: Any) -> None:
    file = tmp_path / "one.json"
    file.write_text(json.dumps({"messages": [{"role": "user", "content": "I like the aisle. yes"}]}))
    settings.EXTRACTOR = "claude"
    with MessagesServer() as server:
        settings.ANTHROPIC_API_KEY, settings.ANTHROPIC_BASE_URL = KEY, server.url
        claude._client.cache_clear()
        server.will(
            answer([change("I like the aisle", "seat", "likes the aisle"), change("yes", "vip", "gold member"), "?"])
        )
        shown = replay(file, profile="airline")
        claude._client().close()
        claude._client.cache_clear()
    assert "grounded                     remember seat = 'likes the aisle'" in shown
    assert "refused/bare_assent          remember vip = 'gold member'" in shown
    assert "refused/unusable             1 of the answer" in shown
    assert "940 tokens" in shown


@pytest.mark.parametrize(
    "text", ["{", '{"messages": 7}', '[{"session_id": "x"}]', '{"messages": [{"role": "system", "text": "x"}]}']
)
def test_a_file_that_holds_no_conversation_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "bad.json"
    file.write_text(text)
    with pytest.raises(CommandError, match=r"bad\.json"):
        replay(file)


def test_the_hotel_of_the_documentation_is_a_profile_without_any_code(settings: Any, tmp_path: Path) -> None:
    page = (Path(settings.BASE_DIR) / "docs" / "profiles.md").read_text("utf-8")
    section = page.split("```toml\n")[1].split("```")[0]
    settings.MEMORY_POLICY = tmp_path / "policy.toml"
    settings.MEMORY_POLICY.write_text(
        (Path(settings.BASE_DIR) / "memory_policy.toml").read_text("utf-8") + section, "utf-8"
    )
    assert read(settings.MEMORY_POLICY).profiles["hotel"].name == "Harbour House"
    assert reading.profile("hotel").keeper == "a hotel's assistant"
