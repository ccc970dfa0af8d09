"""Fixtures of the inbox's tests."""

from __future__ import annotations

import pytest

from tests.approvals.world import World


@pytest.fixture
def world(db: None) -> World:
    """One project with everybody in it, and a stranger."""
    return World()
