"""The main job at its core: a run works, asks, is decided on, and goes on to its end."""

from __future__ import annotations

from tests.runtime.tools import effects
from tests.runtime.world import (
    World,
    call,
    calls,
    decide_on,
    drive,
    events,
    open_interrupts,
    statuses,
    texts,
)

PAY = [
    {"text": "I will look first.", "calls": [call("look", at="book")]},
    {"text": "Now I append.", "calls": [call("ledger_append", text="pay-1")]},
    {"text": "All done."},
]


def test_a_run_asks_and_goes_on_after_approval(world: World) -> None:
    run = drive(world.start(PAY))

    assert run.status == "interrupted"
    assert effects() == []
    [interrupt] = open_interrupts(run)
    assert (interrupt.kind, interrupt.risk, interrupt.version) == ("tool_approval", "high", 1)

    decide_on(interrupt, world.bob)
    run = drive(run)

    assert run.status == "completed"
    assert run.output == "All done."
    assert effects() == ["pay-1"]
    assert [c.status for c in calls(run)] == ["succeeded", "succeeded"]
    assert statuses(run)[-1] == ("running", "completed", "finished")
    assert events(run)[-1].type == "done"
    assert list(texts(run).values()) == ["I will look first.", "Now I append.", "All done."]


def test_a_rejection_is_told_to_the_model_and_nothing_runs(world: World) -> None:
    run = drive(world.start(PAY))
    decide_on(open_interrupts(run)[0], world.bob, "reject", reason="not today")
    run = drive(run)

    assert run.status == "completed"
    assert effects() == []
    assert calls(run)[1].status == "rejected"
    assert any("not today" in message.body for message in run.messages.all())


def test_an_edit_runs_with_the_edited_arguments_and_tells_the_model(world: World) -> None:
    run = drive(world.start(PAY))
    decide_on(open_interrupts(run)[0], world.bob, "edit", args={"text": "pay-2"})
    run = drive(run)

    assert run.status == "completed"
    assert effects() == ["pay-2"]
    start = events(run, "tool_call_start")[-1]
    assert start.data["args"] == {"text": "pay-2"}


def test_an_answer_replaces_the_call(world: World) -> None:
    run = drive(world.start(PAY))
    decide_on(open_interrupts(run)[0], world.bob, "respond", response="It is paid already.")
    run = drive(run)

    assert run.status == "completed"
    assert effects() == []
    assert calls(run)[1].status == "skipped"


def test_parallel_calls_run_where_allowed_and_ask_where_not(world: World) -> None:
    run = drive(
        world.start(
            [
                {
                    "calls": [
                        call("look", at="a"),
                        call("ledger_append", text="1"),
                        call("ledger_append", text="2"),
                        call("note", text="n"),
                    ]
                },
                {"text": "end"},
            ]
        )
    )

    assert run.status == "interrupted"
    assert [c.status for c in calls(run)] == [
        "succeeded",
        "awaiting_approval",
        "awaiting_approval",
        "succeeded",
    ]
    first, second = open_interrupts(run)
    decide_on(first, world.bob)
    assert drive_is_refused(run)
    decide_on(second, world.bob, "reject", reason="no")
    run = drive(run)
    assert run.status == "completed"
    assert [e for e in effects() if ":" not in e] == ["1"]


def drive_is_refused(run: object) -> bool:
    from runtime_core.loop.drive import advance

    return not advance("test", run.id)  # type: ignore[attr-defined]


def test_a_question_is_answered_by_a_person(world: World) -> None:
    run = drive(
        world.start([{"calls": [call("ask_human", question="Which region?")]}, {"text": "ok"}])
    )
    [interrupt] = open_interrupts(run)
    assert interrupt.kind == "question"
    decide_on(interrupt, world.bob, "respond", response="eu-west")
    run = drive(run)
    assert run.status == "completed"
    assert calls(run)[0].result_text == "eu-west"
