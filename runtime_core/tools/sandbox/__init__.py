"""Runs a command so that it can touch one workspace and nothing else, and nothing of it outlives
its call.
"""

from __future__ import annotations

from runtime_core.tools.sandbox.bubblewrap import check
from runtime_core.tools.sandbox.process import Completed, Sandbox, SandboxLimits

__all__ = ["Completed", "Sandbox", "SandboxLimits", "check"]
