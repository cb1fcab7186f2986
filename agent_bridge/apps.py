from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AgentBridgeConfig(AppConfig):
    name = "agent_bridge"
    verbose_name = _("Agents")
