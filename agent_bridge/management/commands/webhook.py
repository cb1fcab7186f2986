"""manage.py webhook create|list|resume|remove: a webhook's secret is printed once, when it is made, and never again."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from agent_bridge import webhooks
from agent_bridge.models import Webhook
from memory_portal import store


class Command(BaseCommand):
    help = "Make, list, resume and remove the webhooks that tell hosts of changes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        create = acts.add_parser("create", help="Make a webhook and print its secret once.")
        create.add_argument("url", help="Starts with https:// and leads to a public address.")
        create.add_argument("--agent", required=True, help="The agent's name, as its key has it: it has its rights.")
        create.add_argument("--profile", default="", help="Left out: the policy's default profile.")
        create.add_argument(
            "--events", default="", help=f"Comma-separated, out of {', '.join(store.CHANGE_KINDS)}. Left out: all."
        )
        create.add_argument("--quiet", action="store_true", help="Print the secret only.")
        acts.add_parser("list", help="List all webhooks and how they fare.")
        for act, what in (("resume", "Try again one that was paused or given up."), ("remove", "End a webhook.")):
            acts.add_parser(act, help=what).add_argument("id")

    def handle(self, *args: Any, **options: Any) -> None:
        getattr(self, options["act"])(options)

    def create(self, options: dict[str, Any]) -> None:
        try:
            hook, secret = webhooks.create(
                options["url"],
                options["agent"],
                options["profile"] or store.current_policy().default_profile,
                events=[kind.strip() for kind in options["events"].split(",") if kind.strip()],
                now=timezone.now(),
            )
        except ValueError as error:
            raise CommandError(str(error)) from error
        if not options["quiet"]:
            self.stdout.write(f"{hook.pk}, for {hook.agent} ({hook.profile}), from now on.")
            self.stdout.write("This is the only time its secret is shown:")
        self.stdout.write(secret)

    def list(self, options: dict[str, Any]) -> None:
        for hook in Webhook.objects.order_by("profile", "agent", "created_at"):
            failing = f"  {hook.failures} failures, {hook.last_code}" if hook.failures else ""
            self.stdout.write(
                f"{hook.pk}  {self.state(hook):<9}{hook.delivered:>9} told  {hook.profile}  {hook.agent}  {hook.url}{failing}"
            )

    def state(self, hook: Webhook) -> str:
        return "given up" if hook.parked_at else "active" if hook.active else "paused"

    def resume(self, options: dict[str, Any]) -> None:
        webhooks.resume(self.find(options["id"]), timezone.now())
        self.stdout.write("It is told what it missed, and goes on.")

    def remove(self, options: dict[str, Any]) -> None:
        self.find(options["id"]).delete()
        self.stdout.write("It is told nothing more.")

    def find(self, pk: str) -> Webhook:
        try:
            return Webhook.objects.get(pk=pk)
        except (Webhook.DoesNotExist, ValidationError):
            raise CommandError("There is no webhook with that id: manage.py webhook list shows them.") from None
