"""Talks to models: one request in, a stream of text and then one complete answer out.

Rooms: `providers` picks the model, `request` asks it on the process's one asyncio `loop`, `pipe`
hands what comes to the step's thread, `answer` decides whether what came counts, `errors` names
what went wrong. `played` plays a script that does not pause, without any of this. Nothing here knows of
runs, tools or the database.
"""

from __future__ import annotations

from runtime_core.gateway.loop import start_loop, stop_loop
from runtime_core.gateway.stream import stream
from runtime_core.gateway.values import Answer, ModelCall, StreamStopped, TextDelta, ThinkingDelta

__all__ = [
    "Answer",
    "ModelCall",
    "StreamStopped",
    "TextDelta",
    "ThinkingDelta",
    "start_loop",
    "stop_loop",
    "stream",
]
