"""The shop's tables in the admin, to look at: refunds are issued by the tool alone."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from evals.shop.models import Order, Refund


@admin.register(Order)
class OrderAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """Orders with what is left of them."""

    list_display = ["number", "customer", "item", "total", "currency", "placed_on"]
    search_fields = ["number", "customer"]


@admin.register(Refund)
class RefundAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """Refunds, read-only."""

    list_display = ["order", "amount", "reason", "created_at"]
    list_select_related = ["order"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
