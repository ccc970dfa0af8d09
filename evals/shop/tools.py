"""The shop as tools: an order can be looked up, and a refund issued once and for good."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

from django.db import transaction
from pydantic import Field

from evals.shop.models import Order, Refund
from runtime_core.errors import ToolFailed
from runtime_core.tools import DID_NOT_HAPPEN, Happened, ToolContext, tool

OrderNumber = Annotated[str, Field(min_length=1, max_length=20), "The order's number, like A-1001."]
Amount = Annotated[Decimal, Field(gt=0, max_digits=10, decimal_places=2)]
Reason = Annotated[str, Field(min_length=1, max_length=500)]


@dataclass(frozen=True, slots=True)
class OrderView:
    """An order as the agent sees it."""

    order_id: str
    customer: str
    item: str
    total: Decimal
    currency: str
    placed_on: str
    refundable: Decimal
    state: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """A refund that was issued."""

    refund_id: int
    order_id: str
    amount: Decimal
    currency: str
    left_to_refund: Decimal


@tool(risk="low", effect="read", timeout=10)
def lookup_order(ctx: ToolContext, order_id: OrderNumber) -> OrderView:
    """Look up an order: what was bought, for how much, and what of it can still be refunded."""
    order = Order.objects.filter(number=order_id).first()
    if order is None:
        raise ToolFailed(f"there is no order {order_id}")
    left = order.refundable()
    return OrderView(
        order_id=order.number,
        customer=order.customer,
        item=order.item,
        total=order.total,
        currency=order.currency,
        placed_on=order.placed_on.isoformat(),
        refundable=left,
        state="fully refunded"
        if left == 0
        else "paid"
        if left == order.total
        else "partly refunded",
    )


def was_refunded(ctx: ToolContext, order_id: str, amount: Decimal, reason: str) -> Happened | None:
    """Whether this very call has issued its refund already, and with what receipt."""
    refund = Refund.objects.filter(idempotency_key=ctx.idempotency_key).first()
    return DID_NOT_HAPPEN if refund is None else Happened(_receipt(refund))


@tool(risk="high", effect="once", timeout=30, reconcile=was_refunded)
def issue_refund(
    ctx: ToolContext,
    order_id: OrderNumber,
    amount: Annotated[Amount, "How much, in the order's currency; at most what is left of it."],
    reason: Annotated[Reason, "Why, in a few words; the customer reads it."],
) -> Receipt:
    """Refund an order, in part or as a whole. This pays money out and cannot be taken back."""
    with transaction.atomic():
        # Two refunds of one order wait for each other here, so they cannot exceed it together.
        order = Order.objects.select_for_update().filter(number=order_id).first()
        if order is None:
            raise ToolFailed(f"there is no order {order_id}")
        refund = Refund.objects.filter(idempotency_key=ctx.idempotency_key).first()
        if refund is None:
            left = order.refundable()
            if amount > left:
                raise ToolFailed(
                    f"only {left} {order.currency} of order {order_id} are left to refund"
                )
            refund = Refund.objects.create(
                order=order, amount=amount, reason=reason, idempotency_key=ctx.idempotency_key
            )
        return _receipt(refund)


def _receipt(refund: Refund) -> Receipt:
    order = refund.order
    amount = refund.amount.quantize(Decimal("0.01"))
    return Receipt(refund.pk, order.number, amount, order.currency, order.refundable())
