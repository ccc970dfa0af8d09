"""Exports over the API: ask, look how far, get a link, fetch the file with it."""

from __future__ import annotations

import datetime as dt
import uuid

from django.http import HttpRequest, HttpResponseBase
from ninja import Router, Schema, Status
from pydantic import AwareDatetime, ConfigDict

from runtime_core.api.auth import caller
from traces.exports import requests
from traces.exports.download import download
from traces.exports.requests import Wanted
from traces.models import ExportJob

router = Router(tags=["exports"])
SHOWN = 50


class ExportIn(Schema):
    """What to write, and what for; `run_id`, `since` and `until` narrow it."""

    model_config = ConfigDict(extra="forbid")

    project_id: uuid.UUID
    format: str
    reason: str
    run_id: uuid.UUID | None = None
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None


class ExportOut(Schema):
    """An export and its manifest; `sha256` and what goes with it once its file is ready."""

    id: uuid.UUID
    project_id: uuid.UUID
    format: str
    state: str
    reason: str
    run_id: uuid.UUID | None
    since: dt.datetime | None
    until: dt.datetime | None
    row_cap: int
    rows: int
    size: int
    is_cut: bool
    sha256: str
    policy_version: int | None
    created_at: dt.datetime
    expires_at: dt.datetime | None


class ExportsOut(Schema):
    """The caller's newest exports."""

    items: list[ExportOut]


class LinkOut(Schema):
    """Where the file is, once, within five minutes, with the same credentials."""

    url: str


@router.get("", response=ExportsOut, summary="List exports")
def index(request: HttpRequest) -> ExportsOut:
    """The caller's newest exports."""
    return ExportsOut(items=[_out(job) for job in requests.own(caller(request))[:SHOWN]])


@router.post("", response={202: ExportOut}, summary="Ask for an export")
def ask(request: HttpRequest, payload: ExportIn) -> Status[ExportOut]:
    """Queue an export of a project's spans; the reason is kept in the audit."""
    return Status(202, _out(requests.ask(caller(request), Wanted(**payload.dict()))))


@router.get("/{uuid:job_id}", response=ExportOut, summary="One export")
def show(request: HttpRequest, job_id: uuid.UUID) -> ExportOut:
    """How far an export is."""
    return _out(requests.one(caller(request), job_id))


@router.post("/{uuid:job_id}/link", response=LinkOut, summary="Make a link to the file")
def link(request: HttpRequest, job_id: uuid.UUID) -> LinkOut:
    """A link that opens the file once."""
    token = requests.link(caller(request), job_id)
    return LinkOut(url=f"/api/v1/exports/{job_id}/file?token={token}")


@router.get("/{uuid:job_id}/file", summary="Fetch the file")
def file(request: HttpRequest, job_id: uuid.UUID, token: str = "") -> HttpResponseBase:
    """The file, once for each link."""
    return download(requests.opened(caller(request), job_id, token))


def _out(job: ExportJob) -> ExportOut:
    return ExportOut(**{name: getattr(job, name) for name in ExportOut.model_fields})
