"""The combiner's core: frames of one routed partition's offset range -> one blob per reduce bucket.

Every bucket gets a blob, even an empty one, whenever a frame was read: it carries the marks, and it
moves the bucket's merged offset on. How the range is folded and cut depends on the frames and their
offsets alone (never on time, memory or how Arrow handed them over), so a repeated micro-batch makes
the same bytes and the same float sums.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from evenflow.aggregates import AggregatePlan
from evenflow.errors import IncompatibleStateError, ProtocolError
from evenflow.frames import BlobHeader, FrameHeader, cut, decode_frame, encode
from evenflow.keys import bucket_of, hash_keys

FOLD_ROWS = 500_000
"""Rows held before they are folded into partials: the memory bound of a task, together with..."""
FOLD_BYTES = 64_000_000
"""...bytes held. Both are counted frame by frame. Part of the format: see the module docstring."""


class Blob(NamedTuple):
    """One encoded blob and its identity; `bucket` is where it is to be reduced."""

    bucket: int
    data: bytes
    routed_partition: int
    first: int
    last: int
    part: int
    parts: int


def combine_frames(
    plan: AggregatePlan,
    frames: Iterable[tuple[int, bytes | pa.Buffer]],
    *,
    fingerprint: str,
    topic_id: str,
    routed_partition: int,
    input_partitions: int,
    routed_partitions: int,
    buckets: int,
    max_bytes: int,
) -> list[Blob]:
    """Blobs of these (offset, frame) pairs, in ascending offsets; none when there is no frame.

    Raises IncompatibleStateError for a frame of another query or layout, ProtocolError for what is no frame,
    has other columns, or comes out of order.
    """
    fold = _Fold(plan)
    marks: dict[int, int] = {}
    first = last = -1
    for offset, data in frames:
        if offset <= last:
            raise ProtocolError(f"routed partition {routed_partition}: offset {offset} was read after {last}")
        header, batch = decode_frame(data, fingerprint=fingerprint)
        _check_layout(header, input_partitions, routed_partitions, routed_partition, offset)
        for partition, progress in header.progress.items():
            marks[partition] = max(progress.mark, marks.get(partition, progress.mark))
        fold.add(batch, f"routed partition {routed_partition}, offset {offset}")
        first = offset if first < 0 else first
        last = offset
    if first < 0:
        return []
    blobs = []
    for bucket, table in enumerate(split_by_bucket(fold.result(), buckets)):
        parts = list(cut(_batch(table), max_bytes))
        for part, batch in enumerate(parts):
            identity = BlobHeader(
                fingerprint=fingerprint,
                topic_id=topic_id,
                routed_partition=routed_partition,
                first=first,
                last=last,
                part=part,
                parts=len(parts),
                input_partitions=input_partitions,
                routed_partitions=routed_partitions,
                marks=dict(sorted(marks.items())),
            )
            data = encode(batch, identity)
            blobs.append(Blob(bucket, data, routed_partition, first, last, part, len(parts)))
    return blobs


def split_by_bucket(table: pa.Table, buckets: int) -> list[pa.Table]:
    """The rows of each bucket, in their order. The bucket of a key is a pure function of its bytes."""
    if buckets == 1 or table.num_rows == 0:
        return [table, *(table.slice(0, 0) for _ in range(buckets - 1))]
    of = bucket_of(hash_keys(table["key"]), buckets)
    ordered = table.take(pa.array(np.argsort(of, kind="stable")))
    ends = np.cumsum(np.bincount(of, minlength=buckets))
    starts = ends - np.bincount(of, minlength=buckets)
    return [
        ordered.slice(start, end - start) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]


class _Fold:
    """Rows so far, folded into partials each time enough of them were gathered."""

    def __init__(self, plan: AggregatePlan) -> None:
        self._plan = plan
        self._schema = plan.frame_schema
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        self._partials: list[pa.Table] = []

    def add(self, batch: pa.RecordBatch, where: str) -> None:
        if batch.schema.names != self._schema.names or batch.schema.types != self._schema.types:
            raise ProtocolError(
                f"{where}: a frame has the columns {batch.schema.remove_metadata()}, not {self._schema}"
            )
        if batch.column(0).null_count or batch.column(1).null_count:
            raise ProtocolError(f"{where}: a frame has a null pane or key")
        if batch.num_rows == 0:
            return
        self._waiting.append(batch.replace_schema_metadata(None))
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= FOLD_ROWS or self._bytes >= FOLD_BYTES:
            self._fold()

    def result(self) -> pa.Table:
        if self._waiting:
            self._fold()
        return self._partials[0] if self._partials else self._plan.partial_schema.empty_table()

    def _fold(self) -> None:
        folded = self._plan.combine(pa.Table.from_batches(self._waiting, self._schema))
        self._partials = [self._plan.merge([*self._partials, folded]) if self._partials else folded]
        self._waiting, self._rows, self._bytes = [], 0, 0


def _check_layout(header: FrameHeader, inputs: int, routed: int, partition: int, offset: int) -> None:
    if (header.input_partitions, header.routed_partitions) != (inputs, routed):
        raise IncompatibleStateError(
            f"routed partition {partition}, offset {offset}: the frame is of {header.input_partitions} input "
            f"and {header.routed_partitions} routed partitions, but this query has {inputs} and {routed}",
            hint="the number of partitions is fixed for the life of a query: give the query a new name",
        )
    strange = [number for number in header.progress if not 0 <= number < inputs]
    if strange:
        raise ProtocolError(
            f"routed partition {partition}, offset {offset}: there is no input partition {strange}"
        )


def _batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    if batches:
        return batches[0]
    return pa.RecordBatch.from_arrays(
        [pa.array([], field.type) for field in table.schema], schema=table.schema
    )
