"""Kafka records as rows of the tables that verify checks.
Any bytes are taken: a foreign record becomes a difference.
"""

from __future__ import annotations

import re
from typing import Any

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, TIMESTAMP_NOT_AVAILABLE

from partitioner_service.kafka.sink import SKIPPED
from topics.query.skip_orders import MOST_SKIPPED
from topics.records import Record
from workbench.verify.input.markers import marker_of

_WHOLE = re.compile(r"-?[0-9]{1,19}")


def input_row(record: Record) -> tuple[Any, ...]:
    """A record of the input topic (INPUT_SCHEMA)."""
    kind, stamp = record.timestamp()
    key, value = record.key(), record.value()
    marker = marker_of(record.headers()) if key is None and value is None else None
    stamp = -1 if kind == TIMESTAMP_NOT_AVAILABLE else stamp
    appended = stamp if kind == TIMESTAMP_LOG_APPEND_TIME else None
    return record.partition(), record.offset(), stamp, key, value, marker, appended, None


def rejected_row(record: Record, topic: str) -> tuple[Any, ...]:
    """A record of the rejected topic (REJECTED_SCHEMA).
    Its position is null if the record names none in `topic`.

    An input record may have been rejected elsewhere before. So headers may occur twice, and ours are the
    last.
    """
    headers = dict(record.headers() or ())
    texts = {name: _text(value) for name, value in headers.items()}
    position = _position(texts.get("evenflow-source", ""), topic)
    mark = _whole(texts.get("evenflow-mark", ""), 64)
    clock = _whole(texts.get("evenflow-clock", ""), 64)
    omitted: bool | None = "evenflow-omitted-bytes" in headers
    reason, detail = texts.get("evenflow-reason"), texts.get("evenflow-detail")
    own_position = record.partition(), record.offset()
    through = None
    if reason == SKIPPED:
        omitted, through = None, _through(position[1], texts.get("evenflow-through", ""))
    return (
        *position,
        reason,
        detail,
        mark,
        clock,
        record.key(),
        record.value(),
        omitted,
        *own_position,
        through,
    )


def _through(offset: int | None, text: str) -> int | None:
    """The last offset that was skipped. A header that cannot be meant counts as that of a single offset."""
    through = _whole(text, 64)
    if offset is None or through is None or not 0 <= through - offset < MOST_SKIPPED:
        return offset
    return through


def _position(source: str, topic: str) -> tuple[int | None, int | None]:
    parts = source.rsplit(":", 2)  # <topic>:<partition>:<offset>
    if len(parts) == 3 and parts[0] == topic:
        partition, offset = _whole(parts[1], 32), _whole(parts[2], 64)
        if partition is not None and offset is not None and min(partition, offset) >= 0:
            return partition, offset
    return None, None


def _whole(text: str, bits: int) -> int | None:
    if not _WHOLE.fullmatch(text):
        return None
    number = int(text)
    return number if -(2 ** (bits - 1)) <= number < 2 ** (bits - 1) else None


def _text(value: bytes | str | None) -> str:
    return value if isinstance(value, str) else (value or b"").decode("utf-8", "replace")
