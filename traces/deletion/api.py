"""Deletions over HTTP: how far one is. Asking for one is a DELETE of the run or thread itself."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import HttpRequest
from ninja import Router

from runtime_core.access import Can
from runtime_core.api.auth import caller
from runtime_core.api.schemas import DeletionOut
from runtime_core.errors import NotFound
from traces.deletion.requests import as_json
from traces.models import DeletionRequest

router = Router(tags=["deletions"])


@router.get("/deletions/{uuid:deletion_id}", response=DeletionOut, summary="Look at a deletion")
def detail(request: HttpRequest, deletion_id: uuid.UUID) -> dict[str, Any]:
    """How far it is, with the rows deleted of each table; for who manages the project."""
    who = caller(request)
    found = DeletionRequest.objects.filter(id=deletion_id).first()
    if found is None or (found.project_id is None and not who.user.is_superuser):
        raise NotFound("There is no such deletion, or you may not see it.")
    if found.project_id is not None:
        who.require(found.project_id, Can.MANAGE)
    return as_json(found)
