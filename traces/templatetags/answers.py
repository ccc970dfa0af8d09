"""Answers of models as Markdown: their own HTML stays text, nothing is loaded, links say where they lead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import template
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from runtime_core.templatetags.visible_text import mark_redactions

register = template.Library()

MAX_CHARACTERS = 100_000
LINKS = ("http://", "https://", "mailto:")


class AnswerRenderer(RendererHTML):
    """The usual HTML; texts show redactions as chips, links carry no referrer and no trust."""

    def text(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        """Escaped text, redactions marked."""
        return mark_redactions(tokens[idx].content)

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        """A link that gives nothing away."""
        tokens[idx].attrSet("rel", "noopener noreferrer nofollow ugc")
        return self.renderToken(tokens, idx, options, env)

    def heading_open(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any
    ) -> str:
        """Headings begin below those of the page."""
        tokens[idx].tag = _below(tokens[idx].tag)
        return self.renderToken(tokens, idx, options, env)

    def heading_close(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any
    ) -> str:
        """The end of one."""
        tokens[idx].tag = _below(tokens[idx].tag)
        return self.renderToken(tokens, idx, options, env)


def _below(tag: str) -> str:
    return f"h{min(int(tag[1]) + 2, 6)}"


def _made() -> MarkdownIt:
    made = MarkdownIt(
        "commonmark",
        {"html": False, "linkify": False, "maxNesting": 20},
        renderer_cls=AnswerRenderer,
    )
    made.enable("table").disable(["image", "html_block", "html_inline"])
    made.validateLink = lambda url: url.strip().lower().startswith(LINKS)  # type: ignore[method-assign]
    return made


_markdown = _made()


@register.filter
def answer_html(text: str) -> SafeString:
    """The answer as HTML; a very long one stays plain text."""
    if len(text) > MAX_CHARACTERS:
        return mark_safe(f"<pre>{mark_redactions(text)}</pre>")  # noqa: S308 (escaped there)
    html: str = _markdown.render(text)
    return mark_safe(html)  # noqa: S308 (html is off; texts are escaped)
