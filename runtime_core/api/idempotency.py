"""`Idempotency-Key`: the repeat of a write gets the answer of the first, and nothing is done twice.

1. The key's row is inserted in the transaction that does the work, so the two commit together or not at all: after a
   failure or a crash the key is free and the repeat does the work.
2. A repeat that comes while the first is at work waits at the unique index until the first has committed.
3. Only answers of work that was done are kept; a refusal is decided anew.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse

from runtime_core.api import json_body
from runtime_core.api.auth import caller
from runtime_core.errors import IdempotencyMismatch, InvalidInput
from runtime_core.models import IdempotencyKey
from runtime_core.sanitize import canonical
from runtime_core.transactions import one_commit

HEADER = "Idempotency-Key"
_KEY = re.compile(r"[\x21-\x7e]{1,200}")
_INSERT = """
    INSERT INTO idempotency_key (user_id, key, request_digest, created_at)
    VALUES (%s, %s, %s, now()) ON CONFLICT (user_id, key) DO NOTHING RETURNING id
"""

Answer = tuple[int, dict[str, Any]]


def once(request: HttpRequest, act: Callable[[], Answer]) -> HttpResponse:
    """The answer of `act`, called at most once for the request's key; every time without one.

    `act` runs in a transaction and must leave what happens outside the database to on_commit. Check rights before.
    Raises IdempotencyMismatch if the key was used for another request.
    """
    key = request.headers.get(HEADER)
    if key is None:
        return _json(*act())
    if not _KEY.fullmatch(key):
        raise InvalidInput(f"{HEADER} must be 1 to 200 visible ASCII characters.", field=HEADER)
    user_id, digest = caller(request).user.pk, _digest(request)
    key = hashlib.sha256(key.encode()).hexdigest()  # whatever a client sends there is not kept
    with one_commit("once"):
        row_id = _insert(user_id, key, digest)
        if row_id is not None:
            status, body = act()
            IdempotencyKey.objects.filter(pk=row_id).update(status=status, response=body)
            return _json(status, body)
    return _replayed(user_id, key, digest)


def _replayed(user_id: int, key: str, digest: str) -> HttpResponse:
    row = IdempotencyKey.objects.get(user_id=user_id, key=key)
    if row.request_digest != digest:
        raise IdempotencyMismatch()
    response = _json(row.status or 200, row.response)
    response["Idempotent-Replayed"] = "true"
    return response


def _insert(user_id: int, key: str, digest: str) -> int | None:
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, [user_id, key, digest])
        row = cursor.fetchone()
        return row[0] if row else None


def _digest(request: HttpRequest) -> str:
    body = canonical(json_body.parse(request.body)) if request.body else ""
    # What a token is bound to is part of the request: its answer is of that project alone.
    within = caller(request).token_project or ""
    text = f"{request.method}\n{request.get_full_path()}\n{within}\n{body}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _json(status: int, body: Any) -> HttpResponse:
    return JsonResponse(body, DjangoJSONEncoder, safe=False, status=status)
