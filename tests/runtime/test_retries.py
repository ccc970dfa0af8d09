"""Cases D8, F7, F8: what follows a failed request depends on its class, within one budget; nobody is held meanwhile."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterator
from email.utils import format_datetime
from typing import Any

import pytest

from runtime_core import commands
from runtime_core.clock import now
from runtime_core.errors import (
    InvalidInput,
    InvalidPayload,
    ModelProtocolError,
    ModelRefused,
    ModelRejected,
    ModelUnavailable,
    RateLimited,
    SchemaUnsupported,
)
from runtime_core.gateway.schemas import plain
from runtime_core.limits import limits
from runtime_core.loop import model_step, retry
from runtime_core.loop.retry import Again, Attempt, Failures
from runtime_core.models import Run, Step
from runtime_core.queries import provenance
from runtime_core.scheduling import reconcile
from runtime_core.tools.registry import registry
from tests.gateway import provider as wire
from tests.gateway.provider import Provider, Reply
from tests.runtime.tools import effects
from tests.runtime.world import (
    World,
    actor,
    call,
    calls,
    decide_on,
    drive,
    events,
    fresh,
    open_interrupts,
    statuses,
)

MODEL = "openai-chat:gpt-5-mini"
OTHER = "openai-chat:gpt-4.1-mini"
FOURTH = "openai-chat:gpt-4o"


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    """A strict provider whose failures are tried again at once."""
    soon = dataclasses.replace(limits(), backoff_base_seconds=0.001)
    for module in (retry, model_step):
        monkeypatch.setattr(module, "limits", lambda: soon)
    with Provider() as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield running


def asked(provider: Provider) -> list[str]:
    """The models that were asked, in order."""
    return [request["model"] for request in provider.requests]


def again(error: Exception, in_a_row: int = 1, in_all: int = 1, **more: Any) -> Again | None:
    attempt = more.pop("attempt", Attempt())
    return retry.after(error, Failures(in_a_row, in_all), attempt, **more)  # type: ignore[arg-type]


def test_the_wait_has_full_jitter_and_doubles_up_to_its_most() -> None:
    error = ModelUnavailable()
    most = limits().backoff_max_seconds
    steps = [retry.delay(error, tries, jitter=1.0) for tries in range(1, 12)]
    assert steps[:4] == [1, 2, 4, 8] and steps[-1] == most
    assert retry.delay(error, 4, jitter=0.0) == 0
    waits = [retry.delay(error, 4) for _ in range(200)]
    assert 0 <= min(waits) < 2 < 6 < max(waits) <= 8


def test_two_budgets_bound_all_models_together() -> None:
    error = ModelUnavailable()
    assert again(error, limits().model_retries) and not again(error, limits().model_retries + 1)
    assert not again(error, 1, limits().model_retries_per_run + 1)
    # As far as the chain of models goes, failure by failure.
    attempt, models = Attempt(), []
    for failures in range(1, 10):
        found = again(error, failures, failures, attempt=attempt, fallbacks=[OTHER, FOURTH])
        if found is None:
            break
        attempt = found.attempt
        models.append(attempt.model)
    assert models == [None, OTHER, OTHER, FOURTH]


def test_another_model_is_asked_for_availability_alone() -> None:
    tried = Attempt(tries=5)
    for error in (ModelUnavailable(), RateLimited()):
        found = again(error, attempt=tried, fallbacks=[OTHER])
        assert found == Again(0.0, Attempt(model=OTHER))
    long = again(RateLimited(retry_after=600.0), fallbacks=[OTHER])
    assert long == Again(0.0, Attempt(model=OTHER)), "rather than wait for long"
    for error in (ModelRefused(), ModelRejected()):
        assert again(error, attempt=tried, fallbacks=[OTHER]) is None
    broken = again(ModelProtocolError(), attempt=tried, fallbacks=[OTHER])
    assert broken and broken.attempt.model is None
    once = again(SchemaUnsupported())
    assert once == Again(0.0, Attempt(plain_schemas=True))
    assert again(SchemaUnsupported(), attempt=once.attempt) is None


def test_a_fallback_answers_and_is_written_down_and_the_next_turn_asks_the_own_model(
    world: World, provider: Provider
) -> None:
    provider.then(
        wire.error(503, "Overloaded"),
        wire.error(503, "Overloaded"),
        wire.calls(("c1", "look", "{}")),
        wire.text("Done."),
    )
    run = drive(world.start([], model=MODEL, fallback_models=[OTHER]))

    assert run.status == "completed", run.error
    assert asked(provider) == ["gpt-5-mini", "gpt-5-mini", "gpt-4.1-mini", "gpt-5-mini"]
    rows = list(Step.objects.filter(run=run, kind="model").values_list("status", "detail"))
    assert [status for status, _ in rows] == ["failed", "failed", "succeeded", "succeeded"]
    assert rows[2][1]["fallback"] == OTHER and "fallback" not in rows[3][1]
    assert [e.data.get("next_model") for e in events(run, "error")] == [None, OTHER]
    assert provenance(run)["fallback_models"] == [OTHER] and provenance(run)["models_used"]


def test_the_way_it_is_tried_again_survives_the_worker(world: World, provider: Provider) -> None:
    provider.then(wire.error(503, "x"), wire.error(503, "x", retry_after="30"), wire.text("Done."))
    run = drive(world.start([], model=MODEL, fallback_models=[OTHER, FOURTH]))
    assert run.status == "completed"
    provider.replies[:] = [
        wire.error(503, "x"),
        wire.error(503, "x"),
        wire.error(503, "x", retry_after="30"),
        wire.text("Done."),
    ]
    parked = drive(world.start([], model=MODEL, fallback_models=[OTHER]))
    assert (parked.status, parked.model_failures) == ("waiting", 3)
    Run.objects.filter(id=parked.id).update(available_at=now())
    reconcile.wake_due()
    assert fresh(parked).model_failures == 3, "a wait is no new beginning of the count"
    assert drive(parked).status == "completed"
    assert asked(provider)[-2:] == ["gpt-4.1-mini", "gpt-4.1-mini"]


REFUSED: dict[str, Reply] = {
    "filter, empty": wire.stream([], "content_filter"),
    "filter, part of a text": wire.text("I would say", finish_reason="content_filter"),
    "filter, reasoning only": wire.stream([{"reasoning_content": "hm"}], "content_filter"),
    "refusal": wire.stream([{"refusal": "I cannot help with that."}], "stop"),
}
ODD = ["function_call", "model_length", "weird"]


def test_f7_a_refusal_fails_at_once_and_no_other_model_is_asked(
    world: World, provider: Provider
) -> None:
    for name, reply in REFUSED.items():
        provider.requests.clear()
        provider.replies[:] = [reply]
        run = drive(world.start([], model=MODEL, fallback_models=[OTHER], on_model_failure="ask"))
        assert (run.status, asked(provider)) == ("failed", ["gpt-5-mini"]), name
        assert run.error and run.error["code"] == "model_refused" and not run.error["retryable"]
    assert run.error and "I cannot help with that." in run.error["message"]
    for reason in ODD:
        provider.replies[:] = [wire.text("Hello", finish_reason=reason)]
        run = drive(world.start([], model=MODEL))
        assert run.status == "failed" and run.output is None, reason
        assert run.error and reason in run.error["message"]


def test_f7_an_empty_answer_is_asked_for_once_more_and_no_longer(
    world: World, provider: Provider
) -> None:
    provider.then(wire.stream([], "stop"))
    run = drive(world.start([], model=MODEL, fallback_models=[OTHER]))
    assert (run.status, len(provider.requests)) == ("failed", 2)


TOO_LONG = [
    wire.error(400, "This model's maximum context length is 8192 tokens"),
    wire.error(400, "prompt is too long: 210000 tokens > 200000 maximum"),
    wire.error(413, "Payload too large"),
    wire.error(429, "Request too large for gpt-5-mini on tokens per min"),
]


def test_f8_what_is_too_long_is_sent_once_more_and_shorter_and_never_elsewhere(
    world: World, provider: Provider
) -> None:
    for reply in TOO_LONG:
        provider.requests.clear()
        provider.replies[:] = [reply]
        run = drive(world.start([], model=MODEL, fallback_models=[OTHER]))
        assert run.status == "failed" and run.error and run.error["code"] == "context_too_long"
        assert asked(provider) == ["gpt-5-mini"] * len(provider.requests)
        assert len(provider.requests) <= 2


def _date(seconds: float) -> str:
    return format_datetime(
        now().replace(microsecond=0) + dt.timedelta(seconds=seconds), usegmt=True
    )


ASKED_WAITS: list[tuple[str | None, bool]] = [
    ("2", False), ("0", False), ("-5", False), ("0.5", False), ("2abc", False), ("", False),
    ("NaN", False), ("Infinity", False), ("999999", True), (_date(-3600), False),
    (_date(10**6), True), (None, False),
]  # fmt: skip


def test_f8_retry_after_in_every_form_parks_the_run_or_waits_shortly(
    world: World, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    agent = world.agent([], model=MODEL, name="patient")
    for status in (429, 503, 529):
        for header, parks in ASKED_WAITS:
            headers: Any = {} if header is None else {"retry_after": header}
            provider.replies[:] = [wire.error(status, "Slow down", **headers), wire.text("Ok.")]
            run = world.run_of(agent)
            with monkeypatch.context() as patch:
                patch.setattr(model_step, "pause", lambda hold, seconds: slept.append(seconds))
                run = drive(run)
            assert run.status == ("waiting" if parks else "completed"), (status, header)
            if parks:
                assert not hasattr(fresh(run), "lease"), "no worker holds it"
                commands.cancel_run(actor(world.alice), run)
                assert fresh(run).status == "cancelled"
                assert statuses(run)[-2][2] == "backoff"
    assert slept and max(slept) <= limits().park_after_seconds


def test_what_waiting_cannot_mend_fails_at_once_and_says_the_way_out(
    world: World, provider: Provider
) -> None:
    cases = {
        "API key": wire.error(401, "Incorrect API key provided", "invalid_api_key"),
        "`model`": wire.error(404, "The model does not exist", "model_not_found"),
        "quota": wire.error(429, "You exceeded your current quota", "insufficient_quota"),
    }
    for word, reply in cases.items():
        provider.requests.clear()
        provider.replies[:] = [reply]
        run = drive(world.start([], model=MODEL, fallback_models=[OTHER]))
        assert (run.status, len(provider.requests)) == ("failed", 1), word
        assert run.error and word in run.error["message"] and "then" in run.error["message"]


def test_a_schema_that_the_provider_does_not_know_is_sent_once_more_and_plainer(
    world: World, provider: Provider
) -> None:
    refuse = wire.error(
        400, "Invalid schema for function 'look': 'additionalProperties' is not permitted"
    )
    provider.then(refuse, wire.calls(("c1", "look", "{}")), wire.text("Done."))
    run = drive(world.start([], model=MODEL))
    assert run.status == "completed", run.error
    sent = [str(request["tools"]) for request in provider.requests]
    assert "additionalProperties" in sent[0]
    assert not any("additionalProperties" in later for later in sent[1:])
    provider.replies[:] = [refuse]
    provider.requests.clear()
    run = drive(world.start([], model=MODEL))
    assert (run.status, len(provider.requests)) == ("failed", 2)


def test_plain_schemas_keep_types_names_and_choices() -> None:
    schema = {
        "type": "object",
        "$defs": {"Way": {"enum": ["a", "b"], "type": "string"}, "Loop": {"$ref": "#/$defs/Loop"}},
        "properties": {
            "way": {"$ref": "#/$defs/Way", "description": "Which."},
            "maybe": {
                "anyOf": [{"type": "integer", "minimum": 3}, {"type": "null"}],
                "default": None,
            },
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "rows": {"type": "array", "items": {"type": ["string", "null"], "pattern": "x"}},
            "loop": {"$ref": "#/$defs/Loop"},
            "one": {"const": 1},
        },
        "required": ["way"],
        "additionalProperties": False,
    }
    assert plain(schema) == {
        "type": "object",
        "properties": {
            "way": {"type": "string", "enum": ["a", "b"], "description": "Which."},
            "maybe": {"type": "integer"},
            "either": {},
            "rows": {"type": "array", "items": {"type": "string"}},
            "loop": {},
            "one": {"enum": [1]},
        },
        "required": ["way"],
    }
    for tool in registry().values():
        assert "additionalProperties" not in str(plain(tool.spec.schema))


@pytest.mark.parametrize(
    "wrong",
    [{"fallback_models": ["gpt"]}, {"fallback_models": [OTHER, OTHER]},
     {"fallback_models": [f"openai-chat:m{n}" for n in range(6)]}, {"on_model_failure": "hope"}],
)  # fmt: skip
def test_a_wrong_way_out_is_refused_with_its_field(world: World, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        world.agent([{"text": "x"}], **wrong)


def test_d8_an_ambiguous_effect_is_not_repeated_and_an_identical_call_asks_anew(
    world: World,
) -> None:
    turns = [
        {"calls": [call("lose_connection")]},
        {"calls": [call("lose_connection")]},
        {"text": "ok"},
    ]
    run = drive(world.start(turns))
    assert (run.status, effects()) == ("interrupted", ["lost"])
    [unknown] = open_interrupts(run)
    assert unknown.kind == "outcome_unknown"
    decide_on(unknown, world.bob, "respond", response="unknown; do not repeat it")
    run = drive(run)
    assert (run.status, effects()) == ("interrupted", ["lost"]), "the same call is a new question"
    assert open_interrupts(run)[0].kind == "tool_approval"
    first, second = calls(run)
    assert first.idempotency_key != second.idempotency_key
    assert "Nobody could tell" in second.verdict_reason


def test_a_budget_is_looked_at_before_and_after_each_step_and_a_top_up_goes_on(
    world: World,
) -> None:
    turns = [{"calls": [call("note", text=str(n)) for n in range(3)]}, {"text": "done"}]
    run = drive(world.start(turns, limits={"max_steps": 2}))
    assert (run.status, run.steps, len(effects())) == ("paused", 2, 1), "no call beyond the budget"
    assert run.error and run.error["code"] == "budget_spent" and "2 steps" in run.error["message"]
    with pytest.raises(InvalidInput, match="higher"):
        commands.resume_run(actor(world.alice), run)
    assert fresh(run).status == "paused"
    before = fresh(run).deadline_at
    commands.resume_run(
        actor(world.alice), run, {"max_steps": 9, "deadline_s": run.deadline_s + 600}
    )
    after = fresh(run).deadline_at
    assert before and after and (after - before).total_seconds() >= 600
    run = drive(run)
    assert (run.status, len(effects())) == ("completed", 3)
    costly = [
        {"calls": [call("note", text="costly")], "usage": {"input_tokens": 5_000}},
        {"text": "x"},
    ]
    run = drive(world.start(costly, limits={"max_tokens": 1_000}))
    assert (run.status, run.steps, len(effects())) == ("paused", 1, 3)
    assert run.error and "5000 of 1000 tokens" in run.error["message"]


def test_a_person_is_asked_where_the_agent_says_so_and_the_answer_counts_once(
    world: World, provider: Provider
) -> None:
    down = [wire.error(503, "Overloaded") for _ in range(2)]
    agent = {"model": MODEL, "fallback_models": [OTHER], "on_model_failure": "ask"}
    # The results of a turn's calls must not be lost on the way.
    provider.replies[:] = [wire.calls(("c1", "look", "{}")), *[wire.error(401, "Bad key")] * 3,
                           wire.text("Done."), *down]  # fmt: skip
    run = drive(world.start([], **agent))

    assert run.status == "interrupted", run.error
    [asked_for] = open_interrupts(run)
    assert (asked_for.kind, asked_for.tool_call.tool) == ("question", "model_failed")
    assert asked_for.tool_call.args_redacted["choices"] == ["Try again", f"Use {OTHER}", "Stop"]
    with pytest.raises(InvalidPayload, match="one of Try again"):
        decide_on(asked_for, world.bob, "respond", response="whatever")
    decide_on(asked_for, world.bob, "respond", response="Try again")
    run = drive(run)
    assert run.status == "interrupted", "the key is still wrong, which is asked anew"
    decide_on(open_interrupts(run)[0], world.bob, "respond", response=f"Use {OTHER}")
    run = drive(run)
    assert run.status == "interrupted" and asked(provider)[-1] == "gpt-4.1-mini"
    assert open_interrupts(run)[0].tool_call.args_redacted["choices"] == ["Try again", "Stop"]
    decide_on(open_interrupts(run)[0], world.bob, "respond", response="Try again")
    run = drive(run)

    assert (run.status, run.output) == ("completed", "Done.")
    assert asked(provider)[-1] == "gpt-5-mini"
    told = [m for m in provider.requests[-1]["messages"] if m["role"] == "tool"]
    assert [m["tool_call_id"] for m in told] == ["c1"], (
        "the conversation knows nothing of the questions"
    )


def test_a_person_stops_a_run_whose_model_fails(world: World, provider: Provider) -> None:
    provider.replies[:] = [wire.error(401, "Bad key")]
    for action, more in (("respond", {"response": "Stop"}), ("reject", {"reason": "no"})):
        run = drive(world.start([], model=MODEL, on_model_failure="ask"))
        decide_on(open_interrupts(run)[0], world.bob, action, **more)
        run = drive(run)
        assert run.status == "failed", action
        assert (
            run.error and run.error["code"] == "model_failed" and "API key" in run.error["message"]
        )
    run = drive(world.start([], model=MODEL, on_model_failure="ask"))
    commands.cancel_run(actor(world.alice), run)
    assert (fresh(run).status, open_interrupts(run)) == ("cancelled", [])
    again = drive(world.start([], model=MODEL, thread_id=run.thread_id))
    assert again.status == "failed" and provider.refused == [], "the thread can be used again"
    with pytest.raises(InvalidInput, match="runtime's own"):
        world.agent([{"text": "x"}], tools=["model_failed"])
