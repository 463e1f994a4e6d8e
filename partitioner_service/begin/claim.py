"""The beginning of a query: give every input partition its first committed state, exactly once.

From then on a partition without committed state is an error, never a fresh start.

Several instances may start at once, and Kafka accepts offsets from outside of a group even while the group
has members. So the beginning is locked before it is read, in three steps:

1. `init_transactions` of the id `<query>.claim` takes the lock. It fences the instance that held the lock
   before.
2. The committed offsets are read.
3. The first offsets are committed, unless there are some.

If an instance is fenced between its steps 2 and 3, its commit fails, and it looks again. A commit that was
under way when another instance took the lock is either aborted, or complete by the time `init_transactions`
returns. Hence step 2 reads stable offsets.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

from confluent_kafka import KafkaException, Producer, TopicPartition

from evenflow.errors import IncompatibleStateError
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from evenflow.settings.beginning import Beginning
from partitioner_service.kafka.committed_state import all_states, data_plane_group, refuse_smaller
from partitioner_service.kafka.watchdog import Watchdog
from topics import admin as topic_admin
from topics import clients
from topics.offsets import first_offsets
from topics.query.record import read_beginning, recorded_partitions, write_beginning
from topics.state import TopicState

log = logging.getLogger(__name__)

_TRIES = 10
"""Attempts to claim the query."""
_LOOKS = 20
"""Looks, `_LOOK_SECONDS` apart, at whether the instance that took the lock has committed."""
_LOOK_SECONDS = 0.1
_TRANSACTION_TIMEOUT_MS = 10_000


def claim(settings: Settings, watchdog: Watchdog, *, pause: Callable[[float], None] = time.sleep) -> None:
    """Commit the initial state of every input partition, unless the query has already begun.

    pause: sleeps for so many seconds. Raises IncompatibleStateError if offsets are gone although the query
    had begun, if Kafka refuses the first offsets again and again, or as `refuse_smaller` does.
    """
    refusal = None
    for _ in range(_TRIES):
        if _has_begun(settings, pause, looks=1 if refusal is None else _LOOKS):
            return
        refusal = _Claim(settings, watchdog).attempt()
        if refusal is None:
            return
        log.info("another instance begins the query: %s", refusal)
    raise IncompatibleStateError(
        f"could not commit the first offsets of {settings.topic('input')} for group"
        f" {data_plane_group(settings)}: {refusal}",
        hint=(
            "unless rights are missing, members that know nothing of this query are in that group: stop them"
        ),
    )


def _has_begun(settings: Settings, pause: Callable[[float], None], *, looks: int) -> bool:
    """Whether every partition has its state. looks: how often to look.

    After a refusal another instance is committing.
    """
    for look in range(looks):
        known = all_states(settings)
        if len(known) == settings.input_partitions or _complete(known, recorded_partitions(settings)):
            refuse_smaller(settings, known)
            return True
        if look + 1 < looks:
            pause(_LOOK_SECONDS)
    return False


def _complete(states: Mapping[int, PartitionState], count: int | None) -> bool:
    """Whether each of the `count` partitions that the query has taken in has its state.

    Partitions that were added to the topic since then are taken in by `added`.
    """
    return count is not None and set(range(count)) <= set(states)


class _Claim:
    """One attempt to claim the query: lock, read, commit, in this order."""

    def __init__(self, settings: Settings, watchdog: Watchdog) -> None:
        self._settings = settings
        self._watchdog = watchdog
        self._input, self._routed = settings.topic("input"), settings.topic("routed")
        self._rejected = settings.topic("rejected")

    def attempt(self) -> str | None:
        """Returns None if the query has begun by now, and Kafka's words if Kafka refused."""
        try:
            producer = lock(self._settings, self._watchdog)
            first = self._first_offsets()
            if first:
                commit_first(self._settings, self._watchdog, producer, first)
                log.info(
                    "query %s begins at the %s records of %s: %s",
                    self._settings.query.name,
                    self._settings.input.start,
                    self._input,
                    ", ".join(f"[{entry.partition}] at {entry.offset}" for entry in first),
                )
        except KafkaException as error:
            return str(error.args[0].str())
        return None

    def _first_offsets(self) -> list[TopicPartition]:
        """Where every partition begins, with its first state as metadata. Empty if the query has begun."""
        # The topics are described, and the query's record is read, before the offsets are read. Records are
        # only written after a claim, and the query's record with it. So if either is there, the offsets must
        # all be there. In the other order a claim in between would look like a loss.
        topics = topic_admin.describe(self._settings.kafka, [self._input, self._routed, self._rejected])
        beginning = read_beginning(self._settings)
        states = all_states(self._settings, stable=True)
        if len(states) == self._settings.input_partitions:
            return []
        if beginning is not None and _complete(states, len(beginning.begin)):
            return []
        self._refuse_lost(topics, states, begun=beginning is not None)
        begin = first_offsets(self._settings.kafka, topics[self._input], self._settings.input.start)
        return [
            TopicPartition(
                self._input,
                partition,
                offset,
                PartitionState(
                    fingerprint=self._settings.fingerprint,
                    topic_id=topics[self._input].topic_id,
                    routed_id=topics[self._routed].topic_id,
                    rejected_id=topics[self._rejected].topic_id,
                    begin=offset,
                    offset=offset,
                ).encode(),
            )
            for partition, offset in begin.items()
        ]

    def _refuse_lost(
        self, topics: Mapping[str, TopicState], states: Mapping[int, PartitionState], *, begun: bool
    ) -> None:
        """Raise IncompatibleStateError if committed offsets were lost.

        The first offsets were committed together with the query's record. So some offsets without the others
        are a loss, and so is that record, or anything that the query wrote, without any offset.

        begun: whether the query's record is there.
        """
        written = [name for name in (self._routed, self._rejected) if any(topics[name].end.values())]
        if not written and not states and not begun:
            return
        missing = sorted(set(topics[self._input].begin) - set(states))
        holds = f"{' and '.join(written)} {'hold' if written[1:] else 'holds'} what the query wrote"
        raise IncompatibleStateError(
            f"{holds if written else 'the query has begun'}, but the group {data_plane_group(self._settings)}"
            f" has no committed offsets of input partitions {missing}",
            hint=GONE,
        )


GONE = (
    "the offsets expired (the broker's offsets.retention.minutes while no partitioner ran) or were deleted."
    " `evenflow partition --from-routed` continues where the routed frames end, `evenflow reset` begins anew:"
    " see 'Rebuild after data loss' in docs/operations/data-loss.md"
)
"""What to do about committed offsets that are gone."""


def lock(settings: Settings, watchdog: Watchdog) -> Producer:
    """The only producer that may begin this query from now on.

    The producer that had the lock before is fenced.
    """
    producer = clients.producer(
        settings.kafka,
        **{
            "transactional.id": f"{settings.query.name}.claim",
            "transaction.timeout.ms": _TRANSACTION_TIMEOUT_MS,
        },
    )
    timeout = clients.seconds(settings.kafka)
    with watchdog.bounded("init_transactions", timeout):
        producer.init_transactions(timeout)
    return producer


def commit_first(
    settings: Settings,
    watchdog: Watchdog,
    producer: Producer,
    offsets: list[TopicPartition],
    *,
    began_at: int | None = None,
) -> None:
    """Commit the first offsets together with the record of how the query began.

    producer: from `lock`. offsets: of all input partitions, with their states. began_at: ms since 1970. None:
    now.
    """
    states = {
        entry.partition: PartitionState.decode(entry.metadata, offset=entry.offset) for entry in offsets
    }
    beginning = Beginning(
        identity=settings.identity(),
        input_id=states[0].topic_id,
        begin={partition: state.begin for partition, state in states.items()},
        began_at=int(time.time() * 1000) if began_at is None else began_at,
        any_columns=tuple(sorted(settings.query.any_columns)),
    )
    producer.begin_transaction()
    write_beginning(producer, settings, beginning)
    commit_offsets(settings, watchdog, producer, offsets)


def commit_offsets(
    settings: Settings, watchdog: Watchdog, producer: Producer, offsets: list[TopicPartition]
) -> None:
    """Commit the transaction that this producer has begun, together with these offsets.
    producer: from `lock`.
    """
    timeout = clients.seconds(settings.kafka)
    consumer = clients.consumer(settings.kafka, group=data_plane_group(settings))
    try:
        with watchdog.bounded("send_offsets_to_transaction", timeout):
            producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), timeout)
        with watchdog.bounded("commit_transaction", timeout):
            producer.commit_transaction(timeout)
    finally:
        consumer.close()
