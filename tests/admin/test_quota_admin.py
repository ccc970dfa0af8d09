"""Quotas and queues in the admin: each names one thing, holds at once, and its change is recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from runtime_core.models import Permit, ProjectQueue, Quota
from tests.pages.world import World
from traces.models import AuditEntry

ADD = "/admin/runtime_core/quota/add/"


@pytest.fixture
def world(db: None) -> World:
    return World()


@pytest.fixture
def root(world: World) -> Client:
    client = Client()
    client.force_login(world.admin)
    return client


def recorded(action: str) -> list[dict[str, Any]]:
    rows = AuditEntry.objects.filter(action=action).order_by("id").select_related("payload")
    return [json.loads(row.payload.body) for row in rows]


def test_a_quota_is_set_changed_and_lifted_with_a_record_of_it(root: Client, world: World) -> None:
    project = world.run().project
    assert (
        root.post(ADD, {"kind": "project", "project": project.pk, "at_once": 3}).status_code == 302
    )
    quota = Quota.objects.get()
    assert (quota.key, Permit.objects.filter(retired=False).count()) == (str(project.pk), 3)
    change = f"/admin/runtime_core/quota/{quota.pk}/change/"
    assert root.post(change, {"at_once": 1, "kind": "all"}).status_code == 302
    quota.refresh_from_db()
    assert (quota.kind, quota.at_once, quota.updated_by) == ("project", 1, world.admin)
    assert Permit.objects.filter(retired=False).count() == 1
    assert b"in use" in root.get("/admin/runtime_core/quota/").content.lower()
    root.post(f"/admin/runtime_core/quota/{quota.pk}/delete/", {"post": "yes"})
    assert (Quota.objects.count(), Permit.objects.count()) == (0, 0)
    of = {"kind": "project", "key": str(project.pk)}
    assert recorded("quota.changed") == [
        {"before": None, "after": {**of, "at_once": 3}},
        {"before": {**of, "at_once": 3}, "after": {**of, "at_once": 1}},
        {"before": {**of, "at_once": 1}, "after": None},
    ]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"kind": "project"}, "needs it"),
        ({"kind": "all", "name": "x"}, "Leave it empty"),
        ({"kind": "tool", "name": "nothing_of_that_name"}, "no tool"),
        ({"kind": "model"}, "needs it"),
        ({"kind": "all", "at_once": 1_001}, "At most 1000"),
        ({"kind": "all", "at_once": -1}, "greater than or equal to 0"),
        ({"kind": "nonsense"}, "Select a valid choice"),
    ],
)
def test_a_quota_of_nothing_or_of_two_things_is_refused(
    root: Client, given: dict[str, Any], says: str
) -> None:
    answer = root.post(ADD, {"at_once": 1, **given})
    assert answer.status_code == 200
    assert says in answer.content.decode()
    assert not Quota.objects.exists()


def test_two_quotas_of_the_same_are_refused(root: Client) -> None:
    assert root.post(ADD, {"kind": "all", "at_once": 5}).status_code == 302
    assert (
        b"There is a quota for it already" in root.post(ADD, {"kind": "all", "at_once": 6}).content
    )


def test_a_projects_queue_gets_a_length_and_a_stranger_gets_nothing(
    root: Client, world: World, client: Client
) -> None:
    project = world.run().project
    add = "/admin/runtime_core/projectqueue/add/"
    assert root.post(add, {"project": project.pk, "most": 2}).status_code == 302
    assert ProjectQueue.objects.get().most == 2
    assert recorded("queue.changed") == [{"before": None, "after": {"most": 2}}]
    client.force_login(world.operator)
    assert client.get(ADD).status_code == 302
    assert client.post(ADD, {"kind": "all", "at_once": 5}).status_code == 302
    assert not Quota.objects.exists()
