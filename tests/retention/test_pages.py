"""Policies and holds for people: set in the admin with a record, counted before they are saved, read on a page."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from runtime_core.ids import new_id
from runtime_core.models import Project
from tests.pages.world import World, make_user
from tests.retention.conftest import ALL, left, old, policy
from traces.models import AuditEntry, LegalHold, RetentionPolicy
from traces.retention.sweep import sweep

ADD = "/admin/traces/retentionpolicy/add/"
HOLD = "/admin/traces/legalhold/add/"


@pytest.fixture
def as_user() -> Callable[[Any], Client]:
    def login(user: Any) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return login


def recorded(action: str) -> list[dict[str, Any]]:
    rows = AuditEntry.objects.filter(action=action).order_by("id").select_related("payload")
    return [json.loads(row.payload.body) for row in rows]


def test_a_policy_is_tried_then_saved_changed_and_deleted_with_a_record(
    world: World, as_user: Callable[[Any], Client]
) -> None:
    root, run = as_user(world.admin), old(world, 5)
    given = {"data_class": "spans", "scope": "global", "days": 4}

    tried = root.post(ADD, {**given, "_dry_run": "1"}).content.decode()
    assert "the next sweep would let go of <strong>1</strong>" in tried
    assert not RetentionPolicy.objects.exists() and recorded("retention.changed") == []

    assert root.post(ADD, given).status_code == 302
    row = RetentionPolicy.objects.get()
    counted = {"action": "count_now", "_selected_action": [str(row.pk)]}
    page = root.post("/admin/traces/retentionpolicy/", counted, follow=True).content.decode()
    assert "Spans: 1 would go with the next sweep." in page
    assert left(run) == ALL
    change = f"/admin/traces/retentionpolicy/{row.pk}/change/"
    assert (
        "<strong>0</strong>"
        in root.post(change, {**given, "days": "", "_dry_run": "1"}).content.decode()
    )
    assert root.post(change, {**given, "days": 9}).status_code == 302
    root.post(f"/admin/traces/retentionpolicy/{row.pk}/delete/", {"post": "yes"})
    days = [
        ((entry["before"] or {}).get("days"), (entry["after"] or {}).get("days"))
        for entry in recorded("retention.changed")
    ]
    assert days == [(None, 4), (4, 9), (9, None)]
    refused = root.post(ADD, {**given, "scope": "agent"}).content.decode()
    assert "name the agent" in refused


def test_a_hold_is_set_on_what_is_there_and_released_once(
    world: World, as_user: Callable[[Any], Client]
) -> None:
    root, run = as_user(world.admin), old(world, 200)
    for kind, object_id in [
        ("run", new_id()), ("thread", "x"), ("project", run.id), ("user", 10**20), ("user", -1),
    ]:  # fmt: skip
        answer = root.post(HOLD, {"kind": kind, "object_id": str(object_id), "reason": "A lawsuit"})
        assert f"There is no {kind} of this id." in answer.content.decode()
    given = {"kind": "run", "object_id": run.id.hex, "reason": "ghp_" + "a1B2" * 9}
    assert root.post(HOLD, given).status_code == 302
    hold = LegalHold.objects.get()
    assert (hold.object_id, hold.set_by, "ghp_" in hold.reason) == (str(run.id), world.admin, False)
    sweep(False, lambda *_: None)
    assert left(run) == ALL

    release = {"action": "release", "_selected_action": [str(hold.pk)]}
    address = "/admin/traces/legalhold/"
    assert "1 released" in root.post(address, release, follow=True).content.decode()
    assert "0 released" in root.post(address, release, follow=True).content.decode()
    assert root.post(f"{address}{hold.pk}/change/", given).status_code == 403
    assert root.post(f"{address}{hold.pk}/delete/", {"post": "yes"}).status_code == 403
    assert [len(recorded(a)) for a in ("hold.set", "hold.released")] == [1, 1]
    entry = AuditEntry.objects.get(action="hold.released")
    assert (entry.actor_id, entry.project_id) == (world.admin.pk, world.project.id)
    assert as_user(world.operator).post(HOLD, given).status_code == 302
    assert LegalHold.objects.count() == 1


def test_auditors_read_what_holds_for_their_projects_alone(
    world: World, as_user: Callable[[Any], Client]
) -> None:
    elsewhere = Project.objects.create(slug="elsewhere", name="Elsewhere")
    run = old(world, 200)
    policy("spans", None, scope="project", project=world.project)
    policy("checkpoints", 1, scope="agent", agent=world.agent)
    LegalHold.objects.create(kind="thread", object_id=str(run.thread_id), reason="Case <9>")
    auditor = as_user(make_user("aud", world.project, "auditor"))

    page = auditor.get("/policies/").content.decode()
    for text in ("Demo: for ever", "agent code-fixer: 1 day", "Case &lt;9&gt;", "180 days"):
        assert text in page, text
    assert 'href="/policies/"' in auditor.get("/").content.decode()

    page = as_user(make_user("eve", elsewhere, "admin")).get("/policies/").content.decode()
    for text in ("Demo", "code-fixer", "Case", str(run.thread_id)):
        assert text not in page, text
    assert "Nothing is held" in page
    for user in (world.viewer, world.operator, world.approver, world.stranger):
        assert as_user(user).get("/policies/").status_code == 403
    assert Client().get("/policies/").status_code == 302
    assert as_user(world.admin).get("/policies/").status_code == 200
