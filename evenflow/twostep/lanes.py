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
        self._before: Frame | None = None

    def add(self, frame: Frame, offset: int) -> None:
        """Take in the next frame.

        Raises ProtocolError for input that was routed twice and for parts that do not follow each other,
        IncompatibleStateError for a frame of another number of partitions.
        """
        self._check_layout(frame, offset)
        header = frame.header
        if len(header.offsets):
            partitions, first, last = header.offsets.T
            if frame.part == 0:
                self._read(partitions, first, last + 1)
            else:
                self._check_follows(frame, offset)
                self.reached[partitions] = last + 1
        if len(header.told):
            partitions, marks, position = header.told.T
            self._read(partitions, position, position)
            self.marks[partitions] = np.maximum(self.marks[partitions], marks)
        self._before = frame

    def rows(self) -> Int64s:
        """(routed partition, input partition, first, reached) of each input partition seen; shape (n, 4)."""
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

    def _check_follows(self, frame: Frame, offset: int) -> None:
        before = self._before
        if before is None:
            return  # the parts before this one were read in an earlier micro-batch
        same = np.array_equal(before.header.offsets, frame.header.offsets)
        if not same or before.part + 1 != frame.part or before.parts != frame.parts:
            raise ProtocolError(
                f"routed partition {self._routed}, offset {offset}: part {frame.part} of {frame.parts} of a frame does "
                "not follow the part before it"
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
