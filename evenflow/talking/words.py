"""Numbers, times and lists as a person reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import count, groupby

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
_YEAR_MS = 31_556_952_000
_YEAR_1970 = datetime(1970, 1, 1, tzinfo=UTC)
LONGEST_SHOWN = 80
"""Characters of a record or key that people are shown."""


def moment(ms: int) -> str:
    """A time in ms: `2026-01-31 12:00:00.250 UTC`. Beyond the years 1 to 9999 as `the year 58,860`."""
    shown = clock(ms)
    return f"{shown} UTC" if shown[0].isdigit() else shown


def clock(ms: int, *, minutes: bool = False) -> str:
    """A time as `moment` says it, where UTC is said once for many. minutes: without what is below a minute."""
    try:
        shown = _YEAR_1970 + timedelta(milliseconds=ms)
    except OverflowError:
        return f"the year {1970 + ms // _YEAR_MS:,}"
    if minutes:
        return shown.isoformat(" ", "minutes").removesuffix("+00:00")
    return shown.isoformat(" ", "milliseconds").removesuffix("+00:00").removesuffix(".000")


def span(ms: float) -> str:
    """A length of time in its largest fitting unit: `850 ms`, `2.5 s`, `3 h`, `41 d`."""
    for unit, name in _UNITS:
        if abs(ms) >= unit:
            return f"{_short(ms / unit, digits=0 if abs(ms) >= 20 * unit else 1)} {name}"
    return f"{ms:.0f} ms"


def share(part: int, whole: int) -> str:
    """A part of a whole in percent: `31 %`, `0.5 %`. Never rounded to nothing, nor to all."""
    percent = 100 * part / whole if whole else 0.0
    if 0 < percent < 0.1:
        return "under 0.1 %"
    return f"{_short(percent, digits=1)} %" if part == whole or percent < 99.95 else "over 99.9 %"


def numbers(some: Iterable[int]) -> str:
    """`0-3, 7`."""
    runs = []
    steps = count()
    for _, group in groupby(sorted(some), key=lambda number: number - next(steps)):
        run = list(group)
        runs.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
    return ", ".join(runs)


def by_reason(counts: Mapping[str, int]) -> str:
    """`late 3, unreadable 1`: the most frequent first."""
    return ", ".join(f"{name} {n:,}" for name, n in sorted(counts.items(), key=lambda entry: -entry[1]))


def partitions(some: Iterable[int]) -> str:
    """`partition 3`, `partitions 0-3, 7`."""
    known = sorted(some)
    return f"partition{'' if len(known) == 1 else 's'} {numbers(known)}"


def _short(number: float, *, digits: int) -> str:
    """So many digits behind the point, and none where they are zero."""
    return f"{number:,.{digits}f}".removesuffix(".0")


def printable(text: str) -> str:
    """The text with escapes for what a terminal would not show, or could not be written to a file."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def shown_bytes(value: bytes | None) -> str:
    """A record or key for people, cut where it is long: at most `LONGEST_SHOWN` printable characters."""
    if value is None:
        return "no value"
    text = printable(value[: 4 * LONGEST_SHOWN].decode("utf-8", "backslashreplace"))
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 3] + "..."
