"""Nothing commits but through the one door that can be made to fail: read from the code itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from runtime_core.failpoints import ACTIONS, arm, disarm, failpoint

ROOT = Path(settings.BASE_DIR)
DOOR = "runtime_core/transactions.py"
ROOMS = [
    path
    for room in ("runtime_core", "approvals")
    for path in sorted((ROOT / room).rglob("*.py"))
    if "migrations" not in path.parts
]
# What opens or ends a transaction by other names.
BY_HAND = {
    "atomic",
    "commit",
    "rollback",
    "set_autocommit",
    "savepoint_commit",
    "non_atomic_requests",
}
# The runtime's statements that write, and the functions that send a statement.
WRITES = {"CLAIM", "APPEND", "COMMIT", "RELEASE", "REAP", "HEARTBEAT", "TAKE", "MOVE", "TELL"}


def calls_in(path: Path) -> Iterator[tuple[ast.Call, list[ast.AST]]]:
    """Every call of a file with the nodes around it, outermost first."""

    def walk(node: ast.AST, around: list[ast.AST]) -> Iterator[tuple[ast.Call, list[ast.AST]]]:
        if isinstance(node, ast.Call):
            yield node, around
        for child in ast.iter_child_nodes(node):
            yield from walk(child, [*around, node])

    yield from walk(ast.parse(path.read_text()), [])


def name_of(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def at(path: Path, call: ast.Call) -> str:
    return f"{path.relative_to(ROOT)}:{call.lineno} {ast.unparse(call)[:60]}"


def is_through_the_door(around: list[ast.AST]) -> bool:
    return any(
        isinstance(node, ast.With)
        and any("one_commit(" in ast.unparse(item.context_expr) for item in node.items)
        for node in around
    )


def is_only_called_through_the_door(path: Path, function: str) -> bool:
    doors = [
        is_through_the_door(around) for call, around in calls_in(path) if name_of(call) == function
    ]
    return bool(doors) and all(doors)


def test_no_transaction_is_opened_but_by_the_one_door() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} {ast.unparse(node)}"
        for path in ROOMS
        if str(path.relative_to(ROOT)) != DOOR
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr in BY_HAND
        and ast.unparse(node) != "work.commit"
    ]
    assert found == []
    inside = [name_of(call) for call, _ in calls_in(ROOT / DOOR)]
    assert inside.count("atomic") == 2, "the test looks for what is not there"


def test_every_statement_of_a_worker_goes_through_the_one_door_or_joins_its_caller() -> None:
    path = ROOT / "runtime_core/transitions.py"
    open_to_callers = {"move", "tell"}  # their promise: in the caller's transaction
    seen = 0
    for call, around in calls_in(path):
        sent = {node.attr for node in ast.walk(call) if isinstance(node, ast.Attribute)}
        sends = name_of(call) in ("_one", "_one_planned", "execute")
        if not sends or not {s for s in sent if s.split("_")[0] in WRITES}:
            continue
        seen += 1
        function = next(n for n in reversed(around) if isinstance(n, ast.FunctionDef))
        good = function.name in open_to_callers or is_through_the_door(around)
        assert good or is_only_called_through_the_door(path, function.name), at(path, call)
    assert seen >= 7


def test_points_are_named_by_words_that_stand_in_the_code() -> None:
    given = [
        call.args[0]
        for path in ROOMS
        if str(path.relative_to(ROOT)) != DOOR
        for call, _ in calls_in(path)
        if name_of(call) == "one_commit"
    ]
    assert len(given) > 30
    assert [ast.unparse(name) for name in given if not isinstance(name, ast.Constant)] == []


def test_an_unarmed_point_does_nothing_and_an_armed_one_strikes_once_where_it_was_told() -> None:
    failpoint("anything", "before")
    trace: list[str] = []
    arm(1, "raise", trace)
    try:
        failpoint("a", "before")
        with pytest.raises(RuntimeError, match=r"b\.after"):
            failpoint("b", "after")
        failpoint("c", "before")
    finally:
        disarm()
    assert trace == ["a.before", "b.after", "c.before"]
    assert {"kill", "stop", "raise", "delay", "drop", "lose_answer", "lose_message"} == set(ACTIONS)
