"""A hint never costs anything but itself, whatever the broker's client does."""

from __future__ import annotations

import uuid

import pytest

from runtime_core import broker
from runtime_core.events import publish
from runtime_core.scheduling import wake


@pytest.mark.parametrize(
    "error", [ValueError("I/O operation on closed file."), OSError(), RuntimeError()]
)
def test_a_broken_client_raises_nothing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def broken(*_: object) -> None:
        raise error

    monkeypatch.setattr(broker, "_send", broken)
    monkeypatch.setattr(broker, "_resting_until", 0.0)

    publish._publish("{}")

    assert broker._resting_until > 0


def test_a_broken_broker_is_told_and_not_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("I/O operation on closed file.")

    monkeypatch.setattr(broker, "_send", broken)
    monkeypatch.setattr(broker, "_resting_until", 0.0)

    assert wake.send(uuid.UUID(int=7)) is False
