"""The state and the settings of the partitioner `evenflow`, as its kernels take them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenflow.arrays import Int64s, Rows, UInt64s, Whole
from evenflow.kernels import inlined
from evenflow.partitioners.evenflow.frequent import Frequent
from evenflow.partitioners.evenflow.holder_rings import Rings
from evenflow.partitioners.evenflow.placements import Placements
from evenflow.sketches.window_loads import WindowLoads

DOUBTS = 64
"""A time beyond a silence of a whole window is doubted until so many more tuples confirm it than deny it. So one wrong
clock is not taken for a silence."""
PROGRESS = np.dtype(
    [(name, np.int64) for name in ("since", "latest", "cell", "tuples", "known", "full", "doubted", "aged")]
)
"""`since`: time from which the window fills, ms. `latest`: greatest time that is believed, ms. `cell`: tuples that a
cell brings in a window after the slide in which it is placed. `tuples`: tuples in the window.
`known`: what a cell brought before a rescale, believed until the window has filled anew. `full`: tuples in the last
window that was full. `doubted`: rows of doubts in use. `aged`: slide in which the summary forgot last."""
DOUBT = np.dtype([(name, np.int64) for name in ("high", "home", "column", "time")])
"""Of a doubted tuple: the high half of its key's hash, whose low bits are the cell (there may be more cells when the doubt
ends), the key's home, the column of the window's row in which the tuple counts, and its time in ms."""


NO_RELIEF = 1 << 62
"""No worker is so far above the mean: no whole key moves."""
REFERENCE = 0.1
"""sqrt(0.01): the option `price` is that of a key with 1 % of the stream."""


# The columns of the window's ring. A row, which is a slide, has the load of split keys by worker, then the load of whole
# keys by worker, then the number of tuples.


def columns(workers: int) -> int:
    """How many columns the ring has."""
    return 2 * workers + 1


@inlined
def split_column(worker: Whole) -> np.int64:
    """The column with the worker's load of split keys that last."""
    return np.int64(worker)


@inlined
def whole_column(worker: Whole, workers: Whole) -> np.int64:
    """The column with the worker's load of all other keys: nothing else levels it while it is in the window."""
    return np.int64(workers + worker)


@inlined
def tuples_column(workers: Whole) -> np.int64:
    """The column with the number of tuples of the slide."""
    return np.int64(2 * workers)


@inlined
def worker_of_column(column: Whole, workers: Whole) -> np.int64:
    """The worker whose load the column has."""
    return np.int64(column % workers)


@inlined
def is_whole_column(column: Whole, workers: Whole) -> bool:
    """Whether the column has a worker's load of whole keys."""
    return bool(column >= workers)


def loads_of_slide(slide: Int64s, workers: int) -> Int64s:
    """The load that each worker got in a slide, of split and of whole keys. `slide`: a row of the ring."""
    return slide[:workers] + slide[workers : 2 * workers]


class Rule(NamedTuple):
    """The settings, which do not change between two rescales: what kernels take as one argument."""

    step: Int64s
    """(n,): load that a tuple is to each worker. A fast worker has a small step."""
    family: UInt64s
    """Salts of the candidates: that of a hashed home, then those that are tried first as holders."""
    salt: np.uint64
    """Salt of the hash that finds a key's place in the summary, and its cell."""
    windowed: bool
    """Loads are those of the window, not of all tuples so far."""
    remembers: bool
    """Homes are remembered, not hashed."""
    unit: int
    """Load that a tuple is to a worker of mean speed."""
    watched: int
    """Keys that may be split at a time."""
    sources: int
    price: float
    level: float


class Water(NamedTuple):
    """All that a partitioner knows: what kernels take as one argument."""

    summary: Frequent
    places: Placements
    holders: Rings
    window: WindowLoads
    """Its ring has more columns than workers: see `columns`."""
    tail: Int64s
    """(n,): each worker's load of whole keys in the window, plus its credit."""
    credit: Int64s
    """(n,): load that the cells given to a worker have yet to bring. Below 0 where more of them have left."""
    relieved: Int64s
    """(n,): load that cells which left the worker would have brought, as far as what they brought is in the window."""
    relief: Int64s
    """(1,): the overload above which whole keys move away from a worker in this slide."""
    progress: Rows
    """One of PROGRESS."""
    again: Int64s
    """(2,): tuples of whole keys in about the last window, and those whose cell had a tuple in the same slide before."""
    doubts: Rows
    """(DOUBTS,) of DOUBT."""


class Lowest(NamedTuple):
    """Tournaments over the loads, and over the loads of whole keys. They follow from these, so no snapshot has them."""

    loads: Int64s
    tail: Int64s
