"""Who may see which page: 404 for strangers, 403 with the reason for those without the right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from runtime_core.models import Run
from tests.pages.world import World
from traces.models import AuditEntry

Login = Callable[[Any], Client]
PAGES = ["/", "/runs/", "/traces/", "/audit/", "/agents/"]
STEER = ["cancel", "force-stop", "pause", "resume", "retry", "compensate", "fork"]


@pytest.mark.parametrize("address", [*PAGES, "/runs/new/", "/system/"])
def test_it_asks_the_nameless_to_sign_in(client: Client, db: None, address: str) -> None:
    answer = client.get(address)

    assert answer.status_code == 302
    assert answer["Location"].startswith("/login/?next=")


@pytest.mark.parametrize("address", PAGES)
@pytest.mark.parametrize("name", ["viewer", "operator", "approver", "stranger", "admin"])
def test_everybody_has_the_pages_with_what_is_theirs(
    world: World, as_user: Login, address: str, name: str
) -> None:
    run = world.run(title="A very telling title")
    world.ask(run)

    answer = as_user(getattr(world, name)).get(address)

    assert answer.status_code == 200
    if name == "stranger":
        assert b"A very telling title" not in answer.content
        assert b"code-fixer" not in answer.content


def test_a_stranger_cannot_tell_that_a_run_exists(world: World, as_user: Login) -> None:
    run = world.run(title="A very telling title")
    stranger = as_user(world.stranger)
    there = [f"/runs/{run.id}/", f"/traces/{run.id}/", *(f"/runs/{run.id}/{s}/" for s in STEER)]

    for address in there:
        gone = address.replace(str(run.id), "0190b5a0-0000-7000-8000-000000000000")
        assert stranger.get(address).status_code == 404
        assert (
            stranger.get(address).content
            == stranger.get(gone).content.replace(gone.encode(), address.encode())
            or b"telling" not in stranger.get(address).content
        )
    for step in STEER:
        assert stranger.post(f"/runs/{run.id}/{step}/").status_code == 404


@pytest.mark.parametrize("step", STEER)
def test_a_viewer_may_watch_but_not_steer(world: World, as_user: Login, step: str) -> None:
    run = world.run()
    viewer = as_user(world.viewer)

    page = viewer.get(f"/runs/{run.id}/")
    answer = viewer.post(f"/runs/{run.id}/{step}/")

    assert page.status_code == 200
    assert b"Cancel run" not in page.content
    assert answer.status_code == 403
    assert b"start, cancel and resume runs" in answer.content
    assert Run.objects.get(id=run.id).cancel_requested_at is None
    assert AuditEntry.objects.filter(action="access.denied").exists()


def test_only_those_who_may_operate_start_runs(world: World, as_user: Login) -> None:
    assert as_user(world.operator).get("/runs/new/").status_code == 200
    assert as_user(world.viewer).get("/runs/new/").status_code == 403
    assert as_user(world.stranger).get("/runs/new/").status_code == 403
    assert as_user(world.viewer).post("/runs/new/", {}).status_code == 403
    assert not Run.objects.exists()


def test_a_role_that_was_taken_away_counts_at_once(world: World, as_user: Login) -> None:
    run = world.run()
    viewer = as_user(world.viewer)
    assert viewer.get(f"/runs/{run.id}/").status_code == 200

    world.viewer.memberships.all().delete()

    assert viewer.get(f"/runs/{run.id}/").status_code == 404


def test_the_audit_shows_what_belongs_to_ones_projects_and_oneself(
    world: World, as_user: Login
) -> None:
    as_user(world.operator)  # logs in, which is an entry without a project
    viewer = as_user(world.viewer)

    mine = viewer.get("/audit/").content.decode()
    everything = as_user(world.admin).get("/audit/").content.decode()

    assert "auth.login" in mine.split("<tbody")[1]
    assert ">ana " not in mine
    assert ">ana " in everything
