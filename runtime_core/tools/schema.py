"""A tool's arguments: the schema from its type hints, and the strict way from a model's text to
values.

Nothing is repaired or coerced: what does not fit is refused with a bounded echo, for the model to
try again.
"""

from __future__ import annotations

import inspect
import json
import math
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import pydantic
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from runtime_core.errors import InvalidArguments
from runtime_core.limits import limits
from runtime_core.sanitize import storable_text
from runtime_core.tools.context import ToolContext
from runtime_core.values import Json

if TYPE_CHECKING:
    from runtime_core.tools.registry import Tool

ECHO_CHARS = 200
_ERRORS_SHOWN = 5
# Strings as a whole, so that brackets inside of them do not count; an unended one is json's to
# refuse.
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


class DeclarationError(TypeError):
    """A tool's function is not declared in a way that a schema can be made from."""


@dataclass(frozen=True, slots=True)
class ArgumentSchema:
    """The arguments of one tool: `json_schema` for models and people, `model` to check with."""

    json_schema: Mapping[str, Json]
    model: type[pydantic.BaseModel]
    names: tuple[str, ...]

    @classmethod
    def of(cls, fn: Callable[..., Any], name: str) -> ArgumentSchema:
        """The schema of `fn`. DeclarationError says which parameter of it is wrong."""
        parameters = _parameters(fn, name)
        fields = {
            f"a{i}": _field(parameter, hint, name) for i, (parameter, hint) in enumerate(parameters)
        }
        try:
            # Fields carry neutral names and the parameters are aliases: `schema` or `copy` may be
            # one.
            model = pydantic.create_model(  # type: ignore[call-overload]
                "Arguments",
                __config__=pydantic.ConfigDict(strict=True, extra="forbid", allow_inf_nan=False),
                **fields,
            )
            schema = model.model_json_schema(schema_generator=_Untitled)
        except (pydantic.errors.PydanticUserError, TypeError, ValueError) as error:
            first_line = str(error).strip().splitlines()[0]
            raise DeclarationError(
                f"tool {name}: no schema from its type hints: {first_line}"
            ) from error
        schema.pop("title", None)
        return cls(schema, model, tuple(parameter.name for parameter, _ in parameters))

    def bind(self, args: Mapping[str, Json]) -> dict[str, Any]:
        """Python values for the function's parameters; InvalidArguments if `args` do not fit."""
        try:
            bound = self.model.model_validate_json(json.dumps(args), strict=True)
        except pydantic.ValidationError as error:
            raise InvalidArguments(_explain(error), args=echo(json.dumps(args))) from error
        return {
            name: getattr(bound, f"a{i}")
            for i, name in enumerate(self.names)
            if f"a{i}" in bound.model_fields_set
        }


def parse(tool: Tool, args_text: str) -> dict[str, Json]:
    """The arguments a model wrote for `tool`, as JSON to store. InvalidArguments if anything is
    wrong.
    """
    args = parse_object(args_text)
    tool.arguments.bind(args)
    return args


def bind(tool: Tool, args: Mapping[str, Json]) -> dict[str, Any]:
    """Stored arguments as Python values for the call. InvalidArguments if they no longer fit."""
    return tool.arguments.bind(args)


def parse_object(text: str) -> dict[str, Json]:
    """Exactly one JSON object: no repair, no duplicate key, no NaN, bounded in size and depth."""
    if len(text.encode("utf-8", "replace")) > limits().tool_args_bytes:
        raise _refused(f"the arguments are longer than {limits().tool_args_bytes} bytes", text)
    if not text.strip():
        raise _refused("the arguments are empty; send one JSON object, {} for none", text)
    if _depth(text) > limits().tool_args_depth:
        raise _refused(f"the arguments nest deeper than {limits().tool_args_depth}", text)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object_without_repeats,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except (ValueError, RecursionError) as error:
        raise _refused(f"the arguments are not one valid JSON object: {error}", text) from error
    if not isinstance(value, dict):
        raise _refused(f"the arguments must be a JSON object, not {_json_type(value)}", text)
    _refuse_unstorable(value, text)
    return value


def echo(text: str) -> str:
    """The beginning of `text`, safe to store and short enough to send back."""
    shown = storable_text(text[:ECHO_CHARS])
    return shown if len(text) <= ECHO_CHARS else f"{shown}… ({len(text)} characters)"


def _parameters(fn: Callable[..., Any], name: str) -> list[tuple[inspect.Parameter, Any]]:
    if inspect.iscoroutinefunction(fn) or inspect.isasyncgenfunction(fn):
        raise DeclarationError(f"tool {name}: write it as a plain function, not as `async def`")
    parameters = list(inspect.signature(fn).parameters.values())
    try:
        hints = typing.get_type_hints(fn, include_extras=True)
    except Exception as error:
        raise DeclarationError(f"tool {name}: a type hint cannot be resolved: {error}") from error
    if not parameters or hints.get(parameters[0].name) is not ToolContext:
        raise DeclarationError(f"tool {name}: its first parameter must be `ctx: ToolContext`")
    for parameter in parameters[1:]:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise DeclarationError(f"tool {name}: {parameter} cannot be an argument; name each one")
        if parameter.name not in hints:
            raise DeclarationError(f"tool {name}: parameter {parameter.name} has no type hint")
    return [(parameter, hints[parameter.name]) for parameter in parameters[1:]]


def _field(parameter: inspect.Parameter, hint: Any, name: str) -> tuple[Any, Any]:
    default = ... if parameter.default is parameter.empty else parameter.default
    hint = _described(hint)
    if default is not ...:
        try:
            pydantic.TypeAdapter(hint).dump_json(default, warnings="error")
        except pydantic.errors.PydanticUserError:
            pass  # the hint itself is wrong; making the model says how
        except Exception as error:
            raise DeclarationError(
                f"tool {name}: the default of {parameter.name} does not fit its type: {error}"
            ) from error
    return hint, pydantic.Field(default, alias=parameter.name)


def _described(hint: Any) -> Any:
    """`Annotated[T, "text"]` with the text as the description that a model reads."""
    if typing.get_origin(hint) is not Annotated:
        return hint
    base, *extras = typing.get_args(hint)
    kept = tuple(pydantic.Field(description=e) if isinstance(e, str) else e for e in extras)
    return Annotated[(base, *kept)]


class _Untitled(GenerateJsonSchema):
    """JSON schema without titles made from the names, which only cost tokens."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def generate(self, schema: Any, mode: Any = "validation") -> JsonSchemaValue:
        made = super().generate(schema, mode)
        for definition in made.get("$defs", {}).values():
            definition.pop("title", None)
        return made


def _depth(text: str) -> int:
    deepest = depth = 0
    for match in _STRUCTURE.finditer(text):
        found = match[0]
        if found in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif found in "]}":
            depth -= 1
    return deepest


def _object_without_repeats(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [key for key, _ in pairs]
        twice = next(key for key in names if names.count(key) > 1)
        raise ValueError(f"the key {echo(twice)!r} is there twice")
    return made


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"the number {echo(digits)} is too large")
    return number


def _refuse_unstorable(value: Json, text: str) -> None:
    # Replacing them would run something else than what the model wrote and a person approved.
    as_text = json.dumps(value, ensure_ascii=False)
    if storable_text(as_text) != as_text or "\\u0000" in as_text.replace("\\\\", ""):
        raise _refused("the arguments contain U+0000 or half of a surrogate pair", text)


def _json_type(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case _:
            return "an array"


def _refused(reason: str, text: str) -> InvalidArguments:
    return InvalidArguments(f"{reason}; nothing was run", args=echo(text))


def _explain(error: pydantic.ValidationError) -> str:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [
        f"{echo('.'.join(str(part) for part in item['loc'])) or 'arguments'}: {item['msg']}"
        for item in found[:_ERRORS_SHOWN]
    ]
    if len(found) > _ERRORS_SHOWN:
        lines.append(f"and {len(found) - _ERRORS_SHOWN} more")
    return f"the arguments do not fit the tool's schema: {'; '.join(lines)}; nothing was run"
