"""Fixtures of the tests of notifications."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.approvals.conftest import world
from tests.notify.receiver import Receiver, receiving

__all__ = ["world"]


@pytest.fixture
def receiver(settings: object) -> Iterator[Receiver]:
    """A receiver in this machine's own network, which is allowed for once."""
    settings.INTERLOCK_WEBHOOK_PRIVATE = True  # type: ignore[attr-defined]
    with receiving() as one:
        yield one
