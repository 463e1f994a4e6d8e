"""The newest records of a topic, bounded in number, bytes and time. A longer partition gives more of them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from evenflow.errors import DataLossError, ServiceError
from evenflow.settings import KafkaSettings
from partitioner_service.messages import marker_of, timestamp_of
from topics import reader
from topics.records import Record
from topics.state import TopicState

SAMPLE = 20_000
_LEAST = 100
"""How many records of a partition are read at least, if it has so many, however long the other partitions are."""
_MOST_BYTES = 64_000_000
_MOST_SECONDS = 4.0
_PATIENCE = 2.0


@dataclass
class Stretch:
    """Consecutive records at the end of one partition, without end-of-stream markers.

    length: offsets that the partition holds. ended: whether a marker was among the records. values, keys, timestamps:
    one entry for each record. A timestamp is in ms, and -1 if the record has none.
    """

    partition: int
    length: int
    ended: bool = False
    values: list[bytes | None] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    timestamps: list[int] = field(default_factory=list)

    def add(self, records: Iterable[Record]) -> None:
        """Add the next records of this partition, in offset order."""
        for record in records:
            if marker_of(record) is not None:
                self.ended = True
            else:
                self.values.append(record.value())
                self.keys.append(record.key())
                self.timestamps.append(timestamp_of(record))


@dataclass(frozen=True)
class TopicRecords:
    """A sample of a topic: one stretch for each partition, which is empty if the partition is."""

    topic: str
    stretches: tuple[Stretch, ...]

    @property
    def records(self) -> int:
        """Records in the sample, without markers."""
        return sum(len(stretch.values) for stretch in self.stretches)

    @property
    def values(self) -> list[bytes | None]:
        """The values of all records, one partition after the other."""
        return [value for stretch in self.stretches for value in stretch.values]

    @property
    def oldest(self) -> int | None:
        """Least record timestamp in ms. None if no record has a timestamp."""
        stamps = (stamp for stretch in self.stretches for stamp in stretch.timestamps if stamp >= 0)
        return min(stamps, default=None)


def newest_records(kafka: KafkaSettings, state: TopicState, *, most: int = SAMPLE) -> TopicRecords:
    """About `most` of the newest records, or fewer if they are large or come slowly.

    Raises ServiceError or DataLossError (records were deleted meanwhile) if nothing can be read.
    """
    found = {part: Stretch(part, state.end[part] - state.begin[part]) for part in sorted(state.begin)}
    sample = TopicRecords(state.name, tuple(found.values()))
    if not state.records:
        return sample
    deadline, size = time.monotonic() + _MOST_SECONDS, 0
    batches = reader.read_range(
        kafka, state.name, begin=begin_of_newest(state, most), end=state.end, timeout=_PATIENCE
    )
    try:
        for batch in batches:
            for record in batch:
                found[record.partition()].add([record])
            size += sum(map(len, batch))
            if size > _MOST_BYTES or time.monotonic() > deadline:
                break
    except (ServiceError, DataLossError):  # a part of the sample is better than none
        if not sample.records:
            raise
    finally:
        batches.close()
    return sample


def stretch(state: TopicState, tuples: int, *, first: bool) -> tuple[Mapping[int, int], Mapping[int, int]]:
    """Where to read from and to, by partition: the same share of each, and `tuples` records or a few more in all.

    first: whether the first records are wanted. Otherwise the newest are.
    """
    begin, end = dict(state.begin), dict(state.end)
    for partition in begin:
        length = end[partition] - begin[partition]
        wanted = min(length, -(-length * tuples // state.records))  # rounded up
        if first:
            end[partition] = begin[partition] + wanted
        else:
            begin[partition] = end[partition] - wanted
    return begin, end


def begin_of_newest(state: TopicState, most: int) -> dict[int, int]:
    """Offset by partition from which the newest records are read.

    Each partition gives a share by its length, but enough records to judge it.
    """
    by_length, end = stretch(state, most, first=False)
    return {part: max(state.begin[part], min(by_length[part], end[part] - _LEAST)) for part in state.begin}
