"""Figures and the table they are printed as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

HEAD = ("figure", "ours", "floor", "ratio", "p50 ms", "p99 ms", "goal", "best peer")

# By the number that a figure's name begins with: the best of the products that were measured with the same
# workload on a machine like this, PostgreSQL at full durability wherever the product has a database.
PEERS = {
    "1": "LangGraph 0.151 R",
    "2": "LangGraph 0.039 R",
    "3": "LangGraph 0.053 R",
    "5": "DBOS 1, LangGraph 2",
    "6": "LangGraph 3.0 kB, 8.4 to 40.5 by default",
    "7": "LangGraph 7.4 ms",
    "8": "DBOS 4.4 / 10.6 ms",
    "9": "LangGraph server 12.2 / 14.6 ms patched, not durable; 834 / 994 stock",
    "10": "LangGraph server 12 / 16 ms patched; 515 / 1,000 stock; x2.7",
    "11": "LangGraph server 11.8 / 19.7 ms patched; 778 / 997 stock",
    "12": "Celery 1.5 / 3.3 ms, not durable; DBOS 14.8 / 27.7",
    "13": "LangGraph server 235/s patched, not durable; 8.1 stock",
    "14": "LangGraph server 2,708 / 6,867 tokens/s; 13.9 ms",
    "15": "Channels 148 / 29 events/s",
    "16": "Channels p99 38 / 80 ms",
    "17": "Phoenix 223/s, 0.043 R",
    "18": "Phoenix 1,800 ms per 1,000",
}


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
        peer = PEERS.get(self.name.partition(":")[0], "")
        return (self.name, self.ours, self.floor, self.ratio, self.p50, self.p99, self.goal, peer)


def shown(figures: Sequence[Figure]) -> str:
    """The table as Markdown, which is also how docs/performance.md has it."""
    rows = [HEAD, *(figure.cells for figure in figures)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(HEAD))]
    lines = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) + " |" for r in rows
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])
