"""What a screen says where words are missing, or a number is none."""

from __future__ import annotations

from evenflow.talking.words import clock, span


def moment(ms: int | None) -> str:
    """A time in UTC. A dash for None."""
    return "-" if ms is None else clock(ms)


def ago(ms: int) -> str:
    """How long. Clocks of two machines may differ a little, so never less than nothing."""
    return span(max(0, ms))


def count(number: int, noun: str) -> str:
    """`1 record`, `1,200 records`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
