"""Combiner stage: routed frames -> one blob per bucket and routed partition. Stateless.

One task may read several routed partitions one after the other (fewer tasks cost less per micro-batch,
and there are only so many cores); each is combined by itself, so that changes no byte of any blob.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from evenflow.errors import ProtocolError
from evenflow.twostep import Blob, combine_frames
from spark_consumers.labels import bucket_labels
from spark_consumers.layout import Layout

BLOBS = "label int, bucket int, identity binary, blob binary"
_ARROW = pa.schema(
    [("label", pa.int32()), ("bucket", pa.int32()), ("identity", pa.binary()), ("blob", pa.binary())]
)
Batches = Iterator[pa.RecordBatch]


def combined(frames: DataFrame, layout: Layout, *, tasks: int) -> DataFrame:
    """Blobs (columns BLOBS) of a stream of routed records."""
    return frames.coalesce(tasks).mapInArrow(combine_task(layout), BLOBS)


def combine_task(layout: Layout) -> Callable[[Batches], Batches]:
    """What one task does with its record batches (partition, offset, value)."""

    def task(batches: Batches) -> Batches:
        rows = _Rows(batches)
        done: set[int] = set()
        while (partition := rows.partition()) is not None:
            if partition in done:
                raise ProtocolError(f"routed partition {partition} was handed over in two stretches")
            done.add(partition)
            blobs = combine_frames(
                layout.plan,
                rows.of(partition),
                fingerprint=layout.fingerprint,
                topic_id=layout.topic_id,
                routed_partition=partition,
                input_partitions=layout.input_partitions,
                routed_partitions=layout.routed_partitions,
                buckets=layout.buckets,
                max_bytes=layout.max_bytes,
            )
            yield _batch(blobs, layout.buckets)

    return task


class _Rows:
    """The rows of a task's batches, taken one stretch of equal partition at a time."""

    def __init__(self, batches: Batches) -> None:
        self._rows = self._each(batches)
        self._next = next(self._rows, None)

    @staticmethod
    def _each(batches: Batches) -> Iterator[tuple[int, int, pa.Buffer]]:
        for batch in batches:
            partitions = batch.column("partition").to_pylist()
            offsets = batch.column("offset").to_pylist()
            values = batch.column("value")
            for row, (partition, offset) in enumerate(zip(partitions, offsets, strict=True)):
                buffer = values[row].as_buffer()
                if buffer is None:
                    raise ProtocolError(
                        f"routed partition {partition}, offset {offset}: a record without value"
                    )
                yield partition, offset, buffer

    def partition(self) -> int | None:
        """Partition of the next row; None at the end."""
        return None if self._next is None else self._next[0]

    def of(self, partition: int) -> Iterator[tuple[int, pa.Buffer]]:
        """(offset, frame) of the rows up to the next partition."""
        while self._next is not None and self._next[0] == partition:
            yield self._next[1], self._next[2]
            self._next = next(self._rows, None)


def _batch(blobs: list[Blob], buckets: int) -> pa.RecordBatch:
    labels = bucket_labels(buckets)
    identities = [f"{b.routed_partition}/{b.first}-{b.last}/{b.part + 1}-{b.parts}".encode() for b in blobs]
    columns = [
        pa.array([labels[blob.bucket] for blob in blobs], pa.int32()),
        pa.array([blob.bucket for blob in blobs], pa.int32()),
        pa.array(identities, pa.binary()),
        pa.array([blob.data for blob in blobs], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW)
