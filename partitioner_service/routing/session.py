"""A session: one run of a data plane, and the numbers of the frames that it writes.

The frames that a session writes to a routed partition are numbered from 0 without gaps. So whoever reads them
notices that one is gone (rule "a gap is noticed"). The frames of an aborted transaction never become visible,
so their numbers are used again.

A session has stints. A stint begins when input partitions are assigned and ends when they are given up. It
begins with a frame to every partition, which tells how many frames each session had written when the stint
began. So the end of a session is known, too. The transaction with these frames commits the state of every
partition of the stint. From then on no committed state names the session that had the partition before.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum

from evenflow.progress import PartitionState

_MOST = 2**63 - 1


class Stint(Enum):
    """Where the frames are that begin a stint."""

    DUE = "to be written"
    WRITTEN = "in the open transaction"
    COMMITTED = "visible"


class Session:
    """Numbers the frames of one run, and knows how far its stint is.
    The sink says how each transaction ended.

    routed: number of routed partitions.
    """

    def __init__(self, routed: int, *, number: int | None = None) -> None:
        self.number = secrets.randbelow(_MOST) + 1 if number is None else number
        """Number of the session, above 0. It is random, but for tests."""
        self.stint = Stint.DUE
        """Where the frames are that begin the present stint."""
        self._next = [0] * routed
        self._next_committed = [0] * routed

    def owe_stint(self) -> None:
        """Input partitions were assigned or given up: the frames that begin a stint are to be written."""
        self.stint = Stint.DUE

    def stint_written(self) -> None:
        """The frames that begin the stint stand in the open transaction."""
        self.stint = Stint.WRITTEN

    def next(self, partition: int) -> int:
        """Number of the next frame for this routed partition."""
        number = self._next[partition]
        self._next[partition] = number + 1
        return number

    @property
    def total(self) -> int:
        """How many frames were numbered, those of the open transaction included."""
        return sum(self._next)

    def committed(self) -> None:
        """The transaction was committed."""
        self._next_committed = self._next.copy()
        if self.stint is Stint.WRITTEN:
            self.stint = Stint.COMMITTED

    def aborted(self) -> None:
        """The transaction was aborted: its numbers are used again, and what began the stint is written
        again.
        """
        self._next = self._next_committed.copy()
        if self.stint is Stint.WRITTEN:
            self.stint = Stint.DUE

    def signed(self, states: Mapping[int, PartitionState]) -> dict[int, PartitionState]:
        """These states as this session commits them now."""
        frames = self.total
        return {p: replace(state, session=self.number, frames=frames) for p, state in states.items()}


def totals(states: Mapping[int, PartitionState]) -> dict[int, int]:
    """How many frames each session has written, as far as these committed states
    of all input partitions say it.
    """
    frames: dict[int, int] = {}
    for state in states.values():
        if state.session:
            # Partitions of one session were committed at different moments. The largest count is the newest.
            frames[state.session] = max(state.frames, frames.get(state.session, 0))
    return frames
