"""The first records of a query that has not begun, judged as the service will judge them.

A query's name is spent with its first commit, which comes before any record is read. So the service looks at
these records before that: if it would reject most of them, it stops, and the name stays free.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from evenflow.errors import ConfigError
from evenflow.progress import PartitionState, judge
from evenflow.reporting.words import by_reason, moment, share, shown_bytes
from evenflow.settings import Settings
from partitioner_service.begin.parsing_limit import ParsingLimit
from partitioner_service.block import REASONS
from partitioner_service.fetch.bounded_records import BoundedRecords
from partitioner_service.fetch.messages import marker_of, timestamp_of
from partitioner_service.fetch.record_columns import FetchedRecord
from partitioner_service.kafka.block_sizes import Widths, sample_batches
from partitioner_service.kafka.committed_state import all_states
from partitioner_service.reading.cells.reasons import OF_RECORDS
from partitioner_service.reading.parse import Parser
from partitioner_service.reading.registered.sample_schemas import SampleSchemas
from partitioner_service.reading.registered.schemas import Schemas, schemas_of
from partitioner_service.routing.ahead import LiveClock
from topics.admin import describe
from topics.offsets import first_offsets
from topics.query.record import read_beginning
from topics.records import Record
from topics.state import TopicState

log = logging.getLogger(__name__)

FIRST = 10_000
"""Records that are looked at, of all partitions together."""
_LEAST = 100
"""Fewer records say nothing of the others."""


@dataclass
class Trial:
    """What becomes of the first records."""

    records: int = 0
    """How many were judged."""
    by_reason: Counter[str] = field(default_factory=Counter)
    """Reason -> rejected records."""
    examples: dict[str, str] = field(default_factory=dict)
    """Reason -> one such record, in words."""

    def note(self, reason: str, count: int, example: str) -> None:
        """Count records that are rejected for a reason."""
        self.by_reason[reason] += count
        self.examples.setdefault(reason, example)


def refuse_mostly_rejected(settings: Settings) -> None:
    """Raise ConfigError if the query has not begun and more of its first records
    than `input.reject_limit` are rejected.

    Where hardly any lie behind `input.start`, the newest before it stand for those that will come. settings:
    with the number of input partitions. Nothing is made or committed. Where the records cannot be read, that
    is logged, and the service begins: it will say itself what is wrong.
    """
    limit = settings.input.reject_limit
    if limit >= 1 or all_states(settings) or read_beginning(settings.origin) is not None:
        return
    topic = settings.topic("input")
    try:
        state = describe(settings.kafka, [topic])[topic]
        start = first_offsets(settings.kafka, state, settings.input.start)
        few = sum(state.end.values()) - sum(start.values()) < _LEAST
        begin, end = newest(state, start) if few else first(state, start)
        trial = tried(settings, _records(settings, topic, begin, end), schemas=schemas_of(settings))
    except Exception as error:  # records may hold anything
        log.warning("the first records of %s cannot be judged: %s", topic, error)
        return
    rejected = trial.by_reason.total()
    if trial.records < _LEAST or rejected <= limit * trial.records:
        return
    mostly = trial.by_reason.most_common(1)[0][0]
    before = begin != start
    which = "newest" if before else "first"
    behind = f" (hardly any lie behind input.start = {settings.input.start})" if before else ""
    raise ConfigError(
        f"{rejected:,} of the {which} {trial.records:,} records of topic {topic}{behind} would be rejected"
        f" ({share(rejected, trial.records)}: {by_reason(trial.by_reason)}; e.g. {trial.examples[mostly]}),"
        f" which is more than input.reject_limit = {limit:g} allows. Query {settings.query.name} has not"
        " begun, so nothing was made or committed, and its name is free",
        hint=(
            "mend the settings (`evenflow doctor` says how); input.reject_limit ="
            " 1 or --unchecked begins all the same"
        ),
    )


def tried(
    settings: Settings,
    first: Mapping[int, Sequence[Record]],
    *,
    schemas: Schemas | None = None,
    wall: Callable[[], float] = time.time,
) -> Trial:
    """Judge records as from the beginning of the query, but for those of whose schemas nothing is known in
    time (`SampleSchemas`).

    first: by partition, in offset order, without markers. schemas: of records of Avro or Protobuf. wall:
    seconds since 1970. Raises what `SampleSchemas.from_registry` raises.
    """
    answers = None
    if schemas is not None:
        answers = SampleSchemas.from_registry(
            (record.value() for records in first.values() for record in records), schemas
        )
        first = {
            partition: [record for record in records if answers.is_enough_for(record.value())]
            for partition, records in first.items()
        }
    parser = Parser(settings.without_cost(), schemas=None if answers is None else answers.of_parser)
    clock, widths, limit = LiveClock(settings, wall=wall), Widths.of(settings), ParsingLimit()
    trial = Trial()
    for partition, records in first.items():
        state = PartitionState(fingerprint="", topic_id="", offset=0)
        values, keys = [record.value() for record in records], [record.key() for record in records]
        for part in sample_batches(values, keys, widths):
            if limit.reached:
                break
            batch = records[part]
            parsed = parser.parse(
                values[part], keys=keys[part], timestamps=[timestamp_of(record) for record in batch]
            )
            limit.add(parsed)
            trial.records += len(batch)
            bad = parsed.bad
            for reason in OF_RECORDS:
                rows = bad.rows[bad.of_reason(reason)]
                for row in rows[:1].tolist():
                    example = f"offset {batch[row].offset()} of partition {partition}: {bad[row]}: "
                    trial.note(reason, rows.size, example + shown_bytes(batch[row].value()))
            ahead = clock.ahead(batch, parsed.rows, parsed.times)
            judged = judge(
                settings.query,
                state,
                parsed.times,
                ahead=None if ahead is None else ahead.which,
                max_skew=settings.max_skew,
            )
            state = judged.state
            for verdict, reason in REASONS.items():
                places = (judged.verdicts == verdict).nonzero()[0]
                if places.size:
                    row = int(parsed.rows[places[0]])
                    example = f"offset {batch[row].offset()} of partition {partition}, event time "
                    example += f"{moment(int(parsed.times[places[0]]))}: {shown_bytes(batch[row].value())}"
                    trial.note(reason, places.size, example)
    return trial


def first(topic: TopicState, start: Mapping[int, int]) -> tuple[dict[int, int], dict[int, int]]:
    """Offsets by partition between which about the first 10,000 records lie.
    start: where the query would begin.
    """
    left = _shares({part: topic.end[part] - offset for part, offset in start.items()})
    return dict(start), {part: offset + left[part] for part, offset in start.items()}


def newest(topic: TopicState, start: Mapping[int, int]) -> tuple[dict[int, int], dict[int, int]]:
    """Offsets by partition between which the few records behind `start` lie, and about 10,000 before it."""
    before = _shares({part: offset - topic.begin[part] for part, offset in start.items()})
    return {part: offset - before[part] for part, offset in start.items()}, dict(topic.end)


def _shares(offsets: Mapping[int, int]) -> dict[int, int]:
    """About 10,000 offsets at most, of each partition in proportion to what it has."""
    total = max(1, sum(offsets.values()))
    return {part: min(many, -(-many * FIRST // total)) for part, many in offsets.items()}


def _records(
    settings: Settings, topic: str, begin: Mapping[int, int], end: Mapping[int, int]
) -> dict[int, list[FetchedRecord]]:
    """The first records between these offsets, by partition, without markers. Raises ServiceError if none can
    be read.
    """
    records: dict[int, list[FetchedRecord]] = {}
    with BoundedRecords(settings.kafka, topic) as bounded:
        for at, (partition, offset) in enumerate(begin.items()):
            share = bounded.bytes_left // (len(begin) - at)
            runs = bounded.read(partition, offset, end[partition], share=share)
            records[partition] = [record for run in runs for record in run if marker_of(record) is None]
    if bounded.failure is not None and not any(records.values()):  # a part of the records is better than none
        raise bounded.failure
    return records
