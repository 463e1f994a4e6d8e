"""When the tuples of a micro-batch came into the input topic: how many tuples at which time. Latencies are
made of this.

Times are ms since 1970 by the broker's or the producer's clock, rounded down to 100 ms. If there would be
more than `MOST` times, they are rounded down to 200 ms, 400 ms and so on. A frame knows only the oldest
record of its block, and a blob only the oldest of its frames. So a latency is an upper bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

ArrivalCounts = Mapping[int, int]
"""Time (ms) -> number of tuples or rows that came then."""
MOST = 64
"""`ArrivalCounts` has at most so many times."""
_FINEST = 100
"""Width (ms) to which times are rounded first."""


def count_arrivals(rows: Iterable[tuple[int | None, int]]) -> ArrivalCounts:
    """Counts of these pairs (time when rows came, how many rows). Rows whose time is None are left out."""
    counts: Counter[int] = Counter()
    for time, number in rows:
        if time is not None and number:
            counts[time // _FINEST * _FINEST] += number
    return merge_arrivals(counts)


def merge_arrivals(*some: ArrivalCounts) -> ArrivalCounts:
    """The sum of these counts, with at most `MOST` times."""
    rows: Counter[int] = Counter()
    for counts in some:
        rows.update(counts)
    width = _FINEST
    while len(rows) > MOST:
        width *= 2
        coarser: Counter[int] = Counter()
        for time, number in rows.items():
            coarser[time // width * width] += number
        rows = coarser
    return dict(rows)
