"""Routed tuples to frames: one frame for every routed partition whose workers have tuples.

A frame is cut into parts if it is large, or if a plan takes over or a micro-batch ends among its tuples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from evenflow import wire
from evenflow.aggregates import AggregatePlan
from evenflow.numeric.arrays import Int64s, Rows, UInt64s, no_rows, records
from evenflow.settings import Settings
from partitioner_service.routing.session import Session

Frames = list[tuple[int, bytes]]
"""(routed partition, frame), in the order in which they are to be written."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Stretch:
    """Tuples of a block that were routed together: under one plan, and in one micro-batch if there are
    any.
    """

    epoch: int
    """Epoch of the plan."""
    batch: int | None = None
    """Number of the micro-batch, as in `wire.FrameHeader`."""
    split: UInt64s | None = None
    """Hashes of the batch's split keys, as in `wire.FrameHeader`."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Shares:
    """The tuples of a block, sorted by routed partition, then by stretch, then by worker (`Sharing.ranks`).

    The tuples of routed partition p in stretch number i are share s = p * len(stretches) + i: rows bounds[s *
    places] to bounds[(s + 1) * places].
    """

    rows: pa.RecordBatch
    """The tuples, as frames hold them."""
    stretches: tuple[Stretch, ...]
    """The stretches of the block, at least one, with epochs that never fall."""
    bounds: Int64s
    """Where the rows of each worker of each share begin in `rows`, and where the last ones end, shape
    (partitions * stretches * places + 1,)."""
    places: int = 1
    """Most workers that share a partition."""

    @property
    def begins(self) -> Int64s:
        """Where each share begins in `rows`, and where the last one ends, shape (partitions * stretches +
        1,).
        """
        return self.bounds[:: self.places]

    def segments(self, share: int, begin: int, end: int) -> Int64s | None:
        """How many of the rows begin to end of this share belong to each of its workers, shape (places,).
        None if a partition has one worker.
        """
        if self.places == 1:
            return None
        first = share * self.places
        bounds = np.clip(self.bounds[first : first + self.places + 1], begin, end)
        return bounds[1:] - bounds[:-1]


class Framer:
    """Packs the frames of a block. The session numbers them in the order in which they are packed.

    A record has one header, so a partition's tuples of two stretches travel as two parts.
    """

    def __init__(self, settings: Settings, session: Session) -> None:
        self._session = session
        self._fingerprint = settings.fingerprint
        self.inputs = settings.input_partitions
        """How many input partitions there are, as the frames say."""
        self._routed = settings.routed_partitions
        self._places = settings.workers_per_partition
        self._most_bytes = settings.partitioner.frame_bytes
        self._schema = AggregatePlan.of(settings.query).frame_schema
        self._no_tuples = no_rows(self._schema)

    def pack(
        self,
        shares: Shares,
        offsets: Rows,
        marks: Rows,
        *,
        arrival_time: int | None = None,
        totals: Rows | None = None,
    ) -> Frames:
        """One frame for every routed partition that has tuples.

        The other partitions get an empty frame if there are marks to tell.

        offsets, marks, arrival_time, totals: as in `wire.FrameHeader`.
        """
        packers = _Packers(
            self, offsets, marks, arrival_time, records(0, wire.TOTAL) if totals is None else totals
        )
        number = self._session.next
        count, starts, small = len(shares.stretches), shares.begins.tolist(), self._small(shares)
        # A frame without tuples carries the epoch that is in force at the end of the block.
        last = shares.stretches[-1]
        last = last if last.batch is None else Stretch(epoch=last.epoch)
        empty = packers.packer(last).body(self._no_tuples) if len(marks) else None
        nobody = None if self._places == 1 else np.zeros(self._places, np.int64)
        packed: Frames = []
        for partition in range(self._routed):
            first = partition * count
            mine = [share for share in range(first, first + count) if starts[share] != starts[share + 1]]
            if len(mine) == 1 and small[mine[0]]:  # the usual case, without the cost of cutting
                begin, end = starts[mine[0]], starts[mine[0] + 1]
                frame = packers.packer(shares.stretches[mine[0] - first]).pack(
                    shares.rows.slice(begin, end - begin),
                    sequence=number(partition),
                    segments=shares.segments(mine[0], begin, end),
                )
                packed.append((partition, frame))
            elif mine:
                packed += ((partition, part) for part in self._parts(partition, shares, mine, packers))
            elif empty is not None:
                packed.append((partition, empty.sealed(sequence=number(partition), segments=nobody)))
        return packed

    def _parts(
        self, partition: int, shares: Shares, mine: Sequence[int], packers: _Packers
    ) -> Iterator[bytes]:
        """The parts of the frame of one partition. mine: its shares that have tuples.

        Only the last part may tell: a mark must not come before its tuples.
        """
        begins = shares.begins
        pieces = []
        for share in mine:
            begin, end = begins[share : share + 2].tolist()
            for piece in wire.cut(shares.rows.slice(begin, end - begin), self._most_bytes):
                segments = shares.segments(share, begin, begin + piece.num_rows)
                pieces.append((shares.stretches[share % len(shares.stretches)], piece, segments))
                begin += piece.num_rows
        for number, (stretch, piece, segments) in enumerate(pieces, start=1):
            packer = packers.packer(stretch, tells=number == len(pieces))
            sequence = self._session.next(partition)
            part, parts = number - 1, len(pieces)
            yield packer.pack(piece, sequence=sequence, part=part, parts=parts, segments=segments)

    def _small(self, shares: Shares) -> list[bool]:
        """For each share, whether its rows fit into one record."""
        filled = np.concatenate([[0], np.cumsum(wire.weights(shares.rows))])
        fits: list[bool] = (np.diff(filled[shares.begins]) <= self._most_bytes).tolist()
        return fits

    def packer(
        self, stretch: Stretch, offsets: Rows, marks: Rows, arrival_time: int | None, totals: Rows
    ) -> wire.FramePacker:
        """What packs frames with this header."""
        header = wire.FrameHeader(
            fingerprint=self._fingerprint,
            epoch=stretch.epoch,
            batch=stretch.batch,
            split=stretch.split,
            input_partitions=self.inputs,
            routed_partitions=self._routed,
            shared_by=self._places,
            offsets=offsets,
            marks=marks,
            arrival_time=arrival_time,
            session=self._session.number,
            totals=totals,
        )
        return wire.FramePacker(header, self._schema)


class _Packers:
    """The packers of a block. Each header is encoded once, when it is first needed."""

    def __init__(
        self, framer: Framer, offsets: Rows, marks: Rows, arrival_time: int | None, totals: Rows
    ) -> None:
        self._framer = framer
        self._arrival_time = arrival_time
        self._offsets = offsets
        self._marks = marks
        self._totals = totals
        self._packers: dict[tuple[Stretch, bool], wire.FramePacker] = {}

    def packer(self, stretch: Stretch, *, tells: bool = True) -> wire.FramePacker:
        """The packer of frames of this stretch, with or without marks and totals."""
        tells = tells and len(self._marks) > 0
        if (stretch, tells) not in self._packers:
            stop = None if tells else 0
            self._packers[stretch, tells] = self._framer.packer(
                stretch, self._offsets, self._marks[:stop], self._arrival_time, self._totals[:stop]
            )
        return self._packers[stretch, tells]
