"""What staff see of the machines: jobs without a word of their conversations, and agents' keys. Every change goes through
the same functions as everywhere else.
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
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from agent_bridge import auth, imports, jobs, quality, webhooks
from agent_bridge.extraction import explicit
from agent_bridge.models import AgentKey, ExtractionJob, Import, Webhook
from memory_portal import store

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
    ModelForm = forms.ModelForm[AgentKey]
    HookForm = forms.ModelForm[Webhook]
else:
    ModelAdmin = admin.ModelAdmin
    ModelForm = HookForm = forms.ModelForm


@admin.register(ExtractionJob)
class ExtractionJobAdmin(ModelAdmin):
    list_display = (
        "id",
        "state",
        "outcome",
        "attempts",
        "agent",
        "profile",
        "extractor",
        "created_at",
        "run_after",
        "finished_at",
        "learned",
        "tokens",
        "cost",
    )
    list_filter = ("state", "outcome", "extractor", "prompt_version", "profile", "agent")
    date_hierarchy = "created_at"
    ordering = ("-created_at",)
    list_select_related = ("customer",)
    show_full_result_count = False
    actions = ("retry", "drop")
    # `turns` stands in no list of fields: the words of a conversation are for the extractor only.
    fields = readonly_fields = (
        "id",
        "customer",
        "state",
        "outcome",
        "attempts",
        "agent",
        "profile",
        "extractor",
        "prompt_version",
        "decisions",
        "input_tokens",
        "output_tokens",
        "cost",
        "batch",
        "created_at",
        "run_after",
        "lease_until",
        "finished_at",
    )

    def get_urls(self) -> list[URLPattern]:
        page = path("quality/", self.admin_site.admin_view(self.quality), name="agent_bridge_quality")
        return [page, *super().get_urls()]

    def quality(self, request: HttpRequest) -> HttpResponse:
        """How reading goes over the days: counts and costs, no word of anybody."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            "title": _("How reading goes"),
            "quality": quality.quality(timezone.now()),
            "sample": quality.SAMPLE,
            "offline": explicit.NAME,
            "cap": settings.EXTRACTION_DAY_TOKENS,
        }
        return TemplateResponse(request, "admin/agent_bridge/quality.html", context)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: ExtractionJob | None = None) -> bool:
        return False

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
        rows = format_html_join("", "<li>{}: {}</li>", ((code, number) for code, number in sorted(job.counts.items())))
        return format_html("<ul>{}</ul>", rows) if rows else SafeString("–")

    @admin.action(description=_("Try again"), permissions=["change"])
    def retry(self, request: HttpRequest, chosen: QuerySet[ExtractionJob]) -> None:
        done = sum(jobs.retry(job, timezone.now()) for job in chosen)
        said = ngettext("%d conversation waits again.", "%d conversations wait again.", done) % done
        self.message_user(request, said, messages.SUCCESS if done else messages.WARNING)

    @admin.action(description=_("Drop and wipe"), permissions=["change"])
    def drop(self, request: HttpRequest, chosen: QuerySet[ExtractionJob]) -> None:
        done = sum(jobs.drop(job, timezone.now()) for job in chosen)
        said = ngettext("%d conversation dropped.", "%d conversations dropped.", done) % done
        self.message_user(request, said, messages.SUCCESS if done else messages.WARNING)


class NewKey(ModelForm):
    profile = forms.ChoiceField(choices=lambda: [(name, name) for name in store.current_policy().profiles])
    scopes = forms.MultipleChoiceField(
        choices=[(scope, scope) for scope in auth.SCOPES], widget=forms.CheckboxSelectMultiple
    )
    days = forms.IntegerField(min_value=1, max_value=auth.LONGEST_LIFE.days, initial=auth.LIFE.days, label=_("Days"))

    class Meta:
        model = AgentKey
        fields = ("name",)


@admin.register(AgentKey)
class AgentKeyAdmin(ModelAdmin):
    list_display = ("name", "profile", "prefix", "created_at", "expires_at", "last_used_at", "revoked_at")
    list_filter = ("profile", "revoked_at")
    ordering = ("-created_at",)
    actions = ("revoke",)
    readonly_fields = ("name", "profile", "prefix", "scopes", "created_at", "expires_at", "last_used_at", "revoked_at")
    fields = readonly_fields

    def has_delete_permission(self, request: HttpRequest, obj: AgentKey | None = None) -> bool:
        return False  # Revoked keys stay, so that what they did can still be told.

    def get_form(self, request: HttpRequest, obj: AgentKey | None = None, change: bool = False, **kwargs: Any) -> Any:
        return super().get_form(request, obj, change, **kwargs) if obj else NewKey

    def get_fields(self, request: HttpRequest, obj: AgentKey | None = None) -> Any:
        return self.fields if obj else ("name", "profile", "scopes", "days")

    def get_readonly_fields(self, request: HttpRequest, obj: AgentKey | None = None) -> Any:
        return self.readonly_fields if obj else ()

    def save_model(self, request: HttpRequest, obj: AgentKey, form: Any, change: bool) -> None:
        if change:
            return
        chosen = form.cleaned_data
        row, secret = auth.issue(
            chosen["name"],
            chosen["profile"],
            chosen["scopes"],
            now=timezone.now(),
            life=timedelta(days=chosen["days"]),
        )
        obj.__dict__.update(row.__dict__)
        shown = format_html("{} {}", _("The key, shown this once and kept nowhere:"), secret)
        self.message_user(request, shown, messages.WARNING)

    @admin.action(description=_("Revoke"), permissions=["change"])
    def revoke(self, request: HttpRequest, chosen: QuerySet[AgentKey]) -> None:
        for key in chosen:
            auth.revoke(key, now=timezone.now())
        self.message_user(request, _("Revoked at once, for every process."), messages.SUCCESS)


class NewWebhook(HookForm):
    profile = forms.ChoiceField(choices=lambda: [(name, name) for name in store.current_policy().profiles])
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
class WebhookAdmin(ModelAdmin):
    list_display = (
        "url",
        "agent",
        "profile",
        "active",
        "delivered",
        "last_delivered_at",
        "failures",
        "last_code",
        "next_at",
        "parked_at",
    )
    list_filter = ("active", "profile", "agent", "last_code")
    ordering = ("-created_at",)
    actions = ("pause", "resume")
    fields = readonly_fields = (
        "id",
        "url",
        "agent",
        "profile",
        "events",
        "active",
        "created_at",
        "delivered",
        "last_delivered_at",
        "failures",
        "failing_since",
        "last_code",
        "next_at",
        "parked_at",
    )

    def get_form(self, request: HttpRequest, obj: Webhook | None = None, change: bool = False, **kwargs: Any) -> Any:
        return super().get_form(request, obj, change, **kwargs) if obj else NewWebhook

    def get_fields(self, request: HttpRequest, obj: Webhook | None = None) -> Any:
        return self.fields if obj else ("url", "agent", "profile", "events")

    def get_readonly_fields(self, request: HttpRequest, obj: Webhook | None = None) -> Any:
        return self.readonly_fields if obj else ()

    def save_model(self, request: HttpRequest, obj: Webhook, form: Any, change: bool) -> None:
        if not change:  # The form has made it, as every door does.
            shown = format_html("{} {}", _("Its secret, shown this once and kept nowhere:"), form.secret)
            self.message_user(request, shown, messages.WARNING)

    @admin.action(description=_("Pause"), permissions=["change"])
    def pause(self, request: HttpRequest, chosen: QuerySet[Webhook]) -> None:
        for hook in chosen:
            webhooks.pause(hook)

    @admin.action(description=_("Try again at once"), permissions=["change"])
    def resume(self, request: HttpRequest, chosen: QuerySet[Webhook]) -> None:
        for hook in chosen:
            webhooks.resume(hook, timezone.now())


@admin.register(Import)
class ImportAdmin(ModelAdmin):
    list_display = ("id", "state", "outcome", "agent", "profile", "lines", "created_at", "finished_at")
    list_filter = ("state", "outcome", "profile", "agent")
    ordering = ("-created_at",)
    actions = ("drop",)
    fields = readonly_fields = (
        "id",
        "state",
        "outcome",
        "agent",
        "profile",
        "lines",
        "decisions",
        "notes",
        "created_at",
        "lease_until",
        "finished_at",
    )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Import | None = None) -> bool:
        return False

    @admin.display(description=_("decisions"))
    def decisions(self, job: Import) -> SafeString:
        rows = format_html_join("", "<li>{}: {}</li>", sorted(imports.counts(job).items()))
        return format_html("<ul>{}</ul>", rows) if rows else SafeString("–")

    @admin.action(description=_("Drop and wipe"), permissions=["change"])
    def drop(self, request: HttpRequest, chosen: QuerySet[Import]) -> None:
        done = sum(imports.drop(job, timezone.now()) for job in chosen)
        said = ngettext("%d import dropped.", "%d imports dropped.", done) % done
        self.message_user(request, said, messages.SUCCESS if done else messages.WARNING)
