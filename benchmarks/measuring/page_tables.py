"""Puts tables into a page of the docs, which says with comments where they belong. And words for a cell."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import dropwhile
from statistics import median


def median_and_range(values: Iterable[float], digits: int) -> str:
    """`MEDIAN (LEAST-GREATEST)`, each with so many digits after the point."""
    listed = list(values)
    return f"{median(listed):.{digits}f} ({min(listed):.{digits}f}-{max(listed):.{digits}f})"


def into_page(page: str, benchmark: str, part: str, table: str) -> str:
    """The page with this table in place of the table below `<!-- BENCHMARK PART -->`.

    ValueError if the page has no such comment.
    """
    before, comment, after = page.partition(f"<!-- {benchmark} {part} -->\n")
    if not comment:
        raise ValueError(f"the page has no place for the table {part}")
    rest = dropwhile(lambda line: line.startswith("|"), after.split("\n"))
    return before + comment + "\n".join([table, *rest])
