"""Time-based: the batch interval is cut into equal spans of time, and each span is a data block.

Idea: this is what Spark Streaming's receivers do. A data block holds the tuples that arrived in its span. So
no plan is needed, and the first data block is ready while the batch still fills. But the data blocks are as
uneven as the rate is, and a key is in every data block in whose span one of its tuples arrived. Prompt has
this scheme as its baseline.

Time is the time of arrival, by a clock that never runs backwards. A tuple with an older time than a tuple
before it counts in the span of that tuple.
Parameters: `interval_ms` length of the batch interval. Intervals of this length then lie on a grid from time
0, and the batch is in the interval of its greatest time. Tuples from before that interval go to data block 0.
Without `interval_ms`, the interval reaches from the first time of the batch to its greatest time.

Cost per tuple: two comparisons, no division. State: none (the borders of the spans are made for each batch).
Paper: Abdelhamid, PhD thesis 2021 (001), section 2.1, figure 2.1a.

Each data block gets a quarter of the interval:

    >>> create("time-based", workers=4, interval_ms=6).assign_batch(keys, times).tolist()
    [0, 0, 1, 2, 2, 3]
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from evenflow.numeric.arrays import Int32s, Int64s, State, UInt64s
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.base import Block, Partitioner
from evenflow.partitioners.explanation import Explanation
from evenflow.partitioners.papers import MICRO_BATCHES
from evenflow.text.options import Options


@kernel
def _route(times: Int64s, start: int, borders: UInt64s, out: Int32s) -> None:
    """Write the span of each tuple. `borders[b]`: ms after `start` at which span b+1 begins."""
    span = 0
    last = borders.shape[0]
    for row in range(times.shape[0]):
        if times[row] >= start:
            # Unsigned, so that the difference of any two times fits.
            passed = np.uint64(times[row]) - np.uint64(start)
            while span < last and passed >= borders[span]:
                span += 1
        out[row] = span


def span_borders(interval: int, spans: int) -> UInt64s:
    """Where spans 1, 2, ... of an interval of whole ms begin: ceil(i * interval / spans). Shape
    (spans-1,).
    """
    # In two parts, because i * interval may exceed 64 bits.
    whole, rest = divmod(interval, spans)
    i = np.arange(1, spans, dtype=np.uint64)
    return i * np.uint64(whole % 2**64) + (i * np.uint64(rest) + np.uint64(spans - 1)) // np.uint64(spans)


class TimeBasedOptions(Options):
    """Options of time-based."""

    interval_ms: int | None = Field(
        None,
        ge=1,
        le=1 << 62,
        description="Batch interval, ms. None = from the first time of the batch to its greatest.",
    )


class TimeBased(Partitioner):
    """The batch interval is cut into equal spans of time, one per data block."""

    papers = (MICRO_BATCHES,)
    micro_batch = True
    batch_clock = "arrival"
    options_type = TimeBasedOptions
    options: TimeBasedOptions

    def _start(self) -> None:
        pass

    def _assign(self, block: Block) -> None:
        greatest, interval = int(block.times.max()), self.options.interval_ms
        start = int(block.times[0])
        if interval is None:
            interval = greatest - start + 1
        else:
            start = max(greatest // interval * interval, -(2**63))
        _route(block.times, start, span_borders(interval, self.workers), block.out)

    def _state(self) -> State:
        return {}

    def _load_state(self, state: State) -> None:
        pass

    def _explain(self, key: np.uint64, now: int | None) -> Explanation:
        return Explanation(
            rule="decided batch by batch: the time of arrival within the interval names the data block",
            workers=None,
        )

    def _choices(self) -> int:
        return self.workers
