"""The languages: every message translated, nothing fuzzy, and the compiled files say what the sources say."""

from __future__ import annotations

import ast
import gettext
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from django.conf import settings
from django.utils.translation import override, to_locale

from memory_portal import plain
from memory_portal.enums import EventKind, Origin, Reason

LOCALE = Path(settings.LOCALE_PATHS[0])
LANGUAGES = [to_locale(code) for code, _ in settings.LANGUAGES if code != "en"]
HOLES = re.compile(r"%\(\w+\)[sd]|\{\w+\}")


@dataclass
class Message:
    context: str = ""
    id: str = ""
    plural: str = ""
    said: dict[int, str] = field(default_factory=dict)
    fuzzy: bool = False


def messages(language: str) -> Iterator[Message]:
    """The entries of a .po file but for its header."""
    for entry in (LOCALE / language / "LC_MESSAGES" / "django.po").read_text("utf-8").split("\n\n"):
        message, into = Message(), ""
        for line in entry.splitlines():
            if line.startswith("#"):
                message.fuzzy |= line.startswith("#,") and "fuzzy" in line
                continue
            name, _, quoted = line.partition(" ") if not line.startswith('"') else (into, "", line)
            into, text = name, str(ast.literal_eval(quoted))
            if name == "msgctxt":
                message.context += text
            elif name == "msgid":
                message.id += text
            elif name == "msgid_plural":
                message.plural += text
            elif name.startswith("msgstr"):
                form = int(name[7:-1]) if "[" in name else 0
                message.said[form] = message.said.get(form, "") + text
        if message.id:
            yield message


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_message_is_translated_and_keeps_its_places(language: str) -> None:
    found = list(messages(language))
    forms = int(re.findall(r"nplurals=(\d)", (LOCALE / language / "LC_MESSAGES" / "django.po").read_text("utf-8"))[0])
    assert len(found) > 300
    for message in found:
        assert not message.fuzzy, message.id
        assert len(message.said) == (forms if message.plural else 1), message.id
        assert all(text.strip() for text in message.said.values()), message.id
        for text in message.said.values():
            assert sorted(HOLES.findall(text)) == sorted(HOLES.findall(message.plural or message.id)), message.id


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_compiled_file_says_what_its_source_says(language: str) -> None:
    with (LOCALE / language / "LC_MESSAGES" / "django.mo").open("rb") as compiled:
        catalogue = gettext.GNUTranslations(compiled)._catalog  # type: ignore[attr-defined]
    expected: dict[object, str] = {}
    for message in messages(language):
        key = f"{message.context}\x04{message.id}" if message.context else message.id
        if message.plural:
            expected |= {(key, form): text for form, text in message.said.items()}
        else:
            expected[key] = message.said[0]
    del catalogue[""]
    assert catalogue == expected


@pytest.mark.parametrize("language", LANGUAGES)
def test_all_languages_know_the_same_messages(language: str) -> None:
    first, other = ({(m.context, m.id) for m in messages(name)} for name in (LANGUAGES[0], language))
    assert first == other


@pytest.mark.parametrize("code", [code for code, _ in settings.LANGUAGES if code != "en"])
def test_no_label_a_customer_reads_is_left_in_english(code: str) -> None:
    """Labels that exist in the code and not in the catalogue would show in English."""
    labels = [*Reason, *Origin, *EventKind]
    with override("en"):
        english = {str(item.label) for item in labels} | {str(head.name) for head in plain.HEADINGS.values()}
    with override(code):
        translated = {str(item.label) for item in labels} | {str(head.name) for head in plain.HEADINGS.values()}
    same = english & translated
    assert len(same) <= 2, same
