"""Input partitions that stand still or run ahead: `idle_timeout` and `max_skew`.

Both settings compare a partition with all other input partitions of the query. The states of partitions that
other instances own are known as these instances last committed them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace

from confluent_kafka import KafkaException

from evenflow.errors import EvenflowError
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from evenflow.windows import NO_MARK, panes_closed_by
from partitioner_service.kafka.committed_state import committed_states, state_reader
from partitioner_service.kafka.leaps import Leaps
from partitioner_service.kafka.source import Source

log = logging.getLogger(__name__)

_PEER_REFRESH = 1.0
"""Seconds between two looks at the peers' progress."""


class Pace:
    """Decides which owned partitions fall asleep and which are paused.

    The peers' progress is read once a second at most, and only while another instance owns a partition.
    """

    def __init__(
        self, settings: Settings, source: Source, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._source = source
        self._clock = clock
        self._reader = state_reader(settings)
        self._peers: dict[int, PartitionState] = {}
        self._peers_at = -_PEER_REFRESH
        self._hasty: set[int] = set()

    def everyone(self) -> dict[int, PartitionState]:
        """States of all input partitions: our own as they are now, those of the peers as last committed."""
        own = self._source.states
        if len(own) < self._source.partition_count and self._clock() - self._peers_at >= _PEER_REFRESH:
            try:
                self._peers = committed_states(
                    self._reader, self._settings, partitions=self._source.partition_count
                )
                self._peers_at = self._clock()
            except (EvenflowError, KafkaException) as error:
                log.warning("could not read the other instances' progress: %s", error)
        return self.states()

    def states(self) -> dict[int, PartitionState]:
        """As `everyone`, but the states of the peers are not read anew."""
        return {**self._peers, **self._source.states}

    def asleep(self) -> dict[int, PartitionState]:
        """New states of owned partitions that have been at the end of their log for the whole idle timeout.

        Each of them gets the mark of the slowest partition that is awake. A partition does not fall asleep if
        that one has leapt away from it (`leaps`), or if the brokers do not confirm the end of its log now.
        None falls asleep while the progress of any partition is unknown.
        """
        timeout = self._settings.partitioner.idle_timeout
        if timeout is None:
            return {}
        states, ends = self._source.states, self._source.ends
        sleepy = {p for p, s in states.items() if not s.ended and ends.since(p) >= timeout / 1000}
        # The brokers are asked only about partitions for which falling asleep changes something.
        confirmed = ends.confirmed(set(self._targets(sleepy)))
        # Computed again: a partition whose log has grown after all is awake, so its mark counts too.
        return {
            p: replace(states[p], asleep=True, idle_mark=max(target, states[p].mark(self._settings.query)))
            for p, target in self._targets(confirmed).items()
        }

    def _targets(self, sleepy: set[int]) -> dict[int, int]:
        """The mark (ms) for each of these partitions for which it changes something.

        It changes something if the partition falls asleep, or if more panes close. sleepy: partitions that do
        not count as awake. Nothing is changed if no partition is awake, if one of them has no mark yet, or if
        the state of any partition is unknown.
        """
        if not sleepy:
            return {}
        everyone = self.everyone()
        if len(everyone) < self._source.partition_count:
            return {}
        query = self._settings.query
        marks = {
            p: s.mark(query) for p, s in everyone.items() if not s.ended and not s.asleep and p not in sleepy
        }
        target = min(marks.values(), default=NO_MARK)
        if target == NO_MARK:
            return {}
        slowest = [p for p, mark in marks.items() if mark == target]
        leaps = Leaps(self._settings, everyone)
        return {
            p: target
            for p in sleepy
            if self._changes(everyone[p], target) and any(leaps.followed_by(q, p) for q in slowest)
        }

    def _changes(self, state: PartitionState, target: int) -> bool:
        """Whether this mark (ms) puts a partition to sleep, or closes a pane of one that sleeps."""
        query = self._settings.query
        closed = panes_closed_by(target, query.slide_ms)
        return not state.asleep or bool(closed > panes_closed_by(state.mark(query), query.slide_ms))

    def hold_back_the_hasty(self) -> None:
        """Hold back the owned partitions that are more than `max_skew` ahead of the slowest, and no others.

        A partition without a tuple counts as if it stood at the first tuple of the whole input, or at the
        mark that it was given. So the others cannot run away from it. A sleeping partition holds back only
        those that leapt away from it.
        """
        states = self._source.states
        if not states:
            return
        everyone = self.everyone()
        leaps = Leaps(self._settings, everyone)
        if leaps.first is None:
            return
        live = [
            (leaps.place(p) or 0) if s.max_time is None else s.max_time
            for p, s in everyone.items()
            if not s.ended and not s.asleep
        ]
        self._hasty = set()
        if live:
            limit = min(live) + self._settings.max_skew
            self._hasty = {
                p
                for p, s in states.items()
                if s.max_time is not None and (s.max_time > limit or leaps.ahead_of_sleepers(p))
            }
        self._source.hold(self._hasty)

    @property
    def held_back(self) -> bool:
        """Whether any owned partition is paused because it runs ahead."""
        return bool(self._hasty)

    def close(self) -> None:
        """Close the reader of the peers' progress."""
        self._reader.close()
