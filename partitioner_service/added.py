"""Input partitions that are added to the topic while the query lives (pipeline rule 26).

The query takes a new partition in with one transaction of the data plane. Its frames go to every worker and tell that
there are more input partitions, and at which mark the new ones begin. The same transaction commits their first states.

The owner of the lowest partition that has not ended takes them in, with the mark of that partition, as the workers know
it by these frames. A pane closes only when the marks of all lanes have passed it. So no pane that ends after that mark
can have closed before the frames are merged, and the tuples of such panes count. Older tuples are rejected as `idle`.

Only one instance can do so. The broker accepts the offsets of an instance only while it is a member of the group in its
present generation. Whether a lower partition has ended is read from committed states after all pending transactions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from evenflow.errors import IncompatibleStateError
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from evenflow.talking.words import numbers, partitions
from evenflow.windows import NO_MARK
from partitioner_service.route import Router
from partitioner_service.sink import Sink
from partitioner_service.source import Source
from topics.query_record import read_beginning

log = logging.getLogger(__name__)

_EVERY_SECONDS = 1.0


class Added:
    """Takes added partitions in where this instance may, and waits for the instance that may otherwise."""

    def __init__(
        self,
        settings: Settings,
        source: Source,
        router: Router,
        sink: Sink,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._source = source
        self._router = router
        self._sink = sink
        self._clock = clock
        self._looked_at = -_EVERY_SECONDS

    def claims(self) -> dict[int, PartitionState]:
        """First states of the partitions that this instance takes in now, mostly none. Their frames are written.

        The caller commits them at once.

        Raises IncompatibleStateError if every old partition has ended, because then nobody can take new ones in.
        """
        if not self._due():
            return {}
        everyone = self._source.look()
        new = self._source.added
        if not new:
            return {}
        first = min((p for p, state in everyone.items() if not state.ended), default=None)
        if first is None:
            raise all_have_ended(self._settings, new)
        own = self._source.states.get(first)
        if own is None or own.ended:
            return {}
        states = self._first_states(own, new)
        count = max(new) + 1
        self._sink.write_frames(self._router.take_in({**self._source.states, **states}, inputs=count))
        self._write_beginning(states)
        log.info("the topic has got input %s: they are taken in", partitions(new))
        return states

    def may_read_more(self) -> bool:
        """Whether partitions of this instance have been taken in that it does not read yet."""
        return bool(self._source.waiting - self._source.added)

    def _due(self) -> bool:
        """Whether it is time to look, because there are added partitions."""
        if not (self._source.added or self._source.waiting):
            return False
        now = self._clock()
        if now - self._looked_at < _EVERY_SECONDS:
            return False
        self._looked_at = now
        return True

    def _write_beginning(self, states: Mapping[int, PartitionState]) -> None:
        """Note that the query has these partitions, too. From then on, offsets of them that are gone are a loss."""
        before = read_beginning(self._settings.origin)
        if before is None:
            raise IncompatibleStateError(
                f"the record of how query {self._settings.query.name} began is gone from "
                f"{self._settings.topic('snapshots')}",
                hint="give the query a new name",
            )
        begin = {**before.begin, **{partition: state.begin for partition, state in states.items()}}
        known = self._settings.origin.with_input_partitions(len(begin))
        self._sink.write_beginning(known, replace(before, identity=known.identity(), begin=begin))

    def _first_states(self, own: PartitionState, new: frozenset[int]) -> dict[int, PartitionState]:
        """States at the beginning of these partitions, with the mark of an own one."""
        mark = own.mark(self._settings.query)
        found = {}
        for partition in sorted(new):
            begin = self._source.begins(partition)
            found[partition] = PartitionState(
                fingerprint=own.fingerprint,
                topic_id=own.topic_id,
                routed_id=own.routed_id,
                rejected_id=own.rejected_id,
                begin=begin,
                offset=begin,
                idle_mark=None if mark == NO_MARK else mark,
            )
        return found


def all_have_ended(settings: Settings, new: frozenset[int]) -> IncompatibleStateError:
    """The error for partitions that were added to an input whose other partitions have all ended."""
    return IncompatibleStateError(
        f"{settings.topic('input')} got the partitions {numbers(new)} after all others had ended, so every window of "
        f"query {settings.query.name} was closed without them",
        hint="give the query a new name: it then reads all partitions from their beginning",
    )
