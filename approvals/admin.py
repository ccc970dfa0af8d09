"""The admin of this side, by room."""

from __future__ import annotations

from approvals.admin_people import DelegationAdmin, GrantAdmin
from approvals.evidence_admin import DecisionAdmin, RevisionAdmin
from approvals.notify.admin import DeliveryAdmin, EndpointAdmin
from approvals.policy.admin import ApprovalPolicyAdmin, ApproverGroupAdmin

__all__ = [
    "ApprovalPolicyAdmin",
    "ApproverGroupAdmin",
    "DecisionAdmin",
    "DelegationAdmin",
    "DeliveryAdmin",
    "EndpointAdmin",
    "GrantAdmin",
    "RevisionAdmin",
]
