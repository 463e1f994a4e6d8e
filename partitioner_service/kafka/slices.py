"""Records of the input topic become slices.

A slice is the stretch of one input partition that a block holds.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from confluent_kafka import KafkaError

from evenflow.errors import DataLossError, ProtocolError
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from evenflow.wire import LATEST_CAME
from evenflow.wire.markers import EndOfStream
from partitioner_service.block import Slice
from partitioner_service.fetch.fetch_result import FetchResult
from partitioner_service.fetch.messages import marker_of
from partitioner_service.kafka.block_sizes import EXPLODED_BYTES, MOST_BYTES, Widths, cut
from partitioner_service.kafka.fetching import FetchControl
from partitioner_service.kafka.log_ends import LogEnds
from partitioner_service.kafka.unfetchable import UnfetchableBatches
from topics import clients

log = logging.getLogger(__name__)

_GONE = {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}
_FORBIDDEN = {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED}


class Slicer:
    """Cuts what was read into blocks of slices.

    It tells `ends` which logs were read to their end, and `unfetchable` which batches cannot be fetched.
    fetching: knows the ends of logs, for which no record may have an offset. None trusts all offsets.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        needs_key: bool,
        needs_timestamp: bool,
        ends: LogEnds,
        unfetchable: UnfetchableBatches,
        fetching: FetchControl | None = None,
    ) -> None:
        self._kafka = settings.kafka
        self._topic = settings.topic("input")
        self._needs_key = needs_key
        self._needs_timestamp = needs_timestamp
        self._most_bytes = MOST_BYTES if settings.query.explode is None else EXPLODED_BYTES
        self._widths = Widths.of(settings)
        self._ends = ends
        self._unfetchable = unfetchable
        self._fetching = fetching
        self.disordered: set[int] = set()
        """Partitions of which records came out of order, or from behind the end of their log. Nothing more of
        them is handed over: their batches have to be looked at one by one."""

    def blocks(self, fetched: FetchResult, states: Mapping[int, PartitionState]) -> list[list[Slice]]:
        """Blocks of the records that come next. A block has one slice per partition.

        states: of the owned partitions. Records of other partitions, records before a state's offset, and
        records behind a batch that cannot be fetched are dropped, and so are those of `disordered`
        partitions. Raises DataLossError when offsets are gone, ServiceError for errors that Kafka calls
        fatal.
        """
        stuck = set(self._unfetchable.batches)
        ends, stops, refusals = self._events(fetched)
        runs = []
        for partition, low, high in fetched.runs:
            if partition not in states or partition in stuck or partition in self.disordered:
                continue
            if partition in stops:
                high = low + int(np.searchsorted(fetched.arrival[low:high], stops[partition]))
            if low < high:
                runs.append((partition, self._next(fetched, partition, low, high, states, ends), high))
        # An offset behind the end of the log leads librdkafka there. What comes next is not gone then.
        for partition in refusals.keys() & states.keys() - self.disordered:
            raise self._lost(partition, refusals[partition])
        blocks = [
            [self._slice(fetched, *part) for part in parts] for parts in self._cut(fetched, runs) if parts
        ]
        for partition, offset in ends.items():  # librdkafka tells each end only once, so it must be noted now
            if partition in states:
                self._ends.reached(partition, offset)
        return blocks

    def _next(
        self,
        fetched: FetchResult,
        partition: int,
        low: int,
        high: int,
        states: Mapping[int, PartitionState],
        ends: dict[int, int],
    ) -> int:
        """The first of the records low .. high - 1 that is to be read, `high` if none is.

        An end of the log that was reached before these records came is taken out of `ends`.
        """
        offsets = fetched.offsets[low:high]
        in_order = bool((offsets[1:] > offsets[:-1]).all())
        if not in_order or (
            self._fetching is not None and self._fetching.beyond(partition, int(offsets[-1]))
        ):
            self.disordered.add(partition)
            return high
        self._ends.left(partition)
        # An end at or below the last of these records was told before they were written.
        if ends.get(partition, 0) <= offsets[-1]:
            ends.pop(partition, None)
        first = low + int(np.searchsorted(offsets, states[partition].offset))
        if first < high:
            self._unfetchable.passed(partition)
        return first

    def _cut(
        self, fetched: FetchResult, runs: Sequence[tuple[int, int, int]]
    ) -> Iterator[list[tuple[int, int, int]]]:
        """These runs of records (partition, first, stop) as blocks that are not too large."""
        runs = [run for run in runs if run[1] < run[2]]
        if not runs:
            return
        every_size = fetched.values.sizes
        sizes = np.concatenate([every_size[low:high] for _, low, high in runs])
        keys = None
        if self._needs_key:
            keys = np.concatenate([fetched.keys_of(low, high).sizes for _, low, high in runs])
        ends = np.cumsum([high - low for _, low, high in runs]).tolist()
        counts = [self._widths.elements_of(fetched.values[low:high]) for _, low, high in runs]
        elements = None if counts[0] is None else np.concatenate([c for c in counts if c is not None])
        for first, stop in cut(
            sizes, keys, most_bytes=self._most_bytes, widths=self._widths, elements=elements
        ):
            parts = []
            for (partition, low, high), end in zip(runs, ends, strict=True):
                # first and stop count through all runs, and `end` is the same count at the end of this run.
                begin = max(low, high - (end - first))
                until = min(high, high - (end - stop))
                if begin < until:
                    parts.append((partition, begin, until))
            yield parts

    def _events(self, fetched: FetchResult) -> tuple[dict[int, int], dict[int, int], dict[int, KafkaError]]:
        """By partition: the ends of logs that were reached, the arrival from which on records wait for a
        batch, and what Kafka says where it does not have the offset that was asked for.

        What stands behind a batch that cannot be fetched waits for that batch.
        """
        ends: dict[int, int] = {}
        stops: dict[int, int] = {}
        refusals: dict[int, KafkaError] = {}
        for arrival, message in fetched.events:
            error, partition = message.error(), message.partition()
            assert error is not None
            if partition in self._unfetchable.batches:
                continue
            if error.code() == KafkaError._PARTITION_EOF:
                ends[partition] = message.offset()
            elif self._unfetchable.take(message, error):
                stops[partition] = arrival
            elif error.code() in _GONE:
                # librdkafka may say so of a partition that it had before a detour began.
                around = self._fetching is not None and partition in self._fetching.absent
                if not (around and error.code() == KafkaError._AUTO_OFFSET_RESET):
                    refusals[partition] = error
            else:
                self._note(error)
        return ends, stops, refusals

    def _lost(self, partition: int, error: KafkaError) -> DataLossError:
        return DataLossError(
            f"the records of {self._topic}[{partition}] that come next are gone ({error.str()})",
            hint=(
                "retention deleted them before they were read, or the log was truncated; see 'Rebuild after"
                " data loss' in docs/operations/data-loss.md"
            ),
        )

    def _note(self, error: KafkaError) -> None:
        """Raise for an error that does not pass, and log any other."""
        if error.fatal() or error.code() in _FORBIDDEN:
            raise clients.service_error(error, self._kafka, f"reading {self._topic}")
        log.warning("kafka says of %s: %s", self._topic, error.str())

    def _slice(self, fetched: FetchResult, partition: int, low: int, high: int) -> Slice:
        values, records = fetched.values[low:high], fetched.records[low:high]
        markers: dict[int, EndOfStream] = {}
        damaged: list[ProtocolError] = []
        first = -1
        if values.missing is not None:  # only a record without a value can be a marker
            for position in np.flatnonzero(values.missing).tolist():
                marker = marker_of(records[position], damaged=damaged.append)
                if marker is not None:
                    markers[position] = marker
                elif damaged and first < 0:
                    first = low + position
        if damaged:  # one line, without what a producer wrote
            log.warning(
                "%s[%d]: %d markers of the end of a stream cannot be read, so they count as ordinary records"
                " (the first one at offset %d)",
                *(self._topic, partition, len(damaged), fetched.offsets[first]),
            )
        return Slice(
            partition=partition,
            first=int(fetched.offsets[low]),
            last=int(fetched.offsets[high - 1]),
            values=values,
            keys=fetched.keys_of(low, high) if self._needs_key else None,
            timestamps=fetched.stamps_of(low, high) if self._needs_timestamp else None,
            markers=markers,
            records=records,
            arrival_time=_arrival_time(int(fetched.stamps_of(low, low + 1)[0])),
        )


def _arrival_time(stamp: int) -> int | None:
    """The record timestamp (ms) as a frame carries it.

    None if there is none, or none that a clock can show.
    """
    return stamp if 0 <= stamp <= LATEST_CAME else None
