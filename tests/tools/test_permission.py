"""Which calls run, ask and are refused, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from runtime_core.errors import InvalidInput
from runtime_core.tools.permission import (
    PermissionDecision,
    Rule,
    decide,
    parse_permissions,
    validate_constraints,
)
from runtime_core.values import Effect, Json, Risk, ToolSpec, Verdict

ALLOW, ASK, DENY = Verdict.ALLOW, Verdict.ASK, Verdict.DENY


def spec(
    name: str = "t", risk: Risk = Risk.MEDIUM, effect: Effect = Effect.IDEMPOTENT, **schema: Json
) -> ToolSpec:
    return ToolSpec(name, "", {"properties": schema}, risk, effect, 10, "digest")


def rule(tool: str, verdict: Verdict, constraints: Mapping[str, Json] | None = None) -> Rule:
    return Rule(f"{tool}:{verdict}", tool, verdict, constraints or {})


@pytest.mark.parametrize(
    ("risk", "effect", "verdict"),
    [
        (Risk.LOW, Effect.READ, ALLOW),
        (Risk.MEDIUM, Effect.READ, ASK),
        (Risk.LOW, Effect.IDEMPOTENT, ASK),
        (Risk.MEDIUM, Effect.ONCE, ASK),
        (Risk.LOW, Effect.COMPENSATABLE, ASK),
        (Risk.HIGH, Effect.READ, DENY),
        (Risk.HIGH, Effect.ONCE, DENY),
        (Risk.CRITICAL, Effect.IDEMPOTENT, DENY),
    ],
)
def test_what_no_rule_covers(risk: Risk, effect: Effect, verdict: Verdict) -> None:
    decided = decide([rule("other", ALLOW)], spec(risk=risk, effect=effect), {})
    assert (decided.verdict, decided.rule_id) == (verdict, None)
    assert decided.reason


_FIFTY = {"amount": {"max": 50}}
_SRC = {"path": {"glob": "src/**"}}
_SECRET = {"path": {"glob": "s/**"}}


@pytest.mark.parametrize(
    ("rules", "args", "verdict"),
    [
        ([rule("t", ALLOW)], {}, ALLOW),
        ([rule("t", ASK)], {}, ASK),
        ([rule("t", DENY)], {}, DENY),
        ([rule("T", ALLOW)], {}, ASK),
        ([rule("t", ALLOW), rule("*", DENY)], {}, DENY),
        ([rule("*", ALLOW), rule("t", ASK)], {}, ASK),
        ([rule("*", ASK), rule("t", ALLOW)], {}, ALLOW),
        ([rule("t", ALLOW), rule("t", ASK)], {}, ASK),
        ([rule("t", ALLOW, _FIFTY)], {"amount": 50}, ALLOW),
        ([rule("t", ALLOW, _FIFTY)], {"amount": "49.99"}, ALLOW),
        ([rule("t", ALLOW, _FIFTY)], {"amount": 50.01}, ASK),
        ([rule("t", ALLOW, _FIFTY)], {}, ASK),
        ([rule("t", ALLOW, _FIFTY)], {"amount": "NaN"}, ASK),
        ([rule("t", ALLOW, _FIFTY)], {"amount": True}, ASK),
        ([rule("t", ALLOW, _FIFTY), rule("*", ALLOW)], {"amount": 51}, ASK),
        ([rule("t", ALLOW, _FIFTY), rule("t", ALLOW)], {"amount": 51}, ASK),
        ([rule("t", ALLOW, _FIFTY), rule("t", ALLOW, _SRC)], {"amount": 9, "path": "x"}, ALLOW),
        ([rule("t", ASK), rule("t", ALLOW, _FIFTY)], {"amount": 5}, ALLOW),
        ([rule("t", ASK), rule("t", ALLOW, _FIFTY)], {"amount": 51}, ASK),
        ([rule("t", ALLOW), rule("t", ASK, {"amount": {"min": 10}})], {"amount": 9}, ALLOW),
        ([rule("t", ALLOW), rule("t", ASK, {"amount": {"min": 10}})], {"amount": 10}, ASK),
        ([rule("t", ALLOW), rule("t", DENY, {"amount": {"min": 10}})], {"amount": 10}, DENY),
        ([rule("t", ALLOW), rule("t", DENY, {"amount": {"min": 10}})], {"amount": 1}, ALLOW),
        ([rule("t", ALLOW), rule("t", DENY, {"amount": {"min": 10}})], {"amount": "x"}, DENY),
        ([rule("t", ALLOW, _SRC)], {"path": "src/a/b.py"}, ALLOW),
        ([rule("t", ALLOW, _SRC)], {"path": "./src/a.py"}, ALLOW),
        ([rule("t", ALLOW, _SRC)], {"path": "src/../etc/x"}, ASK),
        ([rule("t", ALLOW, _SRC)], {"path": "/src/a.py"}, ASK),
        ([rule("t", ALLOW, _SRC)], {"path": "lib/a.py"}, ASK),
        ([rule("t", ALLOW, {"path": {"glob": "*.py"}})], {"path": "a/b.py"}, ASK),
        ([rule("t", ALLOW, {"path": {"glob": "**/*.py"}})], {"path": "a/b.py"}, ALLOW),
        ([rule("t", ALLOW, {"path": {"glob": "**/*.py"}})], {"path": "b.py"}, ALLOW),
        ([rule("*", ALLOW), rule("t", DENY, _SECRET)], {"path": "a/../s/x"}, DENY),
        ([rule("*", ALLOW), rule("t", DENY, _SECRET)], {"path": "../s/x"}, DENY),
        ([rule("t", ALLOW, {"x": {"in": ["a", 1]}})], {"x": 1}, ALLOW),
        ([rule("t", ALLOW, {"x": {"in": ["a", 1]}})], {"x": True}, ASK),
        ([rule("t", ALLOW, {"x": {"equals": {"a": [1]}}})], {"x": {"a": [1]}}, ALLOW),
        ([rule("t", ALLOW, {"x": {"equals": 1}})], {"x": "1"}, ASK),
        ([rule("t", ALLOW, {"x": {"regex": "[a-z]+"}})], {"x": "abc"}, ALLOW),
        ([rule("t", ALLOW, {"x": {"regex": "[a-z]+"}})], {"x": "abc; rm"}, ASK),
        ([rule("t", ALLOW, {"x": {"max_length": 3}})], {"x": "abcd"}, ASK),
        ([rule("t", ALLOW, {"x": {"unknown": 1}})], {"x": 1}, ASK),
        ([rule("*", ALLOW), rule("t", DENY, {"x": {"unknown": 1}})], {"x": 1}, DENY),
        ([rule("t", ALLOW, {"x": "not a mapping"})], {"x": 1}, ASK),
        ([rule("t", ALLOW, {"x": {}})], {"x": 1}, ASK),
    ],
)  # fmt: skip
def test_the_table(rules: list[Rule], args: dict[str, Json], verdict: Verdict) -> None:
    forward, backward = (decide(order, spec(), args) for order in (rules, rules[::-1]))
    assert forward.verdict is backward.verdict is verdict, forward.reason


def test_a_default_counts_where_the_argument_is_left_out() -> None:
    tool = spec(force={"default": True})
    rules = [rule("t", ALLOW), rule("t", DENY, {"force": {"equals": True}})]
    assert decide(rules, tool, {}).verdict is DENY
    assert decide(rules, tool, {"force": False}).verdict is ALLOW


def test_the_decision_names_the_rule_and_why() -> None:
    decided = decide([rule("t", ALLOW, _FIFTY)], spec(), {"amount": 51})
    assert decided.rule_id == "t:allow"
    assert decided.reason == (
        "The permission “t: allow” allows it only within limits that this call is not in: "
        "amount is not within max 50."
    )


def _command(*argv: str, prefixes: Any = (["git", "status"], ["ls"])) -> PermissionDecision:
    allow = rule("run_command", ALLOW, {"argv": {"prefix": list(prefixes)}})
    return decide([allow], spec("run_command"), {"argv": list(argv)})


@pytest.mark.parametrize(
    "argv",
    [
        ["git", "status", "&&", "touch", "/w/P"],
        ["git status && touch /w/P"],
        ["git", "status;touch P"],
        ["git", "status\ntouch P"],
        ["git", "status", "|", "tee", "P"],
        ["ls", "$(touch P)"],
        ["ls", "`touch P`"],
        ["ls", ">", "P"],
        ["ls", ">P"],
        ["ls<(touch P)"],
        ["ls", "<(touch P)"],
        ["git", "-c", "core.pager=touch P", "status"],
        ["git", "status", "--porcelain=$(touch P)"],
        ["GIT_PAGER=x", "git", "status"],
        ["lsof"],
        ["git", "statusfoo"],
        ["ls${IFS}P"],
        ["env", "ls"],
        ["xargs", "ls"],
        ["ls", "&", "touch", "P"],
        ["ｌｓ"],
        ["ls", "ｘ"],
        ["ls", "a\u202eb"],
        ["ls", "--color=*"],
        ["/bin/ls"],
        ["./ls"],
        [],
    ],
)
def test_i5_what_is_not_plainly_allowed_asks(argv: list[str]) -> None:
    assert _command(*argv).verdict is ASK


@pytest.mark.parametrize(
    "argv", [["git", "status"], ["git", "status", "--short"], ["ls"], ["ls", "-la"], ["ls", "a b"]]
)
def test_i5_plain_words_after_an_allowed_prefix_run(argv: list[str]) -> None:
    assert _command(*argv).verdict is ALLOW


@pytest.mark.parametrize(
    "prefix",
    [
        ["sh"], ["bash"], ["bash", "-c"], ["/bin/bash"], ["env"], ["env", "ls"], ["xargs"],
        ["python3"], ["python3", "-c"], ["python3.11", "-c"], ["python3", "-m"], ["python3", "-Ic"],
        ["node", "-e"], ["perl", "-e"], ["git"], ["git", "-c"], ["sudo", "ls"],
        ["timeout", "5", "ls"], ["find"], ["awk"],
    ],
)  # fmt: skip
def test_i5_interpreters_cannot_be_allowed_by_name(prefix: list[str]) -> None:
    problems = validate_constraints({"argv": {"prefix": [prefix]}})
    assert len(problems) == 1
    assert prefix[0] in problems[0]
    # Nor does such a row, however it came into the database, allow anything.
    assert _command(*prefix, "x", prefixes=[prefix]).verdict is ASK


def test_i5_a_module_of_an_interpreter_can_be_allowed() -> None:
    prefix = ["python3", "-m", "unittest"]
    assert validate_constraints({"argv": {"prefix": [prefix]}}) == []
    assert _command(*prefix, "-v", prefixes=[prefix]).verdict is ALLOW
    assert _command("python3", "-m", "unittestx", prefixes=[prefix]).verdict is ASK


def test_a_refused_prefix_refuses_whatever_follows() -> None:
    rules = [rule("*", ALLOW), rule("run_command", DENY, {"argv": {"prefix": [["bash"]]}})]
    assert decide(rules, spec("run_command"), {"argv": ["bash", "-c", "x; y"]}).verdict is DENY
    assert decide(rules, spec("run_command"), {"argv": ["ls"]}).verdict is ALLOW


@pytest.mark.parametrize(
    ("constraints", "said"),
    [
        ([], "must be a JSON object"),
        ({"x": 1}, "x: give conditions"),
        ({"x": {}}, "x: give conditions"),
        ({"x": {"most": 1}}, "'most' is not one of"),
        ({"x": {"max": "many"}}, "x.max: must be a number"),
        ({"x": {"max": True}}, "x.max: must be a number"),
        ({"x": {"in": []}}, "x.in: must be a list"),
        ({"x": {"glob": ""}}, "x.glob"),
        ({"x": {"regex": "("}}, "x.regex: is not a regular expression"),
        ({"x": {"prefix": ["git"]}}, "x.prefix: must be a list of word lists"),
        ({"x": {"prefix": []}}, "x.prefix: must be a list of word lists"),
        ({"x": {"max_length": -1}}, "x.max_length"),
    ],
)
def test_constraints_are_checked_when_an_admin_writes_them(constraints: Json, said: str) -> None:
    assert said in validate_constraints(constraints)[0]


def test_interpreters_may_be_named_where_nothing_is_allowed_by_it() -> None:
    assert validate_constraints({"argv": {"prefix": [["bash"]]}}, DENY) == []


def test_permissions_of_a_definition() -> None:
    rules = parse_permissions(
        {"a": "allow", "b": {"verdict": "allow", "constraints": _FIFTY}, "c": ["ask", "deny"]}
    )
    assert [(r.tool, r.verdict, r.constraints) for r in rules] == [
        ("a", ALLOW, {}),
        ("b", ALLOW, _FIFTY),
        ("c", ASK, {}),
        ("c", DENY, {}),
    ]


@pytest.mark.parametrize(
    ("definition", "said"),
    [
        (["a"], "permissions: must map"),
        ({"a": "maybe"}, "permissions.a: 'maybe'"),
        ({"a": {"verdict": "allow", "when": 1}}, "permissions.a: must be"),
        (
            {"a": {"verdict": "allow", "constraints": {"x": {"most": 1}}}},
            "permissions.a: x: 'most'",
        ),
        ({"a": None}, "permissions.a"),
    ],
)
def test_a_wrong_definition_is_named(definition: Json, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        parse_permissions(definition)
