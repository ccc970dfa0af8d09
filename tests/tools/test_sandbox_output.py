"""Output is bounded, and whatever its bytes are it neither breaks the call nor its exit code."""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runtime_core.limits import limits
from runtime_core.tools import ToolContext
from runtime_core.tools.sandbox import Completed, Sandbox, SandboxLimits


def run(workspace: Path, *argv: str, timeout: float = 20) -> Completed:
    return Sandbox().run(list(argv), workspace=workspace, timeout=timeout, stop=threading.Event())


def _rss() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


@pytest.mark.parametrize(
    "command",
    [
        "yes",
        "cat /dev/zero",
        "head -c 3000000000 /dev/urandom",
        "seq 100000000",
        "head -c 500000000 /dev/zero | tr '\\0' 'x'",
        "yes out & yes err >&2",
    ],
)
def test_i2_a_flood_is_cut_and_counted(workspace: Path, command: str) -> None:
    before = _rss()
    pieces: list[str] = []
    done = Sandbox().run(
        ["sh", "-c", command],
        workspace=workspace,
        timeout=20,
        stop=threading.Event(),
        on_output=pieces.append,
    )
    assert done.status == "output_limit"
    assert _rss() - before < 100_000_000
    assert len(pieces) <= 200
    assert sum(len(piece) for piece in pieces) <= 1_000_000
    assert done.dropped_bytes > SandboxLimits().output_bytes - 2 * limits().tool_result_bytes
    assert done.binary or f"{done.dropped_bytes} bytes" in done.output
    assert len(done.output.encode()) < 2 * limits().tool_result_bytes


def test_i2_a_slow_trickle_ends_at_its_time(workspace: Path) -> None:
    trickle = "while :; do printf x; sleep 0.001; done"
    pieces: list[str] = []
    started = time.monotonic()
    done = Sandbox().run(
        ["sh", "-c", trickle],
        workspace=workspace,
        timeout=2,
        stop=threading.Event(),
        on_output=pieces.append,
    )
    assert done.status == "timed_out"
    assert time.monotonic() - started < 4
    assert set(done.output) == {"x"}
    assert 1 <= len(pieces) <= 12


def test_it_keeps_the_beginning_and_the_end(workspace: Path) -> None:
    done = run(workspace, "seq", "100000")
    assert done.status == "exited"
    assert done.output.startswith("1\n2\n3\n")
    assert done.output.endswith("99999\n100000\n")
    assert done.dropped_bytes > 0


@pytest.mark.parametrize(
    ("command", "output", "binary"),
    [
        (r"printf '\360'", "[binary output: 1 bytes, sha256 ", True),
        ("head -c 100000 /dev/urandom", "[binary output: 100000 bytes, sha256 ", True),
        (r"printf '\303'; sleep 1; printf '\251'", "é", False),
        (r"printf 'a\000b'", "[binary output: 3 bytes, sha256 ", True),
        (r"printf '\377\376h\000i\000'", "[binary output: 6 bytes, sha256 ", True),
        (r"printf 'caf\351'", "caf�", False),
        (r"printf '\033[31mred\033[0m 1%%\r100%%\n'", "\x1b[31mred\x1b[0m 1%\r100%\n", False),
        (r"touch \"$(printf 'n\377\376ame')\"; ls", "", False),
    ],
)
def test_i4_any_bytes_end_well(workspace: Path, command: str, output: str, binary: bool) -> None:
    done = run(workspace, "sh", "-c", f"{command}; exit 7")
    assert (done.status, done.exit_code, done.binary) == ("exited", 7, binary)
    assert done.output.startswith(output)
    if not binary and output:
        assert done.output == output


def test_i4_output_after_bad_bytes_is_not_lost(workspace: Path) -> None:
    done = run(workspace, "sh", "-c", r"printf 'before \360 '; echo and a long enough end")
    assert done.output == "before � and a long enough end\n"


def test_a_secret_that_is_printed_in_two_pieces_is_in_neither(
    make_ctx: Callable[..., ToolContext],
) -> None:
    told: list[str] = []
    ctx = make_ctx(on_progress=lambda text, _fraction: told.append(text))
    halves = "printf 'key ghp_aB3dE5gH7jK9mN1p'; sleep 0.6; printf 'Q3sT5vW7yZ9bC1dE3fG5\\nso much for this line\\n'"

    done = ctx.run_command(["sh", "-c", f"echo begin; {halves}; sleep 0.6; seq 20; sleep 0.6"])

    assert done.status == "exited"
    assert "so much" in "".join(told)
    assert not [piece for piece in told if "aB3dE5" in piece or "bC1dE3" in piece]


def test_a_half_secret_at_the_end_is_left_to_the_result(
    make_ctx: Callable[..., ToolContext],
) -> None:
    told: list[str] = []
    ctx = make_ctx(on_progress=lambda text, _fraction: told.append(text))

    ctx.run_command(["sh", "-c", "printf 'key ghp_aB3dE5gH7jK9mN1p'; sleep 0.6"])

    assert "ghp_aB3d" not in "".join(told)


def test_what_a_flood_cut_in_two_is_not_shown_as_news(workspace: Path) -> None:
    pieces: list[str] = []
    flood = "printf 'ghp_%05000d' 7; echo; echo whole line; sleep 0.6"

    Sandbox().run(
        ["sh", "-c", flood],
        workspace=workspace,
        timeout=20,
        stop=threading.Event(),
        on_output=pieces.append,
    )

    assert "".join(pieces) == "whole line\n"
