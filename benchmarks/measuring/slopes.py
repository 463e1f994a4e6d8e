"""Speed as a slope between two lengths. What both have in common falls out: the cold start and the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.measuring.cpu import Used, budget, occupancy


@dataclass(frozen=True)
class Length:
    """A stream of a given length, and what it took."""

    tuples: int
    """Tuples of the whole stream."""
    seconds: float
    """Wall time from start to end."""
    used: Used
    """CPU seconds by process."""
    rows: int | None = None
    """Result rows. None: not counted."""


def slope(short: Length, long: Length) -> dict[str, object]:
    """Tuples per second, and CPU time, of what the long stream has more than the short one.

    ValueError if the long stream is not longer, or did not take longer.
    """
    tuples, seconds = long.tuples - short.tuples, long.seconds - short.seconds
    if tuples <= 0 or seconds <= 0:
        raise ValueError(f"{long.tuples} tuples in {long.seconds} s are not more than {short}")
    rows = None if long.rows is None or short.rows is None else long.rows - short.rows
    # Noise must not make a process's CPU time negative.
    used = {label: max(0.0, value - short.used.get(label, 0.0)) for label, value in long.used.items()}
    figures: dict[str, object] = {
        "tuples": tuples,
        "seconds": round(seconds, 2),
        "tuples_per_second": round(tuples / seconds),
    }
    if rows is not None:
        figures |= {"result_rows": rows, "result_rows_per_second": round(rows / seconds)}
    return figures | occupancy(used, seconds) | budget(used, tuples=tuples, rows=rows)


def highest(
    ladder: Sequence[int], first: int, holds: Callable[[int], bool], *, most: int | None = None
) -> int | None:
    """The highest rung that holds, None if none does.

    The search begins at `first` (an index), goes up or down in doubling steps, and then halves the rest.
    After `most` questions the result is the highest rung that was seen to hold.
    """
    # `low` is the highest rung that is known to hold, `high` the lowest that is known not to.
    low, high, probe, stride = -1, len(ladder), first, 1
    probes = 0
    while high - low > 1 and probes != most:
        probes += 1
        if holds(ladder[probe]):
            low = probe
        else:
            high = probe
        if low >= 0 and high < len(ladder):
            probe = (low + high) // 2
        else:
            probe = max(high - stride, 0) if low < 0 else min(low + stride, len(ladder) - 1)
            stride *= 2
    return ladder[low] if low >= 0 else None
