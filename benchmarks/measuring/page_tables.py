"""Puts tables into a page of the docs. The page says with comments where they belong."""

from __future__ import annotations

from itertools import dropwhile


def into_page(page: str, benchmark: str, part: str, table: str) -> str:
    """The page with this table in place of the table below `<!-- BENCHMARK PART -->`.

    ValueError if the page has no such comment.
    """
    before, comment, after = page.partition(f"<!-- {benchmark} {part} -->\n")
    if not comment:
        raise ValueError(f"the page has no place for the table {part}")
    rest = dropwhile(lambda line: line.startswith("|"), after.split("\n"))
    return before + comment + "\n".join([table, *rest])
