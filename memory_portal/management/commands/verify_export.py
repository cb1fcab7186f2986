"""Says whether an export is as this site signed it, or with --key as the site signed it whose published key is given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
from django.core.management.base import BaseCommand, CommandError, CommandParser

from memory_portal import signing
from memory_portal.signing import Verdict

SAYS = {
    Verdict.CHANGED: "The file was changed after it was signed.",
    Verdict.FOREIGN: "The file was signed with another key, so this one cannot tell.",
    Verdict.UNSIGNED: "The file carries no signature.",
}


class Command(BaseCommand):
    help = "Check the signature of a JSON export."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--key", default="", help="public key in base64, as published at /.well-known/memory-portal-key"
        )

    def handle(self, *args: Any, file: Path, key: str, **options: Any) -> None:
        try:
            public = signing.PublicKey.of(key) if key else None
            envelope = orjson.loads(Path(file).read_bytes())
        except OSError as error:
            raise CommandError(f"{file} cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise CommandError(f"This is not a JSON export, or not a key: {type(error).__name__}") from error
        verdict = signing.checked(envelope, public)
        if verdict is not Verdict.GENUINE:
            raise CommandError(SAYS[verdict])
        made = envelope["memory"].get("made_at", "") if isinstance(envelope["memory"], dict) else ""
        self.stdout.write(f"genuine: unchanged since it was signed {made}".rstrip())
