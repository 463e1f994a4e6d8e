"""Records of a fetch as columns. A record of its own is made of them only where somebody asks for one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

import numpy as np
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError

from evenflow.numeric.arrays import Int32s, Int64s
from partitioner_service.reading.cells.payloads import Payloads

if TYPE_CHECKING:  # Spark's image has no aiokafka
    from topics.batches.raw_batches import RawRecord

Headers = list[tuple[str, bytes | str | None]]


@dataclass(frozen=True, eq=False)
class HeaderColumns:
    """The headers of n records."""

    begins: Int64s
    """Record i has the headers begins[i] .. begins[i + 1] - 1. Shape (n + 1,)."""
    names: Payloads
    """Names of all headers, one record after the other."""
    values: Payloads
    """Values of the same headers."""

    def of(self, row: int) -> Headers | None:
        """The headers of this record, None if it has none."""
        low, high = int(self.begins[row]), int(self.begins[row + 1])
        names = (name or b"" for name in self.names[low:high])
        pairs: Headers = [
            (name.decode(errors="replace"), value)
            for name, value in zip(names, self.values[low:high], strict=True)
        ]
        return pairs or None


@dataclass(frozen=True)
class FetchedRecord:
    """A record with confluent-kafka's interface (`topics.records.Record`)."""

    place: tuple[str, int, int]
    """Topic, partition and offset."""
    stamp: tuple[int, int]
    """Kind of the timestamp, and ms."""
    raw_key: bytes | None
    """Bytes of the key. None if the record has none."""
    raw_value: bytes | None
    """Bytes of the value. None if the record has none."""
    beside: Headers | None = None
    """The headers. None if there are none."""
    failure: KafkaError | None = None
    """What Kafka says instead of a record. None for a record."""

    @classmethod
    def of(cls, raw: RawRecord, topic: str, partition: int) -> FetchedRecord:
        """A record of a batch that was fetched as it stands in the log."""
        return cls((topic, partition, raw.offset), raw.stamp, raw.key, raw.value, raw.headers or None)

    def topic(self) -> str:
        """The topic."""
        return self.place[0]

    def partition(self) -> int:
        """The partition, -1 for an error that is of none."""
        return self.place[1]

    def offset(self) -> int:
        """The offset, that of the end for the end of a log."""
        return self.place[2]

    def key(self) -> bytes | None:
        """The key."""
        return self.raw_key

    def value(self) -> bytes | None:
        """The value."""
        return self.raw_value

    def timestamp(self) -> tuple[int, int]:
        """The kind of the timestamp, and ms."""
        return self.stamp

    def headers(self) -> Headers | None:
        """The headers, None if there are none."""
        return self.beside

    def error(self) -> KafkaError | None:
        """What Kafka says instead of a record."""
        return self.failure

    def __len__(self) -> int:
        return len(self.raw_value or b"")


@dataclass(frozen=True, eq=False)
class RecordColumns(Sequence[FetchedRecord]):
    """n records of one topic. A slice is a view. Arrays have shape (n,)."""

    topic: str
    """The one topic of all records."""
    partitions: Int64s
    """Partition of each record."""
    offsets: Int64s
    """Offset of each record in its partition."""
    stamps: Int64s
    """Timestamp of each record, in ms."""
    kinds: Int32s
    """Kind of each timestamp, as confluent-kafka numbers them."""
    keys: Payloads
    """Key of each record, None for a record without one."""
    values: Payloads
    """Value of each record, None for a record without one."""
    headers: HeaderColumns | None = None
    """Headers of the records. None if no record has any."""
    first: int = 0
    """The record of `headers` at which these begin."""

    def append_times(self) -> Int64s:
        """When the broker appended each record, ms by its clock. -1 where the producer's timestamps are
        kept. Shape (n,).
        """
        return np.where(self.kinds == TIMESTAMP_LOG_APPEND_TIME, self.stamps, -1)

    def __len__(self) -> int:
        return len(self.offsets)

    @overload
    def __getitem__(self, at: int) -> FetchedRecord: ...
    @overload
    def __getitem__(self, at: slice) -> RecordColumns: ...
    def __getitem__(self, at: int | slice) -> FetchedRecord | RecordColumns:
        if isinstance(at, slice):
            low, high, _ = at.indices(len(self))
            return RecordColumns(  # not by `replace`, which takes most of the time of a small slice
                topic=self.topic,
                partitions=self.partitions[low:high],
                offsets=self.offsets[low:high],
                stamps=self.stamps[low:high],
                kinds=self.kinds[low:high],
                keys=self.keys[low:high],
                values=self.values[low:high],
                headers=self.headers,
                first=self.first + low,
            )
        row = range(len(self))[at]
        return FetchedRecord(
            place=(self.topic, int(self.partitions[row]), int(self.offsets[row])),
            stamp=(int(self.kinds[row]), int(self.stamps[row])),
            raw_key=self.keys[row],
            raw_value=self.values[row],
            beside=None if self.headers is None else self.headers.of(self.first + row),
        )
