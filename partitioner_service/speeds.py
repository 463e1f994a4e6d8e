"""How fast the workers are, as the combiners measure it (`partitioner.speeds = "measured"`).

Spark's telemetry says of each micro-batch how many tuples of each worker were combined, and how long that took. The
partitioner is told the speeds that follow, and gives slow workers less. A worker may be slow because its machine is, or
because the tuples of its keys are much work: both are relieved alike. Where tuples have costs, a speed is in costs per time.

A speed is one of the last micro-batches, about. Speeds of workers with few tuples are drawn to that of all. Nothing is told
while no speed has changed by more than `_CHANGE`, because every change moves keys.
"""

from __future__ import annotations

import logging
from queue import SimpleQueue

import numpy as np

from evenflow.arrays import Float64s, Int64s
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
_MOST = 32.0
"""A speed differs from the mean by at most this factor."""


class Speeds:
    """The estimate. workers: the largest possible number of them."""

    def __init__(self, workers: int) -> None:
        self._tuples, self._took = np.zeros(workers), np.zeros(workers)
        self._sent, self._costs = np.zeros(workers), np.zeros(workers)

    def combined(self, work: WorkerTimes) -> None:
        """A micro-batch: (worker, tuples, ms) of each worker. A worker that does not exist is passed over."""
        for sums in (self._tuples, self._took, self._sent, self._costs):
            sums *= _KEPT
        for worker, tuples, took in work:
            if worker < len(self._tuples):
                self._tuples[worker] += tuples
                self._took[worker] += took

    def routed(self, tuples: Int64s, costs: Int64s) -> None:
        """A block: how many tuples each worker was sent, and what these cost. Shape (workers,) each."""
        self._sent += tuples
        self._costs += costs

    def of(self, workers: int) -> Float64s | None:
        """Speeds of the first workers, shape (workers,), with a mean near 1. None while too little was measured."""
        tuples, took = self._tuples[:workers], self._took[:workers]
        if tuples.sum() < _FEW * workers or took.sum() <= 0:
            return None
        mean = took.sum() / tuples.sum()
        prior = _PRIOR * tuples.mean()
        times = (took + prior * mean) / (tuples + prior) / mean
        sent, costs = self._sent[:workers], self._costs[:workers]
        if costs.sum() > sent.sum():
            # Dear tuples take long on a fast worker, too.
            average = costs.sum() / sent.sum()
            more = _PRIOR * sent.mean()
            times = times / ((costs + more * average) / (sent + more) / average)
        return np.clip(1.0 / times, 1 / _MOST, _MOST)


class MeasuredSpeeds:
    """What the data plane knows of speeds. `offer` is called from the control plane, and never raises."""

    def __init__(self, settings: Settings) -> None:
        self._fingerprint = settings.fingerprint
        self._arrived: SimpleQueue[WorkerTimes] = SimpleQueue()
        self._speeds = Speeds(settings.routed_partitions)
        self.told: Float64s | None = None
        """The speeds that the partitioner was told last. None before the first."""

    def offer(self, value: bytes | None) -> None:
        """Take a record of the telemetry topic, of any bytes."""
        try:
            record = parse(value)
        except ValueError:
            return  # the controller and `status` count such records
        if isinstance(record, BatchRecord) and record.fingerprint == self._fingerprint:
            work = record.parts.get("combine")
            if work is not None and work.routed:
                self._arrived.put(work.routed)

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
        if speeds is None or not self._differ(speeds):
            return
        partitioner.set_speeds(speeds)
        slowest = int(speeds.argmin())
        log.info(
            "speeds of the workers, as measured: %.2f to %.2f of the mean, the slowest is worker %d",
            speeds.min() / speeds.mean(),
            speeds.max() / speeds.mean(),
            slowest,
        )
        self.told = speeds

    def _differ(self, speeds: Float64s) -> bool:
        before = np.ones(len(speeds)) if self.told is None or len(self.told) != len(speeds) else self.told
        return bool(np.any(np.abs(speeds / before - 1) > _CHANGE))
