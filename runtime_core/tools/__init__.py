"""Tools: what a model may ask for, who may let it, and how it is run.

A module that `TOOL_MODULES` lists declares its tools with `@tool`; everything else here is for the
runtime.
"""

from __future__ import annotations

from runtime_core.tools.context import DID_NOT_HAPPEN, Happened, Stopped, ToolContext
from runtime_core.tools.registry import Tool, registry, tool

__all__ = ["DID_NOT_HAPPEN", "Happened", "Stopped", "Tool", "ToolContext", "registry", "tool"]
