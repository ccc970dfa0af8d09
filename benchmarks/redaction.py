"""Print what the redaction engine finds, what it spoils, how fast it is, and that streams agree.

Run from the repository: `python benchmarks/redaction.py`.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.redaction import transcripts
from tests.redaction.corpus import is_changed, leaks, load_rows, redact_row, survives
from tests.redaction.generality import NEGATIVES, POSITIVES
from tests.redaction.hostile import GENERATORS
from tests.redaction.test_known_values import ENGINE as KNOWING
from tests.redaction.test_known_values import VALUES, WRAPPINGS
from traces.redact import Engine

ENGINE = Engine(key=b"benchmark")


def main(*, quick: bool = False) -> None:
    """Print every figure; `quick` leaves out what takes longest, every cut of every row and hostile texts."""
    _print_recall()
    _print_generality()
    _print_known_values()
    _print_speed()
    _print_hold_back()
    if not quick:
        _print_streams()
        _print_hostile()


def _print_recall() -> None:
    total: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    changed = harmless = 0
    for row in load_rows():
        redacted = redact_row(ENGINE, row)
        if row["label"]:
            total[row["kind"]] += 1
            missed[row["kind"]] += bool(leaks(row, redacted))
        else:
            harmless += 1
            changed += is_changed(row, redacted)
    print("recall by kind (development corpus)")
    for kind in sorted(total):
        print(f"  {kind:28} {total[kind] - missed[kind]:3}/{total[kind]}")
    found = total.total() - missed.total()
    print(f"  all secrets {found}/{total.total()}, false hits {changed}/{harmless}")


def _print_generality() -> None:
    found = sum(
        not any(survives(secret, ENGINE.text(text)) for secret in secrets)
        for _, text, secrets in POSITIVES
    )
    changed = sum(ENGINE.text(text) != text for _, text in NEGATIVES)
    print(f"own rows: found {found}/{len(POSITIVES)}, false hits {changed}/{len(NEGATIVES)}")
    texts, harmless = transcripts.POSITIVES, transcripts.NEGATIVES
    found = sum(not any(s in ENGINE.text(text) for s in secrets) for text, secrets in texts)
    changed = sum(ENGINE.text(text) != text for text in harmless)
    print(
        f"texts as agents meet them: found {found}/{len(texts)}, false hits {changed}/{len(harmless)} "
        "(before anything was mended for them: 63/70 and 0/70)"
    )


def _print_known_values() -> None:
    print(f"known values found, of {len(VALUES)}")
    for name, wrap in WRAPPINGS.items():
        found = sum("[REDACTED:" in KNOWING.text(wrap(value)) for value in VALUES)
        print(f"  {name:14} {found}")


def _print_speed() -> None:
    event = {"id": 7, "usage": {"input_tokens": 12}, "msg": "tool result 7 ok", "name": "weather"}
    samples = {
        "code": _code(),
        "prose": "The agent read the order 12345 and asked for approval of the refund. " * 7_000,
        "log": "2026-11-02T10:11:12Z INFO GET /api/v1/items/41 200 12ms user=42 trace=4bf92f3577b3\n"
        * 6_000,
        "json": json.dumps([event] * 6_000),
    }
    for name, text in samples.items():
        seconds = _seconds(lambda text=text: ENGINE.text(text))
        print(f"speed {name:6} {len(text) / 1e6 / seconds:5.1f} MB/s")
    piece = samples["code"][50_000:58_192]
    times = sorted(_seconds(lambda: ENGINE.text(piece)) for _ in range(40))
    print(f"8 KB event p95 {times[37] * 1e3:.1f} ms")


def _code() -> str:
    folder = Path(json.__file__).parent.parent
    return "".join(
        (folder / name).read_text(encoding="utf-8")
        for name in ("typing.py", "argparse.py", "inspect.py", "subprocess.py", "turtle.py")
    )


def _print_streams() -> None:
    cuts = unequal = 0
    for row in load_rows():
        text = row["text"]
        if len(text) >= 200:
            continue
        whole = ENGINE.text(text)
        for cut in range(1, len(text)):
            stream = ENGINE.stream()
            cuts += 1
            unequal += stream.feed(text[:cut]) + stream.feed(text[cut:]) + stream.end() != whole
    print(f"streams: {cuts} cuts, {unequal} unequal")


def _print_hold_back() -> None:
    held, longest = [], 0.0
    stream = ENGINE.stream()
    prose = "The run finished, and the plan for tomorrow is to look at the warnings with the team. "
    for start in range(0, len(prose) * 40, 5):
        piece = (prose * 40)[start : start + 5]
        longest = max(longest, _seconds(lambda piece=piece: stream.feed(piece)))
        held.append(stream.held)
    print(
        f"hold-back median {statistics.median(held)} characters, slowest piece {longest * 1e3:.1f} ms"
    )


def _print_hostile() -> None:
    took = {
        name: [_seconds(lambda make=make, n=n: ENGINE.text(make(n))) for n in (20_000, 80_000)]
        for name, make in GENERATORS.items()
    }
    slowest = max(took, key=lambda name: took[name][1])
    steepest = max(took, key=lambda name: took[name][1] / max(took[name][0], 0.02))
    ratio = took[steepest][1] / max(took[steepest][0], 0.02)
    print(f"hostile texts ({len(took)}): slowest of 80 KB {slowest!r} {took[slowest][1]:.2f} s")
    print(f"  four times the text takes at most {ratio:.1f} times as long ({steepest!r})")


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return max(time.process_time() - start, 1e-9)


if __name__ == "__main__":
    main()
