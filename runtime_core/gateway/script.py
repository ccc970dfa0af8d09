"""Scripts: what a scripted model says, read from YAML and checked field by field."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import yaml

from runtime_core.errors import ModelError, ModelNotConfigured
from runtime_core.values import Json

_FILE_BYTES = 1_000_000
_MAX_PAUSE_MS = 10_000
_OUTCOMES = {"success", "failed", "denied", "interrupted", "retried"}


@dataclass(frozen=True, slots=True)
class Rule:
    """Where to go on after a turn: to `turn` if one result of its calls fits all that is given."""

    turn: str
    tool: str | None = None
    outcome: str | None = None
    contains: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """An error a turn raises after its text, `times` times a process if given, else always."""

    kind: type[ModelError]
    message: str
    times: int | None
    retry_after: float | None


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call of a turn; `raw_args` are exact words, `args` a template."""

    tool: str
    args: Json = None
    raw_args: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One response of the model."""

    id: str
    text: str
    calls: tuple[PlannedCall, ...]
    usage: tuple[int, int] | None
    error: Failure | None
    next: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """A named list of turns."""

    name: str
    path: str
    chunk_ms: int
    chunk_chars: int
    vars: Mapping[str, re.Pattern[str]]
    turns: tuple[Turn, ...]

    def position(self, turn_id: str) -> int | None:
        """The place of the turn in the script."""
        return next((i for i, turn in enumerate(self.turns) if turn.id == turn_id), None)


def load_script(path: Path) -> Script:
    """The script at `path`. Raises ModelNotConfigured naming the file and the wrong field."""
    try:
        stat = path.stat()
        if stat.st_size > _FILE_BYTES:
            raise ModelNotConfigured(f"The script {path.name} is larger than {_FILE_BYTES} bytes.")
        return _loaded(path, stat.st_mtime_ns, stat.st_size)
    except OSError as error:
        raise ModelNotConfigured(
            f"The script {path.name} cannot be read ({error.strerror}); "
            "correct the agent's `script` or set INTERLOCK_MODEL."
        ) from None


@functools.lru_cache(maxsize=64)
def _loaded(path: Path, mtime_ns: int, size: int) -> Script:
    try:
        document = yaml.safe_load(path.read_text("utf-8"))
    except UnicodeDecodeError:
        raise ModelNotConfigured(f"The script {path.name} is not UTF-8.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        raise ModelNotConfigured(f"The script {path.name} is not valid YAML{where}.") from None
    return _Reader(path.name).script(document, str(path))


class _Reader:
    """Turns a YAML document into a `Script`, or says which field of which file is wrong."""

    def __init__(self, file: str) -> None:
        self._file = file

    def script(self, document: Any, path: str) -> Script:
        fields = self._fields(
            document, "the file", {"name", "chunk_ms", "chunk_chars", "vars", "turns"}
        )
        listed = self._list(fields.get("turns"), "turns")
        if not listed:
            self._wrong("turns", "needs at least one turn")
        turns = tuple(self._turn(turn, i) for i, turn in enumerate(listed))
        self._check_ids(turns)
        return Script(
            name=self._text(fields.get("name", Path(path).stem), "name"),
            path=path,
            chunk_ms=self._number(fields.get("chunk_ms", 0), "chunk_ms", _MAX_PAUSE_MS),
            chunk_chars=max(1, self._number(fields.get("chunk_chars", 12), "chunk_chars", 100_000)),
            vars=self._vars(fields.get("vars") or {}),
            turns=turns,
        )

    def _turn(self, value: Any, index: int) -> Turn:
        at = f"turns[{index}]"
        fields = self._fields(value, at, {"id", "text", "calls", "usage", "error", "next"})
        calls = self._list(fields.get("calls") or [], f"{at}.calls")
        rules = self._list(fields.get("next") or [], f"{at}.next")
        return Turn(
            id=str(fields.get("id", index)),
            text=self._text(fields.get("text", ""), f"{at}.text"),
            calls=tuple(self._call(call, f"{at}.calls[{i}]") for i, call in enumerate(calls)),
            usage=self._usage(fields.get("usage"), f"{at}.usage"),
            error=self._failure(fields.get("error"), f"{at}.error"),
            next=tuple(self._rule(rule, f"{at}.next[{i}]") for i, rule in enumerate(rules)),
        )

    def _call(self, value: Any, at: str) -> PlannedCall:
        fields = self._fields(value, at, {"tool", "args", "raw_args"})
        if "args" in fields and "raw_args" in fields:
            self._wrong(at, "has both `args` and `raw_args`")
        raw = fields.get("raw_args")
        args = fields.get("args", {})
        try:
            json.dumps(args, allow_nan=False)
        except (TypeError, ValueError):
            self._wrong(f"{at}.args", "is not JSON (put dates in quotes)")
        return PlannedCall(
            tool=self._text(fields.get("tool"), f"{at}.tool"),
            args=args,
            raw_args=None if raw is None else self._text(raw, f"{at}.raw_args"),
        )

    def _usage(self, value: Any, at: str) -> tuple[int, int] | None:
        if value is None:
            return None
        fields = self._fields(value, at, {"input_tokens", "output_tokens"})
        return (
            self._number(fields.get("input_tokens", 0), f"{at}.input_tokens", 10**9),
            self._number(fields.get("output_tokens", 0), f"{at}.output_tokens", 10**9),
        )

    def _failure(self, value: Any, at: str) -> Failure | None:
        if value is None:
            return None
        fields = self._fields(value, at, {"code", "message", "times", "retry_after"})
        kinds = {kind.code: kind for kind in _model_errors()}
        code = self._text(fields.get("code"), f"{at}.code")
        if code not in kinds:
            self._wrong(f"{at}.code", f"is none of {', '.join(sorted(kinds))}")
        times, wait = fields.get("times"), fields.get("retry_after")
        return Failure(
            kind=kinds[code],
            message=self._text(fields.get("message", ""), f"{at}.message"),
            times=None if times is None else self._number(times, f"{at}.times", 10**6),
            retry_after=None
            if wait is None
            else float(self._number(wait, f"{at}.retry_after", 10**6)),
        )

    def _rule(self, value: Any, at: str) -> Rule:
        fields = self._fields(value, at, {"tool", "outcome", "contains", "turn"})
        outcome = fields.get("outcome")
        if outcome is not None and outcome not in _OUTCOMES:
            self._wrong(f"{at}.outcome", f"is none of {', '.join(sorted(_OUTCOMES))}")
        if "turn" not in fields:
            self._wrong(f"{at}.turn", "is missing")
        tool, contains = fields.get("tool"), fields.get("contains")
        return Rule(
            turn=str(fields["turn"]),
            tool=None if tool is None else self._text(tool, f"{at}.tool"),
            outcome=outcome,
            contains=None if contains is None else self._text(contains, f"{at}.contains"),
        )

    def _vars(self, value: Any) -> dict[str, re.Pattern[str]]:
        if not isinstance(value, dict):
            self._wrong("vars", "is not a mapping of names to patterns")
        patterns = {}
        for name, pattern in value.items():
            try:
                patterns[str(name)] = re.compile(self._text(pattern, f"vars.{name}"))
            except re.error as error:
                self._wrong(f"vars.{name}", f"is not a regular expression: {error}")
        return patterns

    def _check_ids(self, turns: Iterable[Turn]) -> None:
        ids: set[str] = set()
        for index, turn in enumerate(turns):
            if turn.id in ids:
                self._wrong(f"turns[{index}].id", f"repeats {turn.id!r}")
            ids.add(turn.id)
        for index, turn in enumerate(turns):
            for i, rule in enumerate(turn.next):
                if rule.turn not in ids:
                    self._wrong(f"turns[{index}].next[{i}].turn", f"names no turn: {rule.turn!r}")

    def _fields(self, value: Any, at: str, known: set[str]) -> dict[str, Any]:
        if not isinstance(value, dict):
            self._wrong(at, "is not a mapping")
        for name in value:
            if name not in known:
                self._wrong(
                    at, f"has an unknown field {name!r} (known: {', '.join(sorted(known))})"
                )
        return value

    def _list(self, value: Any, at: str) -> list[Any]:
        return value if isinstance(value, list) else self._wrong(at, "is not a list")

    def _text(self, value: Any, at: str) -> str:
        return value if isinstance(value, str) else self._wrong(at, "is not text")

    def _number(self, value: Any, at: str, most: int) -> int:
        if type(value) is int and 0 <= value <= most:
            return value
        return self._wrong(at, f"is not a whole number from 0 to {most}")

    def _wrong(self, at: str, what: str) -> NoReturn:
        raise ModelNotConfigured(f"The script {self._file}: {at} {what}.")


def _model_errors(base: type[ModelError] = ModelError) -> Iterable[type[ModelError]]:
    yield base
    for kind in base.__subclasses__():
        yield from _model_errors(kind)
