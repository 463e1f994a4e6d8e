"""A consumer with confluent-kafka's interface: assigned by hand, or a member of a group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import OFFSET_INVALID, KafkaError, TopicPartition

from tests.faults.model import network
from tests.faults.model.errors import kafka_error, timed_out
from tests.faults.model.groups import Member, Parts
from tests.faults.model.listing import listed
from tests.faults.model.log import Batch, Log, Message

_WAIT = 0.02
_UNKNOWN = -1001
"""What librdkafka says of an end that it does not know yet."""
Callback = Callable[[Any, list[TopicPartition]], object]


@dataclass
class _Position:
    """Where a partition is read. end_told: the end that was told last. failed: an error was told, and it
    is read no more.
    """

    offset: int
    end_told: int = -1
    failed: bool = False
    paused: bool = False
    high: int = _UNKNOWN


class Consumer:
    """Reads committed records, or all. Callbacks of a rebalance run inside `consume` and `close`."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._broker = network.broker()
        self._world = self._broker.world
        self._process = self._world.current
        self._config = config
        self._group: str = config["group.id"]
        self._committed = config.get("isolation.level", "read_committed") == "read_committed"
        self._tells_ends = bool(config.get("enable.partition.eof", False))
        self._positions: dict[tuple[str, int], _Position] = {}
        self._topics: list[str] = []
        self._callbacks: dict[str, Callback] = {}
        self._member: Member | None = None
        self._generation = -1
        self._owned: Parts | None = None
        self._closed = False

    # ---- what every client has

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        return self._world.call("list_topics", lambda: listed(self._broker), lost=timed_out)

    # ---- assignment

    def subscribe(
        self, topics: list[str], *, on_assign: Callback, on_revoke: Callback, on_lost: Callback | None = None
    ) -> None:
        self._topics = list(topics)
        self._callbacks = {"assign": on_assign, "revoke": on_revoke, "lost": on_lost or on_revoke}

    def assign(self, partitions: list[TopicPartition]) -> None:
        self._world.refuse_dead()
        paused = {part for part, position in self._positions.items() if position.paused}
        self._positions = {}
        for part in partitions:
            where = (part.topic, part.partition)
            self._positions[where] = _Position(part.offset, paused=where in paused)

    def unassign(self) -> None:
        self._world.refuse_dead()
        self._positions = {}

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        for part in partitions:
            self._positions.pop((part.topic, part.partition), None)

    def seek(self, partition: TopicPartition) -> None:
        self._world.refuse_dead()
        position = self._positions[partition.topic, partition.partition]
        position.offset, position.end_told = partition.offset, -1

    def pause(self, partitions: list[TopicPartition]) -> None:
        self._hold(partitions, True)

    def resume(self, partitions: list[TopicPartition]) -> None:
        self._world.refuse_dead()
        self._hold(partitions, False)

    def _hold(self, partitions: list[TopicPartition], paused: bool) -> None:
        for part in partitions:
            if (part.topic, part.partition) in self._positions:
                self._positions[part.topic, part.partition].paused = paused

    # ---- offsets

    def committed(self, partitions: list[TopicPartition], timeout: float = -1) -> list[TopicPartition]:
        wanted = {(part.topic, part.partition) for part in partitions}
        deadline = self._world.now + (timeout if timeout >= 0 else 30.0)
        while True:
            result = self._world.call("committed", lambda: self._offsets(wanted), lost=timed_out)
            if result is not None:
                return [_told(topic, number, result.get((topic, number))) for topic, number in sorted(wanted)]
            if self._world.now >= deadline:
                raise timed_out()
            self._world.sleep(_WAIT * 5)

    def _offsets(self, wanted: set[tuple[str, int]]) -> dict[tuple[str, int], Any] | None:
        """What the group has committed. None while a transaction may change it, for readers of committed
        records.
        """
        if self._committed and self._broker.transactions.pending(self._group, wanted):
            return None
        return dict(self._broker.groups.of(self._group).offsets)

    def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float = -1, cached: bool = False
    ) -> tuple[int, int]:
        log = self._broker.log(partition.topic, partition.partition)
        if cached:
            position = self._positions.get((partition.topic, partition.partition))
            if log is None or position is None or position.high < 0:
                return _UNKNOWN, _UNKNOWN
            return log.begin, position.high
        if log is None:
            raise kafka_error(KafkaError._UNKNOWN_PARTITION)
        return self._world.call("watermarks", lambda: (log.begin, self._end(log)), lost=timed_out)

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        return [
            TopicPartition(p.topic, p.partition, self._positions[p.topic, p.partition].offset)
            for p in partitions
        ]

    def consumer_group_metadata(self) -> Any:
        member = "" if self._member is None else self._member.name
        return self._group, self._generation, member

    # ---- reading

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        messages: list[Message] = []
        self._world.call("consume", lambda: None)
        deadline = self._world.now + timeout
        first = self._world.random.random() < 0.5
        if first:
            self._fetch(messages, num_messages)
        self._serve_the_group()
        if not first:
            self._fetch(messages, num_messages)
        left = deadline - self._world.now
        if len(messages) < num_messages and left > 0:
            self._world.sleep(left)
            self._fetch(messages, num_messages)
        return messages

    def close(self) -> None:
        if self._closed:
            raise RuntimeError("Consumer already closed")
        self._closed = True
        self._world.call("close", lambda: None)
        if self._owned is not None:
            self._give_up("revoke")
        if self._member is not None:
            self._broker.groups.leave(self._group, self._member)

    # ---- beneath

    def _end(self, log: Log) -> int:
        return log.stable_end if self._committed else log.end

    def _fetch(self, messages: list[Message], most: int) -> None:
        draw = self._world.random
        for where in draw.sample(sorted(self._positions), len(self._positions)):
            position = self._positions[where]
            log = self._broker.log(*where)
            if position.paused or position.failed or log is None:
                continue
            if position.offset < log.begin or position.offset > log.end:
                position.failed = True
                text = "fetch failed due to requested offset not available on the broker: no offset reset"
                messages.append(Message(log, None, -1, KafkaError(KafkaError._AUTO_OFFSET_RESET, text)))
                continue
            end = self._end(log)
            position.high = end
            few = most if draw.random() < 0.7 else draw.randint(1, 6)
            while position.offset < end and few > 0 and len(messages) < most:
                entry = log.entries[position.offset]
                if entry.batch is not None:
                    few -= 1
                    messages.append(_unfetchable(log, entry.batch))
                    if entry.batch.code != KafkaError._BAD_MSG:
                        break  # librdkafka stays before it
                    position.offset = entry.batch.last + 1
                    continue
                position.offset += 1
                if entry.visible() or (not self._committed and not entry.marker):
                    messages.append(Message(log, entry, entry.offset))
                    few -= 1
            if position.offset >= end and position.end_told != position.offset and len(messages) < most:
                position.end_told = position.offset
                if self._tells_ends:
                    end_of = KafkaError(KafkaError._PARTITION_EOF, "Broker: No more messages")
                    messages.append(Message(log, None, position.offset, end_of))

    def _serve_the_group(self) -> None:
        if not self._topics:
            return
        groups = self._broker.groups
        if self._member is None:
            self._member = self._world.call(
                "join", lambda: groups.join(self._group, self._process, self._topics, self._config)
            )
            return
        group, member, given = groups.of(self._group), self._member, self._member.given
        if member.gone:
            if self._owned is not None:
                self._give_up("lost")
            self._member, self._generation = None, -1
        elif group.rebalancing and not member.joined and self._world.now >= member.heard_at:
            if self._owned is not None:
                self._give_up("revoke")
            if not member.gone:
                groups.rejoin(self._group, member)
        # A member that has joined again waits for the next generation: it never gets the share of the one
        # before.
        elif given is not None and not member.joined and given[0] > self._generation and self._owned is None:
            self._generation, self._owned = given
            self._callbacks["assign"](self, [TopicPartition(topic, number) for topic, number in self._owned])

    def _give_up(self, how: str) -> None:
        owned, self._owned = self._owned or [], None
        self._callbacks[how](self, [TopicPartition(topic, number) for topic, number in owned])


def _unfetchable(log: Log, batch: Batch) -> Message:
    return Message(log, None, batch.first, KafkaError(batch.code, "this batch cannot be read"))


def _told(topic: str, number: int, committed: Any) -> TopicPartition:
    if committed is None:
        return TopicPartition(topic, number, OFFSET_INVALID)
    return TopicPartition(topic, number, committed.offset, committed.metadata)
