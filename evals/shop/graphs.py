"""A refund by rule: no model decides, yet each step is as durable, and the payment as guarded, as an agent's."""

from __future__ import annotations

import re
from typing import Any

from runtime_core.engines import Ask, Call, Finish, Next, node

_ORDER = re.compile(r"\b[A-Z]-\d{4}\b")
_AMOUNT = re.compile(r"\b\d+\.\d{2}\b")


@node("refund_by_rule", start=True)
def read_request(state: dict[str, Any]) -> Call | Ask:
    """Find the order that the request names; ask for it where there is none."""
    found = _ORDER.search(state["input"])
    if found is None:
        return Ask("Which order is this about?", then="read_answer")
    return Call("lookup_order", {"order_id": found[0]}, then="judge", into="order")


@node("refund_by_rule")
def read_answer(state: dict[str, Any]) -> Next:
    """Take the person's answer for the request."""
    return Next("read_request", {"input": f"{state['input']} {state['answer']['value']}"})


@node("refund_by_rule")
def judge(state: dict[str, Any]) -> Call | Finish:
    """Refund what is asked for; the agent's permissions decide whether a person must agree."""
    if state["order"]["status"] != "succeeded":
        return Finish(f"Nothing was paid: {state['order']['value']}")
    order = state["order"]["value"]
    amount = _AMOUNT.search(state["input"])
    asked = {
        "order_id": order["order_id"],
        "amount": amount[0] if amount else order["refundable"],
        "reason": "Refund by rule.",
    }
    return Call("issue_refund", asked, then="tell", into="refund")


@node("refund_by_rule")
def tell(state: dict[str, Any]) -> Finish:
    """Say what came of it."""
    if state["refund"]["status"] != "succeeded":
        return Finish(f"Nothing was paid: {state['refund']['value']}")
    return Finish(f"Refunded {state['refund']['value']['amount']}.")
