"""Which owned partitions are fetched at present, and how many records of each are still to come."""

from __future__ import annotations

import time
from collections.abc import Callable

from confluent_kafka import Consumer, TopicPartition

from partitioner_service.kafka.log_ends import Ask

_ASK_EVERY = 1.0


class FetchControl:
    """Pauses and resumes partitions. paused: the partitions that are paused now.

    absent: partitions that are owned, and that librdkafka does not fetch in any case: they are not assigned
    to it. librdkafka does not hear how far the log of a paused partition grows. So `ask` is called for the
    paused partitions once a second.
    """

    def __init__(
        self, consumer: Consumer, topic: str, ask: Ask, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.paused: set[int] = set()
        self.absent: frozenset[int] = frozenset()
        self._consumer = consumer
        self._topic = topic
        self._ask = ask
        self._clock = clock
        self._asked_at = clock()
        self._grown: dict[int, int] = {}
        self._ends: dict[int, int] = {}

    def hold(self, partitions: set[int]) -> None:
        """Pause exactly these partitions, which must be assigned, and resume all others."""
        pause, resume = partitions - self.paused, self.paused - partitions
        if pause:
            self._asked_at = self._clock()
        if pause - self.absent:
            self._consumer.pause([TopicPartition(self._topic, p) for p in pause - self.absent])
        if resume - self.absent:
            self._consumer.resume([TopicPartition(self._topic, p) for p in resume - self.absent])
        self.paused = partitions
        self._ask_after_paused()

    def resume_all(self) -> None:
        """Resume all paused partitions. Call this while they are still assigned.

        Otherwise librdkafka would keep them paused through the next `assign` or rebalance.
        """
        resume = sorted(self.paused - self.absent)
        if resume:
            self._consumer.resume([TopicPartition(self._topic, p) for p in resume])
        self.paused = set()

    def forget_ends(self) -> None:
        """Forget where logs ended, because reading goes back."""
        self._ends.clear()

    def beyond(self, partition: int, offset: int) -> bool:
        """Whether this offset, of a record that has just come, lies at or behind the end of the log.

        No broker gives out such a record under its own number: a producer has written the offset. True as
        well where nobody says where the log ends. A partition that librdkafka does not fetch has no such
        record.
        """
        if partition in self.absent or offset < self._ends.get(partition, 0):
            return False
        # The end as of the newest fetch. If that one got something, too, the log reaches up to its offset.
        _, high = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), cached=True)
        if high < 0:  # the newest fetch was refused, as while a partition's leader moves
            high = self._ask({partition}).get(partition, high)
        self._ends[partition] = high
        return offset >= high

    def lag(self, partition: int, position: int) -> int | None:
        """Records between this position and the end of the log. None if the end is not known yet."""
        high = -1
        if partition not in self.absent:
            place = TopicPartition(self._topic, partition)
            _, high = self._consumer.get_watermark_offsets(place, cached=True)
        # Logs only grow, so the larger of two answers is the newer one. librdkafka says -1001 before it knows
        # an end.
        end = max(high, self._grown.get(partition, high))
        return None if end < 0 else max(0, end - position)

    def _ask_after_paused(self) -> None:
        if self.paused | self.absent and self._clock() - self._asked_at >= _ASK_EVERY:
            self._asked_at = self._clock()
            self._grown |= self._ask(self.paused | self.absent)
