"""The tools of this process: `@tool` declares one, `registry()` finds all the settings list."""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import Any, TypeVar

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from runtime_core.limits import limits
from runtime_core.sanitize import canonical
from runtime_core.tools.schema import ArgumentSchema, DeclarationError
from runtime_core.values import Effect, Risk, ToolSpec

BUILTIN_MODULES = ("runtime_core.tools.builtin",)
LONGEST_WINDOW_S = 7 * 24 * 3_600
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_E = TypeVar("_E", Risk, Effect)


@dataclass(frozen=True, slots=True)
class Tool:
    """A declared tool. `asks` marks one that is a question to a person, `delegates` one that is work
    for another agent: their functions are never run.

    `reconcile(ctx, **arguments)` returns `Happened(result)` or `DID_NOT_HAPPEN`, and raises if it
    cannot know. `compensate(ctx, result, **arguments)` takes the effect back, `compensate_effect` says whether that may
    be run again with its key; `result` is None where nobody knows whether there is anything to take back. `dedupe_s`:
    the same call within so many seconds asks a person.
    """

    spec: ToolSpec
    fn: Callable[..., Any]
    arguments: ArgumentSchema
    reconcile: Callable[..., Any] | None = None
    compensate: Callable[..., Any] | None = None
    compensate_effect: Effect = Effect.ONCE
    dedupe_s: int = 0
    asks: bool = False
    delegates: bool = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the plain function, as tests and other tools do."""
        return self.fn(*args, **kwargs)


def tool(
    *,
    risk: str,
    effect: str,
    timeout: int | None = None,
    reconcile: Callable[..., Any] | None = None,
    compensate: Callable[..., Any] | None = None,
    compensate_effect: str = "once",
    dedupe_s: int = 0,
    name: str | None = None,
    asks: bool = False,
    delegates: bool = False,
) -> Callable[[Callable[..., Any]], Tool]:
    """Declare the function as a tool; its docstring is what models and approvers read.

    `timeout` in seconds (the default is `limits().tool_seconds`); the other words are those of
    `Tool`. DeclarationError says what is wrong.
    """

    def declare(fn: Callable[..., Any]) -> Tool:
        tool_name = name or fn.__name__
        if not _NAME.fullmatch(tool_name):
            raise DeclarationError(f"tool {tool_name!r}: a name is a-z, 0-9 and _, at most 64 long")
        arguments = ArgumentSchema.of(fn, tool_name)
        declared_effect = _member(Effect, effect, f"tool {tool_name}: effect")
        _check_callbacks(tool_name, declared_effect, reconcile, compensate)
        description = _description(fn, tool_name)
        declared_risk = _member(Risk, risk, f"tool {tool_name}: risk")
        spec = ToolSpec(
            name=tool_name,
            description=description,
            schema=arguments.json_schema,
            risk=declared_risk,
            effect=declared_effect,
            timeout_seconds=_seconds(timeout, tool_name),
            digest=digest_of(
                tool_name, description, arguments.json_schema, declared_risk, declared_effect
            ),
        )
        return Tool(
            spec,
            fn,
            arguments,
            reconcile,
            compensate,
            _compensate_effect(tool_name, compensate_effect),
            _window(tool_name, declared_effect, dedupe_s),
            asks,
            delegates,
        )

    return declare


def digest_of(
    name: str, description: str, schema: Mapping[str, Any], risk: Risk, effect: Effect
) -> str:
    """What an approval is bound to: SHA-256 over what a model and an approver see of a tool, and
    over what decides who may approve it and what a crash does to it.
    """
    seen = canonical(
        {
            "name": name,
            "description": description,
            "schema": dict(schema),
            "risk": risk.value,
            "effect": effect.value,
        }
    )
    return hashlib.sha256(seen.encode("utf-8", "surrogatepass")).hexdigest()


@functools.cache
def registry() -> Mapping[str, Tool]:
    """Every tool of the built-in modules and of `TOOL_MODULES`, by name, in that order."""
    tools: dict[str, Tool] = {}
    owners: dict[str, str] = {}
    for path in (*BUILTIN_MODULES, *getattr(settings, "TOOL_MODULES", ())):
        for found in _tools_of(_load(path)):
            known = tools.setdefault(found.spec.name, found)
            owner = owners.setdefault(found.spec.name, path)
            if known is not found:
                raise ImproperlyConfigured(
                    f"Two tools are named {found.spec.name!r}: in {owner} and in {path}. "
                    "Rename one with @tool(name=…)."
                )
    return MappingProxyType(tools)


def _load(path: str) -> ModuleType:
    try:
        return importlib.import_module(path)
    except Exception as error:
        # Whatever a module raises at import is the same to who starts the process: it cannot be
        # used.
        raise ImproperlyConfigured(
            f"TOOL_MODULES: {path} does not import: {type(error).__name__}: {error}"
        ) from error


def _tools_of(module: ModuleType) -> list[Tool]:
    return [value for value in vars(module).values() if isinstance(value, Tool)]


def _member(kind: type[_E], value: str, what: str) -> _E:
    try:
        return kind(value)
    except ValueError:
        raise DeclarationError(f"{what} must be one of {', '.join(kind)}, not {value!r}") from None


def _seconds(timeout: int | None, name: str) -> int:
    seconds = limits().tool_seconds if timeout is None else timeout
    if isinstance(seconds, bool) or not isinstance(seconds, int) or not 1 <= seconds <= 3_600:
        raise DeclarationError(f"tool {name}: timeout must be 1 to 3600 whole seconds")
    return seconds


def _compensate_effect(name: str, effect: str) -> Effect:
    if effect not in (Effect.ONCE, Effect.IDEMPOTENT):
        raise DeclarationError(f"tool {name}: compensate_effect must be once or idempotent")
    return Effect(effect)


def _window(name: str, effect: Effect, seconds: int) -> int:
    if isinstance(seconds, bool) or not isinstance(seconds, int):
        raise DeclarationError(f"tool {name}: dedupe_s must be whole seconds")
    if not 0 <= seconds <= LONGEST_WINDOW_S:
        raise DeclarationError(f"tool {name}: dedupe_s must be 0 to {LONGEST_WINDOW_S}")
    if seconds and effect.repeatable:
        raise DeclarationError(f"tool {name}: dedupe_s is for tools that must not act twice")
    return seconds


def _description(fn: Callable[..., Any], name: str) -> str:
    text = inspect.getdoc(fn)
    if not text:
        raise DeclarationError(f"tool {name}: it needs a docstring: models and approvers read it")
    return text


def _check_callbacks(
    name: str,
    effect: Effect,
    reconcile: Callable[..., Any] | None,
    compensate: Callable[..., Any] | None,
) -> None:
    if (effect is Effect.COMPENSATABLE) != (compensate is not None):
        raise DeclarationError(
            f"tool {name}: compensate= belongs to effect='compensatable', and only there"
        )
    for what, callback in (("reconcile", reconcile), ("compensate", compensate)):
        if callback is not None and not callable(callback):
            raise DeclarationError(f"tool {name}: {what}= must be a function")
