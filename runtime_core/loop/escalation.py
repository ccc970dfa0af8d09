"""Asks a person how a run goes on whose model failed too often, and reads the answer.

The question is a call in the ledger of a tool that no model is offered, so that it is decided, audited and
withdrawn like every other request; the conversation knows nothing of it.
"""

from __future__ import annotations

from runtime_core.errors import ModelError, ModelRefused, ScriptEnded
from runtime_core.ids import new_id
from runtime_core.loop import retry
from runtime_core.loop.continuation import Continuation, ask
from runtime_core.loop.outcome import Ask
from runtime_core.loop.retry import Attempt
from runtime_core.loop.work import OpenStep, Work
from runtime_core.models import Run, Step, ToolCall
from runtime_core.sanitize import canonical, clip
from runtime_core.states import CallStatus
from runtime_core.tools import ledger, registry
from runtime_core.tools.builtin.question import MODEL_FAILED, TRY_AGAIN, USE
from runtime_core.tools.ledger import CallRecord

_QUESTION_BYTES = 3_000


def wanted(work: Work, error: ModelError) -> bool:
    """True if the agent asks a person then. A refusal is never asked around, and a script has nothing else to say."""
    asks = work.definition.get("on_model_failure") == "ask"
    return asks and not isinstance(error, ModelRefused | ScriptEnded)


def question(work: Work, step: OpenStep, message: str, failures: int) -> Continuation:
    """What opens the question: its call in the ledger, its interrupt, and what tells of them. `message` is redacted."""
    call = _call(work, step, message, failures)
    result = Continuation(Ask(), [call])
    ask(work, result)
    return result


def answered(run: Run, fallbacks: list[str]) -> Attempt | None:
    """How the next request is made, if the last thing that happened to the run is such an answer."""
    last = Step.objects.filter(run_id=run.id, kind="model").order_by("-index").first()
    if last is None or last.status != "failed":
        return None
    call = ToolCall.objects.filter(run_id=run.id, step=last.index, tool=MODEL_FAILED).first()
    if call is None:
        return None
    before = Attempt.of(last.detail.get("next"))
    text = call.result_text or ""
    if call.status != CallStatus.SUCCEEDED.value or not text.startswith((TRY_AGAIN, USE)):
        return Attempt(stop=str(last.detail.get("message", "")))
    model = text.removeprefix(USE) if text.startswith(USE) else None
    return Attempt(model=model if model in fallbacks else None, plain_schemas=before.plain_schemas)


def _call(work: Work, step: OpenStep, message: str, failures: int) -> CallRecord:
    tool = registry()[MODEL_FAILED]
    times = "once" if failures == 1 else f"{failures} times"
    text, _ = clip(message, _QUESTION_BYTES)
    other = retry.next_model(work.attempt.model, work.definition.get("fallback_models", ()))
    choices = [TRY_AGAIN, *([f"{USE}{other}"] if other else []), "Stop"]
    asked = f"The model failed {times} and nothing more is tried by itself. {text} How should the run go on?"
    args = canonical({"question": asked, "choices": choices})
    return CallRecord(
        id=new_id(),
        step=step.index,
        position=0,
        call_id=f"model_failed_{step.index}",
        tool=MODEL_FAILED,
        effect=tool.spec.effect,
        risk=tool.spec.risk,
        status=CallStatus.AWAITING_APPROVAL,
        args_text=args,
        schema_digest=tool.spec.digest,
        idempotency_key=ledger.key_of(work.run_id, step.index, 0, args),
        args_redacted=ledger.redacted_args(MODEL_FAILED, args),
        verdict_reason="The agent asks a person where its model fails.",
    )
