"""Answers as Markdown: lists and code, but nothing that acts, loads or hides."""

from __future__ import annotations

import time

import pytest

from traces.templatetags.answers import answer_html


def test_it_shows_what_markdown_is_for() -> None:
    html = answer_html("# Done\n\n- **Cause:** `a < b`\n- see [docs](https://example.com/x)\n")

    assert "<h3>Done</h3>" in html
    assert "<li><strong>Cause:</strong> <code>a &lt; b</code></li>" in html
    assert '<a href="https://example.com/x" rel="noopener noreferrer nofollow ugc">docs</a>' in html


@pytest.mark.parametrize(
    "text",
    [
        "<img src=x onerror=alert(1)>",
        "</script><script>alert(1)</script>",
        "[x](javascript:alert(1))",
        "[x](data:text/html,<script>1</script>)",
        "[x](JaVaScRiPt&colon;alert(1))",
        "[x](//evil.example/x)",
        "![x](https://evil.example/pixel.png)",
        '<div hx-post="/approve/1" hx-trigger="load">',
        '"><svg/onload=alert(1)>',
        '<https://ok.example/"onmouseover=alert(1)>',
        "[x]: javascript:alert(1)\n\n[x]",
        "```<script>\nx\n```",
    ],
)
def test_h5_it_makes_nothing_that_acts(text: str) -> None:
    html = answer_html(text)

    for bad in (
        "<img",
        "<script",
        "<svg",
        "<div",
        '="javascript',
        '="data:',
        '="//',
        " onmouseover=",
    ):
        assert bad not in html.lower(), html


def test_redactions_are_marked_and_nothing_is_shown_instead() -> None:
    assert 'class="chip"' in answer_html("The key is [REDACTED:github#7f3a].")


def test_hostile_shapes_take_no_time() -> None:
    began = time.process_time()
    for text in ("[" * 20_000, "> " * 2_000 + "x", "*a " * 20_000, "`" * 20_000, "x" * 200_000):
        answer_html(text)

    assert time.process_time() - began < 5
