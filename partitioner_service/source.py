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
from typing import Any, NamedTuple

import numpy as np
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from evenflow.errors import DataLossError, EvenflowError, IncompatibleStateError, ServiceError
from evenflow.markers import EndOfStream
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from evenflow.talking.words import numbers
from partitioner_service.blocks import cut
from partitioner_service.ends import LogEnds
from partitioner_service.messages import marker_of, timestamp_of
from partitioner_service.route import Slice
from topics import clients
from topics.admin import check_group_rights
from topics.offsets import log_ends

log = logging.getLogger(__name__)

_ERROR, _PARTITION, _KEY, _VALUE = map(methodcaller, ("error", "partition", "key", "value"))

_FORBIDDEN = {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED}
_WAIT = {
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._WAIT_COORD,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.REQUEST_TIMED_OUT,
}
"""Answers about committed offsets that mean "ask again", never "there is no state"."""

_ASK_SECONDS = 2.0


class TopicIds(NamedTuple):
    """Kafka's ids of the topics that committed state belongs to."""

    input: str
    routed: str
    rejected: str


class Stopping(EvenflowError):
    """The service was told to stop while it waited for Kafka."""


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
        self._settle = settle
        self._stopping = stopping
        self._failure: BaseException | None = None
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
        messages = self._consumer.consume(most, timeout)
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if self.rebalances != before:
            if messages and self.states:
                self.rewind(self.states)
            return []
        if messages:
            self.just_assigned = False
        blocks = map(self._slices, cut(messages, with_keys=self._needs_key))
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
            self._consumer.pause([TopicPartition(self._topic, p) for p in pause])
        if resume:
            self._consumer.resume([TopicPartition(self._topic, p) for p in resume])
        self.paused = wanted

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
        return None if high < 0 else max(0, high - self.states[partition].offset)

    def _ends_now(self, partitions: Collection[int]) -> dict[int, int]:
        return log_ends(self._settings.kafka, self._topic, partitions, timeout=_ASK_SECONDS)

    def close(self) -> None:
        """Leave the group (the revoke callback settles an open transaction first)."""
        self._consumer.close()

    def _slices(self, messages: list[Message]) -> list[Slice]:
        # `map` over C calls: at this rate even a loop in Python is a third of all work.
        ends: dict[int, int] = {}
        if any(map(_ERROR, messages)):
            for message in messages:
                if message.error() is None:
                    continue
                if message.error().code() == KafkaError._PARTITION_EOF:
                    ends[message.partition()] = message.offset()
                else:
                    self._note(message)
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

    def _slice(self, partition: int, records: list[Message]) -> Slice:
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
        )

    def _note(self, message: Message) -> None:
        error = message.error()
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


def data_plane_group(settings: Settings) -> str:
    """Consumer group of the data plane; its committed offsets carry the state of every input partition."""
    return settings.data_plane_group


def load_states(
    consumer: Consumer,
    settings: Settings,
    partitions: list[int],
    topic_ids: TopicIds,
    stopping: Callable[[], bool],
) -> dict[int, PartitionState]:
    """Committed state of these partitions, waiting while a transaction of an earlier owner is pending.

    Raises IncompatibleStateError or DataLossError when that state cannot be continued, Stopping when told to stop.
    """
    topic = settings.topic("input")
    states = {}
    for entry in committed_offsets(consumer, [TopicPartition(topic, p) for p in partitions], stopping):
        where = f"{topic}[{entry.partition}]"
        if entry.offset < 0:
            raise IncompatibleStateError(
                f"{where} has no committed offset although the query has begun",
                hint="the offsets of group "
                f"{data_plane_group(settings)} expired or were deleted: see 'Rebuild after data loss' in docs/operations.md",
            )
        state = PartitionState.decode(entry.metadata, offset=entry.offset)
        check_continues(settings, state, topic_ids, where)
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, entry.partition), timeout=30)
        if not low <= state.offset <= high:
            raise DataLossError(
                f"{where} holds offsets {low}..{high}, but the next to read is {state.offset}",
                hint="the topic was trimmed or truncated: see 'Rebuild after data loss' in docs/operations.md",
            )
        states[entry.partition] = state
    return states


def check_continues(settings: Settings, state: PartitionState, topic_ids: TopicIds, where: str) -> None:
    """Raise unless this committed state belongs to this query and these very topics."""
    if state.fingerprint != settings.fingerprint:
        raise IncompatibleStateError(
            f"{where} was read for query {state.fingerprint}, but the settings now describe query "
            f"{settings.fingerprint}: key, time, windows, aggregates, lateness, input or the number of partitions "
            "or buckets changed",
            hint="give the changed query a new name; it then begins anew with topics of its own",
        )
    for topic, before, now in (
        (where, state.topic_id, topic_ids.input),
        (settings.topic("routed"), state.routed_id, topic_ids.routed),
        (settings.topic("rejected"), state.rejected_id, topic_ids.rejected),
    ):
        if before != now:
            raise DataLossError(
                f"{topic} was deleted and created again (topic id {before} is now {now})",
                hint="give the query a new name, or remove what it left with `evenflow reset`",
            )


def committed_offsets(
    consumer: Consumer, partitions: list[TopicPartition], stopping: Callable[[], bool]
) -> list[TopicPartition]:
    """What the consumer's group has committed, asked again until the broker knows (rule 4).

    Raises Stopping when told to stop before that, KafkaException for an answer that no waiting heals.
    """
    waiting = False
    while True:
        try:
            answer = consumer.committed(partitions, timeout=2.0)
        except KafkaException as error:
            if error.args[0].code() not in _WAIT:
                raise
            cause = error.args[0].str()
        else:
            failed = [entry.error for entry in answer if entry.error is not None]
            if not failed:
                return list(answer)
            if any(error.code() not in _WAIT for error in failed):
                raise KafkaException(failed[0])
            cause = failed[0].str()
        if stopping():
            raise Stopping(f"gave up waiting for committed offsets: {cause}")
        if not waiting:
            log.info("waiting for the committed offsets (a transaction may be pending): %s", cause)
        waiting = True


def state_reader(settings: Settings, *, stable: bool = False) -> Consumer:
    """A client that reads the group's committed offsets without being a member of it.

    stable: the broker answers only when no transaction that may change them is pending.

    Not the admin client's `list_consumer_group_offsets`: librdkafka 2.16 takes the whole process down with
    it (a segmentation fault) while the group's coordinator is being loaded, as on a broker that has just started.
    """
    isolation = "read_committed" if stable else "read_uncommitted"
    return clients.consumer(
        settings.kafka, group=data_plane_group(settings), **{"isolation.level": isolation}
    )


def committed_states(reader: Consumer, settings: Settings) -> dict[int, PartitionState]:
    """Last committed state of every input partition of the group, whoever owns it."""
    topic = settings.topic("input")
    deadline = time.monotonic() + settings.kafka.request_timeout / 1000
    partitions = [TopicPartition(topic, number) for number in range(settings.input_partitions)]
    try:
        answer = committed_offsets(reader, partitions, lambda: time.monotonic() >= deadline)
    except Stopping as error:
        group = data_plane_group(settings)
        check_group_rights(settings.kafka, group)
        raise ServiceError(f"the group {group} has no coordinator: {error}") from None
    return {
        entry.partition: PartitionState.decode(entry.metadata, offset=entry.offset)
        for entry in answer
        if entry.offset >= 0
    }


def all_states(settings: Settings, *, stable: bool = False) -> dict[int, PartitionState]:
    """`committed_states` with a `state_reader` of its own, for who asks once."""
    reader = state_reader(settings, stable=stable)
    try:
        return committed_states(reader, settings)
    finally:
        reader.close()


def _where(states: Mapping[int, PartitionState]) -> str:
    """Where reading begins."""
    before = sum(state.read for state in states.values())
    return f"goes on after {before:,} records" if before else "from the beginning"


def _by_partition(messages: list[Message]) -> dict[int, list[Message]]:
    """The records of each partition, in their order; Kafka delivers them in few long runs."""
    numbers = np.fromiter(map(_PARTITION, messages), np.int64, len(messages))
    cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(messages)]
    found: dict[int, list[Message]] = {}
    for begin, end in pairwise(cuts):
        if begin < end:
            found.setdefault(int(numbers[begin]), []).extend(messages[begin:end])
    return found


def _marker(record: Message) -> EndOfStream | None:
    where = record.topic(), record.partition(), record.offset()
    return marker_of(record, damaged=lambda error: log.warning("%s[%s]@%s: %s", *where, error))
