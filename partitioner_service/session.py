"""A session: one run of a data plane, and the numbers of the frames that it writes.

The frames that a session writes to a routed partition are numbered from 0 without gaps. So whoever reads them notices
that one is gone (rule "a gap is noticed"). The frames of an aborted transaction never become visible, so their numbers are
used again.

A session has stints. A stint begins when input partitions are assigned and ends when they are given up. It begins with
a frame to every worker, which tells how many frames each session had written when the stint began. So the end of a
session is known, too. The transaction with these frames commits the state of every partition of the stint. From then
on no committed state names the session that had the partition before.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace

from evenflow.progress import PartitionState

_MOST = 2**63 - 1


class Session:
    """Numbers the frames of one run. `keep` follows a commit, `go_back` an aborted transaction.

    routed: number of routed partitions. number: random and above 0, given in tests only.
    """

    def __init__(self, routed: int, *, number: int | None = None) -> None:
        self.number = secrets.randbelow(_MOST) + 1 if number is None else number
        self._next = [0] * routed
        self._due = True
        self._kept = (self._next.copy(), self._due)

    def next(self, worker: int) -> int:
        """Number of the next frame for this worker."""
        number = self._next[worker]
        self._next[worker] = number + 1
        return number

    @property
    def total(self) -> int:
        """How many frames were numbered, those of the open transaction included."""
        return sum(self._next)

    def begin_stint(self) -> None:
        """Input partitions were assigned or given up: the next frames must begin a stint."""
        self._due = True
        self._kept = (self._kept[0], True)

    @property
    def stint_due(self) -> bool:
        """Whether the frames that begin the stint are still to be written."""
        return self._due

    def begun(self) -> None:
        """The frames that begin the stint were numbered."""
        self._due = False

    @property
    def begins_here(self) -> bool:
        """Whether the open transaction holds the frames that begin the stint."""
        return self._kept[1] and not self._due

    def keep(self) -> None:
        """The transaction was committed."""
        self._kept = (self._next.copy(), self._due)

    def go_back(self) -> None:
        """The transaction was aborted: its numbers are used again."""
        self._next, self._due = self._kept[0].copy(), self._kept[1]

    def signed(self, states: Mapping[int, PartitionState]) -> dict[int, PartitionState]:
        """These states as this session commits them now."""
        frames = self.total
        return {p: replace(state, session=self.number, frames=frames) for p, state in states.items()}


def totals(states: Mapping[int, PartitionState]) -> dict[int, int]:
    """How many frames each session has written, as far as these committed states of all input partitions say it."""
    found: dict[int, int] = {}
    for state in states.values():
        if state.session:
            found[state.session] = max(state.frames, found.get(state.session, 0))
    return found
