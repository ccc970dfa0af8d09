"""What is kept how long: defaults, policies, holds, what a dry run says, and what a second sweep finds."""

from __future__ import annotations

import datetime as dt
import io
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.db import connection

from runtime_core import clock, ports
from runtime_core.events import read
from runtime_core.events.types import problems
from runtime_core.models import Interrupt, Message, Run, Thread
from runtime_core.values import SYSTEM, Audit
from tests.pages.world import World
from tests.retention.conftest import ALL, NOTHING, left, old, policy
from traces import holds
from traces.audit import anchors
from traces.audit.sealer import seal
from traces.audit.verify import verify
from traces.models import AuditEntry, DataClass, LegalHold, RetentionTotal
from traces.retention import policy as policies
from traces.retention import sweep as sweeping


def manage(*words: str) -> str:
    out = io.StringIO()
    call_command(*words, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def sweep(dry_run: bool = False) -> dict[str, int]:
    return sweeping.sweep(dry_run, lambda *_: None)


def hold(kind: str, object_id: Any) -> LegalHold:
    return LegalHold.objects.create(kind=kind, object_id=str(object_id), reason="A lawsuit")


def test_each_class_goes_in_its_time_and_a_dry_run_counts_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "BATCH", 1)
    young, week, month, quarter, year = (old(world, days) for days in (1, 5, 40, 100, 200))
    going = world.run("running")
    world.event(going, "text_delta", {"step": 0, "offset": 0, "text": "x"}, 0)
    world.event(going, "text_delta", {"step": 0, "offset": 1, "text": "y"}, 0)

    told = manage("retention", "run", "--dry-run")
    assert [left(run) for run in (young, week, month, quarter, year)] == [ALL] * 5
    counted = sweep(dry_run=True)
    gone = sweep()
    again = sweep()

    assert counted == {
        "events": 12, "span_payloads": 3, "spans": 2, "checkpoints": 3, "run_state": 1,
        "audit_payloads": 0,
    }  # fmt: skip
    assert gone == counted
    assert set(again.values()) == {0}, "the second sweep has nothing to do"
    assert "Spans: 2 would go (kept 90 days" in told
    assert left(young) == ALL
    assert left(week) == {**ALL, "events": 4}
    assert left(month) == {**ALL, "events": 4, "payloads": 0, "checkpoints": 2}
    assert left(quarter) == {**ALL, "events": 4, "payloads": 0, "spans": 0, "checkpoints": 2}
    assert left(year) == NOTHING
    assert going.events.count() == 2
    kept = [run.id for run in (young, week, month, quarter)]
    assert set(Message.objects.values_list("run_id", flat=True)) == set(kept)
    assert set(Interrupt.objects.values_list("run_id", flat=True)) == set(kept)
    assert AuditEntry.objects.filter(action="retention.run").count() == 1
    assert AuditEntry.objects.get(action="retention.thread").object_id == str(year.thread_id)
    assert RetentionTotal.objects.get(data_class="spans").rows == 2


def test_folded_events_tell_the_same_text_and_of_every_number(world: World) -> None:
    run = old(world, 5)
    before = "".join(f.data["text"] for f in read.after(run.id, 0, 100) if f.type == "text_delta")
    sweep()
    frames = read.after(run.id, 0, 100)

    assert [frame.seq for frame in frames] == [1, 4, 6, 7]
    expected = 1
    for frame in frames:
        assert frame.data.get("since", frame.seq) == expected
        assert problems(frame.type, frame.data) == []
        expected = frame.seq + 1
    text, progress = frames[1].data, frames[2].data
    assert text == {"step": 0, "offset": 0, "text": before, "since": 2}
    assert progress == {"message": "all", "since": 5}
    # Whoever had read half of a row gets its whole, from its beginning.
    assert read.after(run.id, 3, 1)[0].data["text"] == before


def test_the_most_specific_policy_wins_and_of_equal_ones_the_shorter(world: World) -> None:
    other = world.make_agent("other")
    policy("spans", 10)
    policy("spans", 20)
    policy("spans", None, scope="project", project=world.project)
    policy("spans", 30, scope="agent", agent=other)
    policy("spans", 50, scope="agent", agent=other)

    found = policies.kept(DataClass.SPANS)
    assert (found.days, found.agents) == (10, {str(other.id): 30})
    assert found.projects == {str(world.project.id): policies.FOR_EVER}
    forever, short = old(world, 170), old(world, 40, agent=other)
    sweep()
    assert left(forever)["spans"] == 1
    assert left(short)["spans"] == 0
    # What changes holds for what is there.
    policy("spans", 100, scope="project", project=world.project)
    sweep()
    assert left(forever)["spans"] == 0


@pytest.mark.parametrize("kind", ["run", "thread", "user", "project"])
def test_a_hold_beats_all_and_reaches_whoever_works_for_it(world: World, kind: str) -> None:
    run = old(world, 200)
    child = old(world, 200, parent=run)
    named = {
        "run": run.id, "thread": run.thread_id, "user": run.created_by_id, "project": run.project_id,
    }  # fmt: skip
    held = hold(kind, named[kind])
    hold("user", 10**6)
    for data_class in DataClass:
        policy(data_class, 0)

    assert set(sweep(dry_run=True).values()) == {0}
    assert set(sweep().values()) == {0}
    assert [left(run), left(child)] == [ALL, ALL]
    assert holds.held_among([run.id, child.id]) == {run.id, child.id}

    LegalHold.objects.filter(pk=held.pk).update(released_at="2026-01-01T00:00Z")
    sweep()
    assert [left(run), left(child)] == [NOTHING, NOTHING]


def test_a_thread_goes_as_a_whole_or_not_at_all(world: World) -> None:
    long_ago = old(world, 300)
    recent = world.run("completed", thread=long_ago.thread)
    taken_back = old(world, 300)
    world.run("completed", undoes=taken_back)
    assert sweep()["run_state"] == 0
    assert Run.objects.count() == 4
    Run.objects.filter(id=recent.id).update(ended_at=long_ago.ended_at)
    assert sweep()["run_state"] == 1
    assert not Thread.objects.filter(id=long_ago.thread_id).exists()


def test_the_newest_checkpoint_and_a_graphs_state_stay(world: World) -> None:
    run = old(world, 30)
    run.checkpoints.filter(step=1).update(reason="state")
    sweep()
    assert sorted(run.checkpoints.values_list("step", flat=True)) == [0, 1, 2]
    run.checkpoints.filter(step=1).update(reason="round")
    sweep()
    assert sorted(run.checkpoints.values_list("step", flat=True)) == [0, 2]


@pytest.mark.parametrize(
    "fields",
    [
        {"scope": "project"},
        {"scope": "agent"},
        {"days": 40_000},
        {"data_class": "everything"},
        {"days": -1},
        {"data_class": "audit_payloads", "scope": "agent"},
    ],
)
def test_a_policy_of_nothing_is_refused(world: World, fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        policy(**{"data_class": "spans", "days": 1, **fields})


def test_details_of_old_audit_entries_go_with_a_record_and_the_chain_stays_whole(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "now", lambda: dt.datetime.now(dt.UTC) - dt.timedelta(days=400))  # noqa: TID251
    run, held = world.run("completed"), world.run("completed")
    for told in (run, held):
        entry = Audit(
            "run.started", SYSTEM, "run", str(told.id), told.project_id, told.id, {"a": 1}
        )
        ports.audit().record([entry])
    hold("run", held.id)
    monkeypatch.undo()
    monkeypatch.setattr(anchors, "anchor_file", lambda: tmp_path / "anchors.jsonl")
    ports.audit().record(
        [Audit("run.cancelled", SYSTEM, "run", str(run.id), run.project_id, run.id)]
    )
    seal()

    assert sweep(dry_run=True)["audit_payloads"] == 1
    assert sweep()["audit_payloads"] == 1
    assert sweep()["audit_payloads"] == 0
    old_one, held_one, young = AuditEntry.objects.exclude(seq=None).order_by("seq")[:3]
    assert [hasattr(e, "payload") for e in (old_one, held_one, young)] == [False, True, True]
    seal()
    assert [line for line in verify().tampered if "anchor" not in line] == []


def test_what_goes_stays_told_in_numbers_alone(world: World) -> None:
    run = old(world, 200, title="A title that nobody needs any more")
    sweep()
    with connection.cursor() as cursor:
        cursor.execute("SELECT string_agg(body, ' ') FROM audit_payload")
        text = cursor.fetchone()[0]
    assert run.title not in text
    assert '"run_state":1' in text
