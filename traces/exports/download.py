"""The file of an export as an answer."""

from __future__ import annotations

from django.http import FileResponse

from runtime_core.errors import Expired
from traces.exports.job import path_of
from traces.models import ExportJob


def download(job: ExportJob) -> FileResponse:
    """The file as a download that no browser looks into; Expired if it went just now."""
    try:
        body = path_of(job.id).open("rb")
    except FileNotFoundError:
        raise Expired("The file of this export is gone; ask for a new one.") from None
    return FileResponse(
        body,
        as_attachment=True,
        filename=job.file_name,
        content_type="application/octet-stream",
        headers={"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"},
    )
