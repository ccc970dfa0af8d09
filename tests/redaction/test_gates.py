"""Nothing is stored or logged past the gate: read from the code itself."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

ROOT = Path(settings.BASE_DIR)
FILES = [
    path
    for room in ("runtime_core", "approvals", "traces", "config")
    for path in sorted((ROOT / room).rglob("*.py"))
    if not {"migrations", "__pycache__"} & set(path.parts)
]
# Which files may add to what people look at, and by what each of them has it redacted.
DOORS = {
    "event": {"runtime_core/sql.py", "runtime_core/sql_claim.py"},
    "span": {"traces/spans/table.py"},
    "span_payload": {"traces/spans/table.py"},
    "audit_entry": {"traces/audit/entries.py"},
    "audit_payload": {"traces/audit/entries.py"},
}
MODELS = {"Event": "event", "SpanRow": "span", "SpanPayload": "span_payload", "AuditEntry": "audit_entry",
          "AuditPayload": "audit_payload"}  # fmt: skip
_INTO = re.compile(
    r"(?:INSERT INTO|COPY|UPDATE)\s+\"?(event|span|span_payload|audit_entry|audit_payload)\"?\b",
    re.I,
)
_ADDING = {"create", "bulk_create", "get_or_create", "update_or_create", "bulk_update"}
# A change that writes no new text: how a span ended, an entry's place in the chain, pieces of stored text joined.
_PLAIN_CHANGES = {
    ("traces/audit/sealer.py", "audit_entry"),
    ("traces/spans/table.py", "span"),
    ("traces/retention/classes.py", "event"),
}
# Who may send events: what they hold is redacted where it is made.
SAYS = "NewEvent"


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def statements(path: Path) -> Iterator[tuple[str, int]]:
    """Every text of a file that is no docstring."""
    tree = tree_of(path)
    documented = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body and isinstance(node.body[0], ast.Expr)
    }  # fmt: skip
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in documented
        ):
            yield node.value, node.lineno


def writers(path: Path) -> Iterator[tuple[str, int]]:
    """(table, line) of everything in a file that adds rows or text to one that people look at."""
    for text, line in statements(path):
        for found in _INTO.finditer(text):
            yield found[1].lower(), line
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            model = name.split(".")[0]
            if model in MODELS and (name == model or name.split(".")[-1] in _ADDING):
                yield MODELS[model], node.lineno


def test_nothing_but_the_doors_writes_what_people_look_at() -> None:
    found = {
        f"{named(path)}:{line} {table}"
        for path in FILES
        for table, line in writers(path)
        if named(path) not in DOORS[table] and (named(path), table) not in _PLAIN_CHANGES
    }
    assert found == set()
    seen = {(named(path), table) for path in FILES for table, _ in writers(path)}
    assert {table for _, table in seen} == set(DOORS), "the test looks for what is not there"


def test_the_doors_of_spans_and_audit_pass_everything_through_the_gate() -> None:
    for door in ("traces/spans/table.py", "traces/audit/entries.py"):
        source = (ROOT / door).read_text()
        assert "redactor().on(" in source, door


def test_every_text_in_an_event_is_redacted_where_it_is_made() -> None:
    """A value of an event that is neither a number, an id nor out of a closed set comes from the gate."""
    raw = {
        "args",
        "args_text",
        "result_text",
        "output",
        "message",
        "reason",
        "comment",
        "stderr",
        "name",
    }
    bare: list[str] = []
    for path in FILES:
        if not named(path).startswith(("runtime_core", "approvals")):
            continue
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(SAYS):
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Attribute) and inner.attr in raw:
                        bare.append(f"{named(path)}:{node.lineno} {ast.unparse(inner)}")
    assert bare == []


def test_every_log_line_passes_the_gate() -> None:
    logging = settings.LOGGING
    for name, handler in logging["handlers"].items():
        assert handler["formatter"] == "structured", name
        assert handler["class"] == "traces.gate.SafeStreamHandler", name
    processors = [
        getattr(p, "__name__", type(p).__name__)
        for p in logging["formatters"]["structured"]["processors"]
    ]
    assert processors.index("clean_log_line") == len(processors) - 2, (
        "only what writes it down comes after"
    )
    printed = [
        f"{named(path)}:{node.lineno}"
        for path in FILES
        if "management" not in path.parts
        and not named(path).startswith(("config/", "runtime_core/demo"))
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "print"
    ]
    assert printed == []
