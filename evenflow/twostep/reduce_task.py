"""A reduce task: the clusters that the combiner allocated to it -> a piece of the blob
of every bucket. Stateless.

A cluster is the partial of one (pane, key) that one routed partition has in a micro-batch. Prompt's Algorithm
3 allocates clusters so that all reduce tasks get equally many, with equally many tuples
(`evenflow/partitioners/prompt/reduce_buckets.py`). A task merges equal (pane, key). Then each row goes to the
bucket of its key, where the state is.

A key that is not split goes to any one task, so two routed partitions may send the same key to different
tasks: another batch or another partitioner instance had it there. Such rows meet in the bucket. So any
allocation gives the same results, but for the order in which floats are added.

Rows that were merged belong to no single segment any more. So the pieces of a bucket count together or not at
all (`merging`). Each piece names all segments of the micro-batch, and there is a piece of each task for each
bucket, even an empty one. The piece of task 0 also holds lanes and numbers of frames.

Which rows a piece has, and in which order, depends on the frames of the micro-batch and their offsets alone.
So a repeated micro-batch gives the same float sums, however its tasks are cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np
import pyarrow as pa

from evenflow.aggregates import AggregatePlan
from evenflow.errors import ProtocolError
from evenflow.keys import hash_keys
from evenflow.numeric.arrays import Int64s, Rows, records
from evenflow.twostep.combiner import BlobPart, one_batch
from evenflow.twostep.lanes import grown
from evenflow.twostep.layout import Layout
from evenflow.twostep.reducing.merging import check_origin, checked, picked
from evenflow.twostep.tally import NO_BATCH, Tally, Work
from evenflow.windows import NO_MARK
from evenflow.wire import LANE, SEQUENCE, BlobHeader, Piece, Segment, cut, decode_blob, encode_blob
from evenflow.wire.blob import Blob


class _SegmentRows(NamedTuple):
    """Rows of a segment that came."""

    segment: Segment
    """The segment, as its blob describes it."""
    marks: Int64s
    """Largest mark (ms) that its frames told of each input partition."""
    row: int
    """The segment's first row, counted over the rows of all blobs that came."""


def reduce_task(
    plan: AggregatePlan,
    layout: Layout,
    task: int,
    blobs: Iterable[bytes | pa.Buffer],
    *,
    on_tally: Callable[[Tally], object] | None = None,
) -> list[BlobPart]:
    """The pieces of reduce task `task`, in the order of buckets. The list is empty if there is no blob.

    blobs: all that the combiner has for the task in one micro-batch, in any order. on_tally: called once at
    the end if there were blobs. Its time is that of the reducer.

    Raises ProtocolError for a part of a blob that is missing or came twice, and for a blob of another
    receiver. Raises IncompatibleStateError for another query or layout, and DataLossError for another routed
    topic.
    """
    assert layout.reduce_tasks is not None
    decoded = [decode_blob(data, fingerprint=layout.fingerprint) for data in blobs]
    for blob in decoded:
        check_origin(layout, blob, receivers=layout.reduce_tasks)
        if not blob.header.for_task or blob.header.bucket != task:
            raise ProtocolError(f"a blob for receiver {blob.header.bucket} came to reduce task {task}")
    if not decoded:
        return []
    parts = _whole(decoded)
    rows = pa.concat_tables([checked(plan, blob) for blob in decoded])
    ranges = np.array([(part.row, part.segment.rows) for part in parts], np.int64)
    pieces = list(_pieces(layout, _header(layout, task, decoded, parts), plan.merge([picked(rows, ranges)])))
    if on_tally is not None:
        # The buckets tell of the rows. Here only the time is told.
        on_tally(Tally(work={("reduce", NO_BATCH): Work()}))
    return pieces


def _whole(blobs: Sequence[Blob]) -> list[_SegmentRows]:
    """The rows of all segments in merge order: by routed partition and row. Raises ProtocolError unless
    each came once.
    """
    parts = []
    row = 0
    for blob in blobs:
        for segment in blob.header.segments:
            parts.append(_SegmentRows(segment, blob.header.marks[segment.marks], row))
            row += segment.rows
    parts.sort(key=lambda part: (part.segment.routed, part.segment.begin))
    before: Segment | None = None
    for segment, _, _ in parts:
        if before is not None and segment.routed != before.routed:
            _check_end(before)
            before = None
        expected = 0 if before is None else before.begin + before.rows
        same = before is None or segment[:4] == before[:4]
        if segment.begin != expected or not same or (before is not None and not segment.rows):
            raise ProtocolError(
                f"rows from {segment.begin} on of routed partition {segment.routed}, offsets"
                f" {segment.first}..{segment.last}, came to a reduce task where those from {expected} on must"
            )
        before = segment
    if before is not None:
        _check_end(before)
    return parts


def _check_end(last: Segment) -> None:
    """Raise ProtocolError unless these are the last rows of their segment."""
    have = last.begin + last.rows
    if have != last.total:
        raise ProtocolError(
            f"only {have} of {last.total} rows of routed partition {last.routed}, offsets"
            f" {last.first}..{last.last}, came to a reduce task"
        )


def _header(layout: Layout, task: int, blobs: Sequence[Blob], parts: Sequence[_SegmentRows]) -> BlobHeader:
    """What the pieces of this task have in common. It is that of bucket 0."""
    inputs = max(blob.header.input_partitions for blob in blobs)
    begun = [part for part in parts if not part.segment.begin]
    marks, lines = np.unique(
        np.stack([grown(part.marks, inputs, NO_MARK) for part in begun]), axis=0, return_inverse=True
    )
    return BlobHeader(
        fingerprint=layout.fingerprint,
        topic_id=layout.topic_id,
        bucket=0,
        buckets=layout.buckets,
        input_partitions=inputs,
        routed_partitions=layout.routed_partitions,
        segments=tuple(
            part.segment._replace(total=0, begin=0, rows=0, marks=line)
            for part, line in zip(begun, lines.reshape(-1).tolist(), strict=True)
        ),
        marks=marks,
        lanes=_by_routed([blob.header.lanes for blob in blobs]),
        arrival_time=min(
            (blob.header.arrival_time for blob in blobs if blob.header.arrival_time is not None), default=None
        ),
        sequences=_by_routed([blob.header.sequences for blob in blobs]) if not task else records(0, SEQUENCE),
        piece=Piece(task, cast(int, layout.reduce_tasks)),
    )


def _by_routed(rows: Sequence[Rows]) -> Rows:
    """All these records by routed partition.
    Those of one routed partition come from one blob, and keep their order.
    """
    whole = np.concatenate(rows)
    return cast(Rows, whole[np.argsort(whole["routed"], kind="stable")])


def _pieces(layout: Layout, header: BlobHeader, rows: pa.Table) -> Iterator[BlobPart]:
    """A piece for each bucket. A large one is cut into parts, whose first part alone has lanes and
    sequences.
    """
    bucket_ids = layout.bucket_of(hash_keys(rows["key"]))
    ordered = rows.take(pa.array(np.argsort(bucket_ids, kind="stable")))
    ends = np.cumsum(np.bincount(bucket_ids, minlength=layout.buckets))
    watchers = np.array([layout.watcher(routed) for routed in range(layout.routed_partitions)])
    for bucket, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        lanes = header.lanes[watchers[header.lanes["routed"]] == bucket]
        mine = replace(header, bucket=bucket, lanes=lanes)
        bare = replace(mine, lanes=records(0, LANE), sequences=records(0, SEQUENCE))
        batches = list(cut(one_batch(ordered.slice(begin, end - begin)), layout.max_bytes))
        for number, batch in enumerate(batches):
            data = encode_blob(batch, bare if number else mine, part=number, parts=len(batches))
            yield BlobPart(bucket, data, number, len(batches))
