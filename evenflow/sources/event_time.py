"""Converts columns of event times to int64 milliseconds and back, vectorised. The user chooses the unit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.errors import ConfigError
from evenflow.grammar.inputs import TimeUnit

_CLOCK_WITH_ZONE = r":\d\d(?:\.\d+)?(?:Z|[+-]\d\d(?::?\d\d)?)$"
"""The end of a time with a zone.
The colon before it keeps the hyphens of a plain date from being read as a zone.
"""


def parse_times(column: pa.ChunkedArray, unit: TimeUnit, *, name: str, where: str) -> np.ndarray:
    """Milliseconds since 1970 UTC of every row, rounded down, shape (rows,).

    Numbers may be given as text. ISO text without a zone means UTC. ConfigError names the first row that
    fails.
    """
    if len(column) == 0:  # a column without rows may have any type, so it is not checked
        return np.empty(0, np.int64)
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    try:
        return _parse(column, unit)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
        row = _first_failure(column, lambda part: _parse(part, unit))
        text = column[row].as_py()
        problem = "is blank" if text is None or text == "" else f"is {text!r}"
        form = "ISO 8601 text" if unit == "iso" else f"a number of {unit} since 1970 UTC"
        raise ConfigError(
            f"{where}: the time column {name!r} {problem} in row {row + 1}, which is not {form}",
            hint="correct that row, or choose another --time or --time-unit (s, ms, us, iso)",
        ) from None


def render_times(times: np.ndarray, unit: TimeUnit) -> pa.Array:
    """Times (ms) as a column in `unit`: integers (seconds rounded down), or ISO text with milliseconds and
    Z.
    """
    if unit == "iso":
        stamps = pa.array(times, pa.int64()).cast(pa.timestamp("ms"))
        return pc.strftime(stamps, format="%Y-%m-%dT%H:%M:%SZ")
    if unit == "s":
        return pa.array(times // 1000)
    return pa.array(times * 1000 if unit == "us" else times)


def _parse(column: pa.Array, unit: TimeUnit) -> np.ndarray:
    if column.null_count:
        raise ValueError("blank")
    if unit == "iso":
        micros = _iso_micros(column)
        return micros // 1000
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = _numbers(pc.utf8_trim_whitespace(column))
    if pa.types.is_floating(column.type):
        return _from_floats(column.to_numpy(zero_copy_only=False), unit)
    if not pa.types.is_integer(column.type):
        raise ValueError("not a number")
    ticks = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
    # `abs` of a numpy int64 would overflow at its least value, so this is done with Python's integers.
    if unit == "s" and ticks.size and max(abs(int(ticks.min())), abs(int(ticks.max()))) > 2**62 // 1000:
        raise ValueError("out of range")
    return ticks * 1000 if unit == "s" else ticks // 1000 if unit == "us" else ticks


def _numbers(column: pa.Array) -> pa.Array:
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column.cast(pa.float64())


def _from_floats(ticks: np.ndarray, unit: TimeUnit) -> np.ndarray:
    scale = {"s": 1000.0, "ms": 1.0, "us": 0.001}[unit]
    if not np.isfinite(ticks).all() or (np.abs(ticks) * scale > 2.0**62).any():
        raise ValueError("not finite")
    return np.floor(ticks * scale).astype(np.int64)


def _iso_micros(column: pa.Array) -> np.ndarray:
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64()).to_numpy()
    if pa.types.is_date(column.type):
        return column.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise ValueError("not text")
    text = pc.utf8_trim_whitespace(column)
    # Arrow's cast to microseconds refuses more than six digits behind the point. Further digits are cut off.
    if pc.any(pc.match_substring_regex(text, r"\.\d{7}")).as_py():
        text = pc.replace_substring_regex(text, r"(\.\d{6})\d+", r"\1")
    # Arrow parses text with a zone only to a type with one, and text without a zone only to a type without
    # one.
    zoned = pc.match_substring_regex(text, _CLOCK_WITH_ZONE).to_numpy(zero_copy_only=False).astype(bool)
    micros = np.empty(len(text), np.int64)
    for mask, kind in ((zoned, pa.timestamp("us", "UTC")), (~zoned, pa.timestamp("us"))):
        if mask.all():
            return text.cast(kind).cast(pa.int64()).to_numpy()
        if mask.any():
            micros[mask] = text.filter(pa.array(mask)).cast(kind).cast(pa.int64()).to_numpy()
    return micros


def _first_failure(column: pa.Array, parse: Callable[[pa.Array], object]) -> int:
    """Index of the first row that does not parse, by bisection. `parse` has failed for the whole column."""
    # Rows before `low` parse, and the first failure lies before `high`.
    low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            parse(column.slice(low, middle - low))
            low = middle
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
            high = middle
    return low
