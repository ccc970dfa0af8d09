"""Every table there is, and what a deletion does with it. A test fails where a table is on neither list.

Rows go in the order of the list: what refers to others goes before them.
"""

from __future__ import annotations

from dataclasses import dataclass

_RUN = "run_id = ANY(%(runs)s::uuid[])"
_OF_INTERRUPT = f"interrupt_id IN (SELECT id FROM interrupt WHERE {_RUN})"  # noqa: S608
_GRANT = f"({_OF_INTERRUPT} OR {_RUN} OR thread_id = ANY(%(threads)s::uuid[]))"


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one model that go with runs and threads, as a condition on its table."""

    model: str
    where: str
    order: str = ""
    forget: bool = False
    at_once: bool = False
    """In the commit that hides: what would still have an effect."""


ROWS = (
    Rows(
        "approvals.Delivery",
        f"notice_id IN (SELECT id FROM notify_notice WHERE {_OF_INTERRUPT})",  # noqa: S608
    ),
    Rows("approvals.Notice", _OF_INTERRUPT),
    Rows(
        "approvals.GrantUse",
        f"({_RUN} OR grant_id IN (SELECT id FROM approval_grant WHERE {_GRANT}))",  # noqa: S608
        at_once=True,
    ),
    Rows("approvals.Grant", _GRANT, at_once=True),
    Rows("approvals.Viewing", _OF_INTERRUPT),
    Rows("approvals.InterruptClaim", _OF_INTERRUPT),
    Rows("approvals.Assignment", _OF_INTERRUPT),
    Rows("approvals.Snooze", _OF_INTERRUPT),
    Rows("approvals.EscalationStep", _OF_INTERRUPT),
    Rows("approvals.HistoryEntry", _OF_INTERRUPT),
    Rows("approvals.Decision", _OF_INTERRUPT),
    Rows("approvals.Revision", _OF_INTERRUPT),
    Rows("runtime_core.Interrupt", _RUN),
    Rows(
        "traces.SpanPayload",
        f"span_id IN (SELECT id FROM span WHERE {_RUN})",  # noqa: S608
    ),
    Rows("traces.SpanRow", _RUN),
    Rows("runtime_core.Checkpoint", _RUN),
    Rows("runtime_core.Event", _RUN),
    # A call that takes another one back refers to it.
    Rows("runtime_core.ToolCall", _RUN, order="undoes_id IS NULL"),
    Rows(
        "runtime_core.Message",
        f"({_RUN} OR thread_id = ANY(%(threads)s::uuid[]))",
        forget=True,
    ),
    Rows("runtime_core.Step", _RUN),
    Rows("runtime_core.RunLease", _RUN),
    # The answers kept for repeats of the writes that made or changed them.
    Rows(
        "runtime_core.IdempotencyKey",
        "(response->>'id' = ANY(%(ids)s::text[]) OR response->>'run_id' = ANY(%(ids)s::text[]))",
    ),
    Rows("admin.LogEntry", "object_id = ANY(%(ids)s::text[])"),
    # What derives from a run came after it.
    Rows("runtime_core.Run", "id = ANY(%(runs)s::uuid[])", order="created_at DESC, id DESC"),
    Rows("runtime_core.Thread", "id = ANY(%(threads)s::uuid[])"),
)

# What is a person's own, beside their runs and threads; goes at once.
OF_PERSON = (
    Rows(
        "approvals.Delivery",
        "(person_id = %(user)s OR endpoint_id IN (SELECT id FROM notify_endpoint WHERE owner_id = %(user)s))",
    ),
    Rows("approvals.Endpoint", "owner_id = %(user)s"),
    Rows("approvals.ChannelChoice", "user_id = %(user)s"),
    Rows("approvals.QuietTime", "user_id = %(user)s"),
    Rows("approvals.SavedView", "owner_id = %(user)s"),
    Rows("approvals.Snooze", "user_id = %(user)s"),
    Rows("approvals.Viewing", "user_id = %(user)s"),
    Rows("approvals.InterruptClaim", "holder_id = %(user)s"),
    Rows("approvals.Assignment", "person_id = %(user)s"),
    Rows("approvals.Delegation", "(delegator_id = %(user)s OR delegate_id = %(user)s)"),
    Rows(
        "approvals.GrantUse",
        "grant_id IN (SELECT id FROM approval_grant WHERE grantor_id = %(user)s)",
    ),
    Rows("approvals.Grant", "grantor_id = %(user)s"),
    Rows("runtime_core.ApiToken", "user_id = %(user)s"),
    Rows("runtime_core.IdempotencyKey", "user_id = %(user)s"),
    Rows("runtime_core.Membership", "user_id = %(user)s"),
    Rows(
        "admin.LogEntry",
        "(user_id = %(user)s OR (object_id = %(user)s::text AND content_type_id IN"
        " (SELECT id FROM django_content_type WHERE app_label = 'auth' AND model = 'user')))",
    ),
)

# What stays of a person, under a name that says nothing: what they decided, and what they set up for others.
STAYS_OF_PERSON = {
    "runtime_core.Agent",
    "runtime_core.ToolPermission",
    "runtime_core.Quota",
    "approvals.ApprovalPolicy",
    "approvals.Decision",
    "approvals.Revision",
    "runtime_core.Interrupt",
    "traces.RedactionPolicy",
    "traces.LegalHold",
    "traces.RetentionPolicy",
    "traces.DeletionRequest",
    "traces.ExportJob",
    "runtime_core.Run",
    "runtime_core.Thread",
}

# Tables of which nothing goes with a run or a thread, and why.
KEPT = {
    "traces.AuditEntry": "evidence: headers stay, payloads are erased with a record",
    "traces.AuditPayload": "erased with the request itself, in its commit",
    "traces.ExportJob": "its file is withdrawn in the request's commit; the row has ids and numbers",
    "traces.DeletionRequest": "says what was deleted, by id",
    "runtime_core.Permit": "a place, free since its run ended",
    "runtime_core.Project": "no run's",
    "runtime_core.ProjectQueue": "numbers of a project",
    "runtime_core.Membership": "of people and projects",
    "runtime_core.ApiToken": "of a person",
    "runtime_core.Agent": "defined for many runs",
    "runtime_core.AgentVersion": "defined for many runs",
    "runtime_core.ToolPermission": "of an agent",
    "runtime_core.Quota": "of an agent",
    "runtime_core.Worker": "a process",
    "approvals.Endpoint": "where messages go",
    "approvals.ChannelChoice": "of a person",
    "approvals.QuietTime": "of a person",
    "approvals.ApproverGroup": "of a project",
    "approvals.ApprovalPolicy": "of a project",
    "approvals.Delegation": "between people",
    "approvals.SavedView": "of a person",
    "traces.RedactionPolicy": "of a project",
    "traces.RedactionRule": "of a policy",
    "traces.LegalHold": "names by id what must stay",
    "traces.RetentionPolicy": "of a project",
    "traces.RetentionTotal": "numbers",
    "auth.User": "a person",
    "auth.Group": "of people",
    "auth.Permission": "Django's",
    "contenttypes.ContentType": "Django's",
    "sessions.Session": "of a person",
}
