"""The plain words for codes: what a customer reads in place of a key, a category, an agent's name or an event's kind.

Codes never reach a page: what is not named here is made readable as it stands. Imports enums only.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memory_portal.enums import EventKind

Text = str | Promise


@dataclass(frozen=True, slots=True)
class Heading:
    name: Text
    says: Text = ""


HEADINGS = {
    "safety": Heading(
        _("Important for your safety"), _("Every assistant always sees these. Only you can change or remove them.")
    ),
    "constraint": Heading(_("Rules you gave us"), _("What our assistants must and must not do.")),
    "preference": Heading(_("What you like"), _("Used when we suggest or choose something for you.")),
    "context": Heading(_("About you"), _("Background that makes our answers fit.")),
}
"""In the order of the page. A category of the policy that is not here follows under its own name."""

KEYS = {
    "allergy": _("Allergy"),
    "contact_time": _("When to contact you"),
    "default_store": _("Your store"),
    "delivery_note": _("Delivery note"),
    "dietary_restriction": _("What you don’t eat"),
    "dining_table": _("Dining table"),
    "food_allergy": _("Food allergy"),
    "gift_for": _("Gifts for"),
    "home_airport": _("Home airport"),
    "household": _("Household"),
    "meal_preference": _("Meals"),
    "overnight_flight": _("Overnight flights"),
    "preferred_language": _("Language"),
    "preferred_material": _("Materials"),
    "red_eye_flights": _("Overnight flights"),
    "seat_preference": _("Seat preference"),
    "shoe_size": _("Shoe size"),
    "style": _("Style"),
    "substitutions": _("Substitutions"),
    "travel_party": _("Who you travel with"),
}


def words(code: str) -> str:
    """`seat_preference` -> `Seat preference`; scripts without capitals stay as they are."""
    text = " ".join(code.replace("_", " ").split())
    return text[:1].upper() + text[1:]


def key(code: str) -> str:
    return str(KEYS[code]) if code in KEYS else words(code)


def heading(category: str) -> Heading:
    return HEADINGS.get(category) or Heading(words(category))


def agent(name: str) -> str:
    return words(name) if name else gettext("an assistant")


def order(category: str) -> int:
    names = list(HEADINGS)
    return names.index(category) if category in names else len(names)


# --- activity: one sentence for each kind of event, by you and by anybody else ----------------------------------------

SENTENCES: dict[str, tuple[Text, Text]] = {
    EventKind.LEARNED: (_("You added {name}"), _("Learned {name}")),
    EventKind.ADDED: (_("You added {name}"), _("Our staff added {name}")),
    EventKind.CORRECTED: (_("You corrected {name}"), _("Our staff corrected {name}")),
    EventKind.UPDATED: (_("You changed {name}"), _("{name} was updated")),
    EventKind.RENEWED: (_("You confirmed {name}"), _("Heard {name} again")),
    EventKind.FORGOTTEN: (_("You forgot {name}"), _("Forgot {name}, as asked")),
    EventKind.CLEARED: (_("You had us forget everything"), _("Everything was forgotten")),
    EventKind.EXPIRED: (_("{name} reached its end date"), _("{name} reached its end date")),
    EventKind.FROZEN: (_("You froze {name}"), _("{name} was frozen")),
    EventKind.THAWED: (_("You said {name} is right after all"), _("{name} is in use again")),
    EventKind.PROPOSED: (_("We asked you about {name}"), _("We asked you about {name}")),
    EventKind.ACCEPTED: (_("You kept a suggestion: {name}"), _("A suggestion was kept: {name}")),
    EventKind.DISMISSED: (_("You dismissed a suggestion: {name}"), _("A suggestion was dismissed: {name}")),
    EventKind.PROPOSAL_EXPIRED: (
        _("A suggestion about {name} went away unanswered"),
        _("A suggestion about {name} went away unanswered"),
    ),
    EventKind.REFUSED: (_("{name} was refused"), _("{name} was refused")),
    EventKind.LIFTED: (_("You allowed {name} to be learned again"), _("{name} may be learned again")),
    EventKind.LEARNING_PAUSED: (_("You paused learning"), _("Learning was paused")),
    EventKind.LEARNING_RESUMED: (_("You switched learning on again"), _("Learning was switched on again")),
    EventKind.USING_PAUSED: (_("You paused using"), _("Using was paused")),
    EventKind.USING_RESUMED: (_("You switched using on again"), _("Using was switched on again")),
    EventKind.CHOICES_CHANGED: (
        _("You changed what may be remembered, or for whom"),
        _("What may be remembered was changed"),
    ),
    EventKind.CONSENT_GIVEN: (_("You agreed to health and safety notes"), _("Health and safety notes were agreed to")),
    EventKind.CONSENT_WITHDRAWN: (
        _("You withdrew your agreement to health and safety notes"),
        _("The agreement to health and safety notes was withdrawn"),
    ),
    EventKind.KEPT_LONGER: (
        _("You changed how long {name} is kept"),
        _("How long {name} is kept was changed"),
    ),
    EventKind.REVIEWED: (_("You checked {name}"), _("{name} was checked")),
    EventKind.REVEALED: (_("You looked at {name}"), _("A member of our staff looked at {name}")),
    EventKind.EXPORTED: (_("You took your memory with you"), _("Your memory was exported")),
    EventKind.IMPORTED: (_("You brought a file"), _("A file was imported")),
    EventKind.SIGNED_IN: (_("You signed in"), _("Somebody signed in for you")),
}

LEARNED = {EventKind.LEARNED, EventKind.ADDED, EventKind.RENEWED, EventKind.PROPOSED, EventKind.ACCEPTED}
FORGOTTEN = {
    EventKind.FORGOTTEN,
    EventKind.CLEARED,
    EventKind.EXPIRED,
    EventKind.DISMISSED,
    EventKind.PROPOSAL_EXPIRED,
}
CHANGED = {
    EventKind.CORRECTED,
    EventKind.UPDATED,
    EventKind.FROZEN,
    EventKind.THAWED,
    EventKind.KEPT_LONGER,
    EventKind.REVIEWED,
}
LOOKED = {EventKind.REVEALED}
CHOSEN = set(EventKind) - LEARNED - FORGOTTEN - CHANGED - LOOKED


def look(kind: str) -> str:
    """The class of an event's dot."""
    if kind in LOOKED:
        return "looked"
    if kind in FORGOTTEN:
        return "erased"
    return "learned" if kind in LEARNED else "changed"


def sentence(kind: str, *, by_customer: bool, name: str) -> SafeString:
    own, other = SENTENCES.get(kind, (EventKind(kind).label, EventKind(kind).label))
    return format_html(str(own if by_customer else other), name=format_html("<strong>{}</strong>", key(name)))
