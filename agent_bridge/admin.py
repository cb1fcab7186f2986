"""What staff see of the machines: jobs without a word of their conversations, agents' keys, webhooks, imports, how reading goes.
Every change goes through the same functions as everywhere else.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from agent_bridge import auth, charts, imports, jobs, quality, webhooks
from agent_bridge.extraction import explicit
from agent_bridge.models import AgentKey, ExtractionJob, Import, JobState, Webhook
from memory_portal import store
from memory_portal.staff.proof import fresh
from memory_portal.staff.tables import MadeOnce, ReadOnly, counted

if TYPE_CHECKING:
    KeyForm = forms.ModelForm[AgentKey]
    HookForm = forms.ModelForm[Webhook]
else:
    KeyForm = HookForm = forms.ModelForm


def profiles() -> list[tuple[str, str]]:
    return [(name, name) for name in store.current_policy().profiles]


# --- conversations ----------------------------------------------------------------------------------------------------


class State(admin.SimpleListFilter):
    """The two sorts that staff look for; both are few, and each has its index."""

    title = _("state")
    parameter_name = "state"
    STATES = {"open": (JobState.QUEUED, JobState.RUNNING), "parked": (JobState.PARKED,)}

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("open", _("Waiting or running")), ("parked", JobState.PARKED.label)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        chosen = self.STATES.get(self.value() or "")
        return queryset.filter(state__in=chosen) if chosen else queryset


class Outcome(admin.SimpleListFilter):
    """Why, among those of one state: over the whole table it would be a search without an index."""

    title = _("outcome")
    parameter_name = "outcome"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        chosen = State.STATES.get(request.GET.get("state", ""))
        if not chosen:
            return []
        codes = ExtractionJob.objects.filter(state__in=chosen).exclude(outcome="").values_list("outcome", flat=True)
        return [(code, code) for code in codes.order_by("outcome").distinct()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(outcome=self.value()) if self.value() else queryset


@admin.register(ExtractionJob)
class ExtractionJobAdmin(ReadOnly):
    list_display = (
        "id", "state", "outcome", "attempts", "agent", "profile", "extractor", "created_at", "run_after", "finished_at",
        "learned", "tokens", "cost",
    )  # fmt: skip
    list_filter = (State, Outcome)
    ordering = ("-created_at",)
    actions = ("retry", "drop")
    # `turns` stands in no list of fields: the words of a conversation are for the extractor only.
    fields = readonly_fields = (
        "id", "customer", "state", "outcome", "attempts", "agent", "profile", "extractor", "prompt_version", "decisions",
        "input_tokens", "output_tokens", "cost", "batch", "created_at", "run_after", "lease_until", "finished_at",
    )  # fmt: skip

    def has_view_permission(self, request: HttpRequest, obj: ExtractionJob | None = None) -> bool:
        return request.user.has_perm("agent_bridge.view_extractionjob")

    def get_urls(self) -> list[URLPattern]:
        page = path("quality/", self.admin_site.admin_view(self.quality), name="agent_bridge_quality")
        return [page, *super().get_urls()]

    def quality(self, request: HttpRequest) -> HttpResponse:
        """How reading goes over the days: counts and costs, no word of anybody."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        found = quality.quality(timezone.now())
        context = {
            **self.admin_site.each_context(request),
            "title": _("How reading goes"),
            "quality": found,
            "days": charts.days(found.rows),
            "reasons": (reasons := charts.reasons(found.rows)),
            "reasons_height": len(reasons) * charts.LINE,
            "sample": quality.SAMPLE,
            "offline": explicit.NAME,
            "cap": settings.EXTRACTION_DAY_TOKENS,
        }
        return TemplateResponse(request, "admin/agent_bridge/quality.html", context)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ExtractionJob]:
        return super().get_queryset(request).defer("turns")

    @admin.display(description=_("learned"))
    def learned(self, job: ExtractionJob) -> int:
        return int(job.counts.get("learned", 0) + job.counts.get("updated", 0))

    @admin.display(description=_("tokens"))
    def tokens(self, job: ExtractionJob) -> int:
        return job.input_tokens + job.output_tokens

    @admin.display(description=_("decisions"))
    def decisions(self, job: ExtractionJob) -> SafeString:
        return counted(job.counts)

    @admin.action(description=_("Try again"), permissions=["act"])
    def retry(self, request: HttpRequest, chosen: QuerySet[ExtractionJob]) -> None:
        done = sum(jobs.retry(job, timezone.now()) for job in chosen)
        said = ngettext("%d conversation waits again.", "%d conversations wait again.", done) % done
        self.message_user(request, said, messages.SUCCESS if done else messages.WARNING)

    @admin.action(description=_("Drop and wipe"), permissions=["act"])
    def drop(self, request: HttpRequest, chosen: QuerySet[ExtractionJob]) -> None:
        done = sum(jobs.drop(job, timezone.now()) for job in chosen)
        said = ngettext("%d conversation dropped.", "%d conversations dropped.", done) % done
        self.message_user(request, said, messages.SUCCESS if done else messages.WARNING)


# --- keys -------------------------------------------------------------------------------------------------------------


class NewKey(KeyForm):
    profile = forms.ChoiceField(choices=profiles)
    scopes = forms.MultipleChoiceField(
        choices=[(scope, scope) for scope in auth.SCOPES], widget=forms.CheckboxSelectMultiple
    )
    days = forms.IntegerField(min_value=1, max_value=auth.LONGEST_LIFE.days, initial=auth.LIFE.days, label=_("Days"))

    class Meta:
        model = AgentKey
        fields = ("name",)


@admin.register(AgentKey)
class AgentKeyAdmin(MadeOnce):
    made_by = NewKey
    list_display = ("name", "profile", "prefix", "created_at", "expires_at", "last_used_at", "revoked_at")
    list_filter = ("profile", "revoked_at")
    ordering = ("-created_at",)
    actions = ("revoke",)
    fields = readonly_fields = (
        "name", "profile", "prefix", "scopes", "created_at", "expires_at", "last_used_at", "revoked_at",
    )  # fmt: skip

    def has_view_permission(self, request: HttpRequest, obj: AgentKey | None = None) -> bool:
        return request.user.has_perm("agent_bridge.view_agentkey")

    def has_delete_permission(self, request: HttpRequest, obj: AgentKey | None = None) -> bool:
        return False  # Revoked keys stay, so that what they did can still be told.

    @fresh
    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        return super().add_view(request, form_url, extra_context)

    def save_model(self, request: HttpRequest, obj: AgentKey, form: Any, change: bool) -> None:
        told = form.cleaned_data
        row, secret = auth.issue(
            told["name"], told["profile"], told["scopes"], now=timezone.now(), life=timedelta(days=told["days"])
        )
        obj.__dict__.update(row.__dict__)
        shown = format_html("{} {}", _("The key, shown this once and kept nowhere:"), secret)
        self.message_user(request, shown, messages.WARNING)

    @admin.action(description=_("Revoke"), permissions=["act"])
    def revoke(self, request: HttpRequest, chosen: QuerySet[AgentKey]) -> None:
        for key in chosen:
            auth.revoke(key, now=timezone.now())
        self.message_user(request, _("Revoked at once, for every process."), messages.SUCCESS)


# --- webhooks ---------------------------------------------------------------------------------------------------------


class NewWebhook(HookForm):
    profile = forms.ChoiceField(choices=profiles)
    events = forms.MultipleChoiceField(
        choices=[(kind, kind) for kind in store.CHANGE_KINDS],
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text=_("Kinds of changes; none means all."),
    )

    class Meta:
        model = Webhook
        fields = ("url", "agent")

    def clean(self) -> dict[str, Any]:
        told = super().clean() or {}
        if not self.errors:
            try:
                row, self.secret = webhooks.create(
                    told["url"], told["agent"], told["profile"], events=told["events"], now=timezone.now()
                )
            except ValueError as error:
                raise forms.ValidationError(str(error)) from error
            self.instance.__dict__.update(row.__dict__)
        return told


@admin.register(Webhook)
class WebhookAdmin(MadeOnce):
    made_by = NewWebhook
    list_display = (
        "url", "agent", "profile", "active", "delivered", "last_delivered_at", "failures", "last_code", "next_at",
        "parked_at",
    )  # fmt: skip
    list_filter = ("active", "profile", "agent", "last_code")
    ordering = ("-created_at",)
    actions = ("pause", "resume")
    fields = readonly_fields = (
        "id", "url", "agent", "profile", "events", "active", "created_at", "delivered", "last_delivered_at", "failures",
        "failing_since", "last_code", "next_at", "parked_at",
    )  # fmt: skip

    def has_view_permission(self, request: HttpRequest, obj: Webhook | None = None) -> bool:
        return request.user.has_perm("agent_bridge.view_webhook")

    @fresh
    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        return super().add_view(request, form_url, extra_context)

    def save_model(self, request: HttpRequest, obj: Webhook, form: Any, change: bool) -> None:
        """The form has made it, as every door does."""
        shown = format_html("{} {}", _("Its secret, shown this once and kept nowhere:"), form.secret)
        self.message_user(request, shown, messages.WARNING)

    @admin.action(description=_("Pause"), permissions=["act"])
    def pause(self, request: HttpRequest, chosen: QuerySet[Webhook]) -> None:
        for hook in chosen:
            webhooks.pause(hook)

    @admin.action(description=_("Try again at once"), permissions=["act"])
    def resume(self, request: HttpRequest, chosen: QuerySet[Webhook]) -> None:
        for hook in chosen:
            webhooks.resume(hook, timezone.now())


# --- imports ----------------------------------------------------------------------------------------------------------


@admin.register(Import)
class ImportAdmin(ReadOnly):
    list_display = ("id", "state", "outcome", "agent", "profile", "lines", "created_at", "finished_at")
    list_filter = ("state",)
    ordering = ("-created_at",)
    actions = ("drop",)
    fields = readonly_fields = (
        "id", "state", "outcome", "agent", "profile", "lines", "decisions", "notes", "created_at", "lease_until",
        "finished_at",
    )  # fmt: skip

    def has_view_permission(self, request: HttpRequest, obj: Import | None = None) -> bool:
        return request.user.has_perm("agent_bridge.view_import")

    @admin.display(description=_("decisions"))
    def decisions(self, job: Import) -> SafeString:
        return counted(imports.counts(job))

    @admin.action(description=_("Drop and wipe"), permissions=["act"])
    def drop(self, request: HttpRequest, chosen: QuerySet[Import]) -> None:
        done = sum(imports.drop(job, timezone.now()) for job in chosen)
        said = ngettext("%d import dropped.", "%d imports dropped.", done) % done
        self.message_user(request, said, messages.SUCCESS if done else messages.WARNING)
