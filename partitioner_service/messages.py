"""What a Kafka message of the input topic says of itself, beside its value."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE

from evenflow.errors import ProtocolError
from evenflow.markers import EndOfStream
from topics.records import Record


def marker_of(
    record: Record, *, damaged: Callable[[ProtocolError], object] | None = None
) -> EndOfStream | None:
    """The end-of-stream marker that this record is. None for any other record.

    A damaged marker marks nothing: it is a record like any other, and `damaged` is handed what is wrong with it.
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
    """The record timestamp in ms, -1 where there is none."""
    kind, stamp = record.timestamp()
    return -1 if kind == TIMESTAMP_NOT_AVAILABLE else int(stamp)
