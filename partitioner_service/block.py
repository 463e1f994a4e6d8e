"""What a block is made of where it comes in, and what is refused of it.
Every folder from `routing` up knows these types.

`kafka.slices` cuts a block into slices. `routing` makes rejections of what is wrong in them, `kafka.sink`
writes these, and `reports` counts them. No decision may live here, and nothing of Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from evenflow.numeric.arrays import Int64s
from evenflow.progress import Verdict
from evenflow.wire.markers import EndOfStream

REASONS = {Verdict.LATE: "late", Verdict.IDLE: "idle", Verdict.JUMP: "jump", Verdict.AHEAD: "ahead"}
"""The reasons for which a tuple is rejected by its event time."""
AFTER_END = "after-end"
"""The reason of records behind the end of their partition."""


@dataclass(frozen=True)
class Slice:
    """The records of one input partition in a block, in offset order."""

    partition: int
    """The input partition."""
    first: int
    """Offset of the first record."""
    last: int
    """Offset of the last record."""
    values: Sequence[bytes | None]
    """The value of each record."""
    keys: Sequence[bytes | None] | None = None
    """The key of each record. None where the query reads no keys."""
    timestamps: Sequence[int] | Int64s | None = None
    """The timestamp of each record (ms). None where the query reads no timestamps."""
    markers: dict[int, EndOfStream] = field(default_factory=dict)
    """End-of-stream markers by their position in the slice."""
    records: Sequence[Any] = ()
    """The records themselves. Routing does not look into them, but a rejected record is forwarded
    unchanged.
    """
    arrival_time: int | None = None
    """Timestamp of the first record (ms). None if it has none."""

    def apart(self, cuts: Sequence[int]) -> Iterator[Slice]:
        """This slice cut at these positions.
        Each is above 0 and below the number of records, and they ascend.
        """
        # Without the records nobody knows of gaps between offsets.
        offsets = [self.records[cut].offset() if self.records else self.first + cut for cut in cuts]
        firsts, lasts = [self.first, *offsets], [*(offset - 1 for offset in offsets), self.last]
        edges = pairwise([0, *cuts, len(self.values)])
        for (low, high), first, last in zip(edges, firsts, lasts, strict=True):
            yield replace(
                self,
                first=first,
                last=last,
                values=self.values[low:high],
                keys=None if self.keys is None else self.keys[low:high],
                timestamps=None if self.timestamps is None else self.timestamps[low:high],
                markers={at - low: marker for at, marker in self.markers.items() if low <= at < high},
                records=self.records[low:high],
            )


@dataclass(frozen=True)
class Rejections:
    """Records of one slice that are rejected for one reason. The arrays have one entry for each record.

    Arrays that have nothing to do with the reason are empty.
    """

    partition: int
    """The input partition."""
    reason: str
    """The reason, in one word."""
    positions: Int64s
    """Positions of the records in the slice, ascending."""
    details: pa.BinaryArray
    """What is wrong with each record, in UTF-8."""
    marks: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    """The mark that each record was held against (ms)."""
    times: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    """Event time of each record (ms)."""
    clocks: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    """The clock that each record was held against (ms)."""
    words: str = ""
    """The last of `details` for logs, without anything that its record holds. '' for reasons that never
    quote a record.
    """
