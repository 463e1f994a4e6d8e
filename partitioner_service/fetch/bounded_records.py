"""Some records of a topic, in little memory whatever they are.

Not with Kafka's client: it fetches ahead, and decompresses a whole fetch at once. A decompression bomb would
end each service that looks at records before it begins.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from evenflow.errors import ServiceError
from evenflow.settings import KafkaSettings
from partitioner_service.fetch.record_columns import FetchedRecord
from topics.batches.bombs import raw_records
from topics.batches.raw_batches import DamagedBatchError, RawReader, RawRecord

log = logging.getLogger(__name__)

LARGEST = 4_194_304
"""Bytes of a record above which nobody looks at it. As objects its fields take up to fifty times as much."""
_MOST_BYTES = 64_000_000
_MOST_SECONDS = 4.0
_FETCH_BYTES = 1_048_576
_RECORD_BYTES, _HEADER_BYTES = 256, 200
"""What a record and a header take as objects beside their bytes, however short they are."""
_TEXT_BYTES = sys.getsizeof("")
"""What a text takes beside its characters."""


class BoundedRecords:
    """Reads up to 64 MB of a topic for up to 4 s, over all calls together. A context manager."""

    def __init__(self, kafka: KafkaSettings, topic: str) -> None:
        self._kafka, self._topic = kafka, topic
        self._reader = RawReader(kafka, topic, patience=_MOST_SECONDS)
        self._deadline = time.monotonic() + _MOST_SECONDS
        self.bytes_left = _MOST_BYTES
        """Bytes that may still be read."""
        self.large = 0
        """Records that were left out because they have more than `LARGEST` bytes."""
        self.damaged: dict[int, str] = {}
        """Partition -> why a batch of it cannot be read. Nothing behind that batch was looked at."""
        self.failure: ServiceError | None = None
        """Why Kafka did not answer, the first time that it did not."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reader.close()

    def read(
        self, partition: int, begin: int, end: int, *, share: int | None = None
    ) -> list[list[FetchedRecord]]:
        """The first committed records between these offsets, in runs without a record that is left out.

        Reading ends at a batch of which no records can be had, and where Kafka does not answer. share: how
        many bytes this call may take. A first record that has more is there all the same.
        """
        runs: list[list[FetchedRecord]] = [[]]
        left = self.bytes_left if share is None else share
        try:
            for record in self._records(partition, begin, end):
                size = _size(record)
                left -= size
                if size > LARGEST:
                    self.large += 1
                    runs.append([])
                elif left < 0 and any(runs):
                    break
                else:
                    self.bytes_left -= size
                    runs[-1].append(FetchedRecord.of(record, self._topic, partition))
        except DamagedBatchError as error:
            self.damaged.setdefault(partition, str(error))
        except ServiceError as error:
            log.debug("%s[%d] is not looked at to the end: %s", self._topic, partition, error)
            self.failure = self.failure or error
        return [run for run in runs if run]

    def _records(self, partition: int, begin: int, end: int) -> Iterator[RawRecord]:
        """Records as long as bytes and time last."""
        for record in raw_records(
            self._reader,
            partition,
            begin,
            end,
            kafka=self._kafka,
            most=_FETCH_BYTES,
            stopping=lambda: time.monotonic() > self._deadline,
        ):
            if self.bytes_left < _size(record) <= LARGEST or time.monotonic() > self._deadline:
                return
            yield record


def _size(record: RawRecord) -> int:
    """Bytes that the record takes in memory."""
    # Of a name the bytes of its text: one letter may make four bytes of each of the others.
    names = sum(sys.getsizeof(name) - _TEXT_BYTES for name, _ in record.headers)
    contents = sum(len(content or b"") for _, content in record.headers)
    own = len(record.key or b"") + len(record.value or b"")
    return own + _RECORD_BYTES + names + contents + _HEADER_BYTES * len(record.headers)
