"""What the inbox's templates are given: rows, the request laid out, the conflict's two sides."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import urlencode

from approvals.inbox import history, lines, showing, together
from approvals.inbox.decision_form import DecisionForm
from approvals.inbox.desk import VIEWS, Desk, Filters
from approvals.inbox.wording import REJECT_REASONS, words_of
from approvals.people import eligible
from approvals.queries import Shown
from runtime_core import clock
from runtime_core.errors import DecisionConflict, StaleVersion
from runtime_core.ids import new_id
from runtime_core.states import InterruptKind, InterruptStatus
from runtime_core.values import Risk

SORT_WORDS = {
    "expiry": "Expires first",
    "risk": "Highest risk first",
    "newest": "Newest first",
    "oldest": "Oldest first",
}
# What became of a call after its decision; before that the decision itself says it.
NEWS = frozenset({"executing", "succeeded", "failed", "unknown", "compensated", "cancelled"})


@dataclass(frozen=True, slots=True)
class Question:
    """What an agent asks, and which arguments said so."""

    text: str = ""
    choices: tuple[str, ...] = ()
    keys: frozenset[str] = frozenset()


def list_context(desk: Desk, filters: Filters, after: str = "") -> dict[str, Any]:
    """A page of the list behind the cursor `after`, with the tabs' counts and the filters."""
    page = desk.page(filters, after)
    return {
        "rows": lines.rows_of(page.items),
        "may_join": any(together.can_join(one) for one in page.items),
        "next_query": urlencode({"after": page.next_cursor}) if page.next_cursor else "",
        "is_later_page": bool(after),
        "filters": filters,
        "tabs": _tabs(desk, filters),
        "risks": [risk.value for risk in Risk],
        "agents": desk.agent_names(),
        "sorts": SORT_WORDS,
        "tools": sorted({one.tool_call.tool for one in page.items}),
        "list_query": query_of(filters),
        "last_decided": desk.last_decided() if not page.items and filters.view == "mine" else None,
    }


def detail_context(
    shown: Shown, form: DecisionForm, conflict: DecisionConflict | None
) -> dict[str, Any]:
    """One request: what is asked, what may be decided, and after a conflict both sides."""
    interrupt = shown.interrupt
    question = _question(shown)
    arguments = [one for one in showing.arguments_of(shown.args) if one.key not in question.keys]
    context = {
        "interrupt": interrupt,
        "run": interrupt.run,
        "call": interrupt.tool_call,
        "shown": shown,
        "form": form,
        # A browser closes a new <details> that shares its group with an open one which it is about
        # to replace.
        "group": f"decision-{new_id()}",
        "words": words_of(interrupt.kind),
        "arguments": arguments,
        "question": question.text,
        "answer_choices": question.choices,
        "hidden": sum(one.hidden for one in showing.arguments_of(shown.args)),
        "is_open": interrupt.status == InterruptStatus.OPEN,
        "can_decide": shown.is_raw and interrupt.expires_at > clock.now(),
        "tokens": interrupt.run.input_tokens + interrupt.run.output_tokens,
        "is_call_news": interrupt.tool_call.status in NEWS,
        "deciders": [] if shown.ruling.may else eligible.deciders(interrupt),
        "reject_reasons": REJECT_REASONS,
        "needs_confirm": interrupt.risk == Risk.CRITICAL,
        "preview_lines": _preview_lines(shown),
        "preview": shown.preview if isinstance(shown.preview, dict) else {},
        **history.detail_context(shown),
    }
    return context | (_conflict_context(shown, form, conflict) if conflict else {})


def _conflict_context(
    shown: Shown, form: DecisionForm, conflict: DecisionConflict
) -> dict[str, Any]:
    is_stale = isinstance(conflict, StaleVersion) and shown.is_raw
    return {
        "conflict": conflict,
        "is_stale": is_stale,
        "is_edit_kept": is_stale and form.action == "edit",
        "changes": showing.changes(shown.args, form.args) if form.action == "edit" else [],
    }


def _question(shown: Shown) -> Question:
    """The text and the offered answers of a question; nothing for other requests."""
    args = shown.args if shown.interrupt.kind == InterruptKind.QUESTION else None
    text = args.get("question") if isinstance(args, dict) else None
    if not isinstance(args, dict) or not isinstance(text, str):
        return Question()
    choices = args.get("choices")
    if not isinstance(choices, list) or not all(isinstance(one, str) for one in choices):
        return Question(text, keys=frozenset({"question"}))
    return Question(text, tuple(choices), frozenset({"question", "choices"}))


def _preview_lines(shown: Shown) -> list[showing.Line]:
    preview = shown.preview
    text = preview.get("diff") if isinstance(preview, dict) else None
    return showing.diff_lines(text) if isinstance(text, str) and text else []


def _tabs(desk: Desk, filters: Filters) -> list[dict[str, Any]]:
    counts = {
        "mine": desk.open_count,
        "all": desk.visible_open_count,
        "snoozed": desk.snoozed_count,
    }
    labels = {"mine": "For me", "all": "All open", "snoozed": "Snoozed", "decided": "Decided"}
    return [
        {
            "label": labels[view],
            "query": query_of(replace(filters, view=view)),
            "is_current": view == filters.view,
            "count": counts.get(view),
        }
        for view in VIEWS
    ]


def query_of(filters: Filters) -> str:
    """The query string that shows the list with these filters."""
    values = asdict(filters)
    usual = {"sort": "expiry"}
    return urlencode(
        {key: value for key, value in values.items() if value not in ("", usual.get(key))}
    )
