"""manage.py reveal: look at one value from a terminal, by the same rules as in the admin, and the customer reads of it, too."""

from __future__ import annotations

import getpass
import sys
from typing import Any

from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from memory_portal import store
from memory_portal.enums import Purpose
from memory_portal.models import MemoryFact
from memory_portal.staff.looking import look
from memory_portal.staff.proof import BY_CODE, proves, way


class Command(BaseCommand):
    help = "Look at one remembered value. Asks for the code of your second step, or your password; the customer reads of it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--staff", required=True, help="your name at the admin")
        parser.add_argument("--reason", required=True, choices=Purpose.values)
        parser.add_argument("--profile", required=True, help="the customer's shop: a profile of the policy")
        parser.add_argument("--subject", required=True, help="the customer's id")
        parser.add_argument("key", help="the fact's name, such as seat_preference")

    def handle(self, *args: Any, **options: Any) -> None:
        user = self.proven(options["staff"])
        try:
            customer = store.find(store.Subject(options["subject"], options["profile"]))
        except store.InvalidDraft as wrong:
            raise CommandError("no such fact") from wrong
        rows = MemoryFact.objects.filter(customer=customer, key=store.normalise_key(options["key"]))
        fact_id = rows.values_list("pk", flat=True).first()
        if customer is None or fact_id is None:
            raise CommandError("no such fact")
        try:
            fact = look(user, customer.pk, fact_id, options["reason"], now=timezone.now())
        except store.NotFound as gone:
            raise CommandError("no such fact") from gone
        self.stdout.write(fact.value)

    def proven(self, name: str) -> User:
        user = User.objects.filter(username=name, is_active=True, is_staff=True).first()
        what = "Code: " if user and way(user) == BY_CODE else "Password: "
        secret = getpass.getpass(what) if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
        if user is None or (settings.STAFF_MFA and not is_mfa_enabled(user)) or not proves(user, secret):
            raise CommandError("that is not right, or it was used already")
        if not user.has_perm("memory_portal.reveal_memoryfact"):
            raise CommandError("you may not look at values")
        return user
