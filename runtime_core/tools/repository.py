"""git without anything that a repository or a user could have set up to run: no hook, filter or
signature.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from runtime_core.errors import WorkspaceError

AUTHOR = ("Interlock agent", "agent@interlock.invalid")
_SECONDS = 120
_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.autocrlf": "false",
    "core.pager": "cat",
    "core.editor": "true",
    "core.sshCommand": "false",
    "credential.helper": "",
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
    "diff.external": "",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "submodule.recurse": "false",
    "protocol.allow": "never",
    "init.defaultBranch": "main",
}


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables under which every git of ours runs; `extra` settings go on top of the safe
    ones.
    """
    settings = {**_SETTINGS, **(extra or {})}
    env = {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_SYSTEM": "/dev/null",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_CONFIG_COUNT": str(len(settings)),
        "LC_ALL": "C.UTF-8",
    }
    for who in ("AUTHOR", "COMMITTER"):
        env[f"GIT_{who}_NAME"], env[f"GIT_{who}_EMAIL"] = AUTHOR
    for i, (key, value) in enumerate(settings.items()):
        env[f"GIT_CONFIG_KEY_{i}"], env[f"GIT_CONFIG_VALUE_{i}"] = key, value
    return env


def is_repository(folder: Path) -> bool:
    """True for the top of a work tree and for a bare repository."""
    return (folder / ".git").exists() or (
        (folder / "HEAD").is_file() and (folder / "objects").is_dir()
    )


def start(folder: Path) -> None:
    """Make `folder` a repository with everything in it as its first commit."""
    _git(["init", "--quiet", "--template="], folder)
    _git(["add", "--all"], folder)
    tree = _git(["write-tree"], folder)
    commit = _git(["commit-tree", tree, "-m", "The workspace as it was given"], folder)
    _git(["update-ref", "HEAD", commit], folder)


def clone(source: Path, folder: Path) -> None:
    """Copy what a repository has committed into the new `folder`, without a way back to it."""
    # A child that serves the objects drops the settings of the command line but reads this file's.
    config = folder.parent / f"{folder.name}.gitconfig"
    config.write_text('[safe]\n\tdirectory = "*"\n')
    try:
        argv = ["clone", "--quiet", "--no-local", "--single-branch", "--no-tags", "--template="]
        _git(
            [*argv, "--", str(source), str(folder)],
            folder.parent,
            settings={"protocol.file.allow": "always"},
            env={"GIT_CONFIG_GLOBAL": str(config)},
        )
        _git(["remote", "remove", "origin"], folder)
    finally:
        config.unlink(missing_ok=True)


def _git(
    argv: Sequence[str],
    folder: Path,
    settings: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
) -> str:
    """git's output. WorkspaceError with what git said if it fails."""
    try:
        done = subprocess.run(  # noqa: S603
            ["git", *argv],  # noqa: S607  from the worker's own PATH
            cwd=folder,
            # None of the worker's own GIT_ variables, and no home to read settings from.
            env={
                "PATH": os.environ.get("PATH", os.defpath),
                **environment(settings),
                **(env or {}),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise WorkspaceError("git is not installed; install it with the package manager") from error
    except subprocess.TimeoutExpired as error:
        raise WorkspaceError(f"git {argv[0]} did not end within {_SECONDS} s") from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()[-300:]
        raise WorkspaceError(f"git {argv[0]} failed: {said}")
    return done.stdout.decode("utf-8", "replace").strip()
