"""Input partitions that are added while a run goes on: whether, when and at which mark the query takes them
in.

It looks on at the coordinator of the group, at each commit of offsets.
"""

from __future__ import annotations

from evenflow.progress import PartitionState
from evenflow.settings import Query
from evenflow.windows import NO_MARK
from tests.faults.processes.world import World

SECONDS_TO_TAKE_IN = 15.0
"""Virtual seconds, after partitions were added and the last fault, within which a living query takes them
in.
"""


class Growth:
    """What is added and what is taken in.

    taken: partition that was taken in -> its first state. wrong: what must not be, in words.
    """

    def __init__(self, query: Query, world: World) -> None:
        self.taken: dict[int, PartitionState] = {}
        self.wrong: list[str] = []
        self._query = query
        self._world = world
        self._added: dict[int, float] = {}
        self._states: dict[int, PartitionState] = {}
        self._over: tuple[float, float] | None = None
        """When (s) the last partition of the query had ended, and the last fault before that."""

    def add(self, partition: int) -> None:
        """The input topic has got this partition."""
        self._added[partition] = self._world.now

    def committed(self, after: dict[int, PartitionState]) -> None:
        """These states were committed together."""
        new = {p: state for p, state in after.items() if p not in self._states} if self._states else {}
        self._states |= after
        others = [state.mark(self._query) for p, state in self._states.items() if p not in new]
        for partition, state in new.items():
            self.taken[partition] = state
            given = NO_MARK if state.idle_mark is None else state.idle_mark
            if given != min(others):
                self.wrong.append(
                    f"in[{partition}] was taken in with mark {given}, and the slowest of the others has"
                    f" {min(others)}"
                )
        ended = all(state.ended for state in self._states.values())
        if not ended:
            self._over = None
        elif self._over is None:
            self._over = self._world.now, self._world.last_fault

    def left_out(self) -> list[str]:
        """The added partitions that are not taken in although there was time to do so, in words."""
        if self._over is None:
            return []
        over, last_fault = self._over
        return [
            f"in[{partition}] was added at {added:.1f} s and is not taken in, although the last of the others"
            f" ended at {over:.1f} s"
            for partition, added in self._added.items()
            if partition not in self._states and over > max(added, last_fault) + SECONDS_TO_TAKE_IN
        ]

    def refused(self, who: str) -> list[str]:
        """What is wrong with an instance that ends because partitions were added too late, in words."""
        if self._over is None:
            return [f"{who} says that all partitions have ended, and one has not"]
        if self._added.keys() <= self._states.keys():
            return [f"{who} says that partitions were added too late, and all are taken in"]
        return self.left_out()
