"""What the growth scenarios share: combining and reducing in memory, timed in CPU seconds, without any
service.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from evenflow.aggregates import AggregatePlan
from evenflow.numeric.arrays import no_rows, records
from evenflow.settings import Query
from evenflow.twostep import Layout, combine_task, merge_leaders, reduce_leaders, reduce_windows
from evenflow.wire import MARKS, OFFSETS, FrameHeader, FramePacker, records_of

SLIDE = 1_000
TASKS = 2
SEED = 1


class Memory(dict[str, bytes]):
    """A bucket's state that counts the bytes that are read and written."""

    moved = 0
    """Bytes read and written so far."""

    def get(self, name: str, default: None = None) -> bytes | None:  # type: ignore[override]  # dict's takes any default
        value = super().get(name)
        self.moved += 0 if value is None else len(value)
        return value

    def put(self, name: str, value: bytes) -> None:
        self.moved += len(value)
        self[name] = bytes(value)

    def delete(self, name: str) -> None:
        del self[name]


@dataclass(kw_only=True)
class Pipeline:
    """A query from frames to result rows, without any service: count and a total over windows of `panes`
    panes of a second.
    """

    routed: int = 8
    """Partitions of the routed topic."""
    inputs: int = 4
    """Partitions of the input topic."""
    buckets: int = 2
    """Reduce buckets."""
    panes: int = 60
    """Panes of a window."""
    seed: int = SEED
    """Seed of the keys that are drawn."""
    pane: int = 1_000_000
    """The pane that is open."""
    block: int = 0
    """Number of blocks so far."""
    emit: str = "all"
    """The query's setting of this name."""
    total: str = "sum(x)"
    """The query's second aggregate."""

    def __post_init__(self) -> None:
        aggregates = {"n": "count", "total": self.total}
        query = Query(
            window=self.panes * SLIDE,
            slide=SLIDE,
            aggregates=aggregates,
            types={"x": "int64"},
            emit=self.emit,
        )
        self.query, self.plan = query, AggregatePlan.of(query)
        self.layout = Layout(
            fingerprint="f",
            topic_id="t",
            input_partitions=self.inputs,
            routed_partitions=self.routed,
            buckets=self.buckets,
            max_bytes=1_000_000,
        )
        self.states = [Memory() for _ in range(self.buckets)]
        self.merging = Memory()
        self._no_rows = no_rows(self.plan.frame_schema)
        self._random = np.random.default_rng(self.seed)

    def frames(
        self, *, tuples: int, keys: int, blocks: int = 1, close: int = 1, spread: int = 1
    ) -> list[list[tuple[int, bytes]]]:
        """Pairs (offset, frame) by routed partition: `blocks` blocks of together `tuples` tuples.

        The tuples lie in `spread` panes from the open pane on. The last block closes `close` panes.
        """
        frames: list[list[tuple[int, bytes]]] = [[] for _ in range(self.routed)]
        for number in range(blocks):
            drawn = np.sort(self._random.integers(0, keys, tuples // blocks))
            workers = drawn % self.routed
            # Sorted by worker, so that the rows of a worker are one slice.
            order = np.argsort(workers, kind="stable")
            text = [b"%08d" % key for key in drawn[order].tolist()]
            batch = pa.record_batch(
                [
                    self.pane + np.arange(len(drawn)) % spread,
                    pa.array(text, pa.binary()),
                    np.ones(len(drawn), np.int64),
                ],
                schema=self.plan.frame_schema,
            )
            bounds = np.searchsorted(workers[order], np.arange(self.routed + 1)).tolist()
            # One header a block: it is packed once for the frames of all workers.
            packer = self._packer(closes=close if number == blocks - 1 else 0)
            for routed in range(self.routed):
                rows = batch.slice(bounds[routed], bounds[routed + 1] - bounds[routed])
                data = packer.pack(rows if rows.num_rows else self._no_rows, sequence=self.block)
                frames[routed].append((self.block, data))
            self.block += 1
        self.pane += close
        return frames

    def combine(self, frames: list[list[tuple[int, bytes]]]) -> tuple[list[list[bytes]], float]:
        """Combine a micro-batch in `TASKS` tasks. Blobs by bucket, and the CPU seconds."""
        blobs: list[list[bytes]] = [[] for _ in range(self.buckets)]
        began = time.process_time()
        for task in range(TASKS):
            mine = range(task * self.routed // TASKS, (task + 1) * self.routed // TASKS)
            for part in combine_task(self.plan, self.layout, [(routed, frames[routed]) for routed in mine]):
                blobs[part.bucket].append(part.data)
        return blobs, time.process_time() - began

    def reduce(self, blobs: list[list[bytes]]) -> tuple[int, float]:
        """Reduce a micro-batch. Number of result rows, and the CPU seconds of all buckets."""
        tables, seconds = self.results(blobs)
        return sum(table.num_rows for table in tables), seconds

    def results(self, blobs: list[list[bytes]]) -> tuple[list[pa.Table], float]:
        """Reduce a micro-batch. Results, and the CPU seconds of all buckets and, with `top`, of the task
        that merges.
        """
        began = time.process_time()
        if self.plan.emission.mode == "top":
            sent = [
                leader
                for state, data in zip(self.states, blobs, strict=True)
                for leader in reduce_leaders(self.plan, self.layout, state, data)
            ]
            tables = list(merge_leaders(self.plan, self.layout, self.merging, sent))
        else:
            tables = [
                table
                for state, data in zip(self.states, blobs, strict=True)
                for table in reduce_windows(self.plan, self.layout, state, data)
            ]
        return tables, time.process_time() - began

    def batches(self, count: int, **frames: int) -> Iterator[tuple[float, float, int]]:
        """CPU seconds of combine and of reduce, and result rows, of each of `count` micro-batches."""
        for _ in range(count):
            blobs, combining = self.combine(self.frames(**frames))
            rows, reducing = self.reduce(blobs)
            yield combining, reducing, rows

    @property
    def moved(self) -> int:
        """Bytes of state read and written so far."""
        return sum(state.moved for state in self.states)

    def _packer(self, *, closes: int) -> FramePacker:
        first = self.block * 1_000
        offsets = records_of([(number, first, first + 999) for number in range(self.inputs)], OFFSETS)
        marks = records(0, MARKS)
        # A frame that tells has a mark of every input partition, which closes the panes before it.
        if closes:
            mark = (self.pane + closes) * SLIDE
            marks = records_of([(number, mark, first + 1_000) for number in range(self.inputs)], MARKS)
        header = FrameHeader(
            fingerprint="f",
            epoch=0,
            input_partitions=self.inputs,
            routed_partitions=self.routed,
            session=1,
            offsets=offsets,
            marks=marks,
        )
        return FramePacker(header, self.plan.frame_schema)
