"""Exports: asked for with a reason, redacted anew, fetched once a link, gone after a day; by nobody else."""

from __future__ import annotations

import csv
import datetime as dt
import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from runtime_core import clock
from runtime_core.models import ApiToken, Run
from runtime_core.values import Usage
from tests.pages.world import World
from traces.exports import job as jobs
from traces.exports import requests
from traces.models import (
    AuditEntry,
    AuditPayload,
    ExportJob,
    RedactionPolicy,
    RedactionRule,
    SpanPayload,
)
from traces.policies.current import current

pytestmark = pytest.mark.django_db
TOKEN = "ghp_" + "a8Kq2Zr7Lw9Xc3Vb5Nm1Tp4Ys6Hd0Gf2Je8u"


@pytest.fixture
def world(db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(jobs, "folder", lambda: tmp_path / "exports")
    current.forget()
    yield World()
    current.forget()


def api(user: Any, method: str, path: str, body: Any = None) -> Any:
    _, token = ApiToken.issue(user, None)
    return getattr(Client(), method)(
        f"/api/v1/exports{path}", body, content_type="application/json",
        headers={"Authorization": f"Bearer {token}"},
    )  # fmt: skip


def asked(world: World, user: Any, format: str = "jsonl", **more: Any) -> str:
    body = {"project_id": str(world.project.id), "format": format, "reason": "Case 12", **more}
    answer = api(user, "post", "", body)
    assert answer.status_code == 202, answer.content
    return str(answer.json()["id"])


def fetched(user: Any, job: str) -> bytes:
    url = api(user, "post", f"/{job}/link").json()["url"].removeprefix("/api/v1/exports")
    answer = api(user, "get", url)
    assert answer.status_code == 200, answer.content
    assert api(user, "get", url).status_code == 410, "the link opens once"
    return b"".join(answer.streaming_content)


def a_run_with_spans(world: World) -> Any:
    run = world.run("completed")
    world.span(run, id=run.id, parent_id=None, kind="run", name="root")
    span = world.span(run, kind="llm", name="=cmd|x", usage=Usage(10, 5, 7), input={"q": 1})
    # As if it had been stored before there was a rule for it.
    SpanPayload.objects.filter(span=span.id).update(body=json.dumps({"q": f"use {TOKEN}, plum-7"}))
    return run


# Policies are read on a thread of their own, which sees what is committed.
@pytest.mark.django_db(transaction=True)
def test_a_file_is_redacted_anew_and_says_what_it_is(world: World) -> None:
    run = a_run_with_spans(world)
    policy = RedactionPolicy.objects.create(name="plums", scope="global")
    RedactionRule.objects.create(policy=policy, kind="regex", label="plum", pattern=r"plum-\d")
    current.forget()
    made = {format: asked(world, world.operator, format) for format in ("jsonl", "csv", "otlp")}

    jobs.work()

    texts = {format: fetched(world.operator, job) for format, job in made.items()}
    for format, text in texts.items():
        manifest = api(world.operator, "get", f"/{made[format]}").json()
        assert (manifest["state"], manifest["rows"], manifest["is_cut"]) == ("ready", 2, False)
        assert manifest["sha256"] == hashlib.sha256(text).hexdigest()
        assert manifest["size"] == len(text)
        assert TOKEN.encode() not in text
        assert b"plum-7" not in text
    spans = [json.loads(line) for line in texts["jsonl"].splitlines()]
    assert {one["kind"] for one in spans} == {"run", "llm"}
    rows = list(csv.DictReader(io.StringIO(texts["csv"].decode())))
    assert "'=cmd|x" in {row["name"] for row in rows}, "no spreadsheet takes it for a formula"
    otlp = [json.loads(line)["resourceSpans"][0] for line in texts["otlp"].splitlines()]
    assert {one["scopeSpans"][0]["spans"][0]["traceId"] for one in otlp} == {run.id.hex}
    told = (
        AuditEntry.objects.filter(object_id=made["csv"])
        .order_by("id")
        .values_list("action", flat=True)
    )
    assert list(told) == ["export.requested", "export.made", "export.downloaded"]
    assert "Case 12" in AuditPayload.objects.get(
        entry__action="export.requested", entry__object_id=made["csv"]
    ).body  # fmt: skip


def test_nobody_else_sees_or_fetches_it(world: World) -> None:
    a_run_with_spans(world)
    job = asked(world, world.operator)
    jobs.work()
    url = api(world.operator, "post", f"/{job}/link").json()["url"].removeprefix("/api/v1/exports")

    for user in (world.stranger, world.viewer, world.admin):
        assert api(user, "get", "").json()["items"] == []
        for method, path in (("get", f"/{job}"), ("post", f"/{job}/link"), ("get", url)):
            assert api(user, method, path).status_code == 404
    body = {"project_id": str(world.project.id), "format": "csv", "reason": "x"}
    assert api(world.stranger, "post", "", body).status_code == 404

    world.project.memberships.all().delete()
    assert api(world.operator, "get", url).status_code == 404, (
        "a role that went takes its files along"
    )


def test_a_role_says_how_much(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    a_run_with_spans(world)
    monkeypatch.setattr(requests, "row_cap", lambda who, project: 1)
    job = asked(world, world.viewer)

    jobs.work()

    told = api(world.viewer, "get", f"/{job}").json()
    assert (told["rows"], told["is_cut"]) == (1, True)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"reason": "  "}, "reason"),
        ({"format": "xml"}, "format"),
        ({"run_id": "0198c0de-0000-7000-8000-000000000000"}, "run_id"),
        ({"since": "2026-02-01T00:00:00Z", "until": "2026-01-01T00:00:00Z"}, "until"),
    ],
)
def test_it_says_what_is_wrong_with_a_request(world: World, change: Any, field: str) -> None:
    body = {"project_id": str(world.project.id), "format": "csv", "reason": "x", **change}

    answer = api(world.operator, "post", "", body)

    assert answer.status_code == 422
    assert answer.json()["field"] == field
    assert not ExportJob.objects.exists()


def test_a_file_goes_after_its_time_and_with_what_it_holds(world: World) -> None:
    a_run_with_spans(world)
    old, other = asked(world, world.operator), asked(world, world.operator)
    jobs.work()
    assert len(list(jobs.folder().iterdir())) == 2

    ExportJob.objects.filter(id=old).update(expires_at=clock.now() - dt.timedelta(minutes=1))
    jobs.work()
    assert [file.name for file in jobs.folder().iterdir()] == [f"{other}.data"]
    assert api(world.operator, "post", f"/{old}/link").status_code == 410
    assert AuditEntry.objects.filter(action="export.expired", object_id=old).exists()

    requests.withdraw([world.project.id])
    assert api(world.operator, "post", f"/{other}/link").status_code == 410
    jobs.work()
    assert list(jobs.folder().iterdir()) == []


def test_what_was_deleted_while_it_was_read_is_in_no_file(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_run_with_spans(world)
    job = asked(world, world.operator)
    read = jobs.records

    def records(job: ExportJob) -> Iterator[Any]:
        yield from read(job)
        Run.everything.update(deleted_at=clock.now())

    monkeypatch.setattr(jobs, "records", records)
    jobs.work()
    assert ExportJob.objects.get(id=job).state == "pending"

    monkeypatch.setattr(jobs, "records", read)
    jobs.work()  # the deletion is too young to be told from one that is going on
    assert ExportJob.objects.get(id=job).state == "pending"
    Run.everything.update(deleted_at=clock.now() - dt.timedelta(minutes=2))
    jobs.work()
    row = ExportJob.objects.get(id=job)
    assert (row.state, row.rows) == ("ready", 0)


def test_what_cannot_be_written_fails_after_three_attempts(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = asked(world, world.operator)
    monkeypatch.setattr(jobs, "records", lambda job: 1 / 0)

    jobs.work()

    row = ExportJob.objects.get(id=job)
    assert (row.state, row.attempts) == ("failed", 3)
    assert list(jobs.folder().iterdir()) == []
    assert AuditEntry.objects.filter(action="export.failed", object_id=job).exists()


def test_the_page_asks_and_downloads(world: World) -> None:
    a_run_with_spans(world)
    client = Client()
    client.force_login(world.operator)
    form = {"project": world.project.id, "format": "csv", "reason": "Case <b>12</b>"}

    assert client.post("/exports/", {**form, "reason": ""}).status_code == 422
    assert client.post("/exports/", form).status_code == 302
    jobs.work()
    job = ExportJob.objects.get()
    page = client.get("/exports/").content.decode()
    assert "Case &lt;b&gt;12&lt;/b&gt;" in page
    answer = client.post(f"/exports/{job.id}/link/", follow=True)

    assert answer.headers["Content-Disposition"] == f'attachment; filename="{job.file_name}"'
    assert hashlib.sha256(b"".join(answer.streaming_content)).hexdigest() == job.sha256  # type: ignore[attr-defined]
    stranger = Client()
    stranger.force_login(world.stranger)
    assert stranger.post(f"/exports/{job.id}/link/").status_code == 404
    assert str(job.id) not in stranger.get("/exports/").content.decode()
