"""CPU time of a call, and unit costs that are fitted to such times."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median

import numpy as np


def cpu(work: Callable[[], object], *, calls: int = 1, repetitions: int = 7) -> float:
    """CPU seconds of one call: the median over repetitions of `calls` calls each. One call before is not
    counted.
    """
    work()
    seconds = []
    for _ in range(repetitions):
        began = time.process_time()
        for _ in range(calls):
            work()
        seconds.append((time.process_time() - began) / calls)
    return median(seconds)


def fitted(counts: Sequence[Sequence[float]], seconds: Sequence[float]) -> list[float]:
    """Unit costs, one for each column of `counts`, whose sums come nearest to the times. No cost is negative.

    `counts` has one row per time. Distance is relative to the time, so that small times count as much as
    large ones. A column whose cost would be negative gets 0, and the others are fitted again without it.
    """
    rows, times = np.asarray(counts, np.float64), np.asarray(seconds, np.float64)
    columns = list(range(rows.shape[1]))
    while True:
        solution = np.linalg.lstsq(rows[:, columns] / times[:, None], np.ones(len(times)), rcond=None)[0]
        if (solution >= 0).all():
            break
        del columns[int(np.argmin(solution))]
    costs = np.zeros(rows.shape[1])
    costs[columns] = solution
    return costs.tolist()
