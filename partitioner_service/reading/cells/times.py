"""Columns to event times in milliseconds since 1970, and which values are no time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from evenflow.numeric.arrays import Bools, Float64s, Int32s, Int64s, UInt8s, viewed
from evenflow.numeric.kernels import inlined, kernel
from partitioner_service.reading.cells.characters import (
    BLANK,
    CAPITAL_T,
    CAPITAL_Z,
    COLON,
    FORM_FEED,
    MINUS,
    PLUS,
    POINT,
    ZERO,
    is_digit,
    is_space,
)

_NO_DAY = -(2**62)
"""Stands for "no day"."""
MAX_TIME = 8_640_000_000_000_000
"""Largest distance of an event time from 1970 in ms: about 273,000 years, what ISO 8601 libraries can hold.
"""


FIRST_DATED, LAST_DATED = -59_011_459_200_000, 250_246_627_199_999
"""First and last event time, in ms since 1970 UTC, where the sink asks for it (`SinkForm.dated`): the years
100 to 9899. So each window of up to 99 years around them is within the years 1 to 9999, too."""


def undated(times: Int64s) -> Bools:
    """Which of these times are before FIRST_DATED or after LAST_DATED."""
    mask: Bools = (times > LAST_DATED) | (times < FIRST_DATED)
    return mask


def far(times: Int64s) -> Bools:
    """Which of these times are further than MAX_TIME from 1970."""
    mask: Bools = (times > MAX_TIME) | (times < -MAX_TIME)
    return mask


def from_seconds(seconds: Float64s) -> tuple[Int64s, Bools]:
    """Times to the nearest ms, half to even, and which seconds are NaN or too far from 1970.

    Those times are 0.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.rint(seconds * 1000.0)
        wrong = ~(np.abs(rounded) <= MAX_TIME)  # `>` would be false for NaN
    return np.where(wrong, 0, rounded).astype(np.int64), wrong


def from_iso(column: pa.StringArray) -> tuple[Int64s, Bools]:
    """Times of ISO 8601 text, and which texts are no time. A null gives 0.

    A text without a zone is in UTC. Digits beyond the ms are cut off.
    """
    count = len(column)
    _, offsets, data = column.buffers()
    ends = viewed(offsets, np.int32, column.offset, count + 1)
    times, wrong = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    letters = viewed(data, np.uint8, 0, int(ends[-1]) if count else 0)
    _read_iso(letters, ends, column.is_valid().to_numpy(zero_copy_only=False), times, wrong)
    return times, wrong


@inlined
def _two(letters: UInt8s, at: int) -> int:
    """A number of two digits, 100 if one of them is no digit.

    100 is above every limit, so callers refuse it by range.
    """
    tens = letters[at] - ZERO
    ones = letters[at + 1] - ZERO
    return tens * 10 + ones if 0 <= tens <= 9 and 0 <= ones <= 9 else 100


@kernel
def _days(year: int, month: int, day: int) -> int:
    """Days since 1970 of a date of the Gregorian calendar."""
    # The year is counted from March, so that the leap day is its last day. 400 years have 146,097 days. Any
    # five months from March or August on have 153 days. 719,468 days lie between 0000-03-01 and 1970-01-01.
    if month <= 2:
        year -= 1
        month += 12
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month - 3) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


@kernel
def _date(letters: UInt8s, at: int) -> int:
    """Days since 1970 of YYYY-MM-DD. _NO_DAY if the text is no date."""
    century = _two(letters, at)
    of_century = _two(letters, at + 2)
    month = _two(letters, at + 5)
    day = _two(letters, at + 8)
    if century > 99 or of_century > 99 or letters[at + 4] != MINUS or letters[at + 7] != MINUS:
        return _NO_DAY
    year = century * 100 + of_century
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    longest = 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31
    if month == 2:
        longest = 29 if leap else 28
    if not 1 <= month <= 12 or not 1 <= day <= longest:
        return _NO_DAY
    return _days(year, month, day)


@kernel
def _clock(letters: UInt8s, at: int, stop: int) -> tuple[int, int]:
    """HH:MM[:SS[.digits]] -> (ms, where it ends). The end is 0 if the text is no time of day."""
    if stop - at < 5 or letters[at + 2] != COLON:
        return 0, 0
    hours = _two(letters, at)
    minutes = _two(letters, at + 3)
    seconds = 0
    at += 5
    fraction = 0
    if at < stop and letters[at] == COLON:
        if stop - at < 3:
            return 0, 0
        seconds = _two(letters, at + 1)
        at += 3
        if at < stop and letters[at] == POINT:
            at += 1
            begin = at
            weight = 100  # becomes 0 behind the third digit, so further digits add nothing
            while at < stop and is_digit(letters[at]):
                fraction += (letters[at] - ZERO) * weight
                weight //= 10
                at += 1
            if not 1 <= at - begin <= 9:
                return 0, 0
    if hours > 23 or minutes > 59 or seconds > 59:
        return 0, 0
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + fraction, at


@kernel
def _zone(letters: UInt8s, at: int, stop: int) -> tuple[int, int]:
    """A zone -> (ms east of UTC, whether it is right). Nothing means UTC.

    A zone is Z, +HH:MM, -HH:MM, +HHMM or -HHMM, with at most one blank before it.
    """
    if at == stop:
        return 0, 1
    first = letters[at]
    if is_space(first) or first == FORM_FEED:
        at += 1
        if at == stop:
            return 0, 0
    if letters[at] == CAPITAL_Z:
        return 0, int(at + 1 == stop)
    if letters[at] != PLUS and letters[at] != MINUS:
        return 0, 0
    east = 1 if letters[at] == PLUS else -1
    colon = int(stop - at == 6)  # 1 with a colon, so it shifts what follows
    if stop - at != 5 + colon or (colon and letters[at + 3] != COLON):
        return 0, 0
    hours = _two(letters, at + 1)
    minutes = _two(letters, at + 3 + colon)
    return east * (hours * 60 + minutes) * 60_000, int(hours <= 23 and minutes <= 59)


@kernel
def _read_iso(letters: UInt8s, ends: Int32s, valid: Bools, times: Int64s, wrong: Bools) -> None:
    """Fill `times` and `wrong`. ends: text n is letters[ends[n]:ends[n + 1]]."""
    for row in range(valid.shape[0]):
        if not valid[row]:
            continue
        at = ends[row]
        stop = ends[row + 1]
        wrong[row] = True  # until the whole text is read
        if stop - at < 10:
            continue
        days = _date(letters, at)
        if days == _NO_DAY:
            continue
        time = days * 86_400_000
        if stop - at > 10:
            if letters[at + 10] != CAPITAL_T and letters[at + 10] != BLANK:
                continue
            of_day, at = _clock(letters, at + 11, stop)
            if at == 0:
                continue
            east, right = _zone(letters, at, stop)
            if not right:
                continue
            time += of_day - east
        times[row] = time
        wrong[row] = False
