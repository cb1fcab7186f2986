"""manage.py agent_key create|rotate|revoke|list: a key is printed once, when it is made, and never again."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from agent_bridge import auth
from agent_bridge.models import AgentKey
from memory_portal import store

SOON = timedelta(days=14)


class Command(BaseCommand):
    help = "Make, replace, revoke and list the keys of agents."

    def add_arguments(self, parser: ArgumentParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        create = acts.add_parser("create", help="Make a key and print it once.")
        create.add_argument("name", help="The agent's name, as customers read it.")
        create.add_argument(
            "--profile", default="", help="Whose customers it reaches; left out: the policy's default profile."
        )
        create.add_argument(
            "--scopes",
            default=",".join((auth.READ, auth.READ_SAFETY, auth.TURNS)),
            help=f"Comma-separated, out of {', '.join(auth.SCOPES)}. Default: %(default)s",
        )
        create.add_argument(
            "--days", type=int, default=auth.LIFE.days, help="Life in days, at most 365. Default: %(default)s"
        )
        create.add_argument("--test", action="store_true", help="Mark it mp_test_.")
        create.add_argument("--quiet", action="store_true", help="Print the key only.")
        rotate = acts.add_parser("rotate", help="Make a successor; the old key works until the overlap is over.")
        rotate.add_argument("prefix")
        rotate.add_argument("--overlap-hours", type=float, default=24)
        rotate.add_argument("--days", type=int, default=auth.LIFE.days)
        revoke = acts.add_parser("revoke", help="End a key now.")
        revoke.add_argument("prefix")
        acts.add_parser("list", help="List all keys, by prefix.")

    def handle(self, *args: Any, **options: Any) -> None:
        getattr(self, options["act"])(options)

    def create(self, options: dict[str, Any]) -> None:
        try:
            row, key = auth.issue(
                options["name"],
                options["profile"] or store.current_policy().default_profile,
                [scope.strip() for scope in options["scopes"].split(",") if scope.strip()],
                now=timezone.now(),
                life=timedelta(days=options["days"]),
                test=options["test"],
            )
        except ValueError as error:
            raise CommandError(str(error)) from error
        self.show(row, key, quiet=options["quiet"])

    def rotate(self, options: dict[str, Any]) -> None:
        old = self.find(options["prefix"])
        try:
            row, key = auth.rotate(
                old,
                now=timezone.now(),
                overlap=timedelta(hours=options["overlap_hours"]),
                life=timedelta(days=options["days"]),
            )
        except ValueError as error:
            raise CommandError(str(error)) from error
        self.show(row, key)
        self.stdout.write(f"{old.prefix}… works until {old.expires_at:%Y-%m-%d %H:%M} UTC.")

    def revoke(self, options: dict[str, Any]) -> None:
        key = self.find(options["prefix"])
        auth.revoke(key, now=timezone.now())
        self.stdout.write(f"{key.prefix}… ({key.name}) is revoked.")

    def list(self, options: dict[str, Any]) -> None:
        now = timezone.now()
        for key in AgentKey.objects.order_by("profile", "name", "created_at"):
            used = f"used {key.last_used_at:%Y-%m-%d %H:%M}" if key.last_used_at else "never used"
            self.stdout.write(
                f"{key.prefix}…  {self.state(key, now):<24}{used:<24}{key.profile}  {key.name}  {' '.join(key.scopes)}"
            )

    def state(self, key: AgentKey, now: Any) -> str:
        if key.revoked_at:
            return "revoked"
        if key.expires_at <= now:
            return "expired"
        until = f"until {key.expires_at:%Y-%m-%d}"
        return f"{until} (rotate!)" if key.expires_at - now < SOON else until

    def find(self, prefix: str) -> AgentKey:
        """The key whose look-up prefix this is. A whole key is refused: it would stand in the shell's history."""
        key = AgentKey.objects.filter(prefix=prefix.rstrip("…")).first()
        if key is None:
            raise CommandError("There is no key with that prefix: manage.py agent_key list shows them, 16 signs each.")
        return key

    def show(self, row: AgentKey, key: str, *, quiet: bool = False) -> None:
        if not quiet:
            self.stdout.write(
                f"{row.name}, for {row.profile}, {' '.join(row.scopes)}, until {row.expires_at:%Y-%m-%d}."
            )
            self.stdout.write("This is the only time the key is shown:")
        self.stdout.write(key)
