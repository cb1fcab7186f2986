"""For the last step of a rotation: writes anew what can be, and says what still rests on former secrets, so that it is known when
one of them may be dropped.
"""

from __future__ import annotations

from typing import Any

from allauth.mfa.adapter import get_adapter
from allauth.mfa.models import Authenticator
from django.core.management.base import BaseCommand
from django.db.models import Count

from agent_bridge.models import AgentKey, Webhook

SEALED = ("secret", "seed")


class Command(BaseCommand):
    help = (
        "Seal second steps under today's SECRET_KEY; say which keys and webhooks rest on which version of the pepper."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        box, done = get_adapter(), 0
        for step in Authenticator.objects.iterator():
            sealed = {name: box.encrypt(box.decrypt(step.data[name])) for name in SEALED if name in step.data}
            if codes := step.data.get("migrated_codes"):
                sealed["migrated_codes"] = [box.encrypt(box.decrypt(code)) for code in codes]
            # Only where nobody used it meanwhile: a spare code that was used up must not come back.
            done += Authenticator.objects.filter(pk=step.pk, data=step.data).update(data={**step.data, **sealed})
        self.stdout.write(f"{done} second steps sealed under today's SECRET_KEY")
        for name, model in (("agent keys", AgentKey), ("webhooks", Webhook)):
            by_version = model._default_manager.values_list("pepper_version").annotate(many=Count("pk"))
            for version, many in by_version.order_by("pepper_version"):
                self.stdout.write(f"{many} {name} under version {version} of AGENT_KEY_PEPPER")
