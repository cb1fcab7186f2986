"""Run recorded conversations through the configured extractor and show what each claim would come to. Nothing is written.

The file is JSON: one conversation, a list of them, or an object with `conversations`, each with `messages` as the bridge takes
them and, if wanted, `profile`, `session_id`, `said_at` and `held` (facts already known: key, value, category).
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from pydantic import ValidationError

from agent_bridge import reading
from agent_bridge.extraction import Extraction, ExtractionRequest, Known, Turn, configured
from agent_bridge.extraction.grounding import Source, ground
from agent_bridge.schemas import TurnsIn
from memory_portal import store
from memory_portal.enums import Reason


@dataclass(frozen=True)
class Recorded:
    """One conversation of the file."""

    name: str
    profile: str
    turns: tuple[Turn, ...]
    held: tuple[Known, ...]


class Command(BaseCommand):
    help = "Shows what the configured extractor makes of recorded conversations: candidates, decisions and reasons."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="conversations as JSON")
        parser.add_argument("--profile", default="", help="the policy's profile, where the file names none")

    def handle(self, *args: Any, file: Path, profile: str, **options: Any) -> None:
        now = timezone.now()
        extractor, totals, tokens = configured(), Counter[str](), 0
        for recorded in conversations(file, profile, now):
            request = ExtractionRequest(
                profile=reading.profile(recorded.profile),
                turns=recorded.turns,
                now=now,
                held=recorded.held,
                max_new_facts=store.current_policy().limits.max_new_facts,
            )
            answer = extractor.extract(request)
            tokens += answer.input_tokens + answer.output_tokens
            self.stdout.write(f"\n{recorded.name}  ({recorded.profile}, {len(recorded.turns)} turns)")
            for decision, claim in judged(answer, recorded, now):
                totals[decision] += 1
                self.stdout.write(f"  {decision:<28} {claim}")
        self.stdout.write(f"\n{sum(totals.values())} claims, {tokens} tokens")
        for decision, number in sorted(totals.items()):
            self.stdout.write(f"  {decision:<28} {number}")


def conversations(file: Path, profile: str, now: datetime) -> Iterator[Recorded]:
    """What the file holds; CommandError says where it cannot be read."""
    try:
        data = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CommandError(f"{file.name} cannot be read: {error}") from error
    profiles = {}
    if isinstance(data, dict) and "conversations" in data:
        profiles = {told["subject_id"]: told["profile"] for told in data.get("customers", [])}
        data = data["conversations"]
    for number, told in enumerate(data if isinstance(data, list) else [data], start=1):
        name = str(told.get("session_id") or f"conversation {number}")
        said_at = {"said_at": told["said_at"]} if "said_at" in told else {}
        try:
            body = TurnsIn.model_validate({"session_id": name, "messages": told["messages"], **said_at})
            held = tuple(Known(**fact) for fact in told.get("held", []))
        except (KeyError, TypeError, ValidationError) as error:
            raise CommandError(f"{file.name}: conversation {number} is not in the form the bridge takes") from error
        turns = tuple(Turn(role, text, said) for role, text, said in body.said(now))
        whose = told.get("profile") or profiles.get(told.get("subject_id")) or profile
        yield Recorded(name, whose or store.current_policy().default_profile, turns, held)


def judged(answer: Extraction, recorded: Recorded, now: datetime) -> Iterator[tuple[str, str]]:
    """Each claim with what grounding makes of it; the store's own rules come after and need a customer."""
    if answer.failure:
        yield f"failed/{answer.failure.code}", "no answer"
    for code, number in answer.refused.items():
        yield f"refused/{code}", f"{number} of the answer"
    for candidate in answer.candidates:
        found = ground(candidate, Source(recorded.turns, extractor=answer.extractor), now=now)
        claim = f'{candidate.action} {candidate.key} = {candidate.value!r} [{candidate.category}] because "{candidate.quote}"'
        if isinstance(found, Reason):
            yield f"refused/{found.value}", claim
        elif found.suspicion:
            yield f"proposed/{found.suspicion.value}", claim
        else:
            yield "grounded", claim
