"""Decides which rows of the blobs that came are new, and in what order they are merged.

Segments are merged in the order of (routed partition, offsets, rows). The order in which their blobs came,
and how the blobs were cut, make no difference. So a repeated micro-batch gives the same float sums (rule
"merge order is fixed").

A segment that was merged before changes nothing. If a part of a segment was merged before, only the rest
counts. A segment that overlaps merged offsets in any other way stops the query with an error (rule "blobs
count once").

With reduce tasks blobs are pieces, whose rows belong to all of their segments together. They are merged if
all of these segments are new, and change nothing if all were merged before. Everything else is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from evenflow.aggregates import AggregatePlan
from evenflow.errors import DataLossError, IncompatibleStateError, ProtocolError
from evenflow.numeric.arrays import Int64s
from evenflow.twostep.lanes import UNREAD, routed_twice
from evenflow.twostep.layout import Layout
from evenflow.twostep.reducing.pieces import merge_order
from evenflow.twostep.reducing.state import Bucket, PendingSegment
from evenflow.twostep.reducing.state_blobs import BucketState
from evenflow.wire.blob import Blob, Segment


class _SegmentArrival(NamedTuple):
    """A segment that came."""

    segment: Segment
    """The segment, as its blob describes it."""
    blob: Blob
    """The blob that brought it."""
    row: int
    """The segment's first row, counted over the rows of all blobs that came."""
    sequences: Sequence[tuple[int, ...]]
    """What the blob says of each session: records `wire.SEQUENCE` as tuples."""


def begun(plan: AggregatePlan, layout: Layout, state: BucketState, blob: Blob) -> Bucket:
    """The bucket that this blob begins, the first ever seen. Raises as `new_rows` does for a foreign blob."""
    check_origin(layout, blob, receivers=layout.buckets)
    return Bucket.first(plan, state, blob.header)


def new_rows(plan: AggregatePlan, layout: Layout, bucket: Bucket, blobs: Sequence[Blob]) -> pa.Table:
    """Those partials (plan.partial_schema) of these blobs that were not merged before, in merge order.

    Moves the bucket's position, marks and lanes on. Raises ProtocolError for an overlap, missing rows, a late
    partial or input that was routed twice. Raises IncompatibleStateError for another layout, and
    DataLossError for another routed topic and for frames that are gone.
    """
    tables = []
    for blob in blobs:
        check_origin(layout, blob, receivers=layout.buckets)
        _check_bucket(bucket, blob)
        tables.append(checked(plan, blob))
    bucket.grow(max((blob.header.input_partitions for blob in blobs), default=0))
    merge = _of_segments if layout.reduce_tasks is None else partial(_of_pieces, tasks=layout.reduce_tasks)
    rows = merge(bucket, blobs, tables) if blobs else None
    if rows is None:
        return plan.partial_schema.empty_table()
    _refuse_late(bucket, rows)
    return rows


def _of_segments(bucket: Bucket, blobs: Sequence[Blob], tables: Sequence[pa.Table]) -> pa.Table | None:
    """The new rows of blobs whose segments count their rows, None if there are none."""
    arrivals: list[_SegmentArrival] = []
    row = 0
    for blob in blobs:
        if blob.header.piece is not None:
            raise ProtocolError(
                "a piece of a reduce task came to a bucket that has no reduce tasks before it"
            )
        sequences = _sequences(blob)
        for segment in blob.header.segments:
            arrivals.append(_SegmentArrival(segment, blob, row, sequences.get(segment.routed, ())))
            row += segment.rows
    # Kafka gives blobs of several tasks in any order. Sorted like this, floats add up to the same sum each
    # time.
    arrivals.sort(key=lambda entry: (entry.segment.routed, entry.segment.first, entry.segment.begin))
    ranges = [(at, count) for entry in arrivals for at, count in [_take(bucket, entry)] if count]
    return picked(pa.concat_tables(tables), np.array(ranges, np.int64)) if ranges else None


def _of_pieces(
    bucket: Bucket, blobs: Sequence[Blob], tables: Sequence[pa.Table], *, tasks: int
) -> pa.Table | None:
    """The rows of all pieces, None if there are none or all were merged before."""
    order = merge_order(blobs, tasks=tasks)
    lead = blobs[order[0]]
    merged = [segment.last <= bucket.merged[segment.routed] for segment in lead.header.segments]
    if all(merged):
        return None
    if any(merged):
        known = lead.header.segments[merged.index(True)]
        raise ProtocolError(
            f"offsets {known.first}..{known.last} of routed partition {known.routed} were merged before, but"
            " other offsets of the same micro-batch were not: their rows cannot be told apart"
        )
    sequences = _sequences(lead)
    # Only the position, marks and lanes move on here: the rows of a piece do not say which segment they are
    # of.
    for segment in lead.header.segments:
        _take(bucket, _SegmentArrival(segment, lead, 0, sequences.get(segment.routed, ())))
    rows = pa.concat_tables([tables[at] for at in order])
    return rows if rows.num_rows else None


def _sequences(blob: Blob) -> dict[int, list[tuple[int, ...]]]:
    """What a blob says of sessions, by routed partition."""
    sequences: dict[int, list[tuple[int, ...]]] = {}
    for entry in blob.header.sequences.tolist():
        sequences.setdefault(entry[0], []).append(entry)
    return sequences


def _take(bucket: Bucket, arrival: _SegmentArrival) -> tuple[int, int]:
    """(first new row, number of new rows) of a segment. Moves merged offset, marks and lanes on."""
    segment = arrival.segment
    if segment.last <= bucket.merged[segment.routed]:
        return arrival.row, 0
    pending = bucket.meta.pending.get(segment.routed)
    if pending is None:
        if segment.begin:
            return arrival.row, 0  # the rest of an attempt that broke off, as below
        pending = _begun(bucket, arrival)
    elif (segment.first, segment.last, segment.total) != (pending.first, pending.last, pending.total):
        raise ProtocolError(
            f"{_named(segment)} came while of offsets {pending.first}..{pending.last} only {pending.have} of "
            f"{pending.total} rows had come"
        )
    if segment.begin > pending.have:
        # An attempt broke off and left a gap. The repeated attempt brings the gap and these rows.
        return arrival.row, 0
    # A repeated attempt brings the first `have` rows once more. Only the rows after them are new.
    repeated_rows = min(pending.have - segment.begin, segment.rows)
    pending.have = max(pending.have, segment.begin + segment.rows)
    if pending.have == pending.total:
        del bucket.meta.pending[segment.routed]
        bucket.merged[segment.routed] = segment.last
        # Marks count only now, because a pane may not close before all rows of a segment have come.
        segment_marks = arrival.blob.header.marks[segment.marks]
        marks = bucket.marks[segment.routed, : len(segment_marks)]
        np.maximum(marks, segment_marks, out=marks)
    return arrival.row + repeated_rows, segment.rows - repeated_rows


def _begun(bucket: Bucket, arrival: _SegmentArrival) -> PendingSegment:
    segment, merged = arrival.segment, int(bucket.merged[arrival.segment.routed])
    if segment.first <= merged:
        raise ProtocolError(f"{_named(segment)} overlaps what was merged up to offset {merged}")
    # Lanes and numbers of frames come with a segment's first rows, so they are checked once for each segment.
    bucket.sessions.add(arrival.sequences, f"offsets {segment.first}..{segment.last}")
    _watch(bucket, arrival)
    pending = PendingSegment(segment.first, segment.last, segment.total, 0)
    bucket.meta.pending[segment.routed] = pending
    return pending


def _watch(bucket: Bucket, arrival: _SegmentArrival) -> None:
    """Raise ProtocolError if an input offset of a watched lane falls, that is if input was routed twice."""
    watched = bucket.meta.watched
    if arrival.segment.routed not in watched:
        return
    reached = bucket.reached[watched.index(arrival.segment.routed)]
    lanes = arrival.blob.header.lanes
    lanes = lanes[lanes["routed"] == arrival.segment.routed]
    partitions, first = lanes["partition"], lanes["first"]
    back = np.flatnonzero((first != UNREAD) & (first < reached[partitions]))
    if len(back):
        partition = int(partitions[back[0]])
        raise routed_twice(arrival.segment.routed, partition, int(first[back[0]]), int(reached[partition]))
    reached[partitions] = np.maximum(reached[partitions], lanes["reached"])


def check_origin(layout: Layout, blob: Blob, *, receivers: int) -> None:
    """Refuse a blob of another topic or layout.
    Called before a header's numbers decide how large an array is.

    receivers: how many buckets, or reduce tasks, such blobs are for.
    """
    header = blob.header
    if header.topic_id != layout.topic_id:
        raise DataLossError(
            f"a blob is of routed topic {header.topic_id}, but the routed topic is {layout.topic_id}: "
            "it was deleted and made again",
            hint="give the query a new name, or rebuild it (docs/operations/data-loss.md)",
        )
    theirs = (header.buckets, header.routed_partitions)
    ours = (receivers, layout.routed_partitions)
    if theirs != ours:
        raise IncompatibleStateError(
            "a blob is of {} buckets and {} routed partitions, ".format(*theirs)
            + "but this query has {} and {}".format(*ours),
            hint=(
                "the number of routed partitions and buckets is fixed for the life"
                " of a query: give the query a new name"
            ),
        )


def _check_bucket(bucket: Bucket, blob: Blob) -> None:
    if blob.header.for_task:
        raise ProtocolError(f"a blob for reduce task {blob.header.bucket} came to a bucket")
    if blob.header.bucket != bucket.meta.bucket:
        raise ProtocolError(f"a blob for bucket {blob.header.bucket} came to bucket {bucket.meta.bucket}")


def checked(plan: AggregatePlan, blob: Blob) -> pa.Table:
    """The blob's rows. Raises ProtocolError for other columns, and for a null in pane (0) or key (1)."""
    schema = plan.partial_schema
    if not blob.batch.schema.equals(schema):
        raise ProtocolError(f"a blob has the columns {blob.batch.schema}, not {schema}")
    if blob.batch.column(0).null_count or blob.batch.column(1).null_count:
        raise ProtocolError("a blob has a null pane or key")
    return pa.Table.from_batches([blob.batch])


def picked(table: pa.Table, ranges: Int64s) -> pa.Table:
    """The rows in these ranges, in their order. ranges: (first row, number of rows), shape (n, 2)."""
    starts, counts = ranges.T
    before = np.cumsum(counts) - counts  # rows that come out before each range
    rows = np.repeat(starts - before, counts) + np.arange(int(counts.sum()))
    if len(rows) == table.num_rows and (np.diff(rows) == 1).all():
        return table  # all of it, in order: the usual case
    return table.take(pa.array(rows))


def _refuse_late(bucket: Bucket, rows: pa.Table) -> None:
    """Raise ProtocolError for a partial of a closed pane.
    Such a partial is a bug upstream, so it is never dropped.
    """
    oldest = int(rows["pane"].to_numpy().min())
    if oldest < bucket.meta.closed:
        raise ProtocolError(
            f"there came a partial for pane {oldest}, but every pane before {bucket.meta.closed} is closed"
            " and emitted: a bug upstream, or a foreign record"
        )


def _named(segment: Segment) -> str:
    return (
        f"rows {segment.begin}..{segment.begin + segment.rows - 1} of {segment.total} of routed partition "
        f"{segment.routed}, offsets {segment.first}..{segment.last},"
    )
