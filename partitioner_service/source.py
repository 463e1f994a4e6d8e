"""Kafka in: which partitions are ours and where they stand.

The committed offset's metadata is the partition's whole state (pipeline rule 4): it is read when a
partition is assigned, and nothing else is believed. A rebalance can happen inside any read. A block
that was read across one is thrown away and read again (rule 1).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, cast

from confluent_kafka import Consumer, TopicPartition

from evenflow.progress import PartitionState
from evenflow.settings import Settings
from evenflow.talking.words import numbers
from partitioner_service.committed import TopicIds, check_continues, data_plane_group, load_states
from partitioner_service.ends import LogEnds
from partitioner_service.fetching import Fetching
from partitioner_service.route import Slice
from partitioner_service.slices import Slicer
from topics import clients
from topics.offsets import log_ends
from topics.records import Record

log = logging.getLogger(__name__)

_ASK_SECONDS = 2.0

Settle = Callable[[bool], None]
"""Ends the open transaction. It is handed True when that transaction may still be committed."""


class Source:
    """Reads the input topic as a member of the data plane's group.

    states: working state of every owned partition. committed: as of the last commit. just_assigned: nothing
    has come since the last assignment (pausing before that can lose the position in librdkafka). ends: where the
    logs were seen to end.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        topic_ids: TopicIds,
        needs_key: bool,
        needs_timestamp: bool,
        stopping: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.states: dict[int, PartitionState] = {}
        self.committed: dict[int, PartitionState] = {}
        self.just_assigned = False
        self.rebalances = 0
        self.rewinds = 0
        self._settings = settings
        self._topic = settings.topic("input")
        self._topic_ids = topic_ids
        self._stopping = stopping
        self._failure: BaseException | None = None
        self.ends = LogEnds(self._ends_now, clock=clock)
        self._slicer = Slicer(settings, needs_key=needs_key, needs_timestamp=needs_timestamp, ends=self.ends)
        self._consumer: Consumer = clients.consumer(
            settings.kafka, group=data_plane_group(settings), **consumer_config(settings)
        )
        self._fetching = Fetching(self._consumer, self._topic, self._ends_now, clock=clock)

    def subscribe(self, settle: Settle) -> None:
        """Join the group. Partitions arrive in a later `read`. `settle` is called before ownership is given up."""

        def on_revoke(consumer: Consumer, partitions: list[TopicPartition]) -> None:
            self._give_up(consumer, lambda: settle(True))

        def on_lost(consumer: Consumer, partitions: list[TopicPartition]) -> None:
            log.warning(
                "input partitions %s were lost, not revoked", numbers(p.partition for p in partitions)
            )
            self._give_up(consumer, lambda: settle(False))

        self._consumer.subscribe(
            [self._topic], on_assign=self._on_assign, on_revoke=on_revoke, on_lost=on_lost
        )

    @property
    def group_metadata(self) -> object:
        """What a transaction needs to commit offsets for this member."""
        return self._consumer.consumer_group_metadata()

    def read(self, most: int, timeout: float) -> list[list[Slice]]:
        """The next records of owned partitions in blocks, a slice per partition. Mostly one block, or none.

        Raises what went wrong in a rebalance, DataLossError when offsets are gone, ServiceError for
        errors that Kafka calls fatal.
        """
        before = self.rebalances
        messages = cast(list[Record], self._consumer.consume(most, timeout))
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if self.rebalances != before:
            if messages and self.states:
                self.rewind(self.states)
            return []
        if messages:
            self.just_assigned = False
        return self._slicer.blocks(messages, self.states)

    def rewind(self, states: dict[int, PartitionState]) -> None:
        """Continue from these states: position and working state go together (rule 2)."""
        self._fetching.resume_all()
        self.rewinds += 1
        self.states = dict(states)
        self.ends.forget()
        self.just_assigned = True
        self._consumer.assign([TopicPartition(self._topic, p, s.offset) for p, s in states.items()])

    @property
    def paused(self) -> set[int]:
        """Owned partitions that are not fetched at present."""
        return self._fetching.paused

    def hold(self, partitions: Iterable[int]) -> None:
        """Pause exactly these owned partitions."""
        self._fetching.hold(set(partitions) & set(self.states))

    def check(self, states: Mapping[int, PartitionState]) -> None:
        """Raise unless these committed states, whoever owns them, belong to this query and these very topics."""
        for partition, state in states.items():
            check_continues(self._settings, state, self._topic_ids, f"{self._topic}[{partition}]")

    def lag(self, partition: int) -> int | None:
        """Records between our position and the log's end. None when not known yet."""
        return self._fetching.lag(partition, self.states[partition].offset)

    def _ends_now(self, partitions: Collection[int]) -> dict[int, int]:
        return log_ends(self._settings.kafka, self._topic, partitions, timeout=_ASK_SECONDS)

    def close(self) -> None:
        """Leave the group (the revoke callback settles an open transaction first)."""
        self._consumer.close()

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.rebalances += 1
        try:
            states = load_states(
                consumer, self._settings, [p.partition for p in partitions], self._topic_ids, self._stopping
            )
            self.committed = dict(states)
            self.rewind(states)
            log.info("assigned input partitions %s: %s", numbers(states), _where(states))
        except BaseException as error:
            self._failure = error
            consumer.assign([])

    def _give_up(self, consumer: Consumer, settle: Callable[[], None]) -> None:
        self.rebalances += 1
        try:
            settle()
        except BaseException as error:
            self._failure = error
        try:
            self._fetching.resume_all()
        except BaseException as error:
            self._failure = self._failure or error
        log.info("gave up input partitions %s", numbers(self.states))
        self.states = {}
        self.committed = {}
        self.ends.forget()
        consumer.unassign()


def consumer_config(settings: Settings) -> dict[str, Any]:
    """librdkafka settings of the data plane's consumer."""
    return {
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "partition.assignment.strategy": "range",
        "session.timeout.ms": 10_000,
        "heartbeat.interval.ms": 1_000,
        "fetch.wait.max.ms": 50,
        "queued.min.messages": 200_000,
        "client.id": f"evenflow-{settings.query.name}-{settings.partitioner.instance}",
    }


def _where(states: Mapping[int, PartitionState]) -> str:
    """Where reading begins."""
    before = sum(state.read for state in states.values())
    return f"goes on after {before:,} records" if before else "from the beginning"
