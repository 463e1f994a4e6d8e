"""How fast the workers are, as the combiners measure it (`partitioner.speeds = "measured"`).

Spark's telemetry says of each micro-batch how many tuples of each worker were combined, and how long that
took. The partitioner is told the speeds that follow, and gives slow workers less. A worker may be slow
because its machine is, or because the tuples of its keys are much work: both are relieved alike. Where tuples
have costs, a speed is in costs per time.

Workers that share a routed partition are combined together, on one core. So their speed is that of all of
them.

A speed is one of the last micro-batches, about. Speeds of workers with few tuples are drawn to that of all. A
micro-batch in which a worker takes far longer than before may be a pause of its machine, so it counts less.
Nothing is told while no speed has changed by more than `_CHANGE`, because every change moves keys.
"""

from __future__ import annotations

import logging
from queue import SimpleQueue

import numpy as np

from evenflow.numeric.arrays import Float64s, Int64s
from evenflow.partitioners import Partitioner
from evenflow.settings import Settings
from evenflow.telemetry import BatchRecord, WorkerTimes, parse

log = logging.getLogger(__name__)

_KEPT = 0.8
"""Share of what was measured before that a micro-batch leaves."""
_FEW = 1_000
"""Tuples of a worker, on average, from which its speed is believed."""
_PRIOR = 0.03
"""Tuples of the mean speed that each worker has beforehand, as a share of the tuples of a mean worker."""
_CHANGE = 0.05
_PAUSE = 4.0
"""A micro-batch counts as if its tuples had taken a worker at most so many times as long as those before."""
_COLD = 3
"""The first micro-batches of a driver are cold, and say nothing of speeds."""
_UNHEARD = 30
"""Micro-batches without a word of the times of workers, after which something is amiss."""
_MOST = 32.0
"""A speed differs from the mean by at most this factor."""


class Speeds:
    """The estimate.

    workers: the largest possible number of them. partitions: which they share (`Sharing`). None: each has
    one.
    """

    def __init__(self, workers: int, partitions: int | None = None) -> None:
        self._partitions = workers if partitions is None else partitions
        self._tuples, self._took = np.zeros(workers), np.zeros(workers)
        self._sent, self._costs = np.zeros(workers), np.zeros(workers)

    def combined(self, work: WorkerTimes) -> None:
        """A micro-batch: (worker, tuples, ms) of each worker. A worker that does not exist is passed over."""
        before = self._times()
        # On a stream with few tuples they have to last longer.
        if _KEPT * self._tuples.sum() >= _FEW * np.count_nonzero(self._tuples):
            for sums in (self._tuples, self._took, self._sent, self._costs):
                sums *= _KEPT
        for worker, tuples, took in work:
            if worker < len(self._tuples):
                self._tuples[worker] += tuples
                self._took[worker] += took if before is None else min(took, _PAUSE * before[worker] * tuples)

    def _times(self) -> Float64s | None:
        """The time (ms) that a tuple of each worker has taken. None before anything was measured."""
        # Frames that tell marks alone take time, too.
        return _each(self._took, self._tuples) if self._took.sum() > 0 and self._tuples.sum() > 0 else None

    def routed(self, tuples: Int64s, costs: Int64s) -> None:
        """A block: how many tuples each worker was sent, and what these cost. Shape (workers,) each."""
        self._sent += tuples
        self._costs += costs

    def of(self, workers: int) -> Float64s | None:
        """Speeds of the first workers, shape (workers,), with a mean near 1.
        None while too little was measured.
        """
        tuples, took = self._shared(self._tuples, workers), self._shared(self._took, workers)
        if tuples.sum() < _FEW * workers or took.sum() <= 0:
            return None
        times = _each(took, tuples) / (took.sum() / tuples.sum())
        sent, costs = self._shared(self._sent, workers), self._shared(self._costs, workers)
        if costs.sum() > sent.sum():
            # Dear tuples take long on a fast worker, too.
            times = times / (_each(costs, sent) / (costs.sum() / sent.sum()))
        return np.clip(1.0 / times, 1 / _MOST, _MOST)

    def _shared(self, amounts: Float64s, workers: int) -> Float64s:
        """Of each of the first workers, the mean amount of those of them that share its partition, shape
        (workers,).
        """
        places = np.arange(workers) % self._partitions
        means: Float64s = np.bincount(places, amounts[:workers]) / np.bincount(places)
        return means[places]


def _each(amounts: Float64s, tuples: Float64s) -> Float64s:
    """The amount of a tuple of each worker, drawn to that of all
    where a worker has few tuples. Shape (workers,).
    """
    prior = max(1.0, _PRIOR * tuples.mean())
    each: Float64s = (amounts + prior * amounts.sum() / tuples.sum()) / (tuples + prior)
    return each


class MeasuredSpeeds:
    """What the data plane knows of speeds. `offer` is called from the control plane, and never raises."""

    def __init__(self, settings: Settings) -> None:
        self._fingerprint = settings.fingerprint
        self._arrived: SimpleQueue[WorkerTimes] = SimpleQueue()
        self._speeds = Speeds(settings.max_workers, settings.routed_partitions)
        self._unheard = 0

    def offer(self, value: bytes | None) -> None:
        """Take a record of the telemetry topic, of any bytes."""
        try:
            record = parse(value)
        except ValueError:
            return  # the controller and `status` count such records
        if isinstance(record, BatchRecord) and record.fingerprint == self._fingerprint:
            work = record.parts.get("combine")
            if work is None or record.finished <= _COLD:
                return
            if work.routed:
                self._unheard = 0
                self._arrived.put(work.routed)
            elif work.rows:
                self._unheard += 1
                if self._unheard == _UNHEARD:
                    log.warning(
                        "partitioner.speeds is 'measured', but Spark does not say how long workers' tuples"
                        " take: it was started with other settings. Start it with these."
                        " Until then workers count as they did"
                    )

    def note(self, tuples: Int64s, costs: Int64s) -> None:
        """A block was routed. As of `Speeds.routed`."""
        self._speeds.routed(tuples, costs)

    def tell(self, partitioner: Partitioner) -> None:
        """Tell the partitioner what has changed. Call it between two blocks."""
        if self._arrived.empty():
            return
        while not self._arrived.empty():
            self._speeds.combined(self._arrived.get())
        speeds = self._speeds.of(partitioner.workers)
        if speeds is None or not _differ(speeds, partitioner.speeds):
            return
        partitioner.set_speeds(speeds)
        slowest = int(speeds.argmin())
        log.info(
            "speeds of the workers, as measured: %.2f to %.2f of the mean, the slowest is worker %d",
            speeds.min() / speeds.mean(),
            speeds.max() / speeds.mean(),
            slowest,
        )


def _differ(speeds: Float64s, before: Float64s | None) -> bool:
    """Whether a speed has changed. before: those in force, None if none were told: all are alike."""
    known = np.ones(len(speeds)) if before is None else before
    return bool(np.any(np.abs(speeds / known - 1) > _CHANGE))
