"""When the sources of one stream tell each other what they know, if their algorithm can coordinate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evenflow.arrays import Int64s
from evenflow.windows import pane_of


@dataclass(frozen=True)
class Exchange:
    """How the instances of one partitioner coordinate over a channel without delay or loss.

    An algorithm that can coordinate gives an exchange by `Partitioner.exchange`. The code that routes calls `tell` when
    it is due.
    """

    every_ms: int
    """An exchange is due whenever event time reaches a multiple of this, ms."""
    tell: Callable[[int], None]
    """Say that event time has reached so many ms. Everything that is due is sent, received and taken over."""

    def meetings(self, times: Int64s) -> dict[int, list[int]]:
        """Row of a stream -> moments (ms) at which to `tell` before that row is routed.

        An exchange happens before the first tuple, at the end of each interval that has tuples, and at the end of a
        silence of whole intervals. The ends of the silent intervals themselves would tell nothing more. A tuple older
        than the current interval counts in the current interval. `times`: shape (m,), m at least 1.
        """
        intervals = np.maximum.accumulate(pane_of(times, self.every_ms))
        rows = np.concatenate([[0], np.flatnonzero(np.diff(intervals)) + 1])
        begun = intervals[rows].tolist()
        ended = [begun[0], *(interval + 1 for interval in begun[:-1])]
        # A set: without a silence the end of one interval is the beginning of the next, and is told once.
        return {
            row: [interval * self.every_ms for interval in sorted({end, begin})]
            for row, end, begin in zip(rows.tolist(), ended, begun, strict=True)
        }
