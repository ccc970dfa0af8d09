"""supervisor: react, with other agents as its hands: what it delegates runs as runs of their own, side by side."""

from __future__ import annotations

from runtime_core.engines.react import React


class Supervisor(React):
    """The engine of agents that hand work to others; the tool `delegate` is theirs by definition."""
