"""Figures and the table they are printed as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

HEAD = ("figure", "ours", "floor", "ratio", "p50 ms", "p99 ms", "goal")


@dataclass(frozen=True)
class Figure:
    """One row: a rate with its floor and ratio, or a latency, or a count."""

    name: str
    ours: str = ""
    floor: str = ""
    ratio: str = ""
    p50: str = ""
    p99: str = ""
    goal: str = ""

    @classmethod
    def latency(cls, name: str, seconds: Sequence[float], goal: str) -> Figure:
        """p50 and p99 of these times; with fewer than a hundred, the p99 is the slowest."""
        ordered = sorted(seconds)
        middle = ordered[len(ordered) // 2]
        last = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
        return cls(
            name, f"n={len(ordered)}", p50=f"{middle * 1e3:.1f}", p99=f"{last * 1e3:.1f}", goal=goal
        )

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.name, self.ours, self.floor, self.ratio, self.p50, self.p99, self.goal)


def shown(figures: Sequence[Figure]) -> str:
    """The table as Markdown, which is also how docs/performance.md has it."""
    rows = [HEAD, *(figure.cells for figure in figures)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(HEAD))]
    lines = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) + " |" for r in rows
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])
