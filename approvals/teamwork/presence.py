"""Who looks at or edits which request right now, in Valkey: a courtesy that keeps nobody from anything
and that ends by itself. Without Valkey nobody is seen.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from approvals import queries
from runtime_core import broker, clock
from runtime_core.errors import NotFound
from runtime_core.events.publish import announce

# `idle` is said by a page that had no key, click or scroll for ten minutes.
MODES = ("viewing", "editing", "idle")
# A page says every ten seconds that it is still there.
LIVES_S = 30
SHOWN_MAX = 200
PROJECTS_MAX = 50


@dataclass(frozen=True, slots=True)
class Place:
    """What somebody has before them."""

    project_id: uuid.UUID
    interrupt_id: uuid.UUID
    mode: str


def place_of(user: Any, said: str, token_project: uuid.UUID | None = None) -> Place | None:
    """The place that a page's message names, if its person may see it; nothing for any other text."""
    with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError, NotFound):
        message = json.loads(said)
        if message["type"] == "looking" and message["mode"] in MODES:
            interrupt = queries.get(user, uuid.UUID(message["id"]), token_project)
            return Place(interrupt.project_id, interrupt.id, message["mode"])
    return None


def move(user: Any, before: Place | None, now: Place | None) -> None:
    """Note where `user` is; who watches the project is told if that is another place than before."""
    if before is not None and before != now:
        broker.tell("presence", [("ZREM", _key(before.project_id), _member(user, before))])
        _tell(before)
    if now is None:
        return
    key, at = _key(now.project_id), clock.now().timestamp()
    commands: list[broker.Command] = [
        ("ZREMRANGEBYSCORE", key, "-inf", at),
        ("ZADD", key, at + LIVES_S, _member(user, now)),
        ("EXPIRE", key, 2 * LIVES_S),
    ]
    if broker.tell("presence", commands) and before != now:
        _tell(now)


def others(user: Any, projects: Collection[uuid.UUID]) -> list[dict[str, str]]:
    """Where all but `user` are in these projects, in a fixed order."""
    at = clock.now().timestamp()
    asked: list[broker.Command] = [
        ("ZRANGEBYSCORE", _key(one), at, "+inf", "LIMIT", 0, SHOWN_MAX)
        for one in sorted(projects)[:PROJECTS_MAX]
    ]
    found = [json.loads(one) for answer in broker.ask("presence", asked) for one in answer]
    seen = {
        (interrupt, name, mode) for interrupt, user_id, name, mode in found if user_id != user.pk
    }
    return [
        {"id": interrupt, "who": name, "mode": mode}
        for interrupt, name, mode in sorted(seen)[:SHOWN_MAX]
    ]


def _tell(place: Place) -> None:
    # A hint names a run, whose listeners must not take this for news: no run has a request's id.
    announce(place.interrupt_id, 0, place.project_id, inbox=True)


def _key(project_id: uuid.UUID) -> str:
    return f"interlock:looking:{project_id}"


def _member(user: Any, place: Place) -> str:
    return json.dumps([str(place.interrupt_id), user.pk, user.get_username(), place.mode])
