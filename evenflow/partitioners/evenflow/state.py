"""The state and the settings of the partitioner `evenflow`, as its kernels take them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenflow.numeric.arrays import Float64s, Int64s, Rows, UInt64s, Whole
from evenflow.numeric.kernels import inlined
from evenflow.partitioners.evenflow.frequent import Frequent
from evenflow.partitioners.evenflow.holder_rings import Rings
from evenflow.partitioners.evenflow.placements import Placements
from evenflow.sketches.window_loads import WindowLoads

DOUBTS = 64
"""A time beyond a silence of a whole window is doubted until so many more tuples confirm it than deny it. So
one wrong clock is not taken for a silence."""
PROGRESS = np.dtype(
    [
        ("since", np.int64),  # time from which the window fills, ms
        ("latest", np.int64),  # greatest time that is believed, ms
        # Cost of the tuples that a cell brings in a window after the slide in which it is placed.
        ("cell", np.int64),
        ("tuples", np.int64),  # cost of the tuples in the window
        # What a cell brought before a rescale, believed until the window has filled anew.
        ("known", np.int64),
        ("full", np.int64),  # cost of the tuples in the last window that was full
        ("doubted", np.int64),  # rows of doubts in use
        ("aged", np.int64),  # slide in which the summary forgot last
    ]
)
"""How far the window is."""
DOUBT = np.dtype(
    [
        # High half of the key's hash. Its low bits are the cell: there may be more cells when the doubt ends.
        ("high", np.int64),
        ("home", np.int64),  # home of the key
        ("column", np.int64),  # column of the window's row in which the tuple counts
        ("time", np.int64),  # its time, ms
    ]
)
"""A doubted tuple."""


SCALE = np.dtype(
    [
        ("weighed", np.int64),  # 1 once a tuple has cost other than 1. Until then a tuple is 1 in every unit
        ("mean", np.int64),  # the mean cost, about
        # The mean, over units of cost, of the cost of the tuple that a unit belongs to: as much as one tuple
        # makes loads differ by chance.
        ("grain", np.int64),
        ("unit", np.int64),  # cost of a tuple that the summary counts as one
        ("fewest", np.int64),  # counts of the summary from which a key's share is believed
        # Tuples of `moments` at which all this is worked out anew, if no slide begins before.
        ("next", np.int64),
    ]
)
"""What tuples cost."""
MOMENTS = 3
"""Of the tuples of about a window: how many, the sum of their costs, the sum of the squares of these."""
NO_RELIEF = 1 << 62
"""No worker is so far above the mean: no whole key moves."""
RUNS = np.dtype(
    [
        ("previous", np.int64),  # high half of the last tuple's hash, -1 before the first one
        ("limit", np.int64),  # overload above which a run that begins moves its cell away, in this slide
    ]
)
"""Tuples of one key in a row."""
REFERENCE = 0.1
"""sqrt(0.01): the option `price` is that of a key with 1 % of the stream."""


# The columns of the window's ring. A row, which is a slide, has the load of split keys by worker, then the
# load of whole keys by worker, then the cost of its tuples.


def columns(workers: int) -> int:
    """How many columns the ring has."""
    return 2 * workers + 1


@inlined
def split_column(worker: Whole) -> np.int64:
    """The column with the worker's load of split keys that last."""
    return np.int64(worker)


@inlined
def whole_column(worker: Whole, workers: Whole) -> np.int64:
    """The column with the worker's load of all other keys: nothing else levels it while it is in the
    window.
    """
    return np.int64(workers + worker)


@inlined
def tuples_column(workers: Whole) -> np.int64:
    """The column with the cost of the tuples of the slide."""
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
    """(n,): load that a unit of cost is to each worker. A fast worker has a small step."""
    accept: UInt64s
    """(n,): of 2^32 keys, how many each worker accepts that are hashed to it. The others try further
    workers.
    """
    family: UInt64s
    """Salts of the candidates: that of a hashed home, then those that are tried first as holders."""
    salt: np.uint64
    """Salt of the hash that finds a key's place in the summary, and its cell."""
    windowed: bool
    """Loads are those of the window, not of all tuples so far."""
    remembers: bool
    """Homes are remembered, not hashed."""
    unit: int
    """Load that a unit of cost is to a worker of mean speed. A tuple costs 1 if nothing is said of costs."""
    watched: int
    """Keys that may be split at a time."""
    sources: int
    """Instances that route the same stream."""
    price: float
    """The option `price`: what a replica of a key with 1 % of the stream must be worth, in mean loads."""
    level: float
    """The option `level`: the window imbalance that is level enough."""


class Water(NamedTuple):
    """All that a partitioner knows: what kernels take as one argument."""

    summary: Frequent
    """The frequent keys of the recent stream."""
    places: Placements
    """The cells, each with the home of its keys."""
    holders: Rings
    """The extra holders of split keys. An owner is a counter of the summary."""
    window: WindowLoads
    """Its ring has more columns than workers: see `columns`."""
    tail: Int64s
    """(n,): each worker's load of whole keys in the window, plus its credit."""
    credit: Int64s
    """(n,): load that the cells given to a worker have yet to bring. Below 0 where more of them have left."""
    relieved: Int64s
    """(n,): load that cells which left the worker would have brought,
    as far as what they brought is in the window.
    """
    relief: Int64s
    """(1,): the overload above which whole keys move away from a worker in this slide."""
    progress: Rows
    """One of PROGRESS."""
    again: Int64s
    """(2,): cost of tuples of whole keys in about the last window, and of those whose cell had a tuple in the
    same slide before."""
    runs: Rows
    """One of RUNS."""
    in_row: Int64s
    """(1,): cost of tuples of whole keys in about the last window whose key is that of the tuple before."""
    in_runs: Int64s
    """(3,): cost of all tuples in about the last window but those of split keys that last. Cost of those of
    them that go on a run whose key the slide had not had before. 1 while such a run goes on. A key with most
    of the stream comes back within the slide, so it is not a run."""
    doubts: Rows
    """(DOUBTS,) of DOUBT."""
    doubted_costs: Int64s
    """(DOUBTS,): what the doubted tuples cost."""
    scale: Rows
    """One of SCALE."""
    moments: Float64s
    """(MOMENTS,): they fade as the window moves."""


class Lowest(NamedTuple):
    """Tournaments over the loads, and over the loads of whole keys.
    They follow from these, so no snapshot has them.
    """

    loads: Int64s
    """Tournament over the workers' loads in the window."""
    tail: Int64s
    """Tournament over the loads of whole keys (`Water.tail`)."""
