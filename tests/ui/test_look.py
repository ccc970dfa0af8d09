"""The frame and the style guide: accessible, fitting, no stray colour, word or icon."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.template.loader import render_to_string
from django.test import RequestFactory

from tests.ui.conftest import OpenPage

NOW = datetime(2026, 11, 29, 16, 2, 3, tzinfo=UTC)
TEMPLATES = sorted((settings.BASE_DIR / "templates").rglob("*.html"))
STYLES = sorted((settings.BASE_DIR / "static" / "css").rglob("*.css"))
MODULES = sorted((settings.BASE_DIR / "static" / "js").rglob("*.js"))
ERRORS = ["400.html", "403.html", "403_csrf.html", "404.html", "500.html"]


def sample() -> dict[str, Any]:
    return {
        "now": NOW,
        "earlier": NOW - timedelta(minutes=30),
        "soon": NOW + timedelta(minutes=5),
        "later": NOW + timedelta(hours=3),
        "hidden": "rm -rf /w/\u202e gnp.tpircs" + " " * 400 + "; ls\u200b [REDACTED:github#7f3a]",
        "json": {"type": "done", "data": {"text": "a <b>"}},
    }


def body_of(html: str) -> str:
    main = re.search(r"<main[^>]*>(.*)</main>", html, re.DOTALL)
    assert main
    return "{% verbatim %}" + main[1] + "{% endverbatim %}"


@pytest.mark.browser
@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (1280, "dark"), (320, "light")])
@pytest.mark.parametrize("name", ["styleguide.html", "registration/login.html", "404.html"])
def test_it_is_accessible_and_fits(open_page: OpenPage, name: str, width: int, theme: str) -> None:
    request = RequestFactory().get("/")
    context = {"sample": sample(), "form": AuthenticationForm(request), "next": "/"}
    content = body_of(render_to_string(name, context))

    page = open_page(
        content,
        viewport={"width": width, "height": 800},
        color_scheme=theme,
        reduced_motion="reduce",
    )

    assert page.faults == []  # type: ignore[attr-defined]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    result = Axe().run(page)
    assert result.violations_count == 0, result.generate_report()


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_page_needs_no_context(name: str) -> None:
    shown = render_to_string(name)

    assert "data-error" in shown
    assert "<h1>" in shown


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_has_nothing_that_the_policy_refuses(path: Path) -> None:
    source = path.read_text()

    assert not re.search(r"\sstyle\s*=", source)
    assert "<style" not in source
    assert not re.search(r"<script(?![^>]*\bsrc=)", source)
    assert not re.search(r"\son[a-z]+\s*=", source)
    assert "hx-on" not in source


@pytest.mark.parametrize("path", STYLES, ids=lambda path: path.name)
def test_colours_live_in_the_tokens_alone(path: Path) -> None:
    if path.name == "tokens.css":
        return
    source = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)

    assert not re.findall(
        r"#[0-9a-fA-F]{3,8}\b(?![^{]*\{)|\brgba?\(|\bhsla?\(|oklch\((?!from)", source
    )


def test_every_stylesheet_is_imported() -> None:
    imported = set(
        re.findall(r'@import url\("([^"]+)"\)', (STYLES[0].parent / "app.css").read_text())
    )
    folder = settings.BASE_DIR / "static" / "css"

    assert imported == {str(path.relative_to(folder)) for path in STYLES if path.name != "app.css"}


def test_every_word_that_a_module_says_is_in_the_templates() -> None:
    known = set(
        re.findall(
            r'data-word="(\w+)"',
            (settings.BASE_DIR / "templates/components/words.html").read_text(),
        )
    )
    used = {name for path in MODULES for name in re.findall(r'word\("(\w+)"', path.read_text())}

    assert used <= known


def test_every_icon_that_is_named_is_in_the_sprite() -> None:
    known = set(
        re.findall(
            r'<symbol id="([\w-]+)"', (settings.BASE_DIR / "static/img/icons.svg").read_text()
        )
    )
    used = {
        name
        for path in TEMPLATES
        for name in re.findall(r"{% icon \"([\w-]+)\"|icon_name=\"([\w-]+)\"", path.read_text())
        for name in name
        if name
    }

    assert used <= known
