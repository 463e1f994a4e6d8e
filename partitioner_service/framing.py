"""Routed tuples to frames: one frame for every worker that has tuples.

A frame is cut into parts if it is large, or if a plan takes over among its tuples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from evenflow import wire
from evenflow.aggregates import AggregatePlan
from evenflow.arrays import Int64s, Rows, no_rows, records
from evenflow.homes import Announcements
from evenflow.settings import Settings
from partitioner_service.session import Session

Frames = list[tuple[int, bytes]]
"""(worker, frame), in the order in which they are to be written."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Shares:
    """The tuples of a block, sorted by worker and then by plan.

    epochs: the epochs of the plans that the block was routed with, ascending. The tuples of worker w under
    plan number i are cell c = w * len(epochs) + i: rows bounds[c] to bounds[c + 1].
    bounds has shape (workers * plans + 1,).

    workers: with forwarding, how many workers each plan has. announced: by plan, what the homes of keys must hear.
    """

    rows: pa.RecordBatch
    epochs: tuple[int, ...]
    bounds: Int64s
    workers: tuple[int, ...] = ()
    announced: tuple[Announcements, ...] = ()


class Framer:
    """Packs the frames of a block. The session numbers them in the order in which they are packed.

    inputs: how many input partitions there are, as the frames say.

    A record has one epoch, so a worker's tuples of two plans travel as two parts.
    """

    def __init__(self, settings: Settings, session: Session) -> None:
        self._session = session
        self._fingerprint = settings.fingerprint
        self.inputs = settings.input_partitions
        self._routed = settings.routed_partitions
        self._most_bytes = settings.partitioner.frame_bytes
        self._schema = AggregatePlan.of(settings.query).frame_schema
        self._no_tuples = no_rows(self._schema)

    def pack(
        self,
        shares: Shares,
        offsets: Rows,
        told: Rows,
        *,
        came: int | None = None,
        totals: Rows | None = None,
    ) -> Frames:
        """One frame for every worker that has tuples.

        The other workers get an empty frame if there are marks to tell.

        offsets, told, came, totals: as in `wire.FrameHeader`.
        """
        among = dict(zip(shares.epochs, shares.workers, strict=True)) if shares.workers else {}
        packers = _Packers(
            self, offsets, told, came, records(0, wire.TOTAL) if totals is None else totals, among
        )
        number = self._session.next
        plans, starts, small = len(shares.epochs), shares.bounds.tolist(), self._small(shares)
        # A frame without tuples carries the epoch that is in force at the end of the block.
        empty = packers.of(shares.epochs[-1]).body(self._no_tuples) if len(told) else None
        # Announcements come before the tuples: a mark behind these may close their pane.
        packed: Frames = list(self._announcements(shares, packers))
        for worker in range(self._routed):
            first = worker * plans
            cells = [cell for cell in range(first, first + plans) if starts[cell] != starts[cell + 1]]
            last = not shares.workers or not len(told) or cells[-1:] == [first + plans - 1]
            if len(cells) == 1 and small[cells[0]] and last:  # the usual case, without the cost of cutting
                packer = packers.of(shares.epochs[cells[0] - first])
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
            (shares.epochs[cell % len(shares.epochs)], piece)
            for cell in cells
            for piece in wire.cut(_rows(shares, cell), self._most_bytes)
        ]
        # With forwarding, whoever tells names the plan in force at the end of the block.
        if shares.workers and packers.telling and pieces[-1][0] != shares.epochs[-1]:
            pieces.append((shares.epochs[-1], self._no_tuples))
        for number, (epoch, piece) in enumerate(pieces, start=1):
            packer = packers.of(epoch, tells=number == len(pieces))
            sequence = self._session.next(worker)
            yield packer.pack(piece, sequence=sequence, part=number - 1, parts=len(pieces))

    def _announcements(self, shares: Shares, packers: _Packers) -> Iterator[tuple[int, bytes]]:
        for epoch, said in zip(shares.epochs, shares.announced, strict=False):
            rows = pa.record_batch([said.panes, said.hashes], schema=wire.ANNOUNCED)
            homes, starts = np.unique(said.homes, return_index=True)
            for home, (start, stop) in zip(
                homes.tolist(), pairwise([*starts.tolist(), len(said.homes)]), strict=True
            ):
                for piece in wire.cut(rows.slice(start, stop - start), self._most_bytes):
                    yield home, packers.announcing(epoch).pack(piece, sequence=self._session.next(home))

    def _small(self, shares: Shares) -> list[bool]:
        """For each cell, whether its rows fit into one record."""
        filled = np.concatenate([[0], np.cumsum(wire.weights(shares.rows))])
        fits: list[bool] = (np.diff(filled[shares.bounds]) <= self._most_bytes).tolist()
        return fits

    def packer(self, epoch: int, schema: pa.Schema | None = None, **fields: Any) -> wire.FramePacker:
        """What packs frames with this header. schema: of the rows, None for tuples. fields: the rest of the header."""
        header = wire.FrameHeader(
            fingerprint=self._fingerprint,
            epoch=epoch,
            input_partitions=self.inputs,
            routed_partitions=self._routed,
            session=self._session.number,
            **fields,
        )
        return wire.FramePacker(header, self._schema if schema is None else schema)


class _Packers:
    """The packers of a block. Each header is encoded once, when it is first needed."""

    def __init__(
        self,
        framer: Framer,
        offsets: Rows,
        told: Rows,
        came: int | None,
        totals: Rows,
        workers: Mapping[int, int],
    ) -> None:
        self._framer = framer
        self._came = came
        self._offsets = offsets
        self._told = told
        self._totals = totals
        self._workers = workers
        self._made: dict[tuple[int, bool], wire.FramePacker] = {}

    def of(self, epoch: int, *, tells: bool = True) -> wire.FramePacker:
        """The packer of frames under the plan of this epoch, with or without marks and totals."""
        tells = tells and len(self._told) > 0
        if (epoch, tells) not in self._made:
            stop = None if tells else 0
            self._made[epoch, tells] = self._framer.packer(
                epoch,
                offsets=self._offsets,
                told=self._told[:stop],
                came=self._came,
                totals=self._totals[:stop],
                workers=self._workers.get(epoch, 0),
            )
        return self._made[epoch, tells]

    @property
    def telling(self) -> bool:
        """Whether there are marks to tell."""
        return len(self._told) > 0

    def announcing(self, epoch: int) -> wire.FramePacker:
        """The packer of announcements under the plan of this epoch."""
        return self._framer.packer(epoch, wire.ANNOUNCED, workers=self._workers[epoch], announces=True)


def _rows(shares: Shares, cell: int) -> pa.RecordBatch:
    start, stop = shares.bounds[cell : cell + 2].tolist()
    return shares.rows.slice(start, stop - start)
