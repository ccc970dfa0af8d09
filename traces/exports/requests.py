"""Asking for an export, and the link that opens its file once. Each is in the audit in its own commit."""

from __future__ import annotations

import datetime as dt
import hashlib
import secrets
import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from django.core import signing
from django.db.models import QuerySet

from runtime_core import access, clock, ports
from runtime_core.access import Can
from runtime_core.callers import Caller
from runtime_core.errors import Backpressure, Expired, InvalidInput, NotFound
from runtime_core.models import Project, Run
from runtime_core.sanitize import storable_text
from runtime_core.transactions import one_commit
from runtime_core.values import Actor, Audit
from traces.gate import redactor
from traces.models import ExportJob

LINK_SECONDS = 300
UNFINISHED_A_PERSON = 5
REASON_CHARACTERS = 300
_SALT = "traces.exports.link"
State = ExportJob.State


@dataclass(frozen=True, slots=True)
class Wanted:
    """What somebody wants in a file."""

    project_id: uuid.UUID
    format: str
    reason: str
    run_id: uuid.UUID | None = None
    since: dt.datetime | None = None
    until: dt.datetime | None = None


def row_cap(who: Caller, project_id: uuid.UUID) -> int:
    """How many rows an export may have: by what this person may do in the project."""
    rights = access.allowed(who.user, project_id)
    if Can.SEE_PERSONAL in rights:
        return 100_000
    return 10_000 if rights & {Can.OPERATE, Can.DECIDE} else 1_000


def ask(who: Caller, wanted: Wanted) -> ExportJob:
    """Queue an export. NotFound outside of the caller's projects, InvalidInput, Backpressure."""
    who.require(wanted.project_id, Can.VIEW)
    reason = redactor().on("export").text(storable_text(wanted.reason.strip()))[:REASON_CHARACTERS]
    _check(wanted, reason)
    unfinished = ExportJob.objects.filter(
        requested_by=who.user, state__in=[State.PENDING, State.WORKING]
    )
    if unfinished.count() >= UNFINISHED_A_PERSON:
        raise Backpressure("Five exports of yours are not written yet; wait for one of them.")
    with one_commit("export"):
        job = ExportJob.objects.create(
            project_id=wanted.project_id,
            requested_by=who.user,
            format=wanted.format,
            reason=reason,
            run_id=wanted.run_id,
            since=wanted.since,
            until=wanted.until,
            row_cap=row_cap(who, wanted.project_id),
        )
        record("export.requested", who.actor, job, reason=reason, row_cap=job.row_cap)
    job.refresh_from_db()
    return job


def _check(wanted: Wanted, reason: str) -> None:
    if not reason:
        raise InvalidInput("reason: say what you need it for; the audit keeps it.", field="reason")
    if wanted.format not in ExportJob.Format.values:
        raise InvalidInput("format must be jsonl, csv or otlp.", field="format")
    if wanted.since and wanted.until and wanted.since >= wanted.until:
        raise InvalidInput("until must be later than since.", field="until")
    run = wanted.run_id
    if run and not Run.objects.filter(id=run, project=wanted.project_id).exists():
        raise InvalidInput("run_id: there is no such run in this project.", field="run_id")


def own(who: Caller) -> QuerySet[ExportJob]:
    """The caller's exports in projects that they can see at this moment."""
    jobs = ExportJob.objects.filter(requested_by=who.user, project__in=who.projects())
    return jobs.select_related("project")


def one(who: Caller, job_id: uuid.UUID) -> ExportJob:
    """An export of the caller's; NotFound for anybody else."""
    job = own(who).filter(id=job_id).first()
    if job is None:
        raise NotFound("There is no such export, or it is not yours.")
    return job


def link(who: Caller, job_id: uuid.UUID) -> str:
    """A token that opens the file once, within five minutes; an older one stops to work."""
    job = one(who, job_id)
    nonce = secrets.token_urlsafe(24)
    changed = ExportJob.objects.filter(id=job.id, state=State.READY, expires_at__gt=clock.now())
    if not changed.update(link_digest=_digest(nonce)):
        raise _gone(job)
    return signing.dumps([str(job.id), nonce], salt=_SALT)


def opened(who: Caller, job_id: uuid.UUID, token: str) -> ExportJob:
    """The export whose file this token opens now, and never again. NotFound, Expired."""
    job = one(who, job_id)
    try:
        named, nonce = signing.loads(token, salt=_SALT, max_age=LINK_SECONDS)
    except (signing.BadSignature, ValueError, TypeError):
        raise Expired("This link has been used or is too old; get a new one.") from None
    mine = ExportJob.objects.filter(id=job.id, state=State.READY, link_digest=_digest(nonce))
    with one_commit("export"):
        if named != str(job.id) or not mine.filter(expires_at__gt=clock.now()).update(
            link_digest=""
        ):
            raise Expired("This link has been used or is too old; get a new one.")
        record("export.downloaded", who.actor, job, sha256=job.sha256)
    return job


def withdraw(projects: Iterable[uuid.UUID]) -> None:
    """In the transaction of a deletion: files that may hold what goes are no more, those being written begin anew."""
    affected = set(projects)
    # What a job that finishes meanwhile waits for; then it sees what was deleted under its hands.
    list(Project.objects.select_for_update(no_key=True).filter(id__in=affected).order_by("id"))
    jobs = ExportJob.objects.filter(project__in=affected)
    # In this order: one that gets ready between the two is still caught.
    jobs.filter(state=State.WORKING).update(state=State.PENDING, claimed_at=None)
    jobs.filter(state=State.READY).update(state=State.EXPIRED, link_digest="")


def record(action: str, actor: Actor, job: ExportJob, **data: object) -> None:
    """Put one step of an export into the audit."""
    facts = {"format": job.format, **data}
    entry = Audit(action, actor, "export", str(job.id), job.project_id, job.run_id, data=facts)
    ports.audit().record([entry])


def _digest(nonce: str) -> str:
    return hashlib.sha256(nonce.encode()).hexdigest()


def _gone(job: ExportJob) -> Exception:
    if job.state in (State.PENDING, State.WORKING):
        return InvalidInput("It is not written yet; try again in a moment.")
    return Expired("The file of this export is gone; ask for a new one.")
