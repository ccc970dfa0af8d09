"""The admin: projects, people's roles, agents' permissions and tokens to change; everything else to look at."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import Model, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from runtime_core import clock, ports
from runtime_core.admin_forms import (
    LookOnly,
    PermissionForm,
    record_change,
    shown,
)
from runtime_core.models import (
    Agent,
    AgentVersion,
    ApiToken,
    Checkpoint,
    Interrupt,
    Membership,
    Project,
    Run,
    Step,
    ToolCall,
    ToolPermission,
)
from runtime_core.sanitize import canonical
from runtime_core.transactions import one_commit

admin.site.site_header = "Interlock"
admin.site.site_title = "Interlock admin"
admin.site.index_title = "Projects, people, permissions"


class Recorded(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """Rows whose every change here, one by one or many at once, is written into the audit."""

    recorded_fields: tuple[str, ...] = ()
    recorded_action = "permission.changed"

    def project_of(self, row: Any) -> Any:
        """The project that a row belongs to."""
        return row.project_id

    def save_model(
        self, request: HttpRequest, obj: Model, form: ModelForm[Any], change: bool
    ) -> None:
        """Save, and record what was there and what is there now."""
        before = self._stored(obj) if change else None
        super().save_model(request, obj, form, change)
        after = shown(obj, self.recorded_fields)
        if before != after:
            record_change(request, obj, before, after, self.project_of(obj), self.recorded_action)

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        """Delete, and record what was there."""
        record_change(
            request,
            obj,
            shown(obj, self.recorded_fields),
            None,
            self.project_of(obj),
            self.recorded_action,
        )
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Delete many, and record each."""
        for row in queryset:
            record_change(
                request,
                row,
                shown(row, self.recorded_fields),
                None,
                self.project_of(row),
                self.recorded_action,
            )
        super().delete_queryset(request, queryset)

    def _stored(self, obj: Model) -> dict[str, Any] | None:
        row = type(obj)._default_manager.filter(pk=obj.pk).first()
        return shown(row, self.recorded_fields) if row else None


admin.site.unregister(User)
# Rights come from roles in projects; a group would give some that no page and no audit tells of.
admin.site.unregister(Group)


@admin.register(User)
class PersonAdmin(Recorded, UserAdmin):  # type: ignore[type-arg]
    """People; who may enter the admin, who may do everything, and who set whose password, is recorded."""

    recorded_fields = ("username", "is_active", "is_staff", "is_superuser")

    def project_of(self, row: Any) -> None:
        """People belong to no project of their own."""
        return None

    def save_related(
        self, request: HttpRequest, form: ModelForm[Any], formsets: Any, change: bool
    ) -> None:
        """Save what the person may do in the admin, and record it if that changed."""
        person = form.instance
        before = _rights_in_admin(person)
        super().save_related(request, form, formsets, change)
        after = _rights_in_admin(person)
        if before != after:
            record_change(request, person, before, after, None)

    def user_change_password(
        self, request: HttpRequest, id: str, form_url: str = ""
    ) -> HttpResponse:
        """Set a person's password. Whoever does can decide in that person's name: it is recorded."""
        with one_commit("password"):
            before = User.objects.filter(pk=id).values_list("password", flat=True).first()
            answer = super().user_change_password(request, id, form_url)
            person = User.objects.filter(pk=id).first()
            if person is not None and person.password != before:
                record_change(
                    request, person, {"sign_in": "as before"}, {"sign_in": "set anew"}, None
                )
        return answer


def _rights_in_admin(person: User) -> dict[str, Any]:
    names = person.user_permissions.order_by("codename").values_list("codename", flat=True)
    return {"user_permissions": list(names)}


@admin.register(Project)
class ProjectAdmin(Recorded):
    """Projects. One with runs cannot be deleted here: its runs are evidence."""

    list_display = ["name", "slug", "created_at"]
    search_fields = ["name", "slug"]
    recorded_fields = ("name", "slug")

    def project_of(self, row: Project) -> Any:
        """Itself."""
        return row.pk

    def has_delete_permission(self, request: HttpRequest, obj: Project | None = None) -> bool:
        """Only an empty project may go, and only alone."""
        return obj is not None and not obj.runs.exists() and not obj.agents.exists()


@admin.register(Membership)
class MembershipAdmin(Recorded):
    """Who may do what in which project."""

    list_display = ["user", "project", "role"]
    list_filter = ["project", "role"]
    search_fields = ["user__username"]
    autocomplete_fields = ["user", "project"]
    recorded_fields = ("user_id", "project_id", "role")


@admin.register(ToolPermission)
class ToolPermissionAdmin(Recorded):
    """What each agent may do with each tool; its calls are judged by these rows from the next one on."""

    form = PermissionForm
    list_display = ["tool", "agent", "verdict", "constraints", "updated_at", "updated_by"]
    list_filter = ["agent", "verdict"]
    search_fields = ["tool", "agent__name"]
    list_select_related = ["agent", "updated_by"]
    actions = ["make_ask", "make_deny"]
    recorded_fields = ("agent_id", "tool", "verdict", "constraints", "note")

    def project_of(self, row: ToolPermission) -> Any:
        """The agent's project."""
        return row.agent.project_id

    def save_model(
        self, request: HttpRequest, obj: Any, form: ModelForm[Any], change: bool
    ) -> None:
        """Save as this person's change."""
        obj.updated_by = request.user
        super().save_model(request, obj, form, change)

    @admin.action(description="Ask a person from now on", permissions=["change"])
    def make_ask(self, request: HttpRequest, rows: QuerySet[ToolPermission]) -> None:
        """Set many to ask."""
        self._set(request, rows, "ask")

    @admin.action(description="Deny from now on", permissions=["change"])
    def make_deny(self, request: HttpRequest, rows: QuerySet[ToolPermission]) -> None:
        """Set many to deny."""
        self._set(request, rows, "deny")

    def _set(self, request: HttpRequest, rows: QuerySet[ToolPermission], verdict: str) -> None:
        changed = 0
        for row in rows.select_related("agent"):
            before = shown(row, self.recorded_fields)
            row.verdict = verdict
            row.updated_by = request.user  # type: ignore[assignment]
            row.save(update_fields=["verdict", "updated_by", "updated_at"])
            after = shown(row, self.recorded_fields)
            if before != after:
                record_change(request, row, before, after, self.project_of(row))
                changed += 1
        self.message_user(request, f"{changed} permissions are now {verdict}.", messages.SUCCESS)


@admin.register(ApiToken)
class ApiTokenAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Tokens of people: made here, shown once, revoked here."""

    list_display = ["__str__", "user", "project", "created_at", "last_used_at", "revoked_at"]
    list_filter = ["project", "user"]
    list_select_related = ["user", "project"]
    fields = ["user", "project", "name", "is_machine", "expires_at"]
    autocomplete_fields = ["user", "project"]
    actions = ["revoke"]

    def has_change_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:
        """A token is made and revoked, never changed into another."""
        return obj is None and super().has_change_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:
        """Revoked ones stay, so that the audit can name them."""
        return False

    def save_model(
        self, request: HttpRequest, obj: ApiToken, form: ModelForm[Any], change: bool
    ) -> None:
        """Issue the token; its text goes into this one answer and nowhere else."""
        made, self_text = ApiToken.issue(obj.user, obj.project, obj.name, is_machine=obj.is_machine)
        ApiToken.objects.filter(pk=made.pk).update(expires_at=obj.expires_at)
        obj.pk, obj.digest = made.pk, made.digest
        obj.created_at, obj._state.adding = made.created_at, False
        request.issued_token = self_text  # type: ignore[attr-defined]
        record_change(
            request,
            obj,
            None,
            {"user": obj.user_id, "name": obj.name, "machine": obj.is_machine},
            obj.project_id,
            "token.issued",
        )

    def response_add(
        self, request: HttpRequest, obj: ApiToken, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the text once, in the answer itself: a message would be stored in a cookie."""
        context = {
            **self.admin_site.each_context(request),
            "title": "Token issued",
            "token": request.issued_token,  # type: ignore[attr-defined]
            "row": obj,
            "opts": self.opts,
        }
        answer = TemplateResponse(request, "admin/token_issued.html", context)
        answer["Cache-Control"] = "no-store"
        return answer

    @admin.action(description="Revoke the chosen tokens")
    def revoke(self, request: HttpRequest, rows: QuerySet[ApiToken]) -> None:
        """End tokens at once; open streams of theirs close within seconds."""
        for row in rows.filter(revoked_at=None):
            row.revoked_at = clock.now()
            row.save(update_fields=["revoked_at"])
            record_change(
                request, row, {"revoked": False}, {"revoked": True}, row.project_id, "token.revoked"
            )
        self.message_user(request, "The tokens no longer let anybody in.", messages.SUCCESS)


class VersionInline(admin.TabularInline):  # type: ignore[type-arg]
    """An agent's versions."""

    model = AgentVersion
    fields = ["number", "digest", "created_at"]
    readonly_fields = ["number", "digest", "created_at"]
    extra = 0
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Versions come from `agents apply`."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """They are immutable."""
        return False


@admin.register(Agent)
class AgentAdmin(LookOnly):
    """Agents; `manage.py agents apply` changes them."""

    list_display = ["name", "project", "current"]
    list_filter = ["project"]
    search_fields = ["name"]
    inlines = [VersionInline]


@admin.register(AgentVersion)
class AgentVersionAdmin(LookOnly):
    """What exactly an agent was."""

    list_display = ["agent", "number", "digest", "created_at"]
    readonly_fields = ["shown_definition"]

    @admin.display(description="Definition (redacted)")
    def shown_definition(self, row: AgentVersion) -> str:
        """The definition without secrets that its instructions may hold."""
        return canonical(ports.redactor().redact(row.definition).value)


@admin.register(Run)
class RunAdmin(LookOnly):
    """Runs; the run page steers them."""

    list_display = ["title", "agent", "status", "steps", "created_at", "ended_at"]
    list_filter = ["status", "project", "agent"]
    search_fields = ["id", "title"]
    show_full_result_count = False


@admin.register(Step)
class StepAdmin(LookOnly):
    """Steps of runs."""

    list_display = ["run", "index", "kind", "status", "started_at", "ended_at"]
    show_full_result_count = False


@admin.register(ToolCall)
class ToolCallAdmin(LookOnly):
    """The ledger. What was really sent and came back is not shown here."""

    list_display = ["tool", "run", "status", "effect", "risk", "attempts", "created_at"]
    list_filter = ["status", "risk"]
    exclude = ["args_text", "result_text"]
    show_full_result_count = False


@admin.register(Interrupt)
class InterruptAdmin(LookOnly):
    """Requests to people; the inbox decides them."""

    list_display = ["kind", "run", "status", "risk", "created_at", "decided_by", "decided_at"]
    list_filter = ["status", "risk", "kind"]
    show_full_result_count = False


@admin.register(Checkpoint)
class CheckpointAdmin(LookOnly):
    """From where runs may go on."""

    list_display = ["run", "step", "reason", "created_at"]
    exclude = ["state"]
    show_full_result_count = False


# Its pages are built on what stands above.
from runtime_core import admin_quotas  # noqa: E402, F401
