"""What a Python worker knows of the task that it runs."""

from __future__ import annotations

import time
from collections.abc import Callable

from pyspark import TaskContext

from evenflow.twostep import Tally

_BATCH = "streaming.sql.batchId"
"""Spark's own name for the number of the micro-batch that a task belongs to."""

Told = Callable[[Tally], object]


class Stopwatch:
    """Started with a task, asked at its end."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    def timed(self, tally: Tally) -> Tally:
        """What the task tells, with its micro-batch and how long it took."""
        context = TaskContext.get()
        batch = context.getLocalProperty(_BATCH) if context is not None else None
        return tally.in_batch(int(batch or 0), 1000 * (time.perf_counter() - self._began))

    def telling(self, told: Told | None) -> Told | None:
        """The same `told`, of tallies that are `timed`."""
        return None if told is None else lambda tally: told(self.timed(tally))
