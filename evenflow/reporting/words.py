"""Numbers, times and lists in the form in which a person reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import count, groupby

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
_YEAR_MS = 31_556_952_000
"""Mean length of a year of the Gregorian calendar, ms."""
_YEAR_1970 = datetime(1970, 1, 1, tzinfo=UTC)
LONGEST_SHOWN = 80
"""Most characters of a record or key that are shown to people."""


def moment(ms: int) -> str:
    """A time in ms since 1970 as `2026-01-31 12:00:00.250 UTC`. Outside the years 1 to 9999 as
    `the year 58,860`.
    """
    shown = clock(ms)
    return f"{shown} UTC" if shown[0].isdigit() else shown


def clock(ms: int, *, minutes: bool = False) -> str:
    """A time as `moment` writes it, but without `UTC`, for lists that say it once.
    minutes: leave out the seconds.
    """
    try:
        shown = _YEAR_1970 + timedelta(milliseconds=ms)
    except OverflowError:
        return f"the year {1970 + ms // _YEAR_MS:,}"
    if minutes:
        return shown.isoformat(" ", "minutes").removesuffix("+00:00")
    return shown.isoformat(" ", "milliseconds").removesuffix("+00:00").removesuffix(".000")


def span(ms: float) -> str:
    """A length of time (ms) in the largest unit that fits: `850 ms`, `2.5 s`, `3 h`, `41 d`."""
    for unit, name in _UNITS:
        if abs(ms) >= unit:
            return f"{_short(ms / unit, digits=0 if abs(ms) >= 20 * unit else 1)} {name}"
    return f"{ms:.0f} ms"


def share(part: int, whole: int) -> str:
    """A part of a whole in percent: `31 %`, `0.5 %`. A small part is never rounded to 0 %, nor a large one
    to 100 %.
    """
    percent = 100 * part / whole if whole else 0.0
    if 0 < percent < 0.1:
        return "under 0.1 %"
    return f"{_short(percent, digits=1)} %" if part == whole or percent < 99.95 else "over 99.9 %"


def numbers(some: Iterable[int]) -> str:
    """Whole numbers, where neighbours are joined to a range: `0-3, 7`."""
    runs = []
    # Consecutive numbers differ by the same amount from a counter that grows with them, so they form one
    # group.
    steps = count()
    for _, group in groupby(sorted(some), key=lambda number: number - next(steps)):
        run = list(group)
        runs.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
    return ", ".join(runs)


def by_reason(counts: Mapping[str, int]) -> str:
    """Counts by reason, the most frequent first: `late 3, unreadable 1`."""
    return ", ".join(f"{name} {n:,}" for name, n in sorted(counts.items(), key=lambda entry: -entry[1]))


def partitions(some: Iterable[int]) -> str:
    """The word partition with its numbers: `partition 3`, `partitions 0-3, 7`."""
    known = sorted(some)
    return f"partition{'' if len(known) == 1 else 's'} {numbers(known)}"


def _short(number: float, *, digits: int) -> str:
    """The number with this many digits (0 or 1) behind the point, and with none if the digit is zero."""
    return f"{number:,.{digits}f}".removesuffix(".0")


def printable(text: str) -> str:
    """The text with escapes for characters that a terminal does not show or a file cannot hold."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def shown_bytes(value: bytes | None) -> str:
    """A record or key for people, cut to at most `LONGEST_SHOWN` printable characters."""
    if value is None:
        return "no value"
    # A character has at most 4 bytes in UTF-8, so of a value that is too long these bytes hold too many
    # characters.
    text = printable(value[: 4 * (LONGEST_SHOWN + 1)].decode("utf-8", "backslashreplace"))
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 3] + "..."
