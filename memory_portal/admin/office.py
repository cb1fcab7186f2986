"""Of staff themselves: alarms about one who looks at many customers, and the accounts that may come in here at all."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from memory_portal.models import StaffAlert
from memory_portal.staff.tables import ReadOnly, Table


@admin.register(StaffAlert)
class StaffAlertAdmin(ReadOnly):
    list_display = ("at", "who", "customers", "seen_at", "seen_by")
    ordering = ("-id",)
    actions = ("seen",)

    @admin.display(description=_("member of staff"))
    def who(self, row: StaffAlert) -> str:
        name = User.objects.filter(pk=row.staff_id).values_list("username", flat=True).first()
        return f"{name} ({row.staff_id})" if name else str(row.staff_id)

    @admin.action(description=_("Note as seen"), permissions=["act"])
    def seen(self, request: HttpRequest, chosen: QuerySet[StaffAlert]) -> None:
        done = StaffAlert.objects.filter(pk__in=[row.pk for row in chosen], seen_at=None).update(
            seen_at=timezone.now(), seen_by=request.user.pk
        )
        said = ngettext("%d alarm noted as seen.", "%d alarms noted as seen.", done) % done
        self.message_user(request, said, messages.SUCCESS)


admin.site.unregister(User)


@admin.register(User)
class StaffUserAdmin(Table, UserAdmin):  # type: ignore[type-arg]  # the class takes no parameter when it runs
    """Staff only. The users behind customers are nobody's to open: who could set a password there could come in as them."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        return super().get_queryset(request).filter(is_staff=True)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if not change:
            obj.is_staff = True
        super().save_model(request, obj, form, change)
