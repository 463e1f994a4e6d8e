"""Fetches as the queues do, from a model of a consumer: what a test's source reads then are columns, not
messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE

from partitioner_service.fetch.fetch_result import FetchResult
from partitioner_service.fetch.fetchers import Fetcher, Messages
from partitioner_service.fetch.queues import ONE_QUEUE
from partitioner_service.fetch.record_columns import HeaderColumns, RecordColumns
from partitioner_service.reading.cells.payloads import Payloads


class Columns(Messages):
    """`consume`, whose messages become columns at once, as those of librdkafka's queues do."""

    name = "queues"

    def fetch(self, most: int, timeout: float) -> FetchResult:
        return as_columns(super().fetch(most, timeout))


def either_fetcher(settings: Any, client: Any, *, client_id: str) -> tuple[Any, Fetcher]:
    """As `fetchers.opened`: columns for the instances with an even number, messages for others."""
    consumer = client(ONE_QUEUE)
    return consumer, Messages(consumer) if settings.partitioner.instance[-1] in "13579" else Columns(consumer)


def as_columns(fetched: FetchResult) -> FetchResult:
    """The same fetch without a message for each record. Of what a model's record lacks, it has none."""
    records: Sequence[Any] = fetched.records
    stamps = [_of(record, "timestamp") or (TIMESTAMP_NOT_AVAILABLE, -1) for record in records]
    headers = [_of(record, "headers") or [] for record in records]
    pairs = [pair for some in headers for pair in some]
    kept = RecordColumns(
        topic=(_of(records[0], "topic") or "in") if records else "in",
        partitions=fetched.partitions,
        offsets=fetched.offsets,
        stamps=np.array([stamp for _, stamp in stamps], np.int64),
        kinds=np.array([kind for kind, _ in stamps], np.int32),
        keys=Payloads.of([_of(record, "key") for record in records]),
        values=fetched.values,
        headers=HeaderColumns(
            np.cumsum([0, *map(len, headers)]),
            Payloads.of([name.encode() for name, _ in pairs]),
            Payloads.of([held.encode() if isinstance(held, str) else held for _, held in pairs]),
        ),
    )
    stamps_or_none = np.where(kept.kinds == TIMESTAMP_NOT_AVAILABLE, -1, kept.stamps)
    return FetchResult(
        fetched.partitions,
        fetched.offsets,
        fetched.arrival,
        fetched.values,
        kept,
        kept.keys,
        stamps_or_none,
        fetched.events,
    )


def _of(record: Any, what: str) -> Any:
    return getattr(record, what)() if hasattr(record, what) else None
