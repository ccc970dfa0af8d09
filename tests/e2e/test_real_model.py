"""The demo's agents on a model that is reached over the network, by the settings that a user would write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from evals.shop.demo_orders import seed
from evals.shop.models import Order, Refund
from runtime_core import commands
from runtime_core.demo import AGENTS, definitions
from runtime_core.models import Run
from tests.gateway.provider import Provider, Reply, calls, text
from tests.runtime.workers import Worker, advance
from tests.runtime.world import (
    World,
    actor,
    decide_on,
    events,
    fresh,
    make_world,
    open_interrupts,
    statuses,
    texts,
    wait_until,
)

pytestmark = pytest.mark.timeout(120)

LOOK = json.dumps({"order_id": "A-1001"})
REFUND = json.dumps({"order_id": "A-1001", "amount": "24.90", "reason": "Arrived broken"})


@pytest.fixture
def world(transactional_db: None) -> World:
    seed()
    return make_world()


def run_with(
    world: World, env: dict[str, str], provider: Provider, agent: str, task: str
) -> tuple[Run, Worker]:
    """A run of one of the demo's agents, and a worker whose settings name the provider's model."""
    (definition,) = [
        one for one in definitions(Path(settings.BASE_DIR) / AGENTS) if one["name"] == agent
    ]
    assert definition["script"] and "model" not in definition
    commands.apply_agent(actor(world.alice), world.project, definition)
    more = {
        "INTERLOCK_MODEL": "openai-chat:x",
        "OPENAI_BASE_URL": provider.base_url,
        "OPENAI_API_KEY": "not-a-real-key",
    }
    worker = Worker({**env, **more}).start()
    run = commands.start_run(actor(world.alice), project=world.project, agent=agent, input=task)
    advance(run.id)
    return run, worker


def test_the_refund_desk_works_on_a_real_model(
    world: World, process_env: dict[str, str], broker: object
) -> None:
    with Provider() as provider:
        provider.then(
            calls(("call_1", "lookup_order", LOOK), content="Let me look it up."),
            calls(("call_2", "issue_refund", REFUND), content="I would refund all of it."),
            text("The refund is on its way."),
        )
        run, worker = run_with(
            world, process_env, provider, "refund-desk", "Order A-1001 is broken."
        )
        try:
            (asked,) = wait_until(lambda: open_interrupts(run), 40, "it asks")
            assert not Refund.objects.exists()
            decide_on(asked, world.bob)
            wait_until(lambda: fresh(run).state.ended, 40, "it ends")
        finally:
            worker.stop()

    ended = fresh(run)
    assert (ended.status, ended.output) == ("completed", "The refund is on its way."), ended.error
    assert ended.input_tokens == 300 and ended.output_tokens == 60
    assert [refund.order.number for refund in Refund.objects.select_related("order")] == ["A-1001"]
    assert Order.objects.get(number="A-1001").refundable() == 0
    assert list(texts(run).values()) == [
        "Let me look it up.", "I would refund all of it.", "The refund is on its way.",
    ]  # fmt: skip
    assert [move[1] for move in statuses(run)][-1] == "completed"
    assert provider.refused == []
    assert set(provider.keys) == {"Bearer not-a-real-key"}
    first, second, third = provider.requests
    assert {one["function"]["name"] for one in first["tools"]} == {"lookup_order", "issue_refund"}
    assert first["messages"][-1]["role"] == "user" and first["model"] == "x"
    assert told(second, "call_1")["item"]
    assert told(third, "call_2")["order_id"] == "A-1001"


def test_the_code_fixer_works_on_a_real_model(
    world: World, process_env: dict[str, str], broker: object
) -> None:
    with Provider() as provider:
        provider.then(
            calls(
                ("call_1", "read_file", json.dumps({"path": "slugify/text.py"})),
                ("call_2", "run_command", json.dumps({"argv": ["python3", "-m", "unittest"]})),
            ),
            calls(
                (
                    "call_3",
                    "write_file",
                    json.dumps({"path": "NOTES.md", "content": "Look here.\n"}),
                )
            ),
            _answer_from_result,
        )
        run, worker = run_with(world, process_env, provider, "code-fixer", "Leave a note.")
        try:
            (asked,) = wait_until(lambda: open_interrupts(run), 60, "it asks")
            decide_on(asked, world.bob, "reject", reason="No notes, please.")
            wait_until(lambda: fresh(run).state.ended, 40, "it ends")
        finally:
            worker.stop()

    ended = fresh(run)
    assert ended.status == "completed", ended.error
    assert ended.output == "I was told: No notes, please."
    assert "FAILED" in str(provider.requests[1]["messages"][-1]["content"])
    assert [event.data["status"] for event in events(run, "tool_call_result")] == [
        "succeeded",
        "succeeded",
        "rejected",
    ]


def told(request: dict[str, Any], call_id: str) -> dict[str, Any]:
    """The result of the call as the model was told it."""
    (message,) = [one for one in request["messages"] if one.get("tool_call_id") == call_id]
    return dict(json.loads(message["content"]))


def _answer_from_result(request: dict[str, Any]) -> Reply:
    result = str(request["messages"][-1]["content"])
    return text(
        "I was told: No notes, please."
        if "No notes, please." in result
        else f"Nothing of it: {result}"
    )
