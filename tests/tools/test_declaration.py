"""Declaring tools: what becomes of the type hints, and what is refused at import."""

from __future__ import annotations

import enum
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
import pytest
from django.core.exceptions import ImproperlyConfigured

from runtime_core.errors import InvalidArguments
from runtime_core.tools import ToolContext, registry, tool
from runtime_core.tools.schema import DeclarationError, bind, parse
from runtime_core.values import Effect, Risk


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: int = 0


class Address(pydantic.BaseModel):
    city: str


@tool(risk="high", effect="once", timeout=30)
def sample(
    ctx: ToolContext,
    amount: Annotated[Decimal, "How much."],
    schema: Colour,
    point: Point,
    address: Address | None = None,
    mode: Literal["a", "b"] = "a",
    tags: list[str] | None = None,
    weights: dict[str, float] | None = None,
) -> str:
    """Do something once.

    With care.
    """
    return f"{amount} {schema} {point} {address} {mode} {tags} {weights}"


def test_the_spec_says_what_models_and_approvers_see() -> None:
    spec = sample.spec
    assert (spec.name, spec.risk, spec.effect) == ("sample", Risk.HIGH, Effect.ONCE)
    assert spec.timeout_seconds == 30
    assert spec.description == "Do something once.\n\nWith care."
    assert spec.schema["required"] == ["amount", "schema", "point"]
    assert spec.schema["additionalProperties"] is False
    assert spec.schema["properties"]["amount"]["description"] == "How much."
    assert "title" not in str(spec.schema)
    assert len(spec.digest) == 64


def test_arguments_become_python_values() -> None:
    text = (
        '{"amount": 19.90, "schema": "red", "point": {"x": 1}, "address": {"city": "Ulm"}, '
        '"tags": ["a"]}'
    )
    args = parse(sample, text)
    values = bind(sample, args)
    assert values == {
        "amount": Decimal("19.9"),
        "schema": Colour.RED,
        "point": Point(1),
        "address": Address(city="Ulm"),
        "tags": ["a"],
    }
    assert sample(None, **values).startswith("19.9 Colour.RED Point(x=1, y=0)")


@pytest.mark.parametrize(
    ("change", "same"), [({}, True), ({"name": "other"}, False), ({"doc": "Other."}, False)]
)
def test_the_digest_is_of_what_is_seen(change: dict[str, str], same: bool) -> None:
    def once(ctx: ToolContext, a: int) -> None: ...

    def again(ctx: ToolContext, a: int) -> None: ...

    once.__doc__, again.__doc__ = "Text.", change.get("doc", "Text.")
    first = tool(risk="low", effect="read", name="t")(once)
    second = tool(risk="low", effect="read", name=change.get("name", "t"))(again)
    assert (first.spec.digest == second.spec.digest) is same


def test_a_changed_default_is_another_schema() -> None:
    def five(ctx: ToolContext, a: int = 5) -> None:
        """Text."""

    def six(ctx: ToolContext, a: int = 6) -> None:
        """Text."""

    made = [tool(risk="low", effect="read", name="t")(fn).spec.digest for fn in (five, six)]
    assert made[0] != made[1]


def _no_hint(ctx: ToolContext, a) -> None:  # type: ignore[no-untyped-def]
    """Text."""


def _no_ctx(a: int) -> None:
    """Text."""


def _no_doc(ctx: ToolContext) -> None:
    pass


def _many(ctx: ToolContext, *rest: int) -> None:
    """Text."""


def _unknown_hint(ctx: ToolContext, a: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821
    """Text."""


def _odd_type(ctx: ToolContext, a: Opaque) -> None:
    """Text."""


def _wrong_default(ctx: ToolContext, a: int = "five") -> None:  # type: ignore[assignment]
    """Text."""


async def _asynchronous(ctx: ToolContext) -> None:
    """Text."""


class Opaque:
    """Nothing that JSON could carry."""


@pytest.mark.parametrize(
    ("fn", "options", "said"),
    [
        (_no_hint, {}, "parameter a has no type hint"),
        (_no_ctx, {}, "first parameter must be `ctx: ToolContext`"),
        (_no_doc, {}, "needs a docstring"),
        (_many, {}, "cannot be an argument"),
        (_unknown_hint, {}, "type hint cannot be resolved"),
        (_odd_type, {}, "no schema from its type hints"),
        (_wrong_default, {}, "default of a does not fit"),
        (_asynchronous, {}, "plain function"),
        (sample.fn, {"risk": "extreme"}, "risk must be one of low"),
        (sample.fn, {"effect": "maybe"}, "effect must be one of read"),
        (sample.fn, {"timeout": 0}, "timeout must be"),
        (sample.fn, {"timeout": True}, "timeout must be"),
        (sample.fn, {"name": "Has Spaces"}, "a name is a-z"),
        (sample.fn, {"effect": "compensatable"}, "compensate= belongs to"),
        (sample.fn, {"reconcile": "later"}, "reconcile= must be a function"),
    ],
)
def test_a_bad_declaration_fails_at_import(fn: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(DeclarationError, match=said):
        tool(**{"name": "t", "risk": "low", "effect": "read", **options})(fn)


@pytest.fixture
def fresh_registry() -> Iterator[None]:
    registry.cache_clear()
    yield
    registry.cache_clear()


def _module(folder: Path, name: str, text: str) -> str:
    (folder / f"{name}.py").write_text(text)
    return name


_TOOL = '''
from runtime_core.tools import ToolContext, tool

@tool(risk="low", effect="read")
def {name}(ctx: ToolContext) -> str:
    """Text."""
    return "x"
'''


@pytest.fixture
def module_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_registry: None
) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        if name.startswith("tools_for_test"):
            del sys.modules[name]


def test_the_registry_has_the_built_in_tools_and_the_settings_own(
    settings: Any, module_folder: Path
) -> None:
    settings.TOOL_MODULES = [_module(module_folder, "tools_for_test_a", _TOOL.format(name="mine"))]
    assert {"mine", "write_file", "run_command", "ask_human"} <= set(registry())
    assert registry()["ask_human"].asks
    assert registry() is registry()


def test_two_tools_of_one_name_are_an_error_that_names_both(
    settings: Any, module_folder: Path
) -> None:
    settings.TOOL_MODULES = [
        _module(module_folder, f"tools_for_test_{x}", _TOOL.format(name="same")) for x in "bc"
    ]
    with pytest.raises(ImproperlyConfigured, match="tools_for_test_b and in tools_for_test_c"):
        registry()


def test_a_tool_that_is_imported_elsewhere_is_no_second_one(
    settings: Any, module_folder: Path
) -> None:
    _module(module_folder, "tools_for_test_d", _TOOL.format(name="shared"))
    _module(module_folder, "tools_for_test_e", "from tools_for_test_d import shared\n")
    settings.TOOL_MODULES = ["tools_for_test_d", "tools_for_test_e"]
    assert "shared" in registry()


@pytest.mark.parametrize("text", ["1 / 0", "import no_such_module_at_all", "def broken("])
def test_a_module_that_does_not_import_is_named(
    settings: Any, module_folder: Path, text: str
) -> None:
    settings.TOOL_MODULES = [_module(module_folder, "tools_for_test_f", text)]
    with pytest.raises(ImproperlyConfigured, match="tools_for_test_f does not import"):
        registry()


def test_arguments_that_do_not_fit_any_more_are_refused() -> None:
    with pytest.raises(InvalidArguments, match="extra: Extra inputs are not permitted"):
        bind(sample, {"amount": 1, "schema": "red", "point": {"x": 1}, "extra": 1})
