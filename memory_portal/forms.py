"""What customers type, checked once: a form's `draft` is fit for the store. May import the store, plain words, enums.

Nothing is cut: too long, empty or unusable text is an error beside its field, and the text stays in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

from allauth.account.adapter import get_adapter
from allauth.account.forms import RequestLoginCodeForm
from allauth.core import context, ratelimit
from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memory_portal import bringing, plain, store
from memory_portal.enums import Origin, Reason

NEVER_WORDS_LIMIT = 50
NEVER_WORD_LENGTH = 64
ABOUT_THE_KEY = {Reason.KEY_NOT_ALLOWED, Reason.BAD_KEY}


def categories(now_held: str = "") -> list[tuple[str, str | Promise]]:
    """The kinds this deployment keeps, in the page's order, and the one a fact already has."""
    kept = [name for name, rule in store.current_policy().categories.items() if rule.kept or name == now_held]
    # The most usual first, safety last: it is the one that asks for consent.
    listed = sorted(kept, key=lambda name: (name == store.SAFETY, name != "preference", plain.order(name)))
    return [(name, plain.heading(name).name) for name in listed]


def complaint(error: store.InvalidDraft) -> str:
    """What is wrong with a field, for the person who filled it in."""
    if error.reason is Reason.TOO_LONG and error.limit:
        return gettext("Too long: we keep at most %(limit)d characters, and we never cut what you wrote.") % {
            "limit": error.limit
        }
    if error.reason is Reason.EMPTY:
        return gettext("Please write something here.")
    return gettext("This cannot be used as it stands.")


class StatementForm(forms.Form):
    """A value in the customer's own words. Once valid, `draft` is what the store takes."""

    value = forms.CharField(
        label=_("What should we remember?"),
        help_text=_(
            "Up to 200 characters, in any language. Please no passwords or card numbers; we refuse to keep those."
        ),
        strip=False,
        error_messages={"required": _("Please write something here.")},
        widget=forms.Textarea(attrs={"rows": 2, "dir": "auto"}),
    )
    category = forms.ChoiceField(label=_("Where does it belong?"))
    consent = forms.BooleanField(required=False)
    """Shown only once the store has asked for it."""

    draft: store.Draft
    asks_consent = False

    def __init__(self, *args: Any, now: datetime, category: str = "", key: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.now = now
        self.held_key = key
        field = self.fields["category"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = categories(category)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not self.errors:
            try:
                self.draft = store.draft(
                    key=self.held_key or cleaned.get("key", ""),
                    value=cleaned["value"],
                    category=cleaned["category"],
                    origin=Origin.CUSTOMER,
                    said_at=self.now,
                    now=self.now,
                )
            except store.InvalidDraft as error:
                self.add_error(error.field if error.field in self.fields else "value", complaint(error))
        return cleaned

    def refuse(self, reason: Reason) -> None:
        """Show a refusal of the store beside the field it is about."""
        self.asks_consent = reason is Reason.NEEDS_CONSENT
        self.add_error("key" if reason in ABOUT_THE_KEY and "key" in self.fields else "value", str(reason.label))


KEEPING = {"week": 7, "month": 30, "year": 365, "years": 1095, "always": None}
"""How long a customer may have something kept, in days."""

KEEPING_WORDS = [
    ("week", _("for one week from today")),
    ("month", _("for one month from today")),
    ("year", _("for one year from today")),
    ("years", _("for three years from today")),
    ("always", _("until I change it")),
]


def end_of(how: str, now: datetime) -> datetime | None:
    days = KEEPING[how]
    return now + timedelta(days=days) if days else None


class CorrectForm(StatementForm):
    """The new wording of a fact, with the version it was written against, and if wanted how long it is kept."""

    version = forms.IntegerField(widget=forms.HiddenInput, min_value=1, max_value=2**31 - 1)
    how = forms.ChoiceField(
        label=_("Keep it"), required=False, choices=[("", _("as long as is usual here")), *KEEPING_WORDS]
    )


class AddForm(StatementForm):
    key = forms.CharField(
        label=_("What is it about?"),
        help_text=_("In a few words, for example: Delivery time"),
        strip=False,
        error_messages={"required": _("Please write something here.")},
        widget=forms.TextInput(attrs={"dir": "auto", "autocomplete": "off"}),
    )
    field_order = ("key", "category", "value")


class KeepForm(forms.Form):
    """Until when a fact is kept. `until` is the answer: a time, or None for no end."""

    how = forms.ChoiceField(
        label=_("Keep it"),
        widget=forms.RadioSelect,
        choices=KEEPING_WORDS,
        error_messages={"required": _("Please choose one.")},
    )

    def __init__(self, *args: Any, now: datetime, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.now = now

    @property
    def until(self) -> datetime | None:
        return end_of(self.cleaned_data["how"], self.now)


class ManyForm(forms.Form):
    """Several facts at once, by id."""

    id = forms.TypedMultipleChoiceField(coerce=int)

    def __init__(self, data: Any, *, held: Sequence[store.Fact]) -> None:
        super().__init__(data)
        field = self.fields["id"]
        assert isinstance(field, forms.TypedMultipleChoiceField)
        field.choices = [(fact.id, fact.id) for fact in held]

    def clean_id(self) -> list[int]:
        return list(dict.fromkeys(self.cleaned_data["id"]))


class WordForm(forms.Form):
    """One word or phrase that nothing remembered may contain."""

    word = forms.CharField(
        label=_("Another word"),
        strip=False,
        error_messages={"required": _("Please write something here.")},
        widget=forms.TextInput(attrs={"dir": "auto", "autocomplete": "off"}),
    )

    def __init__(self, *args: Any, held: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.held = held

    def clean_word(self) -> str:
        raw: str = self.cleaned_data["word"]
        if len(raw) > 20 * NEVER_WORD_LENGTH or len(word := store.clean(raw)) > NEVER_WORD_LENGTH:
            raise forms.ValidationError(
                _("Too long: a word or phrase has at most %(limit)d characters."), params={"limit": NEVER_WORD_LENGTH}
            )
        if not store.fold(word):
            raise forms.ValidationError(_("Please write something here."))
        if len(self.held) >= NEVER_WORDS_LIMIT:
            raise forms.ValidationError(
                _("There is room for %(limit)d words. Take one out first."), params={"limit": NEVER_WORDS_LIMIT}
            )
        return word


class EverythingForm(forms.Form):
    """Typing the words shows that it is meant."""

    sure = forms.CharField(
        strip=True,
        max_length=100,
        error_messages={"required": _("Type the words to confirm. Nothing has been erased.")},
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )

    @staticmethod
    def words() -> str:
        return gettext("forget everything")

    def clean_sure(self) -> str:
        sure: str = self.cleaned_data["sure"]
        if store.fold(sure) != store.fold(self.words()):
            raise forms.ValidationError(_("These are not the words. Nothing has been erased."))
        return sure


class CloseForm(EverythingForm):
    @staticmethod
    def words() -> str:
        return gettext("close my account")


class TakeForm(forms.Form):
    """In which form to take it along."""

    form = forms.ChoiceField(
        widget=forms.RadioSelect,
        choices=[
            ("json", _("For a program: JSON. Complete, signed by us, and what you can bring back here.")),
            ("html", _("To read or print: a page. Complete.")),
            ("csv", _("For a spreadsheet: CSV. What was said, with its sources.")),
        ],
        error_messages={"required": _("Please choose one."), "invalid_choice": _("Please choose one.")},
    )


class BringForm(forms.Form):
    """A file of things to remember. Once valid, `brought` is what stands in it."""

    TROUBLE: ClassVar = {
        "empty": _("There is nothing in this file."),
        "not_text": _("This is not a text file in UTF-8, so we could not read it."),
        "not_ours": _("This is not a JSON file from here, so we could not read it."),
        "too_many": _("There are more than %(limit)d lines in it. Please bring them in parts; we cut nothing."),
    }
    file = forms.FileField(
        label=_("Your file"),
        help_text=_("Our own JSON or CSV, or a text file with one thing on each line. Up to 200 lines, 2 MB."),
        error_messages={
            "required": _("Please choose a file of at most 2 MB."),
            "empty": _("There is nothing in this file."),
        },
        widget=forms.FileInput(attrs={"accept": ".json,.csv,.txt,application/json,text/csv,text/plain"}),
    )
    brought: bringing.Brought

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        try:
            self.brought = bringing.read(file.read(), default_category="preference")
        except bringing.Unreadable as error:
            raise forms.ValidationError(self.TROUBLE[error.why], params={"limit": bringing.LINES}) from error
        return file


class SignInForm(RequestLoginCodeForm):  # type: ignore[misc]  # allauth has no annotations
    """Asks for a code. Known and unknown addresses get the same answer; only the host and staff add addresses."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["email"]
        field.label = _("E-mail address")
        field.widget.attrs = {"autocomplete": "email", "inputmode": "email", "autocapitalize": "none"}

    def clean_email(self) -> str:
        email: str = super().clean_email()  # counts the attempt
        request, adapter = context.request, get_adapter()
        here = f"{email.lower()} {adapter.get_client_ip(request)}"
        if not ratelimit.consume(request, action="sign_in_from_here", key=here):
            raise adapter.validation_error("too_many_login_attempts")
        self._user = store.user_of_email(email)
        if self._user is None:  # the same work as for an address that is known, and thrown away
            unsent = {"request": request, "email": email, "code": adapter.generate_login_code()}
            adapter.render_mail("account/email/login_code", email, unsent)
        return email


class KeepSuggestionForm(forms.Form):
    """The customer's yes to a suggestion, as it stands or reworded, and to keeping such things where that is asked."""

    value = forms.CharField(
        label=_("What should we remember?"),
        strip=False,
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "dir": "auto"}),
    )
    consent = forms.BooleanField(required=False)
    asks_consent = False

    def clean_value(self) -> str | None:
        if "value" not in self.data:
            return None
        raw: str = self.cleaned_data["value"]
        if len(raw) > 20 * store.VALUE_LIMIT or len(value := store.clean(raw)) > store.VALUE_LIMIT:
            raise forms.ValidationError(
                _("Too long: we keep at most %(limit)d characters, and we never cut what you wrote."),
                params={"limit": store.VALUE_LIMIT},
            )
        if not value:
            raise forms.ValidationError(_("Please write something here."))
        return value

    def refuse(self, reason: Reason) -> None:
        self.asks_consent = reason is Reason.NEEDS_CONSENT
        self.add_error("value", str(reason.label))


class AssistantForm(forms.Form):
    """A request somebody might make, and of which assistant. It is looked at once and kept nowhere."""

    LIMIT: ClassVar = 8_000  # as on the bridge
    message = forms.CharField(
        label=_("What would you ask?"),
        help_text=_("For example: I need new shoes for the winter. What you type here is not kept."),
        strip=False,
        required=False,
        max_length=LIMIT,
        error_messages={"max_length": _("Too long: a request has at most %(limit_value)d characters.")},
        widget=forms.Textarea(attrs={"rows": 2, "dir": "auto", "autocomplete": "off"}),
    )
    agent = forms.ChoiceField(label=_("Which assistant?"), required=False)

    def __init__(self, *args: Any, agents: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["agent"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(name, plain.agent(name)) for name in agents]
        self.agents = agents

    def clean_agent(self) -> str:
        named: str = self.cleaned_data["agent"]
        return named or next(iter(self.agents), "")


class ChoicesForm(forms.Form):
    """Who may learn and use what. Only what the page showed is changed: an agent that came since keeps its state."""

    shown_kind = forms.MultipleChoiceField(required=False)
    shown_agent = forms.MultipleChoiceField(required=False)
    learn_kind = forms.MultipleChoiceField(required=False)
    use_kind = forms.MultipleChoiceField(required=False)
    learn_agent = forms.MultipleChoiceField(required=False)
    use_agent = forms.MultipleChoiceField(required=False)

    def __init__(self, *args: Any, kinds: Sequence[str], agents: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            assert isinstance(field, forms.MultipleChoiceField)
            field.choices = [(value, value) for value in (kinds if name.endswith("kind") else agents)]

    def off(self, what: str, before: Sequence[str]) -> list[str]:
        """What is switched off of `learn_kind` and the like, after having been `before`."""
        shown = self.cleaned_data[f"shown_{what.split('_')[1]}"]
        on = self.cleaned_data[what]
        return [name for name in before if name not in shown] + [name for name in shown if name not in on]
