from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AgentBridgeConfig(AppConfig):
    name = "agent_bridge"
    verbose_name = _("Agents")

    def ready(self) -> None:
        from django.db.models.signals import post_delete, post_save

        from agent_bridge import allowance, imports, jobs
        from agent_bridge.models import AgentKey
        from memory_portal import store

        store.withdrawn.connect(jobs.on_withdrawn, dispatch_uid="agent_bridge.jobs.on_withdrawn")
        store.withdrawn.connect(imports.on_withdrawn, dispatch_uid="agent_bridge.imports.on_withdrawn")
        for saved in (post_save, post_delete):
            saved.connect(allowance.on_saved, sender=AgentKey, dispatch_uid="agent_bridge.allowance.on_saved")
