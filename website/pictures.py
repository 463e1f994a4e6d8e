"""A hook of mkdocs: pictures stand in the page itself, so that whoever points at a mark reads its values.

Our charts carry the values of each mark as `aria-label`. Here each gets a `<title>` of them, which a browser shows.
pictures.js shows it at once. The files stay as they are.
"""

from __future__ import annotations

import re
from html import escape, unescape
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page

_IMAGE = re.compile(r'<img alt="([^"]*)" src="([^"]+\.svg)"[^>]*>')
_MARK = re.compile(
    r'<(path|line) aria-label="([^"]*)" role="graphics-symbol" aria-roledescription="([^"]*)"([^>]*?)/>'
)
_PIXELS = {"x", "y", "x2", "y2"}
_LOOKS = {"colour", "width", "size", "at", "name"}
_WIDE = 12
"""Width in pixels of what can be pointed at of a line, which is thinner."""


def words_of(label: str, kind: str) -> str:
    """What a mark says when somebody points at it. Empty: nothing.

    label: `name: value; ...`, as in the chart. kind: the kind of mark. A line's values are those of its first point only,
    so it says its name alone.
    """
    values = dict(part.rpartition(": ")[::2] for part in unescape(label).split("; "))
    name = values.get("name", "")
    if kind == "line mark":
        return name
    shown = [f"{key}: {_rounded(value)}" for key, value in values.items() if key not in _LOOKS | _PIXELS]
    return "\n".join([name, *shown] if name else shown)


def _rounded(value: str) -> str:
    try:
        return f"{float(value.replace(',', '')):.4g}"
    except ValueError:
        return value


def inlined(svg: str, alt: str) -> str:
    """The picture as a part of a page, with a title for each mark."""

    def mark(match: re.Match[str]) -> str:
        tag, label, kind, rest = match.groups()
        words = words_of(label, kind)
        if not words:
            return match[0]
        title = f"<title>{escape(words, quote=False)}</title>"
        whole = f'{match[0].removesuffix("/>")} class="mark">{title}</{tag}>'
        if kind != "line mark":
            return whole
        (path,) = re.findall(r' d="[^"]*"', rest)
        return f'{whole}<path class="near"{path} fill="none" stroke="transparent" stroke-width="{_WIDE}">{title}</path>'

    return f'<figure class="picture" role="group" aria-label="{alt}">{_MARK.sub(mark, svg)}</figure>'


def on_post_page(output: str, *, page: Page, config: MkDocsConfig) -> str:
    """The whole page, after its words are in the index of the search: pictures are not searched."""
    folder = Path(config.docs_dir) / Path(page.file.dest_uri).parent

    def picture(match: re.Match[str]) -> str:
        return inlined((folder / match[2]).read_text(encoding="utf-8"), match[1])

    return _IMAGE.sub(picture, output)
