"""The thread's side of a request: an iterator that heeds a stop and leaves no connection behind."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import replace

from runtime_core.errors import ModelUnavailable
from runtime_core.gateway.loop import start_loop
from runtime_core.gateway.pipe import Pipe
from runtime_core.gateway.played import played
from runtime_core.gateway.providers import script_at_hand
from runtime_core.gateway.request import SHUT_DOWN, Request
from runtime_core.gateway.values import Answer, ModelCall, StreamStopped, TextDelta, ThinkingDelta
from runtime_core.values import Usage

Part = TextDelta | ThinkingDelta | Answer

logger = logging.getLogger(__name__)

STOP_POLL_SECONDS = 0.05
CLEAN_UP_SECONDS = 5.0
PIPE_ITEMS = 256
# A short answer that comes at once is handed on whole, so that its text needs no commit of its own.
PATIENCE_SECONDS = 0.005


def stream(call: ModelCall, stop: threading.Event) -> Iterator[Part]:
    """Ask the model and yield what it says as it says it; the last thing is the complete `Answer`.

    Raises a `ModelError` when no complete answer came (`data` holds the partial `text` and the
    `usage`), and `StreamStopped` within about 0.1 s of `stop` being set, even while the provider is
    silent. However the iterator ends, closing it early included, the HTTP response is closed then.
    """
    if stop.is_set():
        raise StreamStopped(text="", usage=Usage())
    script = script_at_hand(call)
    yield from _asked(call, stop) if script is None else played(call, script, stop)


def _asked(call: ModelCall, stop: threading.Event) -> Iterator[Part]:
    loop = start_loop()
    pipe: Pipe[Part] = Pipe(loop.loop, PIPE_ITEMS)
    request = Request(call, pipe, loop)
    job = loop.submit(request.run())
    patience = PATIENCE_SECONDS
    try:
        while True:
            items, ended = pipe.take(STOP_POLL_SECONDS, patience)
            if items:
                patience = 0.0
            for item in _with_end_in_sight(items):
                if stop.is_set():
                    break
                yield item
            if stop.is_set():
                break
            if ended:
                request.raise_if_failed()
                return
            if job.ended.is_set() and not request.ended:
                raise ModelUnavailable(SHUT_DOWN)  # the loop ended before the request began
    finally:
        # A request that has ended has closed all it opened already.
        if not request.ended and not job.cancel(CLEAN_UP_SECONDS):
            logger.error("a model stream did not close within %s s", CLEAN_UP_SECONDS)
    raise StreamStopped(text=request.text, usage=request.usage())


def _with_end_in_sight(items: list[Part]) -> list[Part]:
    """The same items; the texts know it if the whole rest of the answer is among them."""
    if not items or not isinstance(items[-1], Answer):
        return items
    return [replace(i, last=True) if isinstance(i, TextDelta) else i for i in items]
