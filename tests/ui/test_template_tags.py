"""Badges, times, bars and numbers as pages print them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from django.template import Context, Template
from django.test import RequestFactory

from runtime_core import states
from runtime_core.templatetags import formats
from runtime_core.templatetags.status_words import INTERRUPT, RISK, RUN, TOOL_CALL, look_of

AT = datetime(2026, 11, 29, 16, 2, 3, tzinfo=UTC)


def render(source: str, **context: Any) -> str:
    return Template("{% load interlock %}" + source).render(Context(context))


def test_every_state_has_a_look_of_its_own() -> None:
    assert {str(status) for status in states.RunStatus} <= RUN.keys()
    assert {str(status) for status in states.CallStatus} <= TOOL_CALL.keys()
    assert {str(status) for status in states.InterruptStatus} <= INTERRUPT.keys()
    for table in (RUN, TOOL_CALL, INTERRUPT, RISK):
        shapes = [(look.icon, look.words) for look in table.values()]
        assert len(set(shapes)) == len(shapes)


def test_a_status_shows_tone_shape_word_and_sentence() -> None:
    shown = render("{% status 'interrupted' 'run' %}")

    assert 'data-tone="wait"' in shown
    assert "#clock" in shown
    assert "Waiting for approval" in shown
    assert 'title="Stopped until a person decides."' in shown


@pytest.mark.parametrize(
    ("status", "words"), [("running", "Cancelling…"), ("cancelled", "Cancelled")]
)
def test_a_run_asked_to_stop_reads_cancelling_until_it_has_ended(status: str, words: str) -> None:
    run = SimpleNamespace(status=status, cancel_requested_at=AT)

    assert words in render("{% status run %}", run=run)


def test_an_unknown_status_is_shown_escaped_as_it_is() -> None:
    assert "&lt;b&gt;" in render("{% status '<b>' %}")
    assert look_of("brand_new").words == "Brand new"


def test_critical_risk_is_filled_and_says_so() -> None:
    shown = render("{% risk 'critical' 'risk' %}")

    assert "badge--solid" in shown
    assert "critical risk" in shown


def test_times_are_printed_in_utc_whatever_zone_they_come_in() -> None:
    shown = render("{% when at %}", at=AT.astimezone(timezone(timedelta(hours=8))))

    assert 'datetime="2026-11-29T16:02:03+00:00"' in shown
    assert ">29 Nov 2026 16:02 UTC<" in shown
    assert "–" in render("{% when at %}", at=None)
    assert ">16:02:03<" in render("{% when at 'clock' %}", at=AT)


def test_a_countdown_carries_its_span_and_speaks_only_when_asked() -> None:
    shown = render("{% countdown at since True %}", at=AT, since=AT - timedelta(hours=1))

    assert 'data-since="2026-11-29T15:02:03+00:00"' in shown
    assert "data-announce-expiry" in shown
    assert "data-announce-expiry" not in render("{% countdown at %}", at=AT)
    assert "no expiry" in render("{% countdown at %}", at=None)


@pytest.mark.parametrize(
    ("used", "level"), [(10, "ok"), (60, "warn"), (90, "critical"), (140, "critical")]
)
def test_a_budget_warns_at_60_and_90_percent(used: int, level: str) -> None:
    shown = render("{% meter 'Steps' used 100 %}", used=used)

    assert f'data-level="{level}"' in shown
    assert f"{used} / 100" in shown


def test_a_budget_without_a_limit_has_no_meter() -> None:
    assert "<meter" not in render("{% meter 'Steps' 7 None %}")


def test_a_bar_stays_inside_its_track_and_is_seen_however_short() -> None:
    shown = render("{% bar 99.9 50 'info' True %}")

    assert 'x="99.90%" width="0.40%"' in shown
    assert "<line" in shown
    assert "style=" not in shown


def test_navigation_knows_where_the_reader_is() -> None:
    source = "{% current '/runs/' %}"

    assert render(source, request=RequestFactory().get("/runs/")) == 'aria-current="page"'
    assert render(source, request=RequestFactory().get("/runs/1/")) == 'aria-current="true"'
    assert render(source, request=RequestFactory().get("/inbox/")) == ""
    assert render(source) == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"), (0.04, "40 ms"), (0.4, "0.4 s"), (41, "41 s"), (252.4, "4 min 12 s"),
        (3600, "1 h"), (7500, "2 h 5 min"), (timedelta(days=3, hours=4), "3 d 4 h"), (-5, "-5.0 s"),
    ],
)  # fmt: skip
def test_durations_read_in_two_units(value: Any, text: str) -> None:
    assert formats.format_duration(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0, "$0.00"),
        ("0.41", "$0.41"),
        (Decimal("0.00042"), "$0.00042"),
        (1204, "$1,204.00"),
        ("x", "–"),
    ],
)
def test_costs_keep_their_telling_digits(value: Any, text: str) -> None:
    assert formats.format_cost(value) == text


def test_bytes_and_counts_are_short() -> None:
    assert [formats.format_bytes(n) for n in (812, 1200, 64_000, 1_200_000)] == [
        "812 B", "1.2 kB", "64 kB", "1.2 MB",
    ]  # fmt: skip
    assert [formats.format_count(n) for n in (842, 18_240, 182_000, 1_400_000)] == [
        "842", "18.2k", "182k", "1.4M",
    ]  # fmt: skip


def test_an_id_is_shortened_to_its_telling_end() -> None:
    assert formats.short_id("0197a1b2-0000-7000-8000-00008f2a41c0") == "8f2a41c0"
