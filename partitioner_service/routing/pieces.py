"""What a block is on its way through routing: judged pieces, their accepted tuples, where these go,
what comes out.

`router` makes these values. `gate` and `batches` hold them, and `plane` and `reports` read what comes out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from evenflow.numeric.arrays import Bools, Float64s, Int32s, Int64s, UInt64s
from evenflow.partitioners.costs import TupleCosts
from evenflow.progress import PartitionState
from partitioner_service.block import Rejections, Slice
from partitioner_service.reading.costs import only
from partitioner_service.routing.framing import Stretch
from partitioner_service.routing.window_loads import PaneLoads

_NO_ROWS = np.empty(0, np.int64)


@dataclass(frozen=True)
class AcceptedTuples:
    """Tuples that are in time."""

    keys: pa.BinaryArray
    """The key of each tuple."""
    times: Int64s
    """Event time of each tuple (ms), shape (tuples,)."""
    values: pa.RecordBatch
    """The aggregated columns. Without columns for a query that only counts."""
    costs: Float64s | None = None
    """What each tuple costs, as of `ParsedBlock`, shape (tuples,). None if each costs 1."""

    @property
    def nbytes(self) -> int:
        """Bytes that the tuples take."""
        costs = 0 if self.costs is None else self.costs.nbytes
        return int(self.keys.nbytes + self.times.nbytes + self.values.nbytes + costs)

    @classmethod
    def together(cls, parts: Sequence[AcceptedTuples]) -> AcceptedTuples:
        """The tuples of all parts, one part after the other."""
        if len(parts) == 1:
            return parts[0]
        values = parts[0].values
        # A query that only counts has no value columns. There is nothing to concatenate or to filter then.
        if values.num_columns:
            values = pa.Table.from_batches([part.values for part in parts]).combine_chunks().to_batches()[0]
        times = np.concatenate([part.times for part in parts])
        costs = [part.costs for part in parts if part.costs is not None]
        keys = pa.concat_arrays([part.keys for part in parts])
        return cls(keys, times, values, np.concatenate(costs) if costs else None)

    def only(self, keep: Bools) -> AcceptedTuples:
        """The tuples for which `keep` is true. keep: shape (tuples,)."""
        mask = pa.array(keep)
        values = self.values.filter(mask) if self.values.num_columns else self.values
        return AcceptedTuples(self.keys.filter(mask), self.times[keep], values, only(self.costs, keep))


class EventTimeAdvance(NamedTuple):
    """The accepted records of a slice, and how they move event time on."""

    rows: Int64s
    """Their positions in the slice, shape (records,)."""
    times: Int64s
    """Their event times (ms), shape (records,)."""


@dataclass(frozen=True, eq=False)
class Destinations:
    """Where tuples go."""

    tuples: AcceptedTuples
    """The accepted tuples, in the order in which they are routed."""
    hashes: UInt64s
    """Hash of each tuple's key, shape (tuples,)."""
    cells: Int32s
    """worker * stretches + number of the stretch, for each tuple, shape (tuples,)."""
    stretches: tuple[Stretch, ...]
    """The stretches, at least one."""
    costs: TupleCosts | None = None
    """What the tuples cost. None if each costs 1."""

    @property
    def workers(self) -> Int32s:
        """The worker of each tuple."""
        count = len(self.stretches)
        return self.cells if count == 1 else self.cells // np.int32(count)


@dataclass(frozen=True, eq=False)
class Piece:
    """Records of one slice that are judged and not routed yet."""

    slice: Slice
    """The slice that the records are part of."""
    before: PartitionState
    """State of the partition before these records."""
    after: PartitionState
    """State of the partition after these records."""
    tuples: AcceptedTuples | None
    """The tuples to route. None if there are none."""
    rejections: list[Rejections]
    """The records that are rejected, by reason."""
    interval: int | None = None
    """Number of the interval of event time that the partition had reached with the first of its accepted
    records. None without one.
    """

    def lighter(self) -> Piece:
        """The same piece without the records that are not needed any more: of its records,
        only those rejected stay.
        """
        positions = np.unique(np.concatenate([_NO_ROWS, *(group.positions for group in self.rejections)]))
        records = [self.slice.records[position] for position in positions.tolist()]
        rejections = [
            replace(group, positions=np.searchsorted(positions, group.positions)) for group in self.rejections
        ]
        light = replace(self.slice, values=(), keys=None, timestamps=None, markers={}, records=records)
        return replace(self, slice=light, rejections=rejections)

    @property
    def partition(self) -> int:
        """The input partition."""
        return self.slice.partition

    @property
    def offsets(self) -> tuple[int, int, int]:
        """The partition, and its first and last offset, as in `wire.OFFSETS`."""
        return self.slice.partition, self.slice.first, self.slice.last


@dataclass(frozen=True, eq=False)
class RoutedTuples:
    """The tuples of a block, with their workers."""

    keys: pa.BinaryArray
    """The key of each tuple."""
    hashes: UInt64s
    """Hash of each tuple's key, shape (tuples,)."""
    workers: Int32s
    """The worker of each tuple, shape (tuples,)."""
    counts: Int64s
    """Number of tuples by worker, shape (workers,)."""
    loads: Int64s
    """Sum of the costs of the tuples by worker, shape (workers,). `counts` if each tuple costs
    1.
    """
    by_pane: PaneLoads
    """The loads by pane."""
    costs: TupleCosts | None = None
    """What the tuples cost. None if each costs 1."""


@dataclass(frozen=True)
class RoutedBlock:
    """What a block became."""

    frames: list[tuple[int, bytes]]
    """(routed partition, frame) pairs."""
    pieces: Sequence[Piece]
    """The block's pieces."""
    states: dict[int, PartitionState]
    """State of each partition afterwards."""
    sent: RoutedTuples
    """The tuples."""

    @property
    def rejections(self) -> list[Rejections]:
        """What was rejected, piece by piece."""
        return [group for piece in self.pieces for group in piece.rejections]

    @property
    def read(self) -> int:
        """Number of records. Markers do not count."""
        return sum(piece.after.read - piece.before.read for piece in self.pieces)

    @property
    def filtered(self) -> int:
        """Number of records that were accepted but have no tuple to aggregate."""
        return sum(piece.after.filtered - piece.before.filtered for piece in self.pieces)

    @property
    def tuples(self) -> int:
        """Number of tuples that were routed."""
        return len(self.sent.hashes)
