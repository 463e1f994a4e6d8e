"""Figures 5, 6, 8 and 9 of 004 by the paper's own measures: throughput of TPC-H, window latency of DEBS.

The paper runs a window in two stages, in threads of one machine: workers evaluate their shares side by side,
then one aggregation combines the partial results (2.2). The time of a window is that of the slowest worker
and that of the aggregation, priced with the kept costs of our stages. Partitioning is left out, as in the
paper (6), and no network is there to be priced. TPC-H is one window, whose tuples over its time are the
throughput.

The paper says of rules that keep a key whole both that they lack the aggregation (6.1.3) and that theirs is
constant (6.2.1). So there are two readings:

    direct   their workers make the rows. All other rules send partial results to the aggregation, which
             makes the rows
    gather   every rule sends partial results to the aggregation

Query 2 of DEBS has two such stages (6.1.4). First rides are dealt out by taxi. A worker has fares for each
pick-up cell and the last drop-off cell of each taxi. The aggregation gets the fares by cell from everyone,
and the last cells by taxi from those rules that split taxis (`direct`) or from all (`gather`). Then fares and
vacant taxis are dealt out by cell, by the same rule, to make the row of each cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, NamedTuple

import numpy as np

from evenflow.numeric.arrays import Float64s, Int32s, Int64s
from evenflow.simulation import KeyedStream
from papers.cells.run_plan import Cell, RunPlan, Stream, StreamCache
from papers.cells.store import Values
from papers.data import read_rides
from papers.drawn_streams import TPCH_Q1, TPCH_Q3
from papers.paper_004.grid import NAME
from papers.routing import tumbled
from papers.unit_costs import Costs, unit_costs

Reading = Literal["direct", "gather"]
READINGS: tuple[Reading, ...] = ("direct", "gather")
WHOLE = ("hashing", "am", "am:d=5", "am:cardinality=hll", "cam", "cam:d=5")
"""Rules with one choice, by the paper. AM-2-H moves a key now and then, which the paper takes for none."""
SPLITTING = ("shuffle", "pkg", "pk5", "cm", "lm")
"""Rules with several choices that the paper names."""
OURS = ("am", "am:d=5", "cam", "cam:d=5")
"""The paper's own rules without a sketch."""
Q1, Q3, ROUTES, AREAS = "TPC-H query 1", "TPC-H query 3", "DEBS query 1", "DEBS query 2"
QUERIES = {Q1: TPCH_Q1, Q3: TPCH_Q3, ROUTES: "debs-routes", AREAS: "debs-taxis"}
WORKERS = (8, 16, 32)
MORE_WORKERS = (64, 128)
"""Of query 2 of DEBS, besides."""
RULES = (*WHOLE, *SPLITTING)
SCALED = ("hashing", "pkg", "pk5", *OURS)
"""Rules with so many workers."""
WINDOW_MS, FARES_MS = 1_800_000, 900_000
"""Windows of DEBS have 30 minutes. The fares of query 2 are those of the last 15."""
Q1_TUPLES = 200_000
_STEP_MS = 1_000
_DENSE = 16
"""Pairs of place and key, for each tuple, up to which a table of all pairs is faster than sorting."""


@dataclass(frozen=True, eq=False)
class Windows:
    """Overlapping windows, one behind the other as a stream of their own."""

    rows: Int64s
    """The tuple of the stream, shape (m,)."""
    numbers: Int64s
    """The window, ascending, shape (m,)."""
    count: int
    """How many there are."""

    def of(self, stream: KeyedStream) -> KeyedStream:
        """The tuples of the windows. Each window has a step of event time of its own."""
        return KeyedStream(
            stream.keys[self.rows],
            stream.codes[self.rows],
            self.numbers * _STEP_MS,
            stream.key_count,
            self.count * _STEP_MS,
        )


class Stage(NamedTuple):
    """A stage of a query over all windows."""

    tuples: Int64s
    """Of each worker in each window, shape (windows, workers)."""
    partials: Int64s
    """Keys of each worker in each window, same shape."""

    @property
    def gamma(self) -> Int64s:
        """Eq. 2: partial results of each window, shape (windows,)."""
        return self.partials.sum(axis=1)


@dataclass(frozen=True, eq=False)
class WindowTimes:
    """Nanoseconds of each window, shape (windows,)."""

    workers: Float64s
    """The slowest worker."""
    aggregation: Float64s
    """The aggregation."""

    def __add__(self, other: WindowTimes) -> WindowTimes:
        return WindowTimes(self.workers + other.workers, self.aggregation + other.aggregation)

    @property
    def both(self) -> Float64s:
        """One after the other."""
        return self.workers + self.aggregation


def time_cell(plan: RunPlan, query: str, n: int, rule: str) -> Cell:
    """The times of a query."""
    most = {Q1: plan.pick(Q1_TUPLES, 10_000), Q3: plan.pick(0, 10_000)}.get(query, 0)
    return Cell(NAME, f"times of {query}, costs {unit_costs().mark}", Stream(QUERIES[query], most), n, rule)


def cells(plan: RunPlan) -> list[Cell]:
    """Every query, number of workers and rule."""
    return [
        *(time_cell(plan, *at) for at in product(QUERIES, WORKERS, RULES)),
        *(time_cell(plan, AREAS, *at) for at in product(MORE_WORKERS, SCALED)),
    ]


def measure(cell: Cell, opened: StreamCache, plan: RunPlan) -> Values:
    """One value per seed. For each of `READINGS` of the windows: mean and p99 of ms, and the share of the
    aggregation in all time.
    """
    costs, n = unit_costs(), cell.workers
    whole = cell.partitioner in WHOLE
    routed = _AreasRouting(plan) if cell.stream.kind == QUERIES[AREAS] else _Routing(cell, opened, plan)
    series: Values = {f"{reading} {name}": [] for reading in READINGS for name in ("mean", "p99", "share")}
    for seed in plan.more_seeds:
        stages = routed.stages(cell.partitioner, n, seed)
        for reading in READINGS:
            spent = routed.times(stages, costs, skips=whole and reading == "direct")
            series[f"{reading} mean"].append(1e-6 * float(spent.both.mean()))
            series[f"{reading} p99"].append(1e-6 * float(np.percentile(spent.both, 99)))
            series[f"{reading} share"].append(float(spent.aggregation.sum() / spent.both.sum()))
    return series


def overlapping(times: Int64s, *, span: int, slide: int) -> Windows:
    """All windows of `span` ms that end, every `slide` ms, within these times (ascending, ms).

    One that is cut short if the times are shorter than a window.
    """
    ends = np.arange(int(times[0]) + span, int(times[-1]) + 2, slide)
    if not len(ends):
        ends = np.array([int(times[-1]) + 1])
    low, high = np.searchsorted(times, ends - span), np.searchsorted(times, ends)
    rows = np.concatenate([np.arange(a, b) for a, b in zip(low, high, strict=True)])
    return Windows(rows, np.repeat(np.arange(len(ends)), high - low), len(ends))


def staged(workers: Int32s, codes: Int32s, windows: Int64s, *, n: int, count: int) -> Stage:
    """Count a routed stage. windows: of each tuple, shape (m,), one of `count`."""
    places = windows * n + workers
    tuples, partials = np.bincount(places, minlength=count * n), distinct_keys(places, codes, count * n)
    return Stage(tuples.reshape(count, n), partials.reshape(count, n))


def distinct_keys(places: Int64s, codes: Int32s, count: int) -> Int64s:
    """How many keys each of `count` places has, shape (count,). places, codes: of each tuple, shape (m,)."""
    keys = int(codes.max()) + 1
    pairs = places * keys + codes
    if count * keys <= _DENSE * len(pairs):
        return np.count_nonzero(np.bincount(pairs, minlength=count * keys).reshape(count, keys), axis=1)
    return np.bincount(np.unique(pairs) // keys, minlength=count)


def row_times(stage: Stage, rows: Int64s, costs: Costs, *, skips: bool) -> WindowTimes:
    """A stage that ends with a row for each key.

    rows: keys of each window, shape (windows,). skips: whether the workers make the rows themselves, without
    an aggregation.
    """
    handed = costs.emit if skips else costs.send
    workers = costs.tuple * stage.tuples + (costs.make + handed) * stage.partials
    aggregation = costs.receive * stage.gamma + costs.emit * rows
    return WindowTimes(workers.max(axis=1), (0 if skips else 1) * aggregation)


def taxi_times(taxis: Stage, fares: Stage, costs: Costs, *, skips: bool) -> WindowTimes:
    """The first stage of query 2: fares by pick-up cell, and the last cell of each taxi.

    skips: whether a taxi's last cell is known at its worker.
    """
    workers = costs.tuple * taxis.tuples + (costs.make + costs.send) * (taxis.partials + fares.partials)
    received = (fares.gamma + (0 if skips else 1) * taxis.gamma).astype(np.float64)
    return WindowTimes(workers.max(axis=1), costs.receive * received)


class _Routing:
    """A query with one stage."""

    def __init__(self, cell: Cell, opened: StreamCache, plan: RunPlan) -> None:
        stream = opened.at()
        if cell.stream.is_data:
            windows = overlapping(stream.times, span=WINDOW_MS, slide=_slide(plan))
        else:
            windows = Windows(np.arange(len(stream)), np.zeros(len(stream), np.int64), 1)
        self._stream, self._windows = windows.of(stream), windows
        self._rows = distinct_keys(windows.numbers, self._stream.codes, windows.count)

    def stages(self, rule: str, n: int, seed: int) -> tuple[Stage, ...]:
        workers = tumbled(self._stream, rule, workers=n, seed=seed, window_ms=_STEP_MS)
        windows = self._windows
        return (staged(workers, self._stream.codes, windows.numbers, n=n, count=windows.count),)

    def times(self, stages: Sequence[Stage], costs: Costs, *, skips: bool) -> WindowTimes:
        return row_times(stages[0], self._rows, costs, skips=skips)


class _AreasRouting:
    """Query 2 of DEBS."""

    def __init__(self, plan: RunPlan) -> None:
        rides = read_rides(plan.data)
        windows = overlapping(rides.taxis.times, span=WINDOW_MS, slide=_slide(plan))
        self._windows, self._taxis = windows, windows.of(rides.taxis)
        self._pickups = windows.of(rides.pickups)
        times = rides.taxis.times
        ends = times[0] + WINDOW_MS + windows.numbers * _slide(plan)
        self._paying = times[windows.rows] >= ends - FARES_MS
        # Of each taxi in each window the last ride: the first one from behind.
        seen = windows.numbers * rides.taxis.key_count + self._taxis.codes
        last = len(seen) - 1 - np.unique(seen[::-1], return_index=True)[1]
        # In a window fares come first, then vacant taxis.
        paying = np.flatnonzero(self._paying)
        dropoffs = windows.of(rides.dropoffs)
        numbers = np.concatenate([windows.numbers[paying], windows.numbers[last]])
        order = np.argsort(numbers, kind="stable")
        keys, codes = (
            np.concatenate([getattr(self._pickups, name)[paying], getattr(dropoffs, name)[last]])[order]
            for name in ("keys", "codes")
        )
        self._numbers = numbers[order]
        self._cells = KeyedStream(
            keys,
            codes,
            self._numbers * _STEP_MS,
            rides.pickups.key_count,
            windows.count * _STEP_MS,
        )
        self._rows = distinct_keys(self._numbers, codes, windows.count)

    def stages(self, rule: str, n: int, seed: int) -> tuple[Stage, ...]:
        of_taxis = tumbled(self._taxis, rule, workers=n, seed=seed, window_ms=_STEP_MS)
        of_cells = tumbled(self._cells, rule, workers=n, seed=seed, window_ms=_STEP_MS)
        numbers, count, paying = self._windows.numbers, self._windows.count, self._paying
        return (
            staged(of_taxis, self._taxis.codes, numbers, n=n, count=count),
            staged(of_taxis[paying], self._pickups.codes[paying], numbers[paying], n=n, count=count),
            staged(of_cells, self._cells.codes, self._numbers, n=n, count=count),
        )

    def times(self, stages: Sequence[Stage], costs: Costs, *, skips: bool) -> WindowTimes:
        taxis, fares, cells_of = stages
        rows = row_times(cells_of, self._rows, costs, skips=skips)
        return taxi_times(taxis, fares, costs, skips=skips) + rows


def _slide(plan: RunPlan) -> int:
    """ms from one window of DEBS to the next."""
    return plan.pick(15_000, 120_000)
