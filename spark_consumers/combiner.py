"""Combiner stage: routed frames -> one blob per task and bucket, or per task and reduce task. Stateless.

One task may read several routed partitions, one after the other: fewer tasks cost less per micro-batch, and
there are only so many cores. Each routed partition is combined by itself and stays a segment of its own in
the blob. So the number of tasks changes no result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from time import perf_counter, sleep
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame

from evenflow.errors import ProtocolError
from evenflow.twostep import BlobPart, Tally, combine_task
from spark_consumers.labels import bucket_labels
from spark_consumers.layout import Layout
from spark_consumers.tasks import OnTally, Stopwatch

BLOBS = "label int, bucket int, identity binary, blob binary"
_ARROW = pa.schema(
    [("label", pa.int32()), ("bucket", pa.int32()), ("identity", pa.binary()), ("blob", pa.binary())]
)
Batches = Iterable[pa.RecordBatch]
Waits = float | Sequence[float]
Stretches = Iterable[tuple[int, Iterable[tuple[int, bytes | pa.Buffer]]]]
"""Each routed partition of a task, with its (offset, frame) pairs."""


def combined(
    frames: DataFrame,
    layout: Layout,
    *,
    tasks: int,
    on_tally: OnTally | None,
    wait_us: Waits = 0,
    measured: bool = False,
) -> DataFrame:
    """Blobs (columns BLOBS) of a stream of routed records (partition, offset, value).

    tasks: how many Spark tasks share the routed partitions. on_tally: each task hands it the tally of what
    the task has combined, None if nobody listens. wait_us: microseconds to wait for each tuple, for
    experiments, or those of each routed partition (of further ones 0). measured: the tallies say how long
    each routed partition took.
    """
    # `coalesce` joins whole partitions without a shuffle, so
    # the rows of a routed partition stay together, in order.
    return frames.coalesce(tasks).mapInArrow(
        combine_stream(layout, on_tally, wait_us, measured=measured), BLOBS
    )


def combine_stream(
    layout: Layout, on_tally: OnTally | None, wait_us: Waits = 0, *, measured: bool = False
) -> Callable[[Batches], Batches]:
    """The function that one task applies to its record batches (partition, offset, value)."""

    def task(batches: Batches) -> Batches:
        watch = Stopwatch()

        def tell(tally: Tally) -> None:
            if wait_us:
                more_ms = {
                    worker: tuples * _wait_of(wait_us, worker) / 1_000
                    for work in tally.work.values()
                    for worker, (tuples, _) in work.by_worker.items()
                }
                sleep(sum(more_ms.values()) / 1_000)
                tally = tally.slowed(more_ms)
            if on_tally is not None:
                on_tally(watch.timed(tally))

        # `tell` also does the waiting, so it is needed for `wait_us` even if nobody listens.
        report = tell if on_tally is not None or wait_us else None
        clock = perf_counter if measured or wait_us else None
        stretches = _Rows(batches).stretches()
        if layout.parts:
            blobs = _of_parts(layout, stretches, report, clock)
        else:
            blobs = combine_task(layout.plan, layout, stretches, on_tally=report, clock=clock)
        yield blob_batch(blobs, layout.receivers)

    return task


def _of_parts(
    layout: Layout, stretches: Stretches, on_tally: OnTally | None, clock: Callable[[], float] | None
) -> list[BlobPart]:
    """The blobs of all parts of a summary, each with its part's mark. The frames are held until the last part
    has read them.

    on_tally: is handed the tally of the first part, so that each tuple counts once.
    """
    buffered: Stretches = stretches
    if len(layout.parts) > 1:
        buffered = [(routed, list(frames)) for routed, frames in stretches]
    return [
        blob._replace(data=marked(blob.data, number))
        for number, part in enumerate(layout.parts)
        for blob in combine_task(
            part.plan,
            part,
            buffered,
            on_tally=on_tally if number == 0 else None,
            clock=clock if number == 0 else None,
        )
    ]


def marked(blob: bytes, part: int) -> bytes:
    """The blob of a part of a summary, with the number of the part behind it."""
    return blob + bytes([part])


def by_part(blobs: Iterable[bytes], parts: int) -> list[list[memoryview]]:
    """The blobs of each part, as they were before `marked`. parts: how many there are."""
    blobs_by_part: list[list[memoryview]] = [[] for _ in range(parts)]
    for blob in blobs:
        blobs_by_part[blob[-1]].append(memoryview(blob)[:-1])
    return blobs_by_part


def _wait_of(wait_us: Waits, worker: int) -> float:
    if isinstance(wait_us, int | float):
        return wait_us
    return wait_us[worker] if worker < len(wait_us) else 0.0


class _Row(NamedTuple):
    """A record of the routed topic."""

    partition: int
    """Partition of the routed topic."""
    offset: int
    """Offset of the record in this partition."""
    frame: pa.Buffer
    """Value of the record: the tuples of one worker."""


class _Rows:
    """The rows of a task's batches, taken one stretch of equal partition at a time."""

    def __init__(self, batches: Batches) -> None:
        self._rows = self._each(batches)
        self._next = next(self._rows, None)

    @staticmethod
    def _each(batches: Batches) -> Iterator[_Row]:
        for batch in batches:
            partitions = batch.column("partition").to_pylist()
            offsets = batch.column("offset").to_pylist()
            values = batch.column("value")
            for row, (partition, offset) in enumerate(zip(partitions, offsets, strict=True)):
                # The frame stays where Arrow has it: `as_py` would copy it.
                buffer = values[row].as_buffer()
                if buffer is None:
                    raise ProtocolError(
                        f"routed partition {partition}, offset {offset}: a record without value"
                    )
                yield _Row(partition, offset, buffer)

    def stretches(self) -> Iterator[tuple[int, Iterator[tuple[int, pa.Buffer]]]]:
        """Each routed partition with its (offset, frame) pairs.

        All pairs of one partition must be taken before the next partition is asked for: both come from one
        iterator.
        """
        while self._next is not None:
            yield self._next.partition, self._rows_of(self._next.partition)

    def _rows_of(self, partition: int) -> Iterator[tuple[int, pa.Buffer]]:
        """(offset, frame) of each row until the partition changes."""
        while self._next is not None and self._next.partition == partition:
            yield self._next.offset, self._next.frame
            self._next = next(self._rows, None)


def blob_batch(parts: list[BlobPart], receivers: int) -> pa.RecordBatch:
    """Blobs as rows (columns BLOBS). receivers: how many buckets, or reduce tasks, blobs may be for."""
    labels = bucket_labels(receivers)
    identities = [f"{part.bucket}/{part.part + 1}-{part.parts}".encode() for part in parts]
    columns = [
        pa.array([labels[part.bucket] for part in parts], pa.int32()),
        pa.array([part.bucket for part in parts], pa.int32()),
        pa.array(identities, pa.binary()),
        pa.array([part.data for part in parts], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW)
