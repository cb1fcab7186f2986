"""docs/bridge.md is true: every operation stands in it, and every curl line works as written, in the order of the page."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from agent_bridge.rest import api

Agent = Callable[..., Client]
DOCS = (Path(__file__).resolve().parent.parent / "docs" / "bridge.md").read_text("utf-8")
NAMES = {"{subject_id}": "alice-17", "{key}": "seat_preference", "{job_id}": "$JOB_ID", "{import_id}": "$IMPORT_ID"}


def lines() -> Iterator[list[str]]:
    """The curl lines of the page's shell blocks, as a shell would split them."""
    for block in re.findall(r"```sh\n(.*?)```", DOCS, re.DOTALL):
        for line in block.replace("\\\n", " ").split("\ncurl"):
            words = shlex.split(line.removeprefix("curl"), comments=True)
            if any(word.startswith(("$BRIDGE", "$MCP")) for word in words):
                yield words


def sent(client: Client, words: list[str], known: dict[str, str]) -> Any:
    method, headers, body, address = "GET", {}, b"", ""
    rest = iter(words)
    for word in rest:
        if word == "-X":
            method = next(rest)
        elif word == "-H":
            name, _, value = next(rest).partition(": ")
            if name != "Authorization" or "$TOKEN" in value:
                headers[name] = value.replace("$TOKEN", known.get("$TOKEN", ""))
        elif word == "-d":
            body = next(rest).encode()
        else:
            address = word
    for name, value in known.items():
        address = address.replace(name, value)
    return client.generic(method, address, body, "application/json", headers=headers)


def test_every_operation_is_shown() -> None:
    for path, methods in api.get_openapi_schema(path_prefix="")["paths"].items():
        for name, value in NAMES.items():
            path = path.replace(name, value)
        for method in methods:
            shown = (
                rf"curl[^\n]*{'' if method == 'get' else '-X ' + method.upper()}[^\n]*\"\$BRIDGE{re.escape(path)}[\"?]"
            )
            assert re.search(shown, DOCS), f"{method.upper()} {path}"


@pytest.mark.django_db
def test_every_line_works_as_written(agent: Agent, settings: Any) -> None:
    settings.BRIDGE_WAITS = 0  # nobody waits here
    client, known, ran = agent(), {"$BRIDGE": "/bridge/v1", "$MCP": "/bridge/mcp"}, 0
    for words in lines():
        answer = sent(client, words, known)
        not_written_yet = answer.status_code == 404 and "facts/seat_preference" in words[-1]
        assert answer.status_code < 400 or not_written_yet, (words, answer.content)
        if answer.status_code == 202 and "job_id" in answer.json():
            known["$JOB_ID"] = answer.json()["job_id"]
        if "import_id" in answer.content.decode():
            known["$IMPORT_ID"] = answer.json()["import_id"]
        if "/changes" in words[-1]:
            known["$NEXT"] = answer.json()["next"]
        if answer.status_code == 201 and "token" in answer.json():
            known["$TOKEN"] = answer.json()["token"]
        ran += 1
    assert ran >= 15
