"""What a record of the input topic says beside its value: its timestamp, and whether it is a marker."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, TIMESTAMP_NOT_AVAILABLE

from evenflow.errors import ProtocolError
from evenflow.numeric.arrays import Int64s
from evenflow.wire.markers import EndOfStream
from partitioner_service.fetch.record_columns import RecordColumns
from topics.records import Record


def marker_of(
    record: Record, *, damaged: Callable[[ProtocolError], object] | None = None
) -> EndOfStream | None:
    """The end-of-stream marker in this record. None if the record is no marker.

    A damaged marker counts as a record like any other. damaged: is called with what is wrong with such a
    marker.
    """
    if record.value() is not None or record.key() is not None:
        return None
    try:
        return EndOfStream.from_headers(record.headers())
    except ProtocolError as error:
        if damaged is not None:
            damaged(error)
        return None


def timestamp_of(record: Record) -> int:
    """The record timestamp in ms, -1 if the record has none."""
    kind, stamp = record.timestamp()
    return -1 if kind == TIMESTAMP_NOT_AVAILABLE else int(stamp)


def append_time_of(record: Record) -> int | None:
    """When the broker appended the record, in ms by its clock.
    None if the topic keeps the producer's timestamps.
    """
    kind, stamp = record.timestamp()
    return int(stamp) if kind == TIMESTAMP_LOG_APPEND_TIME else None


def first_append_time_of(records: Sequence[Record]) -> int | None:
    """As `append_time_of`, of the first of these records."""
    if isinstance(records, RecordColumns):  # without making an object of it
        return int(records.stamps[0]) if records.kinds[0] == TIMESTAMP_LOG_APPEND_TIME else None
    return append_time_of(records[0])


def append_times_of(records: Sequence[Record], rows: Int64s) -> Int64s:
    """When the broker appended the records at these positions, as of `append_time_of`,
    -1 for None. Shape (rows,).
    """
    if isinstance(records, RecordColumns):
        return records.append_times()[rows]
    stamps = (append_time_of(records[row]) for row in rows.tolist())
    return np.fromiter((-1 if stamp is None else stamp for stamp in stamps), np.int64, len(rows))
