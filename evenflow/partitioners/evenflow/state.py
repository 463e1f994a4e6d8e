"""What the partitioner `evenflow` knows, as its kernels take it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenflow.arrays import Int64s, Rows, UInt64s
from evenflow.partitioners.evenflow.frequent import Frequent
from evenflow.partitioners.evenflow.holder_rings import Rings
from evenflow.partitioners.evenflow.placements import Placements
from evenflow.sketches.window_loads import WindowLoads

DOUBTS = 64
"""A time beyond a silence of a whole window is doubted until so many more tuples say so than deny it: one wrong clock
is no silence."""
PROGRESS = np.dtype(
    [(name, np.int64) for name in ("since", "latest", "cell", "tuples", "known", "full", "doubted", "aged")]
)
"""`since`: time from which the window fills. `latest` time. What a `cell` brings in a window (once it is full: besides
the first tuple). `tuples` in the window. `known`: what a cell brought before a rescale, believed until the window has
filled anew. `full`: tuples in the last window that was full. `doubted`: rows of doubts in use. `aged`: slide in which
the summary forgot."""
DOUBT = np.dtype([(name, np.int64) for name in ("cell", "home", "column", "time")])
"""Cell and home of a doubted tuple's key, where it counts in a row of the window, and its time."""


class Rule(NamedTuple):
    """What does not change between two rescales."""

    step: Int64s
    """Load that a tuple is to each worker."""
    family: UInt64s
    """Hash functions of the candidates: the home's, then those tried first as holders."""
    salt: np.uint64
    """Of the hash that finds a key's place in the summary, and its cell."""
    windowed: bool
    """Loads are those of the window, not of all so far."""
    remembers: bool
    """Homes are remembered, not hashed."""
    unit: int
    """Load that a tuple is to a worker of mean speed."""
    watched: int
    """Keys that may be split at a time."""
    sources: int
    price: float


class Water(NamedTuple):
    """What a partitioner knows."""

    summary: Frequent
    places: Placements
    holders: Rings
    window: WindowLoads
    """A row has, per worker, load of split keys, then of whole ones. Then tuples."""
    tail: Int64s
    """Load of whole keys of each worker in the window, and its credit."""
    credit: Int64s
    """What homes that a worker was given are to bring it yet."""
    progress: Rows
    """One of PROGRESS."""
    doubts: Rows
    """(DOUBTS,) of DOUBT."""


class Lowest(NamedTuple):
    """Tournaments, which follow from the loads."""

    loads: Int64s
    tail: Int64s
