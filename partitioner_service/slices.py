"""Records of the input topic become slices.

A slice is the stretch of one input partition that a block holds.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from itertools import pairwise
from operator import methodcaller

import numpy as np
from confluent_kafka import KafkaError

from evenflow.errors import DataLossError
from evenflow.markers import EndOfStream
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from evenflow.wire import LATEST_CAME
from partitioner_service.blocks import EXPLODED_BYTES, MOST_BYTES, Widths, cut
from partitioner_service.ends import LogEnds
from partitioner_service.messages import marker_of, timestamp_of
from partitioner_service.route import Slice
from partitioner_service.unfetchable import UnfetchableBatches
from topics import clients
from topics.records import Record

log = logging.getLogger(__name__)

_ERROR, _PARTITION, _KEY, _VALUE = map(methodcaller, ("error", "partition", "key", "value"))

_FORBIDDEN = {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED}


class Slicer:
    """Cuts what was read into blocks of slices.

    It tells `ends` which logs were read to their end, and `unfetchable` which batches cannot be fetched.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        needs_key: bool,
        needs_timestamp: bool,
        ends: LogEnds,
        unfetchable: UnfetchableBatches,
    ) -> None:
        self._kafka = settings.kafka
        self._topic = settings.topic("input")
        self._needs_key = needs_key
        self._needs_timestamp = needs_timestamp
        self._most_bytes = MOST_BYTES if settings.query.explode is None else EXPLODED_BYTES
        self._widths = Widths.of(settings)
        self._ends = ends
        self._unfetchable = unfetchable

    def blocks(self, messages: list[Record], states: Mapping[int, PartitionState]) -> list[list[Slice]]:
        """Blocks of the records that come next. A block has one slice per partition.

        states: of the owned partitions. Records of other partitions, records before a state's offset, and
        records behind a batch that cannot be fetched are dropped. Raises DataLossError when offsets are gone,
        ServiceError for errors that Kafka calls fatal.
        """
        cuts = cut(messages, with_keys=self._needs_key, most_bytes=self._most_bytes, widths=self._widths)
        blocks = (self._slices(some, states) for some in cuts)
        return [slices for slices in blocks if slices]

    def _slices(self, messages: list[Record], states: Mapping[int, PartitionState]) -> list[Slice]:
        stuck = set(self._unfetchable.batches)
        records_alone, ends = self._without_events(messages)
        slices = []
        for partition, records in sorted(_by_partition(records_alone).items()):
            state = states.get(partition)
            if state is None or partition in stuck:
                continue
            self._ends.left(partition)
            if ends.get(partition, 0) <= records[-1].offset():
                ends.pop(partition, None)  # out of date: these records came after that end was reached
            if records[0].offset() < state.offset:
                records = [record for record in records if record.offset() >= state.offset]
            if records:
                self._unfetchable.passed(partition)
                slices.append(self._slice(partition, records))
        for partition, offset in ends.items():  # librdkafka tells each end only once, so it must be noted now
            if partition in states:
                self._ends.reached(partition, offset)
        return slices

    def _without_events(self, messages: list[Record]) -> tuple[list[Record], dict[int, int]]:
        """The records among these messages, and the ends of logs that were reached, by partition."""
        # `map` over C calls. At this rate of records even an empty loop in Python would be a third of all
        # work.
        if not any(map(_ERROR, messages)):
            return messages, {}
        records, ends = [], {}
        for message in messages:
            error = message.error()
            if message.partition() in self._unfetchable.batches:
                continue  # what stands behind a batch that cannot be fetched waits for that batch
            if error is None:
                records.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                ends[message.partition()] = message.offset()
            elif not self._unfetchable.take(message, error):
                self._note(message, error)
        return records, ends

    def _note(self, message: Record, error: KafkaError) -> None:
        """Raise for an error that does not pass, and log any other."""
        code = error.code()
        if code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            raise DataLossError(
                f"the records of {self._topic}[{message.partition()}] that come next are gone ({error.str()})",
                hint="retention deleted them before they were read; see 'Rebuild after data loss' in docs/operations.md",
            )
        if error.fatal() or code in _FORBIDDEN:
            raise clients.service_error(error, self._kafka, f"reading {self._topic}")
        log.warning("kafka says of %s: %s", self._topic, error.str())

    def _slice(self, partition: int, records: list[Record]) -> Slice:
        values = list(map(_VALUE, records))
        markers: dict[int, EndOfStream] = {}
        if None in values:  # only a record without a value can be a marker, and most slices have none
            for position, value in enumerate(values):
                if value is None:
                    marker = _marker(records[position])
                    if marker is not None:
                        markers[position] = marker
        return Slice(
            partition=partition,
            first=records[0].offset(),
            last=records[-1].offset(),
            values=values,
            keys=list(map(_KEY, records)) if self._needs_key else None,
            timestamps=[timestamp_of(record) for record in records] if self._needs_timestamp else None,
            markers=markers,
            records=records,
            came=_came(records[0]),
        )


def _by_partition(messages: list[Record]) -> dict[int, list[Record]]:
    """The records of each partition, in offset order.

    The consumer delivers them in few long runs, cut out here.
    """
    numbers = np.fromiter(map(_PARTITION, messages), np.int64, len(messages))
    cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(messages)]
    found: dict[int, list[Record]] = {}
    for begin, end in pairwise(cuts):
        if begin < end:
            found.setdefault(int(numbers[begin]), []).extend(messages[begin:end])
    return found


def _came(record: Record) -> int | None:
    """The record timestamp (ms) as a frame carries it.

    None if there is none, or none that a clock can show.
    """
    stamp = timestamp_of(record)
    return stamp if 0 <= stamp <= LATEST_CAME else None


def _marker(record: Record) -> EndOfStream | None:
    where = record.topic(), record.partition(), record.offset()
    return marker_of(record, damaged=lambda error: log.warning("%s[%s]@%s: %s", *where, error))
