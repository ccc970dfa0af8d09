"""Why a request stands under the policy that it does, in words and for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.contrib.auth import get_user_model

from approvals.models import ApprovalPolicy, ApproverGroup
from approvals.policy import stored as policies
from approvals.policy.rules import Considered, Resolution
from approvals.terms import ESCALATE, Terms
from runtime_core.models import Interrupt


def policy_context(interrupt: Interrupt) -> dict[str, Any]:
    """The policy that a request stands under, in words, and why the others do not apply."""
    now = policies.resolved_now(interrupt)
    terms = policies.terms_of(interrupt)
    return {
        "interrupt": interrupt,
        "call": interrupt.tool_call,
        "run": interrupt.run,
        "policy": _row(interrupt),
        "terms": in_words(terms),
        "is_before_policies": not interrupt.terms,
        "considered": _most_specific_first(now),
        "now": now.policy,
        "has_changed": _has_changed(interrupt, now),
    }


def policy_as_json(interrupt: Interrupt) -> dict[str, Any]:
    """The same for programs: names for people and groups, in the order in which policies are looked at."""
    now = policies.resolved_now(interrupt)
    row, terms = _row(interrupt), policies.terms_of(interrupt)
    return {
        "policy": {"id": row.id, "name": row.name, "version": row.number} if row else None,
        "terms": {**asdict(terms), "groups": _groups(terms), "people": _people(terms)},
        "considered": [
            {
                "name": one.policy.name,
                "version": one.policy.number,
                "applies": not one.why_not,
                "why_not": one.why_not,
            }
            for one in _most_specific_first(now)
        ],
        "has_changed": _has_changed(interrupt, now),
    }


def in_words(terms: Terms) -> list[tuple[str, str]]:
    """The terms as pairs of what and how."""
    people = f"{terms.required} different people" if terms.required > 1 else "One person"
    undo = (
        f"For {terms.undo_seconds} seconds, if decided on the page" if terms.undo_seconds else "No"
    )
    expiry = "escalated" if terms.on_expiry == ESCALATE else "rejected"
    return [
        ("It takes", f"{people} on the same version; one rejection ends it."),
        ("Who may", _whom(terms)),
        ("On the own run", _yes(terms.requester_may)),
        ("On own changes", _yes(terms.editor_may)),
        ("Service tokens", _yes(terms.machines_may)),
        ("Time to decide", f"{_minutes(terms.expires_minutes)}, then it is {expiry}."),
        ("Taking back", undo),
        ("Remembering", _yes(terms.remember_may)),
        *((f"After {_minutes(step['after_minutes'])}", _step(step)) for step in terms.escalation),
    ]


def _row(interrupt: Interrupt) -> ApprovalPolicy | None:
    return ApprovalPolicy.objects.filter(id=interrupt.policy).first() if interrupt.policy else None


def _has_changed(interrupt: Interrupt, now: Resolution) -> bool:
    return (now.policy.id if now.policy else None) != interrupt.policy


def _most_specific_first(now: Resolution) -> list[Considered]:
    def order(one: Considered) -> tuple[bool, tuple[int, ...]]:
        return bool(one.why_not), tuple(-n for n in one.policy.specificity)

    return sorted(now.considered, key=order)


def _whom(terms: Terms) -> str:
    if terms.is_open_to_all:
        return "Approvers and admins of the project"
    named = [
        *(f"role {role}" for role in terms.roles),
        *(f"group {name}" for name in _groups(terms)),
        *_people(terms),
    ]
    return ", ".join(named) or "Nobody who is still here"


def _groups(terms: Terms) -> list[str]:
    groups = ApproverGroup.objects.filter(pk__in=terms.groups).order_by("name")
    return list(groups.values_list("name", flat=True))


def _people(terms: Terms) -> list[str]:
    users = get_user_model().objects.filter(pk__in=terms.people).order_by("username")
    return list(users.values_list("username", flat=True))


def _step(step: Any) -> str:
    named = [name for key in ("roles", "groups", "people") for name in step.get(key, [])]
    return f"{step['action']}: {', '.join(named)}" if named else str(step["action"])


def _minutes(minutes: int) -> str:
    if minutes % 60 == 0:
        return f"{minutes // 60} h"
    return f"{minutes} min"


def _yes(flag: bool) -> str:
    return "Yes" if flag else "No"
