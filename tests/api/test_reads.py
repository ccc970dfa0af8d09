"""What lists and details hold."""

from __future__ import annotations

from runtime_core import transitions
from runtime_core.transitions import NewEvent
from tests.api.room import Api, Room, checkpoint, interrupt, tool_call

RUN_KEYS = {
    "id",
    "thread_id",
    "agent",
    "agent_version",
    "status",
    "version",
    "attempt",
    "steps",
    "usage",
    "limits",
    "error",
    "created_at",
    "started_at",
    "ended_at",
    "output",
    "interrupts",
    "parent",
    "children",
    "undoes",
    "priority",
    "queue",
}
CALL_KEYS = {
    "id",
    "call_id",
    "tool",
    "args",
    "effect",
    "risk",
    "status",
    "attempts",
    "idempotency_key",
    "interrupt_id",
    "undoes",
    "result",
}


def test_a_run_has_exactly_the_members_of_the_contract(room: Room, ana: Api) -> None:
    run = room.run("interrupted")
    asked = interrupt(tool_call(run))

    status, body = ana.get(f"/runs/{run.id}")

    assert status == 200
    assert set(body) == RUN_KEYS
    assert (body["agent"], body["agent_version"]) == ("fixer", 1)
    assert body["interrupts"] == [str(asked.id)]
    assert body["limits"] == {
        "max_steps": 50,
        "max_tokens": 1000,
        "max_cost_usd": 5.0,
        "deadline_s": 60,
    }


def test_pages_of_runs_are_complete_and_stable_while_runs_are_added(room: Room, ana: Api) -> None:
    runs = [str(room.run().id) for _ in range(7)]
    seen, cursor = [], None

    while True:
        query = {"limit": 3, **({"cursor": cursor} if cursor else {})}
        _, body = ana.get("/runs", **query)
        seen += [run["id"] for run in body["items"]]
        cursor = body["next_cursor"]
        if cursor is None:
            break
        room.run()

    assert seen == runs[::-1]


def test_runs_are_found_by_status_agent_and_thread(room: Room, ana: Api) -> None:
    waiting, paused = room.run("waiting"), room.run("paused")

    def found(**query: str) -> list[str]:
        return [run["id"] for run in ana.get("/runs", **query)[1]["items"]]

    assert found(status="paused") == [str(paused.id)]
    assert found(thread_id=str(waiting.thread_id)) == [str(waiting.id)]
    assert found(agent="nobody") == []
    assert len(found(status="", agent="fixer", thread_id="")) == 2


def test_tool_calls_show_the_redacted_copies_in_order(room: Room, ana: Api) -> None:
    run = room.run("interrupted")
    second, first = tool_call(run, 1), tool_call(run, 0)
    asked = interrupt(second)

    _, body = ana.get(f"/runs/{run.id}/tool-calls")

    assert [call["id"] for call in body["items"]] == [str(first.id), str(second.id)]
    assert set(body["items"][0]) == CALL_KEYS
    assert [call["interrupt_id"] for call in body["items"]] == [None, str(asked.id)]
    assert "RAW" not in str(body)


def test_tool_calls_page(room: Room, ana: Api) -> None:
    run = room.run()
    made = [str(tool_call(run, n).id) for n in range(5)]
    _, first = ana.get(f"/runs/{run.id}/tool-calls", limit=3)

    _, second = ana.get(f"/runs/{run.id}/tool-calls", limit=3, cursor=first["next_cursor"])

    assert [call["id"] for call in first["items"] + second["items"]] == made
    assert second["next_cursor"] is None


def test_checkpoints_keep_their_state_inside(room: Room, ana: Api) -> None:
    run = room.run()
    made = [str(checkpoint(run, n).id) for n in (1, 2)]

    _, body = ana.get(f"/runs/{run.id}/checkpoints")

    assert [row["id"] for row in body["items"]] == made
    assert "state" not in body["items"][0]


def test_events_page_by_sequence(room: Room, ana: Api) -> None:
    run = room.run()
    transitions.tell(run.id, [NewEvent("progress", {"message": str(n)}) for n in range(5)])

    _, body = ana.get(f"/runs/{run.id}/events", after=1, limit=2)
    _, rest = ana.get(f"/runs/{run.id}/events", after=body["next_after"])
    _, none = ana.get(f"/runs/{run.id}/events", after=rest["next_after"])

    assert [event["seq"] for event in body["events"]] == [2, 3]
    assert set(body["events"][0]) == {"seq", "type", "ts", "step", "data"}
    assert [event["data"]["message"] for event in rest["events"]] == ["3", "4"]
    assert none == {"events": [], "next_after": 5}


def test_provenance_names_what_ran(room: Room, ana: Api) -> None:
    run = room.run()
    tool_call(run)

    _, body = ana.get(f"/runs/{run.id}/provenance")

    assert (body["agent"], body["agent_version"], body["agent_digest"]) == ("fixer", 1, "d" * 64)
    assert body["called"] == [{"tool": "write_file", "schema_digest": "s" * 64}]


def test_agents_and_tools_are_listed(room: Room, ana: Api) -> None:
    _, agents = ana.get("/agents")
    _, tools = ana.get("/tools")

    assert [(row["name"], row["version"]) for row in agents["items"]] == [("fixer", 1)]
    read = next(tool for tool in tools["items"] if tool["name"] == "read_file")
    assert (read["risk"], read["effect"]) == ("low", "read")
    assert read["schema"]["type"] == "object"


def test_no_cache_keeps_an_answer(room: Room, ana: Api) -> None:
    run = room.run()

    for path in (f"/runs/{run.id}", "/interrupts", "/nothing"):
        answer = ana.client.get(f"/api/v1{path}", headers=ana.headers)
        assert answer["Cache-Control"] == "no-store"
