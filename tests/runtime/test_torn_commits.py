"""The connection breaks while a commit is on its way: the worker finds out what became of it, and writes it once."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import OperationalError, connection

from runtime_core import sql, transitions
from runtime_core.errors import Fenced
from runtime_core.models import Checkpoint, Run
from runtime_core.transitions import NewEvent, Seen, StepCommit
from tests.runtime.tools import effects
from tests.runtime.world import World, call, calls, drive, events, expire_lease, fresh, together
from traces.models.audit import AuditEntry

pytestmark = pytest.mark.faults


class Tear:
    """Breaks the connection at the n-th write of a kind, before or after the server has committed it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str, *, committed: bool, at: int = 0):
        self.real = getattr(transitions, name)
        self.committed = committed
        self.left = at
        self.torn = 0
        monkeypatch.setattr(transitions, name, self)

    def __call__(self, *args: Any) -> Any:
        if self.torn or self._is_other(args):
            return self.real(*args)
        if self.left:
            self.left -= 1
            return self.real(*args)
        self.torn += 1
        if self.committed:
            self.real(*args)
        connection.close()
        raise OperationalError("server closed the connection unexpectedly")

    def _is_other(self, args: tuple[Any, ...]) -> bool:
        return isinstance(args[0], str) and args[0] != sql.APPEND_EVENTS


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("at", range(4))
def test_a_torn_step_is_there_once(
    world: World, monkeypatch: pytest.MonkeyPatch, committed: bool, at: int
) -> None:
    turns = [{"calls": [call("note", text="n"), call("charge", amount=1)]}, {"text": "ok"}]
    run = world.start(turns)
    tear = Tear(monkeypatch, "_commit", committed=committed, at=at)
    run = drive(run)

    assert run.status == "completed"
    assert tear.torn == 1
    assert len(effects()) == 2
    assert [c.attempts for c in calls(run)] == [1, 1]
    kinds = [e.type for e in events(run)]
    assert kinds.count("done") == 1 and kinds.count("tool_call_result") == 2
    assert Checkpoint.objects.filter(run=run).count() == kinds.count("checkpoint")
    assert AuditEntry.objects.filter(action="run.ended", object_id=str(run.id)).count() == 1


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("told_meanwhile", [True, False])
def test_a_torn_append_is_there_once_whoever_else_told_something(
    world: World, monkeypatch: pytest.MonkeyPatch, committed: bool, told_meanwhile: bool
) -> None:
    run, claim, seen = claimed(world)
    tear = Tear(monkeypatch, "_one_planned", committed=committed)
    if told_meanwhile:
        real = tear.real

        def with_others(*args: Any) -> Any:
            other = [NewEvent("progress", {"message": "another"})]
            row = real(*args)
            together(lambda: transitions.tell(run.id, other))
            return row

        tear.real = with_others if committed else real
        if not committed:
            together(
                lambda: transitions.tell(run.id, [NewEvent("progress", {"message": "another"})])
            )

    ours = [NewEvent("progress", {"message": "first"}), NewEvent("progress", {"message": "second"})]
    seen = transitions.append(claim, seen, ours)

    assert tear.torn == 1
    said = [e.data["message"] for e in events(run, "progress")]
    assert [m for m in said if m != "another"] == ["first", "second"]
    assert seen.last_seq == fresh(run).last_seq == len(events(run))


def test_a_torn_write_of_a_worker_that_lost_the_run_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, claim, seen = claimed(world)
    expire_lease(run)
    Tear(monkeypatch, "_commit", committed=False)
    with pytest.raises(Fenced):
        transitions.commit_step(claim, seen, StepCommit(next_step=1))


def test_text_that_a_crash_of_the_server_took_is_not_continued(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, claim, seen = claimed(world)
    ahead = Seen(seen.version, seen.last_seq + 3, False, False)  # what was acknowledged and is gone
    Tear(monkeypatch, "_one_planned", committed=False)
    with pytest.raises(Fenced):
        transitions.append(
            claim, ahead, [NewEvent("text_delta", {"step": 0, "offset": 9, "text": "x"})]
        )
    assert len(events(run)) == seen.last_seq


def claimed(world: World) -> tuple[Run, Any, Seen]:
    run = world.start([{"text": "x"}])
    taken = transitions.claim("me", run.id)
    assert taken
    return run, taken[0], Seen(fresh(run).version, taken[1], False, False)
