"""Graphs for tests: small, and bad in every way that a graph can be."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from runtime_core.engines import Ask, Call, Finish, Next, node
from tests.runtime.tools import effects_file

State = dict[str, Any]


def ran(name: str) -> None:
    """Remember, outside of the database, that a node ran."""
    with effects_file().with_name("nodes.txt").open("a") as file:
        file.write(name + "\n")


@node("count", start=True)
def begin(state: State) -> Next:
    return Next("add", {"n": 0, "until": int(state["input"])})


@node("count")
def add(state: State) -> Next | Finish:
    ran(f"add {state['n']}")
    if state["n"] >= state["until"]:
        return Finish(f"counted to {state['n']}")
    return Next("add", {"n": state["n"] + 1, "last": "x" * 100})


@node("errand", start=True)
def look_first(state: State) -> Call:
    return Call("look", {"at": state["input"]}, then="decide", into="seen")


@node("errand")
def decide(state: State) -> Call | Ask:
    if state["seen"]["value"] == {"seen": "door"}:
        return Ask("Open it?", then="asked", choices=("yes", "no"), set={"way": "door"})
    return Call("ledger_append", {"text": "pay"}, then="done", set={"way": "pay"})


@node("errand")
def asked(state: State) -> Next:
    return Next("done", {"told": state["answer"]["value"], "seen": None})


@node("errand")
def done(state: State) -> Finish:
    result = state.get("result", {"status": "none"})
    return Finish(f"{state['way']} {result['status']} {state.get('told', '')}".strip())


@node("bad", start=True)
def choose(state: State) -> Any:
    match state["input"]:
        case "raise":
            raise ValueError("no such order: AKIAQ3EGRT7W2ZL5XKPM")
        case "type":
            return {"next": "choose"}
        case "json":
            return Next("choose", {"order": {"items": [{"price": Decimal("1.5")}]}})
        case "nan":
            return Next("choose", {"rate": float("nan")})
        case "large":
            return Next("choose", {"text": "x" * 2_000_000})
        case "args":
            return Call("look", {"amount": Decimal("1.5")}, then="told")
        case "nowhere":
            return Next("nowhere")
        case "no_tool":
            return Call("no_such_tool", {}, then="told")
        case "mutate":
            state["input"] = "raise"
            return Next("told", {"list": [1], "result": {"status": "none"}})
    return Next("choose")


@node("bad")
def told(state: State) -> Finish:
    state.get("list", []).append(2)
    return Finish(f"{state['input']} {state['result']['status']}")


@node("no_start")
def alone(state: State) -> Finish:
    return Finish("")
