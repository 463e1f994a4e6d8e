"""What is in a sample of a topic, as the partitioner would read it with the settings of a query."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl
import pyarrow as pa

from evenflow.aggregates.partials.grouping import group_rows
from evenflow.numeric.arrays import Bools, Float64s, Int64s
from evenflow.settings import Query, Settings
from partitioner_service.begin.parsing_limit import ParsingLimit
from partitioner_service.kafka.block_sizes import Widths, sample_batches
from partitioner_service.reading.cells.reasons import BadRecords
from partitioner_service.reading.parse import Parser
from partitioner_service.reading.registered.sample_schemas import SampleSchemas
from workbench.assist.sample_check.order import jumps
from workbench.assist.sample_check.sample import Stretch, TopicRecords
from workbench.assist.sample_check.schemas import with_schemas
from workbench.assist.sample_check.shape import RecordShape, shape_of
from workbench.registered.records import RegisteredRecords

_KEY_TEXT, _KEYS_OF_A_BATCH = 10_000_000, 20


@dataclass(frozen=True)
class Piece:
    """Readable records of a partition that the sample holds without a gap,
    without the jumps that max_jump would reject.
    """

    times: Int64s
    """Event times (ms) in offset order, shape (n,)."""
    rows: Int64s
    """Where the records stand in `stretch`, shape (n,)."""
    stretch: Stretch
    """All sampled records of the partition."""

    def where(self, which: Bools) -> Piece:
        """The piece with only these records. which: shape (n,)."""
        return replace(self, times=self.times[which], rows=self.rows[which])

    def record(self, place: int) -> tuple[int, bytes | None]:
        """Offset and value of the record in this place."""
        row = int(self.rows[place])
        return self.stretch.offsets[row], self.stretch.values[row]


@dataclass(frozen=True)
class PartitionSample:
    """One partition of the sample."""

    partition: int
    """Number of the partition in the input topic."""
    length: int
    """Offsets that the partition holds."""
    records: int
    """How many were sampled, without markers."""
    ended: bool
    """Whether an end-of-stream marker was among them."""
    pieces: tuple[Piece, ...]
    """The readable records."""
    jumps: int
    """How many tuples max_jump would reject."""

    @cached_property
    def times(self) -> Int64s:
        """Event times (ms) of all pieces, in offset order."""
        return np.concatenate([np.empty(0, np.int64), *(piece.times for piece in self.pieces)])


@dataclass(frozen=True)
class UnreadableGroup:
    """Records that the partitioner would reject for one reason."""

    count: int
    """How many records these are."""
    reason: str
    """Reason in the partitioner's words, for the first of these records."""
    example: bytes | None
    """The value of that record."""


@dataclass(frozen=True)
class LookupFacts:
    """The lookup file beside a sample."""

    rows: int
    """Rows of the file."""
    bytes: int
    """Size of the table in memory."""
    unmatched: int
    """Readable records for which the file has no row."""


@dataclass(frozen=True)
class SampleFacts:
    """A sample as the settings read it."""

    topic: str
    """The topic that was sampled."""
    records: int
    """Records of the sample, without markers."""
    shape: RecordShape
    """Columns of the records, whether the settings read them or not."""
    partitions: tuple[PartitionSample, ...]
    """One entry for each partition of the topic."""
    unreadable: tuple[UnreadableGroup, ...]
    """One entry for each reason, the commonest first."""
    keys: int
    """How many different keys there are."""
    hottest: tuple[bytes, int] | None
    """The commonest key and its number of tuples. None if there is no tuple."""
    keyless: int
    """Records without a record key."""
    filtered: int
    """Readable records of which no tuple is kept."""
    tuples: int
    """Tuples that the query's condition keeps."""
    large: int = 0
    """Records that were left out because they are too large to be looked at."""
    damaged: Mapping[int, str] = field(default_factory=dict)
    """Partition -> why a batch of it cannot be read. Nothing behind that batch was looked at."""
    unasked: int = 0
    """Records that were left out because the registry was not asked for their schemas."""
    costs: Float64s | None = None
    """Costs of the kept tuples, as `partitioner.cost` computes them, not yet whole or within the range. None
    if each tuple costs 1."""
    lookup: LookupFacts | None = None
    """Facts of the lookup file. None without one."""

    @property
    def rejected(self) -> int:
        """How many records cannot be read."""
        return sum(group.count for group in self.unreadable)

    @property
    def readable(self) -> int:
        """How many records can be read."""
        return self.records - self.rejected

    def unmatched_and_rejected(self, query: Query) -> int:
        """How many records would be rejected because the lookup file has no row for them."""
        rejects = query.lookup is not None and query.lookup.missing == "reject"
        return self.lookup.unmatched if rejects and self.lookup is not None else 0

    @property
    def times(self) -> tuple[Int64s, ...]:
        """Event times (ms) of each piece that has any."""
        return tuple(piece.times for part in self.partitions for piece in part.pieces if piece.times.size)

    @property
    def span(self) -> tuple[int, int] | None:
        """Least and largest event time in ms. None if there is no tuple."""
        ends = [(int(times.min()), int(times.max())) for times in self.times]
        return (min(low for low, _ in ends), max(high for _, high in ends)) if ends else None


def facts_of(
    settings: Settings,
    sample: TopicRecords,
    *,
    shape: RecordShape | None = None,
    schemas: SampleSchemas | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> SampleFacts:
    """Read the sample as the settings say.

    shape: the columns of the sample, if they are known already. schemas: those of its Avro and Protobuf
    records. None: the registry of the settings is asked (`with_schemas`). Raises what that raises.
    """
    if schemas is None:
        sample, schemas = with_schemas(settings, sample, clock=clock)
    known = None if schemas is None else schemas.of_parser
    parser, widths, limit = Parser(settings, schemas=known), Widths.of(settings), ParsingLimit(clock=clock)
    reasons, keys = _Reasons(), _KeyCounts()
    parts, costs, filtered, unmatched = [], [], 0, 0
    for stretch in sample.stretches:
        times, rows, records = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0
        for part in sample_batches(stretch.values, stretch.keys, widths):
            if limit.reached:
                break
            values = stretch.values[part]
            parsed = parser.parse(values, keys=stretch.keys[part], timestamps=stretch.timestamps[part])
            limit.add(parsed)
            records += len(values)
            unmatched += parser.unmatched
            reasons.add(values, parsed.bad)
            keys.add(parsed.keys)
            costs += [] if parsed.costs is None else [parsed.costs]
            filtered += parsed.empty
            times.append(parsed.times)
            rows.append(parsed.rows + part.start)
        readable = Piece(np.concatenate(times), np.concatenate(rows), stretch)
        pieces = tuple(piece.where(~jumps(settings.query, piece.times)) for piece in _pieces(readable))
        rejected = len(readable.times) - sum(len(piece.times) for piece in pieces)
        parts.append(
            PartitionSample(stretch.partition, stretch.length, records, stretch.ended, pieces, rejected)
        )
    table = parser.lookup
    return SampleFacts(
        topic=sample.topic,
        records=sum(part.records for part in parts),
        shape=shape or _shape(settings, sample, schemas, clock),
        partitions=tuple(parts),
        unreadable=reasons.groups(),
        keys=keys.different,
        hottest=keys.hottest,
        keyless=sum(key is None for stretch in sample.stretches for key in stretch.keys),
        filtered=filtered,
        tuples=keys.tuples,
        large=sample.large,
        damaged=sample.damaged,
        unasked=sample.unasked,
        costs=np.concatenate(costs) if costs else None,
        lookup=None if table is None else LookupFacts(table.rows, table.bytes, unmatched),
    )


def _pieces(readable: Piece) -> list[Piece]:
    """These records of a partition, cut where the sample leaves others out."""
    stretch = readable.stretch
    cuts = np.searchsorted(readable.rows, np.array(stretch.gaps, np.int64))
    times, rows = np.split(readable.times, cuts), np.split(readable.rows, cuts)
    return [Piece(some, where, stretch) for some, where in zip(times, rows, strict=True)]


def _shape(
    settings: Settings, sample: TopicRecords, schemas: SampleSchemas | None, clock: Callable[[], float]
) -> RecordShape:
    row = None if schemas is None else RegisteredRecords(settings, registry=schemas).row
    return shape_of(
        settings.input, sample.values, explosion=settings.query.explosion, registered=row, clock=clock
    )


class _Reasons:
    """Reasons of unreadable records. Reasons that differ only in what the record holds are one."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._first: dict[str, tuple[str, bytes | None]] = {}

    def add(self, values: Sequence[bytes | None], bad: BadRecords) -> None:
        self._counts.update(bad.counted())
        # return_index gives the first place of each kind, so the example is the first such record.
        kinds, places = np.unique(bad.kinds, return_index=True)
        for kind, row in zip(kinds.tolist(), bad.rows[places].tolist(), strict=True):
            self._first.setdefault(bad.words[kind], (bad[row], values[row]))

    def groups(self) -> tuple[UnreadableGroup, ...]:
        return tuple(UnreadableGroup(count, *self._first[kind]) for kind, count in self._counts.most_common())


class _KeyCounts:
    """How many tuples each key has. Of keys their hashes are kept, and the texts of the commonest: all
    together they may take a thousand times as much as the records.
    """

    def __init__(self) -> None:
        self._hashes = np.empty(0, np.uint64)
        self._counts = np.empty(0, np.int64)
        self._texts: dict[int, bytes] = {}
        self._room = _KEY_TEXT

    def add(self, keys: pa.Array) -> None:
        """Count the keys of more tuples."""
        if not len(keys):
            return
        keys = keys.cast(pa.large_binary())
        groups = group_rows(keys)
        texts, counts = keys.take(pa.array(groups.first)), np.bincount(groups.ids)
        hashes = pl.Series(texts).hash().to_numpy()
        for place in np.argsort(-counts, kind="stable")[:_KEYS_OF_A_BATCH].tolist():
            text = texts[place].as_py()
            if int(hashes[place]) not in self._texts and len(text) <= self._room:
                self._texts[int(hashes[place])] = text
                self._room -= len(text)
        self._hashes, places = np.unique(np.append(self._hashes, hashes), return_inverse=True)
        # Weights are floats, which are exact up to 2^53.
        self._counts = np.bincount(places, np.append(self._counts, counts)).astype(np.int64)

    @property
    def different(self) -> int:
        """How many keys there are."""
        return len(self._hashes)

    @property
    def tuples(self) -> int:
        """How many tuples have them."""
        return int(self._counts.sum())

    @property
    def hottest(self) -> tuple[bytes, int] | None:
        """The commonest key and its number of tuples, among those whose text is kept."""
        known = np.isin(self._hashes, np.array([*self._texts], np.uint64))
        if not known.any():
            return None
        place = int(np.argmax(np.where(known, self._counts, -1)))
        return self._texts[int(self._hashes[place])], int(self._counts[place])
