"""Input partitions that are added to the topic while the query lives.

The query takes a new partition in with one transaction of the data plane. Its frames go to every routed
partition and tell that there are more input partitions, and at which mark the new ones begin. The same
transaction commits their first states, and the record of how the query began, which has them from then on.

The owner of the slowest partition takes them in, with the mark of that partition, as the workers know it by
these frames. A pane closes only when the marks of all lanes have passed it. So no pane that ends after that
mark can have closed before the frames are merged, and the tuples of such panes count. Older tuples are
rejected as `idle`.

Only one instance can do so. Which partition is the slowest is read from committed states after all pending
transactions, and marks never fall. From that look to its transaction the owner commits nothing else. So its
partition stays where it was for all others, and nobody else can find another one to be slower. The broker
accepts the offsets of an instance only while it is a member of the group in its present generation.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from evenflow.errors import IncompatibleStateError
from evenflow.progress import PartitionState
from evenflow.reporting.words import moment, numbers, partitions
from evenflow.settings import Query, Settings
from evenflow.settings.beginning import Beginning
from evenflow.windows import NO_MARK
from evenflow.wire import MOST_PARTITIONS
from partitioner_service.kafka.sink import Sink
from partitioner_service.kafka.source import Source
from partitioner_service.routing.router import Router
from topics.query.record import read_beginning
from topics.watch import TopicWatch

log = logging.getLogger(__name__)

_EVERY_SECONDS = 1.0


class Commit(Protocol):
    """Commits the open transaction, or a new one. added: first states that it commits, too."""

    def __call__(self, added: Mapping[int, PartitionState] | None = None) -> None: ...


class AddedPartitions:
    """Takes added partitions in where this instance may, and waits for the instance that may otherwise.

    watch: notices that the input topic has got partitions.
    """

    def __init__(
        self,
        settings: Settings,
        source: Source,
        router: Router,
        sink: Sink,
        *,
        watch: TopicWatch,
        clock: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._topic = settings.topic("input")
        self._source = source
        self._router = router
        self._sink = sink
        self._watch = watch
        self._clock = clock
        self._looked_at = -_EVERY_SECONDS

    def step(self, commit: Commit) -> bool:
        """Take in partitions that were added, or begin to read those that were taken in.

        Returns whether reading goes on from the committed states. Raises IncompatibleStateError if every old
        partition has ended, because then nobody can take new ones in, or if there are too many. Raises what
        `commit` and `Source.assign_again` raise.
        """
        if self._look_due:
            # Before the look: a frame of the open transaction may have told a mark beyond the committed one,
            # and the new partitions begin with the committed one.
            self._close(commit)
            states = self._written()
            if states:
                commit(states)
                self._taken_in(states)
        if not self._source.waiting - self._source.added:
            return False
        self._close(commit)
        self._source.assign_again()
        return True

    def _close(self, commit: Commit) -> None:
        if self._sink.open_for is not None:
            commit()

    def _written(self) -> dict[int, PartitionState]:
        """First states of the partitions that this instance takes in now, mostly none.
        Their frames are written.
        """
        self._looked_at = self._clock()
        everyone = self._source.look()
        new = self._source.added
        if not new:
            return {}
        if all(state.ended for state in everyone.values()):
            raise all_have_ended(self._settings, new)
        slowest = slowest_of(self._settings.query, everyone)
        # One instance owns the slowest partition, so no two instances take partitions in.
        if slowest not in self._source.states:
            return {}
        begins = {partition: self._source.begins(partition) for partition in new}
        states = first_states(self._settings.query, everyone[slowest], begins)
        beginning = self._beginning()
        begin = {**beginning.begin, **{partition: state.begin for partition, state in states.items()}}
        if len(begin) > MOST_PARTITIONS:
            raise too_many(self._settings, len(begin))
        known = self._settings.origin.with_input_partitions(len(begin))
        self._sink.write_frames(self._router.take_in({**self._source.states, **states}, inputs=len(begin)))
        self._sink.write_beginning(replace(beginning, identity=known.identity(), begin=begin))
        return states

    def _taken_in(self, states: Mapping[int, PartitionState]) -> None:
        """Note that these first states are committed."""
        self._source.note_taken_in(states.keys())
        mark = next(iter(states.values())).idle_mark
        log.info(
            "%s has got %s: taken in from the first record on, %s",
            self._topic,
            partitions(states),
            (
                "and no window has closed without them"
                if mark is None
                else f"for the windows that end after {moment(mark)}"
            ),
        )

    @property
    def due(self) -> bool:
        """Whether the next `step` does anything."""
        return self._look_due or bool(self._source.waiting - self._source.added)

    @property
    def _look_due(self) -> bool:
        """Whether it is time to look, because there are added partitions."""
        source = self._source
        more = source.rebalances and self._watch.partitions(self._topic) > source.partition_count
        if not (more or source.added or source.waiting):
            return False
        return self._clock() - self._looked_at >= _EVERY_SECONDS

    def _beginning(self) -> Beginning:
        beginning = read_beginning(self._settings.origin)
        if beginning is None:
            raise IncompatibleStateError(
                f"the record of how query {self._settings.query.name} began is gone from "
                f"{self._settings.topic('snapshots')}",
                hint="give the query a new name",
            )
        return beginning


def slowest_of(query: Query, everyone: Mapping[int, PartitionState]) -> int:
    """The input partition with the least mark, the first one of several.
    everyone: the states of all, at least one.
    """
    return min(everyone, key=lambda partition: (everyone[partition].mark(query), partition))


def first_states(
    query: Query, slowest: PartitionState, begins: Mapping[int, int]
) -> dict[int, PartitionState]:
    """States at the beginning of new partitions, with the mark of the slowest partition.

    begins: new partition -> offset of its first record.
    """
    mark = slowest.mark(query)
    return {
        partition: PartitionState(
            fingerprint=slowest.fingerprint,
            topic_id=slowest.topic_id,
            routed_id=slowest.routed_id,
            rejected_id=slowest.rejected_id,
            begin=begin,
            offset=begin,
            idle_mark=None if mark == NO_MARK else mark,
        )
        for partition, begin in sorted(begins.items())
    }


def too_many(settings: Settings, partitions: int) -> IncompatibleStateError:
    """The error for an input topic with more partitions than a frame can name."""
    return IncompatibleStateError(
        f"{settings.topic('input')} has got {partitions:,} partitions, and a"
        f" query has at most {MOST_PARTITIONS:,}",
        hint="give the query a new name and a topic with fewer partitions",
    )


def all_have_ended(settings: Settings, new: frozenset[int]) -> IncompatibleStateError:
    """The error for partitions that were not taken in before all others had ended."""
    return IncompatibleStateError(
        f"{settings.topic('input')} got the partitions {numbers(new)}, and all others had ended before these"
        f" were taken in, so every window of query {settings.query.name} was closed without them",
        hint="give the query a new name: it then reads all partitions from their beginning",
    )
