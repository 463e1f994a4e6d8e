"""Input partitions whose next record cannot be fetched: a batch that does not decompress, or that is damaged.

librdkafka reports such a batch again and again and stays before it, or reports it once and goes on behind it.
So the partition is stopped at its first report. Nothing behind the batch is read before an operator says so.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError

from evenflow.progress import PartitionState
from topics.records import UNFETCHABLE, Record

log = logging.getLogger(__name__)

_RETRY = 30.0
"""Seconds after which such a batch is fetched again: damage on the way heals,
and so does a batch that retention deletes."""


@dataclass(frozen=True)
class Unfetchable:
    """A batch that cannot be fetched."""

    partition: int
    """Partition of the input topic that holds the batch."""
    offset: int
    """The batch's first offset that is not read yet."""
    why: str
    """What librdkafka says."""


class UnfetchableBatches:
    """The batch at which each owned partition is stuck.

    A partition that is stuck hands over no record, whatever comes, until it is fetched again or let go.
    """

    def __init__(self, topic: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._topic, self._clock = topic, clock
        self._batches: dict[int, Unfetchable] = {}
        self._since: dict[int, float] = {}
        self._tried: dict[int, float] = {}
        self.trying: set[int] = set()
        """Partitions that are fetched again, and of which neither a record nor an error has come yet."""

    @property
    def batches(self) -> Mapping[int, Unfetchable]:
        """Partition -> the batch at which it is stuck."""
        return self._batches

    def take(self, message: Record, error: KafkaError) -> bool:
        """Note this error if it says that a batch cannot be fetched. Returns whether it does."""
        if error.code() not in UNFETCHABLE:
            return False
        partition, offset = message.partition(), message.offset()
        if partition not in self._batches and partition is not None:
            offset = -1 if offset is None else offset
            if partition not in self._since:  # a batch that is tried again is told once
                self._since[partition] = self._clock()
                log.error(
                    "%s[%d] cannot be read on at offset %d: %s; see 'A record that cannot be fetched' in "
                    "docs/operations/rejected-records.md",
                    *(self._topic, partition, offset, error.str()),
                )
            self._batches[partition] = Unfetchable(partition, offset, error.str())
            self.trying.discard(partition)
            self._tried[partition] = self._clock()
        return True

    def at(self, states: Mapping[int, PartitionState]) -> dict[int, Unfetchable]:
        """The same, where each offset is at or behind that of the partition's state.

        A partition may have been read up to the middle of a batch that is reported by its first offset.
        """
        return {
            partition: Unfetchable(partition, max(batch.offset, states[partition].offset), batch.why)
            for partition, batch in self._batches.items()
            if partition in states
        }

    def due(self) -> set[int]:
        """The partitions whose batch it is time to fetch again."""
        return {partition for partition, at in self._tried.items() if self._clock() - at >= _RETRY}

    def again(self, partitions: Collection[int]) -> None:
        """These partitions are fetched again. Those that are stuck still are reported again soon."""
        for partition in partitions:
            self._batches.pop(partition, None)
            self._tried.pop(partition, None)
            self.trying.add(partition)

    def all_again(self) -> None:
        """All partitions are assigned anew, and so fetched again."""
        self._batches.clear()
        self._tried.clear()
        self.trying.clear()

    def passed(self, partition: int) -> None:
        """A record of this partition has come, or an order has led past the batch."""
        self.trying.discard(partition)
        if partition in self._since and partition not in self._batches:
            log.info("%s[%d] is read again", self._topic, partition)
            del self._since[partition]

    def forget(self) -> None:
        """The partitions are given up."""
        self.all_again()
        self._since.clear()

    def standing_still(self, states: Mapping[int, PartitionState]) -> list[dict[str, Any]]:
        """What the status page shows, and the health page at once: waiting does not heal this."""
        return [
            {
                "what": "unfetchable",
                "partition": batch.partition,
                "offset": batch.offset,
                "seconds": round(self._clock() - self._since[batch.partition], 1),
                "at_once": True,
                "reason": (
                    f"offset {batch.offset} of input partition"
                    f" {batch.partition} cannot be fetched: {batch.why}"
                ),
            }
            for batch in self.at(states).values()
        ]
