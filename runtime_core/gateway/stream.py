"""The thread's side of a request: an iterator that heeds a stop and leaves no connection behind."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

from runtime_core.errors import ModelUnavailable
from runtime_core.gateway.loop import start_loop
from runtime_core.gateway.pipe import Pipe
from runtime_core.gateway.request import SHUT_DOWN, Request
from runtime_core.gateway.values import Answer, ModelCall, StreamStopped, TextDelta, ThinkingDelta
from runtime_core.values import Usage

logger = logging.getLogger(__name__)

STOP_POLL_SECONDS = 0.05
CLEAN_UP_SECONDS = 5.0
PIPE_ITEMS = 256


def stream(call: ModelCall, stop: threading.Event) -> Iterator[TextDelta | ThinkingDelta | Answer]:
    """Ask the model and yield what it says as it says it; the last thing is the complete `Answer`.

    Raises a `ModelError` when no complete answer came (`data` holds the partial `text` and the
    `usage`), and `StreamStopped` within about 0.1 s of `stop` being set, even while the provider is
    silent. However the iterator ends, closing it early included, the HTTP response is closed then.
    """
    if stop.is_set():
        raise StreamStopped(text="", usage=Usage())
    loop = start_loop()
    pipe: Pipe[TextDelta | ThinkingDelta | Answer] = Pipe(loop.loop, PIPE_ITEMS)
    request = Request(call, pipe, loop)
    job = loop.submit(request.run())
    try:
        while True:
            items, ended = pipe.take(STOP_POLL_SECONDS)
            for item in items:
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
        if not job.cancel(CLEAN_UP_SECONDS):
            logger.error("a model stream did not close within %s s", CLEAN_UP_SECONDS)
    raise StreamStopped(text=request.text, usage=request.usage())
