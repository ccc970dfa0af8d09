"""What a call would do, in the form in which a person can judge it best."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path

from runtime_core.errors import ToolError
from runtime_core.sanitize import storable_text
from runtime_core.tools import files
from runtime_core.values import Json

DIFF_BYTES = 400_000
_CONTEXT = 3
_COMPARED_LINES = 4_000


def preview(tool: str, args: Mapping[str, Json], workspace: Path | None) -> dict[str, Json]:
    """`{"kind": "diff" | "argv" | "json", …}` for a call of the tool of that name, without running
    it.

    diff: `path`, `diff` (unified), `truncated`, `note`. argv: `argv`. json: `args`. Never raises:
    what cannot be previewed is shown as json, with a `note` that says why.
    """
    if tool == "write_file" and workspace is not None and _are_texts(args, "path", "content"):
        return file_diff(workspace, args["path"], args["content"])
    if tool == "apply_patch" and _are_texts(args, "patch"):
        diff, truncated = _bounded(args["patch"])
        return _diff(", ".join(patched_paths(args["patch"])), diff, truncated, "")
    argv = args.get("argv")
    if tool == "run_command" and isinstance(argv, list) and all(isinstance(w, str) for w in argv):
        return {"kind": "argv", "argv": argv}
    return {"kind": "json", "args": dict(args)}


def file_diff(workspace: Path, path: str, content: str) -> dict[str, Json]:
    """The change that writing `content` to a workspace's file would make, as a preview of kind
    diff.
    """
    note = ""
    try:
        before = files.read(workspace, path).decode("utf-8")
    except UnicodeDecodeError:
        return _diff(path, "", False, "The present file is not text; it would be replaced.")
    except ToolError as error:
        before, note = "", _note_on(error)
    diff, truncated = _bounded("".join(_unified(before, content, path)))
    return _diff(
        path, diff, truncated, note or ("" if diff else "The file already has this content.")
    )


def patched_paths(patch: str) -> list[str]:
    """The files that a unified diff names, in its order, each once."""
    paths: dict[str, None] = {}
    for line in patch.split("\n"):
        if line.startswith(("--- ", "+++ ")):
            path = line[4:].split("\t")[0].strip()
            if path != "/dev/null":
                paths[path[2:] if path[:2] in ("a/", "b/") else path] = None
    return list(paths)


def _diff(path: str, diff: str, truncated: bool, note: str) -> dict[str, Json]:
    return {"kind": "diff", "path": path, "diff": diff, "truncated": truncated, "note": note}


def _are_texts(args: Mapping[str, Json], *names: str) -> bool:
    return all(isinstance(args.get(name), str) for name in names)


def _note_on(error: ToolError) -> str:
    missing = isinstance(error.__cause__, FileNotFoundError)
    return "A new file." if missing else error.message


def _bounded(diff: str) -> tuple[str, bool]:
    raw = diff.encode("utf-8", "replace")
    if len(raw) <= DIFF_BYTES:
        return storable_text(diff), False
    return storable_text(raw[:DIFF_BYTES].decode("utf-8", "ignore")), True


def _unified(before: str, after: str, path: str) -> Iterator[str]:
    old, new = _lines(before), _lines(after)
    if old == new:
        return
    if len(old) + len(new) > _COMPARED_LINES:
        # Comparing would take too long; the part that differs is shown as removed and added.
        yield from _replaced(old, new, path)
        return
    for line in difflib.unified_diff(old, new, f"a/{path}", f"b/{path}", n=_CONTEXT):
        yield from _ended(line)


def _lines(text: str) -> list[str]:
    """Only at line feeds: other separators must stay visible within a line."""
    lines = text.split("\n")
    ended = [line + "\n" for line in lines[:-1]]
    return [*ended, lines[-1]] if lines[-1] else ended


def _ended(line: str) -> Iterator[str]:
    yield line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"


def _replaced(old: list[str], new: list[str], path: str) -> Iterator[str]:
    shortest = min(len(old), len(new))
    start = next((i for i in range(shortest) if old[i] != new[i]), shortest)
    same = shortest - start
    end = next((i for i in range(same) if old[-1 - i] != new[-1 - i]), same)
    gone, come = old[start : len(old) - end], new[start : len(new) - end]
    yield f"--- a/{path}\n+++ b/{path}\n"
    yield f"@@ -{start + 1},{len(gone)} +{start + 1},{len(come)} @@\n"
    for sign, lines in (("-", gone), ("+", come)):
        for line in lines:
            yield from _ended(sign + line)
