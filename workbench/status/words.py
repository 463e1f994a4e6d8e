"""Times and counts as a person reads them."""

from __future__ import annotations

from datetime import UTC, datetime


def moment(ms: int | None) -> str:
    """`2023-11-14 22:13:20` (UTC); a dash for None, the bare number where no calendar has that time."""
    if ms is None:
        return "-"
    try:
        shown = datetime.fromtimestamp(ms / 1000, UTC).isoformat(" ", "milliseconds")
    except (ValueError, OverflowError, OSError):
        return str(ms)
    return shown.removesuffix("+00:00").removesuffix(".000")


def ago(ms: int) -> str:
    """`2 s`, `5 min`, `3 h`, `12 d`."""
    seconds = max(0, ms) / 1000
    for unit, length, most in (("s", 1, 120), ("min", 60, 7_200), ("h", 3_600, 172_800)):
        if seconds < most:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"


def count(number: int, noun: str) -> str:
    """`1 record`, `1,200 records`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
