"""Fixtures of the tests of deletion: real runs, as the tests of the runtime make them."""

from __future__ import annotations

from tests.audit.conftest import anchor_file
from tests.runtime.conftest import world

__all__ = ["anchor_file", "world"]
