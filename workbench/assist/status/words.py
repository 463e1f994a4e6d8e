"""Times, durations and numbers as the screen shows them."""

from __future__ import annotations

from evenflow.reporting.words import clock, span


def moment(ms: int | None) -> str:
    """A time in UTC. A dash for None."""
    return "-" if ms is None else clock(ms)


def ago(ms: int) -> str:
    """A duration in words. Clocks of two machines may differ a little, so a negative duration counts as 0."""
    return span(max(0, ms))


def count(number: int, noun: str) -> str:
    """`1 record`, `1,200 records`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
