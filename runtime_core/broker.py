"""Commands to Valkey in one round trip, for hints that nobody may depend on: bounded in time, never raised."""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from typing import Any

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

from runtime_core import clock
from runtime_core.transactions import outside

Command = Sequence[str | int | float]

# Connecting and sending each get this long, so commands cost at most twice of it.
TIMEOUT_S = 0.1
# After a failure nobody tries for this long: a dead broker must not cost each step 0.2 s.
REST_S = 1.0

_log = logging.getLogger(__name__)
_resting_until = 0.0


def tell(name: str, commands: Sequence[Command], *, always: bool = False) -> bool:
    """Send the commands now; False if the broker did not take them. `name` is that of the failpoint.

    Shortly after a failure nothing is tried, but what is to be sent `always`.
    """
    global _resting_until
    if not always and clock.monotonic() < _resting_until:
        return False
    try:
        with outside(name):
            _send(commands)
    except Exception as error:  # noqa: BLE001 - a hint must never cost a run; the client raises ValueError too
        _resting_until = clock.monotonic() + REST_S
        _log.warning("no %s sent: %s", name, error)
        return False
    return True


def ask(name: str, commands: Sequence[Command]) -> list[Any]:
    """The answers to these commands; none at all if the broker did not give every one of them."""
    global _resting_until
    if not commands or clock.monotonic() < _resting_until:
        return []
    try:
        with outside(name):
            return _send(commands)
    except Exception as error:  # noqa: BLE001 - the answer is a hint as well
        _resting_until = clock.monotonic() + REST_S
        _log.warning("no %s read: %s", name, error)
        return []


def _send(commands: Sequence[Command]) -> list[Any]:
    """One write and one read for all of them; the client's own way costs three times as much."""
    pool = _client(settings.REDIS_URL).connection_pool
    link = pool.get_connection()
    try:
        packed = link.pack_commands(commands)  # type: ignore[no-untyped-call]
        link.send_packed_command(packed)  # type: ignore[no-untyped-call]
        return [link.read_response() for _ in commands]
    except BaseException:
        # What was not read would be taken for the answer to the next command.
        link.disconnect()  # type: ignore[no-untyped-call]
        raise
    finally:
        pool.release(link)


@functools.cache
def _client(url: str) -> redis.Redis:
    return redis.Redis.from_url(
        url,
        socket_timeout=TIMEOUT_S,
        socket_connect_timeout=TIMEOUT_S,
        retry=Retry(NoBackoff(), 0),
        max_connections=64,
    )
