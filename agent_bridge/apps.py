from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AgentBridgeConfig(AppConfig):
    name = "agent_bridge"
    verbose_name = _("Agents")

    def ready(self) -> None:
        from agent_bridge import imports, jobs
        from memory_portal import store

        store.withdrawn.connect(jobs.on_withdrawn, dispatch_uid="agent_bridge.jobs.on_withdrawn")
        store.withdrawn.connect(imports.on_withdrawn, dispatch_uid="agent_bridge.imports.on_withdrawn")
