"""The imbalance of event-time windows, as far as one instance routed them: what the papers measure, while it happens.

Tuples of a transaction that was aborted and routed again count twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenflow.arrays import Int64s
from evenflow.metrics import imbalance
from evenflow.metrics.loads import pane_loads
from evenflow.settings import Query
from evenflow.windows import panes_closed_by, window_bounds

_MOST_CELLS = 1 << 20
"""Counters (panes x workers) that are remembered: 8 MiB."""
_NEAR = 64


def loads_by_pane(panes: Int64s, workers: Int64s, loads: Int64s) -> tuple[Int64s, Int64s]:
    """(panes that have tuples, ascending; tuples by pane and worker, shape (panes, workers)) of at least one tuple.

    loads: tuples by worker. Nearly free where all tuples are of one pane, which is usual.
    """
    first, last = int(panes.min()), int(panes.max())
    if first == last:
        return np.array([first]), loads.reshape(1, -1)
    if last - first >= _NEAR:
        return pane_loads(workers, panes, len(loads))
    size = (last - first + 1) * len(loads)
    cells = np.bincount((panes - first) * len(loads) + workers, minlength=size).reshape(-1, len(loads))
    present = np.flatnonzero(cells.any(axis=1))
    return present + first, cells[present]


@dataclass
class _Pane:
    loads: Int64s
    workers: int
    """In use when it was added to last."""


class WindowLoads:
    """Loads of the panes whose windows are not all closed. last: (end in ms, imbalance) of the newest closed window."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._span = query.window // query.slide_ms
        self._panes: dict[int, _Pane] = {}
        self._forgotten: int | None = None
        self.last: tuple[int, float] | None = None

    def note(self, panes: Int64s, loads: Int64s, *, workers: int) -> None:
        """Tuples of a block by pane and worker, as `loads_by_pane` gives them; workers: in use."""
        for pane, added in zip(panes.tolist(), loads, strict=True):
            known = self._panes.get(pane)
            if known is None:
                self._panes[pane] = _Pane(added.copy(), workers)
            else:
                known.loads += added
                known.workers = workers if known.workers == workers else 0
        while len(self._panes) > _MOST_CELLS // loads.shape[1]:
            self._forgotten = min(self._panes)
            del self._panes[self._forgotten]

    def pass_to(self, mark: int) -> None:
        """Every tuple before this event time (ms) has been routed."""
        closed = int(panes_closed_by(mark, self._query.slide_ms))
        newest = max((pane for pane in self._panes if pane < closed), default=None)
        if newest is None:
            return
        first = newest - self._span + 1
        window = [entry for pane, entry in self._panes.items() if first <= pane <= newest]
        # Where the number of workers changed within a window, nobody can say over how many its mean is to be taken.
        workers = {entry.workers for entry in window}
        whole = self._forgotten is None or self._forgotten < first
        _, end = window_bounds(newest, window=self._query.window, slide=self._query.slide_ms)
        self.last = None
        if whole and len(workers) == 1 and 0 not in workers:
            loads = np.sum([entry.loads for entry in window], axis=0)[: workers.pop()]
            self.last = (end, max(0.0, imbalance(loads)))
        self._panes = {pane: entry for pane, entry in self._panes.items() if pane > closed - self._span}
