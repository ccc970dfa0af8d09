"""The job: takes one export after the other, writes its file, and lets go of files whose time is over."""

from __future__ import annotations

import datetime as dt
import hashlib
import logging
import os
import uuid
from collections.abc import Iterable
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet
from django.db.models.functions import Now

from runtime_core.models import Project, Run
from runtime_core.transactions import one_commit
from runtime_core.values import SYSTEM
from traces.exports.formats import head, line
from traces.exports.records import records
from traces.exports.requests import record
from traces.models import ExportJob
from traces.policies.current import current

logger = logging.getLogger(__name__)

KEPT_FOR = dt.timedelta(hours=24)
ATTEMPTS = 3
BYTES_A_FILE = 1_000_000_000
State = ExportJob.State

# Longer than the transaction of a deletion may last: what began before a claim may have committed after it.
DELETION_SECONDS = 60
# A claim that is a quarter of an hour old was a worker's that is gone. Where something was just deleted, wait a little:
# a claim that old cannot be told from one that read what is gone.
_TAKE = """
UPDATE export_job SET state = 'working', claimed_at = now(), attempts = attempts + 1
WHERE id = (
    SELECT id FROM export_job
    WHERE (state = 'pending' OR (state = 'working' AND claimed_at < now() - interval '15 minutes'))
        AND NOT EXISTS (
            SELECT 1 FROM run WHERE run.project_id = export_job.project_id
            AND run.deleted_at > now() - make_interval(secs => %s)
        )
    ORDER BY created_at LIMIT 1 FOR UPDATE SKIP LOCKED
)
RETURNING id
"""


def folder() -> Path:
    """Where the files are."""
    return Path(settings.DATA_DIR) / "exports"


def path_of(job_id: uuid.UUID) -> Path:
    """Where the file of an export is."""
    return folder() / f"{job_id}.data"


def work() -> None:
    """Write every export that waits, then remove the files of those that nobody may fetch any more."""
    while (job := _take()) is not None:
        _make(job)
    _expire()
    _sweep_files()


def _take() -> ExportJob | None:
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, [DELETION_SECONDS])
        row = cursor.fetchone()
    return ExportJob.objects.get(id=row[0]) if row else None


def _make(job: ExportJob) -> None:
    try:
        if job.attempts > ATTEMPTS:
            raise RuntimeError("its workers were lost")
        _finish(job, _write(job))
    except Exception:
        logger.exception("export %s could not be written", job.id)
        state = State.FAILED if job.attempts >= ATTEMPTS else State.PENDING
        with one_commit("export"):
            changed = _mine(job).update(state=state, claimed_at=None)
            if changed and state == State.FAILED:
                record("export.failed", SYSTEM, job, attempts=job.attempts)


def _write(job: ExportJob) -> Path:
    """Write beside the file's place; what is counted and digested here is what its readers get."""
    folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    part = folder() / f"{job.id}.{job.attempts}.part"
    digest = hashlib.sha256()
    current.forget()  # a rule made a moment ago counts too
    job.policy_version = current.snapshot().version
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        lines = (line(job.format, each) for each in records(job))
        text = head(job.format).encode()
        while True:
            file.write(text)
            digest.update(text)
            job.size += len(text)
            following = next(lines, None)
            if following is None:
                break
            if job.rows >= job.row_cap or job.size >= BYTES_A_FILE:
                job.is_cut = True
                break
            job.rows += 1
            text = following.encode()
        file.flush()
        os.fsync(file.fileno())
    job.sha256 = digest.hexdigest()
    return part


def _finish(job: ExportJob, part: Path) -> None:
    part.replace(path_of(job.id))
    manifest = {
        "rows": job.rows,
        "size": job.size,
        "sha256": job.sha256,
        "policy_version": job.policy_version,
        "is_cut": job.is_cut,
    }
    with one_commit("export"):
        if _may_hold_what_is_gone(job):
            _mine(job).update(state=State.PENDING, claimed_at=None, attempts=job.attempts - 1)
        elif _mine(job).update(state=State.READY, expires_at=Now() + KEPT_FOR, **manifest):
            record("export.made", SYSTEM, job, **manifest)


def _may_hold_what_is_gone(job: ExportJob) -> bool:
    """True if something of the project was deleted since the job began, or so shortly before that it read it still."""
    list(Project.objects.select_for_update(no_key=True).filter(id=job.project_id))
    if job.claimed_at is None:
        return True  # a deletion took the claim away
    began = job.claimed_at - dt.timedelta(seconds=DELETION_SECONDS)
    return Run.everything.filter(project_id=job.project_id, deleted_at__gte=began).exists()


def _mine(job: ExportJob) -> QuerySet[ExportJob]:
    """The row, if nobody else has taken it meanwhile and no deletion has asked to begin anew."""
    return ExportJob.objects.filter(id=job.id, state=State.WORKING, claimed_at=job.claimed_at)


def _expire() -> None:
    for job in ExportJob.objects.filter(state=State.READY, expires_at__lt=Now())[:500]:
        with one_commit("export"):
            if ExportJob.objects.filter(id=job.id, state=State.READY).update(
                state=State.EXPIRED, link_digest=""
            ):
                record("export.expired", SYSTEM, job)


def _sweep_files() -> None:
    if not folder().is_dir():
        return
    working, ready = (
        {str(job) for job in _in_state(state)} for state in (State.WORKING, State.READY)
    )
    for file in folder().iterdir():
        job = file.name.partition(".")[0]
        if job not in working and (job not in ready or file.suffix == ".part"):
            file.unlink(missing_ok=True)


def _in_state(state: str) -> Iterable[uuid.UUID]:
    return ExportJob.objects.filter(state=state).values_list("id", flat=True)
