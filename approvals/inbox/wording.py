"""The words of the inbox by kind of request, so that no template decides what a button promises.
Data only.
"""

from __future__ import annotations

from dataclasses import dataclass

from runtime_core.states import InterruptKind


@dataclass(frozen=True, slots=True)
class Words:
    """Heading and labels of one kind of request; an action without a label is not offered."""

    heading: str
    approve: str = ""
    edit: str = ""
    respond: str = ""
    respond_hint: str = ""
    respond_label: str = "Answer"
    reject: str = ""
    reject_hint: str = "The agent reads this and goes on without running the call."
    names_tool: bool = True


WORDS = {
    InterruptKind.TOOL_APPROVAL: Words(
        heading="wants to run",
        approve="Approve",
        edit="Approve with edits",
        respond="Answer instead",
        respond_hint="The call is not run; the agent gets this text as its result.",
        reject="Reject",
    ),
    InterruptKind.QUESTION: Words(
        heading="asks a question",
        names_tool=False,
        respond="Send answer",
        respond_hint="The agent reads this as the answer to its question.",
        reject="Decline to answer",
        reject_hint="The agent reads this and goes on without an answer.",
    ),
    InterruptKind.OUTCOME_UNKNOWN: Words(
        heading="does not know the outcome of",
        approve="It did not happen: run it again",
        respond="It happened: record the result",
        respond_label="Result",
        respond_hint="The call is not run again; the agent gets this as its result.",
        reject="Stop the run",
        reject_hint="The run ends as failed. What it did before stays done.",
    ),
    InterruptKind.DRIFT: Words(
        heading="must ask again about",
        approve="Approve what is there now",
        reject="Reject",
    ),
}

REJECT_REASONS = (
    "Not needed for this task.",
    "Too broad: limit it to what the task names.",
    "The values are wrong; check them and ask again.",
)


def words_of(kind: str) -> Words:
    """The words of a kind of request."""
    return WORDS[InterruptKind(kind)]
