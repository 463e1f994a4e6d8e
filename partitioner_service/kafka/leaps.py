"""Whose event time leapt, and from whom an idle input partition takes its mark.

A tuple with a time far in the future moves its partition there at once. No other partition may follow. So an
idle partition takes its mark only from a partition whose time has run, in steps of at most `max_skew`, from
where the idle one stands. Nobody can see from one time alone whether it is a time of the future or the first
one after a quiet night. So a partition that has leapt is followed as soon as another partition has come to
the same place by tuples of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property

from evenflow.progress import PartitionState
from evenflow.reporting.words import moment, partitions, span
from evenflow.settings import Settings


class Leaps:
    """Compares the input partitions of a query with each other.
    everyone: their states, as far as they are known.

    A partition that has ended takes no mark, and its tuples still say where the input is. A partition without
    a tuple stands at the first tuple of the whole input, unless it was given a mark.
    """

    def __init__(self, settings: Settings, everyone: Mapping[int, PartitionState]) -> None:
        self._query = settings.query
        self._max_skew = settings.max_skew
        self._everyone = everyone
        begun = [s.first_time for s in everyone.values() if s.first_time is not None]
        self.first = min(begun, default=None)

    def place(self, partition: int) -> int | None:
        """Event time (ms) at which a partition stands. None if no partition has had a tuple."""
        state = self._everyone[partition]
        idle_place = None if state.idle_mark is None else state.idle_mark + state.delay(self._query)
        known = [time for time in (state.max_time, idle_place) if time is not None]
        return max(known, default=self.first)

    def followed_by(self, source: int, follower: int) -> bool:
        """Whether an idle partition may take its mark from this one."""
        state, place = self._everyone[source], self.place(follower)
        if state.steady_from is None or place is None or state.steady_from <= place + self._max_skew:
            return True
        return any(
            self._meet(state, other) for p, other in self._everyone.items() if p not in (source, follower)
        )

    def words(self, source: int, left: Collection[int]) -> str:
        """Says that these idle partitions do not follow this one, and what to do about it."""
        to, behind = self._everyone[source].steady_from or 0, min(self.place(p) or 0 for p in left)
        return (
            f"input {partitions([source])} leapt to {moment(to)}, {span(to - behind)} ahead of"
            f" {partitions(left)} and more than max_skew ({span(self._max_skew)}). They are idle, and do not"
            " follow it before another partition is there too, so no later window closes. If that time is"
            " right: write to another partition, end the idle ones, or set"
            " partitioner.max_skew to more than the gap"
        )

    def _meet(self, first: PartitionState, second: PartitionState) -> bool:
        """Whether two partitions were at one place since the last leap of each, give or take `max_skew`."""
        if first.steady_from is None or first.max_time is None:
            return False
        if second.steady_from is None or second.max_time is None:
            return False
        return (
            first.steady_from <= second.max_time + self._max_skew
            and second.steady_from <= first.max_time + self._max_skew
        )

    def ahead_of_sleepers(self, partition: int) -> bool:
        """Whether a partition that is awake left a sleeping one more than `max_skew` behind, which does
        not follow it.
        """
        state, slowest = self._everyone[partition], self._slowest_sleeper
        if slowest is None or state.max_time is None or state.asleep or state.ended:
            return False
        # Whom the slowest sleeper follows, every sleeper does.
        place = self.place(slowest)
        far = place is not None and state.max_time > place + self._max_skew
        return far and not self.followed_by(partition, slowest)

    @cached_property
    def _slowest_sleeper(self) -> int | None:
        places = {p: self.place(p) for p, s in self._everyone.items() if s.asleep and not s.ended}
        return min(places, key=lambda p: places[p] or 0, default=None)
