"""Blobs: what one combiner task has for one bucket.

A blob holds one segment for each routed partition that the task read. A segment holds the partials of routed
offsets first..last that fall into the bucket. Segments stay apart, so it makes no difference which routed
partitions one task combined.

A blob that is too large is cut into parts. Each part says which rows of which segments it holds. So the rows
of a repeated blob are recognised even if it is cut elsewhere (rule "parts name their rows").

With reduce tasks (`twostep/reduce_task.py`) a blob goes to a task first. The tasks write *pieces*: the rows
of all pieces of a micro-batch together are those of its segments in a bucket, so rows belong to no single
segment any more.

Marks are written as a small table, and each segment names its line. Many segments of a micro-batch share a
line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from evenflow.errors import ProtocolError
from evenflow.numeric.arrays import Int64s, Rows, plain, records
from evenflow.text.strict_json import StrictObject
from evenflow.wire.envelope import (
    MOST_PARTITIONS,
    Data,
    Packer,
    arrival_field,
    numbers,
    open_record,
    read_arrival_time,
    read_numbers,
    read_records,
)

_KIND = "blob"

LANE = np.dtype([(name, np.int64) for name in ("routed", "partition", "first", "reached")])
"""What a blob's frames say of a lane from input partition `partition` to routed partition `routed`.

`first`: first input offset read. `reached`: next input offset to read.
"""
SEQUENCE = np.dtype([(name, np.int64) for name in ("routed", "session", "first", "last", "frames")])
"""What the frames of routed partition `routed` in a blob say of a session.

`first`, `last`: numbers of its first and last frame, -1 if there is none. `frames`: the largest total of the
session that was told (`wire.frame.TOTAL`), 0 if none was.
"""
MOST_SESSIONS = 4_096
"""A segment may name at most so many sessions."""


class Segment(NamedTuple):
    """Rows of a blob that are of one range of frames of one routed partition."""

    routed: int
    """The routed partition, by its number."""
    first: int
    """Offset of the range's first frame."""
    last: int
    """Offset of the range's last frame."""
    total: int
    """Partials that the range has for this bucket, in all parts of the blob."""
    begin: int
    """Number of the segment's first row among these."""
    rows: int
    """Rows that this blob, or this part of it, holds of them."""
    marks: int
    """Number of the segment's line in the blob's table of marks."""


class Piece(NamedTuple):
    """A piece of a bucket's blob. Only all pieces together, one from each reduce task, can be merged."""

    number: int
    """Number of the piece, which is that of its reduce task."""
    pieces: int
    """How many pieces there are."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BlobHeader:
    """Header of a blob, or of one part of it."""

    fingerprint: str
    """Fingerprint of the query. A blob of another query is refused."""
    topic_id: str
    """Kafka's id of the routed topic."""
    bucket: int
    """Number of the bucket, or of the reduce task."""
    buckets: int
    """How many buckets, or reduce tasks, there are."""
    input_partitions: int
    """Partitions of the input topic, as the combiner knew them."""
    routed_partitions: int
    """Partitions of the routed topic."""
    segments: tuple[Segment, ...]
    """In the order of their rows."""
    marks: Int64s
    """(lines, input partitions): largest mark (ms) that the frames of a segment told, NO_MARK for none. A
    segment's marks count once all of its rows are merged."""
    lanes: Rows
    """A record `LANE` for each lane that was read, of the routed partitions
    whose lanes this bucket watches."""
    arrival_time: int | None = None
    """The oldest arrival time (ms) of the blob's frames, for latencies alone."""
    sequences: Rows = field(default_factory=partial(records, 0, SEQUENCE))
    """A record `SEQUENCE` for each segment and each session that wrote frames of it,
    or whose total its frames tell."""
    for_task: bool = False
    """Whether the blob is for reduce task `bucket` of `buckets`, instead of for a bucket."""
    piece: Piece | None = None
    """Which piece the blob is, None for a blob that has all rows of its segments. The segments of a piece
    count no rows."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Blob:
    """A decoded blob, or a decoded part of one."""

    header: BlobHeader
    """What the blob says of its rows."""
    batch: pa.RecordBatch
    """The rows. Those of a segment follow those of the segment before it."""
    part: int
    """Which of the `parts` this is, from 0."""
    parts: int
    """Into how many parts the blob was cut, 1 if it was not."""


def encode_blob(batch: pa.RecordBatch, header: BlobHeader, *, part: int = 0, parts: int = 1) -> bytes:
    """The record of these rows, which are part `part` of `parts` of a blob."""
    fields = {
        "fingerprint": header.fingerprint,
        "topic_id": header.topic_id,
        "bucket": header.bucket,
        "buckets": header.buckets,
        "input_partitions": header.input_partitions,
        "routed_partitions": header.routed_partitions,
        "segments": numbers(np.array(header.segments, np.int64).reshape(-1, len(Segment._fields))),
        "marks": numbers(header.marks),
        "lanes": numbers(header.lanes),
        "sequences": numbers(header.sequences),
        **arrival_field(header.arrival_time),
        **({"for_task": True} if header.for_task else {}),
        **({} if header.piece is None else {"piece": header.piece.number, "pieces": header.piece.pieces}),
    }
    return Packer(batch.schema, kind=_KIND, fields=fields).pack(batch, part=part, parts=parts)


def decode_blob(data: Data, *, fingerprint: str) -> Blob:
    """The blob in these bytes, which may be anything.

    Raises as `open_record` does, and ProtocolError for an impossible header.
    """
    opened = open_record(data, kind=_KIND, fingerprint=fingerprint, read=_header)
    blob = Blob(header=opened.header, batch=opened.batch, part=opened.part, parts=opened.parts)
    counted = sum(segment.rows for segment in blob.header.segments)
    if blob.header.piece is None and counted != blob.batch.num_rows:
        raise ProtocolError(f"a blob's segments do not add up to its {blob.batch.num_rows} rows")
    return blob


def _header(fields: StrictObject) -> BlobHeader:
    inputs = fields.whole("input_partitions", 1, MOST_PARTITIONS)
    routed = fields.whole("routed_partitions", 1, MOST_PARTITIONS)
    header = BlobHeader(
        fingerprint=fields.text("fingerprint", most=100),
        topic_id=fields.text("topic_id", most=100),
        bucket=fields.whole("bucket", 0, 2**31),
        buckets=fields.whole("buckets", 1, 2**31),
        input_partitions=inputs,
        routed_partitions=routed,
        segments=tuple(
            Segment(*row)
            for row in read_numbers(fields, "segments", columns=len(Segment._fields), most=routed).tolist()
        ),
        marks=read_numbers(fields, "marks", columns=inputs, most=routed),
        lanes=read_records(fields, "lanes", LANE, most=routed * inputs),
        arrival_time=read_arrival_time(fields),
        sequences=read_records(fields, "sequences", SEQUENCE, most=routed * MOST_SESSIONS),
        for_task=fields.fields.get("for_task") is True,
        piece=_piece(fields),
    )
    if header.bucket >= header.buckets:
        raise ProtocolError(f"a blob cannot be for bucket {header.bucket} of {header.buckets}")
    # Numbers in a header index arrays of the reducer, so none may lie outside of them.
    for segment in header.segments:
        _check(segment, header)
        if header.piece is not None and segment.total:
            raise ProtocolError(f"a piece of a blob cannot count the rows of {segment}")
    if _outside(header.lanes["routed"], routed) or _outside(header.lanes["partition"], inputs):
        raise ProtocolError("a blob has lanes that do not exist")
    _check_sequences(header.sequences, routed)
    return header


def _piece(fields: StrictObject) -> Piece | None:
    if "piece" not in fields.fields:
        return None
    pieces = fields.whole("pieces", 1, 2**31)
    return Piece(fields.whole("piece", 0, pieces - 1), pieces)


def _check(segment: Segment, header: BlobHeader) -> None:
    """Raise ProtocolError for an impossible segment."""
    if not (
        0 <= segment.routed < header.routed_partitions
        and 0 <= segment.first <= segment.last
        and segment.begin >= 0
        and 0 <= segment.rows <= segment.total - segment.begin
        and 0 <= segment.marks < len(header.marks)
    ):
        raise ProtocolError(f"a blob cannot hold {segment}")


def _check_sequences(sequences: Rows, routed: int) -> None:
    """Raise ProtocolError for impossible records `SEQUENCE`."""
    if not len(sequences):
        return
    # The columns of `SEQUENCE`: routed partition, session, first, last, frames.
    least, most = (extreme(plain(sequences), axis=0).tolist() for extreme in (np.min, np.max))
    first, last = sequences["first"], sequences["last"]
    if (
        not 0 <= least[0] <= most[0] < routed
        or least[1] < 1
        or least[2] < -1
        or most[3] >= 2**62
        or least[4] < 0
        or (last < first).any()
        or ((first < 0) & (last >= 0)).any()
    ):
        raise ProtocolError("a blob has numbers of frames that do not exist")


def _outside(values: Int64s, count: int) -> bool:
    return bool(((values < 0) | (values >= count)).any())
