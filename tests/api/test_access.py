"""Who gets in, and what they can see."""

from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client

from runtime_core import clock
from runtime_core.models import ApiToken
from tests.api.room import Api, Room, agent, make_run, parsed, project


def test_it_refuses_a_request_without_credentials(room: Room, client: Client) -> None:
    response = client.get("/api/v1/runs")

    status, body = parsed(response)
    assert (status, body["code"]) == (401, "unauthenticated")
    assert response["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("spoilt", ["revoked", "expired", "inactive", "unknown", "other scheme"])
def test_it_refuses_a_token_that_no_longer_counts(room: Room, ana: Api, spoilt: str) -> None:
    token = ApiToken.objects.get(user=room.ana)
    if spoilt == "revoked":
        token.revoked_at = clock.now()
    elif spoilt == "expired":
        token.expires_at = clock.now() - dt.timedelta(seconds=1)
    elif spoilt == "inactive":
        room.ana.is_active = False
        room.ana.save()
    elif spoilt == "unknown":
        ana.headers["Authorization"] += "x"
    else:
        ana.headers["Authorization"] = f"Token {ana.token}"
    token.save()

    status, body = ana.get("/runs")

    assert (status, body["code"]) == (401, "unauthenticated")


def test_a_wrong_token_is_not_saved_by_a_good_cookie(room: Room, client: Client) -> None:
    client.force_login(room.ana)

    response = client.get("/api/v1/runs", headers={"Authorization": "Bearer ilk_no"})

    assert response.status_code == 401


def test_a_session_reads_and_needs_the_csrf_header_to_write(room: Room) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(room.ana)

    read = browser.get("/api/v1/runs")
    write = browser.post("/api/v1/runs", {"agent": "fixer"}, content_type="application/json")

    assert read.status_code == 200
    status, body = parsed(write)
    assert (status, body["code"]) == (403, "csrf_failed")


def test_a_session_writes_with_the_csrf_header(room: Room) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(room.ana)
    browser.get("/admin/login/")
    secret = browser.cookies["csrftoken"].value

    answer = browser.post(
        "/api/v1/threads", {}, content_type="application/json", headers={"X-CSRFToken": secret}
    )

    assert answer.status_code == 201


def test_a_stranger_gets_404_for_everything_of_a_run(room: Room) -> None:
    run = room.run()
    stranger = Api(room.cy)

    for path in ("", "/events", "/checkpoints", "/tool-calls", "/provenance"):
        status, body = stranger.get(f"/runs/{run.id}{path}")
        assert (status, body["code"]) == (404, "not_found"), path
    for verb in ("cancel", "pause", "resume", "retry"):
        assert stranger.post(f"/runs/{run.id}/{verb}")[0] == 404, verb
    assert stranger.get("/runs")[1]["items"] == []
    assert stranger.get(f"/threads/{run.thread_id}")[0] == 404


def test_a_viewer_sees_but_does_not_operate(room: Room) -> None:
    run = room.run()
    viewer = Api(room.vi)

    assert viewer.get(f"/runs/{run.id}")[0] == 200
    status, body = viewer.post(f"/runs/{run.id}/cancel")
    assert (status, body["code"]) == (403, "not_allowed")
    status, body = viewer.post("/runs", {"agent": "fixer", "input": "x"})
    assert (status, body["code"]) == (403, "not_allowed")


def test_a_token_of_one_project_sees_no_other(room: Room) -> None:
    elsewhere = project("elsewhere")
    room.ana.memberships.create(project=elsewhere, role="operator")
    there = make_run(agent(elsewhere, "other"), room.ana)
    here = room.run()
    narrow = Api(room.ana, within=room.project)

    assert [run["id"] for run in narrow.get("/runs")[1]["items"]] == [str(here.id)]
    assert narrow.get(f"/runs/{there.id}")[0] == 404
    assert len(Api(room.ana).get("/runs")[1]["items"]) == 2


def test_a_used_token_remembers_when(room: Room, ana: Api) -> None:
    ana.get("/runs")

    assert ApiToken.objects.get(user=room.ana).last_used_at is not None
