"""The fixed words of the product: stored codes and their labels. A leaf: everyone may import it, it imports Django's enums only."""

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class Origin(TextChoices):
    """Who stands behind a fact. The order is the rank: a lower one never overwrites a higher one."""

    AGENT = "agent", _("An agent suggested it")
    EXTRACTION = "extraction", _("You said it")
    STAFF = "staff", _("Our staff noted it")
    CUSTOMER = "customer", _("You wrote it")

    @property
    def rank(self) -> int:
        return list(Origin).index(self)


class ActorKind(TextChoices):
    """Who did something, for events and for the rules that look at the doer rather than at the fact."""

    CUSTOMER = "customer", _("you")
    STAFF = "staff", _("our staff")
    AGENT = "agent", _("an agent")
    JOB = "job", _("an agent")
    SYSTEM = "system", _("this site")


class StaffRole(TextChoices):
    """In what office a member of staff acts. The customer reads it in place of a name."""

    SUPPORT = "support", _("customer support")
    PRIVACY_OFFICER = "privacy_officer", _("privacy officer")
    OPERATOR = "operator", _("operations")
    ADMINISTRATOR = "administrator", _("administration")


class Purpose(TextChoices):
    """Why staff look at, correct or delete something. A fixed list: a free text could hold a value. Labels are the customer's."""

    ASKED = "customer_asked", _("because you asked us")
    COMPLAINT = "complaint", _("because of your complaint")
    LEGAL_REQUEST = "legal_request", _("to answer your request under privacy law")
    FRAUD_CHECK = "fraud_check", _("to check for fraud")
    FAULT = "fault", _("to find a fault")


class RequestKind(TextChoices):
    """What a person asks for by letter, call or mail."""

    ACCESS = "access", _("Access")
    CORRECTION = "correction", _("Correction")
    ERASURE = "erasure", _("Erasure")
    OBJECTION = "objection", _("Objection")
    COMPLAINT = "complaint", _("Complaint")


class Regime(TextChoices):
    """Whose law the clock of a request follows."""

    GDPR = "gdpr", _("GDPR")
    CCPA = "ccpa", _("CCPA")
    UK = "uk", _("UK GDPR")


class Channel(TextChoices):
    LETTER = "letter", _("Letter")
    MAIL = "mail", _("E-mail")
    PHONE = "phone", _("Phone")
    FORM = "form", _("Form")
    IN_PERSON = "in_person", _("In person")


class ExtensionReason(TextChoices):
    COMPLEX = "complex", _("It is complex")
    NUMEROUS = "numerous", _("There are many requests")


class RequestOutcome(TextChoices):
    DONE = "done", _("Done")
    NOTHING_HELD = "nothing_held", _("Nothing is held")
    WHO_UNKNOWN = "who_unknown", _("Refused: it could not be told who asks")
    UNFOUNDED = "unfounded", _("Refused: unfounded or excessive")
    WITHDRAWN = "withdrawn", _("Withdrawn")


class FactState(TextChoices):
    ACTIVE = "active", _("In use")
    FROZEN = "frozen", _("Frozen")


class FreezeReason(TextChoices):
    WRONG = "wrong", _("This is wrong")
    NOT_ME = "not_me", _("This isn’t about me")


class Theme(TextChoices):
    """How the pages look; nothing chosen means as the device does."""

    LIGHT = "light", _("Light")
    DARK = "dark", _("Dark")


class ChangeAction(TextChoices):
    """What a candidate, a draft or a proposal asks for."""

    REMEMBER = "remember", _("remember")
    FORGET = "forget", _("forget")


class TombstoneReason(TextChoices):
    FORGOTTEN = "forgotten", _("You had us forget it")
    DISMISSED = "dismissed", _("You dismissed it")


class EventKind(TextChoices):
    """What a FactEvent says happened. Never what from or what to."""

    LEARNED = "learned", _("Learned")
    ADDED = "added", _("Added")
    CORRECTED = "corrected", _("Corrected")
    UPDATED = "updated", _("Updated")
    RENEWED = "renewed", _("Heard again")
    FORGOTTEN = "forgotten", _("Forgotten")
    CLEARED = "cleared", _("Forgot everything")
    EXPIRED = "expired", _("Reached its end date")
    FROZEN = "frozen", _("Frozen")
    THAWED = "thawed", _("In use again")
    PROPOSED = "proposed", _("Suggested")
    ACCEPTED = "accepted", _("Suggestion kept")
    DISMISSED = "dismissed", _("Suggestion dismissed")
    PROPOSAL_EXPIRED = "proposal_expired", _("Suggestion went away")
    REFUSED = "refused", _("Refused")
    LIFTED = "lifted", _("May be learned again")
    LEARNING_PAUSED = "learning_paused", _("Learning paused")
    LEARNING_RESUMED = "learning_resumed", _("Learning resumed")
    USING_PAUSED = "using_paused", _("Using paused")
    USING_RESUMED = "using_resumed", _("Using resumed")
    CHOICES_CHANGED = "choices_changed", _("Choices changed")
    CONSENT_GIVEN = "consent_given", _("Consent given")
    CONSENT_WITHDRAWN = "consent_withdrawn", _("Consent withdrawn")
    KEPT_LONGER = "kept_longer", _("Kept longer")
    REVIEWED = "reviewed", _("Checked by you")
    REVEALED = "revealed", _("Looked at by staff")
    EXPORTED = "exported", _("Taken with you")
    IMPORTED = "imported", _("Imported")
    SIGNED_IN = "signed_in", _("Signed in")


class Noted(TextChoices):
    """What the erasure ledger holds, so that a restored copy of the database does it again. Codes; nobody reads the labels."""

    ERASED = "erased"
    FORGOTTEN = "forgotten"
    CLEARED = "cleared"
    CONSENT_WITHDRAWN = "consent_withdrawn"
    LEARNING_PAUSED = "learning_paused"
    LEARNING_RESUMED = "learning_resumed"
    USING_PAUSED = "using_paused"
    USING_RESUMED = "using_resumed"


class Reason(TextChoices):
    """Why something was refused or became a proposal. Codes are counted, shown and sent; the text they judged is not."""

    # refused before anything is looked at
    EMPTY = "empty", _("Nothing is left of it once invisible characters are taken out.")
    TOO_LONG = "too_long", _("It is longer than we keep.")
    BAD_KEY = "bad_key", _("That name cannot be used.")
    UNKNOWN_CATEGORY = "unknown_category", _("That kind is not kept here.")
    # policy
    MEMORY_OFF = "memory_off", _("Memory is switched off here.")
    LEARNING_PAUSED = "learning_paused", _("Learning is paused.")
    CATEGORY_OFF = "category_off", _("This kind is not remembered.")
    AGENT_OFF = "agent_off", _("This assistant may not learn.")
    KEY_NOT_ALLOWED = "key_not_allowed", _("Facts of this name are not kept.")
    BLOCKED_PATTERN = "blocked_pattern", _("It contains something this company never keeps.")
    NEVER_WORD = "never_word", _("It contains one of your words never to remember.")
    TOO_MANY_FACTS = "too_many_facts", _("There is no room for another fact.")
    TOO_MANY_TODAY = "too_many_today", _("Enough new facts for one day.")
    TOO_MANY_IN_JOB = "too_many_in_job", _("Enough new facts from one conversation.")
    # write filter
    CARD = "card", _("It looks like a payment card number.")
    IBAN = "iban", _("It looks like a bank account number.")
    NATIONAL_ID = "national_id", _("It looks like an identity number.")
    PHONE = "phone", _("It looks like a phone number.")
    EMAIL = "email", _("It looks like an e-mail address.")
    SECRET = "secret", _("It looks like a password or a secret key.")
    LINK = "link", _("It contains a web address.")
    MARKUP = "markup", _("It contains markup or code.")
    FILTER_FAILED = "filter_failed", _("It could not be checked, so it is not kept.")
    # grounding
    NO_QUOTE = "no_quote", _("The quoted words do not stand in what the customer said.")
    BARE_ASSENT = "bare_assent", _("A bare yes proves nothing.")
    UNGROUNDED_VALUE = "ungrounded_value", _("Numbers or negations of the value are not in the quoted words.")
    ECHO = "echo", _("It repeats our own memory.")
    UNKNOWN_KEY = "unknown_key", _("There is no fact of that name.")
    # rank, time, deletion
    ALREADY_KNOWN = "already_known", _("It is known already.")
    STALE = "stale", _("It was said before what is kept now.")
    STALE_GENERATION = "stale_generation", _("Everything was forgotten since.")
    FORGOTTEN_BEFORE = "forgotten_before", _("It was forgotten after this was said.")
    DISMISSED_BEFORE = "dismissed_before", _("It was suggested before and dismissed.")
    FROZEN = "frozen", _("The fact is frozen.")
    NOT_ALLOWED = "not_allowed", _("Only the customer may do this.")
    # proposals
    AFTER_FORGETTING = "after_forgetting", _("You had us forget this and have mentioned it again since.")
    DIFFERS_FROM_CORRECTION = "differs_from_correction", _("It differs from what you wrote yourself.")
    LOWER_RANK = "lower_rank", _("It differs from what somebody with a better right wrote.")
    WEAKENS_SAFETY = "weakens_safety", _("It would change something important for your safety.")
    NEEDS_CONSENT = "needs_consent", _("It is about health or safety. We keep such things only if you agree.")
    INSTRUCTION_SHAPED = "instruction_shaped", _("It reads like an instruction rather than a fact.")
    QUOTED_TEXT = "quoted_text", _("It stands in text that you quoted or pasted.")
    AGENT_SUGGESTION = "agent_suggestion", _("An agent suggested it.")
    CONFLICTS = "conflicts", _("It seems to contradict something we remember.")
    IMPORTED = "imported", _("It comes from a file that you brought.")
