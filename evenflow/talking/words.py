"""Numbers, times and lists as a person reads them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import count, groupby

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(ms: int) -> str:
    """An event time in ms: `2026-01-31 12:00:00.250 UTC`; beyond the years 1 to 9999 the number itself."""
    try:
        shown = _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return f"{ms} ms (no date)"
    return f"{shown:%Y-%m-%d %H:%M:%S}{f'.{ms % 1000:03d}' if ms % 1000 else ''} UTC"


def span(ms: float) -> str:
    """A length of time in its largest fitting unit: `850 ms`, `2.5 s`, `3.2 h`, `41 d`."""
    for unit, name in _UNITS:
        if abs(ms) >= unit:
            return f"{ms / unit:,.0f} {name}" if abs(ms) >= 20 * unit else f"{ms / unit:.1f} {name}"
    return f"{ms:.0f} ms"


def share(part: int, whole: int) -> str:
    """A part of a whole in percent, never rounded down to nothing."""
    percent = 100 * part / whole if whole else 0.0
    return f"{percent:.1f} %" if percent >= 0.1 or not part else "under 0.1 %"


def numbers(some: Iterable[int]) -> str:
    """`0-3, 7`."""
    runs = []
    steps = count()
    for _, group in groupby(sorted(some), key=lambda number: number - next(steps)):
        run = list(group)
        runs.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
    return ", ".join(runs)


def by_reason(counts: dict[str, int]) -> str:
    """`late 3, unreadable 1`: the most frequent first."""
    return ", ".join(f"{name} {n:,}" for name, n in sorted(counts.items(), key=lambda entry: -entry[1]))


def partitions(some: Iterable[int]) -> str:
    """`partition 3`, `partitions 0-3, 7`."""
    known = sorted(some)
    return f"partition{'' if len(known) == 1 else 's'} {numbers(known)}"
