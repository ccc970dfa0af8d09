"""Tools that list, read and change files of the run's workspace."""

from __future__ import annotations

import hashlib
import re
from typing import Annotated, Any

from pydantic import Field

from runtime_core.errors import InvalidArguments, ToolFailed
from runtime_core.tools import files
from runtime_core.tools.context import ToolContext
from runtime_core.tools.preview import patched_paths
from runtime_core.tools.registry import tool

Path = Annotated[str, Field(min_length=1, max_length=1_000)]

_PATCH = "/run/patch/change.diff"
_FORBIDDEN_MODE = re.compile(r"^(new file mode|new mode) (120000|160000)\b", re.MULTILINE)
# The reverse first: a call that is repeated after a crash must not add the same lines twice.
# Counting again mends wrong line counts, but misreads some patches of several files: it comes second.
_APPLY = """\
for how in --no-recount --recount; do
  if git apply --reverse --check "$how" -p"$1" "$2" 2>/dev/null; then echo already; exit 0; fi
  if git apply --whitespace=nowarn "$how" -p"$1" "$2" 2>/tmp/why; then echo applied; exit 0; fi
  [ -e /tmp/first ] || cp /tmp/why /tmp/first
done
cat /tmp/first
exit 1
"""


@tool(risk="low", effect="read")
def list_files(
    ctx: ToolContext,
    path: Annotated[Path, "A folder, relative to the workspace."] = ".",
) -> dict[str, Any]:
    """List all files below a folder of the workspace."""
    found, more = files.listing(ctx.workspace, path)
    result: dict[str, Any] = {"files": found}
    if more:
        result["note"] = (
            f"There are more than {files.MAX_LISTED} files; list a folder further down."
        )
    return result


@tool(risk="low", effect="read")
def read_file(
    ctx: ToolContext,
    path: Annotated[Path, "A file, relative to the workspace."],
) -> dict[str, Any]:
    """Read a text file of the workspace."""
    content = files.read(ctx.workspace, path)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = None
    if text is None or "\0" in text:
        digest = hashlib.sha256(content).hexdigest()
        return {"path": path, "binary": True, "bytes": len(content), "sha256": digest}
    return {"path": path, "content": text}


@tool(risk="medium", effect="idempotent")
def write_file(
    ctx: ToolContext,
    path: Annotated[Path, "A file, relative to the workspace; its folders are made."],
    content: Annotated[str, "The whole new content of the file."],
) -> dict[str, Any]:
    """Create a file of the workspace or replace all of its content."""
    raw = content.encode("utf-8")
    created = files.write(ctx.workspace, path, raw)
    return {"path": path, "bytes": len(raw), "created": created}


@tool(risk="medium", effect="idempotent")
def apply_patch(
    ctx: ToolContext,
    patch: Annotated[str, "A unified diff with a/ and b/ paths, relative to the workspace."],
) -> dict[str, Any]:
    """Apply a unified diff to files of the workspace, as a whole or not at all."""
    paths = patched_paths(patch)
    if not paths:
        raise InvalidArguments(
            "patch: it names no file; give a unified diff with --- and +++ lines"
        )
    if _FORBIDDEN_MODE.search(patch):
        raise InvalidArguments(
            "patch: it would make a link or a submodule; only files can be changed"
        )
    for path in paths:
        files.check_path(ctx.workspace, path)
    text = patch if patch.endswith("\n") else patch + "\n"
    done = ctx.run_command(
        ["sh", "-c", _APPLY, "sh", _strip(patch), _PATCH],
        files={_PATCH: text.encode("utf-8")},
        report=False,
    )
    if done.status != "exited" or done.exit_code != 0:
        raise ToolFailed(
            f"the patch does not apply, nothing was changed: {done.output.strip()[:2_000]}"
        )
    return {"paths": paths, "already_applied": done.output.startswith("already")}


def _strip(patch: str) -> str:
    """How many leading names to drop: none where the paths come without a/ and b/."""
    return "1" if re.search(r"^(--- a/|\+\+\+ b/)", patch, re.MULTILINE) else "0"
