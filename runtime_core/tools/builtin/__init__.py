"""The tools that come with the runtime: files, commands and commits of the run's workspace,
questions, work for other agents.
"""

from __future__ import annotations

from runtime_core.tools.builtin.commands import git_commit, run_command
from runtime_core.tools.builtin.delegate import delegate
from runtime_core.tools.builtin.files import apply_patch, list_files, read_file, write_file
from runtime_core.tools.builtin.question import ask_human, model_failed

__all__ = [
    "apply_patch",
    "ask_human",
    "delegate",
    "git_commit",
    "list_files",
    "model_failed",
    "read_file",
    "run_command",
    "write_file",
]
