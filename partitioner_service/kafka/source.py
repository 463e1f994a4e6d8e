"""Kafka in: which input partitions this instance owns, and up to where each has been read.

The metadata of a committed offset is the whole state of its partition. This state is read when a partition is
assigned, and nothing else is believed. A rebalance can happen inside any read. A block that was read across a
rebalance is thrown away and read again, because its transaction must not span the rebalance.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from evenflow.errors import ServiceError
from evenflow.progress import PartitionState, max_jump_words
from evenflow.reporting.words import numbers
from evenflow.reporting.words import partitions as partitions_of
from evenflow.settings import Settings
from evenflow.settings.durations import format_duration
from partitioner_service.block import Slice
from partitioner_service.fetch.fetch_result import FetchResult
from partitioner_service.fetch.fetchers import opened
from partitioner_service.kafka.committed_state import (
    TopicIds,
    check_continues,
    data_plane_group,
    load_states,
    stable_states,
)
from partitioner_service.kafka.detour import Detour
from partitioner_service.kafka.fetching import FetchControl
from partitioner_service.kafka.log_ends import LogEnds
from partitioner_service.kafka.slices import Slicer
from partitioner_service.kafka.unfetchable import UnfetchableBatches
from partitioner_service.routing.session import totals
from topics import clients
from topics.batches.bombs import Bomb, Suspect
from topics.offsets import known_offsets, log_ends
from topics.records import Record

log = logging.getLogger(__name__)

_METADATA_SECONDS = 30.0
_ASK_SECONDS = 2.0
"""How long the brokers may take to say where logs end."""

Settle = Callable[[bool], None]
"""Ends the open transaction. Its argument says whether the transaction may still be committed."""


class Source:
    """Reads the input topic as a member of the data plane's group.

    The source owns the states of its partitions. Others read them, and bring them up to date by `move` and
    `note_committed`.
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
        self._states: dict[int, PartitionState] = {}
        self._committed: dict[int, PartitionState] = {}
        self.totals: dict[int, int] = {}
        """How many frames each session has written, as committed at the last assignment."""
        self.partition_count = settings.input_partitions
        """How many input partitions the query has taken in by the last look, whoever owns them."""
        self.added: frozenset[int] = frozenset()
        """Partitions that the topic has besides. Nobody reads them yet."""
        self._assigned: list[TopicPartition] = []
        self.just_assigned = False
        """Whether no record has come since the last assignment. Pausing before the first can lose the
        position in librdkafka.
        """
        self.share_known = False
        """Whether the group has said what is ours. It has not before the first assignment, and between giving
        up and the next one.
        """
        self.rebalances = 0
        """How many rebalances there were."""
        self.rewinds = 0
        """How often reading went back."""
        self._settings = settings
        self._topic = settings.topic("input")
        self._topic_ids = topic_ids
        self._stopping = stopping
        self._failure: BaseException | None = None
        self.ends = LogEnds(self._ends_now, clock=clock)
        """Where the logs were seen to end."""
        self.unfetchable = UnfetchableBatches(self._topic, clock=clock)
        """Partitions that are stuck."""
        self._consumer, self._fetcher = opened(settings, self._client, client_id=client_id(settings))
        self._fetching = FetchControl(self._consumer, self._fetcher, self._topic, self._ends_now, clock=clock)
        self._slicer = Slicer(
            settings,
            needs_key=needs_key,
            needs_timestamp=needs_timestamp,
            ends=self.ends,
            unfetchable=self.unfetchable,
            fetching=self._fetching,
        )
        self._detour = Detour(settings.kafka, self._topic, clock=clock)
        self._turn = 0

    def _client(self, bounds: Mapping[str, int]) -> Consumer:
        group = data_plane_group(self._settings)
        return clients.consumer(
            self._settings.kafka, group=group, **consumer_config(self._settings), **bounds
        )

    def subscribe(self, settle: Settle) -> None:
        """Join the group. Partitions arrive in a later `read`.

        `settle` is called before ownership is given up.
        """

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
    def states(self) -> Mapping[int, PartitionState]:
        """The working state of every owned partition. It stands behind all that was read and handed on."""
        return self._states

    def move(self, states: Mapping[int, PartitionState]) -> None:
        """Bring the working states of these owned partitions up to date."""
        self._states.update(states)

    @property
    def committed(self) -> Mapping[int, PartitionState]:
        """The state of every owned partition as of its last commit."""
        return self._committed

    def note_committed(self, states: Mapping[int, PartitionState]) -> None:
        """Note that these states were committed."""
        self._committed.update(states)

    def note_taken_in(self, partitions: Collection[int]) -> None:
        """Note that the query has taken in these of the added partitions."""
        self.added = self.added.difference(partitions)
        self.partition_count += len(partitions)

    @property
    def reading(self) -> str:
        """How records come, as of `partitioner.reading`. The setting may differ (`fetch.fetchers`)."""
        return self._fetcher.name

    @property
    def group_metadata(self) -> object:
        """What a transaction needs to commit offsets as this member of the group."""
        return self._consumer.consumer_group_metadata()

    def read(self, most: int, timeout: float) -> list[list[Slice]]:
        """The next records of owned partitions in blocks, a slice per partition. Mostly one block, or none.

        most: records. timeout: how long (s) to wait for them. Raises what went wrong in a rebalance,
        DataLossError when offsets are gone, ServiceError for errors that Kafka calls fatal.
        """
        self._go_around_disorder()
        self._try_again(self.unfetchable.due() & self.states.keys())
        self._turn += 1
        if self._turn % 2:  # the consumer has to be asked all the same, or the group takes it for dead
            around = self._detour.fetch(self.paused)
            if self._detour.past:
                self.rewind(self.states)
            if around is not None:
                return self._blocks(around)
        before = self.rebalances
        # The callbacks of a rebalance run inside `fetch`. What they raise is kept in `_failure`.
        fetched = self._fetcher.fetch(most, timeout)
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if self.rebalances != before:
            # These records may have been fetched before the rebalance. They are dropped, so reading has to go
            # back.
            if not fetched.empty and self.states:
                self.rewind(self.states)
            return []
        if fetched.astray:
            self._go_back_to(fetched.astray)
            return []
        if not fetched.empty:
            self.just_assigned = False
        return self._blocks(fetched)

    def _blocks(self, fetched: FetchResult) -> list[list[Slice]]:
        blocks = self._slicer.blocks(fetched, self.states)
        if not self.unfetchable.batches.keys() <= self.paused:
            self.hold(self.paused)
        return blocks

    def go_around(self, bombs: Mapping[int, Bomb | Suspect]) -> None:
        """Fetch nothing of these partitions with librdkafka before their bombs and suspects are behind us.
        Before the first `read`.
        """
        self._detour.bombs = dict(bombs)

    @property
    def bombs(self) -> dict[int, int]:
        """The offsets of the known bombs by partition, but for those that committed offsets are past."""
        return self._detour.ahead(self.committed)

    def _go_around_disorder(self) -> None:
        """Read partitions batch by batch of which records came out of order, or from behind the end of the
        log.

        A producer writes the offsets within a batch, and a broker does not look at them if the batch is not
        compressed. Read by itself, such a batch is known as damaged.
        """
        disordered, self._slicer.disordered = self._slicer.disordered & self.states.keys(), set()
        for partition in disordered:
            offset = self.states[partition].offset
            log.error(
                "records of %s[%d] came out of order, or from behind the end of its log, where offset %d was"
                " to come next; it is read batch by batch",
                *(self._topic, partition, offset),
            )
            self._detour.bombs[partition] = Suspect(offset, offset)
        if disordered:
            self.rewind(self.states)

    def _go_back_to(self, astray: Sequence[Record]) -> None:
        """Read on from where we are, because these records have come another way than they should.

        Raises ServiceError if what stands behind them was read already.
        """
        for record in astray:
            state = self.states.get(record.partition())
            if state is not None and record.offset() < state.offset:
                raise ServiceError(
                    f"offset {record.offset()} of"
                    f" {self._topic}[{record.partition()}] came after those behind it",
                    hint="with partitioner.reading = 'consume' records come another way; please report this",
                )
        log.info(
            "records of input partitions %s came by the consumer's own queue; they are fetched again",
            numbers({record.partition() for record in astray}),
        )
        if self.states:
            self.rewind(self.states)

    def rewind(self, states: Mapping[int, PartitionState]) -> None:
        """Continue from these states.

        The position and the working state of a partition always move together.
        """
        self._fetching.resume_all()
        self._fetching.forget_ends()
        self.rewinds += 1
        self._states = dict(states)
        self.ends.forget()
        self.unfetchable.all_again()
        self._fetching.absent = self._detour.leads(states)
        fetched = {p: state for p, state in states.items() if p not in self._fetching.absent}
        self.just_assigned = bool(fetched)
        self._fetcher.split(fetched)
        self._consumer.assign([TopicPartition(self._topic, p, s.offset) for p, s in fetched.items()])

    def _try_again(self, stuck: set[int]) -> None:
        """Fetch these partitions again from where they are stuck. All others are fetched as before."""
        if not stuck:
            return
        self.unfetchable.again(stuck)
        # Resumed before the seek, because a resumed partition goes on where librdkafka thinks that it was.
        self.hold(self.paused - stuck)
        self._detour.again(stuck, self.states)
        try:
            for partition in stuck - self._fetching.absent:
                self._consumer.seek(TopicPartition(self._topic, partition, self.states[partition].offset))
                self.ends.left(partition)
        except KafkaException as error:
            log.warning("input partitions %s are assigned again: %s", numbers(stuck), error)
            self.rewind(self.states)

    @property
    def paused(self) -> set[int]:
        """Owned partitions that are not read at present."""
        return self._fetching.paused

    def hold(self, partitions: Iterable[int]) -> None:
        """Read nothing of exactly these owned partitions, and of those that are stuck.

        One that is tried again is not paused before its first record: it could lose its position in
        librdkafka.
        """
        own, stuck = self.states.keys(), self.unfetchable.batches.keys()
        self._fetching.hold(own & (set(partitions) - self.unfetchable.trying), stuck=own & stuck)

    def look(self) -> dict[int, PartitionState]:
        """The committed states of all input partitions, once no transaction is pending.

        `partition_count` and `added` are brought up to date.
        """
        # Not asked with the group's own client: inside a rebalance the answer would begin another one.
        admin = clients.admin(self._settings.kafka)
        topic = admin.list_topics(self._topic, timeout=_METADATA_SECONDS).topics[self._topic]
        count = max(self._settings.input_partitions, self.partition_count, len(topic.partitions))
        everyone, added = stable_states(self._consumer, self._settings, self._stopping, partitions=count)
        self.partition_count, self.added = len(everyone), frozenset(added)
        return everyone

    @property
    def waiting(self) -> frozenset[int]:
        """Partitions that were assigned to this instance before the query took them in."""
        return frozenset(entry.partition for entry in self._assigned) - frozenset(self.states)

    def begins(self, partition: int) -> int:
        """Offset of the first record that the log of this partition holds."""
        # The group's own client may not know the partition yet.
        return known_offsets(self._settings.kafka, self._topic, [partition], OffsetSpec.earliest())[partition]

    def assign_again(self) -> None:
        """Go on with the partitions of the last assignment that the query has taken in by now.

        No transaction may be open. Raises what goes wrong, as `read` does.
        """
        self._on_assign(self._consumer, self._assigned)
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def check(self, states: Mapping[int, PartitionState]) -> None:
        """Raise unless these committed states belong to this query and these very topics, whoever owns
        them.
        """
        for partition, state in states.items():
            check_continues(self._settings, state, self._topic_ids, f"{self._topic}[{partition}]")

    def lag(self, partition: int) -> int | None:
        """Records between our position and the end of the log. None if the end is not known yet."""
        return self._fetching.lag(partition, self.states[partition].offset)

    def _ends_now(self, partitions: Collection[int]) -> dict[int, int]:
        return log_ends(self._settings.kafka, self._topic, partitions, timeout=_ASK_SECONDS)

    def close(self) -> None:
        """Leave the group. The revoke callback settles an open transaction first."""
        self._fetcher.close()
        self._consumer.close()
        self._detour.close()

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.rebalances += 1
        self._assigned = partitions
        try:
            states = load_states(
                consumer, self._settings, [p.partition for p in partitions], self._topic_ids, self._stopping
            )
            # The session that had these partitions may have committed its last frames with partitions that
            # another instance gets now. So the states of all partitions are read, and after those of our own.
            self.totals = totals(self.look())
            states = self._under_own_limits(states)
            self._committed = dict(states)
            self.rewind(states)
            self.share_known = True
            log.info("assigned input partitions %s: %s", numbers(states), _where(states))
        except BaseException as error:
            # `read` raises this. Until then no partition may be fetched whose state is not known.
            self._failure = error
            self._fetcher.take_back()
            consumer.assign([])

    def _under_own_limits(self, states: Mapping[int, PartitionState]) -> dict[int, PartitionState]:
        """These committed states with the `max_jump` and `out_of_orderness` of this instance's settings
        from here on.

        They are committed with the next offsets. If there is no such commit, no record was judged by them. A
        partition whose `out_of_orderness` is larger keeps it: another instance has larger settings already.
        """
        query = self._settings.query
        before = {p: max_jump_words(state.max_jump(query)) for p, state in states.items()}
        _say_changed("max_jump", before, max_jump_words(query.max_jump))
        disorders = {p: state.out_of_orderness(query) for p, state in states.items()}
        ours = format_duration(query.out_of_orderness)
        smaller = {p: format_duration(ms) for p, ms in disorders.items() if ms < query.out_of_orderness}
        _say_changed("out_of_orderness", smaller, ours)
        larger = [p for p, ms in disorders.items() if ms > query.out_of_orderness]
        if larger:
            log.warning(
                "input %s: still judged by query.out_of_orderness %s, although it is %s in this instance's"
                " settings: give all instances the larger one",
                partitions_of(larger),
                " or ".join(sorted({format_duration(disorders[p]) for p in larger})),
                ours,
            )
        return {partition: state.under(query) for partition, state in states.items()}

    def _give_up(self, consumer: Consumer, settle: Callable[[], None]) -> None:
        """End the transaction, then let go of all partitions.

        An error is kept for `read` and stops no later step.
        """
        # In this order: a transaction can only be committed, and a partition only resumed, while it is still
        # ours.
        self.rebalances += 1
        self.share_known = False
        try:
            settle()
        except BaseException as error:
            self._failure = error
        try:
            self._fetching.resume_all()
        except BaseException as error:
            self._failure = self._failure or error
        log.info("gave up input partitions %s", numbers(self.states))
        self._states = {}
        self._committed = {}
        self._fetching.absent = self._detour.leads({})
        self._assigned = []
        self.ends.forget()
        self.unfetchable.forget()
        self._fetcher.take_back()
        consumer.unassign()


def _say_changed(name: str, before: Mapping[int, str], now: str) -> None:
    """Log which partitions are judged by another value of a setting from here on. before: their old
    values.
    """
    changed = [partition for partition, value in before.items() if value != now]
    if changed:
        log.info(
            "input %s: judged by query.%s %s from here on (before: %s)",
            partitions_of(changed),
            name,
            now,
            " or ".join(sorted({before[partition] for partition in changed})),
        )


def consumer_config(settings: Settings) -> dict[str, Any]:
    """librdkafka settings of the data plane's consumer, but for the bounds on what it fetches ahead."""
    return {
        "enable.auto.commit": False,  # offsets are committed in the sink's transactions
        "auto.offset.reset": "error",  # any reset would silently skip or repeat records
        "isolation.level": "read_committed",
        "enable.partition.eof": True,  # tells `ends` where a log ends
        # An eager strategy: a rebalance first takes all partitions away, then hands each member all that it
        # owns.
        "partition.assignment.strategy": "range",
        "session.timeout.ms": 10_000,
        "heartbeat.interval.ms": 1_000,
        # How long a broker waits if it has nothing. A partition whose queue is full is not asked for, and has
        # to wait as well if all others are silent.
        "fetch.wait.max.ms": 20,
        "topic.metadata.refresh.interval.ms": 10_000,  # how soon partitions that were added are assigned
        "fetch.queue.backoff.ms": (
            10
        ),  # by default a full queue stops fetching for a second, even if it is empty long before
        "client.id": client_id(settings),
    }


def client_id(settings: Settings) -> str:
    """The name of this instance's consumer in the query's group."""
    return f"evenflow-{settings.query.name}-{settings.partitioner.instance}"


def _where(states: Mapping[int, PartitionState]) -> str:
    """Where reading begins, in words."""
    before = sum(state.read for state in states.values())
    return f"goes on after {before:,} records" if before else "from the beginning"
