"""Refunds of the demo's shop: once for each call, never more than was paid."""

from __future__ import annotations

import threading
from collections.abc import Callable
from decimal import Decimal

import pytest

from evals.shop import demo_orders
from evals.shop.models import Order, Refund
from runtime_core.tools import ToolContext, registry, runner
from runtime_core.values import Json, ToolOutcome

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def orders() -> None:
    demo_orders.seed()


def refund(ctx: ToolContext, **args: Json) -> ToolOutcome:
    return runner.run(registry()["issue_refund"], {"reason": "Broken", **args}, ctx)


def test_seeding_twice_adds_nothing() -> None:
    assert demo_orders.seed() == 0
    assert Order.objects.count() == 4


def test_an_order_is_looked_up(ctx: ToolContext) -> None:
    outcome = runner.run(registry()["lookup_order"], {"order_id": "A-1001"}, ctx)
    assert outcome.result["total"] == outcome.result["refundable"] == "24.90"
    assert outcome.result["state"] == "paid"
    missing = runner.run(registry()["lookup_order"], {"order_id": "A-9"}, ctx)
    assert (missing.status, missing.result) == (
        "failed",
        {"error": "ToolFailed: there is no order A-9"},
    )


def test_a_refund_is_a_row(ctx: ToolContext) -> None:
    outcome = refund(ctx, order_id="A-1001", amount="10.50")
    assert outcome.status == "succeeded"
    assert (outcome.result["amount"], outcome.result["left_to_refund"]) == ("10.50", "14.40")
    assert Refund.objects.get().amount == Decimal("10.50")


def test_the_same_call_refunds_once(ctx: ToolContext) -> None:
    first, second = (refund(ctx, order_id="A-1001", amount=10) for _ in range(2))
    assert first.result == second.result
    assert Refund.objects.count() == 1


@pytest.mark.parametrize("amount", ["24.91", 1_000])
def test_more_than_is_left_is_refused(ctx: ToolContext, amount: Json) -> None:
    outcome = refund(ctx, order_id="A-1001", amount=amount)
    assert (outcome.status, outcome.error_code) == ("failed", "tool_failed")
    assert "only 24.90 EUR" in outcome.result["error"]
    assert not Refund.objects.exists()


@pytest.mark.parametrize("amount", [0, -1, "1.001", "1e400", "NaN", "", None, True, 10**12])
def test_an_amount_that_is_none_is_refused(ctx: ToolContext, amount: Json) -> None:
    assert refund(ctx, order_id="A-1001", amount=amount).error_code == "invalid_arguments"


def test_two_calls_at_once_cannot_exceed_the_order(
    make_ctx: Callable[..., ToolContext],
) -> None:
    outcomes: list[ToolOutcome] = []
    threads = [
        threading.Thread(
            target=lambda key=key: outcomes.append(
                refund(make_ctx(idempotency_key=key), order_id="A-1001", amount="20.00")
            )
        )
        for key in ("k1", "k2", "k3")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(outcome.status for outcome in outcomes) == ["failed", "failed", "succeeded"]
    assert Refund.objects.count() == 1


def test_it_can_be_asked_whether_it_happened(ctx: ToolContext) -> None:
    tool = registry()["issue_refund"]
    args = {"order_id": "A-1001", "amount": "5.00", "reason": "Broken"}
    assert runner.reconcile(tool, args, ctx) is None
    done = runner.run(tool, args, ctx)
    asked = runner.reconcile(tool, args, ctx)
    assert asked is not None
    assert (asked.status, asked.result) == ("succeeded", done.result)
