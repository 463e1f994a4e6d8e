"""Brings the records before a decompression bomb without Kafka's client,
and then says that the bomb cannot be fetched.

librdkafka fetches ahead, so it would decompress the bomb while the records before it are still being read. A
partition with a bomb is therefore not assigned to it before the bomb is behind us. Its batches come one by
one (`topics.batches.raw_batches`), each decompressed within the bound that makes a batch a bomb. A thread
fetches them: the data plane must not wait for Kafka while a transaction is open.

Batches on which runs ended again and again are read in the same way (`Suspect`). Then nothing is reported
behind them. The detour ends where the batches are ordinary ones again, and at the end of the log.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import NamedTuple

from confluent_kafka import KafkaError

from evenflow.progress import PartitionState
from evenflow.settings import KafkaSettings
from partitioner_service.fetch.fetch_result import FetchResult
from partitioner_service.fetch.record_columns import FetchedRecord
from topics.batches.bombs import Bomb, Calm, Suspect, bomb_in, is_heavy, most_grown
from topics.batches.raw_batches import DamagedBatchError, RawBatch, RawFetch, RawReader, RawRecord
from topics.call_thread import BoundedCalls

log = logging.getLogger(__name__)

_AGAIN_SECONDS = 0.5
"""How long a partition rests of which nothing has come."""
_OUTAGE_SECONDS = 5.0
"""The same where Kafka does not answer."""
_MOST_RECORDS = 10_000
_MOST_HEADERS = 100_000
"""Records that are handed over at a time, and their headers: each of these becomes an object."""
_FETCH_BYTES = 1_048_576
_MOMENT = 0.05
"""Seconds that the data plane waits for the thread."""


class Detour:
    """The partitions of this instance that lead to a bomb, or that begin with suspects. bombs: both, by
    partition, whoever owns it.

    past: partitions whose bomb is not there any more, although no order has led past it, and those whose
    suspects are read.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        topic: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        moment: float = _MOMENT,
    ) -> None:
        self.bombs: dict[int, Bomb | Suspect] = {}
        self.past: set[int] = set()
        self._kafka, self._topic, self._clock, self._moment = kafka, topic, clock, moment
        self._around: frozenset[int] = frozenset()
        self._next: dict[int, int] = {}
        self._rests: dict[int, float] = {}
        self._open: dict[int, _OpenBatch] = {}
        self._calm: dict[int, Calm] = {}
        self._request: _Request | None = None
        self._connection: _Connection | None = None

    def leads(self, states: Mapping[int, PartitionState]) -> frozenset[int]:
        """Go on from these states. Returns the partitions of which librdkafka must fetch nothing."""
        for partition in self.past:
            self.bombs.pop(partition, None)
        self.past = set()
        self._next = {
            partition: state.offset
            for partition, state in states.items()
            if partition in self.bombs and not self.bombs[partition].is_behind(state.offset)
        }
        self._around, self._rests, self._open, self._calm = frozenset(self._next), {}, {}, {}
        if not self._around:
            self.close()
        return self._around

    def again(self, partitions: Collection[int], states: Mapping[int, PartitionState]) -> None:
        """Look again at what stands before these partitions, as far as they lead to a bomb."""
        for partition in self._around.intersection(partitions):
            self._next[partition] = states[partition].offset
            self._rests.pop(partition, None)
            self._open.pop(partition, None)
            self._calm.pop(partition, None)

    def ahead(self, states: Mapping[int, PartitionState]) -> dict[int, int]:
        """The offset of each bomb, but for those that these states are past."""
        return {
            partition: bomb.first
            for partition, bomb in self.bombs.items()
            if partition not in states or not bomb.is_behind(states[partition].offset)
        }

    def fetch(self, paused: Collection[int]) -> FetchResult | None:
        """The next records before a bomb, or the report of one. None if none have come yet.
        paused: are left alone.
        """
        # Here and not behind the last suspect, because by now its records count in the states.
        for partition in [p for p, offset in self._next.items() if self._is_calm(p, offset)]:
            self._end_detour(partition)
        for partition, batch in self._open.items():
            if partition not in paused:
                return self._records(partition, batch)
        self._ask(paused)
        if self._request is None or not wait([self._request.answer], self._moment).done:
            return None
        (partition, offset, answer), self._request = self._request, None
        if self._next.get(partition) != offset or partition in self._open:
            return None  # reading has gone elsewhere in the meantime
        if error := answer.exception():  # as librdkafka does it: a broker may come back
            log.warning("%s[%d] is asked for again: %s", self._topic, partition, error)
            self.close()
            self._rests[partition] = self._clock() + _OUTAGE_SECONDS
            return None
        fetched = answer.result()
        if fetched is None:
            return self._stopped(partition, offset, KafkaError.OFFSET_OUT_OF_RANGE, "the offset is gone")
        if not fetched.batches:
            bomb = self.bombs[partition]
            # Of suspects all are read, up to the end of the log or to an open transaction. The answer may
            # also be empty because the broker makes its clients wait (a quota).
            if fetched.stable <= offset if isinstance(bomb, Suspect) else fetched.end <= bomb.first:
                self._end_detour(partition)
                return None
            self._rests[partition] = self._clock() + _AGAIN_SECONDS
            return None
        return self._begin(fetched, partition)

    def close(self) -> None:
        """Let go of the connection."""
        connection, self._connection, self._request = self._connection, None, None
        if connection is not None:
            connection.close()

    def _ask(self, paused: Collection[int]) -> None:
        """Fetch of the next partition that neither rests nor is paused, unless a fetch is on its way."""
        if self._request is not None:
            return
        now = self._clock()
        for partition, offset in self._next.items():
            if partition not in paused and self._rests.get(partition, now) <= now:
                self._next[partition] = self._next.pop(partition)  # the others come first the next time
                self._connection = self._connection or _Connection(self._kafka, self._topic)
                self._request = self._connection.ask(partition, offset)
                return

    def _begin(self, fetched: RawFetch, partition: int) -> FetchResult | None:
        """The records of these batches: of ordinary ones together, of a heavy one alone."""
        records: list[FetchedRecord] = []
        for batch in fetched.batches:
            bomb = bomb_in(batch, most_grown(self._kafka))
            if bomb is not None:
                return self._stopped(partition, bomb.first, KafkaError._BAD_COMPRESSION, bomb.why, records)
            target = self.bombs[partition]
            if target.is_behind(batch.first):
                if batch is fetched.batches[0]:
                    self._end_detour(partition)
                    return None
                break
            heavy = is_heavy(batch)
            if isinstance(target, Suspect):
                self._calm.setdefault(partition, Calm()).add(len(batch.data), heavy=heavy)
            opened = _OpenBatch(batch, batch.records(fetched.aborted, most_grown(self._kafka)))
            try:  # of a batch whose offsets are in no order, nothing may be read
                for _ in batch.records(fetched.aborted, most_grown(self._kafka), begin=batch.last + 1):
                    pass
            except DamagedBatchError as error:
                return self._stopped(partition, batch.first, KafkaError._BAD_MSG, str(error), records)
            self._open[partition] = opened
            records += self._portion(partition, opened)
            if opened.damage is not None:
                return self._damaged(partition, opened, records)
            if heavy or partition in self._open or len(records) >= _MOST_RECORDS:
                break
        return FetchResult.of_messages(records)

    def _is_calm(self, partition: int, offset: int) -> bool:
        """Whether the suspects of this partition, which is read up to this offset, are behind us."""
        suspect = self.bombs[partition]
        return (
            isinstance(suspect, Suspect)
            and partition not in self._open
            and offset > suspect.reach
            and bool(self._calm.get(partition))
        )

    def _end_detour(self, partition: int) -> None:
        self.past.add(partition)
        self._calm.pop(partition, None)
        del self._next[partition]

    def _records(self, partition: int, opened: _OpenBatch) -> FetchResult:
        records = self._portion(partition, opened)
        if opened.damage is not None:
            return self._damaged(partition, opened, records)
        return FetchResult.of_messages(records)

    def _portion(self, partition: int, opened: _OpenBatch) -> list[FetchedRecord]:
        """The next records of an open batch, which is closed behind its last one."""
        records: list[FetchedRecord] = []
        headers, ended = 0, False
        try:
            while len(records) < _MOST_RECORDS and headers < _MOST_HEADERS and not ended:
                raw_record = next(opened.records, None)
                ended = raw_record is None
                if raw_record is not None:
                    headers += len(raw_record.headers)
                    records.append(FetchedRecord.of(raw_record, self._topic, partition))
        except DamagedBatchError as error:
            opened.damage = str(error)
            return records
        opened.headers += headers
        if partition in self._calm:
            self._calm[partition].add_headers(opened.headers, opened.batch)
        if ended:
            del self._open[partition]
            self._next[partition] = opened.batch.last + 1
        return records

    def _damaged(self, partition: int, opened: _OpenBatch, records: Collection[FetchedRecord]) -> FetchResult:
        del self._open[partition]
        why = opened.damage or ""
        return self._stopped(partition, opened.batch.first, KafkaError._BAD_MSG, why, records)

    def _stopped(
        self, partition: int, offset: int, code: int, why: str, records: Collection[FetchedRecord] = ()
    ) -> FetchResult:
        """The report that nothing more can be fetched of this partition, behind these records."""
        del self._next[partition]
        place = self._topic, partition, offset
        return FetchResult.of_messages(
            [*records, FetchedRecord(place, (0, -1), None, None, failure=KafkaError(code, why))]
        )


@dataclass
class _OpenBatch:
    """A batch that is handed over."""

    batch: RawBatch
    """The batch as it stands in the log."""
    records: Iterator[RawRecord]
    """Records of the batch that are not handed over yet."""
    headers: int = 0
    """Headers of the records that are."""
    damage: str | None = None
    """Why no further record can be had of it. None if one can."""


class _Connection:
    """A reader, and the thread in which it is used: neither fetching nor closing may hold up the data
    plane.
    """

    def __init__(self, kafka: KafkaSettings, topic: str) -> None:
        self._reader = RawReader(kafka, topic)
        self._calls = BoundedCalls("detour")

    def ask(self, partition: int, offset: int) -> _Request:
        answer = self._calls.begin(lambda: self._reader.fetch(partition, offset, most=_FETCH_BYTES))
        return _Request(partition, offset, answer)

    def close(self) -> None:
        """Close the reader once nothing uses it any more. This does not wait."""
        self._calls.begin(self._reader.close)
        self._calls.close()


class _Request(NamedTuple):
    """One fetch that is on its way."""

    partition: int
    """Partition of the input topic."""
    offset: int
    """Offset from which on records are asked for."""
    answer: Future[RawFetch | None]
    """What the fetch will bring. It is None if the offset is gone."""
