"""The system page: what goes on, for those who may start runs, and only of their projects."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

from django.test import Client

from runtime_core import clock
from runtime_core.models import Project, Quota, RunLease, Worker
from runtime_core.scheduling import queue, quotas
from tests.pages.world import World, make_user

Login = Callable[[Any], Client]


def test_an_operator_sees_workers_queues_quotas_and_leases(world: World, as_user: Login) -> None:
    operator = as_user(world.operator)
    page = operator.get("/system/").content.decode()
    assert "No worker is running" in page and "celery -A config worker" in page

    Worker.objects.create(name="host:1", slots=16)
    Worker.objects.create(name="host:2", slots=4, missing_since=clock.now())
    run = world.run("running", title="Working away")
    RunLease.objects.create(
        run=run, epoch=1, worker="host:1", until=clock.now() - dt.timedelta(seconds=9)
    )
    world.event(run, "progress", {"message": "x"})
    world.run("pending")
    world.run("waiting", waits_for="tool:charge")
    key = str(world.project.id)
    quotas.apply(Quota.objects.create(kind="project", project=world.project, key=key, at_once=1))
    queue.count()
    page = operator.get("/system/").content.decode()
    assert "No worker is running" not in page
    for text in ("host:1", "alive", "gone", "Working away", "quota of project"):
        assert text in page, text
    assert 'data-tone="late">1</span>' in page, "an orphan"


def test_others_projects_stay_out_of_it(world: World, as_user: Login) -> None:
    world.run("running", title="Working away")
    RunLease.objects.create(
        run=world.run("running", title="Secretly held"), epoch=1, worker="w", until=clock.now()
    )
    key = str(world.project.id)
    quotas.apply(Quota.objects.create(kind="project", project=world.project, key=key, at_once=7))
    elsewhere = Project.objects.create(slug="elsewhere", name="Elsewhere")
    page = as_user(make_user("eve", elsewhere, "operator")).get("/system/").content.decode()
    assert "Elsewhere" in page
    assert "Secretly held" not in page and "Working away" not in page
    assert "No quota" in page


def test_it_is_for_those_who_may_start_runs(world: World, as_user: Login) -> None:
    for user in (world.viewer, world.approver, world.stranger):
        client = as_user(user)
        assert client.get("/system/").status_code == 403
        assert 'href="/system/"' not in client.get("/").content.decode()
    assert as_user(world.admin).get("/system/").status_code == 200
    assert as_user(make_user("chief", world.project, "admin")).get("/system/").status_code == 200
    assert 'href="/system/"' in as_user(world.operator).get("/").content.decode()
    assert as_user(world.operator).post("/system/").status_code == 405
