"""What an asked call is bound to: noted when it is asked, compared before it runs, shown where it differs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from runtime_core import prepared
from runtime_core.loop.work import Work
from runtime_core.models import AgentVersion, Interrupt
from runtime_core.states import InterruptStatus
from runtime_core.tools import bound
from runtime_core.tools.ledger import CallRecord
from runtime_core.values import ApprovalTerms, Effect, Json

_DECIDED = (InterruptStatus.APPROVED.value, InterruptStatus.EDITED.value)
_VERSION = "version"
_NUMBER = """
SELECT number FROM agent JOIN agent_version ON agent_version.id = agent.current_id WHERE agent.id = %(agent)s
"""


def bound_now(work: Work, call: CallRecord, seen: Collection[str] = ()) -> dict[str, Json]:
    """Tool, agent and files as they are now; of files `seen` before also that they are gone."""
    row = prepared.one(_NUMBER, {"agent": work.run.agent_id})
    number = row[0] if row else None
    tool = work.tools.get(call.tool)
    return bound.bound_to(tool, call.args, {_VERSION: number}, work.workspace, seen)


def drifted(work: Work, call: CallRecord, asked: Interrupt | None) -> str:
    """Why what was asked is not what would run now, beside tool and arguments; nothing if it is."""
    if asked is None or not asked.bound:
        return ""
    before = dict(asked.bound)
    if _has_acted_since(work, call, asked):
        # What the run itself did meanwhile, with permission, is no surprise.
        before.pop("files", None)
    return bound.drifted(before, bound_now(work, call, before.get("files") or {}))


def changes_since(
    work: Work, call: CallRecord, now: dict[str, Any], terms: ApprovalTerms
) -> list[dict[str, Json]]:
    """What differs between what people last let run and what stands there now."""
    decided = Interrupt.objects.filter(tool_call_id=call.id, status__in=_DECIDED)
    asked = decided.order_by("-decided_at").first()
    if asked is None:
        return []
    before: dict[str, Any] = {
        **asked.bound,
        "arguments": asked.detail.get("edited_args", asked.detail.get("args")),
    }
    after: dict[str, Any] = {**now, "arguments": call.args_redacted}
    if asked.terms:
        before["policy"], after["policy"] = asked.terms, terms.terms
    versions = [side.get("agent", {}).get(_VERSION) for side in (before, after)]
    if None not in versions and versions[0] != versions[1]:
        before["agent"], after["agent"] = (_definition(work, number) for number in versions)
    shared = before.keys() & after.keys()
    return bound.differences(
        {key: before[key] for key in shared}, {key: after[key] for key in shared}
    )


def _has_acted_since(work: Work, call: CallRecord, asked: Interrupt) -> bool:
    return any(
        other.id != call.id
        and other.effect is not Effect.READ
        and other.started_at is not None
        and other.started_at >= asked.created_at
        for other in work.calls
    )


def _definition(work: Work, number: int) -> dict[str, Json]:
    version = AgentVersion.objects.filter(agent_id=work.run.agent_id, number=number).first()
    return {_VERSION: number, **(version.definition if version else {})}
