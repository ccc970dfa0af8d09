"""The steps of an escalation as an admin writes them, and what is wrong with them. Pure functions of values."""

from __future__ import annotations

from collections.abc import Mapping

from runtime_core.models import Role
from runtime_core.values import Json

STEPS_MAX = 5
ACTIONS = ("notify", "widen", "raise")
TARGETS = ("roles", "groups", "people")
_KEYS = {"after_minutes", "action", *TARGETS}


def problems_of(steps: Json, expires_minutes: int) -> list[str]:
    """What is wrong, one sentence each; none if the steps can be followed."""
    if not isinstance(steps, list):
        return ["Give a list of steps, or [] for none."]
    if len(steps) > STEPS_MAX:
        return [f"At most {STEPS_MAX} steps."]
    found = [
        f"Step {number}: {problem}"
        for number, step in enumerate(steps, 1)
        for problem in _problems(step, expires_minutes)
    ]
    if found:
        return found
    times = [step["after_minutes"] for step in steps]
    return [] if times == sorted(set(times)) else ["Each step must come later than the one before."]


def _problems(step: Json, expires_minutes: int) -> list[str]:
    if not isinstance(step, Mapping):
        return ['write {"after_minutes": 30, "action": "notify", "roles": ["admin"]}.']
    found = [f"{key!r} is not one of {', '.join(sorted(_KEYS))}." for key in set(step) - _KEYS]
    minutes = step.get("after_minutes")
    if (
        not isinstance(minutes, int)
        or isinstance(minutes, bool)
        or not 0 < minutes < expires_minutes
    ):
        found.append("after_minutes must be a whole number below the expiry.")
    if step.get("action") not in ACTIONS:
        found.append(f"action must be one of {', '.join(ACTIONS)}.")
    named = [name for key in TARGETS for name in _names(step.get(key, []))]
    if not all(isinstance(name, str) and name for name in named):
        found.append("roles, groups and people are lists of names.")
    elif not named and step.get("action") != "raise":
        found.append("name roles, groups or people.")
    found += [
        f"{role!r} is not a role."
        for role in _names(step.get("roles", []))
        if role not in Role.values
    ]
    return found


def _names(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [None]
