"""Numbers, times and bytes as a person reads them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

_LONGEST = 80


def shown_time(milliseconds: int, *, seconds: bool = False) -> str:
    """ "2026-11-20 10:00" (UTC); far times as "the year 58,860"."""
    moment = np.datetime64(milliseconds, "ms")
    year = int(moment.astype("datetime64[Y]").astype(np.int64)) + 1970
    if not 0 < year < 10_000:
        return f"the year {year:,}"
    return str(moment.astype("datetime64[s]" if seconds else "datetime64[m]")).replace("T", " ")


def shown_span(low: int, high: int) -> str:
    """ "2026-11-20 10:00 .. 11:59": the day once, seconds where the minutes are equal."""
    begin, end = shown_time(low), shown_time(high)
    if begin == end:
        begin, end = shown_time(low, seconds=True), shown_time(high, seconds=True)
    if begin == end:
        return begin
    return f"{begin} .. {end.removeprefix(begin.split(' ')[0] + ' ') if begin[0].isdigit() else end}"


def shown_long(milliseconds: int) -> str:
    """About how long: "450 ms", "3.2 s", "2.5 h", "12 days"."""
    for unit, size in (("days", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)):
        if milliseconds >= size:
            return (
                f"{milliseconds / size:.3g} {unit}"
                if milliseconds < 100 * size
                else f"{milliseconds // size:,} {unit}"
            )
    return f"{milliseconds} ms"


def share(part: int, whole: int) -> str:
    """ "31 %"; "0.2 %" where that would be 0."""
    percent = 100 * part / whole if whole else 0.0
    return f"{percent:.0f} %" if percent >= 1 or not part else f"{percent:.1g} %"


def counted(part: int, whole: int) -> str:
    """ "37 of 20,000" or "all 20,000"."""
    return f"all {whole:,}" if part == whole else f"{part:,} of {whole:,}"


def shown_bytes(value: bytes | None) -> str:
    """A record or key for people, cut where it is long."""
    if value is None:
        return "no value"
    text = value[: 4 * _LONGEST].decode("utf-8", "backslashreplace")
    text = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def listed(names: Iterable[str], *, most: int = 12) -> str:
    """ "a, b, c"; "none" of nothing, and "..." after many."""
    every = list(names)
    return ", ".join(every[:most]) + (", ..." if len(every) > most else "") if every else "none"


def plural(kind: str) -> str:
    """A kind of value, of which there are several."""
    return {"text": "text", "null": "nulls", "nested": "nested values"}.get(kind, f"{kind}s")


def numbers(values: Iterable[int]) -> str:
    """ "partition 3" or "partitions 1, 3, ..."."""
    every = list(values)
    return f"partition{'s' if len(every) > 1 else ''} {listed(map(str, every))}"
