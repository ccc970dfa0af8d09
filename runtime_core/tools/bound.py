"""What a decision is about beside the arguments: the tool's definition, the agent's version, the files that it touches.

Noted when people are asked, compared right before the call runs, and shown where it differs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from runtime_core import ports
from runtime_core.errors import ToolError
from runtime_core.sanitize import canonical, clip
from runtime_core.tools import files
from runtime_core.tools.preview import patched_paths
from runtime_core.tools.registry import Tool
from runtime_core.values import Json

FILES_MAX = 50
CHANGES_MAX = 40
VALUE_BYTES = 4_000
_DEPTH = 4
WORDS_MAX, PATH_MAX = 400, 400
ABSENT, UNREADABLE = "not there", "not readable"


def bound_to(
    tool: Tool | None,
    args: Mapping[str, Json],
    agent: Json,
    workspace: Path | None,
    seen: Collection[str] = (),
) -> dict[str, Json]:
    """Tool, agent and files as they are now; of files `seen` before also that they are gone."""
    noted: dict[str, Json] = {"agent": agent, "files": _files(tool, args, workspace, seen)}
    if tool is not None:
        spec = tool.spec
        noted["tool"] = {
            "description": spec.description,
            "risk": spec.risk.value,
            "effect": spec.effect.value,
            "arguments": json.loads(canonical(spec.schema)),
        }
    return noted


def drifted(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Why what was decided on is not what would run; nothing if it is. The tool has a digest of its own."""
    if before.get("agent") != now.get("agent"):
        return "The agent's definition changed after it was asked."
    seen, there = before.get("files") or {}, now.get("files") or {}
    others = sorted(path for path in seen if path in there and seen[path] != there[path])
    if others:
        return f"What it would change in the workspace is not what it was: {', '.join(others)}."
    return ""


def differences(before: Json, after: Json) -> list[dict[str, Json]]:
    """Where two JSON values differ, leaf by leaf, redacted and bounded: `what`, `before`, `after`."""
    found: list[dict[str, Json]] = []
    for what, one, other in _leaves("", before, after, 0):
        found.append({"what": what, "before": _shown(one), "after": _shown(other)})
        if len(found) == CHANGES_MAX:
            break
    return found


def _files(
    tool: Tool | None, args: Mapping[str, Json], workspace: Path | None, seen: Collection[str]
) -> dict[str, Json]:
    if tool is None or workspace is None:
        return {}
    written = _written(tool.spec.name, args)
    if written is not None:
        return {_name(path): _state(workspace, path) for path in written[:FILES_MAX]}
    found: dict[str, Json] = {}
    for word in dict.fromkeys(islice(_words(dict(args), 0), WORDS_MAX)):
        state = _state(workspace, word)
        if state not in (ABSENT, UNREADABLE) or _name(word) in seen:
            found[_name(word)] = state
    return dict(islice(found.items(), FILES_MAX))


def _written(tool: str, args: Mapping[str, Json]) -> list[str] | None:
    """The files that the call would write, there or not; None for a tool of which nobody knows. Of
    such a one every file that its arguments name is noted.
    """
    if tool == "write_file":
        return [args["path"]] if isinstance(args.get("path"), str) else []
    if tool == "apply_patch":
        return patched_paths(args["patch"]) if isinstance(args.get("patch"), str) else []
    return None


def _name(path: str) -> str:
    return ports.redactor().text(path)


def _words(value: Json, depth: int) -> Iterator[str]:
    """Every text in the arguments, and every word of it, that could be a path."""
    if isinstance(value, str):
        yield from (word for word in (value, *value.split()) if 0 < len(word) <= PATH_MAX)
    elif depth < _DEPTH:
        inner = value.values() if isinstance(value, dict) else value
        for one in inner if isinstance(inner, Iterable) else ():
            yield from _words(one, depth + 1)


def _state(workspace: Path, path: str) -> str:
    try:
        return hashlib.sha256(files.read(workspace, path)).hexdigest()
    except ToolError as error:
        return ABSENT if isinstance(error.__cause__, FileNotFoundError) else UNREADABLE


def _leaves(what: str, before: Json, after: Json, depth: int) -> Iterator[tuple[str, Json, Json]]:
    if canonical(before) == canonical(after):
        return
    if not (isinstance(before, dict) and isinstance(after, dict)) or depth == _DEPTH:
        yield what, before, after
        return
    for key in sorted({*before, *after}):
        name = f"{what}.{key}" if what else key
        yield from _leaves(name, before.get(key), after.get(key), depth + 1)


def _shown(value: Json) -> Json:
    if value is None:
        return ""
    clean = ports.redactor().redact(value).value
    text = clean if isinstance(clean, str) else json.dumps(clean, ensure_ascii=False, indent=2)
    return clip(text, VALUE_BYTES)[0]
