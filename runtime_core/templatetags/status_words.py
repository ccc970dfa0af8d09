"""The one table of how a state looks: tone, icon, words and a sentence. Data only, no HTML."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Look:
    """How one state or risk is shown; colour is never the only sign, so all four are there."""

    tone: str
    icon: str
    words: str
    sentence: str


RUN = {
    "pending": Look("neutral", "ring-dashed", "Queued", "Waiting for a free worker."),
    "running": Look("info", "dot", "Running", "A worker is advancing this run now."),
    "waiting": Look("info", "half", "Waiting", "Nobody holds it: a timer or another run wakes it."),
    "interrupted": Look("wait", "clock", "Waiting for approval", "Stopped until a person decides."),
    "paused": Look("pause", "pause", "Paused", "A budget is spent or an operator paused it."),
    "completed": Look("ok", "check", "Completed", "Ended with an answer."),
    "failed": Look("bad", "cross", "Failed", "Ended with an error."),
    "cancelled": Look("neutral", "ban", "Cancelled", "Stopped on request; nothing of it runs."),
    "timed_out": Look("late", "hourglass", "Timed out", "Its deadline passed."),
    "cancelling": Look("wait", "ban", "Cancelling…", "Asked to stop; some part is still ending."),
}

TOOL_CALL = {
    "proposed": Look("neutral", "ring-dashed", "Proposed", "The model asked for it."),
    "awaiting_approval": Look("wait", "clock", "Awaiting approval", "A person must decide first."),
    "approved": Look("ok", "check", "Approved", "A person allowed it."),
    "executing": Look("info", "dot", "Executing", "The tool is at work."),
    "succeeded": Look("ok", "check", "Succeeded", "The tool returned a result."),
    "failed": Look("bad", "cross", "Failed", "The tool returned an error."),
    "rejected": Look("bad", "cross", "Rejected", "A person or a rule refused it."),
    "unknown": Look("late", "question", "Outcome unknown", "It may or may not have happened."),
    "skipped": Look("neutral", "ban", "Skipped", "It was never started."),
    "compensated": Look("pause", "undo", "Compensated", "Its effect was taken back."),
    "cancelled": Look("neutral", "ban", "Cancelled", "Stopped before it ended."),
}

INTERRUPT = {
    "open": Look("wait", "clock", "Waiting for a decision", "Nobody has decided yet."),
    "approved": Look("ok", "check", "Approved", "A person allowed it as it was asked."),
    "rejected": Look("bad", "cross", "Rejected", "A person refused it."),
    "edited": Look("ok", "edit", "Approved with edits", "A person changed it and allowed that."),
    "answered": Look("ok", "check", "Answered", "A person answered the question."),
    "expired": Look(
        "late", "hourglass", "Expired", "Nobody decided in time: it counts as refused."
    ),
    "withdrawn": Look("neutral", "ban", "Withdrawn", "The run ended before a decision."),
}

STEP = {
    "pending": Look("neutral", "ring-dashed", "Pending", "Not started."),
    "running": Look("info", "dot", "Running", "At work now."),
    "done": Look("ok", "check", "Done", "Finished."),
    "error": Look("bad", "cross", "Error", "Ended with an error."),
    "ok": Look("ok", "check", "OK", "Finished without an error."),
    "unset": Look("neutral", "ring", "Open", "Not finished yet."),
}

SPAN = {
    "open": Look("info", "dot", "Open", "Still going on."),
    "ok": STEP["ok"],
    "error": STEP["error"],
    "cancelled": Look("neutral", "ban", "Cancelled", "Ended because somebody stopped it."),
    "abandoned": Look("late", "alert", "Abandoned", "Its worker was lost; another one went on."),
}
FAMILIES = {"run": RUN, "tool_call": TOOL_CALL, "interrupt": INTERRUPT, "step": STEP, "span": SPAN}

RISK = {
    "low": Look("neutral", "ring", "low", "Low risk: little can go wrong."),
    "medium": Look("wait", "dot", "medium", "Medium risk: what it changes can be put right."),
    "high": Look("bad", "triangle", "high", "High risk: reaches outside or is hard to undo."),
    "critical": Look("bad", "diamond", "critical", "Critical risk: cannot be undone."),
}

EVENT_ICON = {
    "run_status": "flag",
    "step_start": "step",
    "text_delta": "text",
    "tool_call_start": "tool",
    "tool_call_result": "check",
    "progress": "dot",
    "checkpoint": "lock",
    "interrupt": "clock",
    "error": "cross",
    "done": "flag",
}


def look_of(status: str, family: str = "") -> Look:
    """The look of `status`, searched in `family` first; an unknown word is shown as it is."""
    tables = [FAMILIES[family]] if family in FAMILIES else []
    for table in [*tables, *FAMILIES.values()]:
        if status in table:
            return table[status]
    return Look("neutral", "ring", status.replace("_", " ").capitalize() or "–", "")
