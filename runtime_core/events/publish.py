"""Tells web processes over Valkey that a run has new events: a hint only, which nobody may depend on."""

from __future__ import annotations

import functools
import json
import logging
import uuid
from functools import partial

import redis
from django.conf import settings
from django.db import connection
from redis.backoff import NoBackoff
from redis.retry import Retry

from runtime_core import clock

CHANNEL = "interlock:hints"

# Connecting and sending each get this long, so a hint costs at most twice of it.
_TIMEOUT_S = 0.1
# After a failure nobody tries for this long: a dead broker must not cost each step 0.2 s.
_REST_S = 1.0

_log = logging.getLogger(__name__)
_resting_until = 0.0


def announce(run_id: uuid.UUID, last_seq: int, project_id: uuid.UUID, inbox: bool = False) -> None:
    """Hint that `run_id` has events up to `last_seq`, and whether its project's inbox changed.

    Inside a transaction it waits for the commit. Never raises, takes at most 0.2 s; who misses the
    hint finds the rows by polling.
    """
    hint = {"run": str(run_id), "seq": last_seq, "project": str(project_id), "inbox": inbox}
    send = partial(_publish, json.dumps(hint))
    if connection.in_atomic_block:
        connection.on_commit(send, robust=True)
    else:
        send()


def _publish(hint: str) -> None:
    global _resting_until
    if clock.monotonic() < _resting_until:
        return
    try:
        _client(settings.REDIS_URL).publish(CHANNEL, hint)
    except (redis.RedisError, OSError) as error:
        _resting_until = clock.monotonic() + _REST_S
        _log.warning("no hint sent, watchers will poll: %s", error)


@functools.cache
def _client(url: str) -> redis.Redis:
    return redis.Redis.from_url(
        url,
        socket_timeout=_TIMEOUT_S,
        socket_connect_timeout=_TIMEOUT_S,
        retry=Retry(NoBackoff(), 0),
        max_connections=64,
    )
