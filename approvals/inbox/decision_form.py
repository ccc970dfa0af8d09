"""What a decision form sends, read strictly: an opinion, or what stands beside which field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from approvals.deciding.commands import REASON_MAX, Opinion
from approvals.inbox import edit_fields
from approvals.inbox.edit_fields import Field, parse_json
from approvals.queries import Shown
from runtime_core.values import Json, Risk

ACTIONS = ("approve", "edit", "respond", "reject")


@dataclass(slots=True)
class DecisionForm:
    """A decision as somebody filled it in: what they typed is kept, whatever becomes of it."""

    action: str = ""
    version: str = ""
    digest: str = ""
    reason: str = ""
    response: str = ""
    confirm: str = ""
    raw_args: str = ""
    is_raw: bool = False
    is_proposal: bool = False
    is_override: bool = False
    compensate: bool = False
    fields: list[Field] = field(default_factory=list)
    args: Json = None
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def has_errors(self) -> bool:
        return bool(self.errors) or any(one.error for one in self.fields)

    @property
    def has_words(self) -> bool:
        """True if there is something in it that would be missed."""
        return self.action in ("edit", "respond") or bool(self.reason)

    def opinion(self) -> Opinion:
        """What to decide; only for a form without errors."""
        return Opinion(
            action=self.action,
            version=int(self.version),
            digest=self.digest,
            args=self.args if self.action == "edit" else None,
            response=self.response if self.action == "respond" else None,
            reason=self.reason if self.action in ("reject", "approve", "edit") else "",
            compensate=self.compensate and self.action == "reject",
        )


def empty_form(shown: Shown) -> DecisionForm:
    """The form as it is first shown."""
    return DecisionForm(
        version=str(shown.interrupt.version),
        digest=shown.interrupt.digest,
        fields=edit_fields.fields_of(shown.schema, shown.args) if shown.is_raw else [],
        raw_args=edit_fields.as_json_text(shown.args) if shown.is_raw else "",
    )


def read_form(posted: Mapping[str, str], shown: Shown) -> DecisionForm:
    """The form as it came in, with an error beside everything that is not right."""
    form = DecisionForm(
        action=posted.get("action", ""),
        version=posted.get("version", ""),
        digest=posted.get("digest", ""),
        reason=_plain(posted.get("reason", "")).strip(),
        response=_plain(posted.get("response", "")),
        confirm=posted.get("confirm", "").strip(),
        raw_args=posted.get("raw_args", ""),
        is_raw="raw_args" in posted,
        compensate=posted.get("compensate") == "on",
        is_proposal=posted.get("as") == "proposal" and posted.get("action") == "edit",
    )
    form.errors = _errors(form, shown)
    if form.action == "edit":
        _read_args(form, posted, shown)
    return form


def read_override(posted: Mapping[str, str], shown: Shown) -> DecisionForm:
    """The same for a superuser's form, which needs a reason whatever is decided."""
    form = empty_form(shown)
    form.is_override = True
    form.action = posted.get("action", "")
    form.version, form.digest = posted.get("version", ""), posted.get("digest", "")
    form.reason = _plain(posted.get("reason", "")).strip()
    form.errors = _errors(form, shown)
    form.errors.pop("confirm", None)  # the reason is harder to give than the tool's name
    if form.action not in ("approve", "reject"):
        form.errors["action"] = "Choose what to decide."
    if not form.reason:
        form.errors["reason"] = "Say why you decide past the policy. It is kept in the audit."
    return form


def _errors(form: DecisionForm, shown: Shown) -> dict[str, str]:
    errors = {}
    if form.action not in ACTIONS:
        errors["action"] = "Choose what to decide."
    if not (form.version.isascii() and form.version.isdigit() and len(form.version) < 10):
        errors["version"] = (
            "The form does not say which version it is about. Open the request again."
        )
    if len(form.reason) > REASON_MAX:
        errors["reason"] = f"At most {REASON_MAX} characters."
    if form.action == "reject" and not form.reason:
        errors["reason"] = "Say why. The agent reads this."
    if form.action == "respond" and not form.response.strip():
        errors["response"] = "Write an answer."
    if _lacks_confirmation(form, shown):
        errors["confirm"] = f"Type {shown.interrupt.tool_call.tool} to confirm."
    return errors


def _lacks_confirmation(form: DecisionForm, shown: Shown) -> bool:
    """At critical risk, what makes the call run needs the tool's name typed."""
    is_critical = shown.interrupt.risk == Risk.CRITICAL
    return (
        is_critical
        and form.action in ("approve", "edit")
        and not form.is_proposal
        and form.confirm != shown.interrupt.tool_call.tool
    )


def _read_args(form: DecisionForm, posted: Mapping[str, str], shown: Shown) -> None:
    if form.is_raw:
        form.fields = edit_fields.fields_of(shown.schema, shown.args)
        _read_raw_args(form)
    else:
        form.args, form.fields = edit_fields.read(shown.schema, shown.args, posted)
        form.raw_args = edit_fields.as_json_text(form.args)
    if (
        not form.has_errors
        and edit_fields.is_same(form.args, shown.args)
        and _is_current(form, shown)
    ):
        form.errors["args"] = (
            "Nothing was changed. Change a value, or approve the request as it is."
        )


def _read_raw_args(form: DecisionForm) -> None:
    try:
        form.args = parse_json(form.raw_args)
    except ValueError as error:
        form.errors["raw_args"] = str(error)
        return
    if not isinstance(form.args, dict):
        form.errors["raw_args"] = "The arguments must be one JSON object, in braces."


def _is_current(form: DecisionForm, shown: Shown) -> bool:
    return form.digest == shown.interrupt.digest


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n")


def error_field(error: Any) -> str:
    """Beside which part of the form an error of the core belongs."""
    name = str(error.data.get("field") or "args")
    return name if name in ("reason", "response", "confirm", "raw_args") else "args"
