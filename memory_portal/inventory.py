"""The data inventory: what each column is, why it is kept, on what ground, how long, who gets it, and what an erasure does to it.

One list, from which the notice (views/notice.py) and the record of processing (record.py, docs/privacy.md) are made. Which column
is of which kind stands in columns.py; whether it is exported in store/exporting.py. Times come from the policy and the settings,
so that the notice says what holds on this site.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memory_portal import store

Text = str | Promise


class Basis(Enum):
    """The legal ground, as shipped. The company that runs the site may have to choose another."""

    CONTRACT = "contract"
    INTEREST = "interest"
    CONSENT = "consent"
    DUTY = "duty"


BASES: dict[Basis, Text] = {
    Basis.CONTRACT: _("so that you can use what you asked for (GDPR 6(1)(b))"),
    Basis.INTEREST: _(
        "our interest in helping you well and safely, which you can object to at any time (GDPR 6(1)(f))"
    ),
    Basis.CONSENT: _("your consent, for health and other sensitive things (GDPR 6(1)(a), 9(2)(a))"),
    Basis.DUTY: _("our duty to show what we did with your data (GDPR 5(2), 6(1)(c))"),
}


class Recipient(Enum):
    AGENTS = "agents"
    STAFF = "staff"
    MODEL = "model"
    MAIL = "mail"


RECIPIENTS: dict[Recipient, Text] = {
    Recipient.AGENTS: _("The company’s assistants, each only as far as its key and your choices reach"),
    Recipient.STAFF: _("The company’s staff: behind a mask, and every look at a value is shown to you"),
    Recipient.MODEL: _("The provider of the AI that reads conversations; it is not told who you are"),
    Recipient.MAIL: _("The provider that carries our mails"),
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A paragraph of the notice and a line of the record. `kept` may name the times of `times()`."""

    name: Text
    holds: Text
    why: Text
    kept: Text
    bases: tuple[Basis, ...]
    recipients: tuple[Recipient, ...] = ()
    erased: str = "with the account"
    of: str = "customers"


KINDS = {
    "identity": Kind(
        _("Who you are here"),
        _("The number the company knows you by, and your name, e-mail address and country where it told us."),
        _("To keep your memory apart from everybody else’s, to let you in and to write to you."),
        _("Until you close your account."),
        (Basis.CONTRACT,),
        (Recipient.STAFF, Recipient.MAIL),
    ),
    "memory": Kind(
        _("What our assistants remember about you"),
        _("What you said or wrote, in a few words, beside the sentence it comes from; earlier versions; suggestions."),
        _("So that our assistants can help you without asking again."),
        _("Until the day that stands beside it, until you forget it, or until you close your account. Suggestions:"
          " %(proposals)d days."),
        (Basis.INTEREST, Basis.CONSENT),
        (Recipient.AGENTS, Recipient.STAFF),
        erased="at once when forgotten, and with the account",
    ),
    "conversations": Kind(
        _("Conversations that wait to be read"),
        _("What you and an assistant said to each other, without what its tools said."),
        _("To note from it, by AI, what you would want remembered."),
        _("Until it has been read, usually within minutes; where that fails, a day. How many notes came of it stays until you"
          " close your account."),
        (Basis.INTEREST, Basis.CONSENT),
        (Recipient.MODEL,),
        erased="the words once read or given up; the rest with the account",
    ),
    "choices": Kind(
        _("What you chose"),
        _("What is paused, for which kinds and assistants; words never to be remembered; language, looks and mails."),
        _("To do as you said."),
        _("Until you change it or close your account."),
        (Basis.CONTRACT,),
    ),
    "consents": Kind(
        _("What you agreed to"),
        _("Which wording you agreed to, when and where, and when you took it back."),
        _("To be able to show it."),
        _("Until you close your account."),
        (Basis.DUTY,),
        (Recipient.STAFF,),
    ),
    "history": Kind(
        _("What happened to your memory"),
        _("What was learned, corrected, forgotten or looked at, when and by whom: names of things, never what they said."),
        _("So that you can check on us, and we can show that we kept our word."),
        _("%(events)d months. Once you closed your account, what is left leads to nobody."),
        (Basis.DUTY,),
        (Recipient.STAFF, Recipient.AGENTS),
        erased="stays under a number that leads to nobody",
    ),
    "readers": Kind(
        _("Who used it"),
        _("Which assistant was told which entries, and when."),
        _("So that you can see who was told what."),
        _("%(reads)d months, or until you close your account."),
        (Basis.DUTY,),
        (Recipient.STAFF,),
    ),
    "buried": Kind(
        _("What won’t be learned again"),
        _("The name of what you had us forget, and a fingerprint that nobody can read back."),
        _("So that it does not come back."),
        _("%(tombstones)d days, until you allow it again, or until you close your account."),
        (Basis.INTEREST,),
        (Recipient.STAFF,),
    ),
    "sign_in": Kind(
        _("Your sign-in"),
        _("In which browsers you are signed in, links and codes for minutes, the second step where you switched it on, and tries"
          " at a sign-in by place."),
        _("So that nobody else gets in."),
        _("A sign-in ends after %(idle)d hours unused and after %(whole)d days in any case; tries count for an hour; the second"
          " step stays until you switch it off."),
        (Basis.INTEREST,),
        (Recipient.MAIL,),
    ),
    "requests": Kind(
        _("Requests you made by letter, mail or call"),
        _("What you asked for, when, and when we answered. Not what the letter says."),
        _("To answer in the time that the law gives, and to show that we did."),
        _("%(requests)d months after the answer."),
        (Basis.DUTY,),
        (Recipient.STAFF,),
        erased="stays under a number that leads to nobody",
    ),
    "erased": Kind(
        _("The register of closed accounts"),
        _("A fingerprint of the number the company knew you by, and the day."),
        _("So that a backup that is brought back forgets you again. Backups are gone after %(backups)d days."),
        _("Two years and a day; marks of single entries %(marks)d days."),
        (Basis.DUTY,),
        erased="begins with it",
    ),
    "staff": Kind(
        "Staff",
        "Names, addresses, digests of passwords, second steps and what they did in the admin.",
        "To let in those who work here and nobody else, and to tell who did what.",
        "As long as they work here; what they did as long as what it was done to is told.",
        (Basis.INTEREST, Basis.DUTY),
        (Recipient.STAFF,),
        erased="by an administrator",
        of="staff",
    ),
    "machines": Kind(
        "Machines",
        "Agents’ keys, webhooks, imports, counters and other rows that are about no person.",
        "To run the site.",
        "While in use.",
        (),
        of="nobody",
    ),
}  # fmt: skip


def times() -> dict[str, int]:
    """The numbers that `kept` and `why` name, as they hold on this site."""
    limits = store.current_policy().limits
    idle, whole = settings.SESSION_LIMITS["customer"]
    return {
        "proposals": limits.proposal_days,
        "tombstones": limits.tombstone_days,
        "events": settings.AUDIT_MONTHS,
        "reads": settings.READ_MONTHS,
        "backups": settings.BACKUP_DAYS,
        "idle": int(idle.total_seconds() // 3600),
        "whole": whole.days,
        "requests": 24,
        "marks": 60,
    }
