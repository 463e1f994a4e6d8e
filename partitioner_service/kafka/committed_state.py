"""The committed state of input partitions: asked for, decoded, and held against the query and its topics.

The metadata of a committed offset is the whole state of its partition. An instance reads this state when the
partition is assigned, and so does whoever looks at the query from outside. Nothing else is believed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import OffsetSpec

from evenflow.errors import DataLossError, EvenflowError, IncompatibleStateError, ServiceError
from evenflow.progress import PartitionState
from evenflow.reporting.words import partitions as partitions_of
from evenflow.settings import Settings
from evenflow.settings.durations import format_duration
from topics import clients
from topics.groups import members
from topics.offsets import known_offsets
from topics.query.record import recorded_partitions

log = logging.getLogger(__name__)

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
"""Answers about committed offsets that mean "ask again", never "there is no state".

The broker gives such answers while a transaction with offsets is pending, and while the broker itself starts.
"""


class TopicIds(NamedTuple):
    """Kafka's ids of the topics that committed state belongs to. A topic that is made anew has another id."""

    input: str
    """Id of the input topic."""
    routed: str
    """Id of the topic of frames."""
    rejected: str
    """Id of the topic of rejected records."""


class StopRequested(EvenflowError):
    """The service was told to stop while it waited for Kafka."""


def data_plane_group(settings: Settings) -> str:
    """Consumer group of the data plane. Its committed offsets carry the state of every input partition."""
    return settings.data_plane_group


def load_states(
    consumer: Consumer,
    settings: Settings,
    partitions: list[int],
    topic_ids: TopicIds,
    stopping: Callable[[], bool],
) -> dict[int, PartitionState]:
    """Committed states of these partitions. Waits while a transaction of an earlier owner is pending.

    A partition that was added to the topic, and that the query has not taken in yet, is absent.

    stopping: whether the service was told to stop. Raises IncompatibleStateError or DataLossError if a state
    cannot be continued, Stopping if `stopping` becomes true while this waits.
    """
    topic = settings.topic("input")
    states: dict[int, PartitionState] = {}
    entries, added = offsets_and_added(consumer, settings, partitions, stopping)
    # The group's own client may not know an added partition yet, so the admin client is asked.
    first, end = (
        known_offsets(settings.kafka, topic, partitions, spec)
        for spec in (OffsetSpec.earliest(), OffsetSpec.latest())
    )
    for entry in entries:
        if entry.partition in added:
            continue
        where = f"{topic}[{entry.partition}]"
        if entry.offset < 0:  # no fresh start: `claim` has given every partition its first offset
            raise IncompatibleStateError(
                f"{where} has no committed offset although the query has begun",
                hint=(
                    f"the offsets of group {data_plane_group(settings)} expired or were deleted. `evenflow"
                    " partition --from-routed` continues where the routed frames end: see 'Rebuild after"
                    " data loss' in docs/operations/data-loss.md"
                ),
            )
        state = PartitionState.decode(entry.metadata, offset=entry.offset)
        check_continues(settings, state, topic_ids, where)
        low, high = first[entry.partition], end[entry.partition]
        check_there(state.offset, low, high, where)
        states[entry.partition] = state
    return states


def check_there(offset: int, low: int, high: int, where: str) -> None:
    """Raise DataLossError unless a log from `low` to the end `high` can be read on at this committed offset.

    where: the input partition, in words.
    """
    if offset > high:
        raise DataLossError(
            f"{where} ends at offset {high}, but the next to read, as it was committed, is {offset}, which"
            " lies behind the end of the log",
            hint=(
                "either the log was truncated, or a producer has written an offset into a record that it does"
                " not have, and evenflow 0.1.0 has read that record. Records that come below offset"
                f" {offset} would never be read: see 'Rebuild after data loss' in"
                " docs/operations/data-loss.md"
            ),
        )
    if offset < low:
        raise DataLossError(
            f"{where} begins at offset {low}, but the next to read is {offset}",
            hint=(
                "retention deleted the records between them, or the topic was trimmed: see 'Rebuild after"
                " data loss' in docs/operations/data-loss.md"
            ),
        )


def offsets_and_added(
    consumer: Consumer, settings: Settings, partitions: Iterable[int], stopping: Callable[[], bool]
) -> tuple[list[TopicPartition], set[int]]:
    """The committed offsets of these partitions, and which of them were added and are not taken in yet.

    Any other partition without an offset had one, which is lost. Raises as `committed_offsets` does,
    IncompatibleStateError if the record of the query's beginning cannot be read.
    """
    topic = settings.topic("input")
    parts = [TopicPartition(topic, p) for p in partitions]
    entries = committed_offsets(consumer, parts, stopping)
    if all(entry.offset >= 0 for entry in entries):
        return entries, set()
    # Partitions are taken in with their offsets and this record in one transaction. So what this record
    # counts has offsets now. The offsets that were read above may be older than the record.
    recorded = recorded_partitions(settings)
    entries = committed_offsets(consumer, parts, stopping)
    missing = {entry.partition for entry in entries if entry.offset < 0}
    return entries, set() if recorded is None else {p for p in missing if p >= recorded}


def stable_states(
    consumer: Consumer, settings: Settings, stopping: Callable[[], bool], *, partitions: int
) -> tuple[dict[int, PartitionState], set[int]]:
    """Committed states of the first `partitions` input partitions,
    once no transaction is pending that may change one.

    A partition without an offset is absent. The second of the pair are those that were added and are not
    taken in yet.

    Raises as `offsets_and_added` does, IncompatibleStateError for a state that cannot be read.
    """
    entries, added = offsets_and_added(consumer, settings, range(partitions), stopping)
    return _decoded(entries), added


def _first_partitions(settings: Settings, count: int) -> list[TopicPartition]:
    topic = settings.topic("input")
    return [TopicPartition(topic, number) for number in range(count)]


def _decoded(entries: list[TopicPartition]) -> dict[int, PartitionState]:
    """The states with these committed offsets. A partition without an offset is left out."""
    return {
        entry.partition: PartitionState.decode(entry.metadata, offset=entry.offset)
        for entry in entries
        if entry.offset >= 0
    }


def check_continues(settings: Settings, state: PartitionState, topic_ids: TopicIds, where: str) -> None:
    """Raise unless this committed state belongs to this query and to these very topics.

    Raises IncompatibleStateError for another query, DataLossError for a topic that was made anew. where: the
    input partition, in words.
    """
    if state.fingerprint != settings.fingerprint:
        raise IncompatibleStateError(
            f"{where} was read for query {state.fingerprint}, but the settings now describe query"
            f" {settings.fingerprint}: key, time, windows, aggregates, lateness, input or the number of"
            " partitions or buckets changed",
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


def refuse_smaller(settings: Settings, states: Mapping[int, PartitionState]) -> None:
    """Raise IncompatibleStateError if a partition has a larger `out_of_orderness` than these settings:
    it may only grow.

    This is for a start. An instance that runs keeps the larger value, so that instances can get new settings
    one by one.
    """
    query = settings.query
    largest = max((state.out_of_orderness(query) for state in states.values()), default=0)
    if largest > query.out_of_orderness:
        at = [p for p, state in states.items() if state.out_of_orderness(query) > query.out_of_orderness]
        raise IncompatibleStateError(
            f"query.out_of_orderness is {format_duration(query.out_of_orderness)}, but input"
            f" {partitions_of(at)} {'is' if len(at) == 1 else 'are'} judged by up to"
            f" {format_duration(largest)} already: it may only grow while a query runs",
            hint=(
                f'set query.out_of_orderness = "{format_duration(largest)}" or more, in the settings of every'
                " instance, or give the query a new name"
            ),
        )


def committed_offsets(
    consumer: Consumer, partitions: list[TopicPartition], stopping: Callable[[], bool]
) -> list[TopicPartition]:
    """The offsets that the consumer's group has committed, asked for again until the broker knows them.

    Raises Stopping if `stopping` becomes true before that, KafkaException for an answer that no waiting
    heals.
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
            raise StopRequested(f"gave up waiting for committed offsets: {cause}")
        if not waiting:
            log.info("waiting for the committed offsets (a transaction may be pending): %s", cause)
        waiting = True


def state_reader(settings: Settings, *, stable: bool = False) -> Consumer:
    """A client that reads the committed offsets of the data plane's group without being a member.

    stable: the broker answers only while no transaction is pending that may change these offsets.

    The admin client's `list_consumer_group_offsets` is not used: while the group's coordinator is being
    loaded, as on a broker that has just started, that call of librdkafka 2.16 ends the whole process with a
    segmentation fault.
    """
    isolation = "read_committed" if stable else "read_uncommitted"
    return clients.consumer(
        settings.kafka, group=data_plane_group(settings), **{"isolation.level": isolation}
    )


def committed_states(
    reader: Consumer, settings: Settings, *, partitions: int | None = None
) -> dict[int, PartitionState]:
    """Last committed state of every input partition, whoever owns it.

    partitions: how many there are, None for as many as the settings say. A partition without an offset is
    absent.

    Raises ServiceError if the broker does not know the offsets within `kafka.request_timeout`.
    """
    deadline = time.monotonic() + settings.kafka.request_timeout / 1000
    try:
        count = settings.input_partitions if partitions is None else partitions
        answer = committed_offsets(
            reader, _first_partitions(settings, count), lambda: time.monotonic() >= deadline
        )
    except StopRequested as error:
        raise ServiceError(f"the group {data_plane_group(settings)} has no coordinator: {error}") from None
    return _decoded(answer)


def all_states(settings: Settings, *, stable: bool = False) -> dict[int, PartitionState]:
    """As `committed_states`, with a `state_reader` of its own, for callers that ask once.

    Raises ServiceError without rights to the group.
    """
    # Asked first for its error: a consumer without rights to the group would only be kept waiting.
    members(settings.kafka, data_plane_group(settings))
    reader = state_reader(settings, stable=stable)
    try:
        return committed_states(reader, settings)
    finally:
        reader.close()
