"""Routed tuples to frames: one frame for every worker that has tuples.

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
"""(worker, frame), in the order in which they are to be written."""


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
    """The tuples of a block, sorted by worker and then by stretch.

    The tuples of worker w in stretch number i are cell c = w * len(stretches) + i: rows bounds[c] to bounds[c
    + 1].
    """

    rows: pa.RecordBatch
    """The tuples, as frames hold them."""
    stretches: tuple[Stretch, ...]
    """The stretches of the block, at least one, with epochs that never fall."""
    bounds: Int64s
    """Where each cell begins in `rows`, and where the last one ends, shape (workers * stretches + 1,)."""


class Framer:
    """Packs the frames of a block. The session numbers them in the order in which they are packed.

    A record has one header, so a worker's tuples of two stretches travel as two parts.
    """

    def __init__(self, settings: Settings, session: Session) -> None:
        self._session = session
        self._fingerprint = settings.fingerprint
        self.inputs = settings.input_partitions
        """How many input partitions there are, as the frames say."""
        self._routed = settings.routed_partitions
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
        """One frame for every worker that has tuples.

        The other workers get an empty frame if there are marks to tell.

        offsets, totals: as in `wire.FrameHeader`. marks, arrival_time: its fields `told` and `came`.
        """
        packers = _Packers(
            self, offsets, marks, arrival_time, records(0, wire.TOTAL) if totals is None else totals
        )
        number = self._session.next
        count, starts, small = len(shares.stretches), shares.bounds.tolist(), self._small(shares)
        # A frame without tuples carries the epoch that is in force at the end of the block.
        last = shares.stretches[-1]
        last = last if last.batch is None else Stretch(epoch=last.epoch)
        empty = packers.packer(last).body(self._no_tuples) if len(marks) else None
        packed: Frames = []
        for worker in range(self._routed):
            first = worker * count
            cells = [cell for cell in range(first, first + count) if starts[cell] != starts[cell + 1]]
            if len(cells) == 1 and small[cells[0]]:  # the usual case, without the cost of cutting
                packer = packers.packer(shares.stretches[cells[0] - first])
                packed.append((worker, packer.pack(_rows(shares, cells[0]), sequence=number(worker))))
            elif cells:
                packed += ((worker, part) for part in self._parts(worker, shares, cells, packers))
            elif empty is not None:
                packed.append((worker, empty.sealed(sequence=number(worker))))
        return packed

    def _parts(self, worker: int, shares: Shares, cells: Sequence[int], packers: _Packers) -> Iterator[bytes]:
        """The parts of one worker's frame.

        Only the last part may tell: a mark must not come before its tuples.
        """
        pieces = [
            (shares.stretches[cell % len(shares.stretches)], piece)
            for cell in cells
            for piece in wire.cut(_rows(shares, cell), self._most_bytes)
        ]
        for number, (stretch, piece) in enumerate(pieces, start=1):
            packer = packers.packer(stretch, tells=number == len(pieces))
            sequence = self._session.next(worker)
            yield packer.pack(piece, sequence=sequence, part=number - 1, parts=len(pieces))

    def _small(self, shares: Shares) -> list[bool]:
        """For each cell, whether its rows fit into one record."""
        filled = np.concatenate([[0], np.cumsum(wire.weights(shares.rows))])
        fits: list[bool] = (np.diff(filled[shares.bounds]) <= self._most_bytes).tolist()
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
            offsets=offsets,
            told=marks,
            came=arrival_time,
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


def _rows(shares: Shares, cell: int) -> pa.RecordBatch:
    start, stop = shares.bounds[cell : cell + 2].tolist()
    return shares.rows.slice(start, stop - start)
