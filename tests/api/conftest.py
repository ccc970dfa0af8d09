"""Fixtures of the API's tests."""

from __future__ import annotations

import pytest

from tests.api.room import Api, Room


@pytest.fixture
def room(db: None) -> Room:
    """A project with people and an agent."""
    return Room()


@pytest.fixture
def ana(room: Room) -> Api:
    """The operator's API."""
    return Api(room.ana)
