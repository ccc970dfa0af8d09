"""Tools that run a command on the run's workspace, in the sandbox, and commit what it holds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from runtime_core.errors import ToolFailed, WorkspaceError
from runtime_core.tools import repository
from runtime_core.tools.context import ToolContext
from runtime_core.tools.registry import tool

MAX_COMMAND_SECONDS = 600
_MESSAGE = "/run/commit/message"
_TRAILER = "Interlock-Call"
_SEARCHED_COMMITS = 500

Argv = Annotated[list[str], Field(min_length=1, max_length=1_000)]
Seconds = Annotated[int, Field(ge=1, le=MAX_COMMAND_SECONDS)]

# Plumbing only: `git commit` would look for hooks, an editor and a signing key.
_COMMIT = """\
set -e
trailer=$1 message=$2 searched=$3
head=$(git rev-parse --quiet --verify HEAD || true)
if [ -n "$head" ]; then
  done=$(git log -n "$searched" --fixed-strings --grep="$trailer" --format=%H | head -n 1)
  if [ -n "$done" ]; then
    echo "already $done"; git diff-tree --root --no-commit-id --name-only -r "$done"; exit 0
  fi
fi
git add --all
tree=$(git write-tree)
if [ -n "$head" ] && [ "$tree" = "$(git rev-parse "$head^{tree}")" ]; then
  echo "nothing $head"; exit 0
fi
new=$(git commit-tree "$tree" ${head:+-p "$head"} -F "$message")
git update-ref -m commit HEAD "$new" "${head:-0000000000000000000000000000000000000000}"
echo "committed $new"
git diff-tree --root --no-commit-id --name-only -r "$new"
"""


@tool(risk="medium", effect="idempotent", timeout=MAX_COMMAND_SECONDS + 10)
def run_command(
    ctx: ToolContext,
    argv: Annotated[Argv, "The program and its arguments, one word each; no shell reads them."],
    timeout_s: Annotated[Seconds, "Seconds after which the command is ended."] = 60,
) -> dict[str, Any]:
    """Run a command in the workspace, in a sandbox: no network, nothing else of the machine.

    Everything it started ends with it. The repository's history is read-only here; use git_commit.
    """
    done = ctx.run_command(argv, timeout=float(timeout_s))
    result: dict[str, Any] = {"exit_code": done.exit_code, "output": done.output}
    if done.status != "exited":
        result["status"] = done.status
        result["note"] = _NOTES[done.status].format(seconds=timeout_s)
    if done.dropped_bytes:
        result["dropped_bytes"] = done.dropped_bytes
    if done.binary:
        result["binary"] = True
    return result


_NOTES = {
    "timed_out": "Ended after {seconds} s, before it was done.",
    "output_limit": "Ended because it printed too much.",
    "memory_limit": "Ended because it used too much memory.",
    "process_limit": "Ended because it started too many processes.",
    "disk_limit": "Ended because the disk was about to be full.",
}


@tool(risk="medium", effect="idempotent")
def git_commit(
    ctx: ToolContext,
    message: Annotated[str, Field(min_length=1, max_length=10_000), "What changed and why."],
) -> dict[str, Any]:
    """Commit everything that changed in the workspace's git repository."""
    key = re.sub(r"[^A-Za-z0-9_.:-]", "-", ctx.idempotency_key)
    trailer = f"{_TRAILER}: {key}"
    # The call's own key is its mark: a repeated call finds the commit that it made before.
    text = f"{_own_words(message)}\n\n{trailer}\n"
    _drop_stale_lock(ctx.workspace)
    done = ctx.run_command(
        ["sh", "-c", _COMMIT, "sh", trailer, _MESSAGE, str(_SEARCHED_COMMITS)],
        env=repository.environment(),
        files={_MESSAGE: text.encode("utf-8")},
        repository_writable=True,
        report=False,
    )
    if done.status != "exited" or done.exit_code != 0:
        raise ToolFailed(f"nothing was committed: {done.output.strip()[-1_000:]}")
    what, _, rest = done.output.partition("\n")
    state, _, commit = what.partition(" ")
    if state == "nothing":
        return {
            "committed": False,
            "commit": commit,
            "note": "Nothing has changed since this commit.",
        }
    return {"committed": True, "commit": commit, "files": rest.split("\n")[:-1]}


def _own_words(message: str) -> str:
    """The message without lines that look like our mark of another call."""
    lines = [line for line in message.strip().split("\n") if not line.startswith(f"{_TRAILER}:")]
    return "\n".join(lines) or "Changes of the workspace"


def _drop_stale_lock(workspace: Path) -> None:
    """A lock is left only by a worker that died: one run has one worker, and its commands die with
    it.
    """
    folder = workspace / ".git"
    if folder.is_symlink() or not folder.is_dir():
        raise WorkspaceError("The workspace is no git repository (its .git folder is missing).")
    branches = folder / "refs" / "heads"
    for lock in (folder / "index.lock", folder / "HEAD.lock", *branches.glob("*.lock")):
        lock.unlink(missing_ok=True)
