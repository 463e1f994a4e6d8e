"""Which owned partitions are read at present, and how many records of each are still to come."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from confluent_kafka import Consumer, TopicPartition

from partitioner_service.fetch.fetchers import Fetcher
from partitioner_service.kafka.log_ends import Ask

_ASK_EVERY = 1.0


class FetchControl:
    """Holds partitions back, and lets them go on. paused: the partitions that are held back now.

    absent: partitions that are owned, and that librdkafka does not fetch in any case: they are not assigned
    to it. librdkafka does not hear how far the log of a partition grows that it does not fetch. So `ask` is
    called for the paused partitions once a second.
    """

    def __init__(
        self,
        consumer: Consumer,
        fetcher: Fetcher,
        topic: str,
        ask: Ask,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.paused: set[int] = set()
        self.absent: frozenset[int] = frozenset()
        self._stopped: set[int] = set()
        self._consumer = consumer
        self._fetcher = fetcher
        self._topic = topic
        self._ask = ask
        self._clock = clock
        self._asked_at = clock()
        self._grown: dict[int, int] = {}
        self._ends: dict[int, int] = {}

    def hold(self, partitions: set[int], *, stuck: Collection[int] = ()) -> None:
        """Read nothing of exactly these partitions, which must be assigned, and read all others.

        A pause throws away what librdkafka has fetched ahead. So the partitions are left alone where the
        fetcher can do so. stuck: partitions that are not fetched either.
        """
        if not self.paused | self.absent and (partitions or stuck):
            self._asked_at = self._clock()
        stop = self._fetcher.leave(partitions.difference(stuck)).union(stuck) - self.absent
        if stop - self._stopped:
            self._consumer.pause(self._places(stop - self._stopped))
        if self._stopped - stop:
            self._consumer.resume(self._places(self._stopped - stop))
        self._stopped = set(stop)
        self.paused = partitions.union(stuck)
        self._ask_after_paused()

    def resume_all(self) -> None:
        """Let all partitions go on. Call this while they are still assigned.

        Otherwise librdkafka would keep them paused through the next `assign` or rebalance.
        """
        self._fetcher.leave(())
        if self._stopped:
            self._consumer.resume(self._places(self._stopped))
        self._stopped, self.paused = set(), set()

    def _places(self, partitions: Collection[int]) -> list[TopicPartition]:
        return [TopicPartition(self._topic, partition) for partition in sorted(partitions)]

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
