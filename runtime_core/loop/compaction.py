"""What a model is sent of a long conversation, and the record of what it is no longer sent.

The conversation itself is only ever appended to: a compaction moves a mark, kept in the checkpoints, below which whole
groups are left out of the requests.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_ai.messages import ModelMessage

from runtime_core.gateway import window
from runtime_core.limits import limits
from runtime_core.loop.work import Work, checkpoint_event
from runtime_core.states import CheckpointReason
from runtime_core.transitions import NewEvent, StepCommit

# A character is at most four bytes, so nothing lighter than this needs to be weighed exactly.
_BYTES_A_CHARACTER = 4


def fitting(work: Work, request: Sequence[ModelMessage]) -> tuple[ModelMessage, ...]:
    """The messages to send: all of them while they fit the model's window.

    A compaction is committed, as a checkpoint and a word to who watches, before anything is sent by it.
    """
    messages = (*work.history, *request)
    room = work.room or window.room_of(
        work.definition.get("context_tokens") or limits().context_tokens
    )
    weight = work.weight + sum(len(call.result_text or "") for call in work.calls)
    if not work.cut and weight * _BYTES_A_CHARACTER <= room:
        return messages
    fitted = window.fit(messages, room, work.cut)
    if fitted.cut > work.cut:
        work.cut = fitted.cut
        _record(work)
    return fitted.messages


def tighten(work: Work, request: Sequence[ModelMessage]) -> bool:
    """Send half as much from now on: the model said that it was too long. False if that was done before."""
    if work.room is not None:
        return False
    work.room = max(window.size_of(fitting(work, request)) // 2, 1)
    return True


def _record(work: Work) -> None:
    step = work.step.index if work.step else work.next_step
    point = work.point(CheckpointReason.COMPACTION, step)
    count = f"{work.cut} older message{'s' if work.cut > 1 else ''}"
    text = f"The conversation nearly fills the model's window: {count} are no longer sent. They stay stored."
    work.commit(
        StepCommit(
            next_step=work.next_step,
            checkpoints=[point],
            events=[NewEvent("progress", {"message": text}, step), checkpoint_event(point, step)],
            model_failures=work.model_failures,
            progress=False,
        )
    )
