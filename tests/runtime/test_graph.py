"""Graphs: nodes of plain code, as durable as a model's steps, at one commit each."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from evals.shop import demo_orders
from evals.shop.models import Refund
from runtime_core import commands, ports
from runtime_core.checkpoints import graph_state
from runtime_core.checkpoints.graph_state import GraphState
from runtime_core.errors import IllegalTransition, InvalidInput, StateUnusable
from runtime_core.models import Checkpoint, Message, Run, Step
from tests.runtime.test_cost import transactions
from tests.runtime.tools import effects, effects_file
from tests.runtime.world import (
    World,
    actor,
    calls,
    decide_on,
    drive,
    events,
    expire_lease,
    fresh,
    open_interrupts,
    statuses,
    texts,
)
from tests.runtime.zygote import Zygote


def start(world: World, graph: str, input: str, **more: object) -> Run:
    """A run of that graph."""
    definition = {"engine": "graph", "graph": graph, **more}
    run = world.start(
        [{"text": "unused"}], input=input, name=f"g-{graph}-{input}"[:50], **definition
    )
    effects_file().with_name("nodes.txt").unlink(missing_ok=True)
    return run


def nodes_run() -> list[str]:
    path = effects_file().with_name("nodes.txt")
    return path.read_text().splitlines() if path.exists() else []


def test_a_node_is_one_commit_and_its_bytes_do_not_grow(world: World) -> None:
    run = start(world, "count", "40", limits={"max_steps": 100})
    ports.spans().flush()

    before = transactions()
    done = drive(run)

    # Beside the nodes: the claim, and batches of spans.
    assert transactions() - before <= 42 + 5
    assert (done.status, done.output, done.steps) == ("completed", "counted to 40", 42)
    assert texts(run)[done.next_step - 1] == "counted to 40"
    assert [e.data["index"] for e in events(run, "step_start")] == list(range(42))
    assert {row.kind for row in Step.objects.filter(run=run)} == {"node"}
    sizes = [len(str(row.state)) for row in Checkpoint.objects.filter(run=run).order_by("step")]
    assert max(sizes[30:]) < 1.2 * max(sizes[1:10])
    assert Message.objects.filter(run=run).count() == 2, "what was asked, and the answer"


def test_a_graph_calls_tools_asks_people_and_branches(world: World) -> None:
    door = drive(start(world, "errand", "door"))
    [question] = open_interrupts(door)
    assert (door.status, question.kind) == ("interrupted", "question")
    decide_on(question, world.bob, "respond", response="yes")
    assert drive(door).output == "door none yes"
    assert [call.tool for call in calls(door)] == ["look", "ask_human"]

    paid, refused = (drive(start(world, "errand", where)) for where in ("window", "roof"))
    assert effects() == [], "nobody has agreed yet"
    decide_on(open_interrupts(paid)[0], world.bob)
    decide_on(open_interrupts(refused)[0], world.bob, "reject", reason="too much")
    assert (drive(paid).output, drive(refused).output) == ("pay succeeded", "pay rejected")
    assert effects() == ["pay"]
    assert ("interrupted", "pending", "decided") in statuses(paid)


@pytest.mark.parametrize(
    ("input", "code", "says"),
    [
        ("raise", "node_failed", "The node choose raised ValueError"),
        ("type", "node_failed", "returned a dict"),
        ("json", "node_failed", "state.order.items[0].price: decimal.Decimal"),
        ("nan", "node_failed", "state.rate: nan"),
        ("large", "node_failed", "bytes; at most"),
        ("args", "node_failed", "args.amount: decimal.Decimal"),
        ("nowhere", "unknown_node", "has no node 'nowhere'; there are: choose, told"),
    ],
)
def test_a_bad_node_stops_the_run_and_says_what_is_wrong(
    world: World, input: str, code: str, says: str
) -> None:
    run = drive(start(world, "bad", input))

    assert run.status == "failed"
    assert (run.error["code"], says in run.error["message"]) == (code, True), run.error
    assert "AKIAQ3EGRT7W2ZL5XKPM" not in str(run.error) + str([e.data for e in events(run)])
    if code != "unknown_node":
        commands.retry_run(actor(world.alice), run)
        assert drive(run).attempt == 2, "a retry runs the same node again"


def test_a_node_can_neither_change_the_state_in_place_nor_reach_other_tools(world: World) -> None:
    assert drive(start(world, "bad", "mutate")).output == "mutate none"
    run = drive(start(world, "bad", "no_tool"))
    assert (run.output, calls(run)[0].error_code) == ("no_tool failed", "unknown_tool")


def test_an_endless_graph_is_paused_by_its_budget(world: World) -> None:
    run = drive(start(world, "bad", "again", limits={"max_steps": 5}))
    assert (run.status, run.steps, run.error["code"]) == ("paused", 5, "budget_spent")


def test_a_kill_at_any_point_of_a_graph_loses_no_node_and_repeats_no_call(
    world: World, zygote: Zygote
) -> None:
    points = zygote.drive(start(world, "count", "3").id)["points"]
    for at in range(len(points)):
        run = start(world, "count", "3")
        assert zygote.drive(run.id, at)["signal"] == 9
        expire_lease(run)
        while fresh(run).status == "pending":
            zygote.drive(run.id)
        done = fresh(run)
        assert (done.status, done.output) == ("completed", "counted to 3"), points[at]
        assert len(events(run)) == done.last_seq
        # Only the node that was at work when it was killed has run twice.
        again = len(nodes_run()) - len(set(nodes_run()))
        assert again <= 1 and done.steps == 5, (points[at], nodes_run())


def test_a_worker_that_lost_a_graph_writes_no_node(world: World, zygote: Zygote) -> None:
    run = start(world, "count", "3")
    asleep = zygote.drive(run.id, 3, "stop", only="node.before")["stopped"]
    expire_lease(run)
    assert drive(run).output == "counted to 3"
    before = fresh(run).last_seq

    zygote.wait(asleep)

    assert fresh(run).last_seq == before
    assert [row.index for row in Step.objects.filter(run=run)] == sorted(
        {row.index for row in Step.objects.filter(run=run)}
    )


def test_a_state_that_was_tampered_with_stops_the_run(world: World) -> None:
    run = drive(start(world, "count", "9", limits={"max_steps": 5}))
    row = Checkpoint.objects.filter(run=run, reason="node").first()
    assert row is not None
    row.delete()
    commands.resume_run(actor(world.alice), run, {"max_steps": 50})

    assert (drive(run).status, fresh(run).error["code"]) == ("paused", "state_unusable")


def test_the_state_folds_from_its_last_whole(world: World) -> None:
    state, rows = GraphState(values={"input": "x"}), []
    for step in range(300):
        saved = state.after(step, "n", "", {"n": step, "pad": "y" * (step % 90)})
        state = saved.state
        rows = [saved.stored] if saved.reason == graph_state.WHOLE else [*rows, saved.stored]
        assert len(rows) <= 51
        folded = graph_state.fold(rows, GraphState())
        assert (folded.values, folded.node, folded.nth) == (state.values, "n", state.nth)
    assert state.values["input"] == "x"
    with pytest.raises(StateUnusable):
        graph_state.fold([*rows[:1], *rows[2:]], GraphState())


@pytest.mark.parametrize(
    ("definition", "says"),
    [
        ({"engine": "graph"}, "graph: name the graph"),
        ({"engine": "graph", "graph": "none"}, "'none' is unknown; there are:"),
        ({"engine": "graph", "graph": "no_start"}, "has no start"),
        ({"engine": "react", "graph": "count"}, "only the engine"),
        ({"engine": "coder"}, "there are: graph, react"),
    ],
)
def test_an_agent_with_a_graph_that_cannot_run_is_refused(
    world: World, definition: dict[str, str], says: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        world.agent([{"text": "unused"}], name="g", **definition)
    assert says in refused.value.message


def test_the_demos_graph_refunds_what_a_person_agrees_to(world: World) -> None:
    demo_orders.seed()
    [definition] = yaml.safe_load(Path("evals/graphs.yaml").read_text())["agents"]
    commands.apply_agent(actor(world.alice), world.project, definition)
    run = drive(world.run_of("refund-by-rule", input="Refund 20.00 of my order, please."))
    decide_on(open_interrupts(run)[0], world.bob, "respond", response="It was A-1001.")
    drive(run)
    [refund] = open_interrupts(run)
    assert refund.detail["args"] == {
        "order_id": "A-1001",
        "amount": "20.00",
        "reason": "Refund by rule.",
    }
    decide_on(refund, world.bob)

    assert drive(run).output == "Refunded 20.00."
    assert Refund.objects.get(order__number="A-1001").amount == Decimal("20.00")


def test_a_graph_is_not_forked_since_it_would_begin_again(world: World) -> None:
    run = drive(start(world, "count", "2"))
    point = Checkpoint.objects.filter(run=run).first()
    assert point is not None
    with pytest.raises(IllegalTransition):
        commands.fork_run(actor(world.alice), run, point.id)
    assert Run.objects.filter(parent=run).count() == 0
