"""What the API says of a run that waits for its turn, and who may ask for an earlier one."""

from __future__ import annotations

from typing import Any

import pytest

from runtime_core.models import Quota, Run, Worker
from runtime_core.scheduling import quotas
from tests.api.room import Api, Room

GOOD = {"agent": "fixer", "input": "Fix it"}


def test_a_run_says_how_many_are_ahead_and_what_it_waits_for(room: Room, ana: Api) -> None:
    first, second = room.run(), room.run()
    nobody = {"ahead": 1, "reason": "no worker is running"}
    assert ana.get(f"/runs/{second.id}")[1]["queue"] == nobody

    Worker.objects.create(name="w", slots=1)
    assert ana.get(f"/runs/{second.id}")[1]["queue"] == {"ahead": 1, "reason": None}
    for kind, of, reason in (
        ("agent", {"agent": room.agent}, "quota of agent"),
        ("project", {"project": room.project}, "quota of project"),
        ("all", {}, "quota of all projects"),
    ):
        key = str(next(iter(of.values())).pk) if of else ""
        quotas.apply(Quota.objects.create(kind=kind, key=key, at_once=0, **of))
        assert ana.get(f"/runs/{second.id}")[1]["queue"] == {"ahead": 1, "reason": reason}

    Run.objects.filter(id=first.id).update(status="waiting", waits_for="tool:charge")
    Run.objects.filter(id=second.id).update(status="running")
    items = {item["id"]: item["queue"] for item in ana.get("/runs")[1]["items"]}
    assert items[str(first.id)] == {"ahead": 0, "reason": "waiting for tool charge"}
    assert items[str(second.id)] is None


@pytest.mark.parametrize("value", [11, -11, 1.5, "1", True, None])
def test_a_priority_out_of_bounds_is_refused(room: Room, ana: Api, value: Any) -> None:
    status, body = ana.post("/runs", {**GOOD, "priority": value})

    assert (status, body["errors"][0]["field"]) == (422, "priority")


def test_to_be_served_before_others_is_for_admins_of_the_project(room: Room, ana: Api) -> None:
    assert ana.post("/runs", {**GOOD, "priority": 3})[0] == 403
    assert ana.post("/runs", {**GOOD, "priority": -3})[1]["priority"] == -3
    room.ana.memberships.create(project=room.project, role="admin")
    status, run = ana.post("/runs", {**GOOD, "priority": 3})
    assert (status, run["priority"]) == (201, 3)
    assert run["queue"]["ahead"] == 0, "the other one, asked for before, comes later"
    assert Api(room.cy).post("/runs", {**GOOD, "priority": 3})[0] == 404
