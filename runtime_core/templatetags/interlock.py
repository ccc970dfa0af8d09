"""Template tags and filters of every page: badges, times, icons, bars, untrusted text."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from runtime_core.templatetags import formats, visible_text
from runtime_core.templatetags.status_words import EVENT_ICON, RISK, Look, look_of

register = template.Library()

WARN_SHARE = 0.6
CRITICAL_SHARE = 0.9


@register.simple_tag
def icon(name: str, label: str = "") -> SafeString:
    """One glyph of the sprite; silent for screen readers unless it has a label."""
    href = f"{static('img/icons.svg')}#{name}"
    if label:
        return format_html(
            '<svg class="icon" role="img" aria-label="{}"><use href="{}"></use></svg>', label, href
        )
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}"></use></svg>', href)


@register.simple_tag
def status(subject: Any, family: str = "") -> SafeString:
    """The badge of a run, step, tool call or interrupt, or of a bare status word."""
    word = str(subject if isinstance(subject, str) else subject.status)
    if getattr(subject, "cancel_requested_at", None) and not _has_ended(subject):
        word, family = "cancelling", "run"
    return _badge(look_of(word, family or _family_of(subject)), word)


@register.simple_tag
def risk(level: Any, suffix: str = "") -> SafeString:
    """The badge of a risk level: a shape and a word; critical is filled."""
    word = str(getattr(level, "risk", level))
    look = RISK.get(word) or look_of(word)
    solid = " badge--solid" if word == "critical" else ""
    return format_html(
        '<span class="badge{}" data-tone="{}" data-risk="{}" title="{}">{}{}{}</span>',
        solid, look.tone, word, look.sentence, icon(look.icon), look.words, suffix and f" {suffix}",
    )  # fmt: skip


@register.simple_tag
def status_icon(subject: Any, family: str = "") -> SafeString:
    """Only the shape of a status, its words for screen readers; for rows that are too narrow."""
    word = str(subject if isinstance(subject, str) else subject.status)
    look = look_of(word, family or _family_of(subject))
    return format_html(
        '<span class="tone" data-tone="{}" title="{}">{}</span>',
        look.tone, look.words, icon(look.icon, look.words),
    )  # fmt: skip


@register.simple_tag
def event_icon(kind: str, tone: str = "") -> SafeString:
    """The glyph of an event type; a result that is bad gets a cross."""
    if kind == "tool_call_result" and tone == "bad":
        return icon("cross")
    return icon(EVENT_ICON.get(kind, "ring"))


@register.simple_tag
def when(moment: datetime | None, style: str = "relative") -> SafeString:
    """A <time> printed in UTC, made relative (or `clock`, `date`) in the browser."""
    if moment is None:
        return mark_safe('<span class="muted">–</span>')
    at = formats.utc(moment)
    return format_html(
        '<time datetime="{}" data-when="{}" title="{}">{}</time>',
        at.isoformat(), style, f"{at:%Y-%m-%d %H:%M:%S} UTC", formats.format_moment(at, style),
    )  # fmt: skip


@register.simple_tag
def countdown(
    until: datetime | None, since: datetime | None = None, announce: bool = False
) -> SafeString:
    """A <time> that counts down in the browser; with `since` its tone turns at 25 % and 10 %."""
    if until is None:
        return mark_safe('<span class="muted">no expiry</span>')
    at = formats.utc(until)
    return format_html(
        '<time class="countdown" datetime="{}" data-when="countdown"{}{} title="{}">{}</time>',
        at.isoformat(),
        format_html(' data-since="{}"', formats.utc(since).isoformat()) if since else "",
        mark_safe(" data-announce-expiry") if announce else "",
        f"{at:%Y-%m-%d %H:%M:%S} UTC",
        formats.format_moment(at),
    )


@register.simple_tag
def bar(x: float, width: float, tone: str = "info", is_open: bool = False) -> SafeString:
    """One bar of a waterfall: start and width in percent of the whole; open ones are hatched."""
    start = _percent(x)
    size = max(0.4, min(_percent(width), 100 - start))
    hatch = format_html(
        '<line x1="{}%" x2="{}%" y1="50%" y2="50%"></line>', f"{start:.2f}", f"{start + size:.2f}"
    )
    return format_html(
        '<svg class="bar-track" data-tone="{}" aria-hidden="true">'
        '<rect class="{}" x="{}%" width="{}%" height="100%" rx="3"></rect>{}</svg>',
        tone,
        "bar-open" if is_open else "bar",
        f"{start:.2f}",
        f"{size:.2f}",
        hatch if is_open else "",
    )


@register.inclusion_tag("components/meter.html")
def meter(label: str, value: Any, maximum: Any, text: str = "") -> dict[str, Any]:
    """A budget as <meter> and as text; `text` overrides `value / maximum`."""
    top = float(maximum or 0)
    used = float(value or 0)
    share = used / top if top else 0.0
    return {
        "label": label,
        "has_limit": top > 0,
        "value": f"{min(used, top):.6g}",
        "maximum": f"{top:.6g}",
        "low": f"{top * WARN_SHARE:.6g}",
        "high": f"{top * CRITICAL_SHARE:.6g}",
        "percent": f"{100 * share:.0f}",
        "width": f"{min(100 * share, 100):.2f}",
        "level": "critical" if share >= CRITICAL_SHARE else "warn" if share >= WARN_SHARE else "ok",
        "text": text or _spent_of(used, top),
    }


@register.simple_tag(takes_context=True)
def current(context: template.Context, path: str) -> SafeString:
    """`aria-current` of a link: `page` on the address itself, `true` on pages below it."""
    here = getattr(context.get("request"), "path", "")
    if here == path:
        return mark_safe('aria-current="page"')
    if path != "/" and here.startswith(path):
        return mark_safe('aria-current="true"')
    return mark_safe("")


@register.filter
def visible(value: Any) -> SafeString:
    """Untrusted text or JSON, whole: hidden characters, blank runs and redactions are marked."""
    return mark_safe(visible_text.show_text(value))  # noqa: S308 - it escapes every character


@register.filter
def redacted(value: Any) -> SafeString:
    """Escaped text with `[REDACTED:…]` and `[WITHHELD:…]` shown as chips."""
    return mark_safe(visible_text.mark_redactions(value))  # noqa: S308 - it escapes everything


@register.filter
def hidden_count(value: Any) -> int:
    """Number of hidden characters and long blank runs in the value; 0: it reads as it is."""
    return visible_text.count_hidden(value) + visible_text.count_blank_runs(value)


@register.filter
def duration(value: timedelta | float | None) -> str:
    """Seconds or a timedelta as `4 min 12 s`."""
    return formats.format_duration(value)


@register.filter(name="bytes")
def byte_size(value: float | None) -> str:
    """Bytes as `64 kB`."""
    return formats.format_bytes(value)


@register.filter
def cost(value: Decimal | float | None) -> str:
    """US dollars as `$0.41`."""
    return formats.format_cost(value)


@register.filter
def count(value: float | None) -> str:
    """A number as `182k`."""
    return formats.format_count(value)


@register.filter
def short_id(value: Any) -> str:
    """The telling end of an id."""
    return formats.short_id(value)


@register.filter
def initials(name: Any) -> str:
    """Two letters for an avatar."""
    words = str(name).replace(".", " ").replace("_", " ").split()
    return "".join(word[0] for word in words[:2]) or "?"


def _badge(look: Look, word: str) -> SafeString:
    return format_html(
        '<span class="badge" data-tone="{}" data-status="{}" title="{}">{}{}</span>',
        look.tone, word, look.sentence, icon(look.icon), look.words,
    )  # fmt: skip


def _family_of(subject: Any) -> str:
    families = {"Run": "run", "ToolCall": "tool_call", "Interrupt": "interrupt", "Step": "step"}
    return families.get(type(subject).__name__, "")


def _has_ended(subject: Any) -> bool:
    return str(subject.status) in {"completed", "failed", "cancelled", "timed_out"}


def _spent_of(used: float, top: float) -> str:
    spent = formats.format_count(used)
    return f"{spent} / {formats.format_count(top)}" if top else spent


def _percent(value: float) -> float:
    return min(max(float(value), 0.0), 100.0)
