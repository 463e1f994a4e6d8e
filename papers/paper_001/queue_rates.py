"""The highest rate of a queue of micro-batches, and what its batches are like at that rate.

A batch of interval T is processed when T is over, one batch at a time: its map tasks, then its reduce tasks
(`batch_work`). The thesis bounds the latency by the interval. So a rate is *sustained* if every batch has
been processed when the next one is complete, which means that no batch waits. Arrivals follow a sine, and the
rate that counts is its mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evenflow.elasticity.simulated.queues import lindley
from evenflow.numeric.arrays import Float64s, Int64s, UInt64s
from evenflow.simulation import KeyedStream
from evenflow.text.options import name_of
from papers.batch_work import BatchWork, Tasks, batch_work
from papers.cells.run_plan import LEAST_SEEDS, Cell, RunPlan, StreamCache
from papers.cells.store import Values
from papers.paper_001.queue_grid import (
    AMPLITUDE,
    INTERVALS,
    LEARNING,
    MAPS,
    PERIOD,
    PLANNED,
    QUASI,
    REDUCES,
    SORTED,
    planned_cell,
    queue_cell,
    slower,
    streams,
)
from papers.routing import circling, renamed, tumbled, windows
from papers.unit_costs import planning_unit_costs, unit_costs

TICKS = 1_000_000
"""Ticks of event time in a second. Data blocks of time-based are cut by ticks."""
_NEAR = 0.01
_MOST_TRIALS = 6
_SLOPES = (0.3, 3.0)
"""Between these the processing time may grow with a power of the rate. Others come from two rates that are
too close.
"""
_GRID = 20_000


def highest_rate(processing: Callable[[float], float], interval: float, *, first: float) -> float:
    """The rate at which `processing` takes as long as the interval, within half a percent.

    processing: seconds by rate, nearly a power of it. first: the rate to try first. ValueError if nothing
    takes any time.
    """
    rate, trials = first, list[tuple[float, float]]()
    for _ in range(_MOST_TRIALS):
        busy = processing(rate)
        if busy <= 0:
            raise ValueError("no rate is the highest of those that take no time")
        trials.append((math.log(rate), math.log(busy / interval)))
        # A secant in logarithms: the time grows nearly with a power of the rate.
        rate *= (interval / busy) ** (1 / _slope(trials))
        if abs(trials[-1][1]) < _NEAR:
            break
    return rate


def _slope(trials: list[tuple[float, float]]) -> float:
    """The power of the rate with which the processing time grows, by the last two trials."""
    if len(trials) < 2 or trials[-1][0] == trials[-2][0]:
        return 1.0
    (x0, y0), (x1, y1) = trials[-2:]
    return min(max((y1 - y0) / (x1 - x0), _SLOPES[0]), _SLOPES[1])


def sine_times(rate: float, seconds: float) -> Int64s:
    """Ticks at which tuples come in so many seconds, at a rate that follows a sine around `rate`. Shape
    (tuples,).

    The rate is `AMPLITUDE` above its mean after a quarter of `PERIOD`.
    """
    at = np.linspace(0.0, seconds, _GRID)
    turn = 2 * np.pi / PERIOD
    arrived = rate * (at + AMPLITUDE / turn * (1 - np.cos(turn * at)))
    # The inverse of the number of arrivals, taken at the middle of each tuple.
    times = np.interp(np.arange(int(arrived[-1])) + 0.5, arrived, at) * TICKS
    # A tuple at the very end would begin another batch.
    return np.minimum(times.astype(np.int64), int(seconds * TICKS) - 1)


def latencies(processing: Float64s, interval: float) -> Float64s:
    """Seconds from the first tuple of each batch to its result: interval, waiting and processing, shape
    (batches,).
    """
    waits = lindley(np.full(len(processing), float(interval)), processing)
    return interval + waits + processing


@dataclass(frozen=True, eq=False)
class Queue:
    """One rule on one stream with one batch interval."""

    pool: KeyedStream
    """Is read in a circle."""
    rule: str
    """The partitioner with its options."""
    interval: int
    """Seconds."""
    seed: int
    """Of the hash functions, and of the place where reading begins."""
    slower: int
    """How many times a kept cost is taken."""
    planning_ns: float = 0.0
    """For each key of a batch, before its map tasks begin."""

    @cached_property
    def _hashes(self) -> UInt64s:
        return renamed(self.pool, self.seed)

    def batches(self, rate: float) -> list[BatchWork]:
        """The batches of one period. A rule that learns warms up for a period before."""
        warm = PERIOD if name_of(self.rule) in LEARNING or self.rule == PLANNED[QUASI] else 0
        times = sine_times(rate, warm + PERIOD)
        hashes = self._hashes
        codes = circling(self.pool, len(times), seed=self.seed, seeds=LEAST_SEEDS)
        stream = KeyedStream(hashes[codes], codes, times, self.pool.key_count, (warm + PERIOD) * TICKS)
        length = self.interval * TICKS
        text = f"time-based:interval_ms={length}" if self.rule == "time-based" else self.rule
        blocks = tumbled(stream, text, workers=MAPS, seed=self.seed, window_ms=length)
        tasks = Tasks(MAPS, REDUCES, allocated=name_of(self.rule) == "prompt")
        return [
            batch_work(blocks[rows], codes[rows], hashes, tasks=tasks, costs=unit_costs())
            for rows in list(windows(stream, length))[warm // self.interval :]
        ]

    def seconds(self, batch: BatchWork) -> float:
        """Processing time of a batch."""
        return self.slower * 1e-9 * (batch.stages + self.planning_ns * batch.keys)


def measure(cell: Cell, opened: StreamCache, plan: RunPlan) -> Values:
    """One value per seed.

    rate: thousand tuples a second. latency, range: mean over the batches, and the highest less the lowest, in
    seconds. reduce spread: standard deviation over mean of the times of a batch's reduce tasks, mean over the
    batches. keys: of the batch that has most.
    """
    interval, planning_ns = _setting(cell, plan)
    values: Values = {name: [] for name in ("rate", "latency", "range", "reduce spread", "keys")}
    rate = plan.pick(100_000, 2_000) * 1.0
    for seed in plan.seeds:
        queue = Queue(opened.at(), cell.partitioner, interval, seed, slower(plan), planning_ns)
        latest: list[BatchWork] = []

        def processing(at: float, queue: Queue = queue, latest: list[BatchWork] = latest) -> float:
            latest[:] = queue.batches(at)
            return max(queue.seconds(batch) for batch in latest)

        # The seeds differ little, so the rate of one is the first guess for the next.
        rate = highest_rate(processing, interval, first=rate)
        late = latencies(np.array([queue.seconds(batch) for batch in latest]), interval)
        spreads = [float(batch.reduces.std() / batch.reduces.mean()) for batch in latest]
        values["rate"].append(rate / 1e3)
        values["latency"].append(float(late.mean()))
        values["range"].append(float(np.ptp(late)))
        values["reduce spread"].append(float(np.mean(spreads)))
        values["keys"].append(float(max(batch.keys for batch in latest)))
    return values


def _setting(cell: Cell, plan: RunPlan) -> tuple[int, float]:
    """Interval in seconds, and nanoseconds of planning for a key."""
    (stream,) = [name for name, candidate in streams(plan).items() if candidate == cell.stream]
    for interval in INTERVALS:
        if cell == queue_cell(plan, stream, interval, cell.partitioner):
            return interval, 0.0
        for how in PLANNED:
            if cell == planned_cell(plan, stream, interval, how):
                costs = planning_unit_costs()
                return interval, costs.plan + (costs.sort if how == SORTED else costs.read)
    raise ValueError(f"{cell.key} is no cell of this section")
