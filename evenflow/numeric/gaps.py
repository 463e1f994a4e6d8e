"""Event times that belong together, told from those beyond a gap."""

from __future__ import annotations

import numpy as np

from evenflow.numeric.arrays import Bools, Int64s


def body_of(times: Int64s, far: int) -> Bools:
    """Which of these times (ms) belong together, shape (n,).

    Sorted, the times fall apart wherever two neighbours are more than `far` ms apart. The largest part is the
    body if it holds more than two thirds of the times. Otherwise no time is told from the others, and all
    are.
    """
    if times.size < 3:
        return np.ones(times.size, bool)
    ordered = np.sort(times)
    # Times of garbage span more than 64 bits hold, so the differences are taken as floats.
    cuts = np.flatnonzero(np.diff(ordered.astype(np.float64)) > far) + 1
    begins, ends = np.append(0, cuts), np.append(cuts, times.size)
    largest = int(np.argmax(ends - begins))
    if 3 * int(ends[largest] - begins[largest]) <= 2 * times.size:
        return np.ones(times.size, bool)
    return (times >= ordered[begins[largest]]) & (times <= ordered[ends[largest] - 1])
