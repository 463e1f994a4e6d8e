"""Fetches records from librdkafka's queues into buffers. Python makes no object of a record.

The queue of each assigned partition is taken off the consumer's own, which then holds only callbacks and
errors of the whole client. The partitions' queues are read in turns, so that none runs away from the others,
and librdkafka fetches for each until its queue is full (`bounds`). A queue that is left alone (`leave`) keeps
what it holds. A pause would throw that away, and fetch it once more.

Pausing, seeking, ends of logs and errors of a partition work as with `consume`, which calls the same function
of librdkafka on the consumer's own queue.

Three rules of librdkafka:
* A partition whose queue the application has forwarded, be it to nowhere, is not forwarded to the consumer's
  queue when it is assigned. So it is taken off before `assign`, and no record comes the other way. But a
  partition that librdkafka has not heard of yet may get another queue once it hears of it. So the topic is
  asked for before. Records that come the other way all the same (of a partition that was added a moment ago)
  are handed over as `astray`.
* `assign` stops partitions, and a moment later that undoes any forwarding. What comes then stays in the
  partition's queue, which is where it is read.
* A partition's queue outlives its assignment, with what it holds. So it is emptied.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError

from evenflow.numeric.arrays import Int64s, UInt64s
from partitioner_service.fetch.fetch_result import FetchResult
from partitioner_service.fetch.gather import (
    Functions,
    Measures,
    Strings,
    destroy,
    gather,
    gather_headers,
    measure,
    take_turns,
)
from partitioner_service.fetch.librdkafka import Librdkafka
from partitioner_service.fetch.record_columns import FetchedRecord, HeaderColumns, RecordColumns
from partitioner_service.reading.cells.payloads import Payloads
from topics.records import Record

_METADATA_SECONDS = 30.0
_MOST_NOTICES = 1_000
"""Most errors of the whole client that are taken at once."""
_TURN = 2_000
"""Records that a partition gives before it is the next one's turn, or more where few partitions share a
block. Each slice of a block costs the router some time, so turns are not shorter.
"""
_NAP, _LONGEST_NAP = 0.002, 0.02
"""Seconds between two looks into the queues. Each look that finds nothing doubles them."""
_SETTLED = 2.0
"""Seconds after which librdkafka has stopped fetching partitions that were given up. An answer of a broker
that stalls for longer stays in memory until its partition is assigned again. It is thrown away then.
"""


class _Bound(NamedTuple):
    """How much may be fetched ahead."""

    together: int
    """Of all partitions, in equal shares."""
    least: int
    """Of each, although all together may then have more."""
    most: int
    """Of each."""

    def each(self, partitions: int) -> int:
        """How much of each of so many partitions."""
        return min(self.most, max(self.least, self.together // max(1, partitions)))


_RECORDS = _Bound(600_000, 4_000, 50_000)
_KIB = _Bound(65_536, 512, 65_536)
_ANSWER_BYTES = _Bound(32 << 20, 128 << 10, 1 << 20)
"""Bytes that one answer of a broker may bring."""

ONE_QUEUE = {
    "queued.min.messages": 200_000,
    "queued.max.messages.kbytes": _KIB.together,
    "max.partition.fetch.bytes": _ANSWER_BYTES.most,
}
"""Bounds on what a client fetches ahead whose partitions share the consumer's own queue."""


def bounds(partitions: int) -> dict[str, int]:
    """Bounds on what a client fetches ahead that reads so many partitions by `Queues`.

    librdkafka stops fetching a partition whose own queue holds so much. What an answer brings comes on top.
    """
    return {
        "queued.min.messages": _RECORDS.each(partitions),
        "queued.max.messages.kbytes": _KIB.each(partitions),
        "max.partition.fetch.bytes": _ANSWER_BYTES.each(partitions),
    }


class Queues:
    """Reads one topic from its partitions' queues (`partitioner.reading = "queues"`)."""

    name = "queues"

    def __init__(self, consumer: Consumer, library: Librdkafka, topic: str) -> None:
        self._consumer = consumer
        self._library = library
        self._topic = topic
        # Here, and not at an assignment: inside a rebalance the answer would begin another one.
        consumer.list_topics(topic, timeout=_METADATA_SECONDS)
        library.let_go(library.queue_of(topic, 0))  # from now on librdkafka remembers the partitions
        self._queues: dict[int, int] = {}
        self._given_up: dict[int, int] = {}
        self._settled_at = 0.0
        self._next = 0
        self._read_only({})
        self._changes = 0
        self._scratch = np.zeros(4, np.uint64)
        self._own = np.uint64(self._scratch.ctypes.data)

    def split(self, partitions: Iterable[int]) -> None:
        """As of `Fetcher`: take these partitions off the consumer's own queue."""
        self.take_back()
        # An error outlives an assignment, unlike a record. So nothing may be left of the one before.
        self._library.drop(self._given_up.values())
        for partition in partitions:
            queue = self._queues[partition] = self._library.queue_of(self._topic, partition)
            self._library.forward(queue, None)
            if (before := self._given_up.pop(partition, None)) is not None:
                self._library.let_go(before)
        self._read_only(self._queues)

    def leave(self, partitions: Collection[int]) -> frozenset[int]:
        """As of `Fetcher`. What the queues of these partitions hold stays there."""
        self._read_only(self._queues.keys() - set(partitions))
        return frozenset()

    def take_back(self) -> None:
        """As of `Fetcher`. What librdkafka has fetched of these partitions is thrown away a moment later."""
        self._changes += 1
        self._given_up |= self._queues
        self._settled_at = time.monotonic() + _SETTLED
        self._queues = {}
        self._read_only({})

    def close(self) -> None:
        """As of `Fetcher`."""
        self.take_back()
        self._forget_given_up()

    def fetch(self, most: int, timeout: float) -> FetchResult:
        """As of `Fetcher`. A rebalance, or records that have gone astray, drop what was taken."""
        before, until = self._changes, time.monotonic() + timeout
        if self._given_up:
            self._drop_given_up()
        messages = np.zeros(most, np.uint64)
        count, nap, notices = 0, _NAP, list[Record]()
        try:
            while True:
                came, more = self._take_turns(messages[count:])
                count += came
                left = max(0.0, until - time.monotonic()) if count < most else 0.0
                nap = _NAP if came else min(2 * nap, _LONGEST_NAP)
                # Afterwards: a record that has gone astray is here before any that stands behind it is taken.
                notices += self._notices(0.0 if more else min(left, nap))
                astray = [notice for notice in notices if notice.error() is None]
                if astray or self._changes != before:
                    notices = [notice for notice in notices if notice.error() is not None]
                    return replace(FetchResult.of_messages(notices), astray=astray)
                if not left:
                    return self._fetched(messages[:count], notices)
        finally:
            destroy(messages, count, self._library.functions)

    def _notices(self, timeout: float) -> list[Record]:
        """What has come by the consumer's own queue. The callbacks of a rebalance run in here."""
        return cast(list[Record], self._consumer.consume(_MOST_NOTICES, timeout))

    def _take_turns(self, messages: UInt64s) -> tuple[int, bool]:
        """Take what the queues hold, a turn of each. Returns how many messages came, and whether there may be
        more.
        """
        if not self._order:
            return 0, False
        first = bisect_left(self._order, self._next) % len(self._order)
        turn = max(_TURN, len(messages) // len(self._order))
        room = np.uint64(messages.ctypes.data)
        count, place, more = take_turns(self._addresses, first, turn, messages, room, self._library.functions)
        self._next = self._order[place]
        return count, more

    def _read_only(self, partitions: Iterable[int]) -> None:
        """Take turns among these partitions."""
        self._order = sorted(partitions)
        self._addresses = np.array([self._queues[partition] for partition in self._order], np.uint64)

    def _drop_given_up(self) -> None:
        """Throw away what librdkafka has fetched of partitions that were given up.

        Otherwise it would keep that for as long as nobody assigns them to this instance again. It stops
        fetching them a moment after they are given up.
        """
        self._library.drop(self._given_up.values())
        if time.monotonic() >= self._settled_at:
            self._forget_given_up()

    def _forget_given_up(self) -> None:
        for queue in self._given_up.values():
            self._library.let_go(queue)
        self._given_up = {}

    def _fetched(self, messages: UInt64s, notices: list[Record]) -> FetchResult:
        measures = Measures.room(len(messages))
        measure(messages, len(messages), self._library.functions, self._scratch, self._own, measures)
        order = np.flatnonzero(measures.errors == 0)
        events: list[tuple[int, Record]] = [(0, notice) for notice in notices]
        for place in np.flatnonzero(measures.errors).tolist():
            before = int(np.searchsorted(order, place))
            events.append((before, self._event(measures, place, int(messages[place]))))
        arrival = np.arange(len(order))
        partitions = measures.partitions[order]
        if (partitions[1:] < partitions[:-1]).any():
            arrival = np.argsort(partitions, kind="stable")
            order, partitions = order[arrival], partitions[arrival]
        values = _room(measures.value_sizes[order])
        keys = _room(measures.key_sizes[order])
        gather(messages, order, measures, values, keys)
        records = RecordColumns(
            topic=self._topic,
            partitions=partitions,
            offsets=measures.offsets[order],
            stamps=measures.stamps[order],
            kinds=measures.kinds[order],
            keys=_payloads(keys),
            values=_payloads(values),
            headers=self._headers(messages, order, measures),
        )
        stamps = np.where(records.kinds == TIMESTAMP_NOT_AVAILABLE, -1, records.stamps)
        return FetchResult(
            partitions, records.offsets, arrival, records.values, records, records.keys, stamps, events
        )

    def _headers(self, messages: UInt64s, order: Int64s, measures: Measures) -> HeaderColumns | None:
        counts = measures.header_counts[order]
        total = int(counts.sum())
        if not total:
            return None
        names = _of_size(int(measures.name_bytes.sum()), total)
        contents = _of_size(int(measures.held_bytes.sum()), total)
        # Few records have any: the ends of a stream, for example.
        some = order[counts > 0]
        gather_headers(messages, some, self._library.functions, self._scratch, self._own, names, contents)
        return HeaderColumns(np.append(0, np.cumsum(counts)), _payloads(names), _payloads(contents))

    def _event(self, measures: Measures, place: int, message: int) -> FetchedRecord:
        error = KafkaError(int(measures.errors[place]), self._library.words_of(message))
        where = self._topic, int(measures.partitions[place]), int(measures.offsets[place])
        return FetchedRecord(where, (TIMESTAMP_NOT_AVAILABLE, -1), None, None, failure=error)


def compile_kernels() -> None:
    """Compile the kernels of this module without any message."""
    nowhere = Functions(*(np.uint64(0) for _ in Functions._fields))
    messages, scratch, measures = np.zeros(0, np.uint64), np.zeros(4, np.uint64), Measures.room(0)
    order, own = np.zeros(0, np.int64), np.uint64(0)
    measure(messages, 0, nowhere, scratch, own, measures)
    gather(messages, order, measures, _of_size(0, 0), _of_size(0, 0))
    gather_headers(messages, order, nowhere, scratch, own, _of_size(0, 0), _of_size(0, 0))
    take_turns(messages, 0, 1, messages, own, nowhere)
    destroy(messages, 0, nowhere)


def _room(sizes: Int64s) -> Strings:
    """Room for strings of these sizes, -1 for one that is missing."""
    return _of_size(int(np.maximum(sizes, 0).sum()), len(sizes))


def _of_size(size: int, count: int) -> Strings:
    """Room for so many strings of so many bytes together."""
    begins = np.zeros(count + 1, np.int64)
    return Strings(np.empty(size + count, np.uint8), begins, np.empty(count, np.uint8))


def _payloads(room: Strings) -> Payloads:
    return Payloads(room.data, room.begins, room.missing.view(np.bool_))
