"""Frames: the tuples of one block for one routed partition, and the marks that the block tells all of them.

A routed partition belongs to one worker, or to several that share it. Then a frame holds the tuples of each
of them, one after the other: its segments.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa

from evenflow.errors import ProtocolError
from evenflow.numeric.arrays import Int32s, Int64s, Rows, UInt64s, plain, records
from evenflow.text.strict_json import INT64, StrictObject
from evenflow.wire.envelope import (
    MOST_PARTITIONS,
    Body,
    Data,
    Packer,
    arrival_field,
    numbers,
    open_record,
    read_arrival_time,
    read_numbers,
    read_records,
)

_KIND = "frame"

OFFSETS = np.dtype([(name, np.int64) for name in ("partition", "first", "last")])
"""What a block has of input partition `partition`: offsets `first` to `last`."""
MARKS = np.dtype([(name, np.int64) for name in ("partition", "mark", "reached")])
"""What a frame tells of input partition `partition`: its `mark` in ms, and `reached`,
the next offset to read.
"""
TOTAL = np.dtype([(name, np.int64) for name in ("session", "frames")])
"""A session, and how many frames it has written so far, to all routed partitions together."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FrameHeader:
    """What all frames of one block have in common. A frame that tells goes to every routed partition.

    `came` serves latencies alone, `batch` and `split` serve the balance of the reducers alone.
    """

    fingerprint: str
    """Fingerprint of the query. A frame of another query is refused."""
    epoch: int
    """Epoch of the plan in force."""
    input_partitions: int
    """Partitions of the input topic, as the instance knew them."""
    routed_partitions: int
    """Partitions of the routed topic, to each of which a block may have a frame."""
    shared_by: int = 1
    """Most workers that share a routed partition. Worker w has partition w mod `routed_partitions`."""
    session: int
    """The run of a data plane that wrote the frame, a random number above 0."""
    offsets: Rows = field(default_factory=partial(records, 0, OFFSETS))
    """A record `OFFSETS` for each partition of the block, none if the frame only tells."""
    marks: Rows = field(default_factory=partial(records, 0, MARKS))
    """A record `MARKS` for each partition of the instance, none unless the frame tells."""
    arrival_time: int | None = None
    """Timestamp (ms) of the oldest among the first records of the block's partitions in the input topic,
    None if unknown."""
    totals: Rows = field(default_factory=partial(records, 0, TOTAL))
    """A record `TOTAL` for each session that may have written before, none unless the frame begins a stint.
    The total of the writing session counts this frame and its copies for the other partitions."""
    batch: int | None = None
    """Number of the micro-batch that holds the tuples, among those of the session. None if a partitioner
    routed them tuple by tuple."""
    split: UInt64s | None = None
    """Hashes of the keys that this batch has at several workers (Prompt's reference table, 001 section 2.4),
    ascending. None if the table is not known, or too large: then any key may be at several."""


MOST_SPLIT = 4_096
"""Keys of the largest table of split keys that a header holds."""


class FramePacker:
    """Makes frames under one header.

    If a frame is cut into parts, only its last part may tell: a mark closes panes, so all of their tuples
    must come first.
    """

    def __init__(self, header: FrameHeader, schema: pa.Schema) -> None:
        fields = {
            "fingerprint": header.fingerprint,
            "epoch": header.epoch,
            "input_partitions": header.input_partitions,
            "routed_partitions": header.routed_partitions,
            **({} if header.shared_by == 1 else {"shared_by": header.shared_by}),
            "offsets": numbers(header.offsets),
            "told": numbers(header.marks),
            "session": header.session,
            **({"totals": numbers(header.totals)} if len(header.totals) else {}),
            **({} if header.batch is None else {"batch": header.batch}),
            **({} if header.split is None else {"split": numbers(header.split.view(np.int64)[:, None])}),
            **arrival_field(header.arrival_time),
        }
        self._packer = Packer(schema, kind=_KIND, fields=fields)

    def body(self, batch: pa.RecordBatch) -> Body:
        """What the frames of these rows for several partitions have in common. `Body.sealed` makes each of
        them.
        """
        return self._packer.body(batch)

    def pack(
        self,
        batch: pa.RecordBatch,
        *,
        sequence: int,
        part: int = 0,
        parts: int = 1,
        segments: Int64s | None = None,
    ) -> bytes:
        """The frame of these rows, or part `part` of `parts` of it.

        sequence: number of the record among those of its session and routed partition, from 0 without gaps.
        segments: as in `Frame`, needed if workers share partitions.
        """
        return self._packer.pack(batch, part=part, parts=parts, sequence=sequence, segments=segments)


def encode_frame(
    batch: pa.RecordBatch, header: FrameHeader, *, sequence: int, segments: Int64s | None = None
) -> bytes:
    """A single frame that is not cut. sequence, segments: as in `FramePacker.pack`."""
    return FramePacker(header, batch.schema).pack(batch, sequence=sequence, segments=segments)


@dataclass(frozen=True, kw_only=True, eq=False)
class Frame:
    """A decoded frame."""

    header: FrameHeader
    """What all frames of the block have in common."""
    batch: pa.RecordBatch
    """The tuples of the frame, or of this part of it."""
    part: int
    """Which of the `parts` this is, from 0."""
    parts: int
    """Into how many parts the frame was cut, 1 if it was not."""
    sequence: int
    """Number of the record among those of its session and routed partition, from 0 without gaps."""
    segments: Int64s | None = None
    """How many of the rows belong to each worker of the routed partition, shape (`header.shared_by`,). The
    rows of a worker follow each other. Number i is that of worker routed partition + i * `routed_partitions`.
    None if a partition has one worker."""

    def workers(self, routed: int) -> dict[int, int]:
        """Rows by worker, for those that have any. routed: the number of the frame's partition."""
        if self.segments is None:
            return {routed: self.batch.num_rows} if self.batch.num_rows else {}
        step = self.header.routed_partitions
        return {routed + place * step: rows for place, rows in enumerate(self.segments.tolist()) if rows}

    def row_workers(self, routed: int) -> Int32s:
        """The worker of each row, shape (rows,). routed: as in `workers`."""
        counts = self.workers(routed)
        return np.repeat(np.array([*counts], np.int32), [*counts.values()])


def decode_frame(data: Data, *, fingerprint: str) -> Frame:
    """The frame in these bytes, which may be anything.

    Raises as `open_record` does, and ProtocolError for an impossible header.
    """
    header, batch, part, parts, sequence, segments = open_record(
        data, kind=_KIND, fingerprint=fingerprint, read=_header, shared_by=_segments
    )
    return Frame(header=header, batch=batch, part=part, parts=parts, sequence=sequence, segments=segments)


def _segments(header: FrameHeader) -> int:
    return 0 if header.shared_by == 1 else header.shared_by


def _header(fields: StrictObject) -> FrameHeader:
    inputs = fields.whole("input_partitions", 1, MOST_PARTITIONS)
    header = FrameHeader(
        fingerprint=fields.text("fingerprint", most=100),
        epoch=fields.whole("epoch", 0, 2**62),
        input_partitions=inputs,
        routed_partitions=fields.whole("routed_partitions", 1, MOST_PARTITIONS),
        shared_by=fields.whole("shared_by", 2, MOST_PARTITIONS) if "shared_by" in fields.fields else 1,
        offsets=read_records(fields, "offsets", OFFSETS, most=inputs),
        marks=read_records(fields, "told", MARKS, most=inputs),
        arrival_time=read_arrival_time(fields),
        session=fields.whole("session", 1, INT64[1]),
        # Every input partition was committed by one session at most, and the writing session is added.
        totals=read_records(fields, "totals", TOTAL, most=inputs + 1)
        if "totals" in fields.fields
        else records(0, TOTAL),
        batch=fields.whole("batch", 0, INT64[1]) if "batch" in fields.fields else None,
        split=_split(fields),
    )
    # The combiner indexes its arrays by these partitions, and a repeated index would hide one of two values.
    for name, rows in (("offsets", header.offsets), ("told", header.marks)):
        _check_partitions(name, rows["partition"], header.input_partitions)
    first, last = header.offsets["first"], header.offsets["last"]
    if (first < 0).any() or (last < first).any():
        raise ProtocolError(f"a frame cannot hold the offsets {plain(header.offsets).tolist()[:8]}")
    if len(header.totals) and int(header.totals.view(np.int64).min()) < 1:
        raise ProtocolError(f"a frame cannot tell the totals {plain(header.totals).tolist()[:8]}")
    return header


def _split(fields: StrictObject) -> UInt64s | None:
    if "split" not in fields.fields:
        return None
    return read_numbers(fields, "split", columns=1, most=MOST_SPLIT).reshape(-1).view(np.uint64)


def _check_partitions(name: str, partitions: Int64s, count: int) -> None:
    listed = partitions.tolist()  # a few numbers, for which numpy takes longer
    if listed and not 0 <= min(listed) <= max(listed) < count:
        strange = next(number for number in listed if not 0 <= number < count)
        raise ProtocolError(f"a frame's {name}: there is no input partition {strange} of {count}")
    if len(set(listed)) != len(listed):
        raise ProtocolError(f"a frame's {name} name an input partition twice")
