"""The admin of this side, by room."""

from __future__ import annotations

from approvals.notify.admin import DeliveryAdmin, EndpointAdmin

__all__ = ["DeliveryAdmin", "EndpointAdmin"]
