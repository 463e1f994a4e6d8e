"""When the tuples of a micro-batch came into the input topic: how many by when, for latencies.

Times are ms since 1970 by the broker's or the producer's clock, rounded down to 100 ms. To more where there would be more
than `MOST` of them. Frames know the oldest record of their block, blobs the oldest of their frames: a latency is an upper
bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

Since = Mapping[int, int]
"""Time -> tuples, or partial rows."""
MOST = 64
_FINEST = 100


def since(rows: Iterable[tuple[int | None, int]]) -> Since:
    """Of (when they came, how many). Those of which nobody knows when are left out."""
    found: Counter[int] = Counter()
    for came, number in rows:
        if came is not None and number:
            found[came // _FINEST * _FINEST] += number
    return together(found)


def together(*some: Since) -> Since:
    """All of them, at most `MOST` times."""
    rows: Counter[int] = Counter()
    for one in some:
        rows.update(one)
    width = _FINEST
    while len(rows) > MOST:
        width *= 2
        coarser: Counter[int] = Counter()
        for came, number in rows.items():
            coarser[came // width * width] += number
        rows = coarser
    return dict(rows)
