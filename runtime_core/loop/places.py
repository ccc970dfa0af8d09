"""Places of quotas for single steps: taken right before a call or a request, given back by the commit of its result.

A run that finds none waits without a worker; whoever gives a place back wakes the one that waited longest.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import structlog
from django.conf import settings
from django.db import Error as DatabaseError

from runtime_core import clock, transitions
from runtime_core.events.publish import announce
from runtime_core.models import Quota, QuotaKind, Run
from runtime_core.states import RunStatus
from runtime_core.transactions import one_commit

if TYPE_CHECKING:
    from runtime_core.loop.work import Work

log = structlog.get_logger(__name__)

KNOWN_SECONDS = 1.0
"""A quota for a tool or model that had none counts from so many seconds on; its later changes count at once."""


class _Limited:
    """What has a quota, read at most once a second by the whole process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names: frozenset[str] = frozenset()
        self._read_at: float | None = None

    def __contains__(self, name: str) -> bool:
        with self._lock:
            if self._read_at is None or clock.monotonic() - self._read_at > KNOWN_SECONDS:
                rows = Quota.objects.filter(kind__in=[QuotaKind.TOOL, QuotaKind.MODEL])
                self._names = frozenset(
                    f"{kind}:{key}" for kind, key in rows.values_list("kind", "key")
                )
                self._read_at = clock.monotonic()
            return name in self._names


limited = _Limited()
_hint: Callable[[uuid.UUID], object] = lambda run_id: None  # noqa: E731


def hint_with(send: Callable[[uuid.UUID], object]) -> None:
    """How to tell workers that a run is due; without it the dispatch tick tells them."""
    global _hint
    _hint = send


def of_tool(name: str) -> str:
    """What a call of this tool may have to wait for."""
    return f"{QuotaKind.TOOL.value}:{name}"


def of_model(work: Work) -> str:
    """What a request of this run may have to wait for: its model's name as its quota has it."""
    named = work.attempt.model or work.definition.get("model")
    name = named or getattr(settings, "INTERLOCK_MODEL", "") or "scripted"
    return f"{QuotaKind.MODEL.value}:{name}"


def taken(work: Work, what: str) -> bool:
    """Take a place for the step that begins now; False where there is a quota and no place is free."""
    if what not in limited:
        return True
    kind, _, name = what.partition(":")
    place, has_quota = transitions.take_place(work.claim, kind, name, work.run.waits_for == what)
    if place is not None:
        work.places.append((place, what))
    return place is not None or not has_quota


def pass_on(what: str) -> bool:
    """Wake the run that has waited longest for a place of this quota; False if none waits."""
    waiting = Run.objects.filter(status=RunStatus.WAITING.value, waits_for=what)
    with one_commit("pass_on"):
        run = (
            waiting.order_by("available_at", "id").select_for_update(skip_locked=True, of=["self"])
        ).first()
        if run is None:
            return False
        seq = transitions.move(run.id, RunStatus.PENDING, "wake")
    announce(run.id, seq, run.project_id, inbox=False)
    _hint(run.id)
    return True


def given_back(freed: Iterable[str]) -> None:
    """Pass on what a commit has just given back. Where that fails, the tick does it."""
    try:
        for what in freed:
            pass_on(what)
    except DatabaseError as error:
        log.warning("places.pass_on", error=type(error).__name__)
