"""Which figures, tables and algorithms the source of a claim names."""

from __future__ import annotations

import re

from papers.inventory.item import Kind

Name = tuple[str, Kind, str]
"""(paper, kind, number)."""
_KINDS: dict[str, Kind] = {"fig. ": "fig.", "table ": "table", "alg. ": "alg."}
# The thesis counts figures by chapter (2.6). In the other papers a number with a dot is a section.
_NUMBER, _BY_CHAPTER = r"\d+(?![.\d])", r"\d+\.\d+"


def items_of(source: str) -> set[Name]:
    """The items that a source names: "000, fig. 7-8, 5.1" names two figures. Letters of parts are left
    out.
    """
    paper = re.search(r"\b(00\d)\b", source)
    if paper is None:
        return set()
    names: set[Name] = set()
    for word, kind in _KINDS.items():
        plain = _BY_CHAPTER if paper[1] == "001" and kind == "fig." else _NUMBER
        span = rf"{plain}[a-z]?(?:-(?:{plain})?[a-z]?)?"
        for match in re.finditer(
            rf"\b{re.escape(word)}({span}(?:(?:, | and ){span})*)", source, re.IGNORECASE
        ):
            for first, last in re.findall(rf"({plain})[a-z]?(?:-({plain}))?", match[1]):
                names |= {(paper[1], kind, number) for number in _between(first, last or first)}
    return names


def _between(first: str, last: str) -> list[str]:
    """The numbers from the first to the last: 5 to 7, 4.7 to 4.9."""
    chapter, dot, low = first.rpartition(".")
    high = last.rpartition(".")[2]
    return [f"{chapter}{dot}{number}" for number in range(int(low), int(high) + 1)]
