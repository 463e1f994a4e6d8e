"""Puts tables into a page of the docs, which says with comments where they belong. And words for a cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import dropwhile
from statistics import median


def median_and_range(values: Iterable[float], digits: int) -> str:
    """`MEDIAN (LEAST-GREATEST)`, each with so many digits after the point."""
    listed = list(values)
    return f"{median(listed):.{digits}f} ({min(listed):.{digits}f}-{max(listed):.{digits}f})"


def into_page(page: str, benchmark: str, part: str, markdown: str) -> str:
    """The page with this table (Markdown) in place of the table below `<!-- BENCHMARK PART -->`.

    ValueError if the page has no such comment.
    """
    before, comment, after = page.partition(f"<!-- {benchmark} {part} -->\n")
    if not comment:
        raise ValueError(f"the page has no place for the table {part}")
    rest = dropwhile(lambda line: line.startswith("|"), after.split("\n"))
    return before + comment + "\n".join([markdown, *rest])


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def figure(value: float) -> str:
    """The value with two significant digits, or as a whole number from 100 on."""
    if value >= 100:
        return f"{value:,.0f}"
    return (
        f"{value:.2g}"
        if value >= 0.01
        else ("0" if value == 0 else f"{value:.1g}" if value >= 1e-4 else "<0.0001")
    )
