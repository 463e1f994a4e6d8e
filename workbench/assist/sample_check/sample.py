"""A sample of a topic: the first, the middle and the newest records of each partition, bounded in number,
bytes and time.

A longer partition gives more of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from evenflow.settings import KafkaSettings
from partitioner_service.fetch.bounded_records import BoundedRecords
from partitioner_service.fetch.messages import marker_of, timestamp_of
from partitioner_service.fetch.record_columns import FetchedRecord
from topics.records import Record
from topics.state import TopicState

SAMPLE = 20_000
_LEAST = 100
"""How many records of a partition are read at least, if it has so many,
however long the other partitions are.
"""
Offsets = Mapping[int, int]
"""Offset by partition."""
Bounds = tuple[Offsets, Offsets]
"""First offsets, and those behind the last."""


@dataclass
class Stretch:
    """Records of one partition in offset order, without end-of-stream markers.

    The lists have one entry for each record.
    """

    partition: int
    """Number of the partition in its topic."""
    length: int
    """Offsets that the partition holds."""
    ended: bool = False
    """Whether a marker was among the records."""
    values: list[bytes | None] = field(default_factory=list)
    """Values as they stand in the topic."""
    keys: list[bytes | None] = field(default_factory=list)
    """Record keys."""
    timestamps: list[int] = field(default_factory=list)
    """Timestamps in ms, -1 for a record without one."""
    offsets: list[int] = field(default_factory=list)
    """Offsets in ascending order."""
    gaps: list[int] = field(default_factory=list)
    """Positions of records before which the sample leaves others out."""

    def add(self, records: Iterable[Record]) -> None:
        """Add the next records of this partition, in offset order."""
        for record in records:
            if marker_of(record) is not None:
                self.ended = True
            else:
                self.values.append(record.value())
                self.keys.append(record.key())
                self.timestamps.append(timestamp_of(record))
                self.offsets.append(record.offset())

    def of(self, rows: Sequence[int]) -> Stretch:
        """The stretch with only these records, in ascending order. No gaps are noted for the others."""
        some = replace(self, gaps=[bisect_left(rows, gap) for gap in self.gaps])
        for name in ("values", "keys", "timestamps", "offsets"):
            whole = getattr(self, name)
            setattr(some, name, [whole[row] for row in rows])
        return some

    def leave_out(self) -> None:
        """Say that the sample leaves out what lies before the next record."""
        if self.values and self.gaps[-1:] != [len(self.values)]:
            self.gaps.append(len(self.values))


@dataclass(frozen=True)
class TopicRecords:
    """A sample of a topic."""

    topic: str
    """Name of the topic that was sampled."""
    stretches: tuple[Stretch, ...]
    """One for each partition of the topic. It is empty if the partition is."""
    large: int = 0
    """Records that were left out because they are too large to be looked at."""
    damaged: Mapping[int, str] = field(default_factory=dict)
    """Partition -> why a batch of it cannot be read. Nothing behind that batch is in the sample."""
    unasked: int = 0
    """Records that were left out because the registry was not asked for their schemas."""

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


def sampled_records(kafka: KafkaSettings, state: TopicState, *, most: int = SAMPLE) -> TopicRecords:
    """About `most` of the first, the middle and the newest records,
    or fewer if they are large or come slowly.

    The newest are read first. Records above 4 MB are left out. Raises ServiceError if nothing can be read.
    """
    return _read(kafka, state, parts_of(state, most))


def newest_records(kafka: KafkaSettings, state: TopicState, *, most: int = SAMPLE) -> TopicRecords:
    """As `sampled_records`, but the newest records alone:
    those that come nearest to what a running query reads next.
    """
    return _read(kafka, state, [(begin_of_newest(state, most), dict(state.end))])


def _read(kafka: KafkaSettings, state: TopicState, parts: Sequence[Bounds]) -> TopicRecords:
    """The records of these parts of the topic. parts: the one with the lowest offsets first."""
    stretches = {part: Stretch(part, state.end[part] - state.begin[part]) for part in sorted(state.begin)}
    if not state.records:
        return TopicRecords(state.name, tuple(stretches.values()))
    places = [
        (number, partition)
        for number, (begin, end) in reversed(list(enumerate(parts)))
        for partition in begin
        if begin[partition] < end[partition]
    ]
    runs: dict[tuple[int, int], list[list[FetchedRecord]]] = {}
    with BoundedRecords(kafka, state.name) as bounded:
        for at, (number, partition) in enumerate(places):
            begin, end = parts[number]
            # What the others leave over, later ones may have.
            share = bounded.bytes_left // (len(places) - at)
            runs[number, partition] = bounded.read(partition, begin[partition], end[partition], share=share)
    if bounded.failure is not None and not any(runs.values()):  # a part of the sample is better than none
        raise bounded.failure
    for number, partition in sorted(runs):
        for run in runs[number, partition]:
            stretches[partition].leave_out()
            stretches[partition].add(run)
    return TopicRecords(state.name, tuple(stretches.values()), bounded.large, bounded.damaged)


def parts_of(state: TopicState, most: int) -> list[Bounds]:
    """Where a sample reads from and to, by partition: the first, the middle and the newest records,
    in this order.

    The third part alone stands for a partition of few records, which is read whole. Of all others each part
    has a third of what the partition gives.
    """
    newest = begin_of_newest(state, most)
    parts: list[tuple[dict[int, int], dict[int, int]]] = [({}, {}), ({}, {}), ({}, {})]
    for part, begin in state.begin.items():
        end = state.end[part]
        third = max(1, (end - newest[part]) // 3)
        middle = begin + (end - begin - third) // 2
        whole = newest[part] == begin
        cuts = [(begin, begin), (begin, begin), (begin, end)]
        if not whole:
            cuts = [(begin, begin + third), (middle, middle + third), (end - third, end)]
        for (begins, ends), (low, high) in zip(parts, cuts, strict=True):
            begins[part], ends[part] = low, high
    return [(begins, ends) for begins, ends in parts]


def stretch(state: TopicState, tuples: int, *, first: bool) -> tuple[Mapping[int, int], Mapping[int, int]]:
    """Where to read from and to, by partition: the same share of each,
    and `tuples` records or a few more in all.

    first: whether the first records are wanted. Otherwise the newest are.
    """
    begin, end = dict(state.begin), dict(state.end)
    for partition in begin:
        length = end[partition] - begin[partition]
        count = min(length, -(-length * tuples // state.records))  # rounded up
        if first:
            end[partition] = begin[partition] + count
        else:
            begin[partition] = end[partition] - count
    return begin, end


def begin_of_newest(state: TopicState, most: int) -> dict[int, int]:
    """Offset by partition from which the newest records are read.

    Each partition gives a share by its length, but enough records to judge it.
    """
    if not state.records:
        return dict(state.begin)
    by_length, end = stretch(state, most, first=False)
    return {part: max(state.begin[part], min(by_length[part], end[part] - _LEAST)) for part in state.begin}
