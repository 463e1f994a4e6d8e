"""What one fetch holds: records by partition, and what Kafka said between them. Every way of fetching
makes the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import methodcaller
from typing import Any

import numpy as np

from evenflow.numeric.arrays import Int64s
from partitioner_service.fetch.messages import timestamp_of
from partitioner_service.reading.cells.payloads import Payloads
from topics.records import Record

_ERROR, _PARTITION, _OFFSET, _KEY, _VALUE = map(
    methodcaller, ("error", "partition", "offset", "key", "value")
)


@dataclass(frozen=True, eq=False)
class FetchResult:
    """n records, those of a partition together and in the order in which they came,
    and the events among them.
    """

    partitions: Int64s
    """Input partition of each record, ascending, shape (n,)."""
    offsets: Int64s
    """Offset of each record in its partition, shape (n,)."""
    arrival: Int64s
    """Where each record came among all records of the fetch, shape (n,)."""
    values: Payloads
    """Value of each record, n entries."""
    records: Sequence[Record]
    """The records themselves, n entries, for what is seldom asked of them."""
    keys: Payloads | None = None
    """Key of each record, n entries. None if they have to be asked of `records`."""
    stamps: Int64s | None = None
    """Timestamp of each record in ms, -1 for none, shape (n,). None if they have to be asked of `records`."""
    events: Sequence[tuple[int, Record]] = ()
    """Errors and ends of logs, each with the number of records that came before it."""
    astray: Sequence[Record] = ()
    """Records that came another way than they should, and are not among the others. If there are any, reading
    has to go back to them."""

    @classmethod
    def of_messages(cls, messages: Sequence[Record]) -> FetchResult:
        """What these messages hold, which came in this order."""
        # `map` over C calls. At this rate of records even an empty loop in Python would be a third of all
        # work.
        records, events = messages, []
        if any(map(_ERROR, messages)):
            records = []
            for message in messages:
                if message.error() is None:
                    records.append(message)
                else:
                    events.append((len(records), message))
        partitions = _numbers(_PARTITION, records)
        arrival = np.arange(len(records))
        if (partitions[1:] < partitions[:-1]).any():
            arrival = np.argsort(partitions, kind="stable")
            partitions = partitions[arrival]
            records = list(map(records.__getitem__, arrival.tolist()))
        values = Payloads.of(list(map(_VALUE, records)))
        return cls(partitions, _numbers(_OFFSET, records), arrival, values, records, events=events)

    @property
    def empty(self) -> bool:
        """Whether nothing has come, neither a record, astray or not, nor an event."""
        return not len(self.partitions) and not self.events and not self.astray

    @property
    def runs(self) -> Iterator[tuple[int, int, int]]:
        """Each partition with its first record and the one behind its last."""
        cuts = [0, *(np.flatnonzero(np.diff(self.partitions)) + 1).tolist(), len(self.partitions)]
        for low, high in pairwise(cuts):
            if low < high:
                yield int(self.partitions[low]), low, high

    def keys_of(self, low: int, high: int) -> Payloads:
        """The keys of the records low .. high - 1."""
        if self.keys is not None:
            return self.keys[low:high]
        return Payloads.of(list(map(_KEY, self.records[low:high])))

    def stamps_of(self, low: int, high: int) -> Int64s:
        """The timestamps of the records low .. high - 1, as of `stamps`."""
        if self.stamps is not None:
            return self.stamps[low:high]
        return _numbers(timestamp_of, self.records[low:high])


def _numbers(field: Callable[[Any], int], records: Sequence[Record]) -> Int64s:
    return np.fromiter(map(field, records), np.int64, len(records))
