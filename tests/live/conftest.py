"""A web process for the tests of a module, and a room whose rows it can see."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runtime_core.models import ApiToken
from tests.api.room import Room
from tests.conftest import environment
from tests.live.web import Web


@pytest.fixture(scope="module")
def web(django_db_setup: None) -> Iterator[Web]:
    """A web process with database and Valkey."""
    web = Web(environment())
    yield web
    web.stop()


@pytest.fixture(scope="module")
def deaf_web(django_db_setup: None) -> Iterator[Web]:
    """A web process whose Valkey is dead."""
    web = Web({**environment(), "REDIS_URL": "unix:///nowhere/valkey.sock"})
    yield web
    web.stop()


@pytest.fixture
def room(transactional_db: None) -> Room:
    """A project with people and an agent, committed."""
    return Room()


@pytest.fixture
def token(room: Room) -> str:
    """The operator's token."""
    return ApiToken.issue(room.ana)[1]
