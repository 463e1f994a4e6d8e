"""What a Python worker knows about the task that it runs."""

from __future__ import annotations

import time
from collections.abc import Callable

from pyspark import TaskContext

from evenflow.twostep import Tally

_BATCH = "streaming.sql.batchId"
"""Spark's own name for the number of the micro-batch that a task belongs to."""

OnTally = Callable[[Tally], object]
"""A listener: it is handed the tally of what a task has done."""


class Stopwatch:
    """Measures how long a task takes. It is made when the task starts."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    def timed(self, tally: Tally) -> Tally:
        """The tally with the number of the task's micro-batch and the time (ms) since the task began."""
        context = TaskContext.get()  # None outside of a Spark task, as in tests
        batch = context.getLocalProperty(_BATCH) if context is not None else None
        return tally.in_batch(int(batch or 0), 1000 * (time.perf_counter() - self._began))

    def telling(self, on_tally: OnTally | None) -> OnTally | None:
        """A listener that passes each tally on to `on_tally`, `timed`. None stays None."""
        return None if on_tally is None else lambda tally: on_tally(self.timed(tally))
