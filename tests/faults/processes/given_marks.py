"""Marks that partitions are given while they are idle: nobody follows the clock of one partition alone.

It looks on at each commit of offsets.
"""

from __future__ import annotations

from evenflow.progress import PartitionState
from tests.faults.processes.world import World
from tests.faults.schedules.schedule import BASE, FUTURE

_SECONDS_TO_HEAR = 10.0
"""Virtual seconds, after a commit and the last fault, within which every instance knows what was
committed.
"""


class GivenMarks:
    """Compares each mark that a partition was given with the event times that are not far ahead.

    A tuple from far ahead moves its own partition alone. There is one exception: as long as the whole input
    has no other tuple, a partition without a tuple and without a mark stands where that tuple is.

    honest: the largest event time (ms) that is not far ahead. astray: partitions that have followed one tuple
    by this exception, or that were taken in when no partition stood behind it. wrong: what must not be, in
    words.
    """

    def __init__(self, honest: int, world: World) -> None:
        self.honest = honest
        self.astray: set[int] = set()
        self.wrong: list[str] = []
        self._world = world
        self._states: dict[int, PartitionState] = {}
        self._honest_since: dict[int, float] = {}

    def committed(self, after: dict[int, PartitionState]) -> None:
        """These states were committed together."""
        before = dict(self._states)
        self._states |= after
        for partition, state in after.items():
            if state.first_time is not None and state.first_time < BASE + FUTURE:
                self._honest_since.setdefault(partition, self._world.now)
            own = self.honest if state.max_time is None else max(self.honest, state.max_time)
            if state.idle_mark is None or state.idle_mark <= own or partition in self.astray:
                continue
            self.astray.add(partition)
            was = before.get(partition)
            if was is None:
                continue  # it was taken in: `growth.py` compares its mark
            if was.max_time is not None or was.idle_mark is not None:
                self._blame(partition, state, f"it stood at {was.max_time or was.idle_mark}")
            elif any(self._knew(since) for p, since in self._honest_since.items() if p != partition):
                self._blame(partition, state, "another partition had tuples long before")

    def _knew(self, since: float) -> bool:
        return self._world.now > max(since, self._world.last_fault) + _SECONDS_TO_HEAR

    def _blame(self, partition: int, state: PartitionState, because: str) -> None:
        self.wrong.append(
            f"in[{partition}] was given the mark {state.idle_mark}, which only the clock of another partition"
            f" can have said, and {because}"
        )
