"""Brings the records before a decompression bomb without Kafka's client,
and then says that the bomb cannot be fetched.

librdkafka fetches ahead, so it would decompress the bomb while the records before it are still being read. A
partition with a bomb is therefore not assigned to it before the bomb is behind us. Its batches come one by
one (`topics.batches.raw_batches`), each decompressed within the bound that makes a batch a bomb. A thread
fetches, decompresses and judges them. The data plane must neither wait for Kafka nor go through millions of
records while a transaction is open. One large batch is held at a time, whatever the number of partitions.

Batches on which runs ended again and again are read in the same way (`Suspect`). Then nothing is reported
behind them. The detour ends where the batches are ordinary ones again, and at the end of the log.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
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
_WAY_SECONDS = 0.0005
"""How long the thread makes way for the data plane, every thousand records of a batch."""
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
        self._open: _OpenBatch | None = None
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
        self._around, self._rests, self._open, self._calm = frozenset(self._next), {}, None, {}
        if not self._around:
            self.close()
        return self._around

    def again(self, partitions: Collection[int], states: Mapping[int, PartitionState]) -> None:
        """Look again at what stands before these partitions, as far as they lead to a bomb."""
        for partition in self._around.intersection(partitions):
            self._next[partition] = states[partition].offset
            self._rests.pop(partition, None)
            self._calm.pop(partition, None)
            if self._is_open(partition):
                self._open = None

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
        if self._open is not None and self._open.partition not in paused:
            return self._records(self._open)
        self._ask(paused)
        if self._request is None or not wait([self._request.answer], self._moment).done:
            return None
        (partition, offset, future), self._request = self._request, None
        if self._next.get(partition) != offset:
            return None  # reading has gone elsewhere in the meantime
        if error := future.exception():  # as librdkafka does it: a broker may come back
            log.warning("%s[%d] is asked for again: %s", self._topic, partition, error)
            self.close()
            self._rests[partition] = self._clock() + _OUTAGE_SECONDS
            return None
        answer = future.result()
        if answer is None:
            gone = KafkaError(KafkaError.OFFSET_OUT_OF_RANGE, "the offset is gone")
            return self._stopped(partition, offset, gone)
        if not answer.batches:
            bomb = self.bombs[partition]
            # Of suspects all are read, up to the end of the log or to an open transaction. The answer may
            # also be empty because the broker makes its clients wait (a quota).
            if answer.stable <= offset if isinstance(bomb, Suspect) else answer.end <= bomb.first:
                self._end_detour(partition)
                return None
            self._rests[partition] = self._clock() + _AGAIN_SECONDS
            return None
        return self._begin(answer.batches, partition, offset)

    def close(self) -> None:
        """Let go of the connection."""
        connection, self._connection, self._request = self._connection, None, None
        if connection is not None:
            connection.close()

    def _ask(self, paused: Collection[int]) -> None:
        """Fetch of the next partition that neither rests nor is paused, unless a fetch is on its way.

        An open batch, whose partition is paused, makes room: it is fetched again when its turn comes. So a
        partition that is paused neither takes memory of its own nor holds up the one that it waits for.
        """
        if self._request is not None:
            return
        now = self._clock()
        for partition in self._next:
            if partition not in paused and self._rests.get(partition, now) <= now:
                if self._open is not None:
                    self._next[self._open.partition] = self._open.next_offset
                    self._open = None
                offset = self._next.pop(partition)
                self._next[partition] = offset  # the others come first the next time
                self._connection = self._connection or _Connection(self._kafka, self._topic)
                self._request = self._connection.ask(partition, offset)
                return

    def _begin(self, batches: Sequence[_OpenBatch], partition: int, offset: int) -> FetchResult | None:
        """The records of these batches, which stand at this offset, as far as they are handed over at a
        time.
        """
        records: list[FetchedRecord] = []
        for opened in batches:
            batch = opened.batch
            if opened.failure is not None:
                return self._stopped(partition, batch.first, opened.failure, records)
            target = self.bombs[partition]
            if target.is_behind(batch.first):
                if opened is batches[0]:
                    self._end_detour(partition)
                    return None
                break
            if isinstance(target, Suspect) and offset <= batch.first:  # else it was open before
                self._calm.setdefault(partition, Calm()).add(len(batch.data), heavy=opened.heavy)
            self._open = opened
            records += self._portion(opened)
            if opened.failure is not None:
                return self._stopped(partition, batch.first, opened.failure, records)
            if self._open is not None or len(records) >= _MOST_RECORDS:
                break
        return FetchResult.of_messages(records)

    def _is_open(self, partition: int) -> bool:
        return self._open is not None and self._open.partition == partition

    def _is_calm(self, partition: int, offset: int) -> bool:
        """Whether the suspects of this partition, which is read up to this offset, are behind us."""
        suspect = self.bombs[partition]
        return (
            isinstance(suspect, Suspect)
            and not self._is_open(partition)
            and offset > suspect.reach
            and bool(self._calm.get(partition))
        )

    def _end_detour(self, partition: int) -> None:
        self.past.add(partition)
        self._calm.pop(partition, None)
        del self._next[partition]

    def _records(self, opened: _OpenBatch) -> FetchResult:
        records = self._portion(opened)
        if opened.failure is not None:
            return self._stopped(opened.partition, opened.batch.first, opened.failure, records)
        return FetchResult.of_messages(records)

    def _portion(self, opened: _OpenBatch) -> list[FetchedRecord]:
        """The next records of the open batch, which is closed behind its last one."""
        records: list[FetchedRecord] = []
        headers, ended, partition = 0, False, opened.partition
        try:
            while len(records) < _MOST_RECORDS and headers < _MOST_HEADERS and not ended:
                raw_record = next(opened.records, None)
                ended = raw_record is None
                if raw_record is not None:
                    headers += len(raw_record.headers)
                    records.append(FetchedRecord.of(raw_record, self._topic, partition))
        except DamagedBatchError as error:
            opened.failure = KafkaError(KafkaError._BAD_MSG, str(error))
            return records
        opened.headers += headers
        if records:
            opened.next_offset = records[-1].offset() + 1
        if partition in self._calm:
            self._calm[partition].add_headers(opened.headers, opened.batch)
        if ended:
            self._open = None
            self._next[partition] = opened.batch.last + 1
        return records

    def _stopped(
        self, partition: int, offset: int, error: KafkaError, records: Collection[FetchedRecord] = ()
    ) -> FetchResult:
        """The report that nothing more can be fetched of this partition, behind these records."""
        del self._next[partition]
        if self._is_open(partition):
            self._open = None
        place = self._topic, partition, offset
        return FetchResult.of_messages([*records, FetchedRecord(place, (0, -1), None, None, failure=error)])


@dataclass
class _OpenBatch:
    """A batch that is handed over, or that will be."""

    partition: int
    """Partition of the input topic."""
    batch: RawBatch
    """The batch as it stands in the log."""
    next_offset: int
    """Offset at which reading goes on in it."""
    records: Iterator[RawRecord] = field(default_factory=lambda: iter(()))
    """Records of the batch that are not handed over yet."""
    heavy: bool = False
    """Whether it `is_heavy`."""
    headers: int = 0
    """Headers of the records that are handed over."""
    failure: KafkaError | None = None
    """Why no further record can be had of it. None if one can."""


class _Connection:
    """A reader, and the thread in which it is used: neither fetching nor closing may hold up the data
    plane, and neither may a batch of very many records.
    """

    def __init__(self, kafka: KafkaSettings, topic: str) -> None:
        self._reader = RawReader(kafka, topic)
        self._most = most_grown(kafka)
        self._calls = BoundedCalls("detour")
        self._closed = threading.Event()

    def ask(self, partition: int, offset: int) -> _Request:
        return _Request(partition, offset, self._calls.begin(lambda: self._answer(partition, offset)))

    def close(self) -> None:
        """Close the reader once nothing uses it any more. This does not wait."""
        self._closed.set()
        self._calls.begin(self._reader.close)
        self._calls.close()

    def _is_closed(self) -> bool:
        # Python has one lock for all threads, and lets a waiting one in after 5 ms only.
        return self._closed.wait(_WAY_SECONDS)

    def _answer(self, partition: int, offset: int) -> _Answer | None:
        fetched = self._reader.fetch(partition, offset, most=_FETCH_BYTES)
        if fetched is None:
            return None
        return _Answer(list(self._batches(fetched, partition, offset)), fetched.end, fetched.stable)

    def _batches(self, fetched: RawFetch, partition: int, offset: int) -> Iterator[_OpenBatch]:
        """The first of these batches, from this offset on: ordinary ones together, a heavy one alone. Behind
        one that cannot be read there is none.
        """
        count = 0
        for batch, aborted in fetched.verdicts:
            opened = _OpenBatch(partition, batch, max(offset, batch.first))
            if (bomb := bomb_in(batch, self._most)) is not None:
                opened.failure = KafkaError(KafkaError._BAD_COMPRESSION, bomb.why)
                yield opened
                return
            opened.heavy = is_heavy(batch)
            if opened.heavy and batch is not fetched.batches[0]:
                return
            try:  # of a batch whose offsets are in no order, nothing may be read
                opened.records = batch.checked_records(
                    self._most, aborted=aborted, begin=offset, stopping=self._is_closed
                )
            except DamagedBatchError as error:
                opened.failure = KafkaError(KafkaError._BAD_MSG, str(error))
            yield opened
            count += max(1, batch.count) if opened.failure is None else _MOST_RECORDS
            if opened.heavy or count >= _MOST_RECORDS:
                return


class _Answer(NamedTuple):
    """What a fetch brought."""

    batches: Sequence[_OpenBatch]
    """The first batches, judged. Empty only if none came."""
    end: int
    """As of `RawFetch`."""
    stable: int
    """As of `RawFetch`."""


class _Request(NamedTuple):
    """One fetch that is on its way."""

    partition: int
    """Partition of the input topic."""
    offset: int
    """Offset from which on records are asked for."""
    answer: Future[_Answer | None]
    """What the fetch will bring. It is None if the offset is gone."""
