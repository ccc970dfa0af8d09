"""The gateway's loop belongs to one process: a forked child gets its own (case E5)."""

from __future__ import annotations

import os

from runtime_core import gateway
from tests.gateway.conftest import ask, call
from tests.gateway.provider import Provider, text


def test_e5_a_forked_child_has_a_loop_and_connections_of_its_own(provider: Provider) -> None:
    provider.then(text("Hello"))
    assert ask(call())[1].text == "Hello"
    reading, writing = os.pipe()

    child = os.fork()
    if child == 0:  # pragma: no cover - runs in the child
        try:
            os.write(writing, ask(call())[1].text.encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)

    assert said == "Hello"
    assert ask(call())[1].text == "Hello", "the parent's connections still work"


def test_the_loop_is_started_once() -> None:
    assert gateway.start_loop() is gateway.start_loop()
