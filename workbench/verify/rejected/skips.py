"""Offsets that an operator has ordered to skip: nobody can fetch them, and verify reads around them.

The rejected topic names them. Of every other offset verify reads the record itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from partitioner_service.kafka.sink import SKIPPED
from workbench.verify.inputs import INPUT_SCHEMA, CommittedInput
from workbench.verify.report import UnfetchedOffsets


class SkippedOffsets:
    """The skipped offsets of each input partition."""

    def __init__(self) -> None:
        self._skips: dict[int, list[UnfetchedOffsets]] = defaultdict(list)

    def note(self, batch: pa.RecordBatch) -> None:
        """Note what these rejected records (REJECTED_SCHEMA) say."""
        if not pc.any(pc.equal(batch["reason"], SKIPPED)).as_py():
            return
        for row in batch.filter(pc.equal(batch["reason"], SKIPPED)).to_pylist():
            if row["partition"] is not None:
                skip = UnfetchedOffsets(row["partition"], row["offset"], row["through"], row["detail"] or "")
                self._skips[skip.partition].append(skip)

    def below(self, committed: Iterable[CommittedInput]) -> tuple[UnfetchedOffsets, ...]:
        """What was skipped before the committed offsets, in order."""
        ends = {state.partition: state.offset for state in committed}
        every = (skip for skips in self._skips.values() for skip in skips)
        return tuple(
            sorted(
                (skip for skip in every if skip.first < ends.get(skip.partition, 0)),
                key=lambda skip: (skip.partition, skip.first),
            )
        )

    def around(
        self, begin: Mapping[int, int], end: Mapping[int, int]
    ) -> Iterator[tuple[dict[int, int], dict[int, int]]]:
        """Pairs (first offsets, end offsets) by partition that together cover every offset
        but the skipped ones.
        """
        stretches = {
            partition: self._stretches(partition, begin[partition], end[partition]) for partition in end
        }
        for turn in range(max(map(len, stretches.values()), default=0)):
            # A partition that is read already gets a stretch without an offset.
            done = {partition: (max(begin[partition], stop),) * 2 for partition, stop in end.items()}
            now = done | {partition: some[turn] for partition, some in stretches.items() if turn < len(some)}
            yield {p: first for p, (first, _) in now.items()}, {p: stop for p, (_, stop) in now.items()}

    def rows(self, begin: Mapping[int, int], end: Mapping[int, int]) -> Iterator[pa.RecordBatch]:
        """A row of INPUT_SCHEMA without key and value for each skipped stretch."""
        for partition, stop in end.items():
            rows = [
                {"partition": partition, "offset": low, "timestamp": -1, "through": high - 1}
                for low, high in self._ranges(partition, begin[partition], stop)
            ]
            if rows:
                yield pa.RecordBatch.from_pylist(rows, schema=INPUT_SCHEMA)

    def _ranges(self, partition: int, begin: int, end: int) -> list[tuple[int, int]]:
        """Skipped stretches (first offset, offset behind the last) between these offsets.
        They do not overlap.
        """
        merged: list[tuple[int, int]] = []
        for skip in sorted(self._skips.get(partition, ()), key=lambda skip: skip.first):
            low, high = max(skip.first, begin, merged[-1][1] if merged else begin), min(skip.last + 1, end)
            if low < high:
                merged.append((low, high))
        return merged

    def _stretches(self, partition: int, begin: int, end: int) -> list[tuple[int, int]]:
        stretches, at = [], begin
        for low, high in self._ranges(partition, begin, end):
            if at < low:
                stretches.append((at, low))
            at = high
        return [*stretches, (at, end)] if at < end or not stretches else stretches
