"""Tools for tests whose effects are lines of a file outside the database: what happened is what stands there."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from runtime_core.errors import ToolFailed
from runtime_core.tools import DID_NOT_HAPPEN, Happened, ToolContext, tool


def effects_file() -> Path:
    """Where effects go; every process of a test finds it by the environment."""
    return Path(os.environ["INTERLOCK_TEST_DATA_DIR"]) / "effects.txt"


def effects() -> list[str]:
    """All effects so far, in order."""
    path = effects_file()
    return path.read_text().splitlines() if path.exists() else []


def _happen(text: str) -> None:
    with effects_file().open("a") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())


def at_point(word: str, name: str) -> Path:
    """The file that makes the tool `hold`, `kill` its process, or `stop` it, when it comes to that point."""
    return effects_file().with_name(f"{word}-{name}")


def _pause(name: str) -> None:
    """Do what a file of that name asks for; a hold lasts while the file exists, having said that we are there."""
    for word, number in (("kill", signal.SIGKILL), ("stop", signal.SIGSTOP)):
        asked = at_point(word, name)
        if asked.exists():
            asked.unlink()
            os.kill(os.getpid(), number)
    hold = at_point("hold", name)
    if hold.exists():
        hold.with_suffix(".reached").touch()
    until = time.monotonic() + 60
    while hold.exists() and time.monotonic() < until:
        time.sleep(0.01)


@tool(risk="high", effect="once", timeout=60)
def ledger_append(ctx: ToolContext, text: str) -> str:
    """Add one line to a book outside of the database. It must not be added twice."""
    _pause("before-effect")
    _happen(text)
    _pause("after-effect")
    return f"appended {text}"


@tool(risk="low", effect="idempotent", timeout=60)
def note(ctx: ToolContext, text: str) -> str:
    """Write a note, once for each key."""
    _pause("before-note")
    line = f"{ctx.idempotency_key}:{text}"
    if line not in effects():
        _happen(line)
    _pause("after-note")
    return "noted"


@tool(risk="low", effect="read", timeout=60)
def look(ctx: ToolContext, at: str = "here") -> dict[str, str]:
    """Look at something."""
    return {"seen": at}


@tool(risk="low", effect="read", timeout=60)
def wait_for_stop(ctx: ToolContext) -> str:
    """Work until somebody stops it."""
    (effects_file().with_name("waiting")).touch()
    while True:
        ctx.check()
        time.sleep(0.01)


@tool(risk="low", effect="read", timeout=60)
def fail(ctx: ToolContext, message: str) -> str:
    """Raise an error with this message."""
    raise ValueError(message)


@tool(risk="low", effect="read", timeout=60)
def say(ctx: ToolContext, what: str) -> object:
    """Return or raise something odd."""
    if what == "raise":
        raise ValueError("x\x00y")
    return {
        "nul": "a\x00b",
        "key": {"k\x00": "v\x00"},
        "bytes": b"a\x00\xff",
        "literal": "\\u0000",
        "big": "x" * 3_000_000,
    }[what]


def _was_charged(ctx: ToolContext, amount: int) -> Happened | None:
    line = f"charge:{ctx.idempotency_key}:{amount}"
    return Happened(f"charged {amount}") if line in effects() else DID_NOT_HAPPEN


@tool(risk="medium", effect="once", timeout=60, reconcile=_was_charged)
def charge(ctx: ToolContext, amount: int) -> str:
    """Charge an amount; can be asked later whether it happened."""
    _pause("before-charge")
    _happen(f"charge:{ctx.idempotency_key}:{amount}")
    _pause("after-charge")
    return f"charged {amount}"


@tool(risk="high", effect="once", timeout=60)
def record(ctx: ToolContext, amount: float, z: float, b: int, a: int) -> str:
    """Write numbers down exactly as they come."""
    _happen(f"{amount!r} {z!r} {b!r} {a!r}")
    return "recorded"


@tool(risk="medium", effect="once", timeout=60)
def lose_connection(ctx: ToolContext) -> str:
    """Do it, then lose the connection before the answer."""
    _happen("lost")
    raise ConnectionResetError("connection reset by peer")


@tool(risk="medium", effect="once", timeout=60, dedupe_s=600)
def order(ctx: ToolContext, item: str, count: int) -> str:
    """Order something. The same order within ten minutes is probably a mistake."""
    if item == "nothing":
        raise ToolFailed("There is nothing to order.")
    _happen(f"order:{ctx.idempotency_key}")
    return f"ordered {count} {item}"


def _is_booked(ctx: ToolContext, place: str) -> bool:
    return effects().count(f"book:{place}") > effects().count(f"cancel:{place}")


@tool(
    risk="medium",
    effect="compensatable",
    timeout=60,
    compensate=lambda ctx, result, place: _unbook(ctx, result, place),
)
def book(ctx: ToolContext, place: str) -> dict[str, str]:
    """Book a place; a booking can be cancelled."""
    _pause("before-book")
    if place == "full":
        raise ToolFailed("There is no place left.")
    _happen(f"book:{place}")
    _pause("after-book")
    return {"booking": place}


def _unbook(ctx: ToolContext, result: object, place: str) -> str:
    _pause("before-unbook")
    if place == "sticky":
        raise ToolFailed("It cannot be cancelled any more.")
    if not _is_booked(ctx, place):
        return "there was nothing to cancel"
    assert result in (None, {"booking": place})
    _happen(f"cancel:{place}")
    _pause("after-unbook")
    return f"cancelled {place}"


def _release(ctx: ToolContext, result: object, seat: str) -> str:
    line = f"release:{ctx.idempotency_key}:{ctx.undoes_key}"
    if line not in effects():
        _happen(line)
    _pause("after-release")
    return "released"


@tool(
    risk="low",
    effect="compensatable",
    timeout=60,
    compensate=_release,
    compensate_effect="idempotent",
)
def hold_seat(ctx: ToolContext, seat: str) -> str:
    """Hold a seat until it is released."""
    _happen(f"hold:{seat}")
    return f"held {seat}"
