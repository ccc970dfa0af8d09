"""Rows of this side, one file a subject."""

from __future__ import annotations

from approvals.models.decision import VOTES, Decision, Revision, Viewing
from approvals.models.grant import Grant, GrantUse
from approvals.models.policy import ApprovalPolicy, ApproverGroup
from approvals.models.teamwork import (
    Assignment,
    Delegation,
    EscalationStep,
    HistoryEntry,
    InterruptClaim,
    SavedView,
    Snooze,
)
from approvals.notify.models import ChannelChoice, Delivery, Endpoint, Notice, QuietTime

__all__ = [
    "VOTES",
    "ApprovalPolicy",
    "ApproverGroup",
    "Assignment",
    "ChannelChoice",
    "Decision",
    "Delegation",
    "Delivery",
    "Endpoint",
    "EscalationStep",
    "Grant",
    "GrantUse",
    "HistoryEntry",
    "InterruptClaim",
    "Notice",
    "QuietTime",
    "Revision",
    "SavedView",
    "Snooze",
    "Viewing",
]
