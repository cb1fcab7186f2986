"""What templates need to speak plainly: names for codes, and dates as people of each language write them."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

from django import template
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import get_language_bidi, ngettext, pgettext
from django.utils.translation import gettext as _

from memory_portal import plain, store
from memory_portal.enums import ActorKind, Origin, Purpose, Reason, StaffRole

register = template.Library()

register.filter("plain_key", plain.key)
register.filter("heading", plain.heading)


@register.filter
def agent(name: str) -> str:
    """An agent's name; set apart where the page runs the other way, so that it cannot drag what follows along."""
    shown = plain.agent(name)
    return f"\u2068{shown}\u2069" if get_language_bidi() else shown


@register.filter
def day(moment: datetime | None) -> str:
    """3 March 2026"""
    return _whole(date_format(_local(moment), pgettext("date format: day, month, year", "j F Y"))) if moment else ""


@register.filter
def minute(moment: datetime | None) -> str:
    """3 March 2026, 18:42"""
    return _whole(date_format(_local(moment), pgettext("date format: day and time", "j F Y, H:i"))) if moment else ""


@register.filter
def month(moment: datetime | None) -> str:
    """March 2026"""
    return date_format(_local(moment), pgettext("date format: month and year", "F Y")) if moment else ""


@register.filter
def weekday(moment: datetime) -> str:
    """Thursday 14"""
    return date_format(_local(moment), pgettext("date format: weekday and day of the month", "l j"))


@register.filter
def clock(moment: datetime) -> str:
    return date_format(_local(moment), pgettext("date format: time of day", "H:i"))


@register.filter
def recent(moment: datetime, now: datetime) -> str:
    """today, 18:40 · yesterday, 18:40 · 10 May, 09:15 · 10 May 2025"""
    then, today = _local(moment), _local(now).date()
    if then.date() == today:
        return _("today, %(time)s") % {"time": clock(moment)}
    if then.date() == today - timedelta(days=1):
        return _("yesterday, %(time)s") % {"time": clock(moment)}
    if then.year == today.year:
        return date_format(then, pgettext("date format: day and time of this year", "j F, H:i"))
    return day(moment)


@register.filter
def days_left(moment: datetime | None, now: datetime) -> int | None:
    return (_local(moment).date() - _local(now).date()).days if moment else None


@register.filter
def month_key(moment: datetime) -> date:
    return _local(moment).date().replace(day=1)


@register.filter
def day_key(moment: datetime) -> date:
    return _local(moment).date()


def _whole(text: str) -> str:
    """A date stays on one line; before its time of day it may break."""
    return text.replace(" ", "\u00a0").replace(",\u00a0", ", ")


def _local(moment: datetime) -> datetime:
    return timezone.localtime(moment)


@register.filter
def sentence(happening: store.Happening) -> SafeString:
    """What happened, in a sentence, with the thing's name and never its content."""
    return plain.sentence(happening.kind, by_customer=happening.actor is ActorKind.CUSTOMER, name=happening.key)


@register.filter
def look(happening: store.Happening) -> str:
    return "used" if happening.kind == "read" else plain.look(happening.kind)


@register.filter
def reason(code: str) -> str:
    """A reason code in plain words; nothing for a code that is none."""
    return str(Reason(code).label) if code in Reason.values else ""


@register.filter
def office(code: str) -> str:
    """Of the member of staff who did it: not who, but in what office."""
    return str(StaffRole(code).label) if code in StaffRole.values else ""


@register.filter
def purpose(code: str) -> str:
    """Why staff did it."""
    return str(Purpose(code).label) if code in Purpose.values else ""


@register.filter
def origin(code: str) -> str:
    return str(Origin(code).label)


@register.filter
def told(event: dict[str, Any]) -> SafeString:
    """`sentence` for an event of an export."""
    by_customer = event["actor_kind"] == ActorKind.CUSTOMER
    return plain.sentence(event["kind"], by_customer=by_customer, name=event["key"])


@register.filter
def clocks(moments: tuple[datetime, ...]) -> str:
    return pgettext("between names", ", ").join(clock(moment) for moment in reversed(moments))


@register.filter
def listed(keys: tuple[str, ...]) -> SafeString:
    """Two names, and how many others: a read may hand over dozens."""
    comma = pgettext("between names", ", ")
    shown = format_html_join(comma, "<strong>{}</strong>", ((plain.key(key),) for key in keys[:2]))
    more = len(keys) - 2
    if more <= 0:
        return shown
    return format_html("{} {}", shown, ngettext("and %(more)d other", "and %(more)d others", more) % {"more": more})
