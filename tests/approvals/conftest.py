"""Fixtures of the inbox's tests."""

from __future__ import annotations

import pytest

import config.urls  # noqa: F401 (loaded before a transaction is open: it takes seconds)
from tests.approvals.world import World


@pytest.fixture
def world(db: None) -> World:
    """One project with everybody in it, and a stranger."""
    return World()
