"""The admin of this side, by room."""

from __future__ import annotations

from approvals.notify.admin import DeliveryAdmin, EndpointAdmin
from approvals.policy_admin import ApprovalPolicyAdmin, ApproverGroupAdmin

__all__ = ["ApprovalPolicyAdmin", "ApproverGroupAdmin", "DeliveryAdmin", "EndpointAdmin"]
