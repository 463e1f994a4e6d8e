"""Lanes: what the frames of one routed partition say of each input partition.

A lane is a pair (input partition, routed partition). Two things are read off it: its mark, and up to which
input offset it has been read. Input offsets of a lane only grow. Where they do not, input was routed twice,
whatever the cause, and results would count it twice: that stops the job (pipeline rule 14).
"""

from __future__ import annotations

import numpy as np

from evenflow.arrays import Int64s
from evenflow.errors import IncompatibleStateError, ProtocolError
from evenflow.twostep.layout import Layout
from evenflow.windows import NO_MARK
from evenflow.wire.frame import Frame

UNREAD = -1


def routed_twice(routed: int, partition: int, offset: int, reached: int) -> ProtocolError:
    """The error that says so."""
    return ProtocolError(
        f"offset {offset} of input partition {partition} came to routed partition {routed}, but that lane had been "
        f"read up to offset {reached - 1} before: the input was routed twice",
        hint="no result from here on could be right: find who wrote to the consumer group or to the routed topic "
        "besides the partitioners, then give the query a new name (docs/operations.md, rebuild)",
    )


class RoutedLanes:
    """The lanes of one routed partition, over a range of its frames in ascending offsets.

    marks: largest mark (ms) told of each input partition, NO_MARK for none. first, reached: first input offset
    of the range and the next to be read after it, UNREAD for none. All have shape (input partitions,).
    """

    def __init__(self, layout: Layout, routed: int) -> None:
        self._layout = layout
        self._routed = routed
        self.marks = np.full(layout.input_partitions, NO_MARK, np.int64)
        self.first = np.full(layout.input_partitions, UNREAD, np.int64)
        self.reached = np.full(layout.input_partitions, UNREAD, np.int64)
        self._open: dict[bytes, tuple[int, int]] = {}

    def add(self, frame: Frame, offset: int) -> None:
        """Take in the next frame.

        Raises ProtocolError for input that was routed twice and for parts that do not follow each other,
        IncompatibleStateError for a frame of another number of partitions.
        """
        self._check_layout(frame, offset)
        header = frame.header
        if len(header.offsets):
            partitions, first, last = header.offsets.T
            if self._begins(frame, offset):
                self._read(partitions, first, last + 1)
            else:
                # A further part of a frame covers the same offsets, which must not count as read twice.
                self.reached[partitions] = np.maximum(self.reached[partitions], last + 1)
        if len(header.told):
            partitions, marks, position = header.told.T
            self._read(partitions, position, position)
            self.marks[partitions] = np.maximum(self.marks[partitions], marks)

    def rows(self) -> Int64s:
        """(routed partition, input partition, first, reached) of each input partition seen. Shape (n, 4)."""
        seen = np.flatnonzero(self.reached != UNREAD)
        return np.stack(
            [np.full(len(seen), self._routed), seen, self.first[seen], self.reached[seen]], axis=1
        ).astype(np.int64, copy=False)

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
        """Whether this is the first part of a block's frame. Raises unless each part follows the one before it.

        Parts of other blocks may lie between: the transactions of several instances interleave. The first parts of
        a frame may have been read in an earlier micro-batch. Then nothing else of its lanes was read in this one.
        """
        block = frame.header.offsets.tobytes()
        before = self._open.pop(block, None)
        if frame.part + 1 < frame.parts:
            self._open[block] = (frame.part, frame.parts)
        if frame.part == 0 and before is None:
            return True
        # What an earlier micro-batch read is not known here. The reducer holds it against what it has merged.
        began_earlier = before is None and (self.reached[frame.header.offsets[:, 0]] == UNREAD).all()
        if frame.part and (began_earlier or before == (frame.part - 1, frame.parts)):
            return False
        raise ProtocolError(
            f"routed partition {self._routed}, offset {offset}: part {frame.part} of {frame.parts} of a frame does not "
            "follow the part before it: the input was routed twice, or a part is missing",
            hint="rebuild the query under a new name (docs/operations.md)",
        )

    def _check_layout(self, frame: Frame, offset: int) -> None:
        inputs, routed = frame.header.input_partitions, frame.header.routed_partitions
        ours = (self._layout.input_partitions, self._layout.routed_partitions)
        if (inputs, routed) != ours:
            raise IncompatibleStateError(
                f"routed partition {self._routed}, offset {offset}: the frame is of {inputs} input and {routed} routed "
                f"partitions, but this query has {ours[0]} and {ours[1]}",
                hint="the number of partitions is fixed for the life of a query: give the query a new name",
            )
