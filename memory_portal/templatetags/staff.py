"""What the staff's pages say of an event and of where a fact comes from: the customer's sentences, told of a third person."""

from __future__ import annotations

from django import template
from django.utils.translation import gettext_lazy as _

from memory_portal import plain, store
from memory_portal.enums import EventKind, Origin

register = template.Library()

BY = {
    Origin.AGENT: _("an agent suggested it"),
    Origin.EXTRACTION: _("the customer said it"),
    Origin.STAFF: _("staff noted it"),
    Origin.CUSTOMER: _("the customer wrote it"),
}


@register.filter
def by(origin: str) -> str:
    return str(BY[Origin(origin)])


@register.filter
def happening(one: store.Happening) -> str:
    """Code by code, as whoever looks for a fault needs it."""
    said = [EventKind(one.kind).label, plain.key(one.key) if one.key else "", one.actor or "", one.agent, one.code]
    return " · ".join(str(part) for part in said if part)
