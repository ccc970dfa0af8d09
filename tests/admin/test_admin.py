"""The admin: permissions and roles change with a record of it, evidence cannot be changed at all."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.test import Client

from runtime_core.models import ApiToken, Membership, ToolPermission
from tests.pages.world import World
from traces.models import AuditEntry, AuditPayload


@pytest.fixture
def world(db: None) -> World:
    return World()


@pytest.fixture
def root(world: World) -> Client:
    client = Client()
    client.force_login(world.admin)
    return client


def recorded(action: str = "permission.changed") -> list[dict[str, Any]]:
    rows = AuditEntry.objects.filter(action=action).order_by("id").select_related("payload")
    return [json.loads(row.payload.body) for row in rows]


def test_every_list_opens(root: Client, world: World) -> None:
    world.ask(world.run())
    world.span(world.run())

    for model in admin.site._registry:
        address = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        assert root.get(address).status_code == 200, address


@pytest.mark.parametrize(
    "name",
    [
        "runtime_core.Run", "runtime_core.Step", "runtime_core.ToolCall", "runtime_core.Interrupt",
        "runtime_core.Checkpoint", "runtime_core.AgentVersion", "traces.AuditEntry", "traces.SpanRow",
    ],
)  # fmt: skip
def test_evidence_can_only_be_looked_at(root: Client, world: World, name: str) -> None:
    world.span(world.run())
    world.ask(world.run())
    model = apps.get_model(name)
    address = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"

    assert root.get(f"{address}add/").status_code == 403
    for row in model.objects.all()[:1]:
        assert root.get(f"{address}{row.pk}/change/").status_code == 200
        assert root.post(f"{address}{row.pk}/change/", {"x": 1}).status_code == 403
        assert root.post(f"{address}{row.pk}/delete/", {"post": "yes"}).status_code == 403
    root.post(address, {"action": "delete_selected", "_selected_action": ["1"], "post": "yes"})
    assert b'name="action"' not in root.get(address).content


def test_raw_arguments_are_not_shown(root: Client, world: World) -> None:
    call = world.call(
        world.run(), args_text='{"raw": "only-for-the-tool"}', result_text="raw-result"
    )

    page = root.get(f"/admin/runtime_core/toolcall/{call.pk}/change/").content

    assert b"only-for-the-tool" not in page
    assert b"raw-result" not in page


def test_a_change_of_permission_is_recorded_with_before_and_after(
    root: Client, world: World
) -> None:
    row = ToolPermission.objects.get(tool="read_file")
    data = {"agent": world.agent.pk, "tool": "read_file", "verdict": "deny", "constraints": "{}"}

    answer = root.post(f"/admin/runtime_core/toolpermission/{row.pk}/change/", data)
    root.post(f"/admin/runtime_core/toolpermission/{row.pk}/change/", data)

    assert answer.status_code == 302
    [entry] = recorded()
    assert (entry["before"]["verdict"], entry["after"]["verdict"]) == ("allow", "deny")
    assert ToolPermission.objects.get(pk=row.pk).updated_by == world.admin
    stored = AuditEntry.objects.get(action="permission.changed")
    assert (stored.project_id, stored.via, stored.actor_name) == (world.project.id, "admin", "root")


def test_many_at_once_are_recorded_one_by_one(root: Client, world: World) -> None:
    ids = [str(row.pk) for row in ToolPermission.objects.all()]
    address = "/admin/runtime_core/toolpermission/"

    root.post(address, {"action": "make_deny", "_selected_action": ids})
    root.post(address, {"action": "delete_selected", "_selected_action": ids, "post": "yes"})

    changes = recorded()
    assert [c["after"] and c["after"]["verdict"] for c in changes] == ["deny", "deny", None, None]
    assert not ToolPermission.objects.exists()


@pytest.mark.parametrize(
    "constraints",
    ['{"amount": {"maximum": 5}}', "[1]", '{"argv": {"regex": "("}}', "not json", '{"a": 5}'],
)
def test_constraints_that_mean_nothing_are_refused(
    root: Client, world: World, constraints: str
) -> None:
    data = {"agent": world.agent.pk, "tool": "x", "verdict": "allow", "constraints": constraints}

    answer = root.post("/admin/runtime_core/toolpermission/add/", data)

    assert answer.status_code == 200
    assert b"errorlist" in answer.content
    assert not ToolPermission.objects.filter(tool="x").exists()
    assert recorded() == []


def test_roles_are_recorded(root: Client, world: World) -> None:
    data = {"user": world.stranger.pk, "project": world.project.pk, "role": "approver"}
    root.post("/admin/runtime_core/membership/add/", data)
    row = Membership.objects.get(user=world.stranger)
    root.post(f"/admin/runtime_core/membership/{row.pk}/delete/", {"post": "yes"})

    given, taken = recorded()
    assert (given["before"], given["after"]["role"]) == (None, "approver")
    assert (taken["before"]["role"], taken["after"]) == ("approver", None)


def test_a_token_is_shown_once_and_works_until_it_is_revoked(root: Client, world: World) -> None:
    data = {"user": world.viewer.pk, "project": "", "name": "ci"}
    page = root.post("/admin/runtime_core/apitoken/add/", data).content.decode()
    shown = re.search(r"ilk_[\w-]+", page)
    assert shown
    token = shown[0]
    row = ApiToken.objects.get()
    auth = {"Authorization": f"Bearer {token}"}

    assert Client().get("/api/v1/runs", headers=auth).status_code == 200
    assert token not in root.get("/admin/runtime_core/apitoken/").content.decode()
    assert token not in str(list(AuditPayload.objects.values_list("body", flat=True)))
    root.post(
        "/admin/runtime_core/apitoken/", {"action": "revoke", "_selected_action": [str(row.pk)]}
    )

    assert Client().get("/api/v1/runs", headers=auth).status_code == 401
    assert len(recorded("token.issued")) == len(recorded("token.revoked")) == 1


def test_a_project_with_runs_cannot_be_deleted(root: Client, world: World) -> None:
    world.run()

    answer = root.post(f"/admin/runtime_core/project/{world.project.pk}/delete/", {"post": "yes"})

    assert answer.status_code == 403


def test_who_may_do_everything_is_recorded(root: Client, world: World) -> None:
    page = f"/admin/auth/user/{world.viewer.pk}/change/"
    data = {"username": "bo", "is_active": "on", "is_staff": "on", "is_superuser": "on",
            "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}  # fmt: skip

    assert root.post(page, data).status_code == 302

    [entry] = recorded()
    assert (entry["before"]["is_superuser"], entry["after"]["is_superuser"]) == (False, True)


def test_who_set_whose_password_is_recorded_without_it(root: Client, world: World) -> None:
    page = f"/admin/auth/user/{world.viewer.pk}/password/"
    new = {
        "password1": "correct-horse-9",
        "password2": "correct-horse-9",
        "usable_password": "true",
    }

    assert root.post(page, {**new, "password2": "another"}).status_code == 200
    assert root.post(page, new).status_code == 302

    [entry] = recorded()
    assert entry["after"] == {"sign_in": "set anew"}
    assert AuditEntry.objects.get(action="permission.changed").object_id == str(world.viewer.pk)
    assert "correct-horse-9" not in str(list(AuditPayload.objects.values_list("body", flat=True)))


def test_rights_in_the_admin_and_projects_are_recorded(root: Client, world: World) -> None:
    right = Permission.objects.get(codename="change_toolpermission")
    data = {"username": "bo", "is_active": "on", "user_permissions": [right.pk],
            "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}  # fmt: skip

    root.post(f"/admin/auth/user/{world.viewer.pk}/change/", data)
    root.post("/admin/runtime_core/project/add/", {"name": "New", "slug": "new"})

    changes = [entry["after"] for entry in recorded()]
    assert {"user_permissions": ["change_toolpermission"]} in changes
    assert {"name": "New", "slug": "new"} in changes
    assert root.get("/admin/auth/group/").status_code == 404
