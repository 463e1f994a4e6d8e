"""Wraps the paragraphs of a page in Markdown.

Tables, code, headings and HTML keep their lines, and so do links and code that are longer than a line. A
paragraph without a wide line stays as it is.
"""

from __future__ import annotations

import re

WIDTH = 110
"""As wide as the code (`line-length` in pyproject.toml)."""

_FENCE = re.compile(r"\s*(```|~~~)")
_NO_TEXT = re.compile(r"\s*($|[|<>!]|#+(\s|$)|\[[^\]]*\]: )")
"""How a line begins that belongs to no paragraph."""
_CODE = re.compile(r" {4}")
"""How a line of code begins where no list is open."""
_ITEM = re.compile(r"\s*([*+-]|\d+[.)]) +")
_PIECE = re.compile(r"(?:`[^`]*`|\S)+")
"""What stays on one line: a word, a piece of code."""
_NOT_FIRST = re.compile(r"([*+#>=-]+|\d+[.)])$|[|#>]")
"""A piece that would mean something else if a line began with it."""


def wrapped(text: str) -> str:
    """The text of a page with its wide paragraphs wrapped. It shows the same."""
    lines: list[str] = []
    paragraph: list[str] = []
    fenced = listed = False
    for line in text.split("\n"):
        fence = _FENCE.match(line) is not None
        item = _ITEM.match(line) is not None
        code = _CODE.match(line) is not None and not listed
        kept = fenced or fence or code or _NO_TEXT.match(line) is not None
        if kept or item:
            lines += _narrow(paragraph)
            paragraph = []
        (lines if kept else paragraph).append(line)
        fenced ^= fence
        if line.strip():
            listed = item or (listed and line.startswith(" "))
    return "\n".join([*lines, *_narrow(paragraph)])


def _narrow(paragraph: list[str]) -> list[str]:
    """The lines of a paragraph or item, wrapped if one is too wide."""
    if max(map(len, paragraph), default=0) <= WIDTH:
        return paragraph
    first, *others = paragraph
    item = _ITEM.match(first)
    begin = item[0] if item else first[: len(first) - len(first.lstrip())]
    lines = [begin]
    for piece in _pieces(" ".join([first[len(begin) :], *(line.strip() for line in others)])):
        if lines[-1] == begin:
            lines[-1] = begin + piece
        elif len(lines[-1]) + 1 + len(piece) <= WIDTH:
            lines[-1] += " " + piece
        else:
            lines.append(" " * len(begin) + piece)
    return lines


def _pieces(text: str) -> list[str]:
    pieces: list[str] = []
    for piece in _PIECE.findall(text):
        if pieces and _NOT_FIRST.match(piece):
            pieces[-1] += " " + piece
        else:
            pieces.append(piece)
    return pieces
