"""The runtime's world, for tests that break it."""

from __future__ import annotations

from tests.runtime.conftest import forks, world, zygote

__all__ = ["forks", "world", "zygote"]
