"""Fixtures of the pages' tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from tests.pages.world import World


@pytest.fixture
def world(db: None) -> World:
    """One project with everybody in it, and a stranger."""
    return World()


@pytest.fixture
def as_user() -> Callable[[Any], Client]:
    """A client that is logged in as somebody."""

    def login(user: Any) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return login
