"""The newest records of a topic, every partition by its length: bounded in number, bytes and time."""

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
"""Records of a partition that are read at least, however short it is beside the others."""
_MOST_BYTES = 64_000_000
_MOST_SECONDS = 4.0
_PATIENCE = 2.0


@dataclass
class Stretch:
    """Consecutive records at the end of one partition, without end-of-stream markers.

    length: offsets that the partition holds. ended: a marker is among the records. timestamps: ms, -1 where a
    record has none.
    """

    partition: int
    length: int
    ended: bool = False
    values: list[bytes | None] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    timestamps: list[int] = field(default_factory=list)

    def add(self, records: Iterable[Record]) -> None:
        """The next records of this partition, in offset order."""
        for record in records:
            if marker_of(record) is not None:
                self.ended = True
            else:
                self.values.append(record.value())
                self.keys.append(record.key())
                self.timestamps.append(timestamp_of(record))


@dataclass(frozen=True)
class TopicRecords:
    """A sample of a topic: one stretch a partition, empty where the partition is."""

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
        """Least record timestamp, ms. None where no record has one."""
        stamps = (stamp for stretch in self.stretches for stamp in stretch.timestamps if stamp >= 0)
        return min(stamps, default=None)


def newest_records(kafka: KafkaSettings, state: TopicState, *, most: int = SAMPLE) -> TopicRecords:
    """At most about `most` of the newest records. Fewer when they are large or come slowly.

    ServiceError or DataLossError (deleted meanwhile) when nothing can be read.
    """
    found = {part: Stretch(part, state.end[part] - state.begin[part]) for part in sorted(state.begin)}
    sample = TopicRecords(state.name, tuple(found.values()))
    if not state.records:
        return sample
    deadline, size = time.monotonic() + _MOST_SECONDS, 0
    blocks = reader.read_range(
        kafka, state.name, begin=begin_of_newest(state, most), end=state.end, timeout=_PATIENCE
    )
    try:
        for block in blocks:
            for record in block:
                found[record.partition()].add([record])
            size += sum(map(len, block))
            if size > _MOST_BYTES or time.monotonic() > deadline:
                break
    except (ServiceError, DataLossError):  # of what could be read there is something to say
        if not sample.records:
            raise
    finally:
        blocks.close()
    return sample


def stretch(state: TopicState, tuples: int, *, first: bool) -> tuple[Mapping[int, int], Mapping[int, int]]:
    """Begin and end by partition: of each the same share of its records, `tuples` or a few more in all."""
    begin, end = dict(state.begin), dict(state.end)
    for partition in begin:
        length = end[partition] - begin[partition]
        wanted = min(length, -(-length * tuples // state.records))
        if first:
            end[partition] = begin[partition] + wanted
        else:
            begin[partition] = end[partition] - wanted
    return begin, end


def begin_of_newest(state: TopicState, most: int) -> dict[int, int]:
    """Where the newest records begin: each partition by its length, none with less than is needed to judge it."""
    by_length, end = stretch(state, most, first=False)
    return {part: max(state.begin[part], min(by_length[part], end[part] - _LEAST)) for part in state.begin}
