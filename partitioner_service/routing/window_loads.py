"""The imbalance of event-time windows over the tuples of one instance: what the papers measure, but live.

The figures are for people, so memory is bounded, and nothing is told of a window that is not known as a
whole. Tuples of an aborted transaction are routed again, and then count twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenflow.metrics import imbalance
from evenflow.numeric.arrays import Int64s
from evenflow.settings import Query
from evenflow.windows import panes_closed_by, window_bounds

_MOST_CELLS = 1 << 18
"""Counters (panes x workers) that are remembered: 2 MiB."""
_MOST_PANES = 2_048
_MOST_CELLS_OF_A_BLOCK = 1 << 15
"""Counters of one block. A block of more panes than that (times far apart) is not counted."""


class PaneLoads(NamedTuple):
    """The loads of a block by pane.
    There are none if the block has no tuples, or too many panes to be counted.
    """

    panes: Int64s
    """The panes that have tuples, ascending, shape (panes,)."""
    loads: Int64s
    """Sum of the costs of the tuples by pane and worker, shape (panes, workers)."""
    last: int | None
    """The last pane of the block. None if the block has no tuples."""


def sums(costs: Int64s | None, places: npt.NDArray[np.integer[Any]], *, size: int) -> Int64s:
    """The sum of the costs of the tuples in each place, shape (size,). costs: None if each tuple costs 1."""
    if costs is None:
        return np.bincount(places, minlength=size)
    # bincount adds up floats. They are exact up to 2^53, and no block has 2^33 tuples.
    return np.bincount(places, weights=costs, minlength=size).astype(np.int64)


def block_loads(
    workers: npt.NDArray[np.integer[Any]], panes: Int64s, loads: Int64s, costs: Int64s | None = None
) -> PaneLoads:
    """The loads of a block by pane. Nearly free in the usual case that all tuples are in one pane.

    workers, panes: of each tuple, shape (tuples,). loads: sum of the costs by worker, shape (workers,).
    costs: of each tuple, shape (tuples,). None: each costs 1.
    """
    n, nothing = len(loads), np.empty(0, np.int64)
    if not len(panes):
        return PaneLoads(nothing, np.empty((0, n), np.int64), None)
    first, last = int(panes.min()), int(panes.max())
    if first == last:
        return PaneLoads(np.array([first]), loads.reshape(1, -1), last)
    size = (last - first + 1) * n
    if size > _MOST_CELLS_OF_A_BLOCK:
        return PaneLoads(nothing, np.empty((0, n), np.int64), last)
    cells = sums(costs, (panes - first) * n + workers, size=size).reshape(-1, n)
    present = np.flatnonzero(cells.any(axis=1))
    return PaneLoads(present + first, cells[present], last)


@dataclass
class _Pane:
    loads: Int64s
    """Load of each worker, shape (n,)."""
    workers: int
    """Number of workers in use. 0 if this number changed within the pane."""


class WindowLoads:
    """Loads of the panes whose windows are not all closed."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._span = query.window // query.slide_ms
        self._panes: dict[int, _Pane] = {}
        self._known_from: int | None = None
        self._newest_pane: int | None = None
        self.last: tuple[int, float] | None = None
        """(end in ms, imbalance) of the newest closed window. None if that window is not known as a whole."""

    def note(self, block: PaneLoads, *, workers: int) -> None:
        """Count the tuples of a block. workers: number of workers in use."""
        if block.last is not None and not len(block.panes):  # the block was not counted
            self._forget(block.last)
        for pane, added in zip(block.panes.tolist(), block.loads, strict=True):
            pane_loads = self._panes.get(pane)
            if pane_loads is None:
                self._panes[pane] = _Pane(added.copy(), workers)
            else:
                pane_loads.loads += added
                # 0: the number changed within the pane, and the mean load of a worker is not defined.
                pane_loads.workers = workers if pane_loads.workers == workers else 0
        most = min(_MOST_PANES, _MOST_CELLS // block.loads.shape[1])
        if len(self._panes) > most:
            # Half at once, so that this sort is rare.
            self._forget(sorted(self._panes)[len(self._panes) // 2])

    def pass_to(self, mark: int) -> None:
        """Note that every tuple before this event time (ms) has been routed.

        Computes `last` anew if a pane closed.
        """
        closed = int(panes_closed_by(mark, self._query.slide_ms))
        newest = max((pane for pane in self._panes if pane < closed), default=None)
        if newest is None or (self._newest_pane is not None and newest <= self._newest_pane):
            return
        first, self._newest_pane = newest - self._span + 1, newest
        window = [entry for pane, entry in self._panes.items() if first <= pane <= newest]
        # If the number of workers changed within a window, its mean load is not defined.
        workers = {entry.workers for entry in window}
        whole = self._known_from is None or first >= self._known_from
        self.last = None
        if whole and len(workers) == 1 and 0 not in workers:
            loads = np.sum([entry.loads for entry in window], axis=0)[: workers.pop()]
            _, end = window_bounds(newest, window=self._query.window, slide=self._query.slide_ms)
            self.last = (end, max(0.0, imbalance(loads)))
        self._forget(closed - self._span)

    def _forget(self, last: int) -> None:
        """Forget all panes up to this one.

        Windows that begin in one of them are no longer known as a whole.
        """
        self._panes = {pane: entry for pane, entry in self._panes.items() if pane > last}
        self._known_from = last + 1 if self._known_from is None else max(self._known_from, last + 1)
