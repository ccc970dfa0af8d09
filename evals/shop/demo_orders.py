"""The orders that the demo's shop starts with."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from evals.shop.models import Order

_ORDERS = (
    ("A-1001", "Mira Okafor", "Stoneware mug", "24.90", dt.date(2026, 10, 2)),
    ("A-1002", "Jonas Lindqvist", "Office chair", "189.00", dt.date(2026, 9, 21)),
    ("A-1003", "Aiko Tanaka", "Three paperbacks", "38.50", dt.date(2026, 10, 11)),
    ("A-1004", "Luc Moreau", "Desk lamp", "64.00", dt.date(2026, 10, 17)),
)


def seed() -> int:
    """Add the demo's orders that are not there yet; how many that were."""
    made = Order.objects.bulk_create(
        [
            Order(number=number, customer=customer, item=item, total=Decimal(total), placed_on=day)
            for number, customer, item, total, day in _ORDERS
            if not Order.objects.filter(number=number).exists()
        ],
        ignore_conflicts=True,
    )
    return len(made)
