"""Erases one customer on behalf of the operator, who says why. There is no way back, so it asks first; it prints what went."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from memory_portal import store
from memory_portal.enums import ActorKind


class Command(BaseCommand):
    help = "Erase everything about one customer. Prints how much of each went; leaves a line in the erasure ledger."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("subject", help="the host's id of the customer; - reads it from the standard input")
        parser.add_argument("--profile", required=True, help="whose customer: a profile of the policy")
        parser.add_argument(
            "--reason", required=True, choices=[code for code in store.ERASURE_REASONS if code != "replayed"]
        )
        parser.add_argument("--yes", action="store_true", help="do not ask")

    def handle(self, *args: Any, subject: str, profile: str, reason: str, yes: bool, **options: Any) -> None:
        if subject == "-":
            subject, yes = sys.stdin.readline().rstrip("\n"), True
        now = timezone.now()
        try:
            customer = store.find(store.Subject(subject, profile))
        except store.InvalidDraft as error:
            raise CommandError(str(error)) from None
        if customer is None:
            raise CommandError(f"There is no such customer of {profile}.")
        held = len(store.facts(customer, now=now))
        if (
            not yes
            and input(f"Customer {customer.pk} of {profile} with {held} facts: type erase to go on: ") != "erase"
        ):
            raise CommandError("Nothing was erased.")
        receipt = store.erase(customer.pk, store.Actor(ActorKind.SYSTEM), now=now, reason=reason)
        for name, count in receipt.counts.items():
            self.stdout.write(f"{count:>6} {name}")
        self.stdout.write(f"erased at {now.isoformat()}, for the reason {reason}")
