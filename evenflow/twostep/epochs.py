"""Which plans the tuples of a window may have been routed by, as far as one routed partition has heard.

Each lane follows one plan after the other, and every frame that tells names the plan in force. An instance tells every
worker in the transaction that routes the first tuple by another plan than it told last. Otherwise the plan could be gone
unheard, because the next owner of the input partition may follow the older plan still.

So if two frames that tell follow each other and name one plan, all tuples between them were routed by it. If they name two
plans, the tuples between them were routed by these, or by plans between these. None of these tuples lies in a pane that the
first frame has closed, and none behind the pane of the lane's newest tuple at the second frame. All panes from the former
to the latter count as panes of both plans.

What is kept is one stretch of panes for each plan, over all lanes. It is never too short. So windows near a change of plan
may count as mixed even if they are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from evenflow.arrays import Int64s
from evenflow.errors import ProtocolError
from evenflow.twostep.lanes import grown
from evenflow.windows import END_MARK, NO_MARK, panes_closed_by
from evenflow.wire.frame import Frame

_UNHEARD = -1
"""Stands for the epoch of a lane that no frame has told of."""


@dataclass
class _Stretch:
    """The panes `first` to `last` may have tuples by a plan of so many workers. `last` counts lanes that left the plan."""

    workers: int
    first: int
    last: int


class Epochs:
    """The plans of one routed partition's lanes.

    slide: ms. delay: how far (ms) the mark of an input partition may be behind its newest tuple.
    """

    def __init__(self, saved: Int64s | None, *, slide: int, delay: int) -> None:
        """saved: what `saved` returned, None for nothing."""
        self._slide = slide
        self._delay = delay
        self.marks = np.empty(0, np.int64)
        """Largest mark (ms) told of each input partition, shape (input partitions,)."""
        self._lanes = np.empty(0, np.int64)
        self._stretches: dict[int, _Stretch] = {}
        if saved is not None:
            inputs = int(saved[0])
            self.marks, self._lanes = saved[1 : 1 + inputs].copy(), saved[1 + inputs : 1 + 2 * inputs].copy()
            for epoch, *stretch in saved[1 + 2 * inputs :].reshape(-1, 4).tolist():
                self._stretches[epoch] = _Stretch(*stretch)

    def add(self, frame: Frame, where: str) -> None:
        """Take in the next frame of the routed partition.

        where: names the frame in messages. Raises ProtocolError for a frame that does not name a plan's workers, and for
        tuples by a plan that no frame has told.
        """
        header = frame.header
        if not header.workers:
            raise ProtocolError(f"{where}: a frame does not say how many workers its plan has")
        more = max(0, header.input_partitions - len(self.marks))
        if more:
            self.marks = grown(self.marks, header.input_partitions, NO_MARK)
            self._lanes = grown(self._lanes, header.input_partitions, _UNHEARD)
        for partition, mark, _ in header.told.tolist():
            self._hears(partition, mark, header.epoch, header.workers)
        # Only the last part of a frame tells, so parts before it may be of a plan that is told with the last part.
        if len(header.offsets) and frame.part == frame.parts - 1:
            partitions = header.offsets["partition"]
            if (self._lanes[partitions] != header.epoch).any():
                raise ProtocolError(
                    f"{where}: tuples were routed by plan {header.epoch}, which no frame has told"
                )

    def only(self, first: int, last: int) -> bool:
        """Whether all tuples of the panes `first` to `last` were routed by one plan. The panes must be closed."""
        there = 0
        for epoch, stretch in self._stretches.items():
            end = END_MARK if self._in_use(epoch) else stretch.last
            there += stretch.first <= last and end >= first
        return there == 1

    def forget(self, before: int) -> None:
        """Forget plans whose tuples all lie in panes below `before`."""
        for epoch, stretch in list(self._stretches.items()):
            if stretch.last < before and not self._in_use(epoch):
                del self._stretches[epoch]

    def saved(self) -> Int64s:
        """All of it as one array."""
        return np.concatenate(
            [[len(self.marks)], self.marks, self._lanes, *self._rows()], dtype=np.int64, casting="unsafe"
        )

    def _rows(self) -> Iterator[list[int]]:
        for epoch, stretch in sorted(self._stretches.items()):
            yield [epoch, stretch.workers, stretch.first, stretch.last]

    def _in_use(self, epoch: int) -> bool:
        return bool((self._lanes == epoch).any())

    def _hears(self, partition: int, mark: int, epoch: int, workers: int) -> None:
        before, known = int(self.marks[partition]), int(self._lanes[partition])
        if known != epoch:
            first = int(panes_closed_by(before, self._slide))
            # A mark is at most `delay` behind the newest tuple, so no tuple by the old plan lies behind this pane.
            if known != _UNHEARD:
                old = self._stretches[known]
                old.last = max(old.last, (mark + self._delay) // self._slide)
            new = self._stretches.setdefault(epoch, _Stretch(workers, first, NO_MARK))
            new.first = min(new.first, first)
            self._lanes[partition] = epoch
        self.marks[partition] = max(before, mark)
