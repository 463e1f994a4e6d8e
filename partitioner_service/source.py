"""Kafka in: which partitions are ours, where they stand, and blocks of their records.

The committed offset's metadata is the partition's whole state (pipeline rule 4): it is read when a
partition is assigned, and nothing else is believed. A rebalance can happen inside any read; a block
that was read across one is thrown away and read again (rule 1).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import pairwise
from operator import methodcaller
from typing import Any, cast

import numpy as np
from confluent_kafka import (
    Consumer,
    KafkaError,
    TopicPartition,
)

from evenflow.errors import DataLossError
from evenflow.markers import EndOfStream
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from evenflow.talking.words import numbers
from evenflow.wire import LATEST_CAME
from partitioner_service.blocks import EXPLODED_BYTES, MOST_BYTES, cut
from partitioner_service.committed import TopicIds, check_continues, data_plane_group, load_states
from partitioner_service.ends import LogEnds
from partitioner_service.messages import marker_of, timestamp_of
from partitioner_service.route import Slice
from topics import clients
from topics.offsets import log_ends
from topics.records import Record

log = logging.getLogger(__name__)

_ERROR, _PARTITION, _KEY, _VALUE = map(methodcaller, ("error", "partition", "key", "value"))

_FORBIDDEN = {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED}
_ASK_SECONDS = 2.0
_ASK_EVERY = 1.0


class Source:
    """Reads the input topic as a member of the data plane's group.

    states: working state of every owned partition; committed: as of the last commit. just_assigned: nothing
    has come since the last assignment (pausing before that can lose the position in librdkafka). ends: where the
    logs were seen to end. `settle` is called before ownership is given up, with True when the open transaction
    may still be committed.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        topic_ids: TopicIds,
        needs_key: bool,
        needs_timestamp: bool,
        settle: Callable[[bool], None],
        stopping: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.states: dict[int, PartitionState] = {}
        self.committed: dict[int, PartitionState] = {}
        self.paused: set[int] = set()
        self.just_assigned = False
        self.rebalances = 0
        self.rewinds = 0
        self._settings = settings
        self._topic = settings.topic("input")
        self._topic_ids = topic_ids
        self._needs_key = needs_key
        self._needs_timestamp = needs_timestamp
        self._most_bytes = MOST_BYTES if settings.query.explode is None else EXPLODED_BYTES
        self._settle = settle
        self._stopping = stopping
        self._failure: BaseException | None = None
        self._clock = clock
        self._asked_at = clock()
        self._grown: dict[int, int] = {}
        self.ends = LogEnds(self._ends_now, clock=clock)
        self._consumer: Consumer = clients.consumer(
            settings.kafka, group=data_plane_group(settings), **consumer_config(settings)
        )

    def subscribe(self) -> None:
        """Join the group; partitions arrive in a later `read`."""
        self._consumer.subscribe(
            [self._topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    @property
    def group_metadata(self) -> object:
        """What a transaction needs to commit offsets for this member."""
        return self._consumer.consumer_group_metadata()

    def read(self, most: int, timeout: float) -> list[list[Slice]]:
        """The next records of owned partitions in blocks, a slice per partition; mostly one block, or none.

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
        cuts = cut(messages, with_keys=self._needs_key, most_bytes=self._most_bytes)
        blocks = map(self._slices, cuts)
        return [slices for slices in blocks if slices]

    def rewind(self, states: dict[int, PartitionState]) -> None:
        """Continue from these states: position and working state go together (rule 2)."""
        self._resume_all()
        self.rewinds += 1
        self.states = dict(states)
        self.ends.forget()
        self.just_assigned = True
        self._consumer.assign([TopicPartition(self._topic, p, s.offset) for p, s in states.items()])

    def hold(self, partitions: Iterable[int]) -> None:
        """Pause exactly these owned partitions."""
        wanted = set(partitions) & set(self.states)
        pause, resume = wanted - self.paused, self.paused - wanted
        if pause:
            self._asked_at = self._clock()
            self._consumer.pause([TopicPartition(self._topic, p) for p in pause])
        if resume:
            self._consumer.resume([TopicPartition(self._topic, p) for p in resume])
        self.paused = wanted
        self._ask_after_paused()

    def _ask_after_paused(self) -> None:
        """How far logs have grown that nobody fetches: librdkafka does not hear of it."""
        if self.paused and self._clock() - self._asked_at >= _ASK_EVERY:
            self._asked_at = self._clock()
            self._grown |= self._ends_now(self.paused)

    def _resume_all(self) -> None:
        """While they are still assigned: librdkafka keeps a partition paused through `assign` and rebalances."""
        if self.paused:
            self._consumer.resume([TopicPartition(self._topic, p) for p in sorted(self.paused)])
            self.paused = set()

    def check(self, states: Mapping[int, PartitionState]) -> None:
        """Raise unless these committed states, whoever owns them, belong to this query and these very topics."""
        for partition, state in states.items():
            check_continues(self._settings, state, self._topic_ids, f"{self._topic}[{partition}]")

    def lag(self, partition: int) -> int | None:
        """Records between our position and the log's end; None when not known yet."""
        _, high = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), cached=True)
        end = max(high, self._grown.get(partition, high))  # logs only grow
        return None if end < 0 else max(0, end - self.states[partition].offset)

    def _ends_now(self, partitions: Collection[int]) -> dict[int, int]:
        return log_ends(self._settings.kafka, self._topic, partitions, timeout=_ASK_SECONDS)

    def close(self) -> None:
        """Leave the group (the revoke callback settles an open transaction first)."""
        self._consumer.close()

    def _slices(self, messages: list[Record]) -> list[Slice]:
        # `map` over C calls: at this rate even a loop in Python is a third of all work.
        ends: dict[int, int] = {}
        if any(map(_ERROR, messages)):
            for message in messages:
                error = message.error()
                if error is None:
                    continue
                if error.code() == KafkaError._PARTITION_EOF:
                    ends[message.partition()] = message.offset()
                else:
                    self._note(message, error)
            messages = [message for message in messages if message.error() is None]
        slices = []
        for partition, records in sorted(_by_partition(messages).items()):
            state = self.states.get(partition)
            if state is None:
                continue
            self.ends.left(partition)
            if ends.get(partition, 0) <= records[-1].offset():
                ends.pop(partition, None)  # more records came after that end
            if records[0].offset() < state.offset:
                records = [record for record in records if record.offset() >= state.offset]
            if records:
                slices.append(self._slice(partition, records))
        for partition, offset in ends.items():  # said only once for each end: not to be forgotten
            if partition in self.states:
                self.ends.reached(partition, offset)
        return slices

    def _slice(self, partition: int, records: list[Record]) -> Slice:
        values = list(map(_VALUE, records))
        markers: dict[int, EndOfStream] = {}
        if None in values:
            for position, value in enumerate(values):
                if value is None:
                    marker = _marker(records[position])
                    if marker is not None:
                        markers[position] = marker
        return Slice(
            partition=partition,
            first=records[0].offset(),
            last=records[-1].offset(),
            values=values,
            keys=list(map(_KEY, records)) if self._needs_key else None,
            timestamps=[timestamp_of(record) for record in records] if self._needs_timestamp else None,
            markers=markers,
            records=records,
            came=_came(records[0]),
        )

    def _note(self, message: Record, error: KafkaError) -> None:
        code = error.code()
        if code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            raise DataLossError(
                f"the records of {self._topic}[{message.partition()}] that come next are gone ({error.str()})",
                hint="retention deleted them before they were read; see 'Rebuild after data loss' in docs/operations.md",
            )
        if error.fatal() or code in _FORBIDDEN:
            raise clients.service_error(error, self._settings.kafka, f"reading {self._topic}")
        log.warning("kafka says of %s: %s", self._topic, error.str())

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

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._give_up(consumer, may_commit=True)

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        log.warning("input partitions %s were lost, not revoked", numbers(p.partition for p in partitions))
        self._give_up(consumer, may_commit=False)

    def _give_up(self, consumer: Consumer, *, may_commit: bool) -> None:
        self.rebalances += 1
        try:
            self._settle(may_commit)
        except BaseException as error:
            self._failure = error
        try:
            self._resume_all()
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


def _by_partition(messages: list[Record]) -> dict[int, list[Record]]:
    """The records of each partition, in their order; Kafka delivers them in few long runs."""
    numbers = np.fromiter(map(_PARTITION, messages), np.int64, len(messages))
    cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(messages)]
    found: dict[int, list[Record]] = {}
    for begin, end in pairwise(cuts):
        if begin < end:
            found.setdefault(int(numbers[begin]), []).extend(messages[begin:end])
    return found


def _came(record: Record) -> int | None:
    stamp = timestamp_of(record)
    return stamp if 0 <= stamp <= LATEST_CAME else None


def _marker(record: Record) -> EndOfStream | None:
    where = record.topic(), record.partition(), record.offset()
    return marker_of(record, damaged=lambda error: log.warning("%s[%s]@%s: %s", *where, error))
