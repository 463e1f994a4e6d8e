"""What it costs Dalton to count keys, by the length of the statistics window (figures 10a and 10b of 000).

There are two tables: what counting takes by itself, as in the paper, and what the whole partitioner takes.
docs/reproducing.md judges the paper's claims by the first. Its rows are kept in
docs/reproducing/statistics.json. This scenario writes a file like it into .evenflow/bench, to be copied from
there.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import numpy as np

from benchmarks.measuring.spread import in_turns
from benchmarks.partitioners.routing import SEED, WORKERS, RoutingSize, Warm
from benchmarks.pictures import PLOTS, keep_rows
from evenflow.generation.rank_laws import RANKS, Zipf
from evenflow.numeric.arrays import UInt64s, Whole
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.dalton.count_min import CountMin, CountMinTable, clear, increment, width_for
from evenflow.partitioners.dalton.dalton import SKETCH_FROM
from evenflow.partitioners.dalton.tumbling_counts import Counts, TumblingCounts, is_full, slot_of
from evenflow.simulation.streams import rank_hashes
from evenflow.sketches import hyperloglog
from evenflow.sketches.hyperloglog import Registers, registers, sketch_hash

ID = "partitioners-statistics"
WHAT = (
    "ns per tuple of counting keys, and of dalton as a whole, by heavy_hitters and statistics window, n = 64,"
    " a million keys, uniform and Zipf 1.5"
)
WAYS = ("exact", "sketch", "hybrid")
LAWS = {"uniform": 0.0, "Zipf 1.5": 1.5}
_PRECISION = 12
"""Of the registers of `dalton`."""


def run(*, smoke: bool) -> dict[str, Any]:
    """A row for each law and length of the statistics window, with ns per tuple of each way to count."""
    rows = [row for law, exponent in LAWS.items() for row in _counting_rows(law, exponent, smoke=smoke)]
    keep_rows(rows, PLOTS / "statistics.json")
    return {
        "workers": WORKERS,
        "windows": [row for law, exponent in LAWS.items() for row in _whole_rows(law, exponent, smoke=smoke)],
        "counting": rows,
    }


def _counting_rows(law: str, exponent: float, *, smoke: bool) -> list[dict[str, Any]]:
    keys = _keys(20_000 if smoke else 10_000_000, 1_000 if smoke else 1_000_000, exponent)
    rows = []
    for window in (1_000, 20_000) if smoke else (1_000, 10_000, 100_000, 1_000_000, 10_000_000):
        counting = {way: Counting(way, keys, window) for way in WAYS}
        times_by_way = in_turns(counting, 2 if smoke else 9)
        rows += [
            {
                "law": law,
                "tuples": window,
                "keys": len(np.unique(keys[:window])),
                "way": way,
                "bytes": counting[way].nbytes,
                "ns": [round(value, 2) for value in values],
            }
            for way, values in times_by_way.items()
        ]
    return rows


def _whole_rows(law: str, exponent: float, *, smoke: bool) -> list[dict[str, Any]]:
    how_much = RoutingSize(20_000, 20_000, 1) if smoke else RoutingSize(2_000_000, 1_000_000, 3)
    keys = _keys(how_much.warm, 1_000 if smoke else 1_000_000, exponent)
    rows = []
    for stats_ms in (100,) if smoke else (1_000, 10_000, 100_000):
        labels = [f"dalton:heavy_hitters={way},stats_ms={stats_ms}" for way in WAYS]
        ways = {label: Warm(label, keys, how_much) for label in labels}
        ns = in_turns(ways, how_much.repetitions)
        tuples = 10 * stats_ms
        rows.append(
            {
                "law": law,
                "tuples_in_a_window": tuples,
                "keys_in_a_window": len(np.unique(keys[:tuples])),
                **{way: round(median(ns[label]), 1) for way, label in zip(WAYS, labels, strict=True)},
            }
        )
    return rows


def _keys(tuples: int, count: int, exponent: float) -> UInt64s:
    """Key hashes of a stream, shape (tuples,)."""
    ranks = Zipf(count, exponent).ranks(np.random.default_rng([SEED, RANKS]).random(tuples), 0)
    return rank_hashes(count)[ranks]


@kernel
def _count_exactly(keys: UInt64s, first: Whole, counts: Counts, window: Whole) -> int:
    """Count from tuple `first` on. Returns the tuple for which there was no room, or the number of tuples."""
    for i in range(first, keys.shape[0]):
        if is_full(counts):
            return i
        counts.cells[slot_of(counts, keys[i], window)]["count"] += 1
    return keys.shape[0]


@kernel
def _estimate(keys: UInt64s, sketch: CountMinTable) -> None:
    for i in range(keys.shape[0]):
        increment(sketch, keys[i], 1)


@kernel
def _estimate_and_note(keys: UInt64s, sketch: CountMinTable, distinct: Registers) -> None:
    for i in range(keys.shape[0]):
        increment(sketch, keys[i], 1)
        hyperloglog.add(distinct, 0, sketch_hash(keys[i]))


class Counting:
    """Counts keys as `dalton` does, and does nothing else. A call counts all of them again, and gives the ns
    per tuple.
    """

    def __init__(self, way: str, keys: UInt64s, window: int) -> None:
        self._way, self._keys, self._length = way, keys, window
        self._counts, self._window = TumblingCounts(), 0
        self._sketch = CountMin(width_for(1 / (4 * WORKERS)), seed=SEED)
        self._distinct = registers(1, _PRECISION)
        self._many = False
        # The first call compiles the kernels and makes room.
        self()

    def __call__(self) -> float:
        began = time.thread_time()
        for first in range(0, len(self._keys), self._length):
            self._count_window(self._keys[first : first + self._length])
        return (time.thread_time() - began) / len(self._keys) * 1e9

    @property
    def by_sketch(self) -> bool:
        """Whether the next window is counted by the sketch."""
        return self._way == "sketch" or (self._way == "hybrid" and self._many)

    @property
    def nbytes(self) -> int:
        """Memory of what the way uses."""
        exact = self._counts.nbytes if self._way != "sketch" else 0
        sketch = self._sketch.nbytes if self._way != "exact" else 0
        return exact + sketch + (self._distinct.values.nbytes if self._way == "hybrid" else 0)

    def _count_window(self, keys: UInt64s) -> None:
        if not self.by_sketch:
            self._count_exactly(keys)
            self._many = int(self._counts.table.fill[0]) >= SKETCH_FROM
            if self.by_sketch:
                # As `dalton`, which gives the memory back.
                self._counts = TumblingCounts()
            return
        clear(self._sketch.table)
        if self._way == "sketch":
            _estimate(keys, self._sketch.table)
            return
        hyperloglog.clear(self._distinct)
        _estimate_and_note(keys, self._sketch.table, self._distinct)
        self._many = hyperloglog.estimate(self._distinct, 0) >= SKETCH_FROM

    def _count_exactly(self, keys: UInt64s) -> None:
        self._window += 1
        self._counts.table.fill[0] = 0
        row = 0
        while (row := _count_exactly(keys, row, self._counts.table, self._window)) < len(keys):
            self._counts.grow(self._window)
