"""Lanes: what the frames of one routed partition say of each input partition.

A lane is a pair (input partition, routed partition). It has a mark, and an input offset up to which it has
been read. The input offsets of a lane only grow. If an offset falls, input was routed twice, whatever the
cause. Results would count this input twice, so the job stops with an error (rule "the beginning is locked
before it is read").
"""

from __future__ import annotations

import numpy as np

from evenflow.errors import IncompatibleStateError, ProtocolError
from evenflow.numeric.arrays import Int64s, Rows, records
from evenflow.twostep.layout import Layout
from evenflow.windows import NO_MARK
from evenflow.wire.blob import LANE
from evenflow.wire.frame import Frame

UNREAD = -1
"""Stands for an input offset of a lane that has not been read."""


def routed_twice(routed: int, partition: int, offset: int, reached: int) -> ProtocolError:
    """The error for input that was routed twice.
    reached: the input offset that the lane was to be read from next.
    """
    return ProtocolError(
        f"offset {offset} of input partition {partition} came to routed partition {routed}, but that lane had"
        f" been read up to offset {reached - 1} before: the input was routed twice",
        hint=(
            "no result from here on could be right: find who wrote to the consumer group or to the routed"
            " topic besides the partitioners, then give the query a new name"
            " (docs/operations/data-loss.md, rebuild)"
        ),
    )


def grown(lanes: Int64s, inputs: int, value: int) -> Int64s:
    """Lanes of at least so many input partitions, where new ones have this value. Shape (..., inputs).

    Lanes that are as many already are returned as they are, without a copy.
    """
    known = lanes.shape[-1]
    if known >= inputs:
        return lanes
    more = np.full((*lanes.shape[:-1], inputs), value, np.int64)  # `np.pad` takes twenty times as long
    more[..., :known] = lanes
    return more


class RoutedLanes:
    """The lanes of one routed partition, over a range of its frames in ascending offsets.

    marks: largest mark (ms) told of each input partition, or NO_MARK. first: first input offset that the
    range has of each input partition, or UNREAD. reached: next input offset after the range, or UNREAD. All
    have shape (input partitions,), with as many as the frames say: partitions may be added.
    """

    def __init__(self, layout: Layout, routed: int) -> None:
        self._layout = layout
        self._routed = routed
        self.marks = np.empty(0, np.int64)
        self.first = np.empty(0, np.int64)
        self.reached = np.empty(0, np.int64)
        self._open: dict[bytes, tuple[int, int]] = {}

    def add(self, frame: Frame, offset: int) -> None:
        """Take in the next frame.

        Raises ProtocolError for input that was routed twice, and for parts that do not follow each other.
        Raises IncompatibleStateError for a frame with another number of partitions.
        """
        self._check_layout(frame, offset)
        header = frame.header
        if header.input_partitions > len(self.marks):
            self.marks = grown(self.marks, header.input_partitions, NO_MARK)
            self.first, self.reached = (
                grown(lanes, header.input_partitions, UNREAD) for lanes in (self.first, self.reached)
            )
        if len(header.offsets):
            partitions, reached = header.offsets["partition"], header.offsets["last"] + 1
            if self._begins(frame, offset):
                self._read(partitions, header.offsets["first"], reached)
            else:
                # A further part of a frame covers the same offsets, which must not count as read twice.
                self.reached[partitions] = np.maximum(self.reached[partitions], reached)
        if len(header.marks):
            partitions, reached = header.marks["partition"], header.marks["reached"]
            # The instance has read the partition so far, even if this frame has no tuple of the partition.
            self._read(partitions, reached, reached)
            self.marks[partitions] = np.maximum(self.marks[partitions], header.marks["mark"])

    def rows(self) -> Rows:
        """A record `LANE` for each input partition seen."""
        partitions = np.flatnonzero(self.reached != UNREAD)
        lanes = records(len(partitions), LANE)
        lanes["routed"] = self._routed
        lanes["partition"] = partitions
        lanes["first"] = self.first[partitions]
        lanes["reached"] = self.reached[partitions]
        return lanes

    def _read(self, partitions: Int64s, first: Int64s, reached: Int64s) -> None:
        known = self.reached[partitions]
        back = np.flatnonzero(first < known)
        if len(back):
            raise routed_twice(
                self._routed, int(partitions[back[0]]), int(first[back[0]]), int(known[back[0]])
            )
        new = partitions[self.first[partitions] == UNREAD]
        if len(new):
            self.first[new] = first[self.first[partitions] == UNREAD]
        self.reached[partitions] = reached

    def _begins(self, frame: Frame, offset: int) -> bool:
        """Whether this is the first part of a frame.
        Raises ProtocolError unless each part follows the part before it.

        Parts of other frames may lie between, because the transactions of several instances interleave. The
        first parts of a frame may have been read in an earlier micro-batch. Then this micro-batch has read
        nothing else of the frame's lanes.
        """
        block = frame.header.offsets.tobytes()  # names the block: input offsets only grow
        before = self._open.pop(block, None)
        if frame.part + 1 < frame.parts:
            self._open[block] = (frame.part, frame.parts)
        if frame.part == 0 and before is None:
            return True
        # Nothing here remembers what an earlier micro-batch read. The reducer compares that with what it has
        # merged.
        began_earlier = before is None and (self.reached[frame.header.offsets["partition"]] == UNREAD).all()
        if frame.part and (began_earlier or before == (frame.part - 1, frame.parts)):
            return False
        raise ProtocolError(
            f"routed partition {self._routed}, offset {offset}: part {frame.part} of {frame.parts} of a frame"
            " does not follow the part before it: the input was routed twice, or a part is missing",
            hint="rebuild the query under a new name (docs/operations/data-loss.md)",
        )

    def _check_layout(self, frame: Frame, offset: int) -> None:
        routed, ours = frame.header.routed_partitions, self._layout.routed_partitions
        if routed != ours:
            raise IncompatibleStateError(
                f"routed partition {self._routed}, offset {offset}: the frame is of {routed} routed"
                f" partitions, but this query has {ours}",
                hint="the number of partitions is fixed for the life of a query: give the query a new name",
            )
        shared, most = frame.header.shared_by, self._layout.shared_by
        if shared != most:
            raise IncompatibleStateError(
                f"routed partition {self._routed}, offset {offset}: the frame is of {shared} workers that"
                f" share a partition, but in this query {most} do",
                hint="partitioner.max_workers is fixed for the life of a query: give the query a new name",
            )
