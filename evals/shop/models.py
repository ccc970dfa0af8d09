"""Orders and what was refunded of them; a refund is there once for each idempotency key."""

from __future__ import annotations

from decimal import Decimal

from django.db import models
from django.db.models import Q, Sum


class Order(models.Model):
    """What a customer bought and paid."""

    number = models.CharField(max_length=20, unique=True)
    customer = models.CharField(max_length=100)
    item = models.CharField(max_length=200)
    total = models.DecimalField(max_digits=10, decimal_places=2)
    currency = models.CharField(max_length=3, default="EUR")
    placed_on = models.DateField()

    class Meta:
        ordering = ["number"]
        constraints = [models.CheckConstraint(condition=Q(total__gt=0), name="shop_order_total")]

    def __str__(self) -> str:
        return f"{self.number}: {self.item}"

    def refundable(self) -> Decimal:
        """What is left of the order's total."""
        refunded = self.refunds.aggregate(sum=Sum("amount"))["sum"] or Decimal(0)
        return self.total - refunded


class Refund(models.Model):
    """Money that went back to a customer."""

    order = models.ForeignKey(Order, on_delete=models.PROTECT, related_name="refunds")
    amount = models.DecimalField(max_digits=10, decimal_places=2)
    reason = models.CharField(max_length=500)
    idempotency_key = models.CharField(max_length=200, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [models.CheckConstraint(condition=Q(amount__gt=0), name="shop_refund_amount")]

    def __str__(self) -> str:
        return f"{self.amount} of {self.order.number}"
