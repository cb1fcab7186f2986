"""manage.py end_sessions: sign one person out of every browser, or everybody."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from memory_portal import store
from memory_portal.store.erasure import end_sessions


class Command(BaseCommand):
    help = "Sign a member of staff, a customer or everybody out of every browser, at once."

    def add_arguments(self, parser: CommandParser) -> None:
        whose = parser.add_mutually_exclusive_group(required=True)
        whose.add_argument("--staff", metavar="NAME", help="the name a member of staff signs in with")
        whose.add_argument("--customer", metavar="ID", help="the host's id of a customer; --profile says of which shop")
        whose.add_argument("--all", action="store_true", help="everybody, after a leak for example")
        parser.add_argument("--profile", default="", help="the policy's default profile where nothing is said")

    def handle(self, *args: Any, **told: Any) -> None:
        if told["all"]:
            self.stdout.write(f"{Session.objects.all().delete()[0]} sessions ended.")
            return
        end_sessions(self.user(told), timezone.now())
        self.stdout.write("Signed out everywhere.")

    def user(self, told: dict[str, Any]) -> int:
        if told["staff"]:
            found = get_user_model().objects.filter(username=told["staff"], is_staff=True).first()
            if found is None:
                raise CommandError("No member of staff signs in with this name.")
            return found.pk
        profile = told["profile"] or store.current_policy().default_profile
        customer = store.find(store.Subject(told["customer"], profile))
        if customer is None or customer.user_id is None:
            raise CommandError("No customer of this id ever signed in.")
        return customer.user_id
