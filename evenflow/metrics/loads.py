"""Tuple imbalance: how far the fullest worker is above the mean.

With m tuples over n workers and L(w) tuples at worker w:

    I(m) = max_w L(w)/m - 1/n          (002, of a stream so far)
    max_w L(w) - mean L                (000 eq. 1, 004 eq. 1, of a window, absolute)

The second figure divided by m is the first. We report this share. Without tuples it is 0.

If tuples have costs, L(w) is the sum of the costs at worker w, and m the sum of all costs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evenflow.numeric.arrays import Float64s, Int64s
from evenflow.numeric.imbalance import imbalance_of

Integers = npt.NDArray[np.integer[Any]]


def worker_loads(workers: Integers, n: int, costs: Int64s | None = None) -> Int64s:
    """Tuples of each of n workers, or the sum of their costs, shape (n,).
    ValueError if a worker is not in 0 .. n-1.

    costs: of each tuple, shape (m,). Sums are exact up to 2^53.
    """
    if len(workers) and not 0 <= int(workers.min()) <= int(workers.max()) < n:
        raise ValueError(f"workers from {workers.min()} to {workers.max()} are not all in 0..{n - 1}")
    return np.bincount(workers, costs, minlength=n).astype(np.int64)


def absolute_imbalance(loads: Integers) -> float:
    """The largest load less the mean load, in the unit of the loads."""
    return float(loads.max() - loads.mean())


def imbalance(loads: Integers) -> float:
    """I(m): the share of the fullest worker in all loads, less 1/n. 0 without tuples."""
    return imbalance_of(float(loads.max()), int(loads.sum()), len(loads))


def _pane_loads(workers: Integers, panes: Int64s, n: int, costs: Int64s | None) -> tuple[Int64s, Int64s]:
    """(panes that have tuples, ascending; the loads in each, shape (panes, n)). ValueError as
    `worker_loads`.
    """
    present, index = np.unique(panes, return_inverse=True)
    worker_loads(workers, n)  # only to raise ValueError for a worker out of range
    cells = np.bincount(index.astype(np.int64) * n + workers, costs, minlength=len(present) * n)
    return present, cells.reshape(len(present), n).astype(np.int64)


def window_imbalance(
    workers: Integers, panes: Int64s, n: int, *, panes_per_window: int = 1, costs: Int64s | None = None
) -> tuple[Int64s, Float64s]:
    """(last pane of each window, its imbalance), for every window that has a tuple.

    A window is `panes_per_window` consecutive panes. The windows are those whose last pane lies between the
    first and the last pane that have tuples. So the first windows are still filling. costs: as for
    `worker_loads`.
    """
    present, loads = _pane_loads(workers, panes, n, costs)
    if not len(present):
        return np.empty(0, np.int64), np.empty(0, np.float64)
    # Loads of a window are a difference of running sums over the panes that have tuples.
    running = np.vstack([np.zeros((1, n), np.int64), np.cumsum(loads, axis=0)])
    ends = np.unique((present[:, None] + np.arange(panes_per_window)).ravel())
    ends = ends[ends <= present[-1]]
    until = np.searchsorted(present, ends, side="right")
    since = np.searchsorted(present, ends - panes_per_window, side="right")
    inside = running[until] - running[since]
    return ends, inside.max(axis=1) / inside.sum(axis=1) - 1 / n
