"""Conditions on a call's arguments, as an admin writes them in JSON, and whether they hold.

    {"argv": {"prefix": [["python3", "-m", "unittest"], ["git", "status"]]},
     "amount": {"max": 50}, "path": {"glob": "src/**"}, "currency": {"in": ["EUR", "USD"]}}

Every condition of every argument must hold. `equals`, `in`, `min`, `max`, `max_length`, `glob`,
`regex`, `prefix`.
"""

from __future__ import annotations

import functools
import posixpath
import re
import unicodedata
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation

from runtime_core.sanitize import canonical
from runtime_core.values import Json, Verdict

HOLDS, FAILS, BROKEN = "holds", "fails", "broken"

_MAX_PATTERN, _MAX_TEXT = 500, 2_000
_SHELLS = "sh bash dash zsh ksh ash fish csh tcsh busybox"
_LANGUAGES = "python pypy perl ruby node nodejs deno bun php lua tclsh java dotnet"
_EDITORS = "awk gawk mawk sed ed vi vim emacs gdb"
_BUILDERS = "git make npm npx pnpm yarn pip pipx uv uvx cargo go docker"
_INTERPRETERS = frozenset(f"{_SHELLS} {_LANGUAGES} {_EDITORS} {_BUILDERS}".split())
_WRAPPERS = frozenset(
    "env xargs nohup setsid timeout nice ionice stdbuf sudo su doas chroot unshare nsenter bwrap "  # noqa: SIM905
    "time watch parallel find fd ssh script exec eval command builtin strace ltrace flock".split()
)
_VERSION = re.compile(r"[\d.]+$")
# What a shell would act on. No shell runs here, yet such a word was meant for one, so a person
# looks at it.
_SHELL_CHARACTERS = frozenset(";&|<>$`\n\r\\*?[]{}()!~#'\"")


def evaluate(
    constraints: Mapping[str, Json],
    args: Mapping[str, Json],
    schema: Mapping[str, Json],
    verdict: Verdict = Verdict.ALLOW,
) -> tuple[str, str]:
    """HOLDS, FAILS or BROKEN (it cannot be judged), and why not. Stricter for what would be allowed
    by it.
    """
    properties = schema.get("properties", {})
    for name, conditions in constraints.items():
        if name not in args and "default" not in properties.get(name, {}):
            return FAILS, f"{name} is not given"
        value = args[name] if name in args else properties[name]["default"]
        if not isinstance(conditions, Mapping) or not conditions:
            return BROKEN, f"the constraint on {name} is not a mapping of conditions"
        for operator, operand in conditions.items():
            state = _judge(operator, value, operand, verdict)
            if state != HOLDS:
                return state, f"{name} is not within {operator} {_short(operand)}"
    return HOLDS, ""


def validate_constraints(constraints: Json, verdict: Verdict = Verdict.ALLOW) -> list[str]:
    """What is wrong with constraints that an admin wrote, one sentence each; none if they can be
    used.
    """
    if not isinstance(constraints, Mapping):
        return ["constraints must be a JSON object of arguments"]
    problems: list[str] = []
    for name, conditions in constraints.items():
        if not isinstance(conditions, Mapping) or not conditions:
            problems.append(f'{name}: give conditions such as {{"max": 50}}')
            continue
        for operator, operand in conditions.items():
            check = _CHECKS.get(operator)
            if check is None:
                problems.append(f"{name}: {operator!r} is not one of {', '.join(_CHECKS)}")
            elif problem := check(operand):
                problems.append(f"{name}.{operator}: {problem}")
            elif operator == "prefix" and verdict is Verdict.ALLOW:
                problems += [f"{name}.prefix: {p}" for p in map(_too_wide, operand) if p]
    return problems


def _judge(operator: str, value: Json, operand: Json, verdict: Verdict) -> str:
    check = _CHECKS.get(operator)
    if check is None or check(operand):
        return BROKEN
    if operator == "prefix" and verdict is Verdict.ALLOW:
        return _allowed_prefix(value, operand)
    return _JUDGES[operator](value, operand)


def _state(holds: bool) -> str:
    return HOLDS if holds else FAILS


def _equals(value: Json, operand: Json) -> str:
    return _state(canonical(value) == canonical(operand))


def _in(value: Json, operand: Json) -> str:
    return _state(canonical(value) in {canonical(item) for item in operand})


def _min(value: Json, operand: Json) -> str:
    number = _number(value)
    return BROKEN if number is None else _state(number >= (_number(operand) or 0))


def _max(value: Json, operand: Json) -> str:
    number = _number(value)
    return BROKEN if number is None else _state(number <= (_number(operand) or 0))


def _max_length(value: Json, operand: Json) -> str:
    return _state(len(value) <= operand) if isinstance(value, str | list | dict) else BROKEN


def _glob(value: Json, operand: Json) -> str:
    """Globs speak of paths below the workspace: `..` and absolute ones are in none of them."""
    if not isinstance(value, str) or len(value) > _MAX_TEXT:
        return BROKEN
    path = posixpath.normpath(value)
    if path.startswith(("/", "../")) or path == ".." or "\\" in path:
        return BROKEN
    patterns = [operand] if isinstance(operand, str) else operand
    return _state(any(_glob_pattern(p).fullmatch(path) for p in patterns))


def _regex(value: Json, operand: Json) -> str:
    if not isinstance(value, str) or len(value) > _MAX_TEXT:
        return BROKEN
    return _state(re.fullmatch(operand, value) is not None)


def _prefix(value: Json, operand: Json) -> str:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        return BROKEN
    return _state(any(value[: len(prefix)] == prefix for prefix in operand))


def _allowed_prefix(value: Json, operand: Json) -> str:
    """Element by element, no prefix that would allow anything, and plain words after it."""
    narrow = [prefix for prefix in operand if not _too_wide(prefix)]
    state = _prefix(value, narrow)
    return _state(all(_plain(word) for word in value)) if state == HOLDS else state


def _plain(word: str) -> bool:
    if any(c in _SHELL_CHARACTERS or unicodedata.category(c)[0] == "C" for c in word):
        return False
    return unicodedata.normalize("NFKC", word) == word


def _too_wide(prefix: list[str]) -> str:
    """Why an allowed prefix would allow anything at all, or nothing if it would not."""
    program = _VERSION.sub("", posixpath.basename(prefix[0])) or prefix[0]
    if program in _WRAPPERS:
        return f"{prefix[0]} runs any other command, so it cannot be allowed"
    if program not in _INTERPRETERS:
        return ""
    if len(prefix) < 2:
        return f"{prefix[0]} alone runs anything; name its sub-command or script too"
    if prefix[1].startswith("-") and not (prefix[1] == "-m" and len(prefix) > 2):
        return (
            f"{prefix[0]} {prefix[1]} would run any code that follows; name a sub-command or script"
        )
    return ""


@functools.lru_cache(maxsize=256)
def _glob_pattern(glob: str) -> re.Pattern[str]:
    """`*` and `?` stay within a folder, `**` goes through any number of them."""
    parts = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", glob)
    return re.compile("".join(parts.get(piece, re.escape(piece)) for piece in pieces), re.DOTALL)


def _number(value: Json) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _short(operand: Json) -> str:
    text = canonical(operand)
    return text if len(text) <= 120 else f"{text[:120]}…"


def _check_number(operand: Json) -> str:
    return "must be a number" if _number(operand) is None else ""


def _check_length(operand: Json) -> str:
    usable = isinstance(operand, int) and not isinstance(operand, bool) and operand >= 0
    return "" if usable else "must be a whole number"


def _check_list(operand: Json) -> str:
    return "" if isinstance(operand, list) and operand else "must be a list that is not empty"


def _check_any(operand: Json) -> str:
    return ""


def _check_glob(operand: Json) -> str:
    patterns = [operand] if isinstance(operand, str) else operand
    if not isinstance(patterns, list) or not patterns:
        return "must be a pattern or a list of them"
    usable = all(isinstance(p, str) and 0 < len(p) <= _MAX_PATTERN for p in patterns)
    return "" if usable else f"a pattern is a text of 1 to {_MAX_PATTERN} characters"


def _check_regex(operand: Json) -> str:
    if not isinstance(operand, str) or not 0 < len(operand) <= _MAX_PATTERN:
        return f"must be a text of 1 to {_MAX_PATTERN} characters"
    try:
        re.compile(operand)
    except re.error as error:
        return f"is not a regular expression: {error}"
    return ""


def _check_prefix(operand: Json) -> str:
    usable = (
        isinstance(operand, list)
        and operand
        and all(
            isinstance(p, list) and p and all(isinstance(w, str) and w for w in p) for p in operand
        )
    )
    return "" if usable else 'must be a list of word lists, such as [["git", "status"]]'


_JUDGES: dict[str, Callable[[Json, Json], str]] = {
    "equals": _equals,
    "in": _in,
    "min": _min,
    "max": _max,
    "max_length": _max_length,
    "glob": _glob,
    "regex": _regex,
    "prefix": _prefix,
}
_CHECKS: dict[str, Callable[[Json], str]] = {
    "equals": _check_any,
    "in": _check_list,
    "min": _check_number,
    "max": _check_number,
    "max_length": _check_length,
    "glob": _check_glob,
    "regex": _check_regex,
    "prefix": _check_prefix,
}
