"""Stretches of time, counts and names of a sample, as a person reads them."""

from __future__ import annotations

from collections.abc import Iterable

from evenflow.reporting.words import clock, printable

_LONGEST = 80


def shown_span(low: int, high: int) -> str:
    """ "2026-11-20 10:00 .. 11:59". The day stands once if it is the same, and ms stand there if the
    minutes are equal.
    """
    begin, end = clock(low, minutes=True), clock(high, minutes=True)
    if begin == end:
        begin, end = clock(low), clock(high)
    if begin == end:
        return begin
    return f"{begin} .. {end.removeprefix(begin.split(' ')[0] + ' ') if begin[0].isdigit() else end}"


def counted(part: int, whole: int) -> str:
    """ "37 of 20,000" or "all 20,000"."""
    return f"all {whole:,}" if part == whole else f"{part:,} of {whole:,}"


def listed(names: Iterable[str], *, most: int = 12) -> str:
    """ "a, b, c", or "none" if there are no names. Only the first `most` are named, and "..." follows
    them.
    """
    every = [printable(name[:_LONGEST]) for name in names]
    return ", ".join(every[:most]) + (", ..." if len(every) > most else "") if every else "none"


def plural(kind: str) -> str:
    """The plural of a kind of value."""
    return {"text": "text", "null": "nulls", "nested": "nested values"}.get(kind, f"{kind}s")
