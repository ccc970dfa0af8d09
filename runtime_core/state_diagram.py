"""The run's state machine as text, generated from the table of moves so that the page cannot disagree with it."""

from __future__ import annotations

from runtime_core.states import ENDED, RUN_MOVES, RunStatus

PAGE = "docs/state_machine.md"

_MEANING = {
    RunStatus.PENDING: "queued; the next free worker claims it",
    RunStatus.RUNNING: "one worker holds it by a lease",
    RunStatus.WAITING: "nobody holds it until a time comes (back-off), its children end, or a quota has a place",
    RunStatus.INTERRUPTED: "a person must decide; nothing runs, nothing is held",
    RunStatus.PAUSED: "a budget is spent or an operator pressed pause; topping up or resuming goes on",
    RunStatus.COMPLETED: "ended with an answer",
    RunStatus.FAILED: "ended with an error; a person may retry it from its last checkpoint",
    RunStatus.CANCELLED: "ended because somebody asked for it, and everything it had started is gone",
    RunStatus.TIMED_OUT: "ended by its deadline; a person may retry it",
}


def page() -> str:
    """The whole page, as Markdown with a Mermaid diagram."""
    return "\n".join(
        [
            "# The states of a run",
            "",
            "Generated from `RUN_MOVES` in `runtime_core/states.py` by `manage.py state_diagram`; a test keeps it so.",
            "Every change of a run's status is one line of this table, made by `runtime_core/transitions.py` alone.",
            "",
            "```mermaid",
            "stateDiagram-v2",
            "    [*] --> pending: created",
            *_arrows(),
            *(f"    {status.value} --> [*]" for status in RunStatus if status in ENDED),
            "```",
            "",
            "| status | means |",
            "|---|---|",
            *(f"| `{status.value}` | {_MEANING[status]} |" for status in RunStatus),
            "",
            "| from | to | cause |",
            "|---|---|---|",
            *_rows(),
            "",
            "A wish to cancel is a fact on the run (`cancel_requested_at`), not a status: pages show *cancelling*",
            "until the model's stream is closed and every process is gone, and only then the run becomes `cancelled`.",
            "A run that lost its worker is only queued again: it comes back through the ordinary claim.",
            "",
        ]
    )


def _arrows() -> list[str]:
    return [
        f"    {source.value} --> {target.value}: {', '.join(sorted(causes))}"
        for (source, target), causes in RUN_MOVES.items()
    ]


def _rows() -> list[str]:
    return [
        f"| `{source.value}` | `{target.value}` | {', '.join(sorted(causes))} |"
        for (source, target), causes in RUN_MOVES.items()
    ]
