"""What was decided stays as it was, for everybody, in the admin and in the database."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import DatabaseError, connection, transaction
from django.test import Client

from approvals.deciding.changing import propose
from approvals.deciding.commands import Opinion, decide
from approvals.models import Decision, Revision
from runtime_core.models import Interrupt, ToolPermission
from tests.approvals.world import World, as_actor, audited
from traces.models import AuditEntry

EVIDENCE = (
    "approvals/decision",
    "approvals/revision",
    "runtime_core/interrupt",
    "traces/auditentry",
)
MODELS = (Decision, Revision, Interrupt, AuditEntry)


def staff(name: str, *codes: str, **more: Any) -> Client:
    user = get_user_model().objects.create_user(name, is_staff=True, **more)
    wanted = Permission.objects.all() if "all" in codes else Permission.objects.filter(
        codename__startswith="view_"
    )  # fmt: skip
    user.user_permissions.set(wanted)
    client = Client()
    client.force_login(user)
    return client


def test_j5_nobody_changes_or_deletes_evidence_in_the_admin(world: World) -> None:
    interrupt = world.ask()
    change = Opinion("edit", 1, interrupt.digest, {"path": "calc.py", "content": "x = 1\n"})
    now = propose(as_actor(world.approver), interrupt.id, change)
    decide(as_actor(world.approver2), interrupt.id, Opinion("approve", 2, now.digest))
    people = [staff("viewing"), staff("editing", "all"), staff("root", is_superuser=True)]
    kept = [model.objects.count() for model in MODELS]
    rows = [list(model.objects.values_list("pk", flat=True)) for model in MODELS]

    for client in people:
        for where, keys in zip(EVIDENCE, rows, strict=True):
            address = f"/admin/{where}/"
            assert client.get(address).status_code == 200
            assert client.get(f"{address}add/").status_code == 403
            assert (
                client.post(f"{address}{keys[0]}/change/", {"action": "reject"}).status_code == 403
            )
            assert client.post(f"{address}{keys[0]}/delete/", {"post": "yes"}).status_code == 403
            many = {"action": "delete_selected", "_selected_action": [str(k) for k in keys]}
            client.post(address, {**many, "post": "yes"})
            listed = {"form-TOTAL_FORMS": "1", "form-INITIAL_FORMS": "1", "form-0-id": str(keys[0])}
            client.post(address, {**listed, "form-0-action": "reject", "_save": "Save"})
            client.get(f"{address}{keys[0]}/history/")

    assert [model.objects.count() for model in MODELS] == kept
    assert Decision.objects.filter(action="approve").count() == 1
    page = people[2].get(f"/admin/approvals/revision/{rows[1][0]}/change/").content.decode()
    assert "args_text" not in page


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE decision SET action = 'reject'",
        "UPDATE decision SET actor_name = 'somebody'",
        "UPDATE decision SET actor_id = (SELECT max(id) FROM auth_user)",
        "UPDATE audit_entry SET actor_name = 'somebody'",
        "DELETE FROM audit_entry",
    ],
)
def test_j5_the_database_refuses_to_change_what_was_decided(world: World, statement: str) -> None:
    interrupt = world.ask()
    decide(as_actor(world.approver), interrupt.id, Opinion("approve", 1, interrupt.digest))

    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)

    assert Decision.objects.get().actor_name == "approver"
    world.approver.delete()  # an account may go; what it decided stays
    kept = Decision.objects.get()
    assert (kept.actor_id, kept.actor_name, kept.action) == (None, "approver", "approve")


def test_j5_denying_three_tools_at_once_leaves_three_entries(world: World) -> None:
    for tool in ("write_file", "run_command", "issue_refund"):
        ToolPermission.objects.create(agent=world.agent, tool=tool, verdict="allow")
    ids = [str(pk) for pk in ToolPermission.objects.values_list("pk", flat=True)]
    address = "/admin/runtime_core/toolpermission/"
    many = {"action": "make_deny", "_selected_action": ids}

    staff("viewing").post(address, many)
    assert audited("permission.changed") == []
    staff("root", is_superuser=True).post(address, many)

    entries = audited("permission.changed")
    assert [(e["actor"], e["before"]["verdict"], e["after"]["verdict"]) for e in entries] == [
        ("root", "allow", "deny")
    ] * 3
