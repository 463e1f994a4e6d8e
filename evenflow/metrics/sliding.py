"""Figures of every sliding window of a long routed stream, in one pass (1e7 tuples in seconds).

The tuples of a window are the rows [tail, head) of the stream. A row that enters or leaves changes one
counter of its (key, worker) pair. Gamma, |K|, the largest number of holders and the loads follow from this
change. So the end of a window costs O(workers), and a tuple costs O(1) however long the window is.

Memory: a hash table of the pairs, 4 bytes for each key, and the loads of one window. The hash table has 16
bytes for each slot. It is at most half full, and when it grows it gets more than 4 and at most 8 slots for
each pair that is held. The definitions are those of `loads` and `splitting`, which take one window at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.metrics.loads import Integers, worker_loads
from evenflow.numeric.arrays import Float64s, Int32s, Int64s, Rows, UInt64s, Whole, record, records
from evenflow.numeric.kernels import inlined, kernel
from evenflow.numeric.words import mix64

_STATE = np.dtype(
    [
        (name, np.int64)
        for name in ("gamma", "distinct", "most", "used", "head", "tail", "pane", "closed", "load")
    ]
)
"""The state of a walk over the stream.

gamma, distinct, most: figures of the present window. used: slots in use. head, tail: the rows [tail, head)
are in the window. pane: the last pane of the window. closed: windows written since `_walk` was called. load:
the loads of all workers together.
"""
_FIGURES = np.dtype(
    [
        ("end", np.int64),
        ("imbalance", np.float64),
        ("gamma", np.int64),
        ("distinct", np.int64),
        ("most", np.int64),
    ]
)
"""Figures of a window that has ended. The fields are those of WindowFigures, in the same order."""
_DONE, _TABLE_IS_FULL, _OUTPUT_IS_FULL = range(3)
_FIRST_SLOTS = 1 << 16
"""Slots of the first hash table. A power of two, so that `_slot` can mask a hash in place of a division."""
_MOST_OUTPUT = 1 << 16
_ONE_WINDOW = 1 << 62
"""Panes in a window that holds every stream."""


@dataclass(frozen=True, eq=False)
class WindowFigures:
    """Figures of each window that holds a tuple, in order. Arrays of shape (windows,)."""

    ends: Int64s
    """Last pane of the window."""
    imbalance: Float64s
    """(max load - mean load) / load of all workers, in the window.
    Loads count tuples, or are sums of their costs.
    """
    gamma: Int64s
    """Distinct (key, worker) pairs."""
    distinct: Int64s
    """Distinct keys."""
    max_holders: Int64s
    """Workers that hold the most split key."""

    @property
    def ksr(self) -> Float64s:
        """Gamma / |K| of each window."""
        return self.gamma / self.distinct

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, chosen: slice) -> WindowFigures:
        return WindowFigures(
            self.ends[chosen],
            self.imbalance[chosen],
            self.gamma[chosen],
            self.distinct[chosen],
            self.max_holders[chosen],
        )


class _PairTable(NamedTuple):
    """Tuples of each (key, worker) pair in the window, in the slots of a hash table with open addressing."""

    pairs: UInt64s
    """The pair in each slot, as code * workers + worker + 1. 0: the slot is free."""
    counts: Int64s
    """Tuples of the pair. A pair without tuples keeps its slot,
    because a free slot would end the probing of others.
    """


def _pair_table(slots: int) -> _PairTable:
    return _PairTable(np.zeros(slots, np.uint64), np.zeros(slots, np.int64))


class _Tuples(NamedTuple):
    """The routed stream, shape (m,) each."""

    workers: Int32s
    """The worker of each tuple."""
    codes: Int32s
    """The number of each tuple's key."""
    panes: Int64s
    """Not decreasing."""
    costs: Int64s
    """Empty if each tuple costs 1."""


class _Span(NamedTuple):
    """Which windows there are."""

    width: int
    """Panes in a window."""
    through: int
    """The last pane of the last window."""


class _Window(NamedTuple):
    """The counters of the present window."""

    table: _PairTable
    """Tuples of each (key, worker) pair."""
    holders: Int32s
    """Number of workers that hold each key, by its code."""
    by_holders: Int64s
    """Number of keys that have 0, 1, 2, ... holders, to tell when the largest number falls.
    Entry 0 is never read.
    """
    loads: Int64s
    """Tuples of each worker, or the sum of their costs."""
    state: Rows
    """A record of _STATE."""


@kernel
def _slot(pairs: UInt64s, pair: np.uint64) -> Any:
    """The slot that holds the pair, or the free slot where it belongs. The number of slots is a power of
    two.
    """
    mask = np.uint64(pairs.shape[0] - 1)
    at = mix64(pair) & mask
    while pairs[at] != 0 and pairs[at] != pair:
        at = (at + np.uint64(1)) & mask
    return at


@kernel
def _move(old: _PairTable, new: _PairTable) -> None:
    """Copy every pair that still has tuples into an empty table."""
    for at in range(old.pairs.shape[0]):
        if old.counts[at] > 0:
            to = _slot(new.pairs, old.pairs[at])
            new.pairs[to] = old.pairs[at]
            new.counts[to] = old.counts[at]


@inlined
def _enter(window: _Window, code: Whole, worker: Whole, cost: Whole) -> None:
    """A tuple enters the window."""
    pairs, counts = window.table.pairs, window.table.counts
    holders, by_holders, state = window.holders, window.by_holders, window.state[()]
    window.loads[worker] += cost
    state["load"] += cost
    pair = np.uint64(code * window.loads.shape[0] + worker + 1)
    at = _slot(pairs, pair)
    if pairs[at] == 0:
        pairs[at] = pair
        state["used"] += 1
    counts[at] += 1
    if counts[at] == 1:
        holder_count = holders[code] + 1
        holders[code] = holder_count
        by_holders[holder_count - 1] -= 1
        by_holders[holder_count] += 1
        state["gamma"] += 1
        if holder_count == 1:
            state["distinct"] += 1
        state["most"] = max(state["most"], np.int64(holder_count))


@inlined
def _leave(window: _Window, code: Whole, worker: Whole, cost: Whole) -> None:
    """A tuple leaves the window."""
    counts, state = window.table.counts, window.state[()]
    holders, by_holders = window.holders, window.by_holders
    window.loads[worker] -= cost
    state["load"] -= cost
    at = _slot(window.table.pairs, np.uint64(code * window.loads.shape[0] + worker + 1))
    counts[at] -= 1
    if counts[at] == 0:
        holder_count = holders[code]
        holders[code] = holder_count - 1
        by_holders[holder_count] -= 1
        by_holders[holder_count - 1] += 1
        state["gamma"] -= 1
        if holder_count == 1:
            state["distinct"] -= 1
        # The largest number falls by one at most, because this key still has held - 1 holders.
        if holder_count == state["most"] and by_holders[holder_count] == 0:
            state["most"] -= 1


@inlined
def _close(window: _Window, closed: Rows, now: Whole) -> None:
    """Write the figures of the window that ends with the pane `now`. It holds at least one tuple."""
    loads, state = window.loads, window.state[()]
    figures = closed[state["closed"]]
    most = np.int64(0)
    for worker in range(loads.shape[0]):
        most = max(most, loads[worker])
    figures["end"], figures["imbalance"] = now, most / state["load"] - 1.0 / loads.shape[0]
    figures["gamma"], figures["distinct"], figures["most"] = state["gamma"], state["distinct"], state["most"]
    state["closed"] += 1


@inlined
def _cost(costs: Int64s, row: Whole) -> Any:
    return costs[row] if costs.shape[0] > 0 else np.int64(1)


@kernel
def _walk(tuples: _Tuples, span: _Span, window: _Window, closed: Rows) -> int:
    """Continue the walk from the window's state, until the stream ends or the table or the output is full.

    Returns _DONE, _TABLE_IS_FULL or _OUTPUT_IS_FULL. closed: room for the figures of windows that end.
    """
    workers, codes, panes, costs = tuples
    pairs, state = window.table.pairs, window.state[()]
    head, tail = state["head"], state["tail"]
    now: Any = state["pane"]
    state["closed"] = 0
    answer = _DONE
    while True:
        # Behind the last row stands a pane after the last window, so that the remaining windows are closed.
        pane = panes[head] if head < workers.shape[0] else span.through + 1
        while now < pane and now <= span.through:
            if state["closed"] == closed.shape[0]:
                answer = _OUTPUT_IS_FULL
                break
            if tail < head:
                _close(window, closed, now)
            now += 1
            while tail < head and panes[tail] <= now - span.width:
                _leave(window, np.int64(codes[tail]), np.int64(workers[tail]), _cost(costs, tail))
                tail += 1
            if tail == head:  # the window is empty: skip to the next tuple
                now = min(pane, span.through + 1)
        if answer != _DONE or head == workers.shape[0]:
            break
        if 2 * state["used"] >= pairs.shape[0]:
            answer = _TABLE_IS_FULL
            break
        now = pane
        _enter(window, np.int64(codes[head]), np.int64(workers[head]), _cost(costs, head))
        head += 1
    state["head"], state["tail"], state["pane"] = head, tail, now
    return answer


def key_codes(keys: Integers) -> tuple[Int32s, int]:
    """(every key as a number, how many keys there are).
    Numbers count from 0 in the order of first appearance.
    """
    encoded = pc.dictionary_encode(pa.array(keys))
    return encoded.indices.to_numpy(), len(encoded.dictionary)


def window_figures(
    workers: Integers,
    codes: Integers,
    panes: Int64s,
    n: int,
    *,
    panes_per_window: int,
    through: int | None = None,
    costs: Int64s | None = None,
) -> WindowFigures:
    """The figures of every window that holds a tuple and ends with a pane up
    to `through` (default: the last pane).

    workers, codes, panes: of each tuple, shape (m,). `codes` are the keys as small numbers (`key_codes`).
    `panes` must not decrease. n: number of workers. costs: as for `worker_loads`. The first windows are still
    filling. ValueError for arrays of different lengths, panes that decrease, a negative code, or a worker
    that is not in 0 .. n-1.
    """
    worker_loads(workers, n)
    if not len(workers) == len(codes) == len(panes):
        raise ValueError(
            f"{len(workers)} workers, {len(codes)} codes, {len(panes)} panes: one of each per tuple"
        )
    if costs is not None and len(costs) != len(workers):
        raise ValueError(f"{len(workers)} workers, {len(costs)} costs: one of each per tuple")
    if not len(panes):
        none = np.empty(0, np.int64)
        return WindowFigures(none, np.empty(0), none, none, none)
    if bool((panes[1:] < panes[:-1]).any()):
        raise ValueError("panes decrease: take the largest pane so far, or sort the tuples")
    last = int(panes[-1]) if through is None else through
    tuples = _Tuples(
        _fixed(workers, np.int32),
        _fixed(codes, np.int32),
        _fixed(panes, np.int64),
        _fixed(np.empty(0) if costs is None else costs, np.int64),
    )
    return _figures(tuples, n, panes_per_window, last)


def stream_figures(
    workers: Integers, codes: Integers, n: int, *, costs: Int64s | None = None
) -> WindowFigures:
    """The figures of the whole stream, as one window that ends with pane 0.
    Without tuples there is no window.
    """
    panes = np.zeros(len(workers), np.int64)
    return window_figures(workers, codes, panes, n, panes_per_window=_ONE_WINDOW, costs=costs)


def sampled_imbalance(
    workers: Integers, n: int, *, samples: int = 100, costs: Int64s | None = None
) -> tuple[Int64s, Float64s]:
    """(tuples so far, I of the stream so far) at this many evenly spaced points. The last point is the end.

    A stream of fewer tuples than `samples` has a point for each tuple. costs: as for `worker_loads`.
    """
    points = np.unique(np.arange(1, samples + 1, dtype=np.int64) * len(workers) // samples)
    points = points[points > 0]
    pieces = [slice(low, high) for low, high in pairwise([0, *points.tolist()])]
    parts = [worker_loads(workers[piece], n, None if costs is None else costs[piece]) for piece in pieces]
    loads = np.cumsum(parts, axis=0, dtype=np.int64).reshape(-1, n)
    shares: Float64s = loads.max(axis=1, initial=0) / loads.sum(axis=1)
    return points, shares - 1 / n


def _fixed(values: npt.NDArray[Any], dtype: type[np.generic]) -> npt.NDArray[Any]:
    """The values as a read-only, contiguous array.

    Numba compiles a kernel for each type of array. So memory-mapped and other columns share one compiled
    kernel.
    """
    view = np.ascontiguousarray(values, dtype).view(np.ndarray)
    view = view[:]  # another view, so that the caller's array stays writeable
    view.flags.writeable = False
    return view


def _figures(tuples: _Tuples, n: int, width: int, through: int) -> WindowFigures:
    if int(tuples.codes.min()) < 0:
        raise ValueError("codes are counted from 0")
    first = int(tuples.panes[0])
    window = _Window(
        table=_pair_table(_FIRST_SLOTS),
        holders=np.zeros(int(tuples.codes.max()) + 1, np.int32),
        by_holders=np.zeros(n + 1, np.int64),
        loads=np.zeros(n, np.int64),
        state=record(_STATE, pane=first),
    )
    room = int(min(_MOST_OUTPUT, max(1, through - first + 1)))
    output = records(room, _FIGURES)
    pieces: list[Rows] = []
    answer = _OUTPUT_IS_FULL
    while answer != _DONE:
        answer = _walk(tuples, _Span(width, through), window, output)
        pieces.append(output[: int(window.state["closed"])].copy())
        if answer == _TABLE_IS_FULL:
            # Pairs without tuples are left behind, so the new table need not be larger than the old one.
            slots = max(len(window.table.pairs), 1 << (4 * int(window.state["gamma"])).bit_length())
            bigger = _pair_table(slots)
            _move(window.table, bigger)
            window.state["used"] = window.state["gamma"]
            window = window._replace(table=bigger)
    figures = np.concatenate(pieces)
    return WindowFigures(*(np.ascontiguousarray(figures[name]) for name in figures.dtype.names or ()))
